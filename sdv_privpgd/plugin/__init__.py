"""SDV's classes: its words in, ours out.

All that works with SDV's objects is here. Elsewhere SDV is imported late, for what a user hands
over or asks for: by the command line, ``drafting/template.py`` and the benchmarks.
(``synthesizer.py`` is the module that pickles name.)

``synthesizers`` are what users see. Under them lie ``base`` (settings and state), ``fits`` (what is
handed a table) and ``rows``; ``arguments`` and ``generators`` translate. SDV's own pipeline never
sees the private table.
"""

from sdv_privpgd._lazy import need

try:  # SDV loads its add-ons, this package among them, at the end of its import
    import sdv  # noqa: F401
except ImportError:
    need("A synthesizer with SDV's interface", "sdv")
    raise
