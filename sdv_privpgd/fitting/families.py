"""Fitted tables that belong together: their rows, answers and report. All of it is public."""

import math
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from sdv_privpgd.base.arguments import check_choice, check_integer, check_known, check_positive
from sdv_privpgd.base.domain import table_of
from sdv_privpgd.columns.links import Link, Tree
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.fitting.family_answers import (
    accepted_tables,
    by_families,
    by_rows,
    of_holding,
    regression_of,
)
from sdv_privpgd.fitting.fitted_table import FittedTable
from sdv_privpgd.fitting.model_rows import SavedModel
from sdv_privpgd.fitting.tables_settings import check_by_table
from sdv_privpgd.inference.acceptance import Acceptance, Criterion
from sdv_privpgd.inference.regression import Regression
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import MarginalQuery, Measurement
from sdv_privpgd.report.page import Report
from sdv_privpgd.report.release import linked_report
from sdv_privpgd.sampling.conditions import as_conditions, at_most
from sdv_privpgd.sampling.families import NOT_ASKED, Siblings, children_of, starts_of, with_parents
from sdv_privpgd.sampling.sampler import MOVING, encoded_rows

AT_ONCE = 20_000
"""Families that are made at a time, for memory: with 2,000 to 40,000 of them errors of siblings in
the survey are the same, .048 (means of three fits), and so is the time."""

_Made: TypeAlias = tuple[dict[str, pd.DataFrame], dict[str, np.ndarray]]


