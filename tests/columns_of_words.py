"""Columns of SDV's words."""

import pandas as pd

from sdv_privpgd.columns.parser import describe
from sdv_privpgd.columns.schema import Schema


def ranged(sdtype, low, high, **more):
    return {"sdtype": sdtype, "range_min": low, "range_max": high, **more}


def column(num_bins=32, **facts):
    return Schema.from_sdv({"x": facts}, num_bins=num_bins).columns[0]


def numerical(low, high, **facts):
    return column(**ranged("numerical", low, high, **facts))


def dates(low, high, datetime_format=None, **facts):
    return column(**ranged("datetime", low, high, datetime_format=datetime_format, **facts))


def numbers(name, low, high, bins=6, **facts):
    """A column of numbers in so many bins."""
    return describe(name, ranged("numerical", low, high, num_bins=bins, **facts))


def arrow(kind) -> pd.ArrowDtype:
    return pd.ArrowDtype(kind)
