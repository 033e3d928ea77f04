"""The real tables of the comparison: their rows, their declared columns and their codes.

Ranges come from the JSON file beside a table: they are those of the codebook, or round numbers that
cover the table. The round numbers, and categories that no codebook lists here, were looked up in
the tables, which are public. Never declare a private table like this.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from sdv_privpgd.base import cached_property
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.columns.bins import Categories, Merging
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.decoders import decoder_for
from sdv_privpgd.columns.encoding import encode_table
from sdv_privpgd.columns.facts import ColumnFacts
from sdv_privpgd.columns.parser import read_table
from sdv_privpgd.columns.positions import coupled
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.metrics.pairs import facts_of, keys_of

SPLIT_SEED, TEST_SHARE = 42, 0.2
"""The paper's split (Donhauser et al. 2024, section 4.1, and its code)."""


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """The declarations of a table besides those of its JSON file.

    ``facts`` are in SDV's words; those with an sdtype replace all others. ``prepare`` first turns
    the rows into those of a published task. Rows where the label is missing are left out.
    """

    file: str  # the name of its files, or a pattern
    label: str  # the column to predict
    dropped: Sequence[str] = ()  # such as keys, weights and constants
    whole: Sequence[str] = ()  # integers that are stored as floats
    orders: Mapping[str, Sequence[str]] = field(default_factory=dict)  # of ordinal columns
    facts: Mapping[str, Mapping] = field(default_factory=dict)
    prepare: Callable[[pd.DataFrame], pd.DataFrame] = lambda frame: frame


def _traveltime(frame: pd.DataFrame) -> pd.DataFrame:
    """ACS Traveltime's label and those of its features that the table has."""
    features = [
        "Age", "Education", "Marital Status", "Gender", "Employment status of parents",
        "Mobility status", "Race", "State", "Citizenship status", "Occupation",
        "Means of transportation to work",
    ]  # fmt: skip
    travels = frame.dropna(subset=["Travel time to work"])
    return travels.loc[:, features].assign(**{"Travel > 20": travels["Travel time to work"] > 20})


def _mobility(frame: pd.DataFrame) -> pd.DataFrame:
    """ACS Mobility's label, people and those of its features that the table has."""
    features = [
        "Age", "Education", "Marital Status", "Gender", "Employment status of parents",
        "Citizenship status", "Military service", "Nativity", "Hearing difficulty",
        "Vision difficulty", "Cognitive difficulty", "Race", "Workclass", "Travel time to work",
        "Income",
    ]  # fmt: skip
    young = frame.query("18 < Age < 35")
    return young.loc[:, features].assign(
        **{"Same house": young["Mobility status"] == "Yes, same house (nonmovers)"}
    )


def _readmission(frame: pd.DataFrame) -> pd.DataFrame:
    """The task of Grinsztajn et al. 2022 as the PrivPGD paper has it: 71,090 rows, 7 columns.

    Patients who came back after 30 days and as many who did not, drawn with a fixed seed; the
    numerical columns of at least ten values without the first, which the paper's code loses.
    """
    late = frame[frame["readmitted"] == ">30"]
    never = frame[frame["readmitted"] == "NO"].sample(len(late), random_state=0)
    features = [
        "num_lab_procedures", "num_medications", "number_outpatient", "number_emergency",
        "number_inpatient", "number_diagnoses", "readmitted",
    ]  # fmt: skip
    return frame.loc[sorted([*late.index, *never.index]), features]


_SCHOOL_YEARS = [
    "No schooling completed", "Nursery school, preschool", "Kindergarten",
    *(f"Grade {year}" for year in range(1, 12)), "12th grade - no diploma",
    "Regular high school diploma", "GED or alternative credential",
    "Some college, but less than 1 year", "1 or more years of college credit, no degree",
    "Associate's degree", "Bachelor's degree", "Master's degree",
    "Professional degree beyond a bachelor's degree", "Doctorate degree",
]  # fmt: skip
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]


def _workers(
    label: str, prepare: Callable[[pd.DataFrame], pd.DataFrame], oldest: int = 99
) -> Declaration:
    return Declaration(
        file="acs_workers_us_2018",
        label=label,
        prepare=prepare,
        whole=("Age", "Income", "Vehicle occupancy", "Travel time to work"),
        orders={"Education": _SCHOOL_YEARS},
        # The codebook's range is ten times as wide: nearly all would be in its first cell.
        facts={"Income": {"range_min": 0, "range_max": 400_000}, "Age": {"range_max": oldest}},
    )


