"""From a CSV file with nothing declared to synthetic rows and a page.

You have a file and no codebook. SDV detects the types of its columns. The types, the names and the
keys are then taken as public. Ranges and categories are not: a part of the budget finds them from
noisy counts, and values that few rows have become "other". The same from the shell:

    sdv-privpgd synthesize 04_survey.csv --header --epsilon 1 --out 04_undeclared.csv \\
        --report 04_report.html

``04_survey.csv`` stands for your own file and is private; ``04_undeclared.csv`` and
``04_report.html`` may be shown. At the end the tutorial compares with the rows that a codebook
gives; that comparison is not private. Declare whatever you can.

Run it:  pip install -e '.[tutorials]'  and  python tutorials/04_undeclared.py
"""

import argparse
from pathlib import Path

import pandas as pd
from sdv.metadata import Metadata
from survey import PUBLIC_DOMAIN, load, metadata

from sdv_privpgd import PrivPGDSynthesizer
from sdv_privpgd.methods import ParticleGradientDescent, PrivPGD


def main(num_particles: int | None = None, folder: Path = Path()) -> pd.DataFrame:
    """Fits the file and writes rows and page; returns the errors of both ways."""
    load().to_csv(folder / "04_survey.csv", index=False)

    real = pd.read_csv(folder / "04_survey.csv")
    detected = Metadata.detect_from_dataframes({"survey": real})
    synthesizer = PrivPGDSynthesizer(
        detected,
        epsilon=1.0,
        method=PrivPGD(engine=ParticleGradientDescent(num_particles=num_particles)),
    )
    synthesizer.fit(real)  # says which columns are not declared
    synthesizer.sample(len(real)).to_csv(folder / "04_undeclared.csv", index=False)
    synthesizer.report(folder / "04_report.html")
    print(synthesizer.privacy_report())

    # Not private from here on. Both are compared on the codebook's values.
    declared = PrivPGDSynthesizer(
        metadata(),
        epsilon=1.0,
        public_domain=PUBLIC_DOMAIN,
        method=PrivPGD(engine=ParticleGradientDescent(num_particles=num_particles)),
    )
    declared.fit(load())
    shares = {
        "real": real,
        "undeclared": synthesizer.sample(len(real)),
        "declared": declared.sample(len(real)),
    }
    found = pd.DataFrame(
        {name: rows["rate_marriage"].value_counts(normalize=True) for name, rows in shares.items()}
    )
    print("\nShares of the marks that women give their marriages. Not private.\n")
    print(found.fillna(0).round(3).to_string())
    found.to_csv(folder / "04_marks_not_private.csv")
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--num-particles", type=int, default=None)
    parser.add_argument("--folder", type=Path, default=Path())
    arguments = parser.parse_args()
    main(arguments.num_particles, arguments.folder)
