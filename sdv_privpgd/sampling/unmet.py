"""Conditions that cannot be met: the column at fault, and the values it can hold. Public."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd.base.words import in_rows
from sdv_privpgd.columns.bins import BELOW_ONE, Categories
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.encoders import encoder_for
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.sampling.between import Between, span
from sdv_privpgd.sampling.conditions import Wanted, is_range

_SHOWN = 8


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
            wanted = pd.Series(conditions[column.name])
            wrong = ~Wanted(encoder_for(column), wanted).possible
            outside |= wrong
            said += _outside(column, wanted.loc[wrong])
    if not outside.all():
        said.append(f"{in_rows((~outside).sum())} would contradict the constraints.")
    return " ".join(said)


def _outside(column: Column, wanted: pd.Series) -> Iterator[str]:
    """A sentence on the values that are asked of the column and lie outside its domain."""
    if not len(wanted):
        return
    asked = list(dict.fromkeys(map(_written, wanted)))
    shown = ", ".join(asked[:3]) + (f" and {len(asked) - 3} others" if len(asked) > 3 else "")
    lies = "lies" if len(asked) == 1 else "lie"
    yield (
        f"In {in_rows(len(wanted))} {shown} {lies} outside the domain of {column.name!r}, which "
        f"holds {_held(column)}."
    )


def _written(value: Any) -> str:
    if isinstance(value, Between):
        return repr(value)
    return "a missing value" if pd.isna(value) else repr(value)


def _held(column: Column) -> str:
    """The values that the column can hold, in words."""
    if isinstance(column.cells, Categories):
        values = [repr(value) for value in column.cells.values]
        more = len(values) - _SHOWN
        held = ", ".join(values[:_SHOWN]) + (f" and {more} others" if more > 0 else "")
    else:
        plain = replace(column, merging=None)  # a cell that hardly occurs can be an end, too
        ends = np.array([0, plain.num_values - 1]), np.array([0.0, BELOW_ONE])
        low, high = encoder_for(plain).decode(*ends)
        held = f"{low} to {high}"
    return f"{held}, and may be missing" if column.nullable else f"{held}, and is never missing"
