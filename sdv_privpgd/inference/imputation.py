"""Several synthetic tables, and the rules by which analyses of them are combined. Public."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import stdtrit  # pyright: ignore[reportMissingTypeStubs]

from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.inference.intervals import Interval, deviations
from sdv_privpgd.inference.refits import Population, Refit, Refits, numbers_of, repeated


@dataclass(frozen=True)
class _Table:
    """A table of independent rows of a refit."""

    refits: Refits
    num_rows: int

    def __call__(self, refit: Refit) -> pd.DataFrame:
        sampler = self.refits.sampler_of(Population(model=refit.model), refit.seed)
        return pd.DataFrame(sampler.take(self.num_rows))


def imputations(
    refits: Refits,
    number: int,
    num_rows: int | None = None,
    *,
    seed: int = 0,
    num_processes: int | None = None,
    progress: Progress = silent,
) -> list[pd.DataFrame]:
    """Synthetic tables for Rubin's rules, as ``FittedTable.imputations`` describes them."""
    numbers = numbers_of(number)
    task = _Table(refits, refits.num_rows if num_rows is None else num_rows)
    return repeated(
        refits, task, numbers, seed=seed, num_processes=num_processes, progress=progress
    )


class Rubin(NamedTuple):
    """A combined analysis: numbers, or arrays of the estimates' shape.

    >>> found = rubin([0.9, 1.0, 1.4], [0.01, 0.01, 0.01], num_synthetic=100, num_rows=100)
    >>> [round(float(end), 2) for end in found.interval(0.9)]
    [0.09, 2.11]
    """

    estimate: Any
    """The mean of the estimates."""
    stddev: Any
    """Its standard error."""
    df: Any
    """The degrees of freedom of Student's t."""

    def interval(self, level: float = 0.95) -> Interval:
        """The ends of the interval for the population."""
        deviations("population", level)
        half = stdtrit(self.df, (1 + level) / 2) * self.stddev
        return Interval(self.estimate - half, self.estimate + half)


def rubin(
    estimates: Sequence[Any] | ArrayLike,
    variances: Sequence[Any] | ArrayLike,
    num_synthetic: int,
    num_rows: int,
) -> Rubin:
    """Combines analyses of m synthetic tables by the rules for fully synthetic data.

    With b the variance between the m estimates q and u the mean of their variances, the variance
    is T = (1 + 1/m) b - u (Raghunathan, Reiter & Rubin 2003, section 3): rows that were drawn are
    already in b, so u is taken off and not added. Where that is not positive, (n'/n) u takes its
    place (Reiter 2002): sampling alone. Student's t has (m - 1) (1 - u / ((1 + 1/m) b))^2 degrees
    of freedom, or m - 1 there. With few tables T is often too noisy to use: take 50 or more.

    Args:
        estimates: The estimate from each table: numbers, or arrays of one shape.
        variances: The variance that each analysis states, as if its table were real: the square of
            its standard error.
        num_synthetic: The rows of each synthetic table, n'.
        num_rows: The rows of the real table, n.

    Raises:
        ValueError: For fewer than two tables, and shapes that differ.

    >>> found = rubin([1.0, 2.0, 3.0], [0.25, 0.25, 0.25], num_synthetic=50, num_rows=50)
    >>> found.estimate, round(found.stddev**2, 4), round(found.df, 4)  # 4/3 - 1/4; 2 (1 - 3/16)^2
    (2.0, 1.0833, 1.3203)
    """
    q, u = (np.asarray(each, dtype=np.float64) for each in (estimates, variances))
    if q.shape != u.shape or q.ndim == 0 or len(q) < 2:
        raise ValueError(
            "rubin needs an estimate and a variance of each of at least two tables, got shapes "
            f"{q.shape} and {u.shape}."
        )
    if num_synthetic < 1 or num_rows < 1:
        raise ValueError(
            f"Both numbers of rows must be at least 1, got {num_synthetic!r} and {num_rows!r}."
        )
    m = len(q)
    between, within = (1 + 1 / m) * q.var(axis=0, ddof=1), u.mean(axis=0)
    total = between - within
    is_positive = total > 0
    share = np.divide(within, between, out=np.zeros_like(within), where=is_positive)
    df = np.where(is_positive, (m - 1) * (1 - share) ** 2, m - 1)
    variance = np.where(is_positive, total, num_synthetic / num_rows * within)
    found = q.mean(axis=0), np.sqrt(variance), df
    return Rubin(*(float(each) if np.ndim(each) == 0 else each for each in found))
