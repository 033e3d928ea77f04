"""What each row of a person counts as where all of them count as one: whole numbers of units."""

import math

MOST = 100
"""Rows of a person that are weighed, at most. A row has less than 2^18 units then: counts of 2^44
rows, more than any table has, fit 64 bits with their noise."""

_EXACT = 10
"""Up to so many rows each weight is exact; of more they are less by at most 0.04 %."""


def units_of(most: int) -> int:
    """The units of a count of one, if no person has more than so many rows."""
    exact = math.lcm(*range(1, min(most, _EXACT) + 1))
    return exact if most <= _EXACT else exact * most


def weights_of(most: int) -> list[int]:
    """The units of each row of a person of one row, of two rows, and so on.

    All rows of a person have the units of a count of one together, or less.
    """
    return [units_of(most) // number for number in range(1, most + 1)]
