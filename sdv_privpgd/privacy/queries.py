"""What can be asked of a private table: integer-valued queries that know their sensitivity."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol, runtime_checkable

import numpy as np

from sdv_privpgd.base.domain import Clique, Domain, Grouping
from sdv_privpgd.base.half_spaces import Cut
from sdv_privpgd.privacy.counting import LookupSums
from sdv_privpgd.privacy.dataset import Dataset, Records
from sdv_privpgd.privacy.value_counts import Counted, ValueCounts


class Adjacency(Enum):
    """Which pairs of tables must be hard to tell apart."""

    REPLACE_ONE = "replace_one"
    """One record's values may change; the number of records is public."""
    ADD_REMOVE = "add_remove"
    """One record may be there or not; the number of records is private."""

    @property
    def cells(self) -> int:
        """In how many cells of a table neighbors differ, by one in each, at most."""
        return 2 if self is Adjacency.REPLACE_ONE else 1

    @classmethod
    def parse(cls, value: "Adjacency | str") -> "Adjacency":
        """The adjacency of that name. Raises ``ValueError`` for any other."""
        try:
            return cls(value)
        except ValueError:
            names = " or ".join(repr(member.value) for member in cls)
            raise ValueError(f"adjacency must be {names}, got {value!r}.") from None


@runtime_checkable
class Query(Protocol):
    """An integer-valued function of a table with a known sensitivity."""

    def describe(self) -> str:
        """What is asked, in words for the ledger. Public."""
        ...

    def l2_sensitivity_squared(self, adjacency: Adjacency) -> int:
        """The square of the largest change of the answer in L2 norm when one record changes."""
        ...

    def shape(self, domain: Domain) -> tuple[int, ...]:
        """The shape of the answer."""
        ...

    def answer(self, dataset: Records) -> np.ndarray:
        """The exact answer: int64, or Python's integers. Private."""
        ...


@dataclass(frozen=True)
class MarginalQuery:
    """The table of counts of a clique."""

    clique: Clique

    def describe(self) -> str:
        return "marginal of " + " x ".join(self.clique)

    def l2_sensitivity_squared(self, adjacency: Adjacency) -> int:
        return adjacency.cells

    def shape(self, domain: Domain) -> tuple[int, ...]:
        return domain.shape(self.clique)

    def answer(self, dataset: Records) -> np.ndarray:
        return dataset.counts(self.clique)


@dataclass(frozen=True)
class GroupedMarginalQuery:
    """The table of counts of a clique, over the groups of its codes."""

    clique: Clique
    grouping: Grouping

    def describe(self) -> str:
        return "marginal of " + " x ".join(self.clique) + " in groups"

    def l2_sensitivity_squared(self, adjacency: Adjacency) -> int:
        return adjacency.cells

    def shape(self, domain: Domain) -> tuple[int, ...]:
        """One axis an attribute. Raises ``ValueError`` if the groups are not of this domain."""
        self.grouping.require(domain)
        return self.grouping.domain.shape(self.clique)

    def answer(self, dataset: Records) -> np.ndarray:
        (table,) = dataset.counts_of([self.clique], self.grouping)
        return table


@dataclass(frozen=True)
class CutMarginalQuery:
    """The table of counts of a clique, and of the intervals that cuts put numbers into.

    With a label as the clique and one cut it holds class-conditional linear thresholds, with
    categories and cuts of one line each mixed marginals (Vietri et al. 2022, definitions 3 and 4).
    """

    clique: Clique
    cuts: tuple[Cut, ...]

    def describe(self) -> str:
        said = ["a threshold over " + ", ".join(each.name for each in c.lines) for c in self.cuts]
        return "marginal of " + " x ".join((*self.clique, *said))

    def l2_sensitivity_squared(self, adjacency: Adjacency) -> int:
        return adjacency.cells

    def shape(self, domain: Domain) -> tuple[int, ...]:
        """One axis an attribute, then one a cut. Raises ``ValueError`` for lines of other codes."""
        for cut in self.cuts:
            cut.contributions(domain)
        return (*domain.shape(self.clique), *(cut.size for cut in self.cuts))

    def answer(self, dataset: Records) -> np.ndarray:
        (table,) = dataset.counts_of([self.clique], cuts=[self.cuts])
        return table


