"""The warnings after a fit: sentences on columns, rows and settings that are probably mistakes.

They are made of noisy answers, of the ledger and of what was declared or found. So they are
post-processing, public and free. A rule speaks only where the noise leaves no doubt.
"""

import datetime
import math
from collections.abc import Iterator, Set

import numpy as np

from sdv_privpgd.base.words import share
from sdv_privpgd.columns.bins import Categories, Ticks
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.facts import ColumnFacts, DateFacts, NumberFacts
from sdv_privpgd.columns.ids import on_repeated_ids
from sdv_privpgd.columns.labels import code_labels
from sdv_privpgd.columns.wording import words_of
from sdv_privpgd.discovery.plan import SPREAD, rows_unseen
from sdv_privpgd.report.column_advice import (
    far_away,
    has_values_alone,
    on_order,
    on_others,
    on_unread,
)
from sdv_privpgd.report.known_facts import SURE, Facts
from sdv_privpgd.report.noise_advice import on_noise

OPENING = "Worth a look before the rows are used:"
"""The first words of the warning at the end of a fit, and of such sentences in a report."""

_MOSTLY_OTHER, _ALL_MISSING, _CONSTANT = 0.5, 0.9, 0.98
"""Shares of rows from which on a column is said to be mostly other, nearly all missing, or the
like."""

_MANY_MISSING, _MOSTLY_MISSING = 0.1, 0.5
"""Shares of rows without a value from which on a column is named: one of which nobody said that it
may be missing, and one that may be, or in which nothing can be unreadable."""

_MANY_VALUES = 5
"""A column of at least so many values or cells should not be constant."""

_AT_BOUND, _ABOVE_NEIGHBOR = 0.02, 5.0
"""Values seem to be clipped if a bound holds at least this share of the rows, and so many times the
rows beside it. With the right range few columns look like that."""

NATURAL_ENDS = (-1, 0, 1)
"""Ends that hold many rows in many good tables: nothing, the first of a count, a code."""

_OF_IDS = (
    " If each row has another value, it is an id: leave it out, or give it the sdtype id. If it "
    "says whose a row is, and people have several rows, name it: "
    "people=People(column, max_rows=...)."
)

_NAMED = 3


def advice(fitted: Facts) -> tuple[str, ...]:
    """Sentences on what seems to be wrong with a fit. Public."""
    said = list(fitted.doubts.values())
    if fitted.release is not None:
        of_columns = _of_columns(fitted)
        said += on_columns(fitted)
        said += _of_rare(fitted, fitted.tables.keys() - of_columns)
        said += on_order(fitted)
        said += on_noise(fitted)
    return (
        *said,
        *on_repeated_ids(
            [name for name in fitted.repeated_ids if name != fitted.ledger.people],
            fitted.ledger.rows_per_person,
        ),
    )


def on_columns(fitted: Facts) -> list[str]:
    """Sentences on columns of which declarations and cells do not seem to fit. Public."""
    of_columns = _of_columns(fitted)
    told = {*of_columns}
    return [*of_columns.values(), *on_others(fitted, told), *on_unread(fitted, told)]


def _of_columns(fitted: Facts) -> dict[str, str]:
    """At most one sentence on each column, by the first rule that applies."""
    said = {}
    for column in fitted.columns:
        if column.name not in fitted.tables:
            continue
        table, total = fitted.tables[column.name], fitted.total.value
        shares = table.counts / total
        error = SURE * math.sqrt(table.variance) / total
        rules = (
            _missing(column, shares, error, fitted.declared.get(column.name)),
            _mostly_other(column, shares - error),
            _nines(column, shares - error, fitted.declared.get(column.name)),
            far_away(column, shares, error, fitted.declared.get(column.name)),
            None
            if column.name in fitted.doubts  # it was counted what lies beyond
            else _at_bounds(column, shares, error, fitted.declared.get(column.name)),
            _constant(column, shares - error),
            _found_constant(column, fitted),
        )
        said[column.name] = next((sentence for sentence in rules if sentence is not None), None)
    return {name: sentence for name, sentence in said.items() if sentence is not None}


