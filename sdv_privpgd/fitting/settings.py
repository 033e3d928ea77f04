"""How much a fit may spend, and by which method. Public."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from fractions import Fraction
from typing import Any, cast

from sdv_privpgd.base.arguments import (
    check_delta,
    check_epsilon,
    check_fields,
    check_flag,
    check_integer,
    check_names,
    check_share,
    shown,
)
from sdv_privpgd.columns.keys import too_few
from sdv_privpgd.columns.visits import Visits
from sdv_privpgd.methods.method import Method, method_of
from sdv_privpgd.privacy.boundary import EncodedTable, PrivateTable
from sdv_privpgd.privacy.counting import MOST, Bound, Weights
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.report.warnings import on_delta


@dataclass(frozen=True)
class People:
    """Whose the rows are, and in which order they come.

    Attributes:
        column: The column that says whose a row is. No more than ``max_rows`` rows of a person are
            read, so that the promise holds for all of a person's rows. It needs
            ``adjacency="add_remove"`` and is not modelled. ``None`` takes it for granted that
            nobody has more rows.
        max_rows: The largest number of rows that one person may have.
        rows_are_people: Whether each row is another person's. Who does not say so and names no
            column protects a row, and reports say what a person with several would have.
        weighed: Whether each row of a person counts as 1 / the number of those that are read, in
            place of 1, so that shares are of people, and the noise is that of one row for any
            ``max_rows``.
        sequence_index: The column of dates or numbers, of a declared range, by which the rows of a
            person are in order. Each row is then told how long ago the row before was and how many
            rows the person has, and rows are sampled person by person, in order.
        previous: Columns of which each row is told what the row before had, the most telling first.
        context_columns: Columns in which all rows of a person have the same.
        weight_column: The column that says how many of a population a row stands for, as surveys
            have it. Rows count as their weights / the upper end of ``weight_range``, so that shares
            are the population's, and the noise is that of rows that count as one. It needs
            ``adjacency="add_remove"``, and is modelled only if it is declared as well.
        weight_range: The ends that weights are clipped to: public, never read off the weights. What
            is no finite number counts as the lower end.

    Raises:
        ValueError: For what contradicts itself.

    >>> People("patient", max_rows=4).max_rows
    4
    """

    column: str | None = None
    max_rows: int = 1
    _: KW_ONLY
    rows_are_people: bool = False
    weighed: bool = False
    sequence_index: str | None = None
    previous: Sequence[str] | str = ()
    context_columns: Sequence[str] | str = ()
    weight_column: str | None = None
    weight_range: Sequence[float] | None = None

    def __post_init__(self) -> None:
        check_fields(self, check_integer, "max_rows")
        check_fields(self, check_flag, "rows_are_people", "weighed")
        check_fields(self, check_names, "previous", "context_columns")
        for reason in self._contradictions():
            raise ValueError(reason)
        if self.weights is not None:
            object.__setattr__(self, "weight_range", self.weights[1:])

    def _contradictions(self) -> Iterator[str]:
        for name in ("column", "sequence_index", "weight_column"):
            if not isinstance(getattr(self, name), str | None):
                yield f"{name} must be the name of a column, got {shown(getattr(self, name))}."
        if self.rows_are_people and (self.column is not None or self.max_rows > 1):
            yield (
                "rows_are_people=True says that nobody has two rows: leave it out, or else "
                "column=... and max_rows."
            )
        if (self.weight_column is None) != (self.weight_range is None):
            yield (
                "weight_column and weight_range go together: a row counts as its weight / the "
                "upper end of a range that you know without looking at the weights."
            )
        if self.weight_column is not None and self.column is not None:
            yield (
                "weight_column and column=... cannot go together: rows of one person would have "
                "several weights. With weights nobody may have more than max_rows rows: leave "
                "column out, or take one row of each person and say rows_are_people=True."
            )
        if self.weighed and self.column is None:
            yield (
                "weighed=True needs column=..., which says whose a row is: without it nobody knows "
                "how many rows a person has, and no row can count as 1 / their number."
            )
        if self.weighed and self.max_rows > MOST:
            yield (
                f"weighed=True takes max_rows of at most {MOST}, got {self.max_rows!r}. All rows "
                "of a person count as one: choose fewer."
            )
        if self.sequence_index is None:
            named = [name for name in ("previous", "context_columns") if getattr(self, name)]
            if named:
                yield f"{' and '.join(named)} need sequence_index, the order of the rows."
            return
        if self.column is None:
            yield "sequence_index needs column=..., which says whose rows are in order."
        if self.max_rows < 2:
            yield "sequence_index needs max_rows of at least 2: of one row there is none before."
        if self.weighed:
            yield (
                "weighed=True and sequence_index cannot go together: persons are sampled from how "
                "their rows follow each other, of which each counts as one. Leave one of them out."
            )
        twice = sorted({*self.previous} & {*self.context_columns})
        if twice:
            yield (
                f"previous and context_columns both name {twice!r}: what is constant for a person "
                "is the same in the row before. Name it in context_columns alone."
            )
        if self.sequence_index in (*self.previous, *self.context_columns):
            yield (
                f"previous and context_columns must not name {self.sequence_index!r}, by which "
                "rows are in order: a row is told how long ago the row before was."
            )

    @property
    def limit(self) -> Bound:
        """What is done about people with several rows, or about weights of rows."""
        return self.weights if self.column is None else (self.column, self.max_rows, self.weighed)

    @property
    def weights(self) -> Weights | None:
        """How much rows count. Raises ``ValueError`` for a range that is none."""
        if self.weight_column is None or self.weight_range is None:
            return None
        try:
            low, high = map(float, self.weight_range)
        except (TypeError, ValueError):
            low = high = math.nan
        return Weights.of(self.weight_column, low, high)

    @property
    def on_counts(self) -> list[str]:
        """A sentence on what numbers of rows are, where rows or people are weighed."""
        if self.weights is not None:
            column, low, high = self.weights
            least = 1_000 * low / high
            return [
                f"Rows here are rows of weight {high:g}: with weight_column={column!r} each row "
                f"counts as its weight / {high:g}. So 1,000 rows count as {least:,.3g} to 1,000, "
                "and the noise is as large beside them as beside so many rows."
            ]
        said = (
            "Rows here are people: with weighed=True all rows of a person count as one, so give "
            "the number of people, not of rows."
        )
        return [said] if self.weighed else []

    @property
    def is_said(self) -> bool:
        """Whether somebody has said whose the rows are."""
        return self.column is not None or self.max_rows > 1 or self.rows_are_people

    @property
    def visits(self) -> Visits | None:
        """The order of a person's rows, if they have one."""
        if self.column is None or self.sequence_index is None:
            return None
        return Visits(
            person=self.column,
            most=self.max_rows,
            by=self.sequence_index,
            previous=tuple(self.previous),
            context_columns=tuple(self.context_columns),
        )


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of one fit.

    Attributes:
        epsilon: What the fit may spend, at ``delta``.
        delta: Choose it well below 1 / (number of rows).
        delta_is_usual: Whether nobody chose it, so that it follows from a public number of rows.
        adjacency: Which tables are neighbors: ``replace_one`` or ``add_remove``.
        people: Whose the rows are.
        discovery_share: Part of the budget for what is not declared.
        method: What is asked, and what makes a model of the answers.
        seed: Of an engine that is named and of the rows, never of the noise.
        family: Tables that belong together, of which this is a fit of one.
    """

    epsilon: float
    method: Method
    delta: float = 1e-5
    delta_is_usual: bool = False
    adjacency: Adjacency = Adjacency.REPLACE_ONE
    people: People = field(default_factory=People)
    discovery_share: float = 0.2
    seed: int = 0
    family: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        checked: Mapping[str, Any] = {
            "epsilon": check_epsilon(self.epsilon),
            "delta": check_delta(self.delta),
            "adjacency": Adjacency(self.adjacency),
            "people": check_people(self.people),
            "discovery_share": check_share("discovery_share", self.discovery_share),
            "seed": check_integer("seed", self.seed, least=0),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.adjacency is not Adjacency.ADD_REMOVE:
            own, needs = self.people, "needs adjacency='add_remove' and a delta: another"
            if own.column is not None:
                raise ValueError(
                    f"people.column={own.column!r} {needs} person may have another number of "
                    "rows, so that their number cannot be public."
                )
            if own.weights is not None:
                raise ValueError(
                    f"weight_column={own.weight_column!r} {needs} row may have another weight, so "
                    "that their sum cannot be public."
                )
        object.__setattr__(self, "method", method_of(self.method, seed=self.seed))
        are_weighed = self.people.weighed or self.people.weights is not None
        if are_weighed and not self.method.weighs_rows:
            raise ValueError(
                "weighed people, weights and linked tables do not go with private gradients: a "
                "sample has each row or has it not, and none of them in part. Choose another "
                "method, such as method='privpgd'."
            )
        self.method.require_budget(self.ledger(self.own_delta))

    def objections(
        self, table: PrivateTable | EncodedTable, keys: Mapping[str, str | None] | None = None
    ) -> list[str]:
        """Sentences if the table has no rows, or more than its keys' patterns write values.

        There are none where the number of rows is private. Ask before anything is spent.
        """
        rows = table.known_rows(self.adjacency)
        if rows != 0:
            return [] if rows is None else too_few(keys or {}, rows)
        return [
            "The table has no rows. A fit would spend its whole budget on nothing, so none is made."
        ]

    def absurd(self, num_rows: int | None = None) -> list[str]:
        """Sentences on an epsilon or a delta that promises next to nothing for so many rows."""
        said = on_delta(self.delta, num_rows)
        if self.epsilon > 20:
            said += [f"epsilon={self.epsilon:g} promises next to nothing; 0.1 to 10 is usual."]
        return said

    def for_rows(self, number: int | None) -> "Settings":
        """The same, where nobody chose a delta with that of a table of so many rows, if public."""
        if not self.delta_is_usual or not number:
            return self
        return replace(self, delta=min(usual_delta(self.adjacency), 1 / (10 * number)))

    @property
    def own_delta(self) -> Fraction:
        """The part of delta that the method needs: that of samples, where it trains by them."""
        return Fraction(self.delta) * self.method.own_delta

    def ledger(self, reserved: Fraction = Fraction(0)) -> PrivacyLedger:
        """The empty ledger of a fit, with a part of delta kept for thresholds and samples."""
        return PrivacyLedger.open(
            self.epsilon,
            self.delta,
            self.adjacency,
            self.people.max_rows,
            reserved=reserved,
            people=self.people.column,
            weighed=self.people.weighed,
            rows_are_people=self.people.rows_are_people,
            weights=self.people.weights,
            family=self.family,
        )

    def require(self, earlier: PrivacyLedger) -> None:
        """Raises ``ValueError`` if they protect others than this ledger, of a fit that goes on."""
        own = self.people
        both = [
            ("adjacency", earlier.adjacency.value, self.adjacency.value),
            ("people.max_rows", earlier.rows_per_person, own.max_rows),
            ("people.column", earlier.people, own.column),
            ("people.weighed", earlier.weighed, own.weighed),
            ("people.weights", earlier.weights, own.weights),
        ]
        changed = [f"{name} was {old!r} and is {new!r}" for name, old, new in both if old != new]
        if changed:
            raise ValueError(
                f"{'; '.join(changed)}: the ledger of the fit that is to be gone on with says whom "
                "it protects. Set it back, or fit anew."
            )


def usual_delta(adjacency: Adjacency | str) -> float:
    """The delta of a fit where nobody chose one, before the number of rows is known.

    Raises ``ValueError`` where that number is private, for no delta can follow from it then.
    """
    if Adjacency(adjacency) is Adjacency.ADD_REMOVE:
        raise ValueError(
            "delta must be given under adjacency='add_remove': the number of rows is private, and "
            "no default can follow from it. Choose one far below 1 / (a number of rows that you "
            "would say without looking): 1e-6 is for up to 100,000."
        )
    return Settings.delta


def with_sequence(people: People, table: Mapping[str, Any]) -> People:
    """Returns the same people, with what SDV's metadata of a table say of their column and order.

    Raises ``ValueError`` if nobody says how many rows a person may have, or says something else.
    """
    own = {"sequence_key": "column", "sequence_index": "sequence_index"}
    said = {name: table[key] for key, name in own.items() if table.get(key)}
    if said and people == People():
        raise ValueError(
            "The metadata has a sequence_key or a sequence_index: a person is a sequence of rows, "
            "which a guarantee for single rows does not protect. Say how many rows one person may "
            "have: people=People(max_rows=...), with adjacency='add_remove'."
        )
    for name, value in said.items():
        if getattr(people, name) not in (None, value):
            raise ValueError(
                f"people.{name} is {getattr(people, name)!r}, and the metadata says {value!r}."
            )
    return replace(people, **said)


def with_bins(method: Method | str, num_bins: int | None, *, seed: int = 0) -> Method | str:
    """Returns the same method; where a number of cells is named, with that and with the seed."""
    if num_bins is None:
        return method
    return replace(cast(Any, method_of(method, seed=seed)), num_bins=num_bins)


def check_people(people: People | None) -> People:
    """The same people; ``None`` is one row of each. Raises ``ValueError`` for anything else."""
    if not isinstance(people, People | None):
        raise ValueError(
            f"people must be a People, such as People('patient', max_rows=4), got {shown(people)}."
        )
    return People() if people is None else people
