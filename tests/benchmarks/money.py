"""How often the mean of money that nobody declared comes out far too large, or far too small.

One column of lognormal amounts (median e^6, in cents) is fitted with nothing declared, one in five
parts of the budget to find its range, and the rest to count its cells. ``too large`` are fits whose
rows have a mean 1.6 times the real one and more, ``too small`` 0.6 times and less; ``median`` and
``largest`` are of the ratio of both.
"""

import numpy as np
import pandas as pd

from benchmarks.experiment import options, quiet
from sdv_privpgd import Numerical, fit_table


@options(spreads=[1.5, 2.0, 2.5], rows=[2_000, 20_000], epsilons=[0.2, 1.0], fits=200)
def rows(given):
    for spread in given.spreads:
        for number in given.rows:
            for epsilon in given.epsilons:
                found = np.array([_ratio(spread, number, epsilon, s) for s in range(given.fits)])
                yield {
                    "spread": spread,
                    "rows": number,
                    "epsilon": epsilon,
                    "too large": (found > 1.6).mean(),
                    "too small": (found < 0.6).mean(),
                    "median": np.median(found),
                    "largest": found.max(),
                }


def _ratio(spread, number, epsilon, seed):
    real = pd.DataFrame({"x": np.random.default_rng(seed).lognormal(6, spread, number).round(2)})
    told = {"adjacency": "add_remove", "method": "independent", "allow_lost": ["x"]}
    with quiet():
        fitted = fit_table(real, {"x": Numerical()}, epsilon, 1e-5, **told, seed=seed)
    return fitted.sample(number)["x"].mean() / real["x"].mean()
