"""The variance of the rounded noise that a curator adds."""

import numpy as np


def rounded_variance(stddev: float) -> float:
    """The variance of a Gaussian of this standard deviation, rounded to whole numbers.

    It is s^2 + 1/12 and a theta series, which is below 1e-7 from s = 1 on.

    >>> round(rounded_variance(10.0), 6), rounded_variance(0.0)
    (100.083333, 0.0)
    """
    if stddev == 0:
        return 0.0
    squares = np.square(np.pi * np.arange(1, 1000))
    terms = np.exp(-2 * squares * stddev**2) * (4 * stddev**2 + 1 / squares)
    return stddev**2 + 1 / 12 + float(terms[1::2].sum() - terms[::2].sum())
