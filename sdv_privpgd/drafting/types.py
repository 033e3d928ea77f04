"""The sdtypes that dtypes stand for, decided by the dtypes alone: no cell is looked at."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sdv_privpgd._lazy import need
from sdv_privpgd.columns.dtypes import is_decimal, on_unread

if TYPE_CHECKING:
    from sdv.metadata import Metadata

_SDTYPE_OF_KIND = {
    "i": "numerical",
    "u": "numerical",
    "f": "numerical",
    "b": "boolean",
    "M": "datetime",
}


def draft_metadata(dtypes: Mapping | pd.Series, *, table_name: str = "table") -> "Metadata":
    """SDV's metadata of a table with these dtypes, as in ``draft_metadata(table.dtypes)``.

    Integers and floats are numerical, booleans boolean, dates datetime, and all else is
    categorical. No cell is looked at. SDV's detection reads cells, so a single row can change what
    it finds. Ids, personal data, keys and orders cannot be recognized by their dtype: set them in
    the metadata. Dtypes that pandas has inferred from a file may depend on a single cell; name them
    when you read the file.

    Args:
        dtypes: Columns and their dtypes.
        table_name: The name that SDV gives the table.

    Raises:
        ValueError: For anything but a mapping of columns to dtypes, and for dtypes without an
            sdtype, such as timedeltas.

    >>> metadata = draft_metadata({"age": "int8", "ward": "object"})
    >>> metadata.tables["table"].columns["age"]
    {'sdtype': 'numerical'}
    """
    need("draft_metadata", "sdv")
    from sdv.metadata import Metadata

    columns = {name: {"sdtype": sdtype_of(name, kind)} for name, kind in listed(dtypes).items()}
    return Metadata.load_from_dict({"tables": {table_name: {"columns": columns}}})


def listed(dtypes: Mapping | pd.Series) -> dict[str, Any]:
    """The dtype of each column, under SDV's names, which are text."""
    if isinstance(dtypes, pd.DataFrame):
        raise ValueError("A table has values, which are private: pass table.dtypes instead.")
    if not isinstance(dtypes, Mapping | pd.Series):
        raise ValueError(
            f"dtypes must map columns to dtypes, as table.dtypes does, got {type(dtypes).__name__}."
        )
    found = {str(name): _dtype(str(name), dtype) for name, dtype in dtypes.items()}
    if len(found) < len(dtypes):
        raise ValueError("Two columns have the same name. Rename one of them.")
    return found


def _dtype(name: str, dtype: Any) -> Any:
    try:
        return pd.api.types.pandas_dtype(dtype)
    except TypeError:
        # Anything else than a dtype may be a cell, so it is not repeated.
        raise ValueError(
            f"Column {name!r} has a {type(dtype).__name__} in place of a dtype. Pass table.dtypes."
        ) from None


def sdtype_of(name: str, dtype: Any) -> str:
    """SDV's word for what a column of the dtype holds. Categories of the dtype are not read."""
    if isinstance(dtype, pd.CategoricalDtype):
        return "categorical"
    for sentence in on_unread({name: dtype}):
        raise ValueError(sentence)
    if is_decimal(dtype):
        return "numerical"
    return _SDTYPE_OF_KIND.get(dtype.kind, "categorical")


def is_whole(dtype: Any) -> bool:
    """Whether the dtype was chosen for whole numbers.

    NumPy's int64 was not: pandas infers it from a file, or float64 if a cell is missing.
    """
    inferred = isinstance(dtype, np.dtype) and dtype.name in ("int64", "uint64")
    return dtype.kind in "iu" and not inferred
