"""A table of which most rows break constraints, and synthesizers under them."""

from itertools import combinations

import numpy as np
import pandas as pd
import sdv_tables
from made_up import kinds
from sdv import cag
from sdv.metadata import Metadata

from sdv_privpgd import PrivPGDSynthesizer, constraints, fit_table
from sdv_privpgd.constraints import FixedCombinations

DATE = {"sdtype": "datetime", "datetime_format": "%d/%m/%Y"}
COLUMNS = {
    **kinds(id="id", low="numerical", high="numerical", real="numerical", price="numerical"),
    **dict.fromkeys(["start", "middle", "end"], DATE),
    **kinds(red="numerical", green="boolean", blue="categorical"),
    **kinds(country="categorical", city="categorical"),
}
YEAR = {"range_min": "01/01/2020", "range_max": "31/12/2020"}
DOMAIN = {
    "low": {"range_min": 0, "range_max": 99, "decimal_places": 0, "num_bins": 8},
    "high": {"range_min": 0, "range_max": 120, "decimal_places": 0, "num_bins": 8},
    "real": {"range_min": -5.5, "range_max": 130.25, "num_bins": 8},
    "price": {"range_min": 3, "range_max": 1_000, "decimal_places": 0, "num_bins": 8},
    "start": {**YEAR, "num_bins": 6},
    "middle": {**YEAR, "num_bins": 5},
    "end": {**YEAR, "num_bins": 6, "range_is_nullable": False},
    "red": {"range_min": 0, "range_max": 1},
    "blue": {"range_values": [0, 1]},
    "country": {"range_values": ["x", "y", "z"]},
    "city": {"range_values": ["p", "q", "r", "s"]},
}
CITIES = [("x", "p"), ("x", "q"), ("y", "r"), (None, "s"), ("z", None)]


class Sum(cag.SingleTableProgrammableConstraint):
    """Reads values, not cells, and must never be fitted."""

    def __init__(self, most=150):
        self.most = most

    def fit(self, data, metadata):
        raise AssertionError("fitted")

    validate_input_data = fit

    def is_valid(self, synthetic_data):
        total = synthetic_data["low"] + synthetic_data["high"]
        return total.isna() | (total <= self.most)


CONSTRAINTS = {
    "inequality": lambda of=cag: of.Inequality("low", "high"),
    "strict": lambda of=cag: of.Inequality("low", "high", strict_boundaries=True),
    "mixed": lambda of=cag: of.Inequality("low", "real", strict_boundaries=True),
    "range": lambda of=cag: of.Range("start", "middle", "end", strict_boundaries=False),
    "strict range": lambda of=cag: of.Range("start", "middle", "end"),
    "increments": lambda of=cag: of.FixedIncrements("price", 25),
    "one hot": lambda of=cag: of.OneHotEncoding(["red", "green", "blue"]),
    "combinations": lambda of=cag: FixedCombinations(["country", "city"], CITIES),
    "programmable": lambda of=cag: (
        Sum() if of is cag else constraints.ProgrammableConstraint(Sum().is_valid)
    ),
}
"""Of SDV's module, and of ours for the door without SDV."""


def metadata() -> Metadata:
    return sdv_tables.metadata_of(COLUMNS, primary_key="id")


def table(num_rows: int = 300, seed: int = 0) -> pd.DataFrame:
    """Rows of which most break most of the constraints."""
    rng = np.random.default_rng(seed)
    days = np.datetime64("2020-01-01") + rng.integers(0, 366, (3, num_rows)).astype("m8[D]")
    cities = pd.Series(["p", "q", "r", "s", None], dtype=object)
    return pd.DataFrame(
        {
            "id": np.arange(num_rows),
            "low": rng.integers(0, 100, num_rows),
            "high": np.where(rng.random(num_rows) < 0.1, np.nan, rng.integers(0, 121, num_rows)),
            "real": rng.uniform(-5, 130, num_rows),
            "price": rng.integers(3, 1_000, num_rows),
            **{
                name: pd.Series(own).dt.strftime("%d/%m/%Y")
                for name, own in zip(("start", "middle", "end"), days, strict=True)
            },
            "red": rng.integers(0, 2, num_rows),
            "green": rng.random(num_rows) < 0.3,
            "blue": rng.integers(0, 2, num_rows),
            "country": rng.choice(["x", "y", "z"], num_rows),
            "city": cities.sample(num_rows, replace=True, random_state=seed).to_numpy(),
        }
    )


def new(kinds=tuple(CONSTRAINTS), maker=PrivPGDSynthesizer, **changes):
    settings = {"epsilon": 1.0, "public_domain": DOMAIN, **changes}
    if maker is PrivPGDSynthesizer:
        settings = {**sdv_tables.SMALL, **settings}
    synthesizer = maker(metadata(), **settings)
    synthesizer.add_constraints([CONSTRAINTS[kind]() for kind in kinds])
    return synthesizer


def through_the_door(kinds, **changes):
    """What ``fit_table`` makes of the same table, domain and constraints."""
    columns = {name: {**facts, **DOMAIN.get(name, {})} for name, facts in COLUMNS.items()}
    own = [CONSTRAINTS[kind](constraints) for kind in kinds]
    return fit_table(table(), columns, 1.0, constraints=own, **{**sdv_tables.SMALL, **changes})


def broken(kind: str, rows: pd.DataFrame) -> int:
    """How many rows break a constraint, decided here and, where it can, by SDV."""
    dates = {
        name: pd.to_datetime(rows[name], format="%d/%m/%Y") for name in ("start", "middle", "end")
    }
    lights = rows[["red", "green", "blue"]]
    ordered = list(combinations(dates.values(), 2))
    valid = {
        "inequality": lambda: ~(rows["low"] > rows["high"]),
        "strict": lambda: ~(rows["low"] >= rows["high"]),
        "mixed": lambda: ~(rows["low"] >= rows["real"]),
        "range": lambda: ~np.any([one > later for one, later in ordered], axis=0),
        "strict range": lambda: ~np.any([one >= later for one, later in ordered], axis=0),
        "increments": lambda: rows["price"].isna() | (rows["price"] % 25 == 0),
        "one hot": lambda: lights.astype(float).sum(axis=1).eq(1) & lights.isin([0, 1]).all(axis=1),
        "combinations": lambda: pd.Series(
            [
                tuple(None if pd.isna(cell) else cell for cell in row) in CITIES
                for row in rows[["country", "city"]].itertuples(index=False)
            ]
        ),
        "programmable": lambda: ~(rows["low"] + rows["high"] > 150),
    }[kind]()
    if kind in ("inequality", "strict", "mixed", "increments", "one hot"):  # its ranges need a fit
        theirs = CONSTRAINTS[kind]().is_valid(rows, metadata())
        assert np.array_equal(np.asarray(theirs), valid)
    return int((~valid).sum())
