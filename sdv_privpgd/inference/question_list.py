"""Questions that are listed before a fit: the borders of cells, and the tables of each. Public.

A listed question has a table of its own: over the groups of codes that it tells apart, so over few
cells, and over the codes of a column whose mean, quantile or counts it asks for. Codes begin where
its conditions do, so none is cut. Questions never see a row.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from sdv_privpgd.base.arguments import check_choice, check_known, shown
from sdv_privpgd.base.domain import Grouping
from sdv_privpgd.columns.bins import Merging, Reals
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.cuts import USUAL_BINS
from sdv_privpgd.inference.conditions import code_values, condition_shares, ticks_of
from sdv_privpgd.inference.linear import Product
from sdv_privpgd.inference.questions import ARGUMENTS, parse_question
from sdv_privpgd.privacy.queries import GroupedMarginalQuery, MarginalQuery
from sdv_privpgd.sampling.conditions import Between, span

Where = Mapping[str, Any] | None

COEFFICIENT, UNIQUE = "coefficient", "unique"

MEANS = ("mean", "sum")
"""What has a second table, of how many rows lie far out: a few there may count as much as all."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """What a table will be asked, said before the fit. Public.

    Attributes:
        what: As ``answer`` takes it, or ``"coefficient"``, for those of a regression.
        of: The column of a mean, a sum or a quantile, those of a table; the outcome of a
            regression.
        where: The rows that it is about, as ``answer`` takes it.
        among: The rows that a share is among.
        minus: Another group, whose share or mean is subtracted: what is said of it takes the place
            of ``among`` for shares, and of ``where`` for means. So dependence has a size.
        on: The columns that predict, as ``regression`` takes them.
        kind: Of the regression.
        event: Of the regression.
        q: Of a quantile.

    >>> Question(what="mean", of="cost", where={"ward": "B"}).columns
    ('cost', 'ward')
    """

    what: str
    of: str | Sequence[str] | None = None
    where: Where = None
    among: Where = None
    minus: Where = None
    on: str | Sequence[str | tuple[str, str]] = ()
    kind: str = "linear"
    event: Any = None
    q: float | None = None

    KINDS: ClassVar = (*ARGUMENTS, COEFFICIENT)

    def __post_init__(self) -> None:
        check_choice("what", self.what, self.KINDS)
        is_regression = self.what == COEFFICIENT
        if bool(self.on) is not is_regression or (is_regression and not isinstance(self.of, str)):
            raise ValueError("A coefficient has of= and on=, and nothing else has on=.")
        wrong = [each for _, each in self._said if not isinstance(each, Mapping)]
        if wrong:
            raise ValueError(
                f"Conditions are a dictionary of columns, as in {{'ward': 'B'}}, got {wrong[0]!r}."
            )

    @property
    def groups(self) -> list[dict[str, Any]]:
        """The rows that it is about, and those that are subtracted, as ``answer`` takes them.

        Neither a regression nor what is asked of synthetic rows alone has any.
        """
        if self.what in (COEFFICIENT, UNIQUE):
            return []
        found: list[dict[str, Any]] = [{"where": self.where, "among": self.among}]
        if self.minus is not None:
            other = "among" if self.what == "share" else "where"
            found.append({**found[0], other: self.minus})
        return found

    @property
    def _said(self) -> list[tuple[str, Any]]:
        said = {"where": self.where, "among": self.among, "minus": self.minus}
        return [(name, each) for name, each in said.items() if each is not None]

    @property
    def conditions(self) -> Iterator[tuple[str, Any]]:
        """Each column with what is asked of it."""
        for _, each in self._said:
            yield from ((str(name), condition) for name, condition in each.items())
        if self.event is not None:
            yield str(self.of), self.event

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it names, each once."""
        return tuple(dict.fromkeys([*self._about, *self._predictors, *dict(self.conditions)]))

    @property
    def _about(self) -> list[str]:
        return [self.of] if isinstance(self.of, str) else list(self.of or ())

    @property
    def _on(self) -> list[tuple[str, ...]]:
        """The predictors, and the pairs of them that interact."""
        given = [self.on] if isinstance(self.on, str) else self.on
        return [(each,) if isinstance(each, str) else each for each in given]

    @property
    def _predictors(self) -> list[str]:
        return [name for each in self._on for name in each]

    def numbers(self, columns: Mapping[str, Column]) -> dict[str, Product]:
        """The rows that it is about, in words: those of each group."""
        found = {}
        for group in self.groups:
            with suppress(ValueError):  # values that were not found
                asked = parse_question(columns, self.what, of=self.of, q=self.q, **group)
                found[asked.question] = asked.rows
        return found

    def tables(self, columns: Mapping[str, Column]) -> Iterator[dict[str, np.ndarray]]:
        """What it tells apart in each of its tables: columns of numbers of codes, by attribute.

        Raises ``ValueError`` for what cannot be asked of these columns.
        """
        if self.what == COEFFICIENT:
            for several in (each for each in self._on if len(each) > 1):
                yield {name: np.eye(columns[name].size) for name in (str(self.of), *several)}
            for pair in combinations(dict.fromkeys([*self._about, *self._predictors]), 2):
                yield {name: np.eye(columns[name].size) for name in pair}
        for group in self.groups:
            asked = parse_question(columns, self.what, of=self.of, q=self.q, **group)
            apart = {name: [weights] for name, weights in asked.rows.items()}
            for name, weights in asked.base.items():
                apart.setdefault(name, []).append(weights)
            found = {name: np.column_stack(each) for name, each in apart.items()}
            yield {**found, **{each.name: np.eye(each.size) for each in asked.columns}}
            if self.what in MEANS:
                (column,) = asked.columns
                if (far := _far(column)).any():
                    yield {**found, column.name: far[:, None]}


