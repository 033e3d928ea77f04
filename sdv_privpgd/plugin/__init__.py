"""SDV's classes: its words in, ours out. The only importers of SDV, besides the benchmarks.

``synthesizers`` are what users see, ``base`` is what they share, and ``generators``,
``constraints`` and ``transformers`` translate. SDV's own pipeline never sees the private table.
"""
