"""Structure that pairs of columns do not show, in simulated tables of ten columns.

``subgroup``: in a category of 2 % of the rows a treatment raises the share of outcomes by 0.57, and
nowhere else; the score is that difference. ``interval``: the same in 2 % of the values of a column
of numbers. ``parity`` and ``xor``: an outcome is the parity of three columns, or of two, but for
one row in twenty; the score is the AUROC of gradient boosting on fresh rows. ``tenth``: nine
columns are independent given the tenth; the score is how far their pairs lie, given it, from
independent ones (half the L1 distance, weighed by the tenth's shares): less is better.

The arm ``target`` says which column is the outcome, ``Real`` are the simulated rows themselves.
``low`` and ``high`` are the third smallest and the third largest score of all fits. Each fit is of
other rows, at delta 1e-5. Not private.
"""

from functools import partial
from itertools import combinations, product

import numpy as np
from answers import open_curator

from benchmarks.experiment import means, options
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.methods import PrivPGD, pipeline
from sdv_privpgd.methods.method import importance_of
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.queries import Adjacency

_OUTCOME = "j"
_KINDS = ["subgroup", "interval", "parity", "xor", "tenth"]


@options(
    kinds=_KINDS, arms=["PrivPGD", "target"], epsilons=[0.2, 1.0], fits=10, rows=20_000,
    adjacency="add_remove",
)  # fmt: skip
def rows(given):
    for kind in given.kinds:
        arms = [arm for arm in given.arms if kind != "tenth" or arm != "target"]
        for arm, epsilon in [("Real", np.inf), *product(arms, given.epsilons)]:
            made = simulated
            if arm != "Real":
                adjacency = Adjacency(given.adjacency)
                made = partial(_synthetic, arm=arm, epsilon=epsilon, adjacency=adjacency)
            scores = [
                _score(kind, *made(kind, given.rows, seed=seed)) for seed in range(given.fits)
            ]
            ends = sorted(scores)[2:-2] or sorted(scores)
            line = {"kind": kind, "arm": arm, "epsilon": epsilon}
            line |= means({"score": each} for each in scores)
            yield {**line, "low": ends[0], "high": ends[-1]}


def _synthetic(kind, number, *, seed, arm, epsilon, adjacency):
    """A domain, and as many rows of a model of simulated ones."""
    domain, codes = simulated(kind, number, seed=seed)
    target = _OUTCOME if arm == "target" else None
    method = PrivPGD(importance=importance_of(target)).seeded(seed)
    asked = {"epsilon": epsilon, "adjacency": adjacency, "seed": None}
    release = pipeline.run(open_curator(Dataset(domain, codes), **asked), method)
    return domain, release.model.sample(number, seed=seed)


def simulated(kind, number, *, seed):
    """A domain of columns ``a`` to ``j``, and codes of shape (row, column).

    But for what the kind says, two columns depend on a third one.
    """
    rng = np.random.default_rng((seed, 1))
    sizes = (12, 40, 2, 2, 2, 5, 9, 24, 3, 2)
    codes = np.stack([_skewed(rng, size, number) for size in sizes], axis=1)
    for own in (6, 7):
        follows = rng.random(number) < 0.5
        codes[follows, own] = (codes[follows, 5] * sizes[own]) // sizes[5]
    ward, pay, treated, third, fourth = codes.T[:5]
    if kind in ("parity", "xor"):
        codes[:, 2:5] = rng.integers(0, 2, (number, 3))
        wrong = rng.random(number) < 0.05
        codes[:, 9] = treated ^ third ^ wrong ^ (fourth * (kind == "parity"))
    elif kind == "tenth":
        codes[:, 9] = own = _skewed(rng, 5, number)
        sizes = (*sizes[:9], 5)
        for axis, size in enumerate(sizes[:9]):
            shares = np.random.default_rng((axis, 2)).dirichlet(np.full(size, 0.7), 5)
            shares = 0.4 * shares + 0.6 * shares.mean(axis=0)
            places = rng.random(number)[:, None] > shares.cumsum(axis=1)[own]
            codes[:, axis] = np.minimum(places.sum(axis=1), size - 1)
    else:
        column = ward if kind == "subgroup" else pay
        held = rng.random(number) < 0.02
        codes[:, 0 if kind == "subgroup" else 1] = np.where(
            held, 7, np.where(column == 7, 3, column)
        )
        codes[:, 2] = rng.random(number) < 0.4
        codes[:, 9] = rng.random(number) < 0.3 + held * np.where(codes[:, 2], 0.342, -0.228)
    return Domain(tuple("abcdefghij"), sizes), codes


def _skewed(rng, size, number):
    """Codes of which low ones are more frequent."""
    shares = 1 / (np.arange(size) + size / 2)
    return rng.choice(size, number, p=shares / shares.sum())


def _score(kind, domain, codes):
    if kind == "tenth":
        return _dependence(codes)
    if kind in ("parity", "xor"):
        return _auroc(kind, codes)
    held = codes[:, 0 if kind == "subgroup" else 1] == 7
    shares = [codes[held & (codes[:, 2] == treated), 9] for treated in (1, 0)]
    return float(np.subtract(*[own.mean() if len(own) else 0.0 for own in shares]))


def _auroc(kind, codes):
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    _, fresh = simulated(kind, 10_000, seed=1_000)
    if len(set(codes[:, 9])) < 2:
        return 0.5
    model = HistGradientBoostingClassifier(random_state=0).fit(codes[:, :9], codes[:, 9])
    return float(roc_auc_score(fresh[:, 9], model.predict_proba(fresh[:, :9])[:, 1]))


def _dependence(codes):
    found = []
    for one, other in combinations(range(9), 2):
        for value in np.unique(codes[:, 9]):
            own = codes[codes[:, 9] == value][:, [one, other]]
            table = np.zeros(own.max(axis=0) + 1)
            np.add.at(table, tuple(own.T), 1 / len(own))
            apart = table - np.outer(table.sum(axis=1), table.sum(axis=0))
            found.append(np.abs(apart).sum() / 2 * len(own) / len(codes))
    return float(np.sum(found) / 36)
