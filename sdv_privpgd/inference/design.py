"""The terms of a regression: functions of each column's codes. Public."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product as every_pair
from typing import Any

import numpy as np

from sdv_privpgd.base.arguments import check_choice, shown
from sdv_privpgd.columns.bins import Categories
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.labels import code_labels
from sdv_privpgd.inference.answers import written
from sdv_privpgd.inference.conditions import (
    as_users,
    code_values,
    column_named,
    condition_shares,
    not_missing,
    on_cut,
)
from sdv_privpgd.inference.linear import LinearEstimate, Product, times
from sdv_privpgd.synthesize.engine import Model

KINDS = ("linear", "logistic")
"""The kinds of regression."""


@dataclass(frozen=True, eq=False)
class Term:
    """One number of each row: a product of functions of columns' codes, 0 where a value is missing.

    The intercept is of no column. An interaction is the product of the terms in its ``parts``.
    """

    name: str
    product: Product
    parts: tuple[int, ...] = ()

    @property
    def column(self) -> str:
        """The column of a term of one column."""
        return next(iter(self.product), "")

    @property
    def values(self) -> np.ndarray:
        """The number of each of its codes."""
        return self.product[self.column]

    @property
    def is_category(self) -> bool:
        """Whether it is 1 for some rows and 0 for all others."""
        return all(set(np.unique(own)) <= {0.0, 1.0} for own in self.product.values())

    @property
    def is_compared(self) -> bool:
        """Whether it can be left out: a category that then counts with others, an interaction."""
        return bool(self.parts or (self.product and self.is_category))


@dataclass(frozen=True, kw_only=True, eq=False)
class Design:
    """What is regressed on what."""

    outcome: Term  # the outcome; of a logistic regression 0 or 1
    terms: tuple[Term, ...]  # the intercept, then the terms of the predictors
    valued: Mapping[str, np.ndarray]  # for each column, 1 for codes that are values
    missing: frozenset[str]  # the columns in which values are missing in some rows
    # For each categorical predictor, the value that its others are compared with.
    references: Mapping[str, str]
    notes: tuple[str, ...]  # what to keep in mind, a sentence each

    @property
    def present(self) -> dict[str, np.ndarray]:
        """For each column with missing values, 1 for codes that are values."""
        return {name: own for name, own in self.valued.items() if name in self.missing}

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that take part."""
        names = [self.outcome.column, *(name for term in self.terms for name in term.product)]
        return tuple(dict.fromkeys(names))


def design_of(
    columns: Mapping[str, Column],
    outcome: str,
    on: Sequence[str | tuple[str, str]],
    kind: str,
    *,
    held: Mapping[str, np.ndarray],
    event: Any = None,
    reference: Mapping[str, Any] | None = None,
) -> Design:
    """The design of a regression, as ``FittedTable.regression`` takes its arguments.

    ``held`` has the codes of each column that surely hold rows, where that is known. Raises
    ``ValueError`` for what cannot be regressed; the message says what can.
    """
    check_choice("kind", kind, KINDS)
    given = [on] if isinstance(on, str) else list(on)
    alone = [each for each in given if isinstance(each, str)]
    pairs = [each for each in given if not isinstance(each, str)]
    names = list(dict.fromkeys([*alone, *(name for pair in pairs for name in pair)]))
    reference = {} if reference is None else reference
    is_odd = any(len(set(pair)) != 2 for pair in pairs) or len(set(alone)) < len(alone)
    if not names or is_odd or len(set(map(frozenset, pairs))) < len(pairs) or outcome in names:
        raise ValueError(
            f"on= must name columns, each once and none of them the outcome, or pairs of two "
            f"columns for their interaction, got {shown(on)}."
        )
    unknown = [name for name in reference if name not in names]
    if unknown:
        raise ValueError(f"reference= names {unknown!r}, which are not in on=.")
    involved = {name: column_named(columns, name) for name in [outcome, *names]}
    missing = frozenset(
        name
        for name, column in involved.items()
        if column.nullable and held.get(name, np.zeros(column.size))[-1]
    )
    target = _outcome(involved[outcome], kind, event)
    terms, references = [Term("intercept", {})], {}
    for name in names:
        own, compared = _terms(involved[name], reference.get(name), held.get(name))
        if not own:
            raise ValueError(f"{name!r} has one value alone, which no other is compared with.")
        terms += own
        if compared is not None:
            references[name] = compared
    for pair in pairs:
        left, right = (
            [place for place, term in enumerate(terms) if tuple(term.product) == (name,)]
            for name in pair
        )
        terms += [_interaction(terms, parts) for parts in every_pair(left, right)]
    return Design(
        outcome=target,
        terms=tuple(terms),
        valued={name: not_missing(column) for name, column in involved.items()},
        missing=missing,
        references=references,
        notes=tuple(_notes(involved, event)),
    )


