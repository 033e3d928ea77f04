"""Private discovery of what nobody declared: ranges, precisions, categories, and shapes.

``plan`` is the whole way: ``first_look`` asks about all columns, ``searching`` finds where rows lie
from coarse to fine, and ``ranges`` puts it in SDV's words. Public: ``plan.discover``.
"""
