"""Tables that belong together: one budget, a model of each table, and rows that lead to rows.

Each table is fitted as ``fit_table`` would fit it, with what the row has that its rows lead to, and
with the number of rows that lead to them. How children of one parent go together is asked beside
that. Rows are made from the root down: each row gets as many children as it says, from the model of
children, and these are exchanged until they go with their parents and with each other.

Privacy: all rows of a family count as one, in any table and among pairs of siblings, so that each
question has sensitivity 1 for a family (``sources/families.py``). One ledger holds the charges of
all tables, which add up.
"""

import math
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd.base.arguments import check_integer, check_positive
from sdv_privpgd.base.domain import Clique, Grouping
from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.cutting import column_of
from sdv_privpgd.columns.declared import Key
from sdv_privpgd.columns.links import Link, Tree, sibling, tree_of
from sdv_privpgd.columns.naming import on_names
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.columns.visits import read_by, time_facts
from sdv_privpgd.columns.vocabulary import MODELLED, words_of
from sdv_privpgd.constraints.kinds import Constraint
from sdv_privpgd.discovery.first_look import reserved_delta
from sdv_privpgd.estimate.consistency import consistent_tables
from sdv_privpgd.estimate.denoising import denoised, equal_groups, over_groups
from sdv_privpgd.fitting.asking import asked, require_sdtypes
from sdv_privpgd.fitting.checks import check_match
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.door import FittedTable, RunningFit, checked_lost
from sdv_privpgd.fitting.fit import Fit
from sdv_privpgd.fitting.mismatch import DomainMismatchError
from sdv_privpgd.fitting.opening import opened
from sdv_privpgd.fitting.plan import planned
from sdv_privpgd.fitting.sampled import SavedModel
from sdv_privpgd.fitting.settings import People, Settings
from sdv_privpgd.fitting.unfinished import note_on
from sdv_privpgd.methods.method import Method
from sdv_privpgd.privacy.accounting import epsilon_of
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.counting import MOST
from sdv_privpgd.privacy.ledger import Books, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency, GroupedMarginalQuery, MarginalQuery, Measurement
from sdv_privpgd.report.page import Report
from sdv_privpgd.report.release import linked_report, plans_report
from sdv_privpgd.report.warnings import in_one
from sdv_privpgd.sampling.families import Siblings, children_of
from sdv_privpgd.sampling.sampler import Sampler, encoded_rows, read_rows
from sdv_privpgd.sampling.stream import MOVING

_ROOT, _SIBLINGS = Fraction(2, 5), Fraction(1, 3)
"""What the root, and pairs of siblings, have of the budget beside a table of children. On the
survey at epsilon 1 the root's tables are then still nearer to the truth than the children's
(``tests/benchmarks linked``)."""

_GROUPS = 8
"""Groups of each column by which pairs of siblings are counted, at most."""

_AT_ONCE = 20_000
"""Families that are made at a time."""


