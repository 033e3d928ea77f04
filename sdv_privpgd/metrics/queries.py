"""Queries for the share of rows in a region, and a table's errors on them, most on random ones.

The counting and the threshold queries are those of Donhauser et al. 2024, section 4.1, the range
queries those of Chen et al. 2025, appendix A.3, and the class-conditional ones those of RAP++
(Vietri et al. 2022, section 5.1). Tables are codes of one domain, shape (row, attribute), or data
frames. They are read without protection: no result is private.
"""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.metrics.pairs import (
    Columns,
    centers,
    columns,
    comparable,
    differences,
    embedded,
    ratio,
)

if TYPE_CHECKING:
    import pandas as pd


class NoQueriesError(ValueError):
    """Raised if almost no counting query holds a share of rows between 5 and 95 %."""


@dataclass(frozen=True, kw_only=True)
class IntervalQuery:
    """A query for the share of rows whose attributes lie in closed intervals."""

    attributes: tuple[str, ...]
    lows: tuple[float, ...]
    highs: tuple[float, ...]

    def __str__(self) -> str:
        return " and ".join(
            f"{name} in [{low:g}, {high:g}]"
            for name, low, high in zip(self.attributes, self.lows, self.highs, strict=True)
        )

    def share(self, table: Columns) -> float:
        """The share of the table's rows inside, 0 to 1. A missing number is outside."""
        inside = [
            (table[name] >= low) & (table[name] <= high)
            for name, low, high in zip(self.attributes, self.lows, self.highs, strict=True)
        ]
        return float(np.all(inside, axis=0).mean())


@dataclass(frozen=True, kw_only=True)
class ThresholdQuery:
    """A query for the share of rows beyond a plane: ⟨x, θ⟩ > threshold for the embedded row x.

    ``sizes`` are the attributes' numbers of codes.
    """

    attributes: tuple[str, ...]
    sizes: tuple[int, ...]
    direction: tuple[float, ...]
    threshold: float = 0.0

    def __str__(self) -> str:
        terms = zip(self.direction, self.attributes, strict=True)
        return f"{' '.join(f'{theta:+.3g} {name}' for theta, name in terms)} > {self.threshold:.3g}"

    def places(self, table: Columns) -> np.ndarray:
        """⟨x, θ⟩ of each row."""
        terms = zip(self.attributes, self.sizes, self.direction, strict=True)
        return np.sum([(theta * centers(size))[table[name]] for name, size, theta in terms], axis=0)

    def share(self, table: Columns) -> float:
        """The share of the table's rows beyond the plane, 0 to 1."""
        return float((self.places(table) > self.threshold).mean())


def counting_errors(
    domain: Domain,
    real: np.ndarray,
    synthetic: np.ndarray,
    *,
    num_queries: int = 200,
    seed: int = 0,
) -> dict[str, float]:
    """The error of each random 3-way counting query over the mean answer. Not private.

    Their mean is Σ |q(synthetic) − q(real)| / Σ q(real), equation (9) of the paper; infinite if
    only its denominator is 0.

    >>> domain = Domain(("age", "ward", "ill"), (8, 3, 2))
    >>> real = np.random.default_rng(0).integers(0, domain.sizes, (500, 3))
    >>> set(counting_errors(domain, real, real, num_queries=5).values())
    {0.0}
    """
    queries = counting_queries(domain, real, num_queries=num_queries, seed=seed)
    return _relative_errors(queries, columns(domain, real), columns(domain, synthetic))


def threshold_errors(
    domain: Domain,
    real: np.ndarray,
    synthetic: np.ndarray,
    *,
    num_queries: int = 200,
    seed: int = 0,
) -> dict[str, float]:
    """The error of each random 3-sparse threshold query over the mean answer. Not private.

    Their mean is as that of ``counting_errors``.
    """
    queries = threshold_queries(domain, real, num_queries=num_queries, seed=seed)
    return _relative_errors(queries, columns(domain, real), columns(domain, synthetic))


def counting_queries(
    domain: Domain, real: np.ndarray, *, num_queries: int = 200, seed: int = 0
) -> list[IntervalQuery]:
    """Random 3-way counting queries that hold 5 to 95 % of the real rows. Not private.

    A query draws three distinct attributes uniformly, and on each a lower code uniformly over its
    codes and an upper code uniformly from there on. Raises ``NoQueriesError`` if almost no query
    holds that share.
    """
    table, tries = columns(domain, real), 200  # candidates per query
    candidates = islice(_candidates(domain, np.random.default_rng(seed)), tries * num_queries)
    held = (query for query in candidates if 0.05 <= query.share(table) <= 0.95)
    found = list(islice(held, num_queries))
    if len(found) < num_queries:
        raise NoQueriesError(
            "Not enough counting queries hold 5% to 95% of the real rows: the table is almost "
            "constant, or has too few rows. Leave this metric out."
        )
    return found


