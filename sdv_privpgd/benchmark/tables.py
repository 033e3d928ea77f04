"""The real tables of the comparison: their rows, their declared columns and their codes."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.benchmark.declarations import TABLES, Declaration, check_names
from sdv_privpgd.columns.bins import Categories
from sdv_privpgd.columns.facts import ColumnFacts
from sdv_privpgd.columns.parsing import read_table
from sdv_privpgd.columns.schema import Schema

if TYPE_CHECKING:
    import pandas as pd

SPLIT_SEED, TEST_SHARE = 42, 0.2
"""The paper's split (Donhauser et al. 2024, section 4.1, and its code)."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table with its declared columns, each cut into at most ``cells`` cells. Not private.

    Numbers are cut into cells of equal width over their range. If there are more categories than
    ``cells``, neighbors in their declared order share a cell. Missing has a cell of its own.
    """

    name: str
    frame: "pd.DataFrame"
    schema: Schema
    cells: int
    label: str | None
    facts: Mapping[str, ColumnFacts] = field(default_factory=dict)
    """What is declared of each column, where a preprocessing is to look into it."""

    @property
    def task(self) -> Literal["classification", "regression"]:
        """The kind of prediction for the label; ``classification`` without a label."""
        sdtypes = {column.name: column.sdtype for column in self.schema.columns}
        is_number = self.label is not None and sdtypes[self.label] == "numerical"
        return "regression" if is_number else "classification"

    @cached_property
    def _cuts(self) -> tuple[np.ndarray | None, ...]:
        """The table's code for each of a column's codes in the schema, if they differ."""
        cuts: list[np.ndarray | None] = []
        for column in self.schema.columns:
            size = column.num_values
            if isinstance(column.cells, Categories) and size > self.cells:
                merged = np.arange(size) * self.cells // size
                cuts.append(np.append(merged, [self.cells] * column.nullable).astype(np.int64))
            else:
                cuts.append(None)
        return tuple(cuts)

    @cached_property
    def _whole(self) -> frozenset[str]:
        """The columns of numbers that hold whole ones alone."""
        numbers = self.frame.select_dtypes("number")
        return frozenset(name for name in numbers if np.all(numbers[name].dropna() % 1 == 0))

    @property
    def domain(self) -> Domain:
        """The domain, with one attribute for each column."""
        declared = self.schema.domain()
        sizes = [
            size if cut is None else int(cut[-1]) + 1
            for size, cut in zip(declared.sizes, self._cuts, strict=True)
        ]
        return Domain(declared.attributes, tuple(sizes))

    def encode(self, frame: "pd.DataFrame") -> np.ndarray:
        """The codes of rows with this table's columns, shape (row, attribute)."""
        from sdv_privpgd.columns.encoding import encode_table  # imports RDT

        codes = encode_table(columns_of(frame), self.schema)
        cut = np.empty(codes.shape, dtype=codes.dtype, order="F")
        for axis, merged in enumerate(self._cuts):
            cut[:, axis] = codes[:, axis] if merged is None else merged[codes[:, axis]]
        return cut

    def decode(self, codes: np.ndarray, seed: int) -> "pd.DataFrame":
        """Decodes rows of codes: values are spread evenly in their cells, as in a synthesizer.

        Where all numbers of a column are whole, they are rounded.
        """
        import pandas as pd

        from sdv_privpgd.columns.encoders import encoder_for  # imports RDT

        generator = np.random.default_rng(seed)
        found = {}
        for axis, (column, cut) in enumerate(zip(self.schema.columns, self._cuts, strict=True)):
            own, places = codes[:, axis].astype(np.int64), generator.random(len(codes))
            if cut is not None:
                # Cells that were merged are neighbors, and all of them have the same chance.
                starts = np.searchsorted(cut, np.arange(cut[-1] + 2))
                own = starts[own] + np.floor(places * np.diff(starts)[own]).astype(np.int64)
            values = encoder_for(column).decode(own, places)
            found[column.name] = values.round() if column.name in self._whole else values
        return pd.DataFrame(found)

    def split(self) -> "tuple[pd.DataFrame, pd.DataFrame]":
        """The 80 % of rows that are fitted, and the 20 % for testing."""
        from sklearn.model_selection import train_test_split  # as the paper's code does

        places = np.arange(len(self.frame))
        train, test = train_test_split(places, test_size=TEST_SHARE, random_state=SPLIT_SEED)
        return self.frame.take(train), self.frame.take(test)


def load(name: str, folder: Path, cells: int) -> Table:
    """One of ``TABLES``, from its files in a folder."""
    frame, words = rows_and_facts(name, folder)
    facts = read_table(words, (), None)
    return Table(
        name=name,
        frame=frame,
        schema=Schema.of(facts, cells),
        cells=cells,
        label=TABLES[name].label,
        facts=facts,
    )


