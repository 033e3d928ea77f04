"""Private discovery of undeclared facts: ranges, precisions, categories, and shapes.

``plan`` is the whole way: ``looks`` decides what to ask, ``first_look`` asks about all columns,
``searching`` finds where rows lie from coarse to fine grids, and ``ranges`` makes facts of it, with
the ``bounds`` that cells have. ``shaping`` finds how differences of columns are distributed.
Public: ``plan.discover``.
"""
