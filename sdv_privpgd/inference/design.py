"""The terms of a regression: functions of each column's codes. Public."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sdv_privpgd.columns.bins import Categories
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.labels import code_labels
from sdv_privpgd.inference.conditions import column_named, not_missing, part_of
from sdv_privpgd.inference.linear import LinearEstimate, Product
from sdv_privpgd.inference.values import code_values
from sdv_privpgd.synthesize.engine import Model

KINDS = ("linear", "logistic")
"""The kinds of regression."""


@dataclass(frozen=True, eq=False)
class Term:
    """One number of each row: a function of one column's codes, 0 where the value is missing.

    Attributes:
        name: As the summary has it: a column, or a column and a value.
        column: The column's name; empty for the intercept.
        values: The number of each code, float64.
    """

    name: str
    column: str
    values: np.ndarray

    @property
    def product(self) -> Product:
        """The term as a product of functions of codes."""
        return {self.column: self.values} if self.column else {}


@dataclass(frozen=True, kw_only=True, eq=False)
class Design:
    """What is regressed on what.

    Attributes:
        outcome: The outcome; of a logistic regression 0 or 1.
        terms: The intercept, then the terms of the predictors.
        valued: For each column, 1 for codes that are values.
        missing: The columns in which values are missing in some rows.
        references: For each categorical predictor, the value that its others are compared with.
        notes: What to keep in mind, a sentence each.
    """

    outcome: Term
    terms: tuple[Term, ...]
    valued: Mapping[str, np.ndarray]
    missing: frozenset[str]
    references: Mapping[str, str]
    notes: tuple[str, ...]

    @property
    def present(self) -> dict[str, np.ndarray]:
        """For each column with missing values, 1 for codes that are values."""
        return {name: own for name, own in self.valued.items() if name in self.missing}

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that take part."""
        names = [self.outcome.column, *(term.column for term in self.terms[1:])]
        return tuple(dict.fromkeys(names))


def design_of(
    columns: Mapping[str, Column],
    outcome: str,
    on: Sequence[str],
    kind: str,
    *,
    held: Mapping[str, np.ndarray],
    event: Any = None,
    reference: Mapping[str, Any] | None = None,
) -> Design:
    """The design of a regression of an outcome on columns.

    Args:
        columns: By name.
        outcome: A column of numbers or booleans; any column where an event is given.
        on: The predictors.
        kind: One of ``KINDS``.
        held: The codes of each column that surely hold rows, where that is known.
        event: The values of the outcome that count as 1, as a condition; the others are 0.
        reference: By categorical predictor the value that others are compared with; the first by
            default. Ordered categories that are numbers are categories only where one is given.

    Raises:
        ValueError: For what cannot be regressed; the message says what can.
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {KINDS}, got {kind!r}.")
    names = [on] if isinstance(on, str) else list(on)
    reference = {} if reference is None else reference
    if not names or len(set(names)) < len(names) or outcome in names:
        raise ValueError(
            f"on= must name columns, each once and none of them the outcome, got {on!r}."
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
    terms, references = [Term("intercept", "", np.ones(0))], {}
    for name in names:
        own, compared = _terms(involved[name], reference.get(name))
        terms += own
        if compared is not None:
            references[name] = compared
    return Design(
        outcome=target,
        terms=tuple(terms),
        valued={name: not_missing(column) for name, column in involved.items()},
        missing=missing,
        references=references,
        notes=tuple(_notes(involved, event, missing)),
    )


def _outcome(column: Column, kind: str, event: Any) -> Term:
    """The outcome as a number."""
    if event is not None:
        part = part_of(column, event)
        return Term(part.words, column.name, part.weights * not_missing(column))
    if column.sdtype == "boolean" and isinstance(column.cells, Categories):
        part = part_of(column, column.cells.values[1])
        return Term(part.words, column.name, part.weights)
    numbers = numbers_of_codes(column)
    if kind == "logistic" or numbers is None:
        raise ValueError(
            f"The outcome {column.name!r} is {column.sdtype}: say which of its values count as 1, "
            "as in event='yes', event=['B', 'C'] or event=Between(low=50)."
        )
    return Term(column.name, column.name, numbers)


def numbers_of_codes(column: Column) -> np.ndarray | None:
    """The number of each code, 0 for missing; ``None`` for a column that has no numbers.

    Numbers are the means of their cells. Ordered categories that are numbers are those.
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
    else:
        return None
    return np.append(values, np.zeros(int(column.nullable)))


