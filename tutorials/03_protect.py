"""Protect a statistic: make rows that are good for everything but one number that stays secret.

Suppose that nobody may read the share of happy, religious and long-married women off the rows. (In
a company it could be a defect rate that a competitor would pay for.) Dropping the columns would
lose all that they hold. A ``ProtectedThreshold`` pushes the particles away from the statistic
during the descent. So the rows mislead about it, and the weight says how far. Figure 3 of Donhauser
et al. 2024 shows the cost for everything else, and this tutorial repeats it on a small table.
Dashed lines are the fit without a penalty.

The penalty needs one private answer. It is paid from the same budget and dropped after the fit,
with all that would reveal it.

Run it:  python tutorials/03_protect.py            (writes 03_protect_not_private.png and .csv here)
"""

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import pandas as pd
from survey import PUBLIC_DOMAIN, SCALES, load, metadata

from sdv_privpgd import PrivPGDSynthesizer
from sdv_privpgd.methods import ParticleGradientDescent, PrivPGD, ProtectedThreshold

# A row lies at the center of its cell in each column: code c of k is at (2 c + 1) / (2 k).
THETA = {"rate_marriage": 1.0, "religious": 1.0, "yrs_married": 1.0}
THRESHOLD = 1.9
WEIGHTS = [0, 0.0003, 0.003]


def share(table: pd.DataFrame) -> float:
    """The share of rows beyond the threshold, which is the number to protect."""
    places = 0.0
    for name, coefficient in THETA.items():
        values = SCALES[name]
        codes = table[name].map({value: code for code, value in enumerate(values)})
        places = places + coefficient * (2 * codes + 1) / (2 * len(values))
    return float((places > THRESHOLD).mean())


def figure(found: pd.DataFrame, path: Path) -> None:
    """Draws the error of the protected share and the other errors over the weight."""
    titles = {
        "protected": "protected share, absolute error",
        "half_l1": "pairs, total variation",
        "counting": "counting queries, relative error",
        "threshold": "threshold queries, relative error",
    }
    fig, axes = plt.subplots(1, len(titles), figsize=(15, 3.6), layout="constrained")
    without, penalized = found.iloc[0], found.iloc[1:]
    for axis, (name, title) in zip(axes, titles.items(), strict=True):
        axis.plot(penalized.index, penalized[name], marker="o")
        axis.axhline(without[name], color="0.5", linestyle="--", linewidth=1)
        axis.set(xscale="log", xlabel="weight", title=title, ylim=(0, None))
    fig.suptitle("Errors against the real table, by the weight of the penalty (not private)")
    fig.savefig(path, dpi=110)
    plt.close(fig)


def main(num_particles: int | None = None, folder: Path = Path()) -> pd.DataFrame:
    """Fits once for each weight and returns the errors, one row for each weight."""
    real = load()
    rows = {}
    for weight in WEIGHTS:
        penalty = ProtectedThreshold(theta=THETA, b=THRESHOLD, weight=weight)
        synthesizer = PrivPGDSynthesizer(
            metadata(),
            epsilon=2.5,
            public_domain=PUBLIC_DOMAIN,
            method=PrivPGD(
                engine=ParticleGradientDescent(
                    num_particles=num_particles, penalties=[penalty] if weight else []
                )
            ),
            verbose=True,  # a minute or two a fit: a bar says how long
        )
        print(f"\nThe penalty's weight is {weight}:", flush=True)
        synthesizer.fit(real)
        compared = synthesizer.evaluate(real, path=folder / "03_protect_not_private.html")
        protected = abs(share(synthesizer.sample(len(real))) - share(real))
        rows[weight] = {"protected": protected, **compared.scores}
    print(synthesizer.privacy_report())
    found = pd.DataFrame.from_dict(rows, orient="index").rename_axis("weight")
    print(f"\nThe real share is {share(real):.3f}. Errors, not private:\n")
    print(found[["protected", "half_l1", "counting", "threshold"]].round(4).to_string())
    found.to_csv(folder / "03_protect_not_private.csv")
    figure(found, folder / "03_protect_not_private.png")
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--num-particles", type=int, default=None)
    parser.add_argument("--folder", type=Path, default=Path())
    arguments = parser.parse_args()
    main(arguments.num_particles, arguments.folder)
