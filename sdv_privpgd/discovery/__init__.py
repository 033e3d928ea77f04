"""Private discovery of undeclared facts: ranges, precisions, categories, and shapes.

``plan`` is the whole way: ``first_queries`` asks about all columns, ``density`` says where rows lie
on its grids of few cells and what to cut for the next look, ``ranges`` makes facts of it, and
``out_of_range`` counts rows beyond declared ends. Public: ``plan.discover``.
"""
