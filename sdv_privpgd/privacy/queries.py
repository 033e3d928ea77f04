"""What can be asked of a private table: integer-valued queries that know their sensitivity."""

import abc
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np

from sdv_privpgd.base.domain import Clique, Domain, Grouping
from sdv_privpgd.base.linear_thresholds import Cut
from sdv_privpgd.privacy.counting import LookupSums
from sdv_privpgd.privacy.dataset import Dataset, Records


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
    def _missing_(cls, value: object) -> None:
        """Raises ``ValueError`` for anything but a name of one."""
        names = " or ".join(repr(member.value) for member in cls)
        raise ValueError(f"adjacency must be {names}, got {value!r}.")


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
class TableQuery:
    """The table of counts of a clique: of codes or their groups, and of intervals of cuts."""

    clique: Clique
    grouping: ClassVar[Grouping | None] = None
    cuts: ClassVar[tuple[Cut, ...]] = ()

    def describe(self) -> str:
        said = ["a threshold over " + ", ".join(each.name for each in c.lines) for c in self.cuts]
        ending = "" if self.grouping is None else " in groups"
        return "marginal of " + " x ".join((*self.clique, *said)) + ending

    def l2_sensitivity_squared(self, adjacency: Adjacency) -> int:
        """A record that comes or goes changes one cell by 1, one that moves changes two."""
        return adjacency.cells

    def shape(self, domain: Domain) -> tuple[int, ...]:
        """One axis an attribute, then one a cut.

        Raises ``ValueError`` for groups or lines of other codes than the domain's.
        """
        if self.grouping is not None:
            self.grouping.require(domain)
        for cut in self.cuts:
            cut.contributions(domain)
        counted = domain if self.grouping is None else self.grouping.domain
        return (*counted.shape(self.clique), *(cut.size for cut in self.cuts))

    def of_counts(self, counts: np.ndarray) -> np.ndarray:
        """The answer on a table with these counts. Private as they are."""
        return counts

    def answer(self, dataset: Records) -> np.ndarray:
        (table,) = dataset.counts_of([self.clique], self.grouping, [self.cuts])
        return self.of_counts(table)


class MarginalQuery(TableQuery):
    """The table of counts of a clique."""


@dataclass(frozen=True)
class GroupedMarginalQuery(TableQuery):
    """The table of counts of a clique, over the groups of its codes."""

    grouping: Grouping = field()  # pyright: ignore[reportIncompatibleVariableOverride]


@dataclass(frozen=True)
class CutMarginalQuery(TableQuery):
    """The table of counts of a clique, and of the intervals that cuts put numbers into.

    With a label as the clique and one cut it holds class-conditional linear thresholds, with
    categories and cuts of one line each mixed marginals (Vietri et al. 2022, definitions 3 and 4).
    """

    cuts: tuple[Cut, ...] = field()  # pyright: ignore[reportIncompatibleVariableOverride]


@dataclass(frozen=True)
class QuadrantQuery(TableQuery):
    """How many more records are on the same side of a pair's middles than on opposite sides.

    The groups of each attribute are two, its sides. The answer is n times the quadrant measure of
    Blomqvist 1950: it tells of a correlation, and of nothing else.
    """

    grouping: Grouping = field()  # pyright: ignore[reportIncompatibleVariableOverride]

    def describe(self) -> str:
        return "quadrants of " + " and ".join(self.clique)

    def l2_sensitivity_squared(self, adjacency: Adjacency) -> int:
        """A record that comes or goes changes the number by 1, one that changes sides by 2."""
        return adjacency.cells**2

    def shape(self, domain: Domain) -> tuple[int, ...]:
        """One number, with an axis an attribute. Raises ``ValueError`` without two sides each."""
        if (sides := super().shape(domain)) != (2, 2):
            raise ValueError(f"Quadrants need two attributes of two sides, got {sides}.")
        return (1, 1)

    def of_counts(self, counts: np.ndarray) -> np.ndarray:
        """The answer on a table with these counts of the sides."""
        return np.diff(np.diff(counts, axis=0))