@dataclass(frozen=True, kw_only=True, repr=False)
class FittedTables(SavedModel):
    """Differentially private models of tables that belong together. All that it shows is public.

    Attributes:
        tables: What was fitted of each table, with the columns that links add to its rows.
        tree: How the tables belong together.
        columns: The columns of each table, as rows have them.
        siblings: How children of one parent go together, of tables of which it was asked.
        answers: The noisy answers on that.
        ledger: What was spent on all tables.
        warnings: What is worth a look before the rows are used, a sentence each.
        date: When they were fitted.
        seed: Of the rows.

    >>> import pandas as pd
    >>> from sdv_privpgd import Boolean, Link
    >>> homes = pd.DataFrame({"home": range(1000), "rents": [True, False] * 500})
    >>> people = pd.DataFrame({"home": [*range(1000), *range(500)], "ill": [True, False] * 750})
    >>> declared = {"homes": {"rents": Boolean()}, "people": {"ill": Boolean()}}
    >>> link = Link("homes", "people", "home", max_children=2)
    >>> tables = {"homes": homes, "people": people}
    >>> fitted = fit_tables(tables, declared, link, epsilon=5.0, delta=1e-6)
    >>> rows = fitted.sample(100)
    >>> list(rows["people"].columns), rows["people"]["home"].isin(rows["homes"]["home"]).all()
    (['home', 'ill'], np.True_)
    """

    tables: Mapping[str, FittedTable]
    tree: Tree
    columns: Mapping[str, Sequence[str]]
    siblings: Mapping[str, Siblings]
    answers: Mapping[str, Sequence[Measurement]]
    ledger: PrivacyLedger
    warnings: tuple[str, ...]
    date: str
    seed: int = 0
    _drawn: list[int] = field(default_factory=lambda: [0])

    def __repr__(self) -> str:
        """What matters of them in a line."""
        return (
            f"FittedTables({', '.join(self.tables)}; epsilon {self.ledger.spent():.4g} at delta "
            f"{self.ledger.delta:g} for {self.ledger.unit}; {len(self.warnings)} warnings)"
        )

    @property
    def num_rows(self) -> dict[str, int]:
        """How many rows each table has, by noisy answers: those of families that were read."""
        found: dict[str, float] = {}
        for name in self.tree.tables:
            link, own = self.tree.above(name), self.tables[name]
            if link is None:
                found[name] = max(own.num_rows or 0, 0)
                continue
            above = self.tables[link.parent].fitted
            first = {} if above.sampler is None else above.sampler.first(_AT_ONCE)
            numbers, weights = first[link.number].to_numpy(float), np.ones(_AT_ONCE)
            grand = self.tree.above(link.parent)
            if grand is not None:  # a row counts the less the more of them a parent has
                weights = first[grand.above(grand.number)].to_numpy(float)
            found[name] = found[link.parent] * np.average(numbers, weights=np.maximum(weights, 1))
        return {name: round(found[name]) for name in self.tables}

    def sample(
        self, num_rows: int | None = None, *, scale: float | None = None
    ) -> dict[str, pd.DataFrame]:
        """Returns the next synthetic families, a table each, at no cost.

        Each row leads to a row that is there. The same calls give the same rows.

        Args:
            num_rows: How many rows of the root; by default as many as were fitted.
            scale: How many times as many.

        Raises:
            ValueError: For both, or for what is no number of rows.
        """
        if num_rows is not None and scale is not None:
            raise ValueError("Give num_rows, the rows of the root, or scale, and not both.")
        if num_rows is None:
            times = 1.0 if scale is None else check_positive("scale", scale)
            num_rows = round(self.num_rows[self.tree.root] * times)
        num_rows = check_integer("num_rows", num_rows, least=0)
        parts = []
        with MOVING:
            for start in range(0, max(num_rows, 1), _AT_ONCE):
                parts.append(self._families(min(_AT_ONCE, num_rows - start), self._drawn[0]))
                self._drawn[0] += 1
        return {
            name: pd.concat([part[name] for part in parts], ignore_index=True)
            if len(parts) > 1
            else parts[0][name]
            for name in self.tables
        }

    def reset_sampling(self) -> None:
        """Starts the sequence of families again."""
        self._drawn[0] = 0
        for each in self.tables.values():
            each.reset_sampling()

    def report(self, path: str | Path | None = None) -> Report:
        """What was spent and how well the rows of each table fit, as text, page and numbers.

        Args:
            path: Where to save it as well: the page, or the text (``.txt``) or the numbers
                (``.json``). Nothing is written without one.
        """
        report = linked_report(
            {name: (own.fitted.release, own.fitted.schema) for name, own in self.tables.items()},
            self.tree,
            self.ledger,
            self.num_rows,
            date=self.date,
            notes=self.warnings,
        )
        if path is not None:
            report.save(path)
        return report

    def privacy_report(self) -> str:
        """The text of ``report``: what was spent, on what and under which adjacency."""
        return str(self.report())

    def _families(self, num_rows: int, place: int) -> dict[str, pd.DataFrame]:
        """Rows of the root, and all that lead to them."""
        made, _ = self.families_so_far(num_rows, place)
        return {
            name: own.loc[:, [each for each in self.columns[name] if each in own]]
            for name, own in made.items()
        }

    def families_so_far(
        self, num_rows: int, place: int
    ) -> tuple[dict[str, pd.DataFrame], dict[str, np.ndarray]]:
        """Families of the tables that are fitted, with all that is known of rows; and whose."""
        made: dict[str, pd.DataFrame] = {}
        family: dict[str, np.ndarray] = {}
        for number, name in enumerate(self.tree.tables):
            if name not in self.tables:
                continue
            fitted, link = self.tables[name].fitted, self.tree.above(name)
            assert fitted.sampler is not None
            if link is None:
                made[name] = pd.DataFrame(
                    {**fitted.keys.take(num_rows), **fitted.sampler.take(num_rows)}
                )
                family[name] = np.arange(num_rows)
                continue
            seed = hash((self.seed, place, number)) & 0xFFFFFFFF
            made[name], family[name] = self._children(
                link, made[link.parent], family[link.parent], seed
            )
        return made, family

    def above(
        self, link: Link, parents: pd.DataFrame, family: np.ndarray
    ) -> tuple[dict[str, pd.Series], np.ndarray]:
        """What parents have, by the names that their children have it; and how many of these."""
        numbers = parents[link.number].to_numpy(dtype=np.int64)
        found = {link.above(str(name)): own for name, own in parents.items()}
        in_family = self.tree.in_family(link.child)
        if in_family is not None:
            sizes = np.bincount(family, weights=numbers, minlength=1)
            found[in_family] = pd.Series(sizes[family].astype(np.int64))
        return found, numbers

    def _children(
        self, link: Link, parents: pd.DataFrame, family: np.ndarray, seed: int
    ) -> tuple[pd.DataFrame, np.ndarray]:
        """The rows that lead to parents, and the number of each one's family."""
        fitted, siblings = self.tables[link.child].fitted, self.siblings.get(link.child)
        sampler: Any = fitted.sampler
        above, numbers = self.above(link, parents, family)
        used = np.minimum(numbers, 0 if siblings is None else siblings.most)
        pairs = np.bincount(family, weights=used * (used - 1), minlength=1)
        known = {each.name for each in sampler.attributes}
        above = {name: own for name, own in above.items() if name in known}
        codes, positions, whose = children_of(
            sampler,
            link,
            above,
            numbers,
            1 / np.maximum(pairs, 1)[family],
            siblings,
            self._starts(link, sampler, parents),
            self.tree.in_family(link.child),
            seed,
        )
        columns = {**fitted.keys.take(len(whose)), **sampler.decoded(codes, positions)}
        columns |= {n: own.take(whose).reset_index(drop=True) for n, own in above.items()}
        columns[link.key] = parents[str(link.parent_key)].take(whose).reset_index(drop=True)
        return pd.DataFrame(columns), family[whose]

    def _starts(self, link: Link, sampler: Sampler, parents: pd.DataFrame) -> np.ndarray:
        """When the order of each parent's children begins, not a number where it is not known."""
        if link.start is None:
            return np.full(len(parents), np.nan)
        theirs = {each.name: each for each in self.tables[link.parent].fitted.schema.columns}
        clock = next(each for each in sampler.attributes if each.name == link.order)
        own = read_by(clock, link.start, theirs[link.start])
        read, missing = read_rows(own, pd.Series(parents[link.start]))
        return np.where(missing, np.nan, np.clip(read, *clock.cells.ends))


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a fit of tables is told, and how the budget is divided. Public.

    Attributes:
        columns: What is declared of each table's columns, but for keys that lead to others.
        tree: How the tables belong together.
        told: Other arguments of a fit of a table.
        constraints: What all rows of a table will meet.
    """

    columns: Mapping[str, Mapping[str, Mapping]]
    tree: Tree
    epsilon: float
    delta: float
    told: Mapping[str, Any]
    constraints: Mapping[str, Sequence[Constraint]]

    @classmethod
    def of(
        cls,
        columns: Mapping[str, Mapping[str, Mapping]],
        relationships: Link | Iterable[Link],
        epsilon: float,
        delta: float,
        constraints: Mapping[str, Sequence[Constraint]],
        **told: Any,
    ) -> "Asked":
        """Raises ``ValueError`` for what no fit can ask, before a table is opened."""
        tree = tree_of(relationships)
        tree.require(columns, MOST)
        unknown = [name for name in constraints if name not in tree.tables]
        if unknown:
            raise ValueError(f"constraints names {unknown!r}, which are no tables.")
        own = {}
        for table in tree.tables:
            link, key = tree.above(table), tree.key_of(table)
            declared = {str(name): facts for name, facts in columns[table].items()}
            for name in {key, None if link is None else link.key} & declared.keys():
                if not _is_key(declared[str(name)]):
                    raise ValueError(
                        f"columns[{table!r}][{name!r}] is a key by the links: declare it as Key(), "
                        "or leave it out."
                    )
            if link is not None:
                declared.pop(link.key, None)
                _require_order(link, declared, columns[link.parent])
            own[table] = declared if key is None else {key: Key(), **declared}
        return cls(
            columns=own, tree=tree, epsilon=epsilon, delta=delta, told=told, constraints=constraints
        )

    def asked(
        self, table: str, parents: Mapping[str, Mapping] | None = None
    ) -> tuple[Settings, Description]:
        """Settings and description of a table, with what links add to its columns.

        ``parents`` are what is known of the parent's columns; by default what is declared.
        """
        settings, description = self._described(table, parents)
        known = self.given(table)
        settings = replace(
            settings,
            epsilon=self.part_of(table).epsilon,
            family=self.tree.tables,
            method=settings.method.knowing(known),
        )
        description = replace(description, given=known)
        check_match(settings, description)
        return settings, description

    def _described(
        self, table: str, parents: Mapping[str, Mapping] | None = None
    ) -> tuple[Settings, Description]:
        """The same, with the epsilon of all tables."""
        link, tree = self.tree.above(table), self.tree
        if parents is None:
            parents = {} if link is None else self.carried(link.parent)
        return asked(
            {
                **self.columns[table],
                **tree.numbers(table),
                **tree.joined(table, parents),
                **self._time(table),
            },
            self.epsilon,
            self.delta,
            adjacency="add_remove",
            people=People(tree.root_key, self.most, weighed=True),
            constraints=self.constraints.get(table, ()),
            **self.told,
        )

    def _time(self, table: str) -> dict[str, Mapping]:
        """What is declared of how long ago the row before was, of a table in order."""
        link, clocks = self.tree.above(table), self.clocks(table)
        if link is None or link.since is None or not clocks:
            return {}
        return {link.since: {"sdtype": "numerical", **words_of(time_facts(clocks[0]))}}

    def clocks(self, table: str) -> tuple[Column, ...]:
        """The column by which a table is in order, if it is, and the parent's where that begins."""
        link = self.tree.above(table)
        if link is None or link.order is None:
            return ()
        clock = column_of(link.order, self._alone(table).stated[link.order])
        if link.start is None:
            return (clock,)
        return clock, read_by(clock, link.start, self._alone(link.parent).facts[link.start])

    def _alone(self, table: str) -> Description:
        """The description of a table's own columns."""
        link, key = self.tree.above(table), self.tree.key_of(table)
        kinds, others = require_sdtypes(self.columns[table], (*MODELLED, "id"))
        keys = {name: {"sdtype": "id"} for name in (key, link and link.key) if name}
        return Description.of(
            {**kinds, **keys},
            {name: facts for name, facts in others.items() if kinds[name]["sdtype"] != "id"},
            keys=() if key is None else (key,),
        )

    def carried(self, table: str) -> dict[str, Mapping]:
        """What is declared of all modelled columns that rows hand down to their children."""
        own = {
            name: {n: facts for n, facts in each.items() if not _is_key(facts)}
            for name, each in self.columns.items()
        }
        return self.tree.carried(table, own)

    def given(self, table: str) -> tuple[str, ...]:
        """The columns of a table of which fits of other tables ask, if it has others, too."""
        link = self.tree.above(table)
        if link is None or not (self.modelled(table) or self.tree.numbers(table) or link.order):
            return ()
        return tuple(self.tree.joined(table, self.carried(link.parent)))

    def require(self) -> None:
        """Raises ``ValueError`` for what no fit can ask of some table, before one is opened."""
        for table in self.tree.tables:
            self.asked(table)

    @property
    def absurd(self) -> list[str]:
        """Sentences on an epsilon or a delta that promises next to nothing."""
        settings, _ = self.asked(self.tree.root)
        return replace(settings, epsilon=self.epsilon).absurd

    @property
    def told_before(self) -> list[str]:
        """Sentences on columns whose names are those of ids or dates, by table."""
        found = []
        for table in self.tree.tables:
            facts = self._described(table)[1].facts
            own = {name: facts[name] for name in self.modelled(table)}
            found += [f"{table}: {said}" for said in on_names(own, says_whose=True)]
        return found

    @property
    def siblings(self) -> dict[str, int]:
        """The tables of which pairs of siblings are asked for, and of how many of each parent."""
        found = {name: self.tree.most_siblings(name, MOST) for name in self.tree.tables}
        return {name: most for name, most in found.items() if most and self.modelled(name)}

    def modelled(self, table: str) -> list[str]:
        """The modelled columns of a table itself."""
        return [name for name, facts in self.columns[table].items() if not _is_key(facts)]

    @property
    def most(self) -> int:
        """The most rows of a family, of a table or of pairs of siblings."""
        rows = [self.tree.most_of(name) for name in self.tree.tables]
        pairs = [
            self.tree.most_of(name) // link.max_children * each * (each - 1)
            for name, each in self.siblings.items()
            if (link := self.tree.above(name)) is not None
        ]
        return max([*rows, *pairs])

    @property
    def shares(self) -> dict[str, Fraction]:
        """The part of the budget of each table."""
        parts = {n: Fraction(1) if self.tree.above(n) else _ROOT for n in self.tree.tables}
        whole = sum(parts.values()) + _SIBLINGS * len(self.siblings)
        return {name: part / whole for name, part in parts.items()}

    @property
    def for_siblings(self) -> Fraction:
        """The part of the budget of each table's pairs of siblings."""
        number = len(self.siblings)
        return (1 - sum(self.shares.values(), Fraction(0))) / max(number, 1)

    @property
    def ledger(self) -> PrivacyLedger:
        """The empty ledger of all tables."""
        return PrivacyLedger.open(
            self.epsilon,
            self.delta,
            Adjacency.ADD_REMOVE,
            self.most,
            reserved=sum(self._reserved.values(), Fraction(0)),
            people=self.tree.root_key,
            weighed=True,
            family=self.tree.tables,
        )

    def part(self, share: Fraction, reserved: Fraction = Fraction(0)) -> PrivacyLedger:
        """The empty ledger of a part of the budget, and of delta for a table's thresholds."""
        whole = self.ledger
        left = float(Fraction(self.delta) - reserved)
        budget = whole.budget * share
        return replace(whole, budget=budget, reserved=reserved, epsilon=epsilon_of(budget, left))

    def part_of(self, table: str) -> PrivacyLedger:
        """The empty ledger of a table."""
        return self.part(self.shares[table], self._reserved[table])

    @cached_property
    def _reserved(self) -> dict[str, Fraction]:
        """The part of delta that is kept for the thresholds of each table, half of it in all."""
        found = {}
        for table in self.tree.tables:
            _, description = self._described(table)
            found[table] = reserved_delta(description.undeclared, self.delta)
        most = Fraction(self.delta) / 2
        times = min(most / (sum(found.values()) or most), Fraction(1))
        return {table: kept * times for table, kept in found.items()}

    def opened(self, tables: Mapping[str, Any]) -> tuple[dict, dict]:
        """The tables with what is added to them, and their pairs of siblings. No row is read."""
        if set(tables) != set(self.tree.tables):
            raise ValueError(
                f"The links are of the tables {sorted(self.tree.tables)!r}, got "
                f"{sorted(map(str, tables))!r}."
            )
        private = {
            table: opened(tables[table], self._alone(table), None) for table in self.tree.tables
        }
        read = {table: self.modelled(table) for table in self.tree.tables}
        clocks = {table: self.clocks(table) for table in self.tree.tables}
        return PrivateTable.together(private, self.tree, read, self.siblings, self.most, clocks)

    def let_pass(self, table: str, names: Collection[str]) -> tuple[str, ...]:
        """The columns for which the fit of a table does not stop: what links add, and these.

        Raises ``ValueError`` for names of no column.
        """
        settings, description = self.asked(table)
        del settings
        own = self.modelled(table)
        named = checked_lost(names, description)
        return (*named, *(name for name in description.modelled if name not in own))

    def output(self, table: str) -> list[str]:
        """The names of a table's columns, as rows have them."""
        link, own = self.tree.above(table), list(self.columns[table])
        key = None if link is None else link.key
        place = 1 if self.tree.key_of(table) else 0
        return [*own[:place], *([] if key is None or key in own else [key]), *own[place:]]


