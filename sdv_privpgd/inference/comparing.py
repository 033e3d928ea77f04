"""The difference and the ratio of two answers of one fit, with their covariance. Public.

Two answers share noise, because they are functions of the same tables, and rows: groups may be
disjoint, nested or the same. Both covariances are known from the tables. The interval is made of
those of the two answers (MOVER, Zou & Donner 2008): of a difference d = a - b its low end is

    d - sqrt((a - l_a)^2 - 2 r (a - l_a) (u_b - b) + (u_b - b)^2)

where l and u are the ends of the interval of a and of b, and r is their correlation. A ratio has
the same on the scale of logarithms. So it is lopsided where they are, as those of small shares are.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from sdv_privpgd.inference.intervals import KINDS, Enclosed, Interval, Open, Ratio, Total
from sdv_privpgd.inference.linear import LinearEstimate, Product
from sdv_privpgd.methods.pipeline import Release

DIFFERENCE, RATIO = "minus", "divided by"

_MOST = 3
"""Columns up to which tables may be asked: linear estimates take as long as there are cells."""


class Source(Protocol):
    """What knows sums over the rows of a fit."""

    @property
    def release(self) -> Release:
        """The noisy answers and their model."""
        ...

    @property
    def linear(self) -> LinearEstimate:
        """The linear estimate from all measured tables."""
        ...


@dataclass(frozen=True)
class Origin:
    """What an answer was computed from.

    Attributes:
        source: The fit.
        ends: Whether rows beyond a range that was found may move it, below and above.
        form: The error of the answer, as a weighted sum of errors of sums over rows; ``None`` if it
            is none.
    """

    source: Source
    ends: tuple[bool, ...]
    form: Sequence[tuple[float, Product]] | None = None


@dataclass(frozen=True)
class Combined:
    """A difference or a ratio of two statistics.

    Attributes:
        first: A ``Total`` or a ``Ratio``, ``Enclosed`` or ``Open`` or not.
        second: Another one.
        correlations: That of their errors, for each of ``KINDS``.
        how: ``DIFFERENCE`` or ``RATIO``.
    """

    first: Any
    second: Any
    correlations: Mapping[str, float]
    how: str

    @property
    def value(self) -> float:
        """The estimate."""
        if self.how == DIFFERENCE:
            return self.first.value - self.second.value
        return self.first.value / self.second.value if self.second.value > 0 else math.nan

    def interval(self, kind: str, level: float) -> Interval:
        """The interval of one of ``KINDS``."""
        (least, most), (low, high) = _extremes(self.first), _extremes(self.second)
        ends = _difference if self.how == DIFFERENCE else _ratio
        correlation = self.correlations[kind]
        first, _ = ends(least, high, correlation, kind, level)
        _, last = ends(most, low, correlation, kind, level)
        if _is_open(self.first, 0) or _is_open(self.second, int(self.how == DIFFERENCE)):
            first = -math.inf
        elif self.how == RATIO and _is_open(self.second, 1):
            first = min(first, 0.0)
        if _is_open(self.first, 1) or _is_open(self.second, 0):
            last = math.inf
        return Interval(first, last)


def combined(one: Any, other: Any, how: str) -> Any:
    """The difference or the ratio of two answers, as an ``Answer``.

    Raises:
        ValueError: For answers that have nothing to be combined by; the message says why.
    """
    for answer in (one, other):
        _require(answer, how)
    if one.origin.source.release is not other.origin.source.release:
        raise ValueError(
            "These answers are of different fits, and nobody knows what rows these share: ask one "
            "fit for both."
        )
    if how == DIFFERENCE and one.unit != other.unit:
        raise ValueError(
            f"A difference is of answers in the same unit, got {one.unit or 'values'!r} and "
            f"{other.unit or 'values'!r}."
        )
    noise, rows, is_exact = _covariances(one.origin, other.origin)
    statistic = Combined(
        one.statistic,
        other.statistic,
        {kind: _correlation(each) for kind, each in zip(KINDS, (noise, noise + rows), strict=True)},
        how,
    )
    weights = np.array([1.0, -1.0])
    if how == RATIO:
        below = other.estimate if other.estimate > 0 else math.nan
        weights = np.array([1.0, -statistic.value]) / below
    told = (
        "How many rows the two groups share was taken from the model, for the interval of the "
        "population.",
    )
    question = other.question[:1].lower() + other.question[1:]
    notes = dict.fromkeys((*one.notes, *other.notes, *(() if is_exact else told)))
    unit = {"share": "points"}.get(one.unit, one.unit) if how == DIFFERENCE else ""
    return replace(
        one,
        question=f"{one.question} {how} {question}",
        estimate=float(statistic.value),
        stddev=float(np.sqrt(np.maximum(weights @ noise @ weights, 0.0))),
        statistic=statistic,
        notes=tuple(notes),
        unit=unit,
        origin=None,
    )


def _require(answer: Any, how: str) -> None:
    """Raises ``ValueError`` for an answer that cannot be a part of another."""
    origin = getattr(answer, "origin", None)
    if origin is None or origin.form is None:
        raise ValueError(
            "Two counts, shares, means or sums are combined, as they came from answer(): "
            f"no quantiles, tables, combinations or answers that were pickled, got {answer!r}."
        )
    if origin.source.release.ledger.weights is not None:
        raise ValueError(
            "Rows have counted as their weights, which were drawn with them: how far two answers "
            "vary together is not known. Compare their intervals."
        )
    if answer.statistic is None or answer.stddev is None:
        raise ValueError(
            f"{answer.question!r} is the model's answer: the tables do not say what its error has "
            "in common with that of another. fitted.bootstrap() takes any function of the rows."
        )
    if how == RATIO and min(each.low for each in _extremes(answer.statistic)) < 0:
        raise ValueError(
            f"A ratio is of what is never negative, and {answer.question!r} may be: ask for the "
            "difference."
        )


def _covariances(one: Origin, other: Origin) -> tuple[np.ndarray, np.ndarray, bool]:
    """Those of noise and of sampling of two answers, and whether the tables know the second."""
    forms, source = (one.form or (), other.form or ()), one.source
    products = [product for form in forms for _, product in form]
    if not products:
        return np.zeros((2, 2)), np.zeros((2, 2)), True
    weights, first = np.zeros((2, len(products))), len(forms[0])
    weights[0, :first], weights[1, first:] = ([weight for weight, _ in form] for form in forms)
    found = source.linear.answers([{}, *products])
    rows, sums = max(float(found.values[0]), 1.0), found.values[1:]
    noise = found.covariance[1:, 1:]
    pairs = [(i, j) for i in range(len(products)) for j in range(i + 1)]
    both, is_exact = _sums(source, [_both(products[i], products[j]) for i, j in pairs])
    second = np.zeros((len(products), len(products)))
    for (i, j), value in zip(pairs, both, strict=True):
        second[i, j] = second[j, i] = value
    sampling = second - np.outer(sums, sums) / rows
    return weights @ noise @ weights.T, weights @ sampling @ weights.T, is_exact


def _sums(source: Source, products: Sequence[Product]) -> tuple[list[float], bool]:
    """Sums of products over the rows; of what no table knows the model's, and whether all are."""
    is_small = [len(product) <= _MOST for product in products]
    asked = [product for product, small in zip(products, is_small, strict=True) if small]
    found = source.linear.answers([{}, *asked])
    values = iter(zip(found.values[1:], found.known[1:], strict=True))
    sums, codes = [], None
    for product, small in zip(products, is_small, strict=True):
        value, known = next(values) if small else (0.0, False)
        is_none = not all(function.any() for function in product.values())
        if not known and not is_none:
            if codes is None:
                codes = source.release.model.sample(max(source.release.model.block, 20_000), seed=0)
            axes = source.release.domain.axes(product)
            parts = [
                product[name][codes[:, axis]] for name, axis in zip(product, axes, strict=True)
            ]
            value = float(found.values[0]) * float(np.prod(parts, axis=0).mean())
        sums.append(0.0 if is_none else float(value))
    return sums, codes is None


