"""Whether answers hold that no table determines: means and shares in subgroups of two columns.

Each fit is of rows that are drawn with replacement from a population that is simulated once, so
both truths are known: that of the table that was fitted and that of its population. Of the
population ``additive`` each column moves the others by itself; of ``crossed`` two columns together
move a third. All questions name three columns, and those that tables determine are left out.

``of_table`` and ``of_people`` are the parts of 95 % intervals that hold the table's and the
population's truth, ``+-`` the larger of their standard errors over fits, ``width`` the median width
over the truth. ``unwidened`` are the intervals of the repetitions as they are, and ``naive`` those
of an analyst who takes the synthetic rows for real ones: both must fail. Not private.
"""

from collections import defaultdict
from unittest import mock

import numpy as np
import pandas as pd

from benchmarks.experiment import options, quiet, values_of
from sdv_privpgd import Between, Boolean, Categorical, Numerical, fit_table
from sdv_privpgd.inference import bootstrap as rules

_LEVEL, _DEVIATIONS = 0.95, 1.96
_COLUMNS = {
    "ward": Categorical(list("ABCD"), nullable=False),
    "sex": Categorical(["F", "M"], nullable=False),
    "edu": Numerical(0, 6, decimal_places=0, nullable=False),
    "age": Numerical(0, 99, decimal_places=0, nullable=False),
    "ill": Boolean(nullable=False),
    "pay": Numerical(0, 20_000, decimal_places=2, nullable=False),
}
_GROUPS = (
    {"ward": "A", "sex": "M"},
    {"ward": "B", "sex": "F"},
    {"ward": "C", "edu": Between(3, 6)},
    {"sex": "M", "edu": Between(0, 1)},
    {"ward": "D", "ill": True},
    {"sex": "F", "ill": True},
)
_OLD = {"age": Between(50, 99)}


def _questions():
    for group in _GROUPS:
        for name in ("age", "pay"):
            yield f"mean {name}", "mean", {"of": name, "where": group}
        yield "share", "share", {"where": _OLD if "ill" in group else {"ill": True}, "among": group}


@options(epsilons=[0.2, 1.0, 5.0], fits=40, rows=5_000, population=200_000)
def rows(given):
    for kind in ("additive", "crossed"):
        people = simulated(given.population, kind)
        for epsilon in given.epsilons:
            held = defaultdict(list)
            for fit in range(given.fits):
                table = people.sample(given.rows, replace=True, random_state=fit, ignore_index=True)
                for name, line in _asked(table, people, epsilon):
                    held[name].append((fit, *line))
            for name, lines in held.items():
                found = pd.DataFrame(lines).groupby(0).mean()
                errors = found.std() / np.sqrt(max(len(found), 2))
                table, population, unwidened, naive, _ = np.mean([line[1:] for line in lines], 0)
                yield {
                    "population": kind,
                    "question": name,
                    "epsilon": epsilon,
                    "of_table": float(table),
                    "of_people": float(population),
                    "+-": float(errors[[1, 2]].max()),
                    "unwidened": float(unwidened),
                    "naive": float(naive),
                    "width": float(np.median([line[-1] for line in lines])),
                }


def simulated(number, kind):
    """People whose age, illness and pay depend on their ward, sex and education."""
    rng, crossed = np.random.default_rng(0), kind == "crossed"
    ward, sex = rng.choice(4, number, p=[0.4, 0.3, 0.2, 0.1]), 1 * (rng.random(number) < 0.5)
    edu = np.clip(rng.poisson(1.5 + 0.5 * ward, number), 0, 6)
    years = 40 + 4 * ward + 3 * sex + crossed * 6 * (ward % 2) * sex
    age = np.clip(np.rint(rng.normal(years, 14)), 0, 99)
    odds = -1.2 + 0.02 * (age - 40) + 0.4 * sex + 0.2 * edu - crossed * 0.9 * (ward > 1) * (edu > 2)
    logs = 6 + 0.15 * edu - 0.2 * sex + 0.15 * ward + crossed * 0.4 * sex * (edu > 2)
    return pd.DataFrame(
        {
            "ward": np.array(list("ABCD"))[ward],
            "sex": np.array(["F", "M"])[sex],
            "edu": edu,
            "age": age,
            "ill": rng.random(number) < 1 / (1 + np.exp(-odds)),
            "pay": np.minimum(np.exp(rng.normal(logs, 0.6)), 20_000).round(2),
        }
    )


def _asked(table, people, epsilon):
    """For each question of the model: which of four intervals hold, and how wide the first is."""
    with quiet():
        fitted = fit_table(table, _COLUMNS, epsilon=epsilon, delta=1e-5)
    synthetic = fitted.sample(len(table))
    for name, what, how in _questions():
        answer = fitted.answer(what, **how)
        if answer.basis == "tables" or answer.statistic is None:
            continue
        of_table, of_people = (values_of(each, what, **how).mean() for each in (table, people))
        ends = [answer.interval(kind, _LEVEL) for kind in ("table", "population")]
        low, high = ends[0]
        with mock.patch.multiple(rules, WIDER=1.0, SHRUNKEN=0.0):
            ends.append(answer.interval("table", _LEVEL))
        own = values_of(synthetic, what, **how)
        error = _DEVIATIONS * own.std() / np.sqrt(max(len(own), 1))
        ends.append((own.mean() - error, own.mean() + error))
        truths = (of_table, of_people, of_table, of_table)
        hits = [low <= true <= high for (low, high), true in zip(ends, truths, strict=True)]
        yield name, [*hits, (high - low) / abs(of_table)]