def fit_tables(
    tables: Mapping[str, Any],
    columns: Mapping[str, Mapping[str, Mapping]],
    relationships: Link | Iterable[Link],
    epsilon: float,
    delta: float,
    *,
    discovery_share: float = 0.2,
    method: Method | str = "privpgd",
    constraints: Mapping[str, Sequence[Constraint]] = MappingProxyType({}),
    allow_lost: Mapping[str, Collection[str]] = MappingProxyType({}),
    seed: int = 0,
    progress: Progress = silent,
) -> FittedTables:
    """Fits differentially private models to tables that belong together, without SDV.

    Privacy: what is returned, warned or raised is (epsilon, delta)-differentially private for one
    row of the root table with all rows that lead to it: whether they are there. At most
    ``max_children`` rows are used of each link and parent. A row that leads nowhere is left out,
    and so is a row of the root whose key is missing or that other rows have, too.

    Args:
        tables: The private tables by name, each as ``fit_table`` takes it.
        columns: What is public of each table's columns, as ``fit_table`` takes it. Columns of keys
            may be left out, or declared as ``Key()``.
        relationships: A ``Link``, or several that make a tree. Its root is what is protected: the
            table of households, patients or accounts.
        epsilon: What all tables together may spend.
        delta: Choose it far below 1 / (number of rows of the root).
        discovery_share: Part of the budget, at most, for what is not declared.
        method: As ``fit_table`` takes it, for each table.
        constraints: What all rows of a table will meet, by table, as ``fit_table`` takes it.
        allow_lost: By table, columns for which the fit does not stop, whatever it would lose.
        seed: Of engines and rows, never of the noise.
        progress: Told of the steps.

    Raises:
        ValueError: For settings, links and declarations that cannot be meant, and for columns that
            are missing, before a row is read.
        ColumnsLostError: A ``ValueError``, for columns that noise would hide.
        DomainMismatchError: If a column's cells are not as declared, or no categories are found. A
            note says what was spent: name the column in ``allow_lost`` if that is how it is.
        SourceError: If rows cannot be read.

    >>> import pandas as pd
    >>> from sdv_privpgd import Boolean, Link
    >>> shops = pd.DataFrame({"shop": range(900), "open": [True, False, True] * 300})
    >>> sales = pd.DataFrame({"shop": [*range(900)] * 2, "big": [True, False] * 900})
    >>> declared = {"shops": {"open": Boolean()}, "sales": {"big": Boolean()}}
    >>> link = Link("shops", "sales", "shop", max_children=3)
    >>> fitted = fit_tables({"shops": shops, "sales": sales}, declared, link, 5.0, 1e-6)
    >>> fitted.ledger.spent() <= 5.0
    True
    >>> fitted.sample(50)["shops"].shape
    (50, 2)
    """
    told = Asked.of(
        columns,
        relationships,
        epsilon,
        delta,
        constraints,
        discovery_share=discovery_share,
        method=method,
        seed=seed,
    )
    for sentence in told.absurd:
        warnings.warn(sentence, stacklevel=2)
    fitted = RunningTables.of(told, tables, allow_lost).run(progress)
    if fitted.warnings:
        warnings.warn(in_one(fitted.warnings), stacklevel=2)
    return fitted


