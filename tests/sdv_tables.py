"""Small tables with their metadata and public domains, for the tests that go through SDV."""

import numpy as np
import pandas as pd
from made_up import kinds
from sdv.metadata import Metadata

from sdv_privpgd.methods import ParticleGradientDescent, PrivPGD


def by_particles(number):
    return {"method": PrivPGD(engine=ParticleGradientDescent(num_particles=number))}


SMALL = by_particles(300)
"""Settings that make a fit take a second."""


def metadata_of(columns: dict, **facts) -> Metadata:
    """SDV metadata of one table named ``table``."""
    return Metadata.load_from_dict({"tables": {"table": {"columns": columns, **facts}}})


COLUMNS = {
    **kinds(id="id", age="numerical", income="numerical", ward="categorical"),
    **kinds(grade="ordinal", smoker="boolean", seen="datetime"),
    "mail": {"sdtype": "email", "pii": True},
}

PUBLIC_DOMAIN = {
    "age": {"range_min": 0, "range_max": 110, "decimal_places": 0},
    "income": {"range_min": 0.0, "range_max": 500.0, "decimal_places": 2, "num_bins": 8},
    "ward": {"range_values": ["A", "B", "C"], "range_is_nullable": True},
    "grade": {"range_values": [1, 2, 3], "range_is_nullable": False},
    "smoker": {"range_is_nullable": False},
    "seen": {
        "range_min": "2020-01-01",
        "range_max": "2020-12-31",
        "datetime_format": "%Y-%m-%d",
        "num_bins": 12,
    },
}


def metadata() -> Metadata:
    return metadata_of(COLUMNS, primary_key="id")


def table(num_rows: int = 200, seed: int = 0) -> pd.DataFrame:
    """A table of the schema above, with missing values and dependent columns."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, num_rows)
    ward = rng.choice(np.array(["A", "B", "C", None], dtype=object), num_rows)
    seen = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 366, num_rows), unit="D")
    return pd.DataFrame(
        {
            "id": [f"key-{row}" for row in range(num_rows)],
            "age": age,
            "income": np.round(rng.gamma(2.0, 40.0, num_rows) * (1 + age / 90), 2),
            "ward": ward,
            "grade": rng.integers(1, 4, num_rows),
            "smoker": rng.random(num_rows) < 0.3,
            "seen": pd.Series(seen).dt.strftime("%Y-%m-%d"),
            "mail": [f"person{row}@hospital.example" for row in range(num_rows)],
        }
    )