def rows_and_facts(name: str, folder: Path) -> "tuple[pd.DataFrame, dict[str, dict]]":
    """The rows of one of ``TABLES``, and the declarations of its columns in SDV's words."""
    import pandas as pd

    check_names([name])
    declared = TABLES[name]
    paths = sorted(folder.glob(f"{declared.file}.parquet"))
    if not paths:
        raise FileNotFoundError(
            f"No {declared.file}.parquet in {folder}: name the folder of the tables with --data."
        )
    described = json.loads(paths[0].with_suffix(".json").read_text())
    frame = pd.concat([pd.read_parquet(path) for path in paths], ignore_index=True)
    frame = declared.prepare(frame).drop(columns=list(declared.dropped))
    frame = frame.dropna(subset=[declared.label]).reset_index(drop=True)
    facts = {}
    for column in frame.columns:
        facts[column] = _facts(frame, column, declared, described)
        if "range_values" in facts[column]:
            frame[column] = _texts(frame[column])
    # The NIST table has columns of text that hold numbers or this letter.
    for column, kind in described["sdtypes"].items():
        if kind == "numerical-or-N" and column in frame:
            frame[column] = pd.to_numeric(frame[column].where(frame[column] != "N"))
    return frame, facts


def load_own(
    path: Path, metadata: Path, domain: Path | None, label: str | None, cells: int
) -> Table:
    """A user's table from Parquet or CSV, with its SDV metadata and a public domain.

    Ranges in the metadata count as declared. ``domain`` maps columns to facts that replace them.
    """
    described = json.loads(metadata.read_text())
    if "tables" in described:
        if len(described["tables"]) != 1:
            raise ValueError(
                f"{metadata} describes {len(described['tables'])} tables: give one of one table."
            )
        (described,) = described["tables"].values()
    keys = {described.get("primary_key"), *described.get("alternate_keys", [])} - {None}
    public = None if domain is None else json.loads(domain.read_text())
    facts = read_table(described["columns"], keys, public)
    schema = Schema.of(facts, cells)
    modelled = [column.name for column in schema.columns]
    if label is not None and label not in modelled:
        raise ValueError(f"--label {label!r} is not a modelled column: choose from {modelled!r}.")
    frame = read_rows(path, schema)
    return Table(name=path.stem, frame=frame, schema=schema, cells=cells, label=label, facts=facts)


def read_rows(path: Path, schema: Schema) -> "pd.DataFrame":
    """Reads rows with the columns of a schema, from Parquet or CSV.

    In a CSV only an empty field is missing, and categories that were declared as text are text.
    So "None" and "007" are values.
    """
    import pandas as pd

    names = [column.name for column in schema.columns]
    if path.suffix == ".parquet":
        frame = pd.read_parquet(path)
    else:
        texts: Any = {
            column.name: str
            for column in schema.columns
            if isinstance(column.cells, Categories)
            and all(isinstance(value, str) for value in column.cells.values)
        }
        frame = pd.read_csv(path, dtype=texts, keep_default_na=False, na_values=[""])
        for name in texts.keys() & set(frame.columns):
            # Codes that another program kept as floats.
            frame[name] = frame[name].str.replace(r"^(-?\d+)\.0$", r"\1", regex=True)
    lacking = [name for name in names if name not in frame]
    if lacking:
        raise ValueError(f"{path} lacks the columns {lacking!r}.")
    return frame.loc[:, names]


def _facts(frame: "pd.DataFrame", column: str, declared: Declaration, described: Mapping) -> dict:
    """SDV's facts on a column: declared, from the JSON file, or categories from the table."""
    own = declared.facts.get(column, {})
    if "sdtype" in own:
        return dict(own)
    sdtype = described["sdtypes"].get(column, "boolean")  # a label that ``prepare`` made
    if sdtype.startswith("numerical"):
        low, high = described["public_bounds"].get(column, (None, None))
        missing = column in described["missing"] or sdtype == "numerical-or-N"
        facts = {
            "sdtype": "numerical",
            "range_min": low,
            "range_max": high,
            "range_is_nullable": missing,
            **own,
        }
        whole = described["dtypes"][column].startswith("int") or column in declared.whole
        return {**facts, "decimal_places": 0} if whole else facts
    if sdtype == "boolean":
        return {"sdtype": sdtype, "range_is_nullable": False}
    if column in declared.orders:
        values, sdtype = list(declared.orders[column]), "ordinal"
    else:
        values, sdtype = sorted(_texts(frame[column]).unique(), key=_rank), "categorical"
    return {"sdtype": sdtype, "range_values": values, "range_is_nullable": False}


def _texts(series: Any) -> "pd.Series":
    """Categories as text, so that a CSV file says the same."""
    return series.astype(object).where(series.isna(), series.astype(str))


def _rank(text: str) -> tuple[bool, float, str]:
    """Sorts numbers by size and times of day from midnight on, then words by letters."""
    time = re.match(r"(\d+):(\d+) ([ap])\.m\.", text)
    if time is not None:
        hour, minute, half = time.groups()
        return False, int(hour) % 12 * 60 + int(minute) + 720 * (half == "p"), text
    is_number = text.replace(".", "", 1).removeprefix("-").isdigit()
    return not is_number, float(text) if is_number else 0.0, text


def columns_of(frame: "pd.DataFrame") -> dict[str, "pd.Series"]:
    """The columns of a table under their names."""
    return {str(name): column for name, column in frame.items()}