@dataclass(frozen=True, kw_only=True, eq=False)
class GivenTables:
    """What a table's rows have of their parents, as the models of these say. Public.

    Attributes:
        cells: The columns of parents, with a row for each child.
        weights: What each child counts as.
        total: How many families have children.
        error: The standard deviation of a share that is 1 / number of cells, times its root.
    """

    cells: Mapping[str, pd.Series]
    weights: np.ndarray
    total: float
    error: float

    @classmethod
    def of(cls, fitted: FittedTables, link: Link) -> "GivenTables":
        """Those of a table below tables that are fitted: of about as many families as there are."""
        num_rows = max(fitted.tables[fitted.tree.root].num_rows or 0, 0)
        number = min(max(num_rows, 1), _AT_ONCE)
        made, families = fitted.families_so_far(number, -1)
        fitted.reset_sampling()
        family = families[link.parent]
        above, numbers = fitted.above(link, made[link.parent], family)
        whose = np.repeat(np.arange(len(numbers)), numbers)
        cells = {name: own.take(whose).reset_index(drop=True) for name, own in above.items()}
        if link.place is not None:
            first = np.cumsum(numbers) - numbers
            cells[link.place] = pd.Series(np.arange(len(whose)) - first[whose] + 1)
        sizes = np.bincount(family, weights=numbers, minlength=1)
        weights = 1 / sizes[family][whose]
        total = num_rows * weights.sum() / number
        return cls(cells=cells, weights=weights, total=total, error=total / number**0.5)

    def __call__(self, schema: Schema) -> list[Measurement]:
        """The tables of all such columns and pairs of them in codes of a schema, in counts."""
        columns = [each for each in schema.attributes if each.name in self.cells]
        codes = {each.name: encoded_rows(each, self.cells[each.name]) for each in columns}
        found = []
        for degree in (1, 2):
            for own in combinations(columns, degree):
                shape = tuple(each.size for each in own)
                clique = tuple(each.name for each in own)
                at = np.ravel_multi_index([codes[name] for name in clique], shape)
                sums = np.bincount(at, weights=self.weights, minlength=math.prod(shape))
                counts = sums.reshape(shape) * self.total / max(sums.sum(), 1e-9)
                stddev = self.error / math.prod(shape) ** 0.5
                query = MarginalQuery(clique)
                found.append(Measurement(query=query, answer=counts, stddev=stddev))
        return found


