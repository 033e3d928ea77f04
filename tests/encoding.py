"""Columns with their codes."""

import numpy as np
import pandas as pd

from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.decoders import decoder_for
from sdv_privpgd.columns.encoders import encode, read
from sdv_privpgd.columns.schema import Schema


class Codec:
    """There and back: a column with its encoder and its decoder."""

    def __init__(self, column: Column) -> None:
        self.column, self._decoder = column, decoder_for(column)

    def encode(self, series):
        return encode(self.column, series)

    def read(self, series):
        return read(self.column, series)

    def __getattr__(self, name):
        return getattr(self._decoder, name)


def transformer(sdtype, num_bins=32, **facts):
    schema = Schema.from_sdv({"x": {"sdtype": sdtype, **facts}}, num_bins=num_bins)
    return Codec(schema.columns[0])


def numerical(low, high, **facts):
    return transformer("numerical", range_min=low, range_max=high, **facts)


def dates(low="2000-01-01", high="2009-12-31", datetime_format=None, **facts):
    return transformer(
        "datetime", range_min=low, range_max=high, datetime_format=datetime_format, **facts
    )


def categories(*values, **facts):
    return transformer("categorical", range_values=list(values), **facts)


def codes(transformer, *cells):
    return transformer.encode(pd.Series(cells, dtype=object))[0].tolist()


def decoded(transformer, *codes, position=0.5, **options):
    return transformer.decode(np.array(codes), np.full(len(codes), position), **options)


EACH = {
    "whole": numerical(-3, 200, decimal_places=0),
    "steps": numerical(0, 1_000, increment=7, decimal_places=0),
    "decimal": numerical(-1.5, 7, decimal_places=2),
    "real": numerical(-1.5, 7),
    "date": dates(),
    "written": dates("2000-01-01", "2009-12-31", "%Y-%m-%d"),
    "category": categories("a", 2, 0.5),
    "truth": transformer("boolean"),
}
