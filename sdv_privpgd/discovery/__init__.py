"""Private discovery of undeclared facts: ranges, precisions, categories, and shapes.

``plan`` is the whole way: ``first_look`` asks about all columns, ``searching`` finds where rows lie
from coarse to fine grids, and ``ranges`` says so as facts. ``shaping`` finds how differences
of columns are distributed. Public: ``plan.discover``.
"""