@dataclass(kw_only=True, eq=False)
class RunningTables:
    """A fit of tables that is about to run, or did: it holds the books, however it ends.

    Attributes:
        told: What it is told.
        names: The tables, in the order in which they were given.
        private: The tables, which show nothing.
        pairs: The pairs of siblings of some of them.
        let_pass: The columns of each for which it does not stop.
        ledger: What was spent so far, on all tables. Public.
    """

    told: Asked
    names: Sequence[str]
    private: Mapping[str, PrivateTable]
    pairs: Mapping[str, PrivateTable]
    let_pass: Mapping[str, Collection[str]]
    ledger: PrivacyLedger

    @classmethod
    def of(
        cls,
        told: Asked,
        tables: Mapping[str, Any],
        allow_lost: Mapping[str, Collection[str]] = MappingProxyType({}),
    ) -> "RunningTables":
        """What ``fit_tables`` does, before a row is read: all is checked, and nothing is spent."""
        let_pass = {
            name: told.let_pass(name, allow_lost.get(name, ())) for name in told.tree.tables
        }
        for sentence in told.told_before:
            warnings.warn(sentence, stacklevel=3)
        private, pairs = told.opened(tables)
        return cls(
            told=told,
            names=list(tables),
            private=private,
            pairs=pairs,
            let_pass=let_pass,
            ledger=told.ledger,
        )

    def run(self, progress: Progress = silent) -> FittedTables:
        """Asks about all tables, and makes the models. Errors say what was spent."""
        told, fitted = self.told, {}
        answers: dict[str, Sequence[Measurement]] = {}
        siblings: dict[str, Siblings] = {}
        try:
            for table in told.tree.tables:
                fitted[table] = self._fitted(table, fitted, progress)
                if table in self.pairs:
                    answers[table], siblings[table] = self._asked_of_siblings(
                        table, fitted[table], progress
                    )
        except BaseException as error:
            if isinstance(error, DomainMismatchError):
                error.ledger = self.ledger
            spent = self.ledger.spent() if self.ledger.charges else 0.0
            note_on(error, f"The fit had spent epsilon {spent:.4g} of {told.epsilon:g}.")
            raise
        return self._so_far(fitted, siblings, answers)

    def _so_far(
        self,
        fitted: Mapping[str, FittedTable],
        siblings: Mapping[str, Siblings] = MappingProxyType({}),
        answers: Mapping[str, Sequence[Measurement]] = MappingProxyType({}),
    ) -> FittedTables:
        """What was fitted of these tables."""
        names = [name for name in self.names if name in fitted]
        return FittedTables(
            tables={name: fitted[name] for name in names},
            tree=self.told.tree,
            columns={name: self.told.output(name) for name in names},
            siblings=siblings,
            answers=answers,
            ledger=self.ledger,
            warnings=tuple(f"{name}: {said}" for name in names for said in fitted[name].warnings),
            date=date.today().isoformat(),
            seed=self.told.told.get("seed", 0),
        )

    def _fitted(
        self, table: str, above: Mapping[str, FittedTable], progress: Progress
    ) -> FittedTable:
        """The fit of a table, which is told what was found of its parent's columns."""
        told, private, link = self.told, self.private[table], self.told.tree.above(table)
        known = None
        if link is not None:
            found = above[link.parent].fitted.description
            known = {
                name: {"sdtype": found.facts[name].sdtype, **found.in_words[name]}
                for name in told.carried(link.parent)
            }
        settings, description = told.asked(table, known)
        timeless = frozenset(name for name in description.modelled if private.has_days(name))
        dtypes = private.dtypes_kept(description.columns, description.modelled, description.keys)
        description = replace(description, timeless=timeless, dtypes=dtypes)
        given = None
        if link is not None and description.given:
            given = GivenTables.of(self._so_far(above), link)
        fit = Fit(settings, description, begun=told.part_of(table), given=given)
        running = RunningFit(fit=fit, private=private, allow_lost=self.let_pass[table])
        try:
            return replace(running.run(progress, stops=True), name=table)
        finally:
            self._charge(running.ledger, table)

    def _asked_of_siblings(
        self, table: str, fitted: FittedTable, progress: Progress
    ) -> tuple[Sequence[Measurement], Siblings]:
        """How children of one parent go together, each two columns over a few groups of codes.

        Privacy: all that its part of the budget has. Each pair of children, in both orders, counts
        as 1 / the number of such pairs in the family: a table of them has sensitivity 1 for it.
        """
        names, schema, release = (
            self.told.tree.paired(table, self.told.modelled(table)),
            fitted.fitted.schema,
            fitted.fitted.release,
        )
        assert release is not None
        own = {each.name: each for each in schema.columns}
        both = [replace(own[name], name=of(name)) for of in (str, sibling) for name in names]
        groups = {
            name: equal_groups(np.asarray(release.model.marginal((name,)), dtype=float), _GROUPS)
            for name in names
        }
        grouping = Grouping.of({of(name): groups[name] for of in (str, sibling) for name in names})
        named: dict[Clique, tuple[str, str]] = {
            (a, sibling(b)): (a, b) for place, a in enumerate(names) for b in names[place:]
        }
        books = Books(self.told.part(self.told.for_siblings))
        try:
            curator = self.pairs[table].curator(Schema(tuple(both)), books, progress=progress)
            answers = curator.measure(
                [GroupedMarginalQuery(clique, grouping) for clique in named],
                books.ledger.remaining,
                what="pairs of siblings, in groups",
                progress=progress,
            )
        finally:
            self._charge(books.ledger, table)
        tables = over_groups(consistent_tables(curator.domain, answers), grouping)
        found = {}
        for clique, counts in denoised(tables, progress, "compare").tables.items():
            a, b = named[clique]
            shares = np.maximum(counts + counts.T if a == b else counts, 0)
            found[a, b] = shares / max(float(shares.sum()), 1e-9)
        most = self.told.siblings[table]
        return answers, Siblings(grouping=Grouping.of(groups), tables=found, most=most)

    def _charge(self, part: PrivacyLedger, table: str) -> None:
        """Puts what was spent on a table on the ledger of all."""
        own = (replace(each, what=f"{table}: {each.what}") for each in part.charges)
        self.ledger = replace(self.ledger, charges=(*self.ledger.charges, *own))


