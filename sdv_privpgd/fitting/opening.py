"""Opening a private table: its columns by name, and what their dtypes alone say."""

from collections.abc import Collection, Mapping
from typing import Any

import pandas as pd

from sdv_privpgd.columns.dtypes import chosen, key_dtype
from sdv_privpgd.columns.mismatch import mismatches
from sdv_privpgd.columns.scalars import has_sdtype
from sdv_privpgd.columns.schema import MODELLED


def opened(
    table: pd.DataFrame, columns: Mapping[str, Mapping], facts: Mapping[str, Mapping]
) -> tuple[dict[str, pd.Series], list[str]]:
    """The private columns in the described order, and sentences on what does not fit.

    Names and dtypes are looked at, and no cell.

    Args:
        table: The private table.
        columns: What is known of each column that must be there, in SDV's words.
        facts: What is declared of the modelled ones.
    """
    names = list(table.columns.to_flat_index().astype(str))
    errors = [
        f"The columns {sorted(map(str, wrong))} are {what}."
        for what, wrong in (
            ("not present in the metadata", [n for n in names if n not in columns]),
            ("missing in the data", [n for n in columns if n not in names]),
            ("there more than once", {n for n in names if names.count(n) > 1}),
        )
        if wrong
    ]
    if errors:
        return {}, errors
    own = {name: table.iloc[:, names.index(name)] for name in columns}
    wordless = {
        name: str(column.dtype)
        for name, column in own.items()
        if columns[name]["sdtype"] in MODELLED and not has_sdtype(column.dtype)
    }
    if wordless:
        return {}, [
            f"SDV has no sdtype for the dtypes of the columns {wordless}. Convert them: "
            "timedeltas to numbers with .dt.total_seconds(), others to text or numbers."
        ]
    return own, mismatches({name: each.dtype for name, each in own.items()}, facts)


def dtypes_kept(
    columns: Mapping[str, pd.Series], described: Mapping[str, Mapping], modelled: Collection[str]
) -> dict[str, Any]:
    """The dtypes of a private table that no cell chose, without any of its values. Public."""
    kept = {}
    for name, column in columns.items():
        is_key = name not in modelled and described[name]["sdtype"] == "id"
        dtype = key_dtype(column.dtype) if is_key else chosen(column.dtype)
        if dtype is not None:
            kept[name] = dtype
    return kept
