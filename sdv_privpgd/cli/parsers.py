"""Reads workbooks and Parquet by pandas, and says nothing about the contents of their cells."""

from pathlib import Path
from typing import Any

import pandas as pd

from sdv_privpgd.cli.saying import CommandError
from sdv_privpgd.sources.csv import parsing
from sdv_privpgd.sources.dialect import Reading


def parsed_sheet(path: Path, how: Reading) -> pd.DataFrame:
    """The cells of one sheet of a workbook, with their own types and without names."""
    with parsing(path, "a workbook"):
        sheets: dict[Any, pd.DataFrame] = pd.read_excel(
            path, sheet_name=None, header=None, dtype=object, na_values=[""], keep_default_na=False
        )
    if how.sheet is None and len(sheets) > 1:
        raise CommandError(f"{path} has several sheets: name one with --sheet.")
    if how.sheet is not None and how.sheet not in sheets:
        raise CommandError(f"{path} has no sheet {how.sheet!r}.")
    cells = next(iter(sheets.values())) if how.sheet is None else sheets[how.sheet]
    if cells.empty:
        raise CommandError(f"{path} is empty.")
    if how.skip_rows >= len(cells):
        raise CommandError(f"{path} has no lines below those that --skip-rows leaves out.")
    kept = cells.iloc[how.skip_rows :]
    return kept.iloc[: max(len(kept) - how.skip_footer, int(how.has_header))]


def parsed_parquet(path: Path) -> pd.DataFrame:
    """The table of a Parquet file, with the index that pandas stored in it."""
    with parsing(path, "Parquet"):
        return pd.read_parquet(path)


def parsed_schema(path: Path) -> pd.DataFrame:
    """The table of a Parquet file without its rows."""
    import pyarrow.parquet

    with parsing(path, "Parquet"):
        return pyarrow.parquet.read_schema(path).empty_table().to_pandas()