class DependenceQuery(TableQuery):
    """How far a pair is from independence: || n_ab - n_a n_b / n ||_1 in records, rounded down.

    Zhang et al. 2021 (PrivSyn) call it InDif; it is 2 n times the total variation distance of the
    pair from the product of its marginals (R-score; Cai et al. 2021, PrivMRF).
    """

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
        """The answer on a table with these counts of the pair."""
        total = int(counts.sum())
        # Their products must not wrap around: beyond 2^30 records they are Python's integers.
        exact = counts if total <= 2**30 else counts.astype(object)
        gaps = total * exact - np.outer(exact.sum(axis=1), exact.sum(axis=0))
        return np.array([np.abs(gaps).sum() // max(total, 1)], dtype=np.int64)


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
    def table(self) -> CutMarginalQuery:
        """The table of counts that the model approximates."""
        return CutMarginalQuery(self.clique, self.cuts)

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
        return dataset.counts(()).reshape(1)


class Lookup(NamedTuple):
    """Public tables that make features of codes. Features are whole numbers of a record."""

    names: Sequence[str]
    """The attributes whose codes count."""
    parts: Sequence[np.ndarray]
    """What each code of an attribute adds to a feature's sum: integers (code, feature)."""
    values: np.ndarray
    """A feature at each sum, a number or a pair: integers (wave, sum)."""
    label: str | None = None
    """The attribute by whose codes the records are told apart, if any."""


class FeatureSumQuery(abc.ABC):
    """Sums over records of features, in units of 1 / ``GRID``: by label, wave and feature.

    A record's features depend on its codes alone, and on public integers. A feature is a number
    from 0 to ``GRID``, or a pair no longer than that: here it is made so, whatever the tables say.
    """

    GRID: int

    @property
    @abc.abstractmethod
    def size(self) -> tuple[int, int]:
        """The waves of a feature, one or two, and the number of features."""

    @abc.abstractmethod
    def lookup(self, domain: Domain) -> Lookup:
        """The tables of codes of a domain. Public."""

    @abc.abstractmethod
    def shape(self, domain: Domain) -> tuple[int, ...]:
        """The shape of the answer."""

    def l2_sensitivity_squared(self, adjacency: Adjacency) -> int:
        """F GRID^2 for F features; four times that for pairs when a record changes.

        A record adds to the sums of its own label alone, and there F numbers or pairs no longer
        than GRID: a vector of a squared norm of at most F GRID^2. Two numbers from 0 to GRID differ
        by at most GRID. The difference of two vectors has at most twice the norm.
        """
        waves, features = self.size
        is_doubled = waves > 1 and adjacency is Adjacency.REPLACE_ONE
        return (4 if is_doubled else 1) * features * self.GRID**2

    def tally(self, domain: Domain) -> LookupSums:
        """What adds up the features of records."""
        (waves, features), (names, parts, values, label) = self.size, self.lookup(domain)
        widths = {part.shape[1] for part in parts}
        if len(values) != waves or not widths <= {features} or (waves == 1 and label is not None):
            raise ValueError(f"The tables of {type(self).__name__} are not of its size.")
        axis = None if label is None else domain.axes([label])[0]
        labels = 1 if label is None else domain.size([label])
        return LookupSums(domain.axes(names), parts, held(values, self.GRID), axis, labels)

    def answer(self, dataset: Records) -> np.ndarray:
        (found,) = dataset.total(self.tally(dataset.domain))
        return found.reshape(self.shape(dataset.domain))


def held(values: np.ndarray, most: int) -> np.ndarray:
    """Numbers from 0 to ``most``, shape (1, sum), or pairs no longer than that, shape (2, sum).

    A pair that is longer is shortened by a unit, and is 0 where that is not enough.
    """
    if len(values) == 1:
        return np.clip(values, 0, most)
    # Squares of larger numbers would wrap around, and look short.
    found = np.clip(values.astype(np.int64), -most - 1, most + 1)
    for shorter in (found - np.sign(found), np.zeros_like(found)):
        are_long = (found**2).sum(axis=0) > most**2
        found[:, are_long] = shorter[:, are_long]
    return found.astype(values.dtype)


def answers(queries: Sequence[Query], dataset: Records) -> list[np.ndarray]:
    """The exact answer of each query, int64. Private. Tables of one grouping take one pass."""
    asked: dict[Grouping | None, list[TableQuery]] = {}
    for query in queries:
        if isinstance(query, TableQuery):
            asked.setdefault(query.grouping, []).append(query)
    found: dict[int, np.ndarray] = {}
    for grouping, own in asked.items():
        cliques, cuts = [each.clique for each in own], [each.cuts for each in own]
        tables = dataset.counts_of(cliques, grouping, cuts)
        found |= {id(each): each.of_counts(table) for each, table in zip(own, tables, strict=True)}
    return [found[id(each)] if id(each) in found else each.answer(dataset) for each in queries]


def exact_answers(queries: Sequence[Query], domain: Domain, codes: np.ndarray) -> list[np.ndarray]:
    """The exact answers of rows of codes, shape (row, attribute). As private as these."""
    return answers(queries, Dataset(domain, codes))


@dataclass(frozen=True, kw_only=True, eq=False)
class Measurement:
    """A query and its noisy answer. Public.

    ``answer`` is int64 in the query's own shape, and float64 where answers of several sites were
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
