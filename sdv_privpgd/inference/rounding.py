"""The variance of the rounded noise that a curator adds."""

import numpy as np
from scipy.special import ndtr  # pyright: ignore[reportMissingTypeStubs]

from sdv_privpgd.privacy.measurement import Measurement

_SMALL = 1.0
"""Below this standard deviation the law is summed up; above it has hardly more than 1/12 to add."""

_MOST = 50
"""Magnitudes that noise of a small standard deviation never exceeds."""


def own_variance(measurement: Measurement) -> float:
    """The variance of the noise in each number of an answer, its rounding included."""
    return rounded_variance(measurement.stddev * measurement.units) / measurement.units**2


def rounded_variance(stddev: float) -> float:
    """The variance of a Gaussian of this standard deviation, rounded to whole numbers.

    It is s^2 + 1/12 up to 1e-7 from s = 1 on, and goes to 0 much faster than s^2 below.
    """
    if stddev == 0:
        return 0.0
    if stddev < _SMALL:
        # Sum of k^2 P(k): k counts 2 k - 1 times that the magnitude is at least k.
        magnitudes = np.arange(1, _MOST)
        return float(2 * ((2 * magnitudes - 1) * ndtr((0.5 - magnitudes) / stddev)).sum())
    square = np.square(np.pi)
    ripple = np.exp(-2 * square * stddev**2) * (4 * stddev**2 + 1 / square)
    return float(stddev**2 + 1 / 12 - ripple)
