"""Turns data frames with SDV's metadata into codes or plain values, which the metrics compare."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sdmetrics.utils import get_alternate_keys, get_primary_key_from_metadata

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.columns.dates import instants
from sdv_privpgd.columns.scalars import real_numbers
from sdv_privpgd.columns.schema import Schema

_NUMERIC = ("numerical", "datetime")
_CATEGORICAL = ("categorical", "ordinal", "boolean")

Data = pd.DataFrame | Mapping[str, pd.DataFrame]
"""A table, or SDV 2's dictionary of tables."""


@dataclass(frozen=True, kw_only=True)
class Cells:
    """Two tables as codes of one public domain. Nominal attributes have no order."""

    domain: Domain
    nominal: frozenset[str]
    real: np.ndarray
    synthetic: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Values:
    """The modelled columns of two tables as they are. Those in ``numeric`` hold float64."""

    numeric: tuple[str, ...]
    real: pd.DataFrame
    synthetic: pd.DataFrame


def cells_of(
    real: Data,
    synthetic: Data,
    metadata: Mapping[str, Any],
    table_name: str | None,
    *,
    public_domain: Mapping[str, Mapping] | None,
    num_bins: int,
) -> Cells:
    """Two tables as codes of the cells that the metadata and the public domain declare."""
    from sdv_privpgd.columns.encoding import encode_table

    facts = _facts(metadata, table_name)
    schema = Schema.from_sdv(
        facts["columns"], keys=_keys(facts), public_domain=public_domain, num_bins=num_bins
    )
    domain = schema.domain()
    codes = [
        encode_table(_columns(data, table_name, domain.attributes), schema)
        for data in (real, synthetic)
    ]
    return Cells(
        domain=domain,
        nominal=frozenset(column.name for column in schema.columns if not column.is_ordered),
        real=codes[0],
        synthetic=codes[1],
    )


def values_of(
    real: Data, synthetic: Data, metadata: Mapping[str, Any], table_name: str | None
) -> Values:
    """The modelled columns of two tables, without keys. Unreadable numbers or dates are missing."""
    facts = _facts(metadata, table_name)
    keys = _keys(facts)
    kinds = {
        name: column
        for name, column in facts["columns"].items()
        if column.get("sdtype") in (*_NUMERIC, *_CATEGORICAL) and name not in keys
    }
    numeric = tuple(name for name, column in kinds.items() if column["sdtype"] in _NUMERIC)
    tables = [
        pd.DataFrame(
            {
                name: _numbers(column, kinds[name]) if name in numeric else column.to_numpy()
                for name, column in _columns(data, table_name, tuple(kinds)).items()
            }
        )
        for data in (real, synthetic)
    ]
    return Values(numeric=numeric, real=tables[0], synthetic=tables[1])


def _facts(metadata: Mapping[str, Any], table_name: str | None) -> Mapping[str, Any]:
    """The facts on the table, from SDV's metadata in either of its two forms."""
    if not isinstance(metadata, Mapping):
        raise TypeError(
            "metadata must be a dictionary, as metadata.to_dict() gives, got "
            f"{type(metadata).__name__}."
        )
    return _table(metadata["tables"], table_name) if "tables" in metadata else metadata


def _table(tables: Mapping[str, Any], table_name: str | None) -> Any:
    """The table of a name. The name may be left out if there is only one table."""
    if table_name is None and len(tables) == 1:
        return next(iter(tables.values()))
    if table_name is None or table_name not in tables:
        raise ValueError(f"table_name must be one of {list(tables)!r}, got {table_name!r}.")
    return tables[table_name]


def _keys(facts: Mapping[str, Any]) -> set[str]:
    found = [get_primary_key_from_metadata(facts), *get_alternate_keys(facts)]
    return {name for key in found for name in (key if isinstance(key, list) else [key])}


def _columns(data: Data, table_name: str | None, names: tuple[str, ...]) -> dict[str, pd.Series]:
    frame = data if isinstance(data, pd.DataFrame) else _table(data, table_name)
    absent = [name for name in names if name not in frame]
    if absent:
        raise ValueError(f"Both tables need the metadata's columns, one is without {absent!r}.")
    return {str(name): column for name, column in frame[list(names)].items()}


def _numbers(column: pd.Series, facts: Mapping[str, Any]) -> np.ndarray:
    """Numbers, or nanoseconds of dates. Values that cannot be read are missing."""
    if facts["sdtype"] == "datetime":
        numbers, missing = instants(column, facts.get("datetime_format"))
    else:
        numbers, missing = real_numbers(column)
    return np.where(missing, np.nan, numbers.astype(np.float64))
