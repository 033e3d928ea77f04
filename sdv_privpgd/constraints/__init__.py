"""Constraints between columns: the cells they rule out, and rows repaired to obey them. Public.

``rules`` says which cells of a few columns may hold rows, ``orders`` does so for columns in order,
and ``repair`` moves the rows of a model to the nearest ones that obey. Public:
``rules.Combinations``, ``rules.OneHot``, ``orders.Order`` and ``repair.Repair``.
"""
