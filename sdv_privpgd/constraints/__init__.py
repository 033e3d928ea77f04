"""Constraints between columns: the cells they rule out, and rows repaired to obey them. Public.

``rules`` says which cells of a few columns may hold rows, ``orders`` does so for columns in order,
``moving`` moves codes to the nearest ones that may, and ``repair`` makes all rows obey. Public:
``rules.Combinations``, ``rules.OneHot``, ``orders.Order`` and ``repair.Repair``.
"""
