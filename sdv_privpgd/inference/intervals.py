"""Intervals for what was computed from noisy tables: of this table, and of the population.

A 95 % interval of the kind ``"table"`` holds what the real table says in 95 of 100 fits: it knows
the noise alone. One of the kind ``"population"`` holds what is true of the population that the rows
were drawn from, one by one and independently: it knows sampling as well.

All invert a test: they hold the values m at which the estimate lies within z standard deviations,
and the standard deviation is that at m. For shares without noise this is Wilson's (1927) interval,
for ratios with noise alone Fieller's (1954). They need no large numbers of rows beyond those that
make a sum of noise and rows Gaussian. An estimate that noise has moved out of what is possible is
first moved to its end. So an interval is never empty, nor short because the noise was large.

Where a person has several rows, people are drawn and not rows, and rows of one may be ``alike``. By
Cauchy and Schwarz the square of the sum over k rows is at most k times the sum of their squares. So
sampling counts k times as much.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from scipy.special import ndtri  # pyright: ignore[reportMissingTypeStubs]

KINDS = ("table", "population")


class Interval(NamedTuple):
    """The ends of an interval, both included."""

    low: Any
    high: Any


@runtime_checkable
class Statistic(Protocol):
    """What knows its intervals. A bootstrap's result is another one of these."""

    def interval(self, kind: str, level: float) -> Interval:
        """The interval of one of ``KINDS`` at a level such as 0.95."""
        ...


def deviations(kind: str, level: float) -> float:
    """How many standard deviations an interval reaches to each side.

    Raises:
        ValueError: For a kind or a level that does not exist.
    """
    if kind not in KINDS:
        raise ValueError(f"An interval is of the 'table' or of the 'population', got {kind!r}.")
    if not isinstance(level, Real) or not 0 < level < 1:
        raise ValueError(f"level must be above 0 and below 1, such as 0.95, got {level!r}.")
    return float(ndtri((1 + level) / 2))


@dataclass(frozen=True)
class Sum:
    """A count or a sum of values over the rows that meet a condition.

    For the population it is the expected total of a table of as many rows. ``variance`` is that of
    the noise, ``squares`` the estimated sum of the squares of the values, ``None`` for a count. The
    interval is cut at ``low`` and ``high``, the least and the most that it can be. Of rows that
    were drawn family by family ``drawn`` is what that adds to the variance. ``alike`` is how many
    rows of one person there are at most.
    """

    value: float
    variance: float
    num_rows: float
    squares: float | None = None
    low: float = -math.inf
    high: float = math.inf
    drawn: float | None = None
    alike: int = 1

    @property
    def stddev(self) -> float:
        """The noise's standard deviation."""
        return math.sqrt(self.variance)

    def interval(self, kind: str, level: float) -> Interval:
        z, value = deviations(kind, level), possible(self)
        if kind == "population" and self.drawn is not None:
            variance = self.variance + max(self.drawn, 0.0)
            return replace(self, variance=variance).interval("table", level)
        if kind == "population" and self.squares is None:
            # (value - m)^2 <= z^2 (variance + alike m (1 - m / n)); m is at most n.
            ends = _between_roots(
                1 + z**2 * self.alike / max(self.num_rows, 1.0),
                -2 * value - z**2 * self.alike,
                value**2 - z**2 * self.variance,
            )
        else:
            variance = self.variance
            if kind == "population" and self.squares is not None:
                mean_square = self.value**2 / max(self.num_rows, 1.0)
                variance += self.alike * max(self.squares - mean_square, 0.0)
            half = z * math.sqrt(variance)
            ends = value - half, value + half
        return _cut(ends, self.low, self.high)


@dataclass(frozen=True)
class Ratio:
    """A share of rows, or a mean of values over rows: one sum over another, both estimated.

    ``covariance`` is that of the noise in the two, shape (2, 2); all else is as in ``Total``.
    """

    above: float
    below: float
    covariance: np.ndarray
    squares: float | None = None
    low: float = 0.0
    high: float = 1.0
    drawn: np.ndarray | None = None
    alike: int = 1

    @property
    def value(self) -> float:
        """The estimate; not a number where the noise hides all rows."""
        return self.above / self.below if self.below > 0 else math.nan

    @property
    def stddev(self) -> float:
        """The noise's standard deviation, by the delta method."""
        weights = np.array([1.0, -self.value])
        variance = float(weights @ self.covariance @ weights)
        return math.sqrt(max(variance, 0.0)) / self.below if self.below > 0 else math.nan

    def interval(self, kind: str, level: float) -> Interval:
        """The interval of one of ``KINDS``; all that is possible where the noise hides all rows."""
        # (above - m below)^2 <= z^2 (variance of the left + sum of (value - m)^2 over the rows).
        square, (one, two) = deviations(kind, level) ** 2, self.covariance
        if kind == "population" and self.drawn is not None:
            return replace(self, covariance=self.covariance + self.drawn).interval("table", level)
        if self.below <= 0:
            return Interval(self.low, self.high)
        above = min(max(self.above, self.low * self.below), self.high * self.below)
        first = self.below**2 - square * two[1]
        second = -2 * above * self.below + 2 * square * one[1]
        third = above**2 - square * one[0]
        if kind == "population":
            square *= self.alike
            if self.squares is None:  # m (1 - m) of each row: no estimate of it is negative
                first += square * self.below
                second -= square * self.below
            else:
                squares = max(self.squares, above**2 / self.below)
                first -= square * self.below
                second += 2 * square * above
                third -= square * squares
        if first <= 0:
            return Interval(self.low, self.high)
        return _cut(_between_roots(first, second, third), self.low, self.high)


