"""Benchmarks, run by ``python -m sdv_privpgd.benchmark``. Nothing else in the package uses them.

They read real tables without protection, so what they print is not private.
"""
