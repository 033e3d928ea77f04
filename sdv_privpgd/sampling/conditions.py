"""Conditions on modelled columns, and rows of a model that meet them. Public: a user wrote them."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd.base.arguments import shown
from sdv_privpgd.base.words import listed, number_of
from sdv_privpgd.columns.bins import BELOW_ONE, Categories, Reals
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.dates import are_whole, to_ticks
from sdv_privpgd.columns.decoders import decoder_for
from sdv_privpgd.columns.encoders import encode, moments_of, read
from sdv_privpgd.columns.number_formats import NumberFormat
from sdv_privpgd.columns.scalars import indices, number_in, plain, quiet
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.constraints.rules import Order, Span
from sdv_privpgd.synthesize.engine import Model


@dataclass(frozen=True)
class Between:
    """Any value from ``low`` to ``high``, both included, as a condition on a column. Public.

    ``None`` leaves an end open. It applies to numbers, dates and ordinal categories, which are
    compared in their declared order. Use it in SDV's conditions, as in ``Condition({"age":
    Between(30, 40), "ward": "B"}, num_rows=10)``, or in cells of a ``DataFrameCondition``. No range
    holds missing values.

    Raises:
        ValueError: If both ends are open, or an end is not a single value.

    >>> Between(30, 40)
    Between(low=30, high=40)
    >>> Between(low=65)  # and above
    Between(low=65, high=None)
    """

    low: Any = None
    high: Any = None

    def __post_init__(self) -> None:
        if self.low is None and self.high is None:
            raise ValueError("Between needs at least one end, as in Between(30, 40), got none.")
        try:
            hash((self.low, self.high))
        except TypeError as error:
            raise ValueError(
                "The ends of Between must be numbers, dates or categories, got "
                f"{shown(self.low)} and {shown(self.high)}."
            ) from error


@dataclass(frozen=True)
class Narrowed(Between):
    """A range whose ends are as its column's cells hold values. It may be empty."""


