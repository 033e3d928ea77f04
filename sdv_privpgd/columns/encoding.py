"""Private columns to codes, cell by cell and row by row."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from sdv_privpgd.base.domain import code_type
from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.columns.differences import Difference
from sdv_privpgd.columns.encoders import encode, located, read
from sdv_privpgd.columns.scalars import dense, quiet, real_numbers
from sdv_privpgd.columns.schema import Schema

_BLOCK = 1 << 18
"""Cells of a column that are read at a time, so that intermediate results take little memory."""


def encode_table(
    columns: Mapping[str, pd.Series], schema: Schema, progress: Progress = silent
) -> np.ndarray:
    """The codes of a private table, shape (record, attribute), in the schema's order.

    A difference is computed from a row's own two cells; no other row has a part in it. The codes
    lie attribute by attribute in one array of the smallest type.
    """
    domain = schema.domain()
    num_records = next((len(own) for _, own in columns.items()), 0)
    codes = np.empty((len(domain), num_records), dtype=code_type(domain))
    parts = [slice(start, start + _BLOCK) for start in range(0, num_records, _BLOCK)]
    for own, column in zip(codes, progress(schema.columns, "encode"), strict=False):
        series = columns[column.name]
        for part in parts:
            own[part], _ = encode(column, series.iloc[part])
    for own, difference in zip(codes[len(schema.columns) :], schema.differences, strict=True):
        for part in parts:
            own[part] = _between(difference, columns, part)
    return codes.T


def parts_of_one(cells: pd.Series, low: float, high: float) -> np.ndarray:
    """What rows count as by their weights, beside one of the upper end: float64, up to 1.

    Each cell is read by itself: beyond an end it is that end, and what is no finite number is the
    lower one. No other row has a part in it.
    """
    with quiet():
        weights, missing = real_numbers(dense(cells))
        return np.clip(np.where(missing, low, weights), low, high) / high


def _between(difference: Difference, columns: Mapping[str, pd.Series], part: slice) -> np.ndarray:
    """The codes of the differences of a part of the rows."""
    (low, no_low), (high, no_high) = (
        read(column, columns[column.name].iloc[part])
        for column in (difference.low, difference.high)
    )
    with quiet():
        return located(difference.column, difference.between(low, high), no_low | no_high)[0]