def threshold_queries(
    domain: Domain, real: np.ndarray, *, num_queries: int = 200, seed: int = 0
) -> list[ThresholdQuery]:
    """Random 3-sparse linear threshold queries on the embedded rows. Not private.

    A query draws three distinct attributes uniformly, a uniform direction on them, and a threshold
    b, uniform between the smallest and the largest ⟨x, θ⟩ of the real rows. The paper prints the
    condition ⟨x, θ⟩ + b > 0, with which most queries would hold all rows or none; we take it to
    mean ⟨x, θ⟩ > b. The paper does not say whether x are codes or embedded; here they are embedded.
    """
    generator = np.random.default_rng(seed)
    table = columns(domain, real)
    found = []
    for _ in range(num_queries):
        attributes = _attributes(domain.attributes, generator)
        direction = generator.standard_normal(len(attributes))
        direction /= np.linalg.norm(direction)
        query = ThresholdQuery(
            attributes=attributes,
            sizes=domain.shape(attributes),
            direction=tuple(direction.tolist()),
        )
        places = query.places(table)
        threshold = generator.uniform(places.min(), places.max())
        found.append(replace(query, threshold=threshold))
    return found


def _candidates(domain: Domain, generator: np.random.Generator) -> Iterator[IntervalQuery]:
    while True:
        attributes = _attributes(domain.attributes, generator)
        sizes = domain.shape(attributes)
        lows = generator.integers(0, sizes)
        highs = generator.integers(lows, sizes)
        yield IntervalQuery(
            attributes=attributes, lows=tuple(lows.tolist()), highs=tuple(highs.tolist())
        )


def _attributes(names: Sequence[str], generator: np.random.Generator) -> tuple[str, ...]:
    """Three distinct names, or all of fewer."""
    axes = generator.choice(len(names), size=min(3, len(names)), replace=False)
    return tuple(names[int(axis)] for axis in axes)


def _relative_errors(
    queries: Sequence[IntervalQuery] | Sequence[ThresholdQuery], real: Columns, synthetic: Columns
) -> dict[str, float]:
    answers = np.array([query.share(real) for query in queries])
    errors = np.abs([query.share(synthetic) for query in queries] - answers)
    # They are numbered, because the same query may be drawn twice.
    return {
        f"{number}: {query}": ratio(error, answers.mean())
        for number, (query, error) in enumerate(zip(queries, errors, strict=True))
    }


def range_errors(
    real: "pd.DataFrame",
    synthetic: "pd.DataFrame",
    *,
    numeric: Collection[str],
    num_queries: int = 1_000,
    seed: int = 0,
) -> dict[str, float]:
    """The absolute error of each random 3-way range and point query: 0 to 1. Not private.

    A query draws three distinct columns uniformly. On a numeric column it draws two ends of a
    closed range, uniform from the real table's smallest to its largest number. On another column
    it draws one of the real table's categories, all with the same chance. Categories are numbered
    in the order in which the two tables first show them.

    That is the text's definition. The paper's code averages over the first one, two and three
    columns of each query.

    >>> import pandas as pd
    >>> real = pd.DataFrame({"age": [20, 30, 40, 50], "ward": ["A", "A", "B", "B"]})
    >>> synthetic = real.assign(ward="A")
    >>> len(range_errors(real, synthetic, numeric=["age"], num_queries=10))
    10
    """
    ours, theirs = comparable(real, synthetic, numeric)
    generator = np.random.default_rng(seed)
    names = list(ours)
    spans = {name: _span(ours[name], name in numeric) for name in names}
    errors = {}
    for number in range(num_queries):
        attributes = _attributes(names, generator)
        ends = [_ends(spans[name], name in numeric, generator) for name in attributes]
        lows, highs = zip(*ends, strict=True)
        query = IntervalQuery(attributes=attributes, lows=lows, highs=highs)
        errors[f"{number}: {query}"] = abs(query.share(ours) - query.share(theirs))
    return errors


def _span(values: np.ndarray, is_numeric: bool) -> np.ndarray:
    """The smallest and the largest number, or the categories that there are."""
    if not is_numeric:
        return np.unique(values)
    finite = values[np.isfinite(values)]
    return np.array([finite.min(), finite.max()] if len(finite) else [np.nan, np.nan])


def _ends(
    span: np.ndarray, is_numeric: bool, generator: np.random.Generator
) -> tuple[float, float]:
    """Both ends of a random range, or of a random point."""
    if is_numeric:
        ends = np.sort(span[0] + (span[1] - span[0]) * generator.random(2))
        return float(ends[0]), float(ends[1])
    point = float(generator.choice(span))
    return point, point


class Errors(NamedTuple):
    """The mean and the maximum of queries' absolute errors, each in [0, 1]. Not private."""

    mean: float
    max: float


