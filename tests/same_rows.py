"""Tables and what fits of them let out, to compare fits of the same rows from several sources."""

import pickle
import warnings
from datetime import date

import numpy as np
import pandas as pd
from made_up import heard

from sdv_privpgd import Boolean, Categorical, Datetime, Link, Numerical, fit_table, fit_tables

COLUMNS = {
    "ward": Categorical(["A", "B", "C"]),
    "age": Numerical(0, 99, decimal_places=0),
    "weight": Numerical(),
    "town": Categorical(),
    "came": Datetime(),
    "left": Datetime(date(2020, 1, 1), date(2030, 12, 31)),
    "ill": Boolean(),
    "visits": Numerical(),
}


def table(num_rows=3_000):
    rng = np.random.default_rng(0)
    came = pd.Timestamp("2021-06-01") + pd.to_timedelta(rng.integers(0, 900, num_rows), unit="D")
    frame = pd.DataFrame(
        {
            "key": np.arange(num_rows),
            "ward": rng.choice(["A", "B", "D"], num_rows).astype(object),
            "age": rng.integers(-5, 120, num_rows),
            "weight": np.exp(rng.normal(3, 1, num_rows)).round(1),
            "town": rng.choice([f"town {i}" for i in range(20)], num_rows).astype(object),
            "came": came,
            "left": came + pd.to_timedelta(rng.integers(0, 30, num_rows), unit="D"),
            "ill": rng.random(num_rows) < 0.3,
            "visits": rng.choice([1.0, 2.0, 3.0, 400.0], num_rows),
        }
    )
    for place, name in enumerate(["ward", "weight", "town", "came", "visits"], start=5):
        frame.loc[::place, name] = None
    return frame


def observed(private, columns=COLUMNS, **settings):
    with heard() as said:
        warnings.simplefilter("ignore", ResourceWarning)  # sockets of Spark's
        fitted = fit_table(private, columns, 20.0, allow_lost=list(columns), **settings)
    return {
        "model": pickle.dumps(fitted),
        "rows": fitted.sample(200).to_csv(),
        "ledger": fitted.ledger.to_json(),
        "warnings": [str(each.message) for each in said],
    }


def homes_and_people(number=400):
    """Tables of which a parent's children have an order, and some are more than are used."""
    rng = np.random.default_rng(0)
    homes = pd.DataFrame({"home": range(number), "town": rng.choice(["A", "B", "C"], number)})
    homes.loc[::9, "town"] = None
    homes.loc[5, "home"] = 4  # no key then
    whose = np.repeat(np.arange(number), rng.integers(0, 5, number))
    people = pd.DataFrame({"home": whose.astype(str), "age": rng.permutation(len(whose)) / 10})
    people["id"] = rng.permutation(len(whose))
    people["job"] = np.where(people["age"] > 30, "old", "young").astype(object)
    people.loc[::11, "home"] = None
    people.loc[::13, "age"] = 999.0
    asked = pd.DataFrame({"id": rng.choice(people["id"], 300), "answer": rng.random(300) < 0.4})
    return {"homes": homes, "people": people, "asked": asked.drop_duplicates("id")}


LINKS = [
    Link("homes", "people", "home", 3, order="age"),
    Link("people", "asked", "id", 1, siblings=False),
]
LINKED = {
    "homes": {"town": Categorical()},
    "people": {
        "age": Numerical(0, 200, decimal_places=1, missing_codes=[999]),
        "job": Categorical(["old", "young"]),
    },
    "asked": {"answer": Boolean()},
}  # fmt: skip


def fit_linked(tables, **settings):
    lost = {name: list(own) for name, own in LINKED.items()}
    return fit_tables(tables, LINKED, LINKS, 9.0, 1e-6, allow_lost=lost, **settings)
