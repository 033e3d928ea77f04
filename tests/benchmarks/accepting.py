"""How often acceptance criteria are falsely said to be met, or not met, by noisy answers alone.

Each fit is of rows drawn with replacement from a population: one that is ``simulated`` once, or a
real table. The truth is looked up: the value of the synthetic rows and that of the table that was
fitted. Criteria have several sizes, so that some lie where rows are hardly near enough, which is
where verdicts are wrong most easily. Those of real tables are made by one rule: of the last value
of a first column, among a second one, and of two numbers. The small group is the rarest value that
has 2 % of the rows. The difference is that of the two groups with a tenth of them that lie furthest
apart, and must be above a half of it, or all of it. Two columns of few values are fitted as well.

``met`` and ``not_met`` are the parts of fits with that verdict; in the others it cannot be told.
``falsely_met`` is the part of all fits in which "met" was said and is not so, ``+-`` its standard
error, ``falsely_not`` the same of "not met"; the promise is 0.05 at most. ``naive_met`` is what a
shortcut that must fail has for ``falsely_met``: it takes the noisy estimate for the table's value.
``held`` is the part of intervals that hold it. The last lines of a table are the means of its
criteria. Not private.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression, LogisticRegression

from benchmarks.answering import simulated
from benchmarks.experiment import options, quiet, values_of
from sdv_privpgd import Boolean, Categorical, Numerical, fit_table
from sdv_privpgd.benchmark.tables import rows_and_facts
from sdv_privpgd.inference import Criterion
from sdv_privpgd.inference.acceptance import MET, NOT_MET

_KNOWN = {
    "ward": Categorical(["A", "B", "C"], nullable=False),
    "smokes": Boolean(nullable=False),
    "age": Numerical(0, 99, decimal_places=0, num_bins=100, nullable=False),
}
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
_REAL = {
    "adult": ("income", "education", "hours-per-week", "age"),
    "bank": ("housing", "job", "balance", "age"),
    "acs_income_ne_2018": ("PINCP", "MAR", "WKHP", "AGEP"),
    "diabetes": ("diabetesMed", "age", "num_medications", "time_in_hospital"),
    "nist": ("OWN_RENT", "MSP", "POVPIP", "AGEP"),
    "diamonds": ("cut", "clarity", "price", "carat"),
}
"""The columns of each table that criteria are about: two of values, two of numbers."""


@options(
    tables=["simulated", *_REAL], epsilons=[0.2, 1.0], rows=[1_000, 5_000, 20_000], fits=40,
    population=100_000,
)  # fmt: skip
def rows(given):
    for name in given.tables:
        people, known, asked = _task(name, given)
        for number in given.rows:
            for epsilon in given.epsilons:
                about = {"table": name, "rows": number, "epsilon": epsilon}
                found = []
                for fit in range(given.fits):
                    table = people.sample(number, replace=True, random_state=fit, ignore_index=True)
                    found.append(_judged(table, known, asked, epsilon))
                part = np.mean(found, axis=0)
                errors = np.sqrt(part * (1 - part) / len(found))
                for key, own, error in zip(_sized(asked), part, errors, strict=True):
                    yield _line(about, key, own, error)
                # Criteria of one fit share its noise, so the errors are those of means of fits.
                error = np.std(np.mean(found, axis=1), axis=0) / np.sqrt(len(found))
                yield _line(about, "all", part.mean(axis=0), error)


def _line(about, key, part, error):
    names = ("met", "not_met", "falsely_met", "falsely_not", "naive_met", "held")
    found = dict(zip(names, part.tolist(), strict=True))
    return {**about, "criterion": key, **found, "+-": float(error[2:4].max())}


def _task(name, given):
    """The population, what is declared of it, and what is asked, in several sizes."""
    if name == "simulated":
        return simulated(given.population), _KNOWN, _ASKED
    people, facts = rows_and_facts(name, given.data)
    flag, group, number, other = _REAL[name]
    value = facts[flag].get("range_values", [True])[-1]
    more = [each for each in facts if each not in _REAL[name]]
    more = sorted(more, key=lambda each: people[each].nunique())[:2]
    is_one, share = people[flag] == value, people[group].value_counts(normalize=True)
    apart = is_one.groupby(people[group]).mean()[share >= 0.1]
    high, low = apart.idxmax(), apart.idxmin()
    size = float(apart[high] - apart[low])
    small = {group: share.where(share >= 0.02).idxmin()}
    asks = {"what": "share", "where": {flag: value}}
    slope = {"what": "coefficient", "of": number, "on": [other, flag], "term": other}
    asked = {
        "share": (Criterion(**asks, within=1), [0.01, 0.03]),
        "share in a small group": (Criterion(**asks, among=small, within=1), [0.03, 0.1]),
        "mean": (Criterion(what="mean", of=number, relative=0.5), [0.02, 0.05]),
        "dependence": (
            Criterion(**asks, among={group: high}, minus={group: low}, above=0),
            [size / 2, size],
        ),
        "coefficient": (Criterion(**slope, relative=0.5), [0.2, 0.5]),
    }
    return people, {each: facts[each] for each in (*_REAL[name], *more)}, asked


def _sized(asked):
    """The criteria by name and size."""
    return {
        f"{name}, {size:.3g}": replace(one, **{bound: size})
        for name, (one, sizes) in asked.items()
        for bound in ("within", "relative", "above")
        if getattr(one, bound) is not None
        for size in sizes
    }


def _judged(table, known, asked, epsilon):
    """For each criterion: met, not met, falsely met, falsely not, falsely naive, interval held."""
    criteria, how = list(_sized(asked).values()), {"method": "privpgd+pgm", "allow_lost": [*known]}
    with quiet():
        fitted = fit_table(table[[*known]], known, epsilon, 1e-5, **how)
        made = fitted.sample(len(table))
        verdicts = fitted.accept(criteria, made).verdicts
    found = []
    for criterion, verdict in zip(criteria, verdicts, strict=True):
        value, truth = (_value(criterion, each) for each in (made, table))
        is_met = _is_met(criterion, value, truth)
        estimate = sum(verdict.table) / 2
        is_naive = np.isfinite(estimate) and _is_met(criterion, value, estimate)
        said, denied = verdict.verdict == MET, verdict.verdict == NOT_MET
        falsely = said and not is_met, denied and is_met, is_naive and not is_met
        found.append([said, denied, *falsely, verdict.table.low <= truth <= verdict.table.high])
    return found


def _is_met(asked, value, truth):
    allowed = asked.allowed(value)
    return allowed is not None and allowed.low <= truth <= allowed.high


def _value(asked, rows):
    if asked.what == "coefficient":
        return _coefficient(asked, rows)
    first, *rest = (values_of(rows, asked.what, asked.of, **own).mean() for own in asked.groups)
    return float(first - sum(rest))


def _coefficient(asked, rows):
    """That of the term, among rows that have all values."""
    whole = rows[[asked.of, *asked.on]].dropna()
    terms = pd.get_dummies(whole[list(asked.on)], prefix_sep=" = ", drop_first=True)
    is_linear = asked.kind == "linear"
    model = (
        LinearRegression() if is_linear else LogisticRegression(C=np.inf, tol=1e-8, max_iter=999)
    )
    found = model.fit(terms.to_numpy(float), whole[asked.of].to_numpy(float))
    return float(np.ravel(found.coef_)[terms.columns.get_loc(asked.term)])
