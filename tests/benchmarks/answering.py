"""Whether answers that analysts write in papers hold: differences, ratios, undeclared money.

Each fit is of rows that are drawn with replacement from a population that is simulated once, so
both truths are known: that of the table that was fitted and that of its population. Two answers are
subtracted or divided: shares in two groups, in a group and in all rows, and of a thing and its
opposite; means of two groups. Of ``found`` money no range is declared, so noise may hide rows
beyond the range that is found.

``of_table`` and ``of_people`` are the parts of 95 % intervals that hold the table's and the
population's truth, ``+-`` the larger of their standard errors. ``naive`` is the first of shortcuts
that must fail: of two answers the one that adds their variances as if they were independent, of
found money the one that keeps the ends that were found. ``endless`` is the part of intervals with
an infinite end, ``width`` the median width of the others over the truth. Not private.
"""

import operator
from dataclasses import replace

import numpy as np
import pandas as pd

from benchmarks.experiment import options, quiet, values_of
from sdv_privpgd import Boolean, Categorical, Numerical, fit_table
from sdv_privpgd.inference.intervals import KINDS

_LEVEL = 0.95


_MINUS, _OVER = operator.sub, operator.truediv
_A, _B, _C = ({"where": {"smokes": True}, "among": {"ward": ward}} for ward in "ABC")
_ALL, _REST = ({"where": {"smokes": is_so}} for is_so in (True, False))
_AGE = {"of": "age"}
_AGE_A, _AGE_B = ({**_AGE, "where": {"ward": ward}} for ward in "AB")
_PAIRS = {
    "a share less its rest": ("share", _ALL, _REST, _MINUS),
    "shares, two groups": ("share", _A, _B, _MINUS),
    "shares, a small group": ("share", _C, _A, _MINUS),
    "shares, group and all": ("share", _A, _ALL, _MINUS),
    "risk ratio": ("share", _A, _B, _OVER),
    "risk ratio, small group": ("share", _C, _A, _OVER),
    "risk ratio, group and all": ("share", _A, _ALL, _OVER),
    "means, two groups": ("mean", _AGE_A, _AGE_B, _MINUS),
    "means, group and all": ("mean", _AGE_A, _AGE, _MINUS),
    "ratio of means": ("mean", _AGE_A, _AGE_B, _OVER),
}
_ALONE = {
    "mean of found money": ("mean", {}),
    "median of found money": ("quantile", {"q": 0.5}),
    "90 % of found money": ("quantile", {"q": 0.9}),
    "99 % of found money": ("quantile", {"q": 0.99}),
}


@options(epsilons=[0.2, 1.0], fits=60, rows=5_000, population=100_000)
def rows(given):
    people = simulated(given.population)
    for epsilon in given.epsilons:
        held = {name: [] for name in (*_PAIRS, *_ALONE)}
        for fit in range(given.fits):
            table = people.sample(given.rows, replace=True, random_state=fit, ignore_index=True)
            for name, line in _asked(table, people, epsilon).items():
                held[name].append(line)
        for name, lines in held.items():
            parts, widths = (
                np.array([line[:3] for line in lines], float),
                [line[3] for line in lines],
            )
            ends = np.isfinite(widths)
            means = parts.mean(axis=0)
            error = np.sqrt(means[:2] * (1 - means[:2]) / given.fits).max()
            yield {
                "question": name,
                "epsilon": epsilon,
                **dict(zip(("of_table", "of_people"), means[:2].tolist(), strict=True)),
                "+-": float(error),
                "naive": float(means[2]),
                "endless": float(1 - ends.mean()),
                "width": float(np.median(np.array(widths)[ends])) if ends.any() else np.inf,
            }


def simulated(number):
    """Wards of which one is small, a thing that depends on them, ages, and skewed money.

    One payment in a hundred is two hundred times as high as its like.
    """
    rng = np.random.default_rng(0)
    ward = rng.choice(3, number, p=[0.55, 0.4, 0.05])
    rare = np.where(rng.random(number) < 0.01, 200, 1)
    age = np.clip(np.rint(rng.normal(45 + 4 * ward, 15)), 0, 99)
    return pd.DataFrame(
        {
            "ward": np.array(["A", "B", "C"])[ward],
            "smokes": rng.random(number) < np.array([0.2, 0.3, 0.1])[ward],
            "age": age,
            "found": (np.exp(rng.normal(7, 0.6, number)) * rare).round(2),
        }
    )


def _asked(table, people, epsilon):
    """For each question: which of three intervals hold, and how wide the first is."""
    known = {
        "ward": Categorical(["A", "B", "C"], nullable=False),
        "smokes": Boolean(nullable=False),
        "age": Numerical(0, 99, decimal_places=0, nullable=False),
    }
    how = {"epsilon": epsilon, "delta": 1e-5, "method": "privpgd+pgm"}
    with quiet():
        pairs = fit_table(table[list(known)], known, **how)
        money = fit_table(
            table[["found", "ward"]], {"found": Numerical(), "ward": known["ward"]}, **how
        )
    found = {}
    for name, (what, one, two, combine) in _PAIRS.items():
        answer = combine(pairs.answer(what, **one), pairs.answer(what, **two))
        naive = replace(answer.statistic, correlations=dict.fromkeys(KINDS, 0.0))
        truths = [
            combine(*(values_of(each, what, **own).mean() for own in (one, two)))
            for each in (table, people)
        ]
        found[name] = _held(answer.statistic, naive, truths)
    for name, (what, rank) in _ALONE.items():
        answer, naive = (money.answer(what, of="found", **rank, clipped=c) for c in (False, True))
        amounts = (each["found"] for each in (table, people))
        truths = [
            float(np.quantile(each, **rank, method="inverted_cdf") if rank else each.mean())
            for each in amounts
        ]
        found[name] = _held(answer.statistic, naive.statistic, truths)
    return found


def _held(statistic, naive, truths):
    ends = [statistic.interval(kind, _LEVEL) for kind in KINDS]
    ends.append(naive.interval(KINDS[0], _LEVEL))
    hits = [
        low <= true <= high for (low, high), true in zip(ends, [*truths, truths[0]], strict=True)
    ]
    low, high = ends[0]
    return [*hits, (high - low) / abs(truths[0])]
