"""What to expect: how many rows come out in the wrong place, by the size of the table.

The tutorial simulates tables of several sizes, whose columns have ten values each and depend on
each other, and fits them at one epsilon. Then it compares shares of the synthetic rows with those
of the table. It prints how many of 100 rows would have to change to make a column right, and how
many to make a pair of columns right (the total variation distance). "By chance" is the distance to
a second table of other people from the same town, without any privacy.

With ``people=People(max_rows=k)``, divide your number of rows by k and read that line. Your own
tables are private: do not try settings on them, but simulate tables like them.

Run it:  pip install -e '.[tutorials]'  and  python tutorials/06_what_to_expect.py --epsilon 1
"""

import argparse
import warnings
from collections.abc import Sequence
from itertools import combinations, islice
from pathlib import Path

import numpy as np
import pandas as pd

from sdv_privpgd import PrivPGDSynthesizer, draft_metadata
from sdv_privpgd.methods import ParticleGradientDescent, PrivPGD

ROWS, COLUMNS = (500, 2_000, 10_000, 50_000), (5, 10, 20)

VALUES = [str(value) for value in range(10)]


def town(num_rows: int, num_columns: int, seed: int) -> pd.DataFrame:
    """Simulates people with a hidden trait that all columns depend on."""
    rng = np.random.default_rng(seed)
    own = rng.normal(size=(num_rows, num_columns))
    mixed = 0.7 * rng.normal(size=(num_rows, 1)) + 0.7 * own
    codes = np.clip(np.round(4.5 + 2 * mixed), 0, 9).astype(int)
    return pd.DataFrame(codes.astype(str), columns=[f"c{place}" for place in range(num_columns)])


def misplaced(real: pd.DataFrame, rows: pd.DataFrame, degree: int) -> float:
    """The mean number of 100 rows that are in the wrong place, in so many columns at a time."""
    found = []
    for names in islice(combinations(real.columns, degree), 60):
        shares = [table.value_counts(list(names), normalize=True) for table in (real, rows)]
        found.append(shares[0].sub(shares[1], fill_value=0).abs().sum() / 2)
    return 100 * float(np.mean(found))


def main(
    epsilon: float = 1.0,
    rows: Sequence[int] = ROWS,
    columns: Sequence[int] = COLUMNS,
    num_particles: int | None = None,
    folder: Path = Path(),
) -> pd.DataFrame:
    """Fits a table of each size and returns the errors, one row for each size."""
    found = []
    for num_rows in rows:
        for num_columns in columns:
            real = town(num_rows, num_columns, seed=0)
            synthesizer = PrivPGDSynthesizer(
                draft_metadata(real.dtypes),
                epsilon=epsilon,
                delta=0.1 / num_rows,
                public_domain={
                    name: {"range_values": VALUES, "range_is_nullable": False} for name in real
                },
                method=PrivPGD(engine=ParticleGradientDescent(num_particles=num_particles)),
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # too few rows: that is what we want to see
                synthesizer.fit(real)
            made, others = synthesizer.sample(num_rows), town(num_rows, num_columns, seed=1)
            found.append(
                {
                    "rows": num_rows,
                    "columns": num_columns,
                    "of a column": misplaced(real, made, 1),
                    "of a pair": misplaced(real, made, 2),
                    "of a pair, by chance": misplaced(real, others, 2),
                    "warned": any("rows are few" in said for said in synthesizer.warnings_),
                }
            )
    table = pd.DataFrame(found)
    print(f"Of 100 rows in the wrong place, at epsilon {epsilon:g} of differential privacy:\n")
    print(table.round(1).to_string(index=False))
    table.to_csv(folder / "06_what_to_expect.csv", index=False)
    return table


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--num-particles", type=int, default=None)
    parser.add_argument("--folder", type=Path, default=Path())
    arguments = parser.parse_args()
    small = {} if arguments.num_particles is None else {"rows": ROWS[:2], "columns": COLUMNS[:2]}
    main(
        arguments.epsilon,
        num_particles=arguments.num_particles,
        folder=arguments.folder,
        **small,
    )
