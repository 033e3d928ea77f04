"""Declarations of a public domain: drafted without reading a value, kept in files, checked. Public.

``draft_metadata`` and ``draft_domain`` write templates, ``check_domain`` finds what does not fit
together, and ``read_domain`` and ``write_domain`` keep a domain in a file.
"""
