"""Errors on the class-conditional queries of RAP++, beside other methods, on decoded values.

80 % of a table's rows are fitted as a user would (``fit_table``, with ranges and categories
declared, and the label as ``target``), and as many synthetic rows are compared with them, all in
cells that no method has: 1,024 of equal width for each number. ``LT`` is the mean error of the
share of rows of a class on a side of a random hyperplane over all numbers, ``MM`` below two random
thresholds, ``CM`` in a cell of two categories where a table has them (Vietri et al. 2022, section
5.1; all in units of 1e-4), ``LT_most`` the largest. ``LT`` draws thresholds as the paper does, over
numbers in [0, 1]; ``LTs`` over numbers of mean 0 and variance 1, where fewer hold all rows or
none. ``linear_f1`` is the macro F1 of logistic regression that learned from the synthetic rows, on
the 20 % of rows that no fit has seen, and ``f1`` that of boosting. ``Real`` are the fitted rows:
their queries are those of the test rows instead, which is what chance does to errors. "PGM" is
``MWEM`` with Private-PGM, as in the paper. Not private.
"""

import numpy as np

from benchmarks.experiment import options, quiet
from benchmarks.learning import of_arms
from sdv_privpgd import fit_table
from sdv_privpgd.benchmark.fits import Stopwatch
from sdv_privpgd.benchmark.tables import columns_of
from sdv_privpgd.columns.encoding import encode_table
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.metrics.learning import learning_scores
from sdv_privpgd.metrics.pairs import columns, embedded
from sdv_privpgd.metrics.queries import (
    categorical_marginal_errors,
    linear_threshold_errors,
    mixed_marginal_errors,
)

_ARMS = {
    "RAP++": {"method": "rap++"},
    "RAP": {"method": "rap"},
    "PGM": {"method": "mwem"},
    "DP-MERF": {"method": "dp-merf"},
    "PrivPGD": {},
}

_CELLS, _FEWEST = 1_024, 10
"""Cells of a number, and the fewest values of what counts as one."""


@options(tables=["adult", "acs_mobility"], arms=[*_ARMS, "Real"], epsilons=[1.0], seeds=1, rows=int)
def rows(given):
    yield from of_arms(given, _run)


def _run(task, arm, epsilon, seed):
    """The scores of one fit."""
    watch, rows, compared = Stopwatch(), task.train, (task.test, task.train)
    if arm != "Real":
        with quiet():
            own = {"target": task.label, "seed": seed, **_ARMS[arm]}
            rows = fit_table(task.train, task.facts, epsilon, **own).sample(len(task.train))
        compared = (task.train, rows)
    watch.lap("fit_s")
    learned = learning_scores(
        task.columns, columns_of(rows), columns_of(task.test), task.label, seed=seed
    )
    kept = {name: learned[name] for name in ("linear_f1", "f1") if name in learned}
    return {**_errors(task, *compared), **kept, **watch.seconds}


def _errors(task, real, synthetic):
    """The errors of the classes of queries, in units of 1e-4."""
    schema = Schema.from_sdv(dict(task.facts), num_bins=_CELLS)
    domain = schema.domain()
    codes = [encode_table(columns_of(rows), schema) for rows in (real, synthetic)]
    others = [column for column in schema.columns if column.name != task.label]
    numbers = [
        column.name
        for column in others
        if column.sdtype == "numerical" and column.num_values >= _FEWEST
    ]
    categories = [column.name for column in others if column.name not in numbers]
    of_numbers = {"features": numbers, "labels": [task.label]}
    straight = linear_threshold_errors(domain, *codes, **of_numbers)
    mixed = mixed_marginal_errors(domain, *codes, **of_numbers, num_queries=20_000)
    marginals = float("nan")
    if len(categories) > 1:
        of_categories = {"features": categories, "labels": [task.label]}
        marginals = categorical_marginal_errors(domain, *codes, **of_categories).mean
    points = [embedded(domain.project(numbers), columns(domain, own)) for own in codes]
    labels = [own[:, domain.axes((task.label,))[0]] for own in codes]
    errors = {
        "LT": straight.mean,
        "LT_most": straight.max,
        "LTs": _scaled_error(points, labels, domain.size((task.label,))),
        "MM": mixed.mean,
        "CM": marginals,
    }
    return {name: 1e4 * error for name, error in errors.items()}


def _scaled_error(points, labels, classes):
    """The mean error of 1,000 half-spaces of numbers of mean 0 and variance 1 in the first."""
    rng = np.random.default_rng(0)
    mean, spread = points[0].mean(axis=0), np.maximum(points[0].std(axis=0), 1e-9)
    directions = rng.standard_normal((1_000, points[0].shape[1]))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    thresholds = rng.standard_normal(1_000)
    answers = []
    for own, label in zip(points, labels, strict=True):
        counts = np.zeros((classes, 1_000))
        for start in range(0, len(own), 1 << 13):
            part = slice(start, start + (1 << 13))
            below = ((own[part] - mean) / spread) @ directions.T <= thresholds
            for value in range(classes):
                counts[value] += below[label[part] == value].sum(axis=0)
        answers.append(counts / len(own))
    return float(np.abs(answers[0] - answers[1]).mean())