def _acs_income(file: str) -> Declaration:
    # Codes are stored as floats and cut like other numbers: so did the paper.
    facts: dict[str, dict] = {
        name: {"sdtype": "numerical", "range_min": low, "range_max": high}
        for name, (low, high) in _ACS_RANGES.items()
    }
    facts["PINCP"] = {"sdtype": "boolean"}
    known = {name: {**each, "range_is_nullable": False} for name, each in facts.items()}
    return Declaration(file=file, label="PINCP", facts=known)


_SCHOOL = [
    "Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad",
    "Some-college", "Assoc-voc", "Assoc-acdm", "Bachelors", "Masters", "Prof-school", "Doctorate",
]  # fmt: skip
_ACS_RANGES = {  # from the codebook "2018 ACS PUMS data dictionary"
    "AGEP": (17, 99),  # the task leaves out people under 17
    "COW": (1, 9),
    "SCHL": (1, 24),
    "MAR": (1, 5),
    "OCCP": (10, 9920),
    "POBP": (1, 554),
    "RELP": (0, 17),
    "WKHP": (1, 99),
    "SEX": (1, 2),
    "RAC1P": (1, 9),
}


TABLES: dict[str, Declaration] = {
    "acs_income": _acs_income("acs_income_*"),
    **{
        name: _acs_income(name)
        for name in (
            "acs_income_ca_2018_part", "acs_income_co_2018", "acs_income_ga_2018",
            "acs_income_il_2018", "acs_income_ne_2018", "acs_income_nj_2018", "acs_income_ny_2018",
        )
    },
    "acs_workers": _workers(
        "Income > 50,000",
        lambda frame: frame.assign(Income=frame["Income"] > 50_000).rename(
            columns={"Income": "Income > 50,000"}
        ),
    ),
    "acs_traveltime": _workers("Travel > 20", _traveltime),
    "acs_mobility": _workers("Same house", _mobility, oldest=34),
    "adult": Declaration(
        file="adult",
        label="income",
        dropped=("fnlwgt",),
        orders={"education": _SCHOOL},
        prepare=lambda frame: frame.replace({"?": None}),
    ),
    "bank": Declaration(
        file="bank_marketing_full",
        label="y",
        orders={"month": _MONTHS, "education": ["unknown", "primary", "secondary", "tertiary"]},
    ),
    "california_housing": Declaration(file="california_housing", label="median_house_value"),
    "diabetes": Declaration(
        file="diabetes_130us", label="readmitted", dropped=("encounter_id", "patient_nbr")
    ),
    "diabetes_task": Declaration(
        file="diabetes_130us", label="readmitted", prepare=_readmission
    ),
    "diamonds": Declaration(
        file="diamonds",
        label="price",
        orders={
            "cut": ["Fair", "Good", "Very Good", "Premium", "Ideal"],
            "color": list("JIHGFED"),
            "clarity": ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"],
        },
    ),
    "flights": Declaration(
        file="nyc_flights13",
        label="arr_delay",
        dropped=("year", "tailnum", "flight"),
        whole=(
            "dep_time", "dep_delay", "arr_time", "arr_delay", "air_time", "distance", "hour",
            "minute",
        ),
        orders={
            "month": [str(month) for month in range(1, 13)],
            "day": [str(day) for day in range(1, 32)],
        },
    ),
    "nist": Declaration(
        file="nist_national2018",
        label="PINCP_DECILE",
        whole=("NOC", "NPF", "PINCP", "POVPIP"),
        facts={"PINCP": {"range_min": -20_000, "range_max": 400_000}},  # as for the workers
    ),
}  # fmt: skip
"""The tables by name."""


def check_names(names: Sequence[str]) -> None:
    """Raises ``ValueError`` unless all are names of ``TABLES``."""
    if unknown := [name for name in names if name not in TABLES]:
        raise ValueError(
            f"There are no tables {unknown!r}: choose from {list(TABLES)!r}, or name a file with "
            "its --metadata."
        )