def _interaction(terms: Sequence[Term], parts: tuple[int, ...]) -> Term:
    """The product of two terms."""
    one, other = (terms[part] for part in parts)
    return Term(f"{one.name}:{other.name}", times(one.product, other.product), parts)


def _outcome(column: Column, kind: str, event: Any) -> Term:
    """The outcome as a number."""
    if event is not None:
        part = condition_shares(column, event)
        return Term(part.words, {column.name: part.weights * not_missing(column)})
    if column.sdtype == "boolean" and isinstance(column.cells, Categories):
        part = condition_shares(column, column.cells.values[1])
        return Term(part.words, {column.name: part.weights})
    numbers = numbers_of_codes(column)
    if kind == "logistic" or numbers is None:
        raise ValueError(
            f"The outcome {column.name!r} is {column.sdtype}: say which of its values count as 1, "
            "as in event='yes', event=['B', 'C'] or event=Between(low=50)."
        )
    return Term(column.name, {column.name: numbers})


def numbers_of_codes(column: Column) -> np.ndarray | None:
    """The number of each code, 0 for missing; ``None`` for a column that has no numbers.

    Numbers are the means of their cells, and dates days since the first one of their range. Ordered
    categories that are numbers are those.
    """
    if column.sdtype == "numerical":
        values = code_values(column).means
    elif column.sdtype == "ordinal" and isinstance(column.cells, Categories):
        if column.merging is not None:
            return None
        each = column.cells.values
        if any(isinstance(value, bool) or not isinstance(value, int | float) for value in each):
            return None
        values = np.array(each, dtype=np.float64)
    elif column.sdtype == "datetime":
        ticks = code_values(column)
        values = _days(column, ticks.means) - _days(column, ticks.lows[:1])
    else:
        return None
    return np.append(values, np.zeros(int(column.nullable)))


def _days(column: Column, ticks: np.ndarray) -> np.ndarray:
    """Days since 1970 of ticks, between whole ones as far as between their moments."""
    before = np.floor(ticks).astype(np.int64)
    first, then = (
        each.astype(f"M8[{column.unit}]").astype("M8[us]").astype(np.float64)
        for each in (before, before + 1)
    )
    return (first + (ticks - before) * (then - first)) / (24 * 3600 * 1e6)


def _terms(
    column: Column, reference: Any, held: np.ndarray | None
) -> tuple[list[Term], str | None]:
    """The terms of a predictor, and the value that they are compared with."""
    if column.sdtype in ("numerical", "datetime") and reference is not None:
        raise ValueError(f"{column.name!r} is {column.sdtype}: it has no reference.")
    numbers = numbers_of_codes(column)
    if numbers is not None and reference is None:
        return [Term(column.name, {column.name: numbers})], None
    labels, at = code_labels(column)[: column.num_values], 0
    if held is not None and held[: column.num_values].any():
        at = int(np.argmax(held[: column.num_values]))
    if reference is not None:
        weights = condition_shares(column, reference).weights
        found = np.flatnonzero(weights[: column.num_values] == 1)
        if len(found) != 1 or weights.sum() != 1:
            raise ValueError(f"{reference!r} is not a single value of {column.name!r}.")
        at = int(found[0])
    dummies = np.eye(column.size)
    return [
        Term(f"{column.name} = {label}", {column.name: dummies[code]})
        for code, label in enumerate(labels)
        if code != at
    ], labels[at]


def _notes(involved: Mapping[str, Column], event: Any) -> list[str]:
    outcome, *others = involved.values()
    cells = [
        repr(column.name)
        for column in ([outcome] if event is None else []) + others
        if column.sdtype in ("numerical", "datetime") and not code_values(column).are_single
    ]
    notes = [
        f"{column.name!r} counts in days since {written(first, '', column.datetime_format)}."
        for column in involved.values()
        if column.sdtype == "datetime" and not (event is not None and column is outcome)
        for first in [as_users(column, code_values(column).lows[0])]
    ]
    if event is not None and condition_shares(outcome, event).is_cut:
        notes.append(on_cut([outcome.name]))
    if cells:
        notes.append(
            f"Values of {' and '.join(cells)} are the means of their cells, as in sampled rows, "
            "and no interval covers what that hides."
        )
    return notes


