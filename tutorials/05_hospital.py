"""A hospital table from CSV to page, for people who are not from the field.

The table is simulated (``hospital.py``), so that the tutorial may compare with it. It has what real
ones have: several stays of a patient, dates in order, money with a long tail, codes that begin with
zeros, and empty cells. The guide gives the reasons for each step.

The same from the shell, without the order of dates, which --constraints would take as JSON:

    sdv-privpgd draft-domain --metadata 05_metadata.json --out to_fill_in.json
    sdv-privpgd plan --metadata 05_metadata.json --domain 05_domain.json --epsilon 1 --delta 1e-6 \\
        --rows-per-person 2 --rows 28000
    sdv-privpgd synthesize 05_kept.csv --metadata 05_metadata.json --domain 05_domain.json \\
        --epsilon 1 --delta 1e-6 --rows-per-person 2 --max-epsilon 1 --ledger ledger.json \\
        --out synthetic.csv --report report.html --model model.zip
    sdv-privpgd sample model.zip --rows 100 --condition ward=surgery --out more.csv
    sdv-privpgd evaluate model.zip 05_kept.csv --out report_not_private.html

Run it:  pip install -e '.[tutorials]'  and  python tutorials/05_hospital.py
"""

import argparse
import json
from pathlib import Path

import pandas as pd
from hospital import CODEBOOK, DATES, DTYPES, simulate
from sdv.cag import Inequality

from sdv_privpgd import (
    People,
    PrivPGDSynthesizer,
    check_domain,
    draft_domain,
    draft_metadata,
    read_domain,
    write_domain,
)
from sdv_privpgd.cli.start import main as command_line
from sdv_privpgd.methods import ParticleGradientDescent, PrivPGD

STAYS = 2
"""Number of stays that are kept of each patient, which limits what one person can change."""

EPSILON, DELTA = 1.0, 1e-6


def heading(text: str) -> None:
    print(f"\n=== {text} ===\n")


def describe_table(table: pd.DataFrame, folder: Path) -> tuple:
    """Metadata and domain, from names, types and the codebook. It looks at no cell."""
    metadata = draft_metadata(table.dtypes, table_name="stays")
    metadata.update_column("patient", sdtype="id", regex_format="P[0-9]{5}")

    domain = draft_domain(metadata)
    print("To be filled in, as the types alone leave it:", json.dumps(domain["cost"]))
    domain |= draft_domain(CODEBOOK)  # or: edit the file that write_domain(domain, ...) writes
    print("As the codebook fills it in:                 ", json.dumps(domain["cost"]))
    write_domain(domain, folder / "05_domain.json")
    metadata.save_to_json(folder / "05_metadata.json", mode="overwrite")

    domain = read_domain(folder / "05_domain.json")
    print("What does not fit together:", check_domain(metadata, domain) or "nothing")
    return metadata, domain


def look(stays: pd.DataFrame) -> pd.Series:
    """A few numbers that anyone would ask for first."""
    days = (stays["discharged"] - stays["admitted"]).dt.days
    age = (stays["admitted"] - stays["born"]).dt.days / 365.25
    return pd.Series(
        {
            "stay, mean in days": days.mean(),
            "stay, 95 % quantile": days.quantile(0.95),
            "age, median": age.median(),
            "age, 10 % quantile": age.quantile(0.1),
            "cost, median": stays["cost"].median(),
            "cost, 95 % quantile": stays["cost"].quantile(0.95),
            "cost, share missing": stays["cost"].isna().mean(),
            "share in intensive care": (stays["ward"] == "intensive care").mean(),
            "cost in surgery, mean": stays.loc[stays["ward"] == "surgery", "cost"].mean(),
            "discharged before admitted": (days < 0).mean(),
        }
    )


def main(num_particles: int | None = None, folder: Path = Path()) -> pd.DataFrame:
    """Writes the CSV file, makes rows and pages of it, and returns a few numbers of both tables."""
    simulate().to_csv(folder / "05_hospital.csv", index=False)

    heading("1. Read the file, with types that you name")
    table = pd.read_csv(folder / "05_hospital.csv", dtype=DTYPES, parse_dates=DATES)
    table = table.groupby("patient").head(STAYS)
    table.to_csv(folder / "05_kept.csv", index=False)
    print(f"{len(table):,} stays, at most {STAYS} of a patient")

    heading("2. Describe it from its codebook")
    metadata, domain = describe_table(table, folder)

    heading("3. Plan: what would be asked and how loud the noise would be")
    synthesizer = PrivPGDSynthesizer(
        metadata,
        epsilon=EPSILON,
        delta=DELTA,
        public_domain=domain,
        people=People(max_rows=STAYS),
        method=PrivPGD(engine=ParticleGradientDescent(num_particles=num_particles)),
    )
    synthesizer.add_constraints(
        [Inequality("born", "admitted"), Inequality("admitted", "discharged")]
    )
    print(synthesizer.plan(len(table)))

    heading("4. Fit: this spends the budget, once")
    synthesizer.fit(table)
    print("Warnings:", *(synthesizer.warnings_ or ["none"]), sep="\n  ")

    heading("5. Rows, as many as you like, and what may be shown")
    rows = synthesizer.sample(len(table))
    print(rows.head().to_string(index=False))
    rows.to_csv(folder / "05_synthetic.csv", index=False)
    synthesizer.report(folder / "05_report.html")
    synthesizer.fitted_table.save(folder / "05_model.zip")  # which the shell reads
    spent = synthesizer.ledger.spent(DELTA)
    print(f"\nSpent: epsilon {spent:.4g} of differential privacy at delta {DELTA:g}")

    heading("6. More rows from the shell, for nothing")
    command_line(
        ["sample", str(folder / "05_model.zip"), "--rows", "100", "--condition", "ward=surgery"]
        + ["--out", str(folder / "05_surgery.csv"), "--force"]
    )
    print("100 rows of surgery are in 05_surgery.csv")

    heading("7. NOT PRIVATE from here on: next to the real table, which is simulated")
    compared = synthesizer.evaluate(table, path=folder / "05_report_not_private.html")
    found = pd.DataFrame({"real": look(table), "synthetic": look(rows)})
    print(found.round(2).to_string())
    clipped = compared.outside["cost"]
    worst, share = max(compared.columns.items(), key=lambda item: item[1])
    pairs = pd.Series(compared.pairs).mean()
    print(f"\nReal costs above the codebook's 250,000, which were clipped: {clipped:.3%}")
    print(f"Rows in the wrong place: {share:.1%} in {worst!r}, the worst column,")
    print(f"and {pairs:.1%} in a pair of columns on average.")
    found.to_csv(folder / "05_look_not_private.csv", index_label="number")
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--num-particles", type=int, default=None)
    parser.add_argument("--folder", type=Path, default=Path())
    arguments = parser.parse_args()
    main(arguments.num_particles, arguments.folder)
