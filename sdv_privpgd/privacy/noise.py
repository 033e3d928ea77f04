"""Rounded Gaussian noise: integers, from the operating system's randomness.

For an integer c, round(c + N(0, s^2)) = c + round(N(0, s^2)): adding a rounded Gaussian to a count
is post-processing of the Gaussian mechanism, hence exactly mu-GDP, and the result lies on the
integers, so that no floating-point lattice can tell one count from another (Mironov 2012).

The law is sampled by inversion. The magnitude k of a 64-bit word is guessed by the inverse of the
tail and checked against the tail probabilities on both sides of k in double precision. Where the
check cannot decide (a chance below sigma 2^-42), 1,024 further bits are drawn and compared in
1,280-bit arithmetic. The law that is sampled thus differs from the exact one by less than 2^-960
in total variation for a release of up to 2^64 values, at every sigma: less than any table of fixed
width gives, and without the minutes that building one for a large sigma takes.
"""

import math
import os
from bisect import bisect_left
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath  # pyright: ignore[reportMissingTypeStubs]
import numpy as np
from scipy.special import erfc, erfcinv  # pyright: ignore[reportMissingTypeStubs]

exact: Any = mpmath
"""Arithmetic of any precision. It has no types."""

WordSource = Callable[[int], bytes]
"""Returns that many random bytes. Always ``os.urandom``, except in tests."""

SAMPLING_DELTA = Fraction(1, 2**128)
"""What a release adds to delta: (1 + e^epsilon) times 2^-960, for every epsilon below 570."""

MAX_STDDEV = 2.0**40
"""No useful answer has such noise: 2^20 rows for a sum in units of 2^-20 of a row."""

_MAGNITUDE_BITS = 63  # of a 64-bit word; the last bit is the sign
EXTRA_BITS = 1024
PRECISION = 1280
_REACH = 39
"""So many standard deviations no magnitude exceeds: the tail beyond is below 2^-1087."""
_RELATIVE_ERROR = 2.0**-44
"""Generous bound on the relative error of ``erfc`` and of the arithmetic around it."""


def _tail(magnitude: np.ndarray, stddev: float) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds of 2^63 P(|round N| > magnitude)."""
    scaled = 2.0**_MAGNITUDE_BITS * erfc((magnitude + 0.5) / (stddev * math.sqrt(2)))
    margin = scaled * _RELATIVE_ERROR + 2.0
    return scaled - margin, scaled + margin


def _magnitude_exactly(word: int, stddev: float, words: WordSource) -> int:
    """The magnitude of a word that double precision cannot place."""
    bits = _MAGNITUDE_BITS + EXTRA_BITS
    uniform = (word << EXTRA_BITS) | int.from_bytes(words(EXTRA_BITS // 8), "little")
    with exact.workprec(PRECISION):
        scale = exact.mpf(stddev) * exact.sqrt(2)

        def is_most(k: int) -> bool:
            """Whether the magnitude is at most k: the uniform is not below the tail beyond k."""
            tail = exact.erfc((k + exact.mpf(1) / 2) / scale)
            return uniform >= int(exact.ldexp(tail, bits))

        return bisect_left(range(math.ceil(_REACH * stddev)), True, key=is_most)


def rounded_gaussian(stddev: float, size: int, words: WordSource = os.urandom) -> np.ndarray:
    """Independent draws of round(N(0, stddev^2)): int64, shape (size,).

    Raises ``ValueError`` for a standard deviation that is not positive or above ``MAX_STDDEV``.
    """
    if not 0 < stddev <= MAX_STDDEV:
        raise ValueError(f"stddev must be in (0, {MAX_STDDEV:g}], got {stddev!r}.")
    drawn = np.frombuffer(words(8 * size), dtype="<u8")
    uniform = drawn >> np.uint64(1)
    # |round N| > k exactly when the uniform lies below the tail beyond k: the magnitude is k when
    # the uniform lies above the tail beyond k and below the one beyond k - 1.
    real = uniform.astype(np.float64)
    guess = erfcinv((real + 0.5) * 2.0**-_MAGNITUDE_BITS) * (stddev * math.sqrt(2))
    magnitude: np.ndarray = np.rint(guess).astype(np.int64)
    _, beyond = _tail(magnitude, stddev)
    before, _ = _tail(magnitude - 1, stddev)
    certain = (real >= beyond) & ((magnitude == 0) | (real < before))
    for index in np.flatnonzero(~certain):
        magnitude[index] = _magnitude_exactly(int(uniform[index]), stddev, words)
    return np.where(drawn & np.uint64(1), -magnitude, magnitude)
