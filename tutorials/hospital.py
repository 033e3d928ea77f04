"""The hospital of tutorial 05: simulated stays of simulated patients, one row for each stay.

A patient may have several stays. The codebook is what a hospital would hand out with such a file.
It has types, ranges and categories from forms and catalogs, not from the patients.
"""

import numpy as np
import pandas as pd

WARDS = ["medical", "surgery", "maternity", "children", "psychiatry", "intensive care"]
DIAGNOSES = [f"{number:05d}" for number in range(1230, 1250)]  # '01230': text, zeros and all

CODEBOOK = pd.DataFrame(
    [
        ("patient", "id", "", "", "", "", "no"),
        ("born", "date", "1900-01-01", "2024-12-31", "", "", "no"),
        ("sex", "text", "", "", "f; m", "", "no"),
        ("admitted", "date", "2023-01-01", "2024-12-31", "", "", "no"),
        ("discharged", "date", "2023-01-01", "2025-12-31", "", "", "no"),
        ("ward", "text", "", "", "; ".join(WARDS), "other", "no"),
        ("diagnosis", "text", "", "", "; ".join(DIAGNOSES), "other", "no"),
        ("emergency", "boolean", "", "", "", "", "no"),
        ("cost", "number", "0", "250000", "", "", "yes"),
    ],
    columns=["name", "type", "min", "max", "values", "other", "missing"],
).assign(decimals=lambda rows: rows["name"].map({"cost": "2"}).fillna(""))

DTYPES = {
    "patient": "str",
    "sex": "str",
    "ward": "str",
    "diagnosis": "str",
    "emergency": "boolean",
    "cost": "float64",
}
"""Dtypes for ``pandas.read_csv``. No cell decides the dtypes that you name."""

DATES = ["born", "admitted", "discharged"]


def simulate(num_patients: int = 20_000, seed: int = 5) -> pd.DataFrame:
    """Stays of so many patients. Most have one stay, and a few have up to a dozen."""
    rng = np.random.default_rng(seed)
    stays = np.minimum(rng.geometric(0.6, num_patients), 12)
    patient = np.repeat(np.arange(num_patients), stays)
    number = len(patient)

    days_old = (rng.beta(1.6, 1.3, num_patients) * 95 * 365).astype(int)
    born = pd.Timestamp("2023-01-01") - pd.to_timedelta(days_old, unit="D")
    age = days_old[patient] / 365
    female = (rng.random(num_patients) < 0.52)[patient]

    ward = np.where(rng.random(number) < 0.45, "surgery", "medical").astype(object)
    ward[rng.random(number) < 0.06] = "psychiatry"
    ward[rng.random(number) < 0.05] = "intensive care"
    ward[female & (age > 18) & (age < 45) & (rng.random(number) < 0.4)] = "maternity"
    ward[age < 16] = "children"

    usual = np.vectorize(WARDS.index)(ward) * 3  # each ward has diagnoses of its own
    diagnosis = np.array(DIAGNOSES)[(usual + rng.geometric(0.4, number) - 1) % len(DIAGNOSES)]
    emergency = rng.random(number) < np.where(ward == "maternity", 0.1, 0.2 + 0.003 * age)

    slow = np.where(ward == "psychiatry", 3.0, 1.0) * (0.7 + age / 100)
    stay = np.ceil(slow * rng.gamma(1.3, 4.0, number)).astype(int)
    admitted = pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 731, number), unit="D")
    by_day = np.where(ward == "intensive care", 2_400, 700) * rng.lognormal(0, 0.5, number)
    cost = np.round(600 + stay * by_day, 2)
    cost[rng.random(number) < 0.05] = np.nan  # not billed yet
    return pd.DataFrame(
        {
            "patient": [f"P{code:05d}" for code in patient],
            "born": born[patient],
            "sex": np.where(female, "f", "m"),
            "admitted": admitted,
            "discharged": admitted + pd.to_timedelta(stay, unit="D"),
            "ward": ward,
            "diagnosis": diagnosis,
            "emergency": emergency,
            "cost": cost,
        }
    )
