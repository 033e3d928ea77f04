"""Exact, plain and slow: what the fast code is checked against, by the tests and on a device."""
