"""Declarations of a public domain: drafted without a value, kept in files, checked. Public."""
