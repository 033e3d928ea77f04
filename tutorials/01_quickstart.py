"""Quickstart: private synthetic rows of a sensitive survey, and the ledger that goes with them.

6,366 women answered, one row each (``survey.py``). We declare each column's domain from the
codebook, fit at epsilon 1, sample as many rows, and compare a few marginals.

Run it:  python tutorials/01_quickstart.py            (writes 01_quickstart.png and .csv here)
"""

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import pandas as pd
from survey import PUBLIC_DOMAIN, load, metadata

from sdv_privpgd import PrivPGDSynthesizer


def figure(real: pd.DataFrame, synthetic: pd.DataFrame, path: Path) -> None:
    """Draws a few marginals and one pair. It shows the real table: for the curator's eyes only."""
    fig, axes = plt.subplots(2, 3, figsize=(12, 7), layout="constrained")
    for axis, name in zip(
        axes.flat, ["rate_marriage", "age", "yrs_married", "affair"], strict=False
    ):
        shares = pd.DataFrame(
            {
                "real": real[name].value_counts(normalize=True),
                "synthetic": synthetic[name].value_counts(normalize=True),
            }
        ).sort_index()
        shares.plot.bar(ax=axis, rot=0, color=["0.6", "tab:blue"], width=0.8)
        axis.set(xlabel="", ylabel="share of rows", title=name)
    pair = ["rate_marriage", "affair"]
    for axis, (title, table) in zip(
        axes.flat[4:], {"real": real, "synthetic": synthetic}.items(), strict=True
    ):
        by_rating = table.groupby(pair[0])[pair[1]].mean()
        axis.bar(by_rating.index, by_rating, color="0.6" if title == "real" else "tab:blue")
        axis.set(ylim=(0, 1), xlabel=pair[0], ylabel="share with an affair", title=f"pair, {title}")
    fig.suptitle("Survey of 6,366 women: real and synthetic (not private: it shows the real table)")
    fig.savefig(path, dpi=110)
    plt.close(fig)


def main(num_particles: int | None = None, folder: Path = Path()) -> pd.DataFrame:
    """Fits, samples, prints the ledger, and writes the rows and the figure."""
    real = load()
    synthesizer = PrivPGDSynthesizer(
        metadata(),
        epsilon=1.0,
        delta=1e-5,
        public_domain=PUBLIC_DOMAIN,
        num_particles=num_particles,
        verbose=True,
    )
    synthesizer.fit(real)
    synthetic = synthesizer.sample(len(real))

    print(synthetic.head(10).to_string(), end="\n\n")
    print(synthesizer.privacy_report())
    synthetic.to_csv(folder / "01_quickstart.csv", index=False)
    figure(real, synthetic, folder / "01_quickstart.png")
    print(f"\nWrote 01_quickstart.csv and 01_quickstart.png to {folder.resolve()}")
    return synthetic


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--num-particles", type=int, default=None)
    parser.add_argument("--folder", type=Path, default=Path())
    arguments = parser.parse_args()
    main(arguments.num_particles, arguments.folder)
