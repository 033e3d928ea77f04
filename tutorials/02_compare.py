"""Compare three methods at one epsilon on one table, and read the pages.

PrivPGD measures all pairs of columns and, coarsely, triples. MST measures a tree of pairs that it
chooses privately. Independent measures each column alone. All three have the same guarantee and
the same budget; they differ in what they measure with it.

Each method leaves two pages for a browser. ``02_<method>.html`` is public: it says what was spent,
how loud the noise is, and how well the rows fit the noisy answers. ``02_<method>_not_private.html``
compares with the real table, "Scores" first, then the columns and pairs that fit worst. It teaches
about the methods on a table that may be seen. Do not choose a method by it for a table that must be
protected: that would spend privacy that no ledger counts.

Run it:  pip install -e '.[tutorials]'  and  python tutorials/02_compare.py
"""

import argparse
from pathlib import Path

import pandas as pd
from survey import PUBLIC_DOMAIN, load, metadata

from sdv_privpgd import MSTSynthesizer, PrivPGDSynthesizer
from sdv_privpgd.methods import ParticleGradientDescent, PrivPGD


def main(num_particles: int | None = None, folder: Path = Path()) -> pd.DataFrame:
    """Fits all three, writes their pages and returns their scores, one column for each method."""
    real = load()
    same = {"epsilon": 1.0, "public_domain": PUBLIC_DOMAIN}
    methods = {
        "privpgd": PrivPGDSynthesizer(
            metadata(),
            **same,
            method=PrivPGD(engine=ParticleGradientDescent(num_particles=num_particles)),
        ),
        "mst": MSTSynthesizer(metadata(), **same),
        "independent": PrivPGDSynthesizer(metadata(), **same, method="independent"),
    }
    scores = {}
    for name, synthesizer in methods.items():
        synthesizer.fit(real)
        synthesizer.report(folder / f"02_{name}.html")
        compared = synthesizer.evaluate(real, path=folder / f"02_{name}_not_private.html")
        scores[name] = {**compared.scores, "SDMetrics quality": compared.quality}
        spent = synthesizer.ledger.spent()
        print(f"{name}: epsilon {spent:.3f} of differential privacy spent, pages written")
    found = pd.DataFrame(scores)
    print("\nErrors (0 is perfect) and SDMetrics' quality (1 is perfect). Not private.\n")
    print(found.round(4).to_string())
    found.to_csv(folder / "02_compare_not_private.csv", index_label="score")
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--num-particles", type=int, default=None)
    parser.add_argument("--folder", type=Path, default=Path())
    arguments = parser.parse_args()
    main(arguments.num_particles, arguments.folder)
