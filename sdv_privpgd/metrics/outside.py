"""Finds the real values that a domain does not hold, and what becomes of them. Not private.

A fit clips or replaces them silently, because a message would tell about the table. This module is
for people who may see the table.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from sdv_privpgd.columns.bins import Categories, Ticks
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.dates import to_ticks
from sdv_privpgd.columns.encoders import encoder_for
from sdv_privpgd.columns.scalars import quiet
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.metrics.reading import READ, UNREAD, Described, read_numbers


@dataclass(frozen=True, kw_only=True)
class Outside:
    """The shares of a column's real rows whose values its domain does not hold.

    Attributes:
        below: Numbers or dates below the range, which become its first.
        above: Numbers or dates above the range, which become its last.
        undeclared: Categories that are not declared.
        unreadable: Values that are no number, or no date in the column's format.
        missing: Missing values where nothing may be missing.
        finer: Numbers and dates in the range that are rounded, because they have more decimal
            places or a finer unit. They are inside the domain, so ``share`` does not count them.
        fate: What undeclared, unreadable and missing values become.
    """

    below: float = 0.0
    above: float = 0.0
    undeclared: float = 0.0
    unreadable: float = 0.0
    missing: float = 0.0
    finer: float = 0.0
    fate: str = "missing"

    @property
    def share(self) -> float:
        """The share of the column's rows outside the domain, 0 to 1."""
        return self.below + self.above + self.undeclared + self.unreadable + self.missing


def outside(schema: Schema, real: Mapping[str, pd.Series]) -> dict[str, Outside]:
    """The values of the real rows that each column's domain does not hold. Not private."""
    with quiet():
        return {column.name: _outside(column, real[column.name]) for column in schema.columns}


def _outside(column: Column, series: pd.Series) -> Outside:
    missing = 0.0 if column.nullable else float(series.isna().mean())
    if isinstance(column.cells, Categories):
        known = _known(column, series)
        fate = "missing" if column.nullable else f"the first value, {column.cells.values[0]}"
        if column.cells.has_other:
            fate = str(column.cells.values[-1])
        undeclared = float((~known & series.notna().to_numpy()).mean())
        return Outside(undeclared=undeclared, missing=missing, fate=fate)
    numbers, state = read_numbers(Described.of(column), series)
    low, high = column.cells.ends
    ticks, rounded = _ticks(column, numbers)
    read, below, above = state == READ, ticks < low, ticks > high
    return Outside(
        below=float((read & below).mean()),
        above=float((read & above).mean()),
        unreadable=float((state == UNREAD).mean()),
        missing=missing,
        finer=float((read & rounded & ~below & ~above).mean()),
        fate="missing" if column.nullable else "the lowest value",
    )


def _known(column: Column, series: pd.Series) -> np.ndarray:
    """True for values of a column that are among its categories; each value is looked up once."""
    try:
        places, distinct = pd.factorize(series.astype(object), use_na_sentinel=False)
    except TypeError:  # lists and the like have no hash, and are no category
        return encoder_for(column).holds(series)
    return encoder_for(column).holds(pd.Series(distinct, dtype=object))[places]


def _ticks(column: Column, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers or nanoseconds in the unit of the cells, and True for those that it rounds."""
    if column.unit is not None:
        ticks = to_ticks(numbers, column.unit)
        again = ticks.astype(f"datetime64[{column.unit}]").astype("datetime64[ns]")
        return ticks, again != numbers.astype("datetime64[ns]")
    if not isinstance(column.cells, Ticks):
        return numbers, np.zeros(len(numbers), dtype=bool)
    steps = numbers / float(column.tick)
    ticks = np.rint(steps)
    # The nearest float64 of a decimal is a few units of the last place off a whole tick.
    return ticks, ~np.isclose(steps, ticks, rtol=1e-14, atol=1e-9)