@dataclass(frozen=True, kw_only=True, repr=False)
class FittedTables(SavedModel):
    """Differentially private models of tables that belong together. All that it shows is public.

    Attributes:
        tables: What was fitted of each table, with the columns that links add to its rows.
        tree: How the tables belong together.
        columns: The columns of each table, as rows have them.
        siblings: How children of one parent go together, of tables of which it was asked.
        answers: The noisy answers on that.
        numbers: By table what its rows are numbered from, of each parent, if they are.
        ledger: What was spent on all tables.
        warnings: What is worth a look before the rows are used, a sentence each.
        date: When they were fitted.
        seed: Of the rows.

    >>> import pandas as pd
    >>> from sdv_privpgd import Boolean, Link, fit_tables
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
    numbers: Mapping[str, int]
    ledger: PrivacyLedger
    warnings: tuple[str, ...]
    date: str
    seed: int = 0
    _drawn: list[int] = field(default_factory=lambda: [0])

    def __post_init__(self) -> None:
        """Each table says what was spent on all of them: they are about the same families."""
        own = {name: replace(each, ledger=self.ledger) for name, each in self.tables.items()}
        object.__setattr__(self, "tables", own)

    def __getattr__(self, name: str) -> Any:
        """Raises ``AttributeError``: it says where that is, if one table has it."""
        said = f"FittedTables has no {name!r}."
        if name == "add_budget":
            said += " Fit the tables once more: what both fits have spent adds up."
        elif not name.startswith("_") and hasattr(FittedTable, name):
            said += f" One table has it, such as tables[{self.tree.root!r}].{name}."
        raise AttributeError(said)

    def __repr__(self) -> str:
        """What matters of them in a line."""
        return (
            f"FittedTables({', '.join(self.tables)}; epsilon {self.ledger.spent():.4g} at delta "
            f"{self.ledger.delta:g} for {self.ledger.unit}; {len(self.warnings)} warnings)"
        )

    @property
    def num_rows(self) -> dict[str, int]:
        """How many rows each table has, by noisy answers: those of families that were read."""
        root = self.tree.root
        found: dict[str, float] = {root: max(self.tables[root].num_rows or 0, 0)}
        for link in map(self.tree.above, self.tree.tables[1:]):
            assert link is not None
            sampler, grand = self.tables[link.parent].fitted.sampler, self.tree.above(link.parent)
            assert sampler is not None
            rows, weights = sampler.first(AT_ONCE), None
            if grand is not None:  # a row counts the less the more of them a parent has
                weights = np.maximum(rows[grand.above(grand.number)].to_numpy(float), 1)
            each = np.average(rows[link.number].to_numpy(float), weights=weights)
            found[link.child] = found[link.parent] * each
        return {name: round(found[name]) for name in self.tables}

    def discovered_domain(self) -> dict[str, dict[str, dict]]:
        """Returns by table what was declared and what was found, as ``fit_tables`` takes it.

        Given to another fit, nothing has to be found again. Keys are not in it.
        """
        found = {name: each.discovered_domain() for name, each in self.tables.items()}
        return {n: {c: own[c] for c in self.columns[n] if c in own} for n, own in found.items()}

    def sample(
        self,
        num_rows: int | None = None,
        *,
        scale: float | None = None,
        where: Mapping[str, Any] | None = None,
    ) -> dict[str, pd.DataFrame]:
        """Returns the next synthetic families, a table each, at no cost.

        Each row leads to a row that is there. The same calls give the same rows.

        Args:
            num_rows: How many rows of the root; by default as many as were fitted.
            scale: How many times as many.
            where: What all rows of the root have, as ``FittedTable.sample`` takes it: those that
                lead to them are as the model has them then.

        Raises:
            ValueError: For both, for what is no number of rows, for columns that the root does not
                have, and for values that none of its rows can have.
        """
        if num_rows is not None and scale is not None:
            raise ValueError("Give num_rows, the rows of the root, or scale, and not both.")
        if num_rows is None:
            times = 1.0 if scale is None else check_positive("scale", scale)
            num_rows = round(self.num_rows[self.tree.root] * times)
        num_rows = check_integer("num_rows", num_rows, least=0)
        parts, where = [], self._asked_of_root(where)
        with MOVING:
            for start in range(0, max(num_rows, 1), AT_ONCE):
                number = min(AT_ONCE, num_rows - start)
                made, _ = self.families_so_far(number, self._drawn[0], where)
                named = {n: [c for c in self.columns[n] if c in own] for n, own in made.items()}
                parts.append({n: made[n][names] for n, names in named.items()})
                self._drawn[0] += 1
        return {
            name: pd.concat([e[name] for e in parts], ignore_index=True) for name in self.tables
        }

    def _asked_of_root(self, where: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """Conditions on rows of the root. What says how many children there are is asked of both.

        Raises ``ValueError`` for columns that the root does not have.
        """
        root, found = self.tree.root, dict(as_conditions(where))
        known = [each.name for each in self.tables[root].fitted.schema.columns]
        check_known("where", found, known, f"modelled columns of {root!r}")
        for link in self.tree.below(root):
            if link.count in found:
                found[link.number] = at_most(found[link.count], link.max_children)
        return found

    def evaluate(
        self, real_data: Mapping[str, pd.DataFrame], *, path: str | Path | None = None
    ) -> Report:
        """Compares synthetic families with the real tables. Not private.

        No budget covers the page, what is returned, or settings that are chosen by them. Each table
        is compared with what its rows lead to, and with the number of rows that lead to them. Where
        ``sample`` goes on does not change.

        Args:
            real_data: The real tables, of which the rows are compared that a fit may use.
            path: Where to write the page as well. Nothing is written without one.

        Raises:
            ValueError: If a table or a modelled column is missing.
        """
        # Imported late: only this comparison needs scikit-learn and SDMetrics.
        from sdv_privpgd.report.evaluation import compare_tables

        real_data = self._all_of("real tables", real_data)
        number = min(max(len(real_data[self.tree.root]), 1), AT_ONCE)
        made, _ = self.first_families(number)
        about = {n: (e.fitted.schema, e.fitted.description.facts) for n, e in self.tables.items()}
        return compare_tables(about, self.tree, real_data, made).saved(path)

    def reset_sampling(self) -> None:
        """Starts the sequence of families again."""
        self._drawn[0] = 0
        for each in self.tables.values():
            each.reset_sampling()

    def answer(
        self,
        what: str,
        table: str | None = None,
        *,
        each: str = "row",
        of: Any = None,
        where: Mapping[str, Any] | None = None,
        among: Mapping[str, Any] | None = None,
        holding: Mapping[str, Mapping[str, Any]] | None = None,
        **others: Any,
    ) -> Any:
        """An answer about a table, and how sure it is, as ``FittedTable.answer`` gives it. Free.

        Rows know what the row has that they lead to: as ``"households.rents"``, say. What the
        noisy tables do not determine is the model's, and says so. Intervals of the population know
        that families are drawn, whose rows may be alike.

        Args:
            what: ``"count"``, ``"share"``, ``"mean"`` or ``"sum"``; of families and of the root
                also what else ``FittedTable.answer`` takes.
            table: The table; by default the root.
            each: What counts as one: a ``"row"`` of the table, or a ``"family"``, with the mean of
                its rows.
            of: As ``FittedTable.answer`` takes it.
            where: What rows must meet, as ``FittedTable.answer`` takes it.
            among: The rows that a share is among.
            holding: By table below it, what a row of the root must hold a row with:
                ``holding={"persons": {"age": Between(0, 17)}}``, or ``{}`` for any, of a count or a
                share. Intervals hold in any case; of at most two rows tables tell the number.
            others: Other arguments of ``FittedTable.answer``.

        Raises:
            ValueError: For what cannot be asked.
        """
        name = self.tree.root if table is None else table
        check_known("table", [name], self.tables, "tables")
        check_choice("each", each, ("row", "family"))
        how: dict[str, Any] = {"where": where, "among": among}
        if holding is not None:
            if name != self.tree.root or of is not None or others:
                raise ValueError("holding= goes with the root, where= and among= alone.")
            return of_holding(self, what, holding, **how)
        asked = by_rows if each == "row" and name != self.tree.root else by_families
        return asked(self, name, what, of=of, **how, **others)

    def regression(
        self, outcome: str, on: str | Sequence[Any], table: str | None = None, **how: Any
    ) -> Regression:
        """A regression of a table, in which each family counts as one. Public, and free.

        It is that of ``FittedTable.regression``. Of rows that lead to others a family counts as the
        mean of its rows, and they know what they lead to: ``on=["age", "homes.rents"]``. Two
        columns of parents are not asked together beside their children: take a regression of the
        table that has them.

        Args:
            outcome: A column of the table.
            on: The columns that predict.
            table: The table; by default the root.
            how: Other arguments of ``FittedTable.regression``.

        Raises:
            ValueError: For what cannot be regressed.
        """
        name = self.tree.root if table is None else table
        check_known("table", [name], self.tables, "tables")
        return regression_of(self, name, outcome, on, **how)

    def accept(
        self,
        criteria: Mapping[str, Sequence[Criterion]],
        rows: Mapping[str, pd.DataFrame] | None = None,
        *,
        level: float = 0.95,
    ) -> Acceptance:
        """Whether rows meet criteria that were fixed before the fit. Public, and free.

        They are told as ``FittedTable.accept`` tells them, and each row of a table counts as one.

        Args:
            criteria: By table a list of ``Criterion``; coefficients are of the root alone. Rows
                know what they lead to: ``where={"homes.rents": True}``.
            rows: All tables that are to be handed on, as ``sample`` gives them; by default the
                first families of the sequence, as many as the root has rows, or 20,000.
            level: The confidence of each verdict.

        Raises:
            ValueError: For what is no criterion of a table, and for questions that cannot be asked.
        """
        check_by_table("criteria", criteria, self.tree)
        if rows is None:
            rows, _ = self.first_families(min(max(self.num_rows[self.tree.root], 1), AT_ONCE))
        else:
            rows = with_parents(self.tree, self._all_of("rows", rows))
        return accepted_tables(self, criteria, rows, level)

    def _all_of(self, what: str, given: Mapping[str, pd.DataFrame]) -> Mapping[str, pd.DataFrame]:
        """The same tables. Raises ``ValueError`` unless they are those that were fitted."""
        if set(given) != set(self.tables):
            raise ValueError(
                f"The {what} are to be {sorted(self.tables)!r}, got {sorted(given)!r}."
            )
        return given

    def report(self, path: str | Path | None = None) -> Report:
        """What was spent and how well the rows of each table fit, as text, page and numbers.

        Args:
            path: Where to save it as well, as ``Report.save`` takes it.
        """
        parts = [(each.fitted, each._about) for each in self.tables.values()]  # noqa: SLF001
        tables = {about.table: (own.release, own.schema, about) for own, about in parts}
        options: dict[str, Any] = {"date": self.date, "notes": self.warnings}
        return linked_report(tables, self.tree, self.ledger, self.num_rows, **options).saved(path)

    def privacy_report(self) -> str:
        """The text of ``report``: what was spent, on what and under which adjacency."""
        return str(self.report())

    def first_families(self, num_rows: int = AT_ONCE, place: int = 0) -> _Made:
        """The first rows of all tables, with what links add, and the number of each one's family.

        Keys are numbers, as a pattern may have too few. Where ``sample`` goes on does not change.
        """
        own = deepcopy(self)
        own.reset_sampling()
        for each in own.tables.values():
            each.fitted.keys.patterns = dict.fromkeys(each.fitted.keys.patterns)
        return own.families_so_far(num_rows, place)

    def families_so_far(
        self, num_rows: int, place: int, where: Mapping[str, Any] | None = None
    ) -> _Made:
        """Families of the tables that are fitted, with all that is known of rows; and whose.

        Rows of the root are those ``where`` they have something.
        """
        made: dict[str, pd.DataFrame] = {}
        family: dict[str, np.ndarray] = {}
        for number, name in enumerate(self.tree.tables):
            if name not in self.tables:
                continue
            fitted, link = self.tables[name].fitted, self.tree.above(name)
            sampler: Any = fitted.sampler
            if link is None:
                made[name] = self.tables[name].sample(num_rows, where=where)
                family[name] = np.arange(len(made[name]))
            else:
                seed = hash((self.seed, place, number)) & 0xFFFFFFFF
                above = made[link.parent], family[link.parent]
                made[name], family[name] = self._children(link, *above, seed)
                if link.numbered is not None:
                    rank = made[name].groupby(link.key).cumcount() + self.numbers[name]
                    made[name][link.numbered] = fitted.keys.written(link.numbered, rank.tolist())
            for each in self.tree.below(name):
                if each.count is not None:
                    own = made[name]
                    own[each.count], own[each.number] = sampler.counting(
                        own[each.count], own[each.number], each.max_children
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
        fitted, siblings = self.tables[link.child].fitted, self.siblings.get(link.child, NOT_ASKED)
        sampler: Any = fitted.sampler
        above, numbers = self.above(link, parents, family)
        if sampler is None:  # there are keys alone
            whose = np.repeat(np.arange(len(numbers)), numbers)
            keys = parents[str(link.parent_key)].take(whose).reset_index(drop=True)
            theirs = {n: own.take(whose).reset_index(drop=True) for n, own in above.items()}
            made = {**fitted.keys.take(len(whose)), link.key: keys, **theirs}
            return pd.DataFrame(made), family[whose]
        used = np.minimum(numbers, siblings.most)
        pairs, following_pairs = (
            np.bincount(family, weights=own, minlength=1)
            for own in (used * (used - 1), np.maximum(numbers - 1, 0))
        )
        names = [each.name for each in sampler.attributes]
        above = {name: own for name, own in above.items() if name in names}
        codes, positions, whose = children_of(
            sampler,
            link,
            above,
            numbers,
            (1 / np.maximum(pairs, 1)[family], 1 / np.maximum(following_pairs, 1)[family]),
            siblings,
            starts_of(link, sampler, self.tables[link.parent].fitted.schema.columns, parents),
            self.tree.in_family(link.child),
            seed,
        )
        theirs = {n: own.take(whose).reset_index(drop=True) for n, own in above.items()}
        if link.place is not None:
            theirs[link.place] = pd.Series(whose).groupby(whose).cumcount() + 1
        generator = np.random.default_rng((seed, 1))
        clock = [] if link.order is None else [link.order]  # who follows whom stays, if it can
        codes, positions, obeys = sampler.with_known(codes, positions, theirs, clock, generator)
        kept = np.flatnonzero(obeys)
        if link.order is not None:
            at = names.index(link.order)
            kept = kept[np.lexsort((positions[kept, at], codes[kept, at], whose[kept]))]
        codes, positions, whose = codes[kept], positions[kept], whose[kept]
        columns = {**fitted.keys.take(len(whose)), **sampler.decoded(codes, positions)}
        columns |= {n: own.take(kept).reset_index(drop=True) for n, own in theirs.items()}
        columns[link.key] = parents[str(link.parent_key)].take(whose).reset_index(drop=True)
        return pd.DataFrame(columns), family[whose]


def given_tables(
    fitted: FittedTables, link: Link, most: int
) -> Callable[[Schema], list[Measurement]]:
    """Returns what makes tables of all columns of parents and of pairs of them, by a schema.

    They have what rows below the fitted tables have of their parents: in as many families as there
    are, or ``most``.
    """
    num_rows = max(fitted.tables[fitted.tree.root].num_rows or 0, 0)
    number = min(max(num_rows, 1), most)
    made, families = fitted.first_families(number, -1)
    family = families[link.parent]
    above, numbers = fitted.above(link, made[link.parent], family)
    whose = np.repeat(np.arange(len(numbers)), numbers)
    cells = {name: own.take(whose).reset_index(drop=True) for name, own in above.items()}
    if link.place is not None:
        first = np.cumsum(numbers) - numbers
        cells[link.place] = pd.Series(np.arange(len(whose)) - first[whose] + 1)
    weights = 1 / np.bincount(family, weights=numbers, minlength=1)[family][whose]
    total = num_rows * weights.sum() / number  # of families that have children

    def tables(schema: Schema) -> list[Measurement]:
        columns = [each for each in schema.attributes if each.name in cells]
        codes = {each.name: encoded_rows(each, cells[each.name]) for each in columns}
        found = []
        for own in (*combinations(columns, 1), *combinations(columns, 2)):
            shape = tuple(each.size for each in own)
            clique = tuple(each.name for each in own)
            sums = table_of([codes[name] for name in clique], shape, weights)
            counts = sums * total / max(sums.sum(), 1e-9)
            stddev = total / (number * math.prod(shape)) ** 0.5  # of a mean count
            found.append(Measurement(query=MarginalQuery(clique), answer=counts, stddev=stddev))
        return found

    return tables
