"""SDV's classes: its words in, ours out.

All that works with SDV's objects is here. Elsewhere SDV is imported late, for what a user hands
over or asks for: by the command line, ``drafting/template.py`` and the benchmarks.
(``synthesizer.py`` is the module that pickles name: it loads SDV, which finds the classes.)

``synthesizers`` are what users see. Under them lie ``base`` (settings and state), ``fits`` (what is
handed a table) and ``rows``; ``arguments`` and ``generators`` translate. SDV's own pipeline never
sees the private table.
"""
