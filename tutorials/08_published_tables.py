"""Rows from tables that a statistical office has published: no microdata, no row of anybody.

A statistical office has a survey of 6,366 women (``survey.py``). It will never hand out its rows.
It has published what offices publish: cross tables of every two columns, with noise, and how large
the noise is. You have these tables in a Parquet file, and a codebook. You want rows, to write and
test an analysis with, and numbers that say how sure they are.

1. The office's side, which you would never see: it counts, adds noise and writes the file.
2. Yours: a codebook and the file. ``from_tables`` fits a model to the tables, and rows are drawn.
3. Answers straight from the published tables, with intervals that rest on the published noise.
4. The report says whose guarantee it is: the office's. Nothing of ours was spent, and there is no
   ledger. If the office's noise makes its tables differentially private, these rows are as well.

The file has a cell a row: column_1 and label_1, column_2 and label_2 name it, "estimate" is the
published count, and "stddev" the standard deviation of its noise. A table can be exact (0), and
the noise may differ from cell to cell, as it does in surveys.

Run it:  pip install -e '.[tutorials]'  and  python tutorials/08_published_tables.py
"""

import argparse
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from survey import SCALES, load

from sdv_privpgd import Boolean, Ordinal, from_tables
from sdv_privpgd.methods import ParticleGradientDescent

COLUMNS = ["rate_marriage", "age", "yrs_married", "religious", "educ", "affair"]
CODEBOOK = {
    name: Boolean(nullable=False) if name == "affair" else Ordinal(SCALES[name], nullable=False)
    for name in COLUMNS
}
STDDEV = 12.0


def publish(path: Path) -> None:
    """The office's side. (An office draws its noise from a better source than this.)"""
    survey, rng = load()[COLUMNS], np.random.default_rng(1974)
    tables = [pd.DataFrame({"estimate": [float(len(survey))], "stddev": [0.0]})]
    for first, second in combinations(COLUMNS, 2):
        values = [[False, True] if name == "affair" else SCALES[name] for name in (first, second)]
        counts = pd.crosstab(survey[first], survey[second]).reindex(
            index=values[0], columns=values[1], fill_value=0
        )
        cells = counts.stack().rename("estimate").reset_index()
        noise = rng.normal(0.0, STDDEV, len(cells)).round()
        tables.append(
            pd.DataFrame(
                {
                    "column_1": first,
                    "label_1": cells[first].astype(str),
                    "column_2": second,
                    "label_2": cells[second].astype(str),
                    "estimate": cells["estimate"] + noise,
                    "stddev": STDDEV,
                }
            )
        )
    pd.concat(tables, ignore_index=True).to_parquet(path, index=False)


def main(num_particles: int | None = None, folder: Path = Path()) -> pd.DataFrame:
    """Makes rows of the published tables, and looks at how far they are from the survey."""
    path = folder / "08_published.parquet"
    publish(path)

    # From here on nobody has the survey: the file and the codebook are all there is.
    made = from_tables(
        path,
        CODEBOOK,
        publisher="the statistical office",
        engine=ParticleGradientDescent(num_particles=num_particles),
    )
    rows = made.sample(made.num_rows)
    rows.to_csv(folder / "08_rows.csv", index=False)
    made.report(folder / "08_report.html")
    print(made.privacy_report())

    print("\nAnswers from the published tables, with 95 % intervals for the noise alone:")
    for rated in (1, 3, 5):
        answer = made.answer("share", where={"affair": True}, among={"rate_marriage": rated})
        low, high = answer.interval("table")
        share = rows.loc[rows["rate_marriage"] == rated, "affair"].mean()
        print(
            f"  marriages rated {rated}: {answer.estimate:.1%} had an affair ({low:.1%} to "
            f"{high:.1%}), and {share:.1%} in the rows"
        )

    # Only here, to see how good it is, do we look at what the office keeps.
    survey = load()[COLUMNS]
    found = pd.DataFrame(
        {
            "survey": survey.groupby("rate_marriage")["affair"].mean(),
            "rows": rows.groupby("rate_marriage")["affair"].mean(),
        }
    )
    found.to_csv(folder / "08_compared_not_private.csv")
    print(
        f"\nThe share of affairs by rating, in the survey and in the rows (NOT PRIVATE):\n{found}"
    )
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--num-particles", type=int, help="fewer are faster, and less exact")
    parser.add_argument("--folder", type=Path, default=Path(), help="where the files go")
    arguments = parser.parse_args()
    main(arguments.num_particles, arguments.folder)
