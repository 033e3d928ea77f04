"""Rounded Gaussian noise: integers, from the operating system's randomness.

For an integer c, round(c + N(0, s^2)) = c + round(N(0, s^2)): adding a rounded Gaussian to a count
is post-processing of the Gaussian mechanism, hence exactly mu-GDP, and the result lies on the
integers, so that no floating-point lattice can tell one count from another (Mironov 2012).

The law is sampled by inversion. A 64-bit word is compared with a table of the tail probabilities
P(|round N| > k) in double precision. Where a word is too close to a boundary for double precision
to decide (a chance below sigma 2^-42), 1,024 further bits are drawn and compared in 1,280-bit
arithmetic. The law that is sampled thus differs from the exact one by less than 2^-960 in total
variation for a release of up to 2^64 values, at every sigma: less than any table of fixed width
gives, and without the minutes that building one for a large sigma takes.
"""

import math
import os
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import mpmath
import numpy as np
from scipy.special import erfc

WordSource = Callable[[int], bytes]
"""Returns that many random bytes. Always ``os.urandom``, except in tests."""

SAMPLING_DELTA = Fraction(1, 2**128)
"""What a release adds to delta: (1 + e^epsilon) times 2^-960, for every epsilon below 570."""

MAX_STDDEV = 1e6
"""Above this the table gets large; no useful count has such noise."""

_MAGNITUDE_BITS = 63  # of a 64-bit word; the last bit is the sign
_EXTRA_BITS = 1024
_RELATIVE_ERROR = 2.0**-44
"""Generous bound on the relative error of ``erfc`` and of the arithmetic around it."""


@lru_cache(maxsize=8)
def _boundaries(stddev: float) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds of 2^63 P(|round N| > k), k = last, ..., 0, ascending, as uint64.

    Ends where the tail falls below one unit; the rest is decided in exact arithmetic.
    """
    last = math.ceil(9.2 * stddev) + 1  # P(|N| > 9.2 s) < 2^-64
    scaled = 2.0**_MAGNITUDE_BITS * erfc((np.arange(last, -1, -1) + 0.5) / (stddev * math.sqrt(2)))
    margin = scaled * _RELATIVE_ERROR + 1.0
    lower = np.maximum(scaled - margin, 0.0).astype(np.uint64)
    upper = (scaled + margin).astype(np.uint64) + np.uint64(1)
    return lower, upper


def _magnitude_exactly(word: int, stddev: float, near: int, words: WordSource) -> int:
    """The magnitude of a word that double precision cannot place, near the given one."""
    bits = _MAGNITUDE_BITS + _EXTRA_BITS
    uniform = (word << _EXTRA_BITS) | int.from_bytes(words(_EXTRA_BITS // 8), "little")
    with mpmath.workprec(1280):
        scale = mpmath.mpf(stddev) * mpmath.sqrt(2)

        def above(k: int) -> bool:
            """Whether the magnitude exceeds k: the uniform lies below the tail beyond k."""
            tail = mpmath.erfc((mpmath.mpf(k) + mpmath.mpf(1) / 2) / scale)
            return uniform < int(mpmath.floor(mpmath.ldexp(tail, bits)))

        magnitude = near
        while above(magnitude):
            magnitude += 1
        while magnitude > 0 and not above(magnitude - 1):
            magnitude -= 1
    return magnitude


def rounded_gaussian(stddev: float, size: int, words: WordSource = os.urandom) -> np.ndarray:
    """Independent draws of round(N(0, stddev^2)): int64, shape (size,).

    Raises ``ValueError`` for a standard deviation that is not positive or above ``MAX_STDDEV``.
    """
    if not 0 < stddev <= MAX_STDDEV:
        raise ValueError(f"stddev must be in (0, {MAX_STDDEV:g}], got {stddev!r}.")
    drawn = np.frombuffer(words(8 * size), dtype="<u8")
    uniform = drawn >> np.uint64(1)
    lower, upper = _boundaries(stddev)
    # |round N| > k exactly when the uniform lies below the tail beyond k, so the magnitude is
    # the number of boundaries above the uniform. Between the two bounds it is undecided.
    count = len(lower)
    magnitude = count - np.searchsorted(lower, uniform, side="right")
    at_most = count - np.searchsorted(upper, uniform, side="right")
    for index in np.flatnonzero((magnitude != at_most) | (at_most >= count)):
        magnitude[index] = _magnitude_exactly(
            int(uniform[index]), stddev, int(magnitude[index]), words
        )
    return np.where(drawn & np.uint64(1), -magnitude, magnitude).astype(np.int64)
