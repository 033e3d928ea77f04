"""Private discovery of undeclared facts: ranges, precisions, categories, and shapes.

``plan`` is the whole way: ``looks`` decides what to ask, ``first_look`` asks about all columns on
``grids`` of few cells, ``density`` says where rows lie and what to cut for the next look, and
``ranges`` makes facts of it, with the ``bounds`` that cells have. ``shaping`` finds how differences
of columns are distributed. Public: ``plan.discover``.
"""