def _both(one: Product, other: Product) -> dict[str, np.ndarray]:
    """The product of two functions of a row."""
    return {
        name: one.get(name, np.ones(1)) * other.get(name, np.ones(1)) for name in {**one, **other}
    }


def _correlation(covariance: np.ndarray) -> float:
    one, other = (max(float(each), 0.0) for each in np.diagonal(covariance))
    if not one * other:
        return 0.0
    return float(np.clip(covariance[0, 1] / math.sqrt(one * other), -1.0, 1.0))


def _extremes(statistic: Any) -> tuple[Total | Ratio, Total | Ratio]:
    """The statistic with rows spread in cells so that it is lowest, and highest."""
    if isinstance(statistic, Open):
        return _extremes(statistic.inner)
    if isinstance(statistic, Enclosed):
        return statistic.lowest, statistic.highest
    return statistic, statistic


def _is_open(statistic: Any, side: int) -> bool:
    """Whether no end is known: of side 0, below, or of side 1, above."""
    return isinstance(statistic, Open) and (statistic.below, statistic.above)[side]


def _uncut(statistic: Total | Ratio, kind: str, level: float) -> Interval:
    return replace(statistic, low=-math.inf, high=math.inf).interval(kind, level)


def _difference(
    one: Total | Ratio, other: Total | Ratio, correlation: float, kind: str, level: float
) -> tuple[float, float]:
    """The ends of an interval for one less the other."""
    first, second = _uncut(one, kind, level), _uncut(other, kind, level)
    value = one.value - other.value
    low = value - _joined(one.value - first.low, second.high - other.value, correlation)
    high = value + _joined(first.high - one.value, other.value - second.low, correlation)
    least, most = one.low - other.high, one.high - other.low
    if math.isnan(value):
        return least, most
    return min(max(low, least), most), min(max(high, least), most)


def _ratio(
    one: Total | Ratio, other: Total | Ratio, correlation: float, kind: str, level: float
) -> tuple[float, float]:
    """The ends of an interval for one over the other, both of which are never negative."""
    first, second = _uncut(one, kind, level), _uncut(other, kind, level)
    if not (one.value > 0 and other.value > 0):  # both at their ends: nobody knows better
        first, second = one.interval(kind, level), other.interval(kind, level)
        low = max(first.low, 0.0) / second.high if second.high > 0 else 0.0
        return low, max(first.high, 0.0) / second.low if second.low > 0 else math.inf
    logs = [_log(end) for end in (one.value, *first, other.value, *second)]
    value = logs[0] - logs[3]
    low = value - _joined(logs[0] - logs[1], logs[5] - logs[3], correlation)
    high = value + _joined(logs[2] - logs[0], logs[3] - logs[4], correlation)
    return math.exp(low), math.exp(high) if math.isfinite(high) else math.inf


def _log(number: float) -> float:
    return math.log(number) if number > 0 else -math.inf


def _joined(one: float, other: float, correlation: float) -> float:
    """The length of a sum of two errors."""
    one, other = max(one, 0.0), max(other, 0.0)
    if math.isinf(one + other):
        return math.inf
    return math.sqrt(max(one**2 + other**2 - 2 * correlation * one * other, 0.0))
