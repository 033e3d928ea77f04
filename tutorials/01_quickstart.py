"""Quickstart: private synthetic rows of a sensitive survey, and the ledger that goes with them.

6,366 women answered, one row each (``survey.py``). We declare each column's domain from the
codebook, fit at epsilon 1, sample as many rows, and compare a few marginals.

Run it:  python tutorials/01_quickstart.py            (writes 01_quickstart.png and .csv here)
"""

import argparse
from pathlib import Path

import matplotlib

from sdv_privpgd.methods import ParticleGradientDescent, PrivPGD

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import pandas as pd
from survey import PUBLIC_DOMAIN, load, metadata

from sdv_privpgd import PrivPGDSynthesizer


def figure(real: pd.DataFrame, synthetic: pd.DataFrame, path: Path) -> None:
    """Draws four columns and two pairs. It shows the real table: for the curator's eyes only."""
    fig, axes = plt.subplots(2, 3, figsize=(11, 5.6), layout="constrained")
    tables = {"real table": real, "synthetic rows": synthetic}
    columns = ["rate_marriage", "age", "yrs_married", "educ"]
    panels = {
        f"share of each value of {name}": {
            key: table[name].value_counts(normalize=True) for key, table in tables.items()
        }
        for name in columns
    } | {
        f"share with an affair, by {name}": {
            key: table.groupby(name)["affair"].mean() for key, table in tables.items()
        }
        for name in ("rate_marriage", "yrs_married")
    }
    for axis, (title, heights) in zip(axes.flat, panels.items(), strict=True):
        bars = pd.DataFrame(heights).sort_index().rename(index="{:g}".format)
        bars.plot.bar(ax=axis, rot=0, color=["0.65", "tab:blue"], width=0.8, legend=False)
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("")
        axis.spines[["top", "right"]].set_visible(False)
    axes[0, 0].legend(frameon=False)
    fig.suptitle("6,366 women on their marriages, epsilon 1 (not private: it shows the real table)")
    fig.savefig(path, dpi=80)
    plt.close(fig)


def main(num_particles: int | None = None, folder: Path = Path()) -> pd.DataFrame:
    """Fits, samples, prints the ledger, and writes the rows and the figure."""
    real = load()
    synthesizer = PrivPGDSynthesizer(
        metadata(),
        epsilon=1.0,
        delta=1e-5,
        public_domain=PUBLIC_DOMAIN,
        method=PrivPGD(engine=ParticleGradientDescent(num_particles=num_particles)),
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
