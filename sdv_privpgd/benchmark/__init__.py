"""Compares methods on real tables: ``python -m sdv_privpgd.benchmark``.

It reads the tables without protection, so what it prints is not private. Nothing else in the
package uses it. Experiments of one question each are in ``tests/benchmarks`` of a checkout.
"""
