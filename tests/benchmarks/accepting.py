"""How often acceptance criteria are falsely said to be met, or not met, by noisy answers alone.

Each fit is of rows drawn from a population that is simulated once. The truth is looked up: the
value of the synthetic rows and that of the table that was fitted. Criteria have several sizes, so
that some lie where rows are hardly near enough, which is where verdicts are wrong most easily.

``met`` and ``not_met`` are the parts of fits with that verdict; in the others it cannot be told.
``falsely_met`` is the part of all fits in which "met" was said and is not so, ``+-`` its standard
error, ``falsely_not`` the same of "not met"; the promise is 0.05 at most. ``naive_met`` is what a
shortcut that must fail has for ``falsely_met``: it takes the noisy estimate for the table's value.
Not private.
"""

from dataclasses import replace

import numpy as np

from benchmarks.answering import simulated
from benchmarks.experiment import options, quiet
from sdv_privpgd import Boolean, Categorical, Numerical, fit_table
from sdv_privpgd.inference import Criterion
from sdv_privpgd.inference.acceptance import MET, NOT_MET

_SMOKES = {"smokes": True}
_ASKED = {
    "share": (Criterion(what="share", where=_SMOKES, within=1), [0.002, 0.005, 0.01, 0.02]),
    "share in a small group": (
        Criterion(what="share", where=_SMOKES, among={"ward": "C"}, within=1),
        [0.01, 0.03, 0.1],
    ),
    "mean": (Criterion(what="mean", of="age", relative=0.5), [0.002, 0.005, 0.02]),
    "mean in a group": (
        Criterion(what="mean", of="age", where={"ward": "B"}, relative=0.5),
        [0.005, 0.02],
    ),
    "dependence": (
        Criterion(
            what="share", where=_SMOKES, among={"ward": "B"}, minus={"ward": "A"}, above=0
        ),
        [0.05, 0.08, 0.1],
    ),
    "coefficient": (
        Criterion(
            what="coefficient", of="age", on=["smokes", "ward"], term="ward = B", relative=0.5
        ),
        [0.05, 0.2],
    ),
    "logistic coefficient": (
        Criterion(
            what="coefficient", of="smokes", on=["age", "ward"], term="ward = B", kind="logistic",
            relative=0.5,
        ),
        [0.05, 0.2],
    ),
}  # fmt: skip


@options(epsilons=[0.2, 1.0], rows=[1_000, 5_000, 20_000], fits=40, population=100_000)
def rows(given):
    people = simulated(given.population)
    for number in given.rows:
        for epsilon in given.epsilons:
            found = {}
            for fit in range(given.fits):
                table = people.sample(number, replace=True, random_state=fit, ignore_index=True)
                for name, line in _judged(table, epsilon).items():
                    found.setdefault(name, []).append(line)
            for name, lines in found.items():
                part = np.mean(lines, axis=0)
                error = np.sqrt(part[2:4] * (1 - part[2:4]) / len(lines)).max()
                names = ("met", "not_met", "falsely_met", "falsely_not", "naive_met")
                yield {
                    "criterion": name,
                    "rows": number,
                    "epsilon": epsilon,
                    **dict(zip(names, part.tolist(), strict=True)),
                    "+-": float(error),
                }


def _judged(table, epsilon):
    """For each criterion and size: met, not met, falsely met, falsely not met, falsely naive."""
    known = {
        "ward": Categorical(["A", "B", "C"], nullable=False),
        "smokes": Boolean(nullable=False),
        "age": Numerical(0, 99, decimal_places=0, num_bins=100, nullable=False),
    }
    criteria = {
        f"{name}, {size:g}": (name, replace(asked, **{_bound(asked): size}))
        for name, (asked, sizes) in _ASKED.items()
        for size in sizes
    }
    with quiet():
        fitted = fit_table(table[list(known)], known, epsilon, 1e-5, method="privpgd+pgm")
        made = fitted.sample(len(table))
        verdicts = fitted.accept([each for _, each in criteria.values()], made).verdicts
    found = {}
    for (key, (name, asked)), verdict in zip(criteria.items(), verdicts, strict=True):
        value, truth = (_value(name, each) for each in (made, table))
        is_met = _is_met(asked, value, truth)
        estimate = sum(verdict.table) / 2
        is_naive = np.isfinite(estimate) and _is_met(asked, value, estimate)
        said, denied = verdict.verdict == MET, verdict.verdict == NOT_MET
        found[key] = [said, denied, said and not is_met, denied and is_met, is_naive and not is_met]
    return found


def _bound(asked):
    return next(
        name for name in ("within", "relative", "above") if getattr(asked, name) is not None
    )


def _is_met(asked, value, truth):
    allowed = asked.allowed(value)
    return allowed is not None and allowed.low <= truth <= allowed.high


def _value(name, rows):
    smokes, ward, age = rows["smokes"].astype(float), rows["ward"], rows["age"].astype(float)
    if "coefficient" in name:
        return _coefficient(name, smokes, ward, age)
    return {
        "share": lambda: smokes.mean(),
        "share in a small group": lambda: smokes[ward == "C"].mean(),
        "mean": lambda: age.mean(),
        "mean in a group": lambda: age[ward == "B"].mean(),
        "dependence": lambda: smokes[ward == "B"].mean() - smokes[ward == "A"].mean(),
    }[name]()


def _coefficient(name, smokes, ward, age):
    """The coefficient of ward B beside A, by least squares or by Newton's steps."""
    groups = [(ward == each).to_numpy(float) for each in "BC"]
    y, other = (smokes, age) if "logistic" in name else (age, smokes)
    x = np.column_stack([*groups, np.ones(len(y)), other])
    if "logistic" not in name:
        return float(np.linalg.lstsq(x, y, rcond=None)[0][0])
    beta = np.zeros(x.shape[1])
    for _ in range(30):
        chance = 1 / (1 + np.exp(-x @ beta))
        square = (x * (chance * (1 - chance))[:, None]).T @ x
        beta = beta + np.linalg.lstsq(square, x.T @ (y - chance), rcond=None)[0]
    return float(beta[0])
