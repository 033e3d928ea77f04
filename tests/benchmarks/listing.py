"""What a list of questions buys at the fit: narrower intervals, and what all else pays for it.

A table of seven columns is simulated. Conditions of the questions lie inside the cells that a fit
finds. Each question is answered by fits that were told of none, of one, and of all of them.

``width`` is the median width of 95 % intervals of the table's value over that of the same count
asked alone with the whole budget (a share times the number of rows; of the mean of money, declared
up to 100,000, over that of the one sum). ``held`` is the part of them
that holds it, and ``+-`` its standard error. ``pairs`` is the mean L1 distance of the synthetic
rows' pairs of columns from the table's, in ten cells of equally many rows a column, of the same
fits: what all that was not listed is worth. Not private.
"""

from itertools import combinations

import numpy as np
import pandas as pd

from benchmarks.experiment import options, quiet, values_of
from sdv_privpgd import Between, Boolean, Categorical, Numerical, fit_table
from sdv_privpgd.inference import Question
from sdv_privpgd.privacy.accounting import mu_squared_of

_ASKED = {
    "count, category": Question(what="count", where={"age": Between(33, 47), "ward": "B"}),
    "count, numbers": Question(
        what="count", where={"age": Between(33, 47), "cost": Between(250, 900)}
    ),
    "count, three": Question(
        what="count", where={"days": Between(3, 6), "ill": True, "dose": Between(0, 47)}
    ),
    "share": Question(what="share", where={"dose": Between(low=80)}),
    "mean of money": Question(what="mean", of="cost"),
}


@options(epsilons=[0.2, 1.0, 5.0], fits=20, rows=5_000, method="privpgd")
def rows(given):
    lists = {"none": [], "one": ["count, numbers"], "all": list(_ASKED)}
    for epsilon in given.epsilons:
        for told, names in lists.items():
            found = [
                _fitted(table(given.rows, seed), [_ASKED[name] for name in names], epsilon, given)
                for seed in range(given.fits)
            ]
            for name in names or _ASKED:
                lines = np.array([each[name] for each in found])
                held = float(lines[:, 1].mean())
                yield {
                    "question": name,
                    "listed": told,
                    "epsilon": epsilon,
                    "width": float(np.median(lines[:, 0])),
                    "held": held,
                    "+-": float(np.sqrt(held * (1 - held) / given.fits)),
                    "pairs": float(np.mean([each["pairs"] for each in found])),
                }


def table(number, seed):
    """Patients of four wards: money and doses with long tails, which depend on age and ward."""
    rng = np.random.default_rng(seed)
    ward = rng.choice(4, number, p=[0.4, 0.3, 0.2, 0.1])
    age = np.clip(np.rint(rng.normal(40 + 5 * ward, 16)), 0, 99)
    ill = rng.random(number) < 0.1 + age / 200
    return pd.DataFrame(
        {
            "ward": np.array(list("ABCD"))[ward],
            "ill": ill,
            "age": age,
            "cost": np.minimum(rng.lognormal(5.5 + age / 100 + ill, 1.0), 100_000).round(2),
            "days": np.minimum(rng.poisson(3 + 3 * ill), 60) * 1.0,
            "dose": np.minimum(rng.gamma(2 + ward / 2, 25), 1_000).round(1),
            "sex": rng.choice(["f", "m"], number),
        }
    )


DECLARED = {
    "ward": Categorical(list("ABCD"), nullable=False),
    "ill": Boolean(nullable=False),
    "age": Numerical(0, 99, decimal_places=0, nullable=False),
    "cost": Numerical(0, 100_000, decimal_places=2, nullable=False),
    "days": Numerical(0, 60, decimal_places=0, nullable=False),
    "dose": Numerical(0, 1_000, decimal_places=1, nullable=False),
    "sex": Categorical(["f", "m"], nullable=False),
}


def _fitted(real, questions, epsilon, given):
    """For each question the width and whether it holds; and the distance of pairs."""
    with quiet():
        fitted = fit_table(real, DECLARED, epsilon, 1e-5, method=given.method, questions=questions)
        made = fitted.sample(len(real))
    alone = 2 * 1.96 / float(mu_squared_of(epsilon, 1e-5)) ** 0.5
    found = {}
    for name, asked in _ASKED.items():
        low, high = fitted.answer(asked.what, of=asked.of, where=asked.where).interval("table")
        of_one = 1.0 if asked.of is None else DECLARED[asked.of]["range_max"]
        unit = of_one if asked.what == "count" else of_one / len(real)
        kind = "share" if asked.of is None else "mean"
        true = values_of(real, kind, asked.of, asked.where).sum() * unit / of_one
        found[name] = ((high - low) / unit / alone, low <= true <= high)
    return {**found, "pairs": distance(real, made)}


def distance(real, made):
    """The mean L1 distance of pairs of columns, numbers in ten cells of equally many real rows."""
    cells = {}
    for name in real:
        both = real[name], made[name]
        if pd.api.types.is_numeric_dtype(real[name]) and real[name].dtype != bool:
            edges = np.unique(np.quantile(real[name].dropna(), np.arange(1, 10) / 10))
            cells[name] = [
                np.where(each.isna(), len(edges) + 1, np.searchsorted(edges, each.astype(float)))
                for each in both
            ]
        else:
            known = {value: place for place, value in enumerate(real[name].astype(str).unique())}
            codes = (each.astype(str).map(known).fillna(len(known)) for each in both)
            cells[name] = [each.to_numpy(int) for each in codes]
    apart = []
    for one, other in combinations(cells, 2):
        size = 1 + max(each.max() for each in cells[other])
        places = [size * a + b for a, b in zip(cells[one], cells[other], strict=True)]
        most = 1 + max(each.max() for each in places)
        real_shares, shares = (np.bincount(each, minlength=most) / len(each) for each in places)
        apart.append(np.abs(real_shares - shares).sum())
    return float(np.mean(apart))
