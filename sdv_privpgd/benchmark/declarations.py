"""Declares the columns of the comparison's real tables, and names the column to predict in each.

Ranges come from the JSON file beside a table: they are those of the codebook, or round numbers that
cover the table. The round numbers, and categories that no codebook lists here, were looked up in
the tables, which are public. Never declare a private table like this.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """The declarations of a table besides those of its JSON file.

    Attributes:
        file: The name of its files, or a pattern.
        label: The column to predict. Rows where it is missing are left out.
        dropped: Columns that are left out, such as keys, weights and constants.
        whole: Columns of integers that are stored as floats.
        orders: Ordinal columns and their categories.
        facts: Facts on columns in SDV's words. Facts with an sdtype replace all others.
        prepare: The function that first turns the rows into those of a published task.
    """

    file: str
    label: str
    dropped: Sequence[str] = ()
    whole: Sequence[str] = ()
    orders: Mapping[str, Sequence[str]] = field(default_factory=dict)
    facts: Mapping[str, Mapping] = field(default_factory=dict)
    prepare: "Callable[[pd.DataFrame], pd.DataFrame]" = lambda frame: frame


def _income(frame: "pd.DataFrame") -> "pd.DataFrame":
    """ACS Income's label: more than 50,000 dollars a year."""
    return frame.assign(**{"Income > 50,000": frame["Income"] > 50_000}).drop(columns="Income")


def _traveltime(frame: "pd.DataFrame") -> "pd.DataFrame":
    """ACS Traveltime's label and those of its features that the table has."""
    features = [
        "Age", "Education", "Marital Status", "Gender", "Employment status of parents",
        "Mobility status", "Race", "State", "Citizenship status", "Occupation",
        "Means of transportation to work",
    ]  # fmt: skip
    travels = frame.dropna(subset=["Travel time to work"])
    return travels.loc[:, features].assign(**{"Travel > 20": travels["Travel time to work"] > 20})


def _mobility(frame: "pd.DataFrame") -> "pd.DataFrame":
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


def _readmission(frame: "pd.DataFrame") -> "pd.DataFrame":
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
    label: str, prepare: "Callable[[pd.DataFrame], pd.DataFrame]", oldest: int = 99
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
    return Declaration(
        file=file,
        label="PINCP",
        facts=_ranges(_ACS_RANGES) | {"PINCP": {"sdtype": "boolean", "range_is_nullable": False}},
    )


_SCHOOL = [
    "Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad",
    "Some-college", "Assoc-voc", "Assoc-acdm", "Bachelors", "Masters", "Prof-school", "Doctorate",
]  # fmt: skip
_COUNTRIES = [
    "Cambodia", "Canada", "China", "Columbia", "Cuba", "Dominican-Republic", "Ecuador",
    "El-Salvador", "England", "France", "Germany", "Greece", "Guatemala", "Haiti",
    "Holand-Netherlands", "Honduras", "Hong", "Hungary", "India", "Iran", "Ireland", "Italy",
    "Jamaica", "Japan", "Laos", "Mexico", "Nicaragua", "Outlying-US(Guam-USVI-etc)", "Peru",
    "Philippines", "Poland", "Portugal", "Puerto-Rico", "Scotland", "South", "Taiwan", "Thailand",
    "Trinadad&Tobago", "United-States", "Vietnam", "Yugoslavia",
]  # fmt: skip
_ADULT_CATEGORIES = {  # from the table's codebook (UCI "adult.names"); "?" there means missing
    "workclass": [
        "Private", "Self-emp-not-inc", "Self-emp-inc", "Federal-gov", "Local-gov", "State-gov",
        "Without-pay", "Never-worked",
    ],
    "education": _SCHOOL,
    "marital-status": [
        "Married-civ-spouse", "Divorced", "Never-married", "Separated", "Widowed",
        "Married-spouse-absent", "Married-AF-spouse",
    ],
    "occupation": [
        "Tech-support", "Craft-repair", "Other-service", "Sales", "Exec-managerial",
        "Prof-specialty", "Handlers-cleaners", "Machine-op-inspct", "Adm-clerical",
        "Farming-fishing", "Transport-moving", "Priv-house-serv", "Protective-serv",
        "Armed-Forces",
    ],
    "relationship": [
        "Wife", "Own-child", "Husband", "Not-in-family", "Other-relative", "Unmarried",
    ],
    "race": ["White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"],
    "sex": ["Female", "Male"],
    "native-country": _COUNTRIES,
    "income": ["<=50K", ">50K"],
}  # fmt: skip
_ADULT_RANGES = {
    "age": (17, 90),
    "education-num": (1, 16),
    "capital-gain": (0, 99_999),
    "capital-loss": (0, 5_000),
    "hours-per-week": (1, 99),
}
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


def _ranges(ranges: Mapping[str, tuple[int, int]], **facts: int) -> dict[str, dict]:
    """Numbers in these ranges, none of them missing."""
    return {
        name: {"sdtype": "numerical", "range_min": low, "range_max": high, **facts}
        | {"range_is_nullable": False}
        for name, (low, high) in ranges.items()
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
    "acs_workers": _workers("Income > 50,000", _income),
    "acs_traveltime": _workers("Travel > 20", _traveltime),
    "acs_mobility": _workers("Same house", _mobility, oldest=34),
    "adult": Declaration(
        file="adult",
        label="income",
        dropped=("fnlwgt",),
        facts={
            name: {"sdtype": "ordinal" if name == "education" else "categorical"}
            | {"range_values": values}
            for name, values in _ADULT_CATEGORIES.items()
        }
        | _ranges(_ADULT_RANGES, decimal_places=0),
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
    unknown = [name for name in names if name not in TABLES]
    if unknown:
        raise ValueError(f"There are no tables {unknown!r}: choose from {list(TABLES)!r}.")