def _terms(column: Column, reference: Any) -> tuple[list[Term], str | None]:
    """The terms of a predictor, and the value that they are compared with."""
    if column.sdtype == "numerical" and reference is not None:
        raise ValueError(f"{column.name!r} is numerical: it has no reference.")
    numbers = numbers_of_codes(column)
    if numbers is not None and reference is None:
        return [Term(column.name, column.name, numbers)], None
    if column.sdtype == "datetime":
        raise ValueError(f"{column.name!r} has dates, which cannot be predictors yet.")
    labels, at = code_labels(column)[: column.num_values], 0
    if reference is not None:
        weights = part_of(column, reference).weights
        found = np.flatnonzero(weights[: column.num_values] == 1)
        if len(found) != 1 or weights.sum() != 1:
            raise ValueError(f"{reference!r} is not a single value of {column.name!r}.")
        at = int(found[0])
    dummies = np.eye(column.size)
    return [
        Term(f"{column.name} = {label}", column.name, dummies[code])
        for code, label in enumerate(labels)
        if code != at
    ], labels[at]


def _notes(involved: Mapping[str, Column], event: Any, missing: frozenset[str]) -> list[str]:
    outcome, *others = involved.values()
    cells = [
        repr(column.name)
        for column in ([outcome] if event is None else []) + others
        if column.sdtype == "numerical" and not code_values(column).are_single
    ]
    notes = []
    if cells:
        notes.append(
            f"Values of {' and '.join(cells)} are the means of their cells, as in sampled rows, "
            "and no interval covers what that hides."
        )
    if missing:
        names = " and ".join(map(repr, sorted(missing)))
        notes.append(
            f"Values of {names} are missing in some rows. Each pair of columns is taken over the "
            "rows that have both, as if values were missing by chance."
        )
    return notes


@dataclass(frozen=True)
class Moments:
    """Means over the rows that have values, the covariance of their noise, and the rows.

    Attributes:
        values: The means, shape (product,).
        covariance: Of their noise, by the delta method: they are ratios of linear estimates.
        num_rows: The smallest number of rows that one of them is a mean over.
    """

    values: np.ndarray
    covariance: np.ndarray
    num_rows: float


def moments(
    estimate: LinearEstimate, products: Sequence[Product], present: Mapping[str, np.ndarray]
) -> Moments:
    """The mean of each product, over the rows that have values in all of its columns.

    Args:
        estimate: From all noisy tables.
        products: Functions of codes, 0 where values are missing.
        present: For each column with missing values, 1 for codes that are values.

    Raises:
        ValueError: If the tables do not determine one of them, or leave no rows.
    """
    keys = [tuple(name for name in present if name in product) for product in products]
    distinct = list(dict.fromkeys(keys))
    bases: list[Product] = [{name: present[name] for name in key} for key in distinct]
    found = estimate.answers([*products, *bases])
    if not found.known.all():
        names = {
            " x ".join(product)
            for product, known in zip([*products, *bases], found.known, strict=True)
            if not known
        }
        raise ValueError(
            f"The measured tables do not determine {', '.join(sorted(names))}. A regression needs "
            "every pair of its columns: method='privpgd', the default, measures them."
        )
    number = len(products)
    rows = found.values[number:]
    if (rows <= 0).any():
        raise ValueError("Noise hides all rows that have values. Leave out a column.")
    own = np.array([distinct.index(key) for key in keys])
    values = found.values[:number] / rows[own]
    # d(T / N) = (dT - (T / N) dN) / N
    gradient = np.zeros((number, len(found.values)))
    gradient[np.arange(number), np.arange(number)] = 1 / rows[own]
    gradient[np.arange(number), number + own] -= values / rows[own]
    return Moments(values, gradient @ found.covariance @ gradient.T, float(rows.min()))


