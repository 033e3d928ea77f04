"""SDV's classes: its words in, ours out.

All that works with SDV's objects is here. Elsewhere SDV is imported late, for what a user hands
over or asks for: by the command line, ``drafting/template.py`` and the benchmarks.
(``synthesizer.py`` is the module that pickles name: it loads SDV, which finds the classes.)

``synthesizers`` are what users see and ``base`` is what they share: its settings, and methods that
fit (``fits``), make rows (``rows``), show (``pages``) and name transformers (``transforming``).
``constrained``, ``generators`` and ``transformers`` translate. SDV's own pipeline
never sees the private table.
"""
