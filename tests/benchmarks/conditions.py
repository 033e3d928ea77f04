"""Rows under conditions: the errors of the other columns.

It fits a simulated table. For conditions on 1 to 4 attributes it compares the distribution of each
other attribute with that in the whole population under the same condition. The error is half the L1
distance, averaged over the attributes, the conditions and the seeds. ``ours`` draws 20,000 rows
under each condition. ``nearest`` takes only the particles that fit or, if there are none, the
nearest ones; ``all`` takes all particles. No particle fits an absent condition.
"""

import numpy as np

from benchmarks.experiment import options
from benchmarks.simulated import simulated_table
from sdv_privpgd.benchmark.fits import fit_dataset
from sdv_privpgd.methods import ParticleGradientDescent, PrivPGD
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.sampling.conditions import ConditionalRows

_BANDS = {"10 %": 0.1, "1 %": 0.01, "0.1 %": 0.001, "absent": 0.0}
_MANY = 20_000
_FEWEST_KNOWN = 300
"""Fewest rows of the population that a condition may have, so that the truth is known well."""


@options(
    rows=50_000, columns=10, cells=16, population=3_000_000, epsilon=1.0, conditions=20, seeds=3
)
def rows(given):
    found = {band: [] for band in _BANDS}
    for seed in range(given.seeds):
        number = given.rows + given.population
        domain, codes = simulated_table(number, given.columns, num_cells=given.cells, seed=seed)
        fitted, population = np.asfortranarray(codes[: given.rows]), codes[given.rows :].T
        fitted.setflags(write=False)
        engine = ParticleGradientDescent(seed=seed)
        particles = fit_dataset(
            Dataset(domain, fitted), given.epsilon, PrivPGD(engine=engine)
        ).model
        rng = np.random.default_rng(seed)
        for band, share in _BANDS.items():
            tried = _examples(population, particles.codes.T, share, given.conditions, rng)
            found[band] += [_errors(particles, population, values, rng) for values in tried]
    for band, errors in found.items():
        if errors:
            mean = {key: float(np.mean([each[key] for each in errors])) for key in errors[0]}
            yield {"frequency": band, "conditions": len(errors), **mean}


def _examples(population, particles, share, number, rng):
    """At most ``number`` conditions of about one frequency, taken from rows of the population."""
    found = 0
    for _ in range(1_000 * number):
        if found == number:
            return
        most = 3 if share else 4
        axes = rng.choice(len(population), rng.integers(1, most + 1), replace=False).tolist()
        row = rng.integers(population.shape[1])
        values = {axis: int(population[axis, row]) for axis in axes}
        fitting = _fitting(particles, values).mean()
        # Particles are counted first, which is quick; the population only for likely conditions.
        if not (share / 4 <= fitting <= share * 4):
            continue
        known = _fitting(population, values)
        if share / 2 <= known.mean() <= (share * 2 or 1) and known.sum() >= _FEWEST_KNOWN:
            found += 1
            yield values


def _fitting(codes, values):
    """True for rows with the values, given codes of shape (attribute, row)."""
    return np.all([codes[axis] == code for axis, code in values.items()], axis=0)


def _errors(particles, population, values, rng):
    """The number of particles that fit, and each method's mean error of the other attributes."""
    domain, pool = particles.domain, particles.codes.T
    truth = population[:, _fitting(population, values)]
    costs = sum(
        (pool[axis] != code) + np.abs(pool[axis].astype(int) - code) / domain.sizes[axis]
        for axis, code in values.items()
    )
    ordered = dict(zip(domain.attributes, domain.sizes, strict=True))
    rows = ConditionalRows(particles, 0, ordered)
    wish = {
        domain.attributes[axis]: (np.arange(domain.sizes[axis]) == code).astype(np.float64)
        for axis, code in values.items()
    }
    drawn = {
        "ours": rows.draw(wish, _MANY, rng).T,
        "nearest": pool[:, costs == np.min(costs)],
        "all": pool,
    }
    others = [axis for axis in range(len(domain)) if axis not in values]
    errors = {
        way: np.mean([_distance(codes[axis], truth[axis], domain.sizes[axis]) for axis in others])
        for way, codes in drawn.items()
    }
    return {"particles": float(_fitting(pool, values).sum()), **errors}


def _distance(ours, theirs, size):
    """The total variation distance of two columns of codes."""
    counts = [np.bincount(codes, minlength=size) / len(codes) for codes in (ours, theirs)]
    return float(np.abs(counts[0] - counts[1]).sum() / 2)