def times(one: Product, other: Product) -> Product:
    """The product of two products."""
    found = dict(one)
    for name, values in other.items():
        found[name] = found[name] * values if name in found else values
    return found


@dataclass(frozen=True, eq=False)
class Scaled:
    """A design whose numerical terms have about mean 0 and variance 1.

    Attributes:
        design: The design, in terms that are scaled, and without those that noise hides.
        back: The matrix that takes its coefficients to those of the terms as they were.
    """

    design: Design
    back: np.ndarray


def scaled(design: Design, estimate: LinearEstimate) -> Scaled:
    """The design with its terms scaled by their noisy means and variances.

    Values of a category that hold no more rows than noise might count with the reference.

    Raises:
        ValueError: For a category all of whose values do.
    """
    # A value of a category is compared if its rows are this many standard deviations of the noise.
    noises = 3.0
    terms, back = list(design.terms), np.eye(len(design.terms))
    weak = []
    for place, term in enumerate(design.terms[1:], start=1):
        own = term.product
        found = moments(estimate, [own, times(own, own)], design.present)
        mean, square = found.values
        if set(np.unique(term.values)) <= {0.0, 1.0}:
            if mean < noises * np.sqrt(found.covariance[0, 0]):
                weak.append(term.name)
            continue
        spread = np.sqrt(max(square - mean**2, 0.0)) or np.ptp(term.values) or 1.0
        valued = design.valued[term.column]
        terms[place] = replace(term, values=(term.values - mean) / spread * valued)
        # b (x - m) / s: the slope is b / s, and the intercept loses b m / s.
        back[place, place] = 1 / spread
        back[0, place] = -mean / spread
    kept = [place for place, term in enumerate(terms) if term.name not in weak]
    left = {terms[place].column for place in kept}
    lost = [term.column for term in design.terms if term.column not in left]
    if lost:
        raise ValueError(
            f"The noise hides whether any rows have {' or '.join(weak)}, so nothing can be said of "
            f"{lost[0]!r}. Leave the column out, or declare fewer values."
        )
    notes = [f"Noise hides whether rows have {' or '.join(weak)}: they count with the reference."]
    found = replace(
        design,
        terms=tuple(terms[place] for place in kept),
        notes=(*(notes if weak else []), *design.notes),
    )
    return Scaled(found, back[np.ix_(kept, kept)])


FEWEST_ROWS = 20_000
"""Rows that are drawn from a model, at the least."""


def distinct_rows(
    design: Design, model: Model, names: Sequence[str], most: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Distinct codes of a model's rows that miss none of some columns, and their shares.

    Args:
        design: Says which codes are values.
        model: Of all columns.
        names: The columns; the codes of all others are 0.
        most: The most rows that are drawn, where whole decks of particles are more; no limit by
            default.

    Raises:
        ValueError: If no row has values in all of the columns.
    """
    number = -(-FEWEST_ROWS // model.block) * model.block  # whole decks: each particle as often
    codes = model.sample(number if most is None else min(number, max(most, FEWEST_ROWS)), 0)
    axes = model.domain.axes(names)
    kept = np.all([design.valued[n][codes[:, a]] > 0 for n, a in zip(names, axes, strict=True)], 0)
    if not kept.any():
        raise ValueError("No row of the model has values in all of these columns.")
    others = np.zeros_like(codes[kept])
    others[:, axes] = codes[kept][:, axes]
    distinct, counts = np.unique(others, axis=0, return_counts=True)
    return distinct, counts / counts.sum()


def values_in(rows: np.ndarray, model: Model, products: Sequence[Product]) -> np.ndarray:
    """The products of each row, shape (row, product)."""
    places = dict(zip(model.domain.attributes, range(len(model.domain)), strict=True))
    found = np.ones((len(rows), len(products)))
    for column, product in zip(found.T, products, strict=True):
        for name, values in product.items():
            column *= values[rows[:, places[name]]]
    return found
