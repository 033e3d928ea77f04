"""The warnings after a fit of cells that are missing, unreadable, or others in some of the rows."""

import math

import numpy as np
import pandas as pd

from sdv_privpgd.columns.bins import Categories
from sdv_privpgd.columns.column import Column
from sdv_privpgd.report.known_facts import SURE, Facts
from sdv_privpgd.words import listed, share

_CLEAR, _SOME = 4.0, 0.01
"""So many standard deviations of the noise, and this share of the rows, are worth a word."""

_OTHER, _OTHER_SURELY = 0.1, 0.05
"""The share of rows whose value was not found that is worth a word, and what it surely must be."""

_NAMED, _OTHERS_NAMED = 5, 10


def on_unread(fitted: Facts, told: set[str]) -> list[str]:
    """One sentence on all columns with some cells that nobody said may be missing. Public.

    A cell that is not as declared, such as a category that the codebook lacks, counts as missing.
    So nobody can tell how many of them are.

    Args:
        fitted: The facts after the fit.
        told: The columns of which something else was said.
    """
    found = []
    for column in fitted.columns:
        if column.name in told or column.name not in fitted.tables or not _may_be_unread(column):
            continue
        if fitted.declared.get(column.name, {}).get("range_is_nullable") is not None:
            continue
        table = fitted.tables[column.name]
        count, total = float(table.counts[-1]), fitted.total.value
        if count > max(_SOME * total, _CLEAR * math.sqrt(table.variance)):
            found.append(f"{column.name} ({share(count / total)})")
    if not found:
        return []
    return [
        f"Some cells are missing, or are not as declared: those of {listed(found, _NAMED)}. A "
        "category that was not declared, or text among numbers or dates, such as '<0.5', counts "
        "as missing. If they are missing indeed, declare range_is_nullable=True."
    ]


def on_others(fitted: Facts, told: set[str]) -> list[str]:
    """One sentence on all columns of which a part of the rows has values too rare to be found.

    Nothing is said where somebody named a value for all others, who will have meant it. Public.

    Args:
        fitted: The facts after the fit.
        told: The columns of which something else was said.
    """
    found = []
    for column in fitted.columns:
        cells = column.cells
        if not (isinstance(cells, Categories) and cells.has_other) or column.name in told:
            continue
        declared = fitted.declared.get(column.name, {}).get("other_value")
        if declared is not None or column.name not in fitted.tables:
            continue
        table, total = fitted.tables[column.name], fitted.total.value
        part = float(table.counts[column.num_values - 1]) / total
        if part >= _OTHER and part - SURE * math.sqrt(table.variance) / total >= _OTHER_SURELY:
            found.append((part, f"{column.name} ({share(part)} {cells.values[-1]!r})"))
    if not found:
        return []
    most = [text for _, text in sorted(found, reverse=True)]
    return [
        f"Values that are too rare to be found became one: those of {listed(most, _OTHERS_NAMED)}. "
        "Declare the range_values of these columns, put rare ones together before a fit, or leave "
        "the columns out."
    ]


def _may_be_unread(column: Column) -> bool:
    """Whether a cell that is not missing may count as missing."""
    if not column.nullable:
        return False
    if isinstance(column.cells, Categories):
        return not column.cells.has_other
    return not has_values_alone(column)


def has_values_alone(column: Column) -> bool:
    """Whether the table's type lets a column hold numbers, truths or dates, and no other word."""
    dtype = column.dtype
    return isinstance(dtype, np.dtype | pd.api.extensions.ExtensionDtype) and (
        pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_datetime64_any_dtype(dtype)
    )