def listed_questions(questions: Any) -> tuple[Question, ...]:
    """Returns the questions. Raises ``ValueError`` for what are none."""
    found = tuple(questions) if isinstance(questions, list | tuple) else (questions,)
    for each in found:
        if not isinstance(each, Question):
            raise ValueError(
                "questions takes a list of Question, as of sdv_privpgd.inference, got "
                f"{shown(each)}."
            )
    return found


def require_questions(
    questions: Sequence[Question], names: Collection[str], known: Mapping[str, Column]
) -> None:
    """Raises ``ValueError`` for what cannot be asked, as far as columns are ``known``."""
    for each in questions:
        check_known("questions", each.columns, names)
        for name, condition in each.conditions:
            if name in known:
                condition_shares(known[name], condition)
        if set(each.columns) <= known.keys():
            _ = list(each.tables(known))


def values_asked(questions: Sequence[Question], name: str) -> list:
    """The values of a column that conditions name, but for missing ones."""
    found = []
    for condition in (
        condition for each in questions for own, condition in each.conditions if own == name
    ):
        found += condition if isinstance(condition, list | tuple | set | frozenset) else [condition]
    return [each for each in found if each is not None and not isinstance(each, Between)]


def with_borders(column: Column, questions: Sequence[Question]) -> Column:
    """The column, with codes that begin where conditions of the questions begin and end.

    That of a listed mean or sum has finer ones, where much lies in wide codes.
    """
    if any(each.what in MEANS and each.of == column.name for each in questions):
        column = _finer(column)
    for name, condition in (each for one in questions for each in one.conditions):
        if name == column.name:
            try:
                column = _bordered(column, condition)
            except ValueError:  # no value of a column whose values were found
                continue
    return column


def _finer(column: Column) -> Column:
    """The column with codes none of which carries much, as far as it is known where rows lie.

    Those far out are few, each four times as far as the one before, and the last one stays: what
    noise hides there counts more than how rows are spread.
    """
    most = column.num_values + USUAL_BINS
    if column.merging is not None:
        tail = code_values(column).tail(_masses(column.merging))
        column = column.cut([span(column, Between(low=each))[0] for each in tail])
    while column.merging is not None:
        heavy = code_values(column).heavy(_masses(column.merging))
        wide = np.flatnonzero(heavy & ~_far(column)[: column.num_values])
        cut = column.cut(column.at(wide, np.full(len(wide), 0.5)).tolist())
        if cut.num_values == column.num_values or cut.num_values > most:
            break
        column = cut
    return column


def _masses(merging: Merging) -> np.ndarray:
    """How often each code occurs, as far as that was found."""
    return np.bincount(merging.codes, weights=merging.frequencies)


def _far(column: Column) -> np.ndarray:
    """Which codes reach so far out that few rows in them could make a mean, bool."""
    found = np.zeros(column.size, dtype=bool)
    if column.merging is not None:
        found[: column.num_values] = code_values(column).outermost(_masses(column.merging))
    return found


def _bordered(column: Column, condition: Any) -> Column:
    if isinstance(condition, Between):
        low, high = span(column, condition)
        return column.cut([low, high if isinstance(column.cells, Reals) else high + 1])
    ticks, merging = ticks_of(column, condition), column.merging
    if column.is_ordered or merging is None:
        return column.cut([start for tick in ticks for start in (tick, tick + 1)])
    for tick in ticks:
        merging = merging.apart(int(tick))
    return replace(column, merging=merging)


def queries_for(
    questions: Sequence[Question], columns: Mapping[str, Column], others: Collection[str] = ()
) -> tuple[MarginalQuery | GroupedMarginalQuery, ...]:
    """The tables that answer the questions, and hold ``others`` among the columns as well.

    Those about values that were not found have none.
    Two tables of a clique are one, over the groups of both, if it has at most twice as many cells
    as each: sums over many cells would be noisier than what a second table costs.
    """
    found: list[dict[str, np.ndarray]] = []
    more = {name: np.eye(columns[name].size) for name in others}
    for each in questions:
        try:
            tables = [{**table, **more} for table in each.tables(columns)]
        except ValueError:
            continue
        for table in tables:
            own = {name: _groups(table[name]) for name in columns if name in table}
            for place, other in enumerate(found):
                if list(other) != list(own):
                    continue
                both = {name: _groups(np.column_stack([own[name], other[name]])) for name in own}
                if _cells(both) <= 2 * min(_cells(own), _cells(other)):
                    found[place] = both
                    break
            else:
                found.append(own)
    return tuple(_query(groups) for groups in found if groups)


def _groups(apart: np.ndarray) -> np.ndarray:
    """The group of each code: codes are in one if all numbers of theirs are equal."""
    return np.unique(apart, axis=0, return_inverse=True)[1].ravel()


def _cells(groups: Mapping[str, np.ndarray]) -> int:
    return math.prod(int(own.max()) + 1 for own in groups.values())


def _query(groups: Mapping[str, np.ndarray]) -> MarginalQuery | GroupedMarginalQuery:
    clique = tuple(groups)
    if _cells(groups) == math.prod(map(len, groups.values())):
        return MarginalQuery(clique)
    return GroupedMarginalQuery(clique, Grouping.of(groups))
