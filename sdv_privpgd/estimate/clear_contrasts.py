"""Contrasts of a pair that clearly stand out of the noise, whatever the model of all pairs expects.

The model of ``denoising`` expects little of rare codes, and learns from all pairs of an attribute
which of its codes matter. So a category of few rows that one single column depends on can lose all
of its relation, even where it is seven standard deviations of noise: all other pairs say that
nothing is there. A few directions in which tables often depend are looked at one by one: single
codes, and whether counts rise with the code, in each attribute. What is so large there that noise
makes such a contrast in one fit of a hundred, in any pair, is signal.

Everything here is post-processing of noisy answers: public and free.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.special import ndtri  # pyright: ignore[reportMissingTypeStubs]

from sdv_privpgd.base.domain import Clique
from sdv_privpgd.estimate.effects import Residual

_FALSE_ALARMS = 0.01
"""The chance that noise alone has such a contrast, in any of all pairs."""

_MOST = 10
"""The largest number of contrasts of one pair that are looked for."""


def directions(basis: np.ndarray) -> np.ndarray:
    """The directions of an attribute that are looked at, as columns of unit length.

    Each supported code beside the others; then a trend over all codes, and one over all but the
    last, which often stands for missing. ``basis`` are the attribute's ``contrasts``.
    """
    size = len(basis)
    trends = []
    if size > 2:
        trends.append(np.arange(size, dtype=np.float64))
    if size > 3:
        trends.append(np.append(np.arange(size - 1) - (size - 2) / 2, 0.0))
    found = basis.T @ np.column_stack([np.eye(size), *trends])
    return found / np.linalg.norm(found, axis=0)


class ClearContrasts:
    """What clearly stands out of the noise in residuals of pairs."""

    def __init__(self, bases: Mapping[str, np.ndarray], residuals: Sequence[Residual]) -> None:
        self._directions = {
            name: directions(bases[name])
            for name in dict.fromkeys(name for each in residuals for name in each.clique)
        }
        seen = [each for each in residuals if math.isfinite(each.variance)]
        number = sum(math.prod(self._sides(each.clique)) for each in seen)
        self._least = float(-ndtri(_FALSE_ALARMS / 2 / max(number, 1)))

    def has_any(self, residual: Residual) -> bool:
        """Whether a contrast of a residual stands out."""
        return bool(np.abs(self._scores(residual, residual.values)).max() > self._least)

    def within(self, residual: Residual, known: np.ndarray) -> tuple[np.ndarray, list[float]]:
        """What stands out of a residual beyond what is known of it, and the signal's variances.

        The largest contrast is taken first, and what it explains is taken out for the next ones.
        Each is shrunk as if its square were the expected one.
        """
        found, variances = np.zeros_like(residual.values), []
        if not math.isfinite(residual.variance):
            return found, variances
        rows, columns = (self._directions[name] for name in residual.clique)
        for _ in range(_MOST):
            scores = self._scores(residual, residual.values - known - found)
            row, column = np.unravel_index(np.abs(scores).argmax(), scores.shape)
            score = float(scores[row, column])
            if abs(score) <= self._least:
                break
            size = (score - 1 / score) * math.sqrt(residual.variance)
            found += size * np.outer(rows[:, row], columns[:, column])
            variances.append((score**2 - 1) * residual.variance)
        return found, variances

    def _scores(self, residual: Residual, values: np.ndarray) -> np.ndarray:
        """Each contrast of values in standard deviations of the residual's noise."""
        rows, columns = (self._directions[name] for name in residual.clique)
        return rows.T @ values @ columns / math.sqrt(residual.variance)

    def _sides(self, clique: Clique) -> list[int]:
        return [self._directions[name].shape[1] for name in clique]