def plan_tables(
    columns: Mapping[str, Mapping[str, Mapping]],
    relationships: Link | Iterable[Link],
    epsilon: float,
    delta: float,
    *,
    num_rows: int,
    constraints: Mapping[str, Sequence[Constraint]] = MappingProxyType({}),
    discovery_share: float = 0.2,
    **others: Any,
) -> Report:
    """Returns what ``fit_tables`` would ask of each table, and how large its errors would be.

    Public: no table is read and nothing is spent. Rows are families: each counts as one.

    Args:
        columns: As ``fit_tables`` takes them.
        relationships: As ``fit_tables`` takes them.
        epsilon: What all tables together may spend.
        delta: At this delta.
        num_rows: How many rows the root has, about.
        constraints: As ``fit_tables`` takes them.
        discovery_share: As ``fit_tables`` takes it.
        others: Other arguments of ``fit_tables``.

    >>> from sdv_privpgd import Boolean, Link, plan_tables
    >>> declared = {"shops": {"open": Boolean()}, "sales": {"big": Boolean()}}
    >>> link = Link("shops", "sales", "shop", max_children=3)
    >>> plan = plan_tables(declared, link, 1.0, 1e-6, num_rows=5_000)
    >>> sorted(plan.to_dict()["tables"])
    ['sales', 'shops']
    """
    told = Asked.of(
        columns,
        relationships,
        epsilon,
        delta,
        constraints,
        discovery_share=discovery_share,
        **others,
    )
    return planned_tables(told, num_rows)


