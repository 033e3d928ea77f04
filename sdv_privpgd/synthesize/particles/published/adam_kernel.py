"""Masked Adam in one pass over the particles, compiled by numba."""

from typing import no_type_check

import numpy as np

from sdv_privpgd.synthesize.particles.compiler import njit


@njit()
@no_type_check
def adam_step(columns, gradient, moving, mean, square, change, beta, beta_square, scales, eps):
    """Updates the moments of the columns where they move, in place, and fills in the change.

    ``scales`` holds the learning rate and the corrections of both moments' bias. float32.
    """
    rate, unbias, unbias_square = scales
    one = np.float32(1)
    for row in range(len(columns)):
        m, s = mean[columns[row]], square[columns[row]]
        for i in range(len(m)):
            g = gradient[row, i]
            first = m[i] + (one - beta) * (g - m[i])
            second = s[i] + (one - beta_square) * (g * g - s[i])
            step = -rate * (first * unbias) / (np.sqrt(second * unbias_square) + eps)
            m[i] = first if moving[row, i] else m[i]
            s[i] = second if moving[row, i] else s[i]
            change[row, i] = step if moving[row, i] else np.float32(0)