Estimated: TypeAlias = Sum | Ratio


@dataclass(frozen=True)
class Enclosed:
    """A number that depends on how rows are spread in cells, as in a few wide ones or in cut ones.

    Its intervals hold the truth however they are: they reach from the interval with these rows
    where it is lowest, such as at the lowest values of their cells, to that where it is highest.
    ``middle``, with rows spread as sampled rows are, is the estimate. It lies between them, unless
    noise makes rows of a cell fewer than none.
    """

    middle: Estimated
    lowest: Estimated
    highest: Estimated

    def interval(self, kind: str, level: float) -> Interval:
        all_three = (self.lowest, self.middle, self.highest)
        lows, highs = zip(*(each.interval(kind, level) for each in all_three), strict=True)
        return Interval(min(lows), max(highs))


@dataclass(frozen=True)
class Scaled:
    """A number of rows, or a sum over them, in units of which each row is several.

    Rows that count as less than one spread a sum by no more than as many whole ones would.
    """

    inner: Estimated | Enclosed
    factor: float

    def interval(self, kind: str, level: float) -> Interval:
        return Interval(*(end * self.factor for end in self.inner.interval(kind, level)))


@dataclass(frozen=True)
class Open:
    """A statistic of a column that may have values beyond the range that was found, of any size.

    ``inner`` has these values moved to the ends of the range. If they may lie ``below`` it no low
    end is known, and if ``above`` it no high one.
    """

    inner: Any
    below: bool
    above: bool

    def interval(self, kind: str, level: float) -> Interval:
        low, high = self.inner.interval(kind, level)
        return Interval(-math.inf if self.below else low, math.inf if self.above else high)


def possible(statistic: Any) -> float:
    """The value of an ``Estimated``, moved to the end of what is possible if noise moved it out."""
    return float(min(max(statistic.value, statistic.low), statistic.high))


def middle_of(statistic: Any) -> Any:
    """The ``Total`` or the ``Ratio`` with rows spread in cells as sampled rows are."""
    while not isinstance(statistic, Estimated):
        statistic = statistic.middle if isinstance(statistic, Enclosed) else statistic.inner
    return statistic


@dataclass(frozen=True)
class Quantile:
    """A quantile, by inverting a test at each end of a cell.

    An end of a cell is below the quantile if fewer rows than the share q lie up to it. The interval
    ends where, from either side, that is first open. Its ends are ends of cells, so what is inside
    cells is covered.
    """

    q: float  # the share of the rows up to the quantile
    excess: np.ndarray  # for each cell the estimated number of rows up to its end, less q times all
    variances: np.ndarray  # those of the noise in them
    num_rows: float  # the estimated number of rows that have a value
    lows: Sequence[Any]  # the first value of each cell
    highs: Sequence[Any]  # the last value of each cell
    below: float = 0.0  # so many rows may lie below the first cell, though they were counted in it
    above: float = 0.0  # so many may lie above the last one, though they were counted in it
    # The ends of an interval that such rows may make end anywhere.
    limits: tuple[Any, Any] = (-math.inf, math.inf)
    alike: int = 1

    def interval(self, kind: str, level: float) -> Interval:
        z = deviations(kind, level)
        rows = max(self.num_rows, 0.0) * self.alike * (kind == "population")
        sampling = rows * self.q * (1 - self.q)
        errors = z * np.sqrt(self.variances + sampling)
        # At the last end are all rows: it is not below the quantile, the start not above it.
        may_reach = np.append(self.excess[:-1] >= -errors[:-1], True)
        may_start = np.append(True, self.excess[:-1] <= errors[:-1])
        first = int(np.flatnonzero(may_reach)[0])
        last = int(np.flatnonzero(may_start)[-1])
        low, high = self.lows[min(first, last)], self.highs[max(first, last)]
        # The last excess is all rows times 1 - q: those above the quantile. Below it q times are.
        noise = self.variances[-1] * (self.q / (1 - self.q)) ** 2
        rank = self.q * self.num_rows - z * math.sqrt(noise + sampling)
        if self.below > 0 and rank <= self.below:
            low = self.limits[0]
        if self.above > 0 and self.excess[-1] - errors[-1] <= self.above:
            high = self.limits[1]
        return Interval(low, high)


def _between_roots(first: float, second: float, third: float) -> tuple[float, float]:
    """Where first x^2 + second x + third is not positive, for a positive first."""
    middle = -second / (2 * first)
    half = math.sqrt(max(middle**2 - third / first, 0.0))
    return middle - half, middle + half


def _cut(ends: tuple[float, float], low: float, high: float) -> Interval:
    """An interval inside what is possible. The truth is possible, so this loses nothing."""
    return Interval(*(float(min(max(end, low), high)) for end in ends))
