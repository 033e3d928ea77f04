"""Queries that ask for the share of rows in a region, and a table's errors on random ones.

The counting and the threshold queries are those of Donhauser et al. 2024, section 4.1. Tables are
codes of one domain, shape (row, attribute). They are read without protection: no result is private.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.metrics.rows import Columns, centers, columns, ratio


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
        inside = np.ones(len(table[self.attributes[0]]), dtype=bool)
        for name, low, high in zip(self.attributes, self.lows, self.highs, strict=True):
            inside &= table[name] >= low
            inside &= table[name] <= high
        return float(np.count_nonzero(inside) / len(inside))

    def prefix(self, length: int) -> "IntervalQuery":
        """The query on the first attributes alone."""
        return IntervalQuery(
            attributes=self.attributes[:length], lows=self.lows[:length], highs=self.highs[:length]
        )


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
        total = np.zeros(len(table[self.attributes[0]]))
        for name, size, theta in zip(self.attributes, self.sizes, self.direction, strict=True):
            total += (theta * centers(size))[table[name]]
        return total

    def share(self, table: Columns) -> float:
        """The share of the table's rows beyond the plane, 0 to 1."""
        places = self.places(table)
        return float(np.count_nonzero(places > self.threshold) / len(places))


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

    >>> from sdv_privpgd.base.domain import Domain
    >>> domain = Domain(("age", "ward", "ill"), (8, 3, 2))
    >>> rng = np.random.default_rng(0)
    >>> real = rng.integers(0, domain.sizes, (500, 3))
    >>> synthetic = np.zeros_like(real)
    >>> errors = counting_errors(domain, real, real, num_queries=5)
    >>> len(errors), set(errors.values())
    (5, {0.0})
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

    Their mean is Σ |q(synthetic) − q(real)| / Σ q(real), equation (9) of the paper; infinite if
    only its denominator is 0.

    >>> from sdv_privpgd.base.domain import Domain
    >>> domain = Domain(("age", "ward", "ill"), (8, 3, 2))
    >>> rng = np.random.default_rng(0)
    >>> real = rng.integers(0, domain.sizes, (500, 3))
    >>> synthetic = np.zeros_like(real)
    >>> errors = threshold_errors(domain, real, real, num_queries=5)
    >>> len(errors), set(errors.values())
    (5, {0.0})
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
    # Candidates per counting query that are tried before an error says that there are too few.
    tries = 200
    least, most = 0.05, 0.95  # shares of the real rows that a counting query may hold
    table = columns(domain, real)
    candidates = _candidates(domain, np.random.default_rng(seed))
    found = []
    for _ in range(tries * num_queries):
        query = next(candidates)
        if least <= query.share(table) <= most:
            found.append(query)
        if len(found) == num_queries:
            return found
    raise NoQueriesError(
        f"Not enough counting queries hold {least:.0%} to {most:.0%} of the real rows: the table "
        "is almost constant, or has too few rows. Leave this metric out."
    )


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
        attributes = _attributes(domain, generator)
        direction = generator.standard_normal(len(attributes))
        direction /= np.linalg.norm(direction)
        facts = {
            "attributes": attributes,
            "sizes": domain.shape(attributes),
            "direction": tuple(direction.tolist()),
        }
        places = ThresholdQuery(**facts).places(table)
        found.append(
            ThresholdQuery(**facts, threshold=generator.uniform(places.min(), places.max()))
        )
    return found


def _candidates(domain: Domain, generator: np.random.Generator) -> Iterator[IntervalQuery]:
    while True:
        attributes = _attributes(domain, generator)
        sizes = domain.shape(attributes)
        lows = generator.integers(0, sizes)
        highs = generator.integers(lows, sizes)
        yield IntervalQuery(
            attributes=attributes, lows=tuple(lows.tolist()), highs=tuple(highs.tolist())
        )


def _attributes(domain: Domain, generator: np.random.Generator) -> tuple[str, ...]:
    sparsity = 3  # attributes of a query; a domain with fewer uses all
    axes = generator.choice(len(domain), size=min(sparsity, len(domain)), replace=False)
    return tuple(domain.attributes[axis] for axis in axes)


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