@dataclass(frozen=True, eq=False)
class ScaledDesign:
    """A design whose numbers have about mean 0 and variance 1, so that missing ones count as mean.

    ``back`` takes its coefficients to those of the terms as they were, but for ``shift``.
    """

    design: Design
    back: np.ndarray
    shift: np.ndarray

    def without(self, names: Collection[str]) -> "ScaledDesign":
        """The same without categories, which count with the reference, and their interactions."""
        terms = self.design.terms
        kept = [
            place
            for place, term in enumerate(terms)
            if term.name not in names and not any(terms[part].name in names for part in term.parts)
        ]
        if len(kept) < 2:
            raise ValueError(
                f"Too few rows are known to have {', '.join(names)}, so nothing can be said of "
                f"{', '.join(map(repr, self.design.columns[1:]))}. Regress on other columns, or "
                "declare fewer values."
            )
        places = {before: now for now, before in enumerate(kept)}
        left = tuple(
            replace(terms[place], parts=tuple(places[part] for part in terms[place].parts))
            for place in kept
        )
        design = replace(self.design, terms=left)
        lost = [repr(name) for name in self.design.columns if name not in design.columns]
        note = "With the reference count, as too few rows are known to have them: "
        note += ", ".join(names) + (f". Nothing is said of {', '.join(lost)}." if lost else ".")
        own = replace(design, notes=(note, *design.notes)) if names else design
        return ScaledDesign(own, self.back[np.ix_(kept, kept)], self.shift[kept])


def scaled(design: Design, estimate: LinearEstimate, kind: str) -> tuple[ScaledDesign, list[str]]:
    """The design with its numbers scaled by their noisy means and variances.

    And the names of categories that hold no more rows than noise might.
    """
    # A value of a category is compared if its rows are this many standard deviations of the noise.
    noises = 3.0
    outcome = {name: own for name, own in design.present.items() if name == design.outcome.column}
    terms, back = list(design.terms), np.eye(len(design.terms))
    shifts, spreads = np.zeros(len(terms)), np.ones(len(terms))
    weak = []
    for place, term in enumerate(design.terms):
        if term.is_category:
            if term.product:
                found = estimate.answers([times(term.product, outcome)])
                if found.known[0] and found.values[0] < noises * np.sqrt(found.covariance[0, 0]):
                    weak.append(term.name)
        elif not term.parts:
            terms[place], shifts[place], spreads[place] = _scaled(term, design, estimate)
    for place, term in enumerate(design.terms):
        if term.product and not term.parts:
            # b (x - m) / s: the slope is b / s, and the intercept loses b m / s.
            back[place, place], back[0, place] = 1 / spreads[place], -shifts[place] / spreads[place]
    for place, term in enumerate(design.terms):
        if term.parts:
            terms[place] = replace(_interaction(terms, term.parts), name=term.name)
            one, other = term.parts
            scale = 1 / (spreads[one] * spreads[other])
            back[place, place] = scale
            back[one, place], back[other, place] = -shifts[other] * scale, -shifts[one] * scale
            back[0, place] = shifts[one] * shifts[other] * scale
    target, shift = design.outcome, np.zeros(len(terms))
    if kind == "linear":
        target, shift[0], spread = _scaled(target, design, estimate)
        back *= spread
    return ScaledDesign(replace(design, outcome=target, terms=tuple(terms)), back, shift), weak


def _scaled(term: Term, design: Design, estimate: LinearEstimate) -> tuple[Term, float, float]:
    """A term of one column with about mean 0 and variance 1, its mean and its spread."""
    valued = {term.column: design.valued[term.column]}
    found = estimate.answers([valued, term.product, times(term.product, term.product)])
    rows, total, squares = found.values
    mean = total / max(rows, 1.0)
    spread = np.sqrt(max(squares / max(rows, 1.0) - mean**2, 0.0)) or np.ptp(term.values) or 1.0
    values = (term.values - mean) / spread * valued[term.column]
    return replace(term, product={term.column: values}), float(mean), float(spread)


FEWEST_ROWS = 20_000
"""Rows that are drawn from a model, at the least."""


def distinct_rows(
    design: Design, model: Model, names: Sequence[str], most: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Distinct codes of a model's rows that miss none of the design's columns, and their shares.

    The codes of other columns than ``names`` are 0. At ``most`` so many rows are drawn, where whole
    decks of particles are more.
    """
    number = -(-FEWEST_ROWS // model.block) * model.block  # whole decks: each particle as often
    number = number if most is None else min(number, max(most, FEWEST_ROWS))
    codes = model.sample(number, 0)
    every = zip(design.columns, model.domain.axes(design.columns), strict=True)
    codes = codes[np.all([design.valued[name][codes[:, axis]] > 0 for name, axis in every], 0)]
    if not len(codes):
        raise ValueError("No row of the model has values in all of these columns.")
    axes = model.domain.axes(names)
    others = np.zeros_like(codes)
    others[:, axes] = codes[:, axes]
    distinct, counts = np.unique(others, axis=0, return_counts=True)
    return distinct, counts / counts.sum()
