"""Persons with several visits, for tests of rows in order."""

from dataclasses import replace
from datetime import date

import numpy as np
import pandas as pd

from sdv_privpgd import Boolean, Categorical, Datetime, People

COLUMNS = {
    "sex": Boolean(nullable=False),
    "admitted": Datetime(date(2020, 1, 1), date(2023, 12, 31)),
    "ward": Categorical(["A", "B", "C"], nullable=False),
}

ORDER = {
    "adjacency": "add_remove",
    "delta": 1e-5,
    "people": People(
        "patient", max_rows=3, sequence_index="admitted", previous=["ward"], context_columns=["sex"]
    ),
}


def in_order(**changes):
    """``ORDER`` with other people."""
    return {**ORDER, "people": replace(ORDER["people"], **changes)}


def visits(num_people=800, seed=0):
    """Visits in no order: a week or so apart, and from A to B, B to C and C to A at times."""
    rng = np.random.default_rng(seed)
    number = rng.integers(1, 6, num_people)
    patient = np.repeat(np.arange(num_people), number)
    first = np.r_[True, np.diff(patient) != 0] if len(patient) else np.zeros(0, bool)
    days = np.where(first, rng.integers(0, 1_000, len(patient)), rng.geometric(0.1, len(patient)))
    moved = np.where(first, rng.integers(0, 3, len(patient)), rng.random(len(patient)) < 0.3)
    table = pd.DataFrame({"patient": patient, "days": days, "moved": moved})
    added = table.groupby("patient")[["days", "moved"]].cumsum()
    rows = pd.DataFrame(
        {
            "patient": patient,
            "sex": np.repeat(rng.random(num_people) < 0.5, number),
            "admitted": pd.Timestamp("2020-01-01") + pd.to_timedelta(added["days"], unit="D"),
            "ward": np.array(["A", "B", "C"], dtype=object)[added["moved"].astype(int) % 3],
        }
    )
    return rows.sample(frac=1, random_state=seed).reset_index(drop=True)


def transitions(rows):
    """The shares of wards before and now, shape (3, 3), rows in the order in which they are."""
    before = rows.groupby("patient")["ward"].shift()
    counts = pd.crosstab(before, rows["ward"]).reindex(
        index=["A", "B", "C"], columns=["A", "B", "C"], fill_value=0
    )
    return (counts / counts.to_numpy().sum()).to_numpy()
