"""Visits in order: whoever comes back, when, and what has changed since.

A hospital sees its patients several times. Each visit has a date, a ward and the drug that was
given. How long until a patient comes back, and who is given another drug then, are questions of two
visits, which rows that know nothing of each other cannot answer. The table is simulated here.

1. Without an order, patients are protected, and the synthetic visits are nobody's: there is no
   visit before.
2. With ``sequence_index="admitted"`` each visit is told of the one before it, of the same patient:
   how long ago it was, and what it had in the ``previous`` columns. What is protected stays the
   patient, with at most ``max_rows`` visits. Synthetic patients then have visits in order.
3. What it cannot do: a visit knows the one before it and no earlier one, and patients with many
   visits look as if they had three. The report says so.

The same from the shell, with metadata and a domain:

    sdv-privpgd synthesize visits.csv --metadata metadata.json --domain domain.json --epsilon 1 \\
        --delta 1e-6 --adjacency add_remove --person-column patient --rows-per-person 3 \\
        --sequence-index admitted --previous drug --context-column sex --out synthetic.csv

Run it:  pip install -e '.[tutorials]'  and  python tutorials/09_visits.py
"""

import argparse
import warnings
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd

from sdv_privpgd import Boolean, Categorical, Datetime, People, fit_table
from sdv_privpgd.methods import ParticleGradientDescent, PrivPGD

EPSILON, DELTA, VISITS = 1.0, 1e-6, 3
DRUGS, WARDS = ["none", "tablets", "insulin"], ["medical", "surgery", "eyes"]
CODEBOOK = {
    "sex": Categorical(["f", "m"], nullable=False),
    "admitted": Datetime(date(2019, 1, 1), date(2024, 12, 31), nullable=False),
    "ward": Categorical(WARDS, nullable=False),
    "drug": Categorical(DRUGS, nullable=False),
    "emergency": Boolean(nullable=False),
}


def simulate(num_patients: int = 20_000, seed: int = 9) -> pd.DataFrame:
    """Visits of so many patients. Drugs get stronger; after an emergency they are soon back."""
    rng = np.random.default_rng(seed)
    number = np.minimum(rng.geometric(0.45, num_patients), 12)
    patient = np.repeat(np.arange(num_patients), number)
    first = np.r_[True, np.diff(patient) != 0]
    emergency = rng.random(len(patient)) < 0.3
    soon = np.r_[False, emergency[:-1]]
    waited = np.where(
        soon, rng.geometric(1 / 20, len(patient)), rng.geometric(1 / 150, len(patient))
    )
    days = np.where(first, rng.integers(0, 900, len(patient)), waited)
    stronger = np.where(first, rng.integers(0, 2, len(patient)), rng.random(len(patient)) < 0.2)
    added = pd.DataFrame({"days": days, "drug": stronger}).groupby(patient).cumsum()
    visits = pd.DataFrame(
        {
            "patient": [f"P{code:05d}" for code in patient],
            "sex": np.where((rng.random(num_patients) < 0.55)[patient], "f", "m"),
            "admitted": pd.Timestamp("2019-01-01") + pd.to_timedelta(added["days"], unit="D"),
            "ward": np.array(WARDS, dtype=object)[rng.choice(3, len(patient), p=[0.5, 0.3, 0.2])],
            "drug": np.array(DRUGS, dtype=object)[np.minimum(added["drug"], 2)],
            "emergency": emergency,
        }
    )
    return visits.sample(frac=1, random_state=seed).reset_index(drop=True)


def told_of_the_one_before(rows: pd.DataFrame) -> pd.DataFrame:
    """Visits that follow another one: the drug before and now, the days between, and how it was."""
    rows = rows.sort_values(["patient", "admitted"], kind="stable")
    before = rows.groupby("patient").shift()
    found = pd.DataFrame(
        {
            "before": before["drug"],
            "now": rows["drug"],
            "days": (rows["admitted"] - before["admitted"]).dt.days,
            "after an emergency": before["emergency"].astype("boolean"),
        }
    )
    return found.loc[found["before"].notna()]


def looked_at(rows: pd.DataFrame) -> pd.Series:
    """What an analyst would want to know of visits that follow another one."""
    pairs = told_of_the_one_before(rows)
    days, urgent = pairs["days"], pairs["after an emergency"].astype(bool)
    return pd.Series(
        {
            "days between, median": days.median(),
            "back within 30 days": (days <= 30).mean(),
            "back within 30 days of an emergency": (days[urgent] <= 30).mean(),
            "another drug than before": (pairs["before"] != pairs["now"]).mean(),
            "from none to tablets": (
                (pairs["before"] == "none") & (pairs["now"] == "tablets")
            ).mean(),
            "from insulin to none": (
                (pairs["before"] == "insulin") & (pairs["now"] == "none")
            ).mean(),
        }
    )


def main(num_particles: int | None = None, folder: Path = Path()) -> pd.DataFrame:
    """Fits the visits in order, and compares what follows what with the simulated visits."""
    table = simulate()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are in the report, which comes first
        fitted = fit_table(
            table,
            CODEBOOK,
            EPSILON,
            DELTA,
            adjacency="add_remove",
            people=People(
                "patient",
                max_rows=VISITS,
                sequence_index="admitted",
                previous=["drug", "emergency"],
                context_columns=["sex"],
            ),
            method=PrivPGD(engine=ParticleGradientDescent(num_particles=num_particles)),
        )
    print(fitted.privacy_report())
    fitted.report(folder / "09_report.html")

    rows = fitted.sample(fitted.num_rows)
    rows.to_csv(folder / "09_visits.csv", index=False)
    print(f"\nThe first synthetic patients:\n{rows.head(8).to_string(index=False)}")

    # Only here, to see how good it is, do we look at the table again.
    found = pd.DataFrame({"table": looked_at(table), "synthetic": looked_at(rows)})
    found.to_csv(folder / "09_compared_not_private.csv")
    print(f"\nVisits that follow another one (NOT PRIVATE):\n{found.round(3).to_string()}")
    visits = table["patient"].value_counts().clip(upper=VISITS + 1).value_counts(normalize=True)
    made = rows["patient"].value_counts().value_counts(normalize=True)
    print(
        f"\nPatients with more than {VISITS} visits: {visits.get(VISITS + 1, 0):.0%} in the "
        f"table, and none in the rows, where {made.get(VISITS, 0):.0%} have {VISITS}."
    )
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--num-particles", type=int, help="fewer are faster, and less exact")
    parser.add_argument("--folder", type=Path, default=Path(), help="where the files go")
    arguments = parser.parse_args()
    main(arguments.num_particles, arguments.folder)
