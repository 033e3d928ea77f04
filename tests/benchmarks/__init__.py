"""Experiments of one question each: ``python tests/benchmarks NAME``. ``RESULTS.md`` lists them.

They read real tables without protection, so what they print is not private.
"""
