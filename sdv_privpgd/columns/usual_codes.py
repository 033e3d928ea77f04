"""Numbers and dates that stand for missing, unknown, never or still in many tables. Public."""

import numpy as np

USUAL_NUMBERS = frozenset(
    {-1.0}
    | {
        sign * number
        for sign in (-1, 1)
        for nines in (10.0**digits - 1 for digits in range(1, 6))
        for number in (nines, nines - 1, nines / 9 * 8, nines / 9 * 7)
    }
)
"""Numbers that codebooks use: 9, 99, 998, 88, 77 and the like."""

USUAL_DATES = tuple(
    np.datetime64(date, "D")
    for date in (
        *("1678-01-02", "1753-01-01", "1800-01-01", "1899-12-30", "1899-12-31", "1900-01-01"),
        *("1901-01-01", "1970-01-01", "2099-12-31", "2100-01-01", "2199-12-31", "2200-01-01"),
        *("2222-02-22", "2262-04-10"),
    )
)
"""Dates that systems and forms write. The first and the last stand for all that are beyond them."""
