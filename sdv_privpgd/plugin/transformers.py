"""RDT's view of encoders: the sum of a code and a position is one float column."""

import abc

import numpy as np
import pandas as pd
from rdt.transformers import BaseTransformer

from sdv_privpgd.columns.bins import Categories
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.encoders import encoder_for


class ColumnTransformer(BaseTransformer, abc.ABC):
    """Translates one column through its encoder, and learns nothing when RDT fits it."""

    IS_GENERATOR = False

    def __init__(self, column: Column) -> None:
        super().__init__()
        self.column = column
        self.encoder = encoder_for(column)

    def _set_seed(self, data: pd.DataFrame) -> None:
        # RDT hashes the first five cells into a seed that it keeps and pickles.
        super()._set_seed(data.head(0))

    def _fit(self, columns_data: pd.Series) -> None:
        """Learns nothing."""

    def _transform(self, columns_data: pd.Series) -> pd.Series:
        codes, positions = self.encoder.encode(columns_data)
        # The sum of a large code and a position near 1 could round up to the next code.
        coordinates = np.minimum(codes + positions, np.nextafter(codes + 1.0, 0.0))
        return pd.Series(coordinates, index=columns_data.index)

    def _reverse_transform(self, columns_data: pd.Series) -> pd.Series:
        coordinates = columns_data.to_numpy(dtype=np.float64)
        coordinates = np.nan_to_num(coordinates, nan=self.column.size - 0.5)
        coordinates = np.clip(coordinates, 0.0, np.nextafter(float(self.column.size), 0.0))
        codes = np.floor(coordinates).astype(np.int64)
        # Unnamed: RDT gives it the name that the column has in the table.
        values = self.encoder.decode(codes, coordinates - codes).rename(None)
        return values.set_axis(columns_data.index)


class NumericalTransformer(ColumnTransformer):
    """Translates a numerical column."""

    INPUT_SDTYPE = "numerical"
    SUPPORTED_SDTYPES = ("numerical",)


class DatetimeTransformer(ColumnTransformer):
    """Translates a datetime column of strings or of timestamps."""

    INPUT_SDTYPE = "datetime"
    SUPPORTED_SDTYPES = ("datetime",)


class CategoryTransformer(ColumnTransformer):
    """Translates a categorical, ordinal or boolean column."""

    INPUT_SDTYPE = "categorical"
    SUPPORTED_SDTYPES = ("categorical", "ordinal", "boolean")


def transformer_for(column: Column) -> ColumnTransformer:
    """The transformer of a column."""
    if column.sdtype == "datetime":
        return DatetimeTransformer(column)
    if isinstance(column.cells, Categories):
        return CategoryTransformer(column)
    return NumericalTransformer(column)
