"""Whether intervals of regressions hold the truth where outcomes are missing more often in a group.

Rows are drawn from a known population. ``x`` and ``z`` are numbers that go with a group ``g`` of
four; ``--categories`` makes more, which repeat what the four are like, the last ones rare. The
outcome is 5 x + z + a number of the group + noise, or is true with log odds x - z / 2 - 1 + a part
of that number. In the last group a part ``missing`` of the outcomes is missing. The curator, the
strategy and the noise are the real ones. ``--engine particles`` fits the default model; ``pgm`` is
quicker.

``x``, ``g = D`` and ``z`` are the parts of 95 % intervals that hold the true coefficients, ``+-``
is the standard error of such a part where 95 of 100 do. ``bias`` is the mean error of x, ``width``
the mean width of its interval, ``refused`` the part of fits without an answer. Two arms must fail:
``each its own``, which takes each mean over the rows that have its own columns, for the group where
some are missing; and ``sampling``, which forgets the noise, where that is much of the variance, as
of a linear regression. Not private.
"""

from dataclasses import replace
from unittest import mock

import numpy as np
from answers import open_curator

from benchmarks.experiment import options
from sdv_privpgd.benchmark.fits import Stopwatch
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.inference.moments import Moments
from sdv_privpgd.inference.questions import Questions
from sdv_privpgd.inference.regression import regression
from sdv_privpgd.methods import PrivPGD, pipeline
from sdv_privpgd.methods.method import engine_of
from sdv_privpgd.privacy.dataset import Dataset

_OF_GROUP = np.array([0, 1, 2, 4])
_TRUTH = {
    "linear": {"x": 5.0, "g = D": 4.0, "z": 1.0},
    "logistic": {"x": 1.0, "g = D": 1.0, "z": -0.5},
}
_LEVEL = 0.95


@options(
    kinds=["linear", "logistic"], missing=[0.0, 0.1, 0.4], epsilons=[5.0, 1.0], rows=40_000,
    fits=200, categories=4, engine="pgm", on=["x", "g", "z"],
)  # fmt: skip
def rows(given):
    for kind in given.kinds:
        schema = _schema(kind, given.categories)
        for epsilon in given.epsilons:
            for missing in given.missing:
                watch = Stopwatch()
                rng, found = np.random.default_rng(0), {}
                for _ in range(given.fits):
                    codes = drawn(rng, given.rows, kind, missing, given.categories)
                    asked = _questions(schema, codes, epsilon, engine_of(given.engine))
                    for arm, ends in _answers(asked, given.on, kind).items():
                        found.setdefault(arm, []).append(ends)
                watch.lap("all")
                for arm, ends in found.items():
                    line = {"kind": kind, "epsilon": epsilon, "missing": missing, "arm": arm}
                    yield {
                        **line,
                        **_covered(ends, given.fits, _TRUTH[kind]),
                        "fit_s": watch.seconds["all"] / given.fits,
                    }


def drawn(rng, num_rows, kind, missing, categories=4):
    """Codes of x, g, z and y of rows of the population; those of missing outcomes are the last."""
    often = np.arange(categories, 0, -1)
    g = rng.choice(categories, num_rows, p=often / often.sum())
    x = rng.binomial(3, 0.3 + 0.1 * (g % 4))
    z = rng.binomial(4, 0.3 + 0.1 * x)
    adds = _OF_GROUP[g % 4]
    if kind == "linear":
        y = 5 * x + z + adds + rng.integers(0, 7, num_rows)
    else:
        y = rng.random(num_rows) < 1 / (1 + np.exp(1 - x + 0.5 * z - adds / 4))
    gone = (g == 3) & (rng.random(num_rows) < missing)
    return np.stack([x, g, z, np.where(gone, 30 if kind == "linear" else 2, y)], 1).astype(np.int64)


def _schema(kind, categories):
    numbers = {"sdtype": "numerical", "range_min": 0, "decimal_places": 0}
    always = {"range_is_nullable": False}
    return Schema.from_sdv(
        {
            "x": {**numbers, **always, "range_max": 3},
            "g": {
                **always,
                "sdtype": "categorical",
                "range_values": list("ABCDEFGHIJKLMNOP"[:categories]),
            },
            "z": {**numbers, **always, "range_max": 4},
            "y": {**numbers, "range_max": 29} if kind == "linear" else {"sdtype": "boolean"},
        }
    )


def _questions(schema, codes, epsilon, engine):
    """What can be asked of a fit by the default strategy."""
    curator = open_curator(Dataset(schema.domain(), codes), epsilon=epsilon, seed=None)
    pipeline.ask(curator, replace(PrivPGD(), engine=engine))
    return Questions(pipeline.fit(pipeline.Answers.of(curator, engine), engine), schema)


def _answers(asked, on, kind):
    """The ends of the intervals by each arm, but for one that was refused."""
    ours = _regressed(asked, on, kind)
    with mock.patch("sdv_privpgd.inference.regression.moments", each_its_own):
        old = _regressed(asked, on, kind)
    bare = None if ours is None else replace(ours, covariance=ours.covariance - ours.noise)
    found = {"ours": ours, "each its own": old, "sampling": bare}
    return {arm: each.interval(_LEVEL) for arm, each in found.items() if each is not None}


def _regressed(asked, on, kind):
    try:
        return regression(asked, "y", on, kind)
    except ValueError:
        return None


def each_its_own(estimate, model, design, products):
    """The means of before: each product over the rows that have the values of its own columns."""
    present = design.present
    bases = [{name: present[name] for name in present if name in each} for each in products]
    found, number = estimate.answers([*products, *bases, {}]), len(products)
    sums, own = found.values[:number], found.values[number:-1]
    change = np.hstack([np.eye(number), -np.diag(sums / own), np.zeros((number, 1))]) / own[:, None]
    nothing = np.zeros((0, number))
    return Moments(
        values=sums / own,
        covariance=change @ found.covariance @ change.T,
        num_rows=own.min(),
        all_rows=found.values[-1],
        own=nothing,
        left=nothing,
    )


def _covered(found, fits, truth):
    """How often the intervals held the truth, and how far off and wide those of x are."""
    known = [term for term in truth if all(term in each.index for each in found)]
    ends = np.array([each.loc[known] for each in found])
    true = np.array([truth[term] for term in known])
    held = ((ends[..., 0] <= true) & (true <= ends[..., 1])).mean(axis=0)
    return {
        **dict(zip(known, held.tolist(), strict=True)),
        "+-": float(np.sqrt(_LEVEL * (1 - _LEVEL) / len(found))),
        "bias": float(ends[:, 0].mean() - true[0]),
        "width": float(np.diff(ends[:, 0]).mean()),
        "refused": 1 - len(found) / fits,
    }
