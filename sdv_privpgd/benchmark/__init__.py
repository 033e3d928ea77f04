"""Benchmarks: ``python -m sdv_privpgd.benchmark --help``. Nothing else in the package uses them.

They look at real tables without protection: what they print is not private.
"""