def categorical_marginal_errors(
    domain: Domain,
    real: np.ndarray,
    synthetic: np.ndarray,
    *,
    features: Sequence[str],
    labels: Sequence[str],
) -> Errors:
    """The errors of all class-conditional marginals (CM) of two features and a label. Not private.

    Each cell of each 3-way table is a query. The paper's features are its categorical columns. It
    scales numerical ones to [0, 1]; here they are the centers of their cells. Its text reports the
    mean of the absolute errors (definition 5), as here; its script takes
    ``numpy.linalg.norm(errors, 1)`` of a matrix, which is the worst column's sum.

    >>> domain = Domain(("age", "ward", "ill"), (8, 3, 2))
    >>> real = np.random.default_rng(0).integers(0, domain.sizes, (500, 3))
    >>> categorical_marginal_errors(domain, real, real, features=["age", "ward"], labels=["ill"])
    Errors(mean=0.0, max=0.0)
    """
    _check(features, labels)
    ours, theirs = columns(domain, real), columns(domain, synthetic)
    cliques = [(*pair, label) for pair in combinations(features, 2) for label in labels]
    errors = [np.abs(differences(domain, clique, ours, theirs)[1]) for clique in cliques]
    total = math.fsum(float(each.sum()) for each in errors)
    largest = max(float(each.max(initial=0.0)) for each in errors)
    return Errors(total / sum(map(domain.size, cliques)), largest)


def mixed_marginal_errors(
    domain: Domain,
    real: np.ndarray,
    synthetic: np.ndarray,
    *,
    features: Sequence[str],
    labels: Sequence[str],
    num_queries: int = 200_000,
    seed: int = 0,
) -> Errors:
    """The errors of random class-conditional mixed marginals (MM). Not private.

    A query asks for the rows with x_i <= τ_i, x_j <= τ_j and a given value of a label: two
    distinct numerical features, a label and its value uniform, both τ uniform in [0, 1]. That is
    definition 3; the paper's script asks for x > τ. The maximum is that of the queries drawn.
    """
    _check(features, labels)
    generator = np.random.default_rng(seed)
    ours, theirs = columns(domain, real), columns(domain, synthetic)
    cliques = [(label, *pair) for pair in combinations(features, 2) for label in labels]
    drawn = np.bincount(
        generator.integers(0, len(cliques), size=num_queries), minlength=len(cliques)
    )
    errors = []
    for clique, number in zip(cliques, drawn.tolist(), strict=True):
        shape = domain.shape(clique)
        cells, difference = differences(domain, clique, ours, theirs)
        # Sums over all smaller codes; entry 0 of the last two axes is an empty sum.
        table = np.zeros((shape[0], shape[1] + 1, shape[2] + 1))
        table[:, 1:, 1:][np.unravel_index(cells, shape)] = difference
        table = table.cumsum(axis=1).cumsum(axis=2)
        value = generator.integers(0, shape[0], size=number)
        below = [
            np.searchsorted(centers(size), generator.random(number), side="right")
            for size in shape[1:]
        ]
        errors.append(np.abs(table[(value, *below)]))
    found = np.concatenate(errors)
    return Errors(float(found.mean()), float(found.max()))


def linear_threshold_errors(
    domain: Domain,
    real: np.ndarray,
    synthetic: np.ndarray,
    *,
    features: Sequence[str],
    labels: Sequence[str],
    num_queries: int = 2_000,
    seed: int = 0,
) -> Errors:
    """The errors of random class-conditional linear thresholds (LT). Not private.

    A query asks for the rows with ⟨θ, x⟩ <= τ and a given value of a label: θ normal over all
    numerical features, divided by the root of their number, τ standard normal, a label and its
    value uniform. The paper draws 200,000; the work grows with the rows times the queries, and the
    mean over 2,000 has a standard error of some 4 % of itself. The maximum is that of those drawn.
    """
    _check(features, labels)
    generator = np.random.default_rng(seed)
    directions = generator.standard_normal((num_queries, len(features))) / np.sqrt(len(features))
    thresholds = generator.standard_normal(num_queries)
    label_of = generator.integers(0, len(labels), size=num_queries)
    sizes = np.array(domain.shape(labels))
    value_of = generator.integers(0, sizes[label_of])
    answers = []
    for codes in (real, synthetic):
        table = columns(domain, codes)
        points = embedded(domain.project(features), table)
        counts = np.zeros(num_queries, dtype=np.int64)
        for number, label in enumerate(labels):
            for value in range(domain.shape((label,))[0]):
                asked = np.flatnonzero((label_of == number) & (value_of == value))
                rows = points[table[label] == value]
                for some in np.array_split(rows, 1 + len(rows) // 2**13):  # all are too many
                    places = some @ directions[asked].T
                    counts[asked] += np.count_nonzero(places <= thresholds[asked], axis=0)
        answers.append(counts / len(codes))
    errors = np.abs(answers[0] - answers[1])
    return Errors(float(errors.mean()), float(errors.max()))


def _check(features: Sequence[str], labels: Sequence[str]) -> None:
    both = set(features) & set(labels)
    if len(set(features)) < 2 or not labels or both:
        raise ValueError(
            "Class-conditional queries need at least two features and a label that is none of "
            f"them, got features {list(features)!r} and labels {list(labels)!r}."
        )