def _missing(
    column: Column, shares: np.ndarray, error: float, declared: ColumnFacts | None
) -> str | None:
    """Whether many cells are missing, some of them perhaps because they could not be read."""
    if not column.nullable:
        return None
    may_be = None if declared is None else declared.nullable
    # Where every value has a category, found or other, no value is unreadable.
    found = column.sdtype != "boolean" and (
        declared is None or declared.is_blank or getattr(declared, "values", True) in (None, ())
    )
    cells = column.cells
    is_category = isinstance(cells, Categories)
    all_read = is_category and cells.has_other
    least = _MANY_MISSING if may_be is None and not all_read else _MOSTLY_MISSING
    part = shares[-1]
    if part - error < least:
        return None
    much = "nearly all" if part - error > _ALL_MISSING else f"about {share(part)} of the"
    has_no_words = column.sdtype == "boolean" or not is_category
    if all_read or (has_no_words and has_values_alone(column)):
        return f"Column {column.name!r} is missing in {much} rows."
    if is_category and found:
        return (
            f"Column {column.name!r} is missing in {much} rows, or has a value there that too few "
            "rows share: what discovery did not find among values of its type counts as missing. "
            f"{_instead(column)}"
        )
    silenced = "" if may_be else " If they are missing indeed, declare range_is_nullable=True."
    if part + error >= 1:
        silenced += " If it has no values at all, leave the column out."
    return (
        f"Column {column.name!r} is missing in {much} rows, or cannot be read there as "
        f"{'a ' + column.sdtype + ' value' if found else 'what is declared'}. "
        f"{to_check(column)}{silenced}"
    )


def _instead(column: Column) -> str:
    """What to do with a column of categories that are found, where too few rows share the others.

    The values that were found say what they are.
    """
    cells = column.cells
    assert isinstance(cells, Categories)
    if any(isinstance(value, datetime.date) for value in cells.values):
        return "Its values are dates: give it the sdtype datetime, or declare its range_values."
    return "Declare its range_values."


def to_check(column: Column) -> str:
    """What may be wrong if cells of a column cannot be read."""
    if column.sdtype == "numerical":
        return (
            "Check how its numbers are written, if the column is text: text with a decimal comma, "
            "separators of thousands or units is not read. An infinite number counts as missing."
        )
    if column.sdtype == "datetime" and column.datetime_format is None:
        return (
            "If its dates are text, declare their datetime_format: without one only text like "
            "'2024-01-31' is read. If they are times of the day, declare TimeOfDay()."
        )
    if column.sdtype == "datetime":
        return f"Check whether its dates are written as {column.datetime_format!r}."
    if column.sdtype == "boolean":
        return "Check how it is written: only true and false, 1 and 0 are read."
    return (
        "Check the codebook against how its cells are written (capitals, spaces, numbers or "
        "text), and whether it lacks a category; other_value takes in all that is not declared."
    )


def _mostly_other(column: Column, least: np.ndarray) -> str | None:
    cells = column.cells
    if not (isinstance(cells, Categories) and cells.has_other):
        return None
    other = least[column.num_values - 1]
    if other < _MOSTLY_OTHER:
        return None
    return (
        f"Column {column.name!r} is {cells.values[-1]!r} in {_nearly(other)} rows: these have "
        "values that were not declared and are too rare to be found. Declare its categories, or "
        "leave the column out; if these are numbers with words in between, make the words missing "
        "and read the column as numbers; if they are dates, give it the sdtype datetime."
        f"{_OF_IDS if other > _ALL_MISSING else ''}"
    )


def _nines(column: Column, least: np.ndarray, declared: ColumnFacts | None) -> str | None:
    """Whether rows have a number that stands for all others: a number says nothing of that."""
    cells = column.cells
    if not (isinstance(cells, Categories) and cells.has_other):
        return None
    value, other = cells.values[-1], least[column.num_values - 1]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or getattr(declared, "other", None) is not None or other <= 0:
        return None
    return (
        f"Column {column.name!r} is {value!r} in more than {share(other)} of the rows: "
        f"{value!r} stands for values that too few rows share to be found. Declare its "
        "range_values."
    )