def as_conditions(conditions: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Conditions by column, none for ``None``. Raises ``ValueError`` for what is no dictionary."""
    if conditions is not None and not isinstance(conditions, Mapping):
        raise ValueError(
            "Conditions are a dictionary of columns, as in {'ward': 'B', 'age': Between(30, 40)}, "
            f"got {shown(conditions)}."
        )
    return {} if conditions is None else conditions


def at_most(condition: Any, most: int) -> Any:
    """The condition on a number that is ``most`` where another one is more."""
    if isinstance(condition, Between):
        return Between(
            *(None if end is None else min(end, most) for end in (condition.low, condition.high))
        )
    return condition if condition is None else min(condition, most)


def span(column: Column, between: Between) -> Span:
    """The range as a column's cells hold values. If it is empty, its first value is above its last.

    Raises ``ValueError`` if the column has no order, or an end is no value of its kind.
    """
    if not column.is_ordered:
        raise ValueError(
            f"Column {column.name!r} is {column.sdtype}: its values have no order, so {between!r} "
            "says nothing about it. Ask for one of its values instead."
        )
    if isinstance(between, Narrowed):
        return between.low, between.high
    first, last = column.cells.ends
    return (
        first if between.low is None else _end(column, between.low, math.ceil),
        last if between.high is None else _end(column, between.high, math.floor),
    )


def shares(column: Column, span: Span) -> np.ndarray:
    """The share of each code that a span covers, in [0, 1]; 0 for missing."""
    return np.append(column.shares(*span), np.zeros(int(column.nullable)))


def _end(column: Column, end: Any, rounded: Callable[[Any], int]) -> Any:
    """An end of a range as the cells hold it, rounded into the range."""
    if isinstance(column.cells, Categories):
        known = {value: index for index, value in enumerate(column.cells.values)}
        (index,), _ = indices(pd.Series([end], dtype=object), known)
        found = None if index < 0 else int(index)
    elif column.unit is not None:
        found = _tick_of_date(column, end, rounded)
    else:
        number = _number(end, column.number_format)
        if number is None or isinstance(column.cells, Reals):
            found = None if number is None else float(number)
        else:
            # The one just outside the domain stands for all numbers further out.
            least, most = (column.cells.first - 1, column.cells.last + 1)
            found = rounded(min(max(number / column.tick, least), most))
    if found is None:
        raise ValueError(
            f"{end!r} cannot be an end of a range in column {column.name!r}, which is "
            f"{column.sdtype}."
        )
    return found


def _tick_of_date(column: Column, end: Any, rounded: Callable[[Any], int]) -> int | None:
    with quiet():
        moments, missing = moments_of(column, pd.Series([end], dtype=object))
    if missing[0]:
        return None
    assert column.unit is not None
    ticks = to_ticks(moments, column.unit)
    return int(ticks[0]) + (rounded is math.ceil and not are_whole(moments, column.unit)[0])


def _number(end: Any, written: NumberFormat | None) -> Fraction | float | None:
    """A number as it is written, 0.1 as a tenth, or an infinity; ``None`` for anything else."""
    number = plain(end)
    number = number_in(number, written) if isinstance(number, str) else number
    if isinstance(number, bool | str | bytes | None):
        return None
    if isinstance(number, float | Decimal) and not math.isfinite(number):
        return float(number)
    return Fraction(Decimal(repr(number)) if isinstance(number, float) else number)


ANYTHING = object()
"""The cell of a condition that asks nothing of the column."""


class ColumnConditions:
    """Conditions on a column: each asks for a value, for a range, or for nothing.

    Raises ``ValueError`` for a range that says nothing about the column.

    Attributes:
        possible: Which conditions the declared domain can meet; bool.
        wishes: A number for each condition, equal for equal ones; 0 for those that ask nothing.
    """

    def __init__(self, column: Column, conditions: pd.Series) -> None:
        self._column, self._decoder = column, decoder_for(column)
        self.name = column.name
        self._ranged = is_range(conditions)
        self._exact = ~self._ranged & is_condition(conditions)
        self._values = as_cells(column, conditions.loc[self._exact])
        codes, _ = encode(column, self._values)
        self._which, ranges = pd.factorize(conditions.loc[self._ranged])
        self._spans = [span(column, each) for each in ranges]
        self._fits = [shares(column, each) for each in self._spans]

        self.indices = np.zeros(len(conditions), dtype=np.int64)
        self.indices[self._exact] = 1 + codes
        self.indices[self._ranged] = 1 + column.size + self._which
        self.possible = np.ones(len(conditions), dtype=bool)
        self.possible[self._exact] = self._decoder.holds(self._values)
        met = np.array([fit.any() for fit in self._fits], dtype=bool)
        self.possible[self._ranged] = met[self._which]

    def fit(self, index: int) -> np.ndarray:
        """The fit of each code to one of the wishes, shape (code,); the best is 1."""
        size = self._column.size
        if index <= size:
            return (np.arange(size) == index - 1).astype(np.float64)
        fit = self._fits[index - 1 - size]
        return fit / fit.max()

    def write(
        self, decoded: pd.Series, codes: np.ndarray, positions: np.ndarray, *, holds_missing: bool
    ) -> pd.Series:
        """The decoded column with the values asked for, or values of the ranges, in their rows.

        A value that was asked for is written exactly.
        """
        holds_missing = holds_missing or bool(decoded.isna().any())
        ranged = np.flatnonzero(self._ranged)
        for index, ends in enumerate(self._spans):
            rows = ranged[self._which == index]
            values = self._decoder.within(
                codes[rows], positions[rows], ends, holds_missing=holds_missing
            )
            decoded = put(decoded, rows, values)
        if self._exact.any():
            values = self._decoder.rewrite(self._values, holds_missing=holds_missing)
            decoded = put(decoded, np.flatnonzero(self._exact), values)
        return decoded


def as_cells(column: Column, conditions: pd.Series) -> pd.Series:
    """The values asked for as cells of the table: where it has words for truths, true is one."""
    if column.sdtype != "boolean" or not isinstance(column.cells, Categories):
        return conditions
    words = dict(zip((False, True), column.cells.values, strict=True))
    return conditions.map(
        lambda cell: words[bool(cell)] if isinstance(cell, bool | np.bool_) else cell
    )


def narrowed(order: Order, low: Any, high: Any) -> tuple[Any, Any]:
    """Conditions on two columns; of ranges only what is in order with some value of the other."""
    asked = list(zip((order.low, order.high), (low, high), strict=True))
    found = [_span_of(column, condition) for column, condition in asked]
    spans = [own for own in found if own is not None and own[0] <= own[1]]
    if len(spans) < len(asked):
        return low, high
    low, high = (
        Narrowed(*own) if isinstance(condition, Between) else condition
        for own, (_, condition) in zip(order.narrowed(*spans), asked, strict=True)
    )
    return low, high


def _span_of(column: Column, condition: Any) -> Span | None:
    """The values of the domain that a condition lets be; ``None`` if one lets be missing."""
    first, last = column.cells.ends
    if isinstance(condition, Between):
        low, high = span(column, condition)
        return max(low, first), min(high, last)
    if condition is ANYTHING:
        return None
    (value,), (is_missing,) = read(column, pd.Series([condition], dtype=object))
    return None if is_missing else (value, value)


def put(series: pd.Series, rows: np.ndarray, values: pd.Series) -> pd.Series:
    """The series with other values in some rows, in a dtype that holds both."""
    places = np.arange(len(series))
    places[rows] = len(series) + np.arange(len(values))
    return pd.concat([series, values], ignore_index=True).take(places).set_axis(series.index)


def is_range(conditions: pd.Series) -> np.ndarray:
    """Marks the conditions that ask for a range of values; bool."""
    if conditions.dtype != object:
        return np.zeros(len(conditions), dtype=bool)
    return np.array([isinstance(cell, Between) for cell in conditions], dtype=bool)


def is_condition(conditions: pd.Series) -> np.ndarray:
    """Marks the conditions that ask anything of the column; bool."""
    if conditions.dtype != object:
        return np.ones(len(conditions), dtype=bool)
    return np.array([cell is not ANYTHING for cell in conditions], dtype=bool)


def check_rows(known_columns: Any) -> None:
    """Raises ``ValueError`` for rows to be completed that are no table, or name a column twice."""
    if not isinstance(known_columns, pd.DataFrame):
        kind = type(known_columns).__name__
        raise ValueError(f"known_columns must be a pandas DataFrame, got {kind}.")
    if not known_columns.columns.is_unique:
        twice = known_columns.columns[known_columns.columns.duplicated()].unique().tolist()
        raise ValueError(f"known_columns must name each column once, got {twice!r} twice.")


def check_conditions(conditions: pd.DataFrame, schema: Schema) -> None:
    """Raises ``ValueError`` for a range of values that says nothing about its column."""
    modelled = {column.name: column for column in schema.columns}
    for name, cells in conditions.items():
        for between in cells.loc[is_range(cells)].unique():
            if name not in modelled:
                raise ValueError(
                    f"Column {name!r} is generated: it has no values to choose from, so "
                    f"{between!r} says nothing about it. Ask for one value instead."
                )
            span(modelled[str(name)], between)


def require_some(conditions: pd.DataFrame, met: np.ndarray, schema: Schema) -> str | None:
    """Returns a sentence on the conditions that cannot be met; ``None`` if all can.

    Raises ``ValueError`` with the same sentence if none can be met.
    """
    if met.all():
        return None
    why = why_not(conditions.loc[~met], schema)
    if not met.any():
        raise ValueError(f"Unable to sample any rows for the given conditions. {why}")
    return f"{met.sum()} of {len(met)} conditions can be met. {why}"


def why_not(conditions: pd.DataFrame, schema: Schema) -> str:
    """Sentences that explain why none of these conditions could be met."""
    said, outside = [], np.zeros(len(conditions), dtype=bool)
    for column in schema.columns:
        if column.name in conditions:
            cells = pd.Series(conditions[column.name])
            wrong = ~ColumnConditions(column, cells).possible
            outside |= wrong
            said += [_on_out_of_domain(column, cells.loc[wrong])] if wrong.any() else []
    if not outside.all():
        said.append(f"{number_of((~outside).sum())} would contradict the constraints.")
    return " ".join(said)


def _on_out_of_domain(column: Column, cells: pd.Series) -> str:
    """A sentence on the values that are asked of the column and lie outside its domain."""
    missing = [not isinstance(each, Between) and pd.isna(each) for each in cells]
    said = ["a missing value" if no else repr(e) for e, no in zip(cells, missing, strict=True)]
    asked = list(dict.fromkeys(said))
    lies = "lies" if len(asked) == 1 else "lie"
    return (
        f"In {number_of(len(cells))} {listed(asked, 3)} {lies} outside the domain of "
        f"{column.name!r}, which holds {held(column)}."
    )


def held(column: Column) -> str:
    """The values that the column can hold, in words."""
    if isinstance(column.cells, Categories):
        held = listed([repr(value) for value in column.cells.values], 8)
    else:
        plain = replace(column, merging=None)  # a cell that hardly occurs can be an end, too
        ends = np.array([0, plain.num_values - 1]), np.array([0.0, BELOW_ONE])
        low, high = decoder_for(plain).decode(*ends)
        is_exact = column.sdtype == "numerical" and column.decimal_places is not None
        steps = f" in steps of {float(column.tick):g}" if is_exact else ""
        steps = f" in whole {_UNITS[column.unit]}" if column.unit in _UNITS else steps
        held = f"{low} to {high}{steps}"
    return f"{held}, and may be missing" if column.nullable else f"{held}, and is never missing"


_UNITS = {"Y": "years", "M": "months", "D": "days", "h": "hours", "m": "minutes", "s": "seconds"}


FitsByName = Mapping[str, np.ndarray]
"""The fit of each code of attributes to a condition: in [0, 1], shape (code,), the best is
1."""


class ConditionalRows:
    """Draws rows of a model that fit wishes.

    The rows come from a pool, one block of the model's rows. A row's fit is the product of its fits
    over the wished attributes. Many fitting rows are used alone. If they are few, they say little
    about the other attributes, and the nearest rows join them, moved: these get wished codes and
    keep their other codes. A moved row weighs exp(-1 - distance) for each moved attribute; the
    distance is that of the codes divided by their number (``tests/benchmarks conditions``).

    ``num_ordered`` is how many codes of each attribute, from the first on, have an order.
    """

    def __init__(self, model: Model, seed: int, num_ordered: Mapping[str, int]) -> None:
        self._model, self._num_ordered = model, num_ordered
        columns = np.ascontiguousarray(model.sample(model.block, seed).T)
        self._pool = dict(zip(model.domain.attributes, columns, strict=True))
        self._sorted: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def draw(
        self, fits_by_name: FitsByName, num_rows: int, generator: np.random.Generator
    ) -> np.ndarray:
        """Codes of shape (row, attribute) that fit the wish, int64, in random order.

        A row of the pool is used as often as its weight says, rounded up or down: among rows of
        equal weight none is used twice before each is used once.
        """
        rows, weights = self.weights(fits_by_name)
        drawn = rows[systematic(weights, num_rows, generator)]
        codes = np.stack([column[drawn] for column in self._pool.values()], axis=1)
        for name, axis in zip(fits_by_name, self._model.domain.axes(fits_by_name), strict=True):
            unfit = np.flatnonzero(fits_by_name[name][codes[:, axis]] == 0)
            if len(unfit):
                codes[unfit, axis] = self._wished(name, fits_by_name[name], len(unfit), generator)
        return codes

    def weights(self, fits_by_name: FitsByName) -> tuple[np.ndarray, np.ndarray]:
        """Indices of rows of the pool, and the weight of each; a row may occur twice."""
        all_moved = 100  # the moved rows together weigh as much as this many fitting ones
        enough = 1_000  # this many fitting rows need no help
        fitting, fits = self._fitting(fits_by_name)
        if fits.sum() >= enough:
            return fitting, fits
        moved, nearness = self._nearest(fits_by_name)
        if len(fitting):
            nearness *= all_moved / nearness.sum()
        return np.concatenate([moved, fitting]), np.concatenate([nearness, fits])

    def _fitting(self, fits_by_name: FitsByName) -> tuple[np.ndarray, np.ndarray]:
        """The rows that fit, and how well. Only rows that fit the rarest wish are searched."""
        rows = min(
            (self._between(name, np.flatnonzero(fit)) for name, fit in fits_by_name.items()),
            key=len,
        )
        fits = np.prod([fit[self._pool[name][rows]] for name, fit in fits_by_name.items()], axis=0)
        found = np.flatnonzero(fits)
        return rows[found], fits[found]

    def _between(self, name: str, codes: np.ndarray) -> np.ndarray:
        """The rows whose code lies between the first and the last of ascending codes."""
        if name not in self._sorted:
            order = np.argsort(self._pool[name], kind="stable")
            self._sorted[name] = order, self._pool[name][order]
        order, ascending = self._sorted[name]
        start = np.searchsorted(ascending, codes[0], side="left")
        return order[start : np.searchsorted(ascending, codes[-1], side="right")]

    def _nearest(self, fits_by_name: FitsByName) -> tuple[np.ndarray, np.ndarray]:
        """The rows that have to move least, and their weights, the largest 1."""
        times_as_many = 16  # the nearest rows are first searched among this many times as many
        # If fewer fit, this many of the nearest rows, and those as near as the last one, are moved.
        nearest = 300
        costs = np.zeros(self._model.block, dtype=np.float32)
        for name, fit in fits_by_name.items():
            own = self._costs(name, fit).astype(np.float32)
            costs += own.take(self._pool[name], mode="clip")  # clip skips the check of each row
        last = min(nearest, len(costs)) - 1
        # A sample of the rows gives a bound on the distance, so that few rows need sorting.
        part = costs[:: max(1, len(costs) // (times_as_many * nearest))]
        rows = np.flatnonzero(costs <= np.partition(part, last)[last])
        near = costs[rows]
        rows = rows[near <= np.partition(near, last)[last]]
        return rows, np.exp(costs.min() - costs[rows].astype(np.float64))

    def _costs(self, name: str, fit: np.ndarray) -> np.ndarray:
        """Minus the log of the weight of each code of a wished attribute, shape (code,)."""
        ordered = self._num_ordered[name]
        distances = np.full(len(fit), float(ordered > 0))
        wished = np.flatnonzero(fit[:ordered])
        if len(wished):
            codes = np.arange(ordered)
            distances[:ordered] = np.abs(codes[:, None] - wished).min(axis=1) / len(fit)
        return -np.log(np.maximum(fit, np.exp(-1 - distances)))

    def _wished(
        self, name: str, fit: np.ndarray, number: int, generator: np.random.Generator
    ) -> np.ndarray:
        """Wished codes of an attribute, as frequent as in the model; if it has none, by fit."""
        codes = np.flatnonzero(fit)
        if len(codes) == 1:
            return np.repeat(codes, number)
        chances = fit * self._model.marginal((name,))
        chances = chances if chances.any() else fit
        return generator.choice(len(fit), number, p=chances / chances.sum())


def systematic(weights: np.ndarray, number: int, generator: np.random.Generator) -> np.ndarray:
    """Indices in random order, each as often as its share of the number, rounded up or down."""
    ends = np.cumsum(weights)
    points = (np.arange(number) + generator.random()) * (ends[-1] / number)
    drawn = np.searchsorted(ends, points, side="right")
    return generator.permutation(np.minimum(drawn, len(weights) - 1))
