"""Constraints between columns: what is declared of rows, and rows repaired to obey it. Public.

``kinds`` has the constraints, and what those of a table say together. ``rules`` says which cells of
a few columns may hold rows, also of columns in order, and ``repair`` makes all rows obey: it moves
codes to the nearest ones that may.

``__init__.pyi`` lists the public names. They go to ``fit_table(constraints=[...])``.
"""

from sdv_privpgd._lazy import attach_stub

__getattr__, __all__ = attach_stub(__name__, __file__)
