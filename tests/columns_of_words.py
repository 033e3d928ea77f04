"""Columns of SDV's words."""

import pandas as pd

from sdv_privpgd.columns.parsing import describe
from sdv_privpgd.columns.schema import Schema


def column(num_bins=32, **facts):
    return Schema.from_sdv({"x": facts}, num_bins=num_bins).columns[0]


def numerical(low, high, **facts):
    return column(sdtype="numerical", range_min=low, range_max=high, **facts)


def dates(low, high, datetime_format=None, **facts):
    return column(
        sdtype="datetime", range_min=low, range_max=high, datetime_format=datetime_format, **facts
    )


def numbers(name, low, high, bins=6, **facts):
    """A column of numbers in so many bins."""
    known = {"sdtype": "numerical", "range_min": low, "range_max": high, "num_bins": bins}
    return describe(name, {**known, **facts})


def arrow(kind) -> pd.ArrowDtype:
    return pd.ArrowDtype(kind)
