"""The dtypes of pandas' columns for tables of other libraries, by their schemas alone. Public."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from sdv_privpgd.base.arguments import SourceError
from sdv_privpgd.columns.dtypes import is_unreadable

INDEX = "__index_level_"
"""How pandas names an index without a name in a file."""


def dtypes_of(schema: pa.Schema) -> dict[str, Any]:
    """The dtypes of pandas' columns, by the schema alone. Public.

    Whole numbers of a small type can be missing, unless pandas wrote them, and so can those without
    a sign, which pandas would not tell from others. What would be objects to pandas, days, times of
    the day and decimals, stays Arrow's, unless pandas wrote it, by the cells.
    """
    as_read = schema
    for place, field in enumerate(schema):
        if is_unreadable(pd.ArrowDtype(field.type)):  # pandas would have objects
            as_read = as_read.set(place, field.with_type(pa.null()))
    plain = as_read.remove_metadata().empty_table().to_pandas().dtypes
    known = as_read.empty_table().to_pandas().dtypes
    said = (schema.pandas_metadata or {}).get("columns", [])
    written = {each["field_name"]: each["numpy_type"] for each in said}
    found = {}
    for field in schema:
        name = field.name
        if schema.names.count(name) > 1:
            continue  # refused, by name
        by_schema = pd.ArrowDtype(field.type)
        if is_unreadable(by_schema) or (_typed(field.type) and name not in written):
            found[name] = by_schema
            continue
        dtype = known[name] if name in known else plain[name]
        can_miss = field.nullable and written.get(name) != str(dtype)
        whole = isinstance(dtype, np.dtype) and dtype.kind in "iu"
        is_chosen = whole and (dtype.itemsize < 8 or dtype.kind == "u")
        if is_chosen and can_miss:
            dtype = f"{'U' * (dtype.kind == 'u')}Int{8 * dtype.itemsize}"
        found[name] = pd.api.types.pandas_dtype(dtype)
    return found


def typed(schema: Any) -> pd.DataFrame:
    """Pandas' table without rows of Arrow's or Polars' schema, with Arrow's types for objects."""
    if not isinstance(schema, pa.Schema):
        schema = schema_of_polars(schema.to_frame())
    return schema.empty_table().to_pandas(types_mapper=_typed)


def _typed(kind: pa.DataType) -> pd.ArrowDtype | None:
    """The dtype of dates, times and decimals."""
    own = pa.types.is_date, pa.types.is_time, pa.types.is_decimal
    return pd.ArrowDtype(kind) if any(each(kind) for each in own) else None


def schema_of_polars(empty: Any) -> pa.Schema:
    """Arrow's schema of a table of Polars without rows.

    Types that Arrow has not, such as Int128 and objects, are structs there: a column of one is
    refused by its name if somebody asks for it.
    """
    found = [_field(empty.select(name), name, kind) for name, kind in empty.schema.items()]
    return pa.schema(found)


def _field(empty: Any, name: str, kind: Any) -> pa.Field:
    with suppress(pa.ArrowException):
        if str(kind) != "Object":  # whose cells would be addresses in memory
            return empty.to_arrow().schema.field(0)
    return pa.field(name, pa.struct([(f"{kind} of Polars", pa.null())]))


_ARROW = MappingProxyType(
    {
        "boolean": pa.bool_(),
        "byte": pa.int8(),
        "short": pa.int16(),
        "integer": pa.int32(),
        "long": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "string": pa.string(),
        "date": pa.date32(),
        # Spark has one unit of time, so it tells nothing of a column: pandas' own.
        "timestamp": pa.timestamp("ns"),
        "timestamp_ntz": pa.timestamp("ns"),
        **dict.fromkeys(("binary", "char", "varchar", "void", "time"), pa.binary()),
        "array": pa.list_(pa.null()),
        "map": pa.map_(pa.string(), pa.null()),
        "daytimeinterval": pa.duration("us"),
        "yearmonthinterval": pa.month_day_nano_interval(),
    }
)
"""Arrow's types by the names of Spark's, binary for what are objects to pandas. All others are
structs, or of kinds that no type of column reads either."""


def dtypes_of_spark(fields: Sequence[Any]) -> Mapping[str, Any]:
    """The dtypes of columns with the types of Spark's fields."""
    kinds = [(each, _of_spark(each.dataType)) for each in fields]
    return dtypes_of(pa.schema([pa.field(each.name, kind, each.nullable) for each, kind in kinds]))


def _of_spark(kind: Any) -> pa.DataType:
    name = kind.typeName()
    if name == "decimal":
        return pa.decimal128(kind.precision, kind.scale)
    return _ARROW.get(name, pa.struct([]))


def zone_of_spark(zone: str) -> str:
    """A time zone of Spark's, as pandas calls it. Raises ``SourceError`` if it knows none such."""
    zone = "UTC" if zone == "Z" else zone
    try:
        pd.Timestamp(0, tz=zone)
    except Exception:  # noqa: BLE001 - of the several libraries that know time zones
        raise SourceError(
            f"The session's time zone {zone} is unknown here: set spark.sql.session.timeZone to "
            "one such as Europe/Zurich."
        ) from None
    return zone
