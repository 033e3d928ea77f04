"""The price of not sharing: one table split over sites who measure alone, beside the whole table.

The rows are dealt out at random (``even``), or sorted by a column (``--by``) and cut into parts of
one size, so that sites are unlike. Each site spends epsilon; the releases are combined.

K sites' noise adds up to that of one table that was asked with a K-th of the mu^2. So

    error of K sites at epsilon  =  error of one table at the epsilon of mu^2 / K,

and before any model is made a pair's noisy table of so many cells lies, in L1, about
cells x sqrt(2 K / pi) x s / n from the true one (s: each site's standard deviation, n: all rows).

``noise`` is that distance, averaged over all pairs, and ``foretold`` the formula's. ``rows`` is the
L1 distance of the combined model's pairs from the whole table's, ``rows_at`` that of a model of the
whole table at ``epsilon_at``, the epsilon of mu^2 / K, and ``whole`` at the full epsilon. ``alone``
is how far the model of one site's release lies from the whole table (the mean over ``--alone``
sites), and ``own`` how far from that site's own.

With ``--add-budget``: ``once`` spends epsilon at once, ``half`` a half of it, and ``refined`` is
that model with the other half, each with fresh noise. Not private.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from benchmarks.experiment import means, options, particles, quiet
from benchmarks.forecast import declared_table
from sdv_privpgd import combine, fit_table
from sdv_privpgd.benchmark.tables import SPLIT_SEED, TABLES, columns_of
from sdv_privpgd.columns.encoding import encode_table
from sdv_privpgd.estimate.noisy_tables import noisy_tables
from sdv_privpgd.methods import PrivPGD
from sdv_privpgd.privacy.accounting import epsilon_of, mu_squared_of
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.releases.site import prepared, with_cells
from sdv_privpgd.releases.site_release import described, plain_words

_DELTA = 1e-5


@options(
    table="adult", sites=[2, 5, 20], by="education", epsilon=1.0, seeds=3, alone=2,
    add_budget=False, rows=int, num_particles=int,
)  # fmt: skip
def rows(given):
    frame, facts = declared_table(given.table, given.data)
    if given.rows is not None and given.rows < len(frame):
        frame = frame.sample(n=given.rows, random_state=SPLIT_SEED)
    facts = with_cells(plain_words(facts), None)  # as sites cut them
    task = _Task(frame=frame, facts=facts, num_particles=given.num_particles)
    with quiet():
        yield from (_refined if given.add_budget else _compared)(task, given)


@dataclass(frozen=True, kw_only=True)
class _Task:
    """A table with what is declared of it. Not private."""

    frame: pd.DataFrame
    facts: Mapping
    num_particles: int | None

    def shares(self, frame):
        """The true shares of all pairs' cells."""
        attributes = described(self.facts, None).attributes
        domain, codes = attributes.domain(), encode_table(columns_of(frame), attributes)
        pairs = domain.cliques(2)
        counts = Dataset(domain, codes).counts_of(list(pairs))
        return {pair: own / len(frame) for pair, own in zip(pairs, counts, strict=True)}

    @cached_property
    def truth(self):
        return self.shares(self.frame)

    def released(self, parts, epsilon, seed):
        """The combined release of sites of these parts."""
        # A site of one kind of people may have all of them at an end of a range.
        measured = [
            prepared(part, self.facts, epsilon, _DELTA, site=f"site {place}").run(stops=False)
            for place, part in enumerate(parts)
        ]
        engine = particles(self.num_particles, seed=seed)
        return combine(measured, engine=engine, seed=seed).fitted.release


def _compared(task, given):
    seeds = range(given.seeds)

    def whole(epsilon):
        runs = (task.released([task.frame], epsilon, seed) for seed in seeds)
        return _mean(_distance(release, task.truth) for release in runs)

    full = whole(given.epsilon)
    for number in given.sites:
        weaker = epsilon_of(mu_squared_of(given.epsilon, _DELTA) / number, _DELTA)
        at = {"rows_at": whole(weaker), "epsilon_at": weaker, "whole": full}
        for way in ("even", given.by):
            found = means(_run(task, given, way, number, seed) for seed in seeds)
            yield {"split": way[:10], "sites": number, **found, **at}


def _run(task, given, way, number, seed):
    parts = split(task.frame, number, None if way == "even" else way, seed)
    release = task.released(parts, given.epsilon, seed)
    found = {"rows": _distance(release, task.truth), **_noise(release, task)}
    alone, own = [], []
    for place in range(0, number, max(number // max(given.alone, 1), 1))[: given.alone]:
        single = task.released([parts[place]], given.epsilon, seed)
        alone.append(_distance(single, task.truth))
        own.append(_distance(single, task.shares(parts[place])))
    return {**found, "alone": _mean(alone), "own": _mean(own)}


def split(frame, number, by, seed):
    """Parts of one size: of rows in random order, or of rows sorted by a column."""
    order = np.random.default_rng(seed).permutation(len(frame))
    if by is not None:
        schools = TABLES["adult"].orders["education"] if by == "education" else ()
        ranks = {name: rank for rank, name in enumerate(schools)}
        keys = [ranks.get(value, value) for value in frame[by].iloc[order]]
        order = order[np.argsort(np.array(keys), kind="stable")]
    return [frame.iloc[own] for own in np.array_split(order, number)]


def _refined(task, given):
    found = []
    for seed in range(given.seeds):
        engine = particles(task.num_particles, seed=seed)
        # Nothing is discovered, so that all codes are those that are compared.
        asked = {"discovery_share": 0, "method": PrivPGD(engine=engine, num_bins=32)}
        once, half = (
            fit_table(task.frame, task.facts, epsilon, _DELTA, **asked)
            for epsilon in (given.epsilon, given.epsilon / 2)
        )
        fits = {
            "once": once,
            "half": half,
            "refined": half.add_budget(task.frame, given.epsilon / 2),
        }
        errors = {name: _distance(each.fitted.release, task.truth) for name, each in fits.items()}
        found.append({"ratio": errors["refined"] / errors["once"], **errors})
        yield {"seed": str(seed), **found[-1]}
    yield {"seed": "mean", **means(found)}


def _distance(release, truth):
    """The mean over pairs of the L1 distance of the model's shares from the true ones."""
    return _mean(np.abs(release.model.marginal(pair) - own).sum() for pair, own in truth.items())


def _noise(release, task):
    """The mean distance of the noisy pairs from the true ones, and what the formula says of it."""
    number, noisy = len(task.frame), noisy_tables(release.domain, release.measurements)
    found, foretold = [], []
    for pair, true in task.truth.items():
        if pair in noisy:
            counts, variance = noisy[pair].counts, noisy[pair].variance
            found.append(np.abs(counts / number - true).sum())
            foretold.append(counts.size * np.sqrt(2 * variance / np.pi) / number)
    return {"noise": _mean(found), "foretold": _mean(foretold)}


def _mean(numbers):
    return float(np.mean(list(numbers)))