def planned_tables(told: Asked, num_rows: int) -> Report:
    """What a fit of tables with so many rows of the root would ask. Public."""
    plans = {table: planned(*told.asked(table), num_rows) for table in told.tree.tables}
    shares = {**told.shares, **{f"siblings of {n}": told.for_siblings for n in told.siblings}}
    return plans_report(plans, told.tree, told.ledger, shares, num_rows)


def _require_order(
    link: Link, columns: Mapping[str, Mapping], parents: Mapping[str, Mapping]
) -> None:
    """Raises ``ValueError`` unless a column by which rows are in order has a declared range."""
    if link.order is None:
        return
    facts = columns.get(link.order, {})
    kind = _sdtype(facts)
    if link.start is not None and _sdtype(parents.get(link.start, {})) != kind:
        raise ValueError(
            f"Link.start names {link.start!r}, which must be a column of {link.parent!r} with "
            f"the sdtype of {link.order!r}, {kind!r}."
        )
    if kind not in ("numerical", "datetime") or None in map(facts.get, ("range_min", "range_max")):
        raise ValueError(
            f"Link.order names {link.order!r}, which must be a column of numbers or dates of "
            f"{link.child!r} with a declared range."
        )


def _is_key(facts: Any) -> bool:
    return isinstance(facts, Mapping) and _sdtype(facts) == "id"


def _sdtype(facts: Mapping) -> Any:
    return getattr(facts, "sdtype", None) or facts.get("sdtype")
