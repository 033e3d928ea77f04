"""Tables that belong together: patients, their stays, and what was given during a stay.

Three tables of a hospital lead to each other. What a row's parent has, and how many rows there are
of each parent, is what analysts ask of such tables. The tables are simulated here.

1. A ``Link`` says which column leads whereto, how many rows are used of each parent, and which of
   them come first. Protected is a row of the root, a patient, with all that leads to it.
2. ``fit_tables`` spends one budget on all tables. ``plan_tables`` says before what each one gets.
3. Synthetic stays lead to synthetic patients, and what was given to synthetic stays. For each link
   a picture shows how many children parents have, and what children have by what their parent has.

The same from the shell, with metadata and a domain of all tables:

    sdv-privpgd synthesize patients.csv stays.csv given.csv --metadata metadata.json \\
        --domain domain.json --epsilon 1 --delta 1e-6 --link stays.patient=patients.patient \\
        --link given.stay=stays.stay --max-children stays=4 --max-children given=3 \\
        --in-order stays.admitted --out synthetic

Run it:  pip install -e '.[tutorials]'  and  python tutorials/10_linked_tables.py
"""

import argparse
import warnings
from datetime import date
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd

from sdv_privpgd import Boolean, Categorical, Datetime, Link, Ordinal, fit_tables, plan_tables
from sdv_privpgd.methods import ParticleGradientDescent, PrivPGD

matplotlib.use("Agg")
import matplotlib.pyplot as plt

EPSILON, DELTA = 1.0, 1e-6
AGES, WARDS = ["0-17", "18-44", "45-64", "65-84", "85+"], ["medical", "surgery", "eyes", "children"]
DRUGS = ["antibiotic", "insulin", "painkiller", "none of these"]
CODEBOOKS = {
    "patients": {"sex": Categorical(["f", "m"], nullable=False), "age": Ordinal(AGES)},
    "stays": {
        "admitted": Datetime(date(2019, 1, 1), date(2024, 12, 31), nullable=False),
        "ward": Categorical(WARDS, nullable=False),
        "emergency": Boolean(nullable=False),
    },
    "given": {"drug": Categorical(DRUGS, nullable=False)},
}
LINKS = [
    Link("patients", "stays", "patient", max_children=4, order="admitted"),
    Link("stays", "given", "stay", max_children=3),
]
SHOWN = {"stays": ("age", "ward"), "given": ("ward", "drug")}
"""By child, what its parent has and what it has itself, for the pictures."""


def simulate(num_patients: int = 20_000, seed: int = 10) -> dict[str, pd.DataFrame]:
    """So many patients. The old come back more often; wards follow from age, drugs from wards."""
    rng = np.random.default_rng(seed)
    age = rng.choice(5, num_patients, p=[0.15, 0.3, 0.25, 0.22, 0.08])
    sex = np.where(rng.random(num_patients) < 0.52, "f", "m")
    number = rng.binomial(4, 0.15 + 0.15 * age)
    whose = np.repeat(np.arange(num_patients), number)
    ward = np.where(rng.random(len(whose)) < 0.15 + 0.12 * age[whose], "medical", "surgery")
    ward = np.where(rng.random(len(whose)) < 0.1 * (age[whose] > 2), "eyes", ward)
    ward = np.where(age[whose] == 0, "children", ward)
    days = pd.to_timedelta(rng.integers(0, 365 * 6, len(whose)), unit="D")
    many = rng.binomial(3, np.where(ward == "eyes", 0.2, 0.5))
    stay = np.repeat(np.arange(len(whose)), many)
    usual = pd.Series({"medical": 1, "surgery": 2, "eyes": 3, "children": 0})[ward[stay]].to_numpy()
    drug = np.where(rng.random(len(stay)) < 0.6, usual, rng.integers(0, 4, len(stay)))
    stays = {"stay": np.arange(len(whose)), "patient": whose, "ward": ward}
    stays |= {"admitted": pd.Timestamp("2019-01-01") + days}
    stays |= {"emergency": rng.random(len(whose)) < 0.2 + 0.1 * age[whose]}
    return {
        "patients": pd.DataFrame(
            {"patient": np.arange(num_patients), "sex": sex, "age": np.array(AGES)[age]}
        ),
        "stays": pd.DataFrame(stays),
        "given": pd.DataFrame({"stay": stay, "drug": np.array(DRUGS)[drug]}),
    }