@dataclass(frozen=True, kw_only=True)
class RealTable:
    """A table with its declared columns, each cut into at most ``cells`` cells. Not private.

    Numbers are cut into cells of equal width over their range. If there are more categories than
    ``cells``, neighbors in their declared order share a cell. Missing has a cell of its own.
    """

    name: str
    frame: pd.DataFrame
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
    def coded(self) -> Schema:
        """The columns with the codes that they have here."""
        return Schema(tuple(with_neighbors(each, self.cells) for each in self.schema.columns))

    @property
    def domain(self) -> Domain:
        """The domain, with one attribute for each column."""
        return self.coded.domain()

    def encode(self, frame: pd.DataFrame) -> np.ndarray:
        """The codes of rows with this table's columns, shape (row, attribute)."""
        return encode_table(columns_of(frame), self.coded)

    def decode(self, codes: np.ndarray, seed: int) -> pd.DataFrame:
        """Decodes rows of codes. Where all numbers of a column are whole, they are rounded."""
        rows, numbers = decoded(self.coded, codes, seed), self.frame.select_dtypes("number")
        whole = [name for name in numbers if np.all(numbers[name].dropna() % 1 == 0)]
        return rows.assign(**{name: rows[name].round() for name in whole})

    def split(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The 80 % of rows that are fitted, and the 20 % for testing."""
        from sklearn.model_selection import train_test_split  # as the paper's code does

        places = np.arange(len(self.frame))
        train, test = train_test_split(places, test_size=TEST_SHARE, random_state=SPLIT_SEED)
        return self.frame.take(train), self.frame.take(test)


def with_neighbors(column: Column, most: int) -> Column:
    """The column, with neighbors that share a code where it has more than ``most`` categories."""
    size = len(column.cells)
    if not isinstance(column.cells, Categories) or size <= most:
        return column
    codes = np.arange(size) * most // size
    return replace(column, merging=Merging(tuple(codes.tolist()), (1.0,) * size))


def decoded(schema: Schema, codes: np.ndarray, seed: int) -> pd.DataFrame:
    """Rows of codes of a schema as values, which lie in their cells as those of a sample do."""
    codes, generator = codes.astype(np.int64), np.random.default_rng(seed)
    positions = coupled(schema.columns, codes, generator.random(codes.shape), generator)
    return pd.DataFrame(
        {
            column.name: decoder_for(column).decode(codes[:, axis], positions[:, axis])
            for axis, column in enumerate(schema.columns)
        }
    )


def load(name: str, folder: Path, cells: int) -> RealTable:
    """One of ``TABLES``, from its files in a folder."""
    frame, words = rows_and_facts(name, folder)
    facts = read_table(words, (), None)
    return RealTable(
        name=name,
        frame=frame,
        schema=Schema.of(facts, cells),
        cells=cells,
        label=TABLES[name].label,
        facts=facts,
    )


def rows_and_facts(name: str, folder: Path) -> tuple[pd.DataFrame, dict[str, dict]]:
    """The rows of one of ``TABLES``, and the declarations of its columns in SDV's words."""
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
) -> RealTable:
    """A user's table from Parquet or CSV, with its SDV metadata and a public domain.

    Ranges in the metadata count as declared. ``domain`` maps columns to facts that replace them.
    """
    described = facts_of(json.loads(metadata.read_text()))
    public = None if domain is None else json.loads(domain.read_text())
    facts = read_table(described["columns"], keys_of(described), public)
    schema = Schema.of(facts, cells)
    modelled = [column.name for column in schema.columns]
    if label is not None and label not in modelled:
        raise ValueError(f"--label {label!r} is not a modelled column: choose from {modelled!r}.")
    frame = read_rows(path, schema)
    return RealTable(
        name=path.stem, frame=frame, schema=schema, cells=cells, label=label, facts=facts
    )


def read_rows(path: Path, schema: Schema) -> pd.DataFrame:
    """Reads rows with the columns of a schema, from Parquet or CSV.

    In a CSV only an empty field is missing, and categories that were declared as text are text.
    So "None" and "007" are values.
    """
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
    if lacking := [name for name in names if name not in frame]:
        raise ValueError(f"{path} lacks the columns {lacking!r}.")
    return frame.loc[:, names]


def _facts(frame: pd.DataFrame, column: str, declared: Declaration, described: Mapping) -> dict:
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
    sdtype, order = "ordinal", declared.orders.get(column)
    if order is None:
        sdtype, order = "categorical", sorted(_texts(frame[column].dropna()).unique(), key=_rank)
    nullable = bool(frame[column].isna().any())
    return {"sdtype": sdtype, "range_values": list(order), "range_is_nullable": nullable}


def _texts(series: Any) -> pd.Series:
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


def columns_of(frame: pd.DataFrame) -> dict[str, pd.Series]:
    """The columns of a table under their names."""
    return {str(name): column for name, column in frame.items()}
