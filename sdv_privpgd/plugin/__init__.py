"""SDV's classes: its words in, ours out. The only importers of SDV, besides the benchmarks.

``synthesizers`` are what users see and ``base`` is what they share: its settings, and methods that
fit (``fits``), make rows (``rows``), show (``pages``) and name transformers (``transforming``).
``generators``, ``constraints`` and ``transformers`` translate. SDV's own pipeline never sees the
private table.
"""