def seen_of(link: Link, tables: dict[str, pd.DataFrame]) -> tuple[pd.Series, pd.DataFrame]:
    """The parents by how many children they have, and what children have by what parents have."""
    parents, children = (tables[name].copy() for name in (link.parent, link.child))
    number = parents[link.key].map(children[link.key].value_counts()).fillna(0).astype(int)
    both = children.merge(parents, on=link.key)
    had, has = SHOWN[link.child]
    return number.value_counts(normalize=True), pd.crosstab(both[had], both[has], normalize="index")


def figure(real: dict[str, pd.DataFrame], made: dict[str, pd.DataFrame], path: Path) -> None:
    """Draws each link. It shows the real tables: for the curator's eyes only."""
    fig, axes = plt.subplots(len(LINKS), 3, figsize=(12, 6.4), layout="constrained")
    for row, link in zip(axes, LINKS, strict=True):
        both = {"real tables": seen_of(link, real), "synthetic": seen_of(link, made)}
        bars = pd.DataFrame({name: numbers for name, (numbers, _) in both.items()}).sort_index()
        bars.plot.bar(ax=row[0], rot=0, color=["0.65", "tab:blue"], width=0.8, legend=False)
        row[0].set_title(f"share of {link.parent} by their number of {link.child}", fontsize=10)
        row[0].set_xlabel("")
        row[0].spines[["top", "right"]].set_visible(False)
        for axis, (name, (_, shares)) in zip(row[1:], both.items(), strict=True):
            axis.imshow(shares, vmin=0, vmax=1, cmap="Blues", aspect="auto")
            axis.set_xticks(range(shares.shape[1]), shares.columns, fontsize=8)
            axis.set_yticks(range(shares.shape[0]), shares.index, fontsize=8)
            for (y, x), share in np.ndenumerate(shares.to_numpy()):
                color = "white" if share > 0.5 else "black"
                axis.text(x, y, f"{share:.0%}", ha="center", va="center", fontsize=8, color=color)
            axis.set_title(f"{shares.columns.name} by {shares.index.name}, {name}", fontsize=10)
    axes[0, 0].legend(frameon=False)
    fig.suptitle("Patients, stays and drugs, epsilon 1 (not private: it shows the real tables)")
    fig.savefig(path, dpi=80)
    plt.close(fig)


def main(num_particles: int | None = None, folder: Path = Path()) -> dict[str, pd.DataFrame]:
    """Plans, fits, samples, and writes the rows, the page and a picture of each link."""
    tables = simulate()
    plan = plan_tables(CODEBOOKS, LINKS, EPSILON, DELTA, num_rows=20_000)
    print("\n".join(str(plan).splitlines()[:12]), end="\n\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are on the page, which comes first
        fitted = fit_tables(
            tables,
            CODEBOOKS,
            LINKS,
            EPSILON,
            DELTA,
            method=PrivPGD(engine=ParticleGradientDescent(num_particles=num_particles)),
        )
    print(fitted.report(folder / "10_report.html"))
    made = fitted.sample()
    for name, rows in made.items():
        rows.to_csv(folder / f"10_{name}.csv", index=False)
        print(f"\nThe first synthetic rows of {name}:\n{rows.head(4).to_string(index=False)}")

    # Only here, to see how good it is, do we look at the tables again.
    figure(tables, made, folder / "10_links_not_private.png")
    return made


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--num-particles", type=int, help="fewer are faster, and less exact")
    parser.add_argument("--folder", type=Path, default=Path(), help="where the files go")
    arguments = parser.parse_args()
    main(arguments.num_particles, arguments.folder)