@dataclass(frozen=True)
class DependenceQuery:
    """How far a pair is from independence: || n_ab - n_a n_b / n ||_1 in records, rounded down.

    Zhang et al. 2021 (PrivSyn) call it InDif; it is 2 n times the total variation distance of the
    pair from the product of its marginals (R-score; Cai et al. 2021, PrivMRF).
    """

    clique: Clique

    def describe(self) -> str:
        return "dependence of " + " and ".join(self.clique)

    def l2_sensitivity_squared(self, adjacency: Adjacency) -> int:
        """16 when a record is added or removed; 36 when it moves from one cell to another.

        With p and q the shares n_a / n and n_b / n, one more record, at (x, y), changes the
        differences n_ab - n_a n_b / n by n / (n + 1) (e_x - p) (e_y - q)^T: less than 2 * 2 in L1
        norm. Of a record that moves from (x, y) to (x', y'), among n others, the terms p q^T
        cancel: what is left are n / (n + 1) times e_x e_y^T - e_x' e_y'^T, (e_x - e_x') q^T and
        p (e_y - e_y')^T, less than 2 + 2 + 2. Numbers that differ by less than 4 or 6 still
        differ by at most so much when they are rounded down.
        """
        return 36 if adjacency is Adjacency.REPLACE_ONE else 16

    def shape(self, domain: Domain) -> tuple[int, ...]:
        """One number. Raises ``ValueError`` unless these are two attributes of the domain."""
        _, _ = domain.shape(self.clique)
        return (1,)

    def of_counts(self, counts: np.ndarray) -> np.ndarray:
        """The answer on a table with these counts of the pair. Private as they are."""
        total = int(counts.sum())
        # Their products must not wrap around: beyond 2^30 records they are Python's integers.
        exact = counts if total <= 2**30 else counts.astype(object)
        gaps = total * exact - np.outer(exact.sum(axis=1), exact.sum(axis=0))
        return np.array([np.abs(gaps).sum() // max(total, 1)], dtype=np.int64)

    def answer(self, dataset: Records) -> np.ndarray:
        return self.of_counts(dataset.counts(self.clique))


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelErrorQuery:
    """How badly a model approximates a clique: weight * (|| counts - expected ||_1 - bias).

    The expected counts, the bias and the weight are integers and public; so the answer is an
    integer, and its sensitivity is exact.
    """

    clique: Clique
    expected: np.ndarray
    """The model's counts, int64, in the clique's own shape."""
    bias: int = 0
    weight: int = 1
    cuts: tuple[Cut, ...] = ()
    """What else the table is over; then the clique's shape has their axes, too."""

    _LIMIT = 2**60
    """Of the weighted expected counts: with those of the records they still fit int64."""

    def __post_init__(self) -> None:
        if self.expected.dtype != np.int64 or self.weight < 1:
            raise ValueError(
                f"A model's error needs int64 expected counts and a weight of at least 1, got "
                f"{self.expected.dtype} and {self.weight!r}."
            )
        self._require_room(1)
        self.expected.setflags(write=False)

    def _require_room(self, units: int) -> None:
        magnitude = float(np.abs(self.expected.astype(np.float64)).sum()) + abs(self.bias)
        if self.weight * units * magnitude > self._LIMIT:
            # Beyond it a sum could wrap around, and one record change it by any amount.
            raise ValueError(
                f"Expected counts and bias of {self.clique!r} must be at most 2^60 with their "
                f"weight, got {self.weight * units * magnitude:.3g}."
            )

    def in_units(self, units: int) -> "ModelErrorQuery":
        """The same error where a count of one is so many units."""
        if units == 1:
            return self
        self._require_room(units)
        return replace(self, expected=self.expected * units, bias=self.bias * units)

    @property
    def table(self) -> "MarginalQuery | CutMarginalQuery":
        """The table of counts that the model approximates."""
        return CutMarginalQuery(self.clique, self.cuts) if self.cuts else MarginalQuery(self.clique)

    def describe(self) -> str:
        return "error of the model on " + self.table.describe().removeprefix("marginal of ")

    def l2_sensitivity_squared(self, adjacency: Adjacency) -> int:
        """A record that comes or goes changes one cell by 1, one that moves changes two."""
        return (self.weight * adjacency.cells) ** 2

    def shape(self, domain: Domain) -> tuple[int, ...]:
        """One number. Raises ``ValueError`` if the expected counts have not the clique's shape."""
        shape = self.table.shape(domain)
        if self.expected.shape != shape:
            raise ValueError(
                f"Expected counts of {self.clique!r} need shape {shape}, got {self.expected.shape}."
            )
        return (1,)

    def of_counts(self, counts: np.ndarray) -> int:
        """The answer on a table with these counts of the clique. Private as they are."""
        return self.weight * (int(np.abs(counts - self.expected).sum()) - self.bias)

    def answer(self, dataset: Records) -> np.ndarray:
        return np.array([self.of_counts(self.table.answer(dataset))], dtype=np.int64)


@dataclass(frozen=True)
class CountQuery:
    """The number of records."""

    def describe(self) -> str:
        return "number of rows"

    def l2_sensitivity_squared(self, adjacency: Adjacency) -> int:
        """0 under replace-one, where the number of records is public."""
        return 0 if adjacency is Adjacency.REPLACE_ONE else 1

    def shape(self, domain: Domain) -> tuple[int, ...]:
        del domain
        return (1,)

    def answer(self, dataset: Records) -> np.ndarray:
        return np.array([dataset.num_records()], dtype=np.int64)


@dataclass(frozen=True)
class ValueCountsQuery:
    """How many records have each value of a column whose values nobody declared.

    Its answer has no shape that is known beforehand: only values above a threshold are released
    (``privacy/thresholding.py``).
    """

    name: str

    def l2_sensitivity_squared(self, adjacency: Adjacency) -> int:
        """1 when a record is added or removed; 2 when it moves from one value to another."""
        return adjacency.cells

    def answer(self, values: ValueCounts) -> Counted:
        """The values, sorted, and their exact counts. Private."""
        return values.counts(self.name)


@dataclass(frozen=True)
class SigmoidSumQuery:
    """The sum over records of sigmoid(slope * (<theta, Emb(x)> - b)), in units of 1 / ``GRID``.

    Emb(x) are the cell centers (2 x + 1) / (2 k) of codes x = 0, ..., k - 1 (Donhauser et al.
    2024, Eq. 4 and appendix B). A record's value depends on that record alone, to the last bit:
    the scores are sums of integers, and the sigmoid is read from a public table over a grid of
    scores. Each value is an integer from 0 to ``GRID``, which bounds the sensitivity.
    """

    theta: tuple[tuple[str, float], ...]
    b: float
    slope: float

    GRID = 1 << 20
    """Units of a record's value; a sum of 2^40 records still fits int64."""
    _SCORES = 1 << 16
    """Points of the table of the sigmoid over the range of the scores."""

    def __post_init__(self) -> None:
        # An infinity or NaN here would become a value outside [0, GRID].
        numbers = (*(weight for _, weight in self.theta), self.b, self.slope)
        if not all(math.isfinite(number) and abs(number) <= 1e100 for number in numbers):
            raise ValueError(
                f"theta, b and slope must be finite and at most 1e100, got {numbers!r}."
            )

    @classmethod
    def of(cls, theta: Mapping[str, float], b: float, slope: float) -> "SigmoidSumQuery":
        """The query of a mapping from attribute to coefficient."""
        return cls(tuple((name, float(value)) for name, value in theta.items()), b, slope)

    def describe(self) -> str:
        return "smoothed threshold over " + ", ".join(name for name, _ in self.theta)

    def l2_sensitivity_squared(self, adjacency: Adjacency) -> int:
        """GRID^2: a value in [0, GRID] is added, removed or exchanged for another."""
        del adjacency
        return self.GRID**2

    def shape(self, domain: Domain) -> tuple[int, ...]:
        del domain
        return (1,)

    def _tables(self, domain: Domain) -> tuple[list[np.ndarray], np.ndarray]:
        """Public: integer contributions per attribute and code, and the sigmoid per score."""
        sizes = domain.shape(name for name, _ in self.theta)
        exact = [
            weight * (2 * np.arange(size) + 1) / (2 * size)
            for (_, weight), size in zip(self.theta, sizes, strict=True)
        ]
        low = math.fsum(float(part.min()) for part in exact)
        # The parts' own ranges: high - low could cancel, and an index then leave the table.
        span = math.fsum(float(part.max() - part.min()) for part in exact)
        unit = max(span, 1e-12) / self._SCORES
        steps = [np.rint((part - part.min()) / unit).astype(np.int64)[:, None] for part in exact]
        # Rounding moves a score by at most half a unit an attribute.
        scores = low + unit * np.arange(self._SCORES + len(exact) + 1)
        values = 0.5 * (1 + np.tanh(0.5 * self.slope * (scores - self.b)))
        return steps, np.rint(self.GRID * values).astype(np.int64)

    def answer(self, dataset: Records) -> np.ndarray:
        contributions, sigmoid = self._tables(dataset.domain)
        axes = dataset.domain.axes(name for name, _ in self.theta)
        (found,) = dataset.total(LookupSums(axes, contributions, sigmoid[None]))
        return found.ravel()


def answers(queries: Sequence[Query], dataset: Records) -> list[np.ndarray]:
    """The exact answer of each query, int64. Private. Tables of one grouping take one pass."""
    asked: dict[Grouping | None, list[_OfTable]] = {}
    for query in queries:
        if isinstance(query, _OfTable):
            asked.setdefault(_grouping(query), []).append(query)
    tables = {
        grouping: iter(
            dataset.counts_of([each.clique for each in own], grouping, list(map(_cuts, own)))
        )
        for grouping, own in asked.items()
    }
    found = [
        next(tables[_grouping(query)]) if isinstance(query, _OfTable) else query.answer(dataset)
        for query in queries
    ]
    return [
        query.of_counts(counts) if isinstance(query, DependenceQuery) else counts
        for query, counts in zip(queries, found, strict=True)
    ]


def answers_of_codes(
    queries: Sequence[Query], domain: Domain, codes: np.ndarray
) -> list[np.ndarray]:
    """The exact answers of rows of codes, shape (row, attribute). As private as these."""
    return answers(queries, Dataset(domain, codes))


_OfTable = MarginalQuery | GroupedMarginalQuery | CutMarginalQuery | DependenceQuery
"""The queries that are answered by the table of a clique."""


def _grouping(query: _OfTable) -> Grouping | None:
    return query.grouping if isinstance(query, GroupedMarginalQuery) else None


def _cuts(query: _OfTable) -> tuple[Cut, ...]:
    return query.cuts if isinstance(query, CutMarginalQuery) else ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Measurement:
    """A query and its noisy answer. Public.

    ``answer`` is int64 in the query's own shape, and float64 where answers of several holders were
    put together, or somebody else has published them. ``stddev`` is the noise's standard deviation
    per value, 0 where the answer is public.
    """

    query: Query
    answer: np.ndarray
    stddev: float
    units: int = 1
    """Answer and noise are whole numbers of 1 / units: of another one where people are weighed."""

    def __post_init__(self) -> None:
        self.answer.setflags(write=False)