def _at_bounds(
    column: Column, shares: np.ndarray, error: float, declared: ColumnFacts | None
) -> str | None:
    """Whether rows pile up at an end of a declared range."""
    size = column.num_values
    if column.sdtype not in ("numerical", "datetime") or size < 3:
        return None
    labels, widths = code_labels(column), _widths(column)
    words = words_of(declared)
    density = shares[:size] / widths
    for key, end, beside in (("range_min", 0, 1), ("range_max", size - 1, size - 2)):
        bound = words.get(key)
        if bound is None or (key == "range_min" and bound in NATURAL_ENDS):
            continue
        neighbor = max(density[beside], 0.0) + error / widths[beside]
        piled = shares[end] - error
        if piled > _AT_BOUND and piled / widths[end] > _ABOVE_NEIGHBOR * neighbor:
            return (
                f"Column {column.name!r} has {share(shares[end])} of the rows at "
                f"{labels[end]}, the end of its declared {key}={bound!r}, and few beside it: "
                "values beyond were probably clipped. Declare a wider range, unless that is how "
                "the column is."
            )
    return None


def _widths(column: Column) -> np.ndarray:
    """The width of each code's cell, as a part of the range."""
    cells = column.cells
    assert not isinstance(cells, Categories)
    wide = cells.widths if isinstance(cells, Ticks) else np.diff(cells.edges)
    wide = np.maximum(np.asarray(wide, dtype=np.float64), np.finfo(np.float64).tiny)
    if column.merging is None:
        return wide if len(wide) else np.ones(1)
    return np.bincount(column.merging.codes, weights=wide)


def _constant(column: Column, least: np.ndarray) -> str | None:
    size = column.num_values
    code = int(least[:size].argmax())
    if size < _MANY_VALUES or least[code] < _CONSTANT:
        return None
    return (
        f"Column {column.name!r} is {code_labels(column)[code]} in {_nearly(least[code])} rows, "
        f"though {size} values or cells are declared or were found. Its range may be far too wide "
        "or elsewhere, or its categories written otherwise than in the table."
    )


def _found_constant(column: Column, fitted: Facts) -> str | None:
    """Whether no range was declared, and none was found that holds more than one value."""
    declared = fitted.declared.get(column.name)
    is_ranged = isinstance(declared, NumberFacts | DateFacts)
    if not is_ranged or column.num_values > 1 or not declared.lacks_domain:
        return None
    unseen = rows_unseen(fitted.ledger)
    return (
        f"Column {column.name!r} was found to be {code_labels(column)[0]} in all rows. About "
        f"{unseen:,.0f} rows with other values would not have been seen, or {SPREAD * unseen:,.0f} "
        "if these are of very different sizes. If it has other values, declare its range."
    )


def _of_rare(fitted: Facts, names: Set[str]) -> Iterator[str]:
    """One sentence on the categories of all columns that the noise hides."""
    found = []
    for column in fitted.columns:
        if isinstance(column.cells, Categories) and column.name in names:
            table, labels = fitted.tables[column.name], code_labels(column)
            size = column.num_values - column.cells.has_other
            rare = np.flatnonzero(table.counts[:size] < SURE * math.sqrt(table.variance))
            if 2 * len(rare) > size:
                found.append(f"{len(rare)} of {size} of {column.name!r} ({_some(labels, rare)})")
    if found:
        yield (
            "More than half of the categories of some columns have too few rows to be told from "
            f"none: {'; '.join(found)}. They may vanish or be far too many. Put rare categories "
            "together, or spend more."
        )


def _some(labels: list[str], codes: np.ndarray) -> str:
    shown = ", ".join(labels[code] for code in codes[:_NAMED])
    return shown if len(codes) <= _NAMED else f"{shown}, ..."


def _nearly(part: float) -> str:
    return "nearly all" if part > _ALL_MISSING else f"more than {share(part)} of the"
