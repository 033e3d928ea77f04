"""The survey of the tutorials, with its codebook: 6,366 women on their marriages, one row each.

In 1974 the magazine Redbook asked its readers about their marriages and affairs. statsmodels ships
the table as ``fair``.
"""

import pandas as pd
import statsmodels.api as sm
from sdv.metadata import Metadata

# This is public because it comes from the codebook and not from the table.
SCALES = {
    "rate_marriage": [1, 2, 3, 4, 5],  # very poor ... very good
    "age": [17.5, 22, 27, 32, 37, 42],
    "yrs_married": [0.5, 2.5, 6, 9, 13, 16.5, 23],
    "children": [0, 1, 2, 3, 4, 5.5],
    "religious": [1, 2, 3, 4],  # not ... strongly
    "educ": [9, 12, 14, 16, 17, 20],
    "occupation": [1, 2, 3, 4, 5, 6],
    "occupation_husb": [1, 2, 3, 4, 5, 6],
}
PUBLIC_DOMAIN = {
    **{
        name: {"range_values": values, "range_is_nullable": False}
        for name, values in SCALES.items()
    },
    "affair": {"range_is_nullable": False},
}


def load() -> pd.DataFrame:
    """The survey. Time spent in affairs becomes yes or no, for each row by itself."""
    table = sm.datasets.fair.load_pandas().data
    return table.assign(affair=table["affairs"] > 0).drop(columns="affairs")


def metadata() -> Metadata:
    """Names and kinds of the columns, written by hand. Nothing is detected from the table."""
    kinds = dict.fromkeys(SCALES, "ordinal") | {
        "occupation": "categorical",
        "occupation_husb": "categorical",
        "affair": "boolean",
    }
    columns = {name: {"sdtype": kind} for name, kind in kinds.items()}
    return Metadata.load_from_dict({"tables": {"survey": {"columns": columns}}})
