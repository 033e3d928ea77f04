"""Rows under conditions: the errors of the other columns, and the seconds of a thousand conditions.

It fits a simulated table. For conditions on 1 to 4 attributes it compares the distribution of each
other attribute with that in the whole population under the same condition. The error is half the L1
distance, averaged over the attributes, the conditions and the seeds. ``ours`` draws 20,000 rows
under each condition, ``100 rows`` draws 100. ``nearest`` takes only the particles that fit or, if
there are none, the nearest ones; ``all`` takes all particles. No particle fits an absent condition.
"""

import argparse
from collections.abc import Iterator

import numpy as np

from sdv_privpgd.benchmark.fits import fit_dataset
from sdv_privpgd.benchmark.meters import Stopwatch, print_table
from sdv_privpgd.benchmark.simulated import (
    MIXED_COLUMNS,
    MIXED_DOMAIN,
    mixed_table,
    simulated_table,
)
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.sampling.conditioning import ConditionalRows
from sdv_privpgd.synthesize.particles.descent import ParticleGradientDescent
from sdv_privpgd.synthesize.particles.particles import Particles

_BANDS = {"10 %": 0.1, "1 %": 0.01, "0.1 %": 0.001, "absent": 0.0}
_MANY, _FEW = 20_000, 100
_FEWEST_KNOWN = 300
"""Fewest rows of the population that a condition may have, so that the truth is known well."""

Values = dict[int, int]
"""A condition: the codes that attributes must have, by axis."""


def add_command(commands) -> None:
    """Adds ``conditions`` to the command line."""
    parser = commands.add_parser("conditions", help="rows under conditions: errors and seconds")
    parser.add_argument("--rows", type=int, default=50_000, help="fitted")
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--cells", type=int, default=16)
    parser.add_argument("--population", type=int, default=3_000_000, help="rows that say the truth")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--conditions", type=int, default=20, help="of each frequency and seed")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--timed", type=int, default=1_000, help="conditions of 100 rows each")
    parser.set_defaults(run=_conditions)


def _conditions(arguments: argparse.Namespace) -> None:
    found: dict[str, list[dict[str, float]]] = {band: [] for band in _BANDS}
    for seed in range(arguments.seeds):
        num_rows = arguments.rows + arguments.population
        domain, codes = simulated_table(
            num_rows, arguments.columns, num_cells=arguments.cells, seed=seed
        )
        fitted, population = codes[: arguments.rows], codes[arguments.rows :].T
        fitted = np.asfortranarray(fitted)
        fitted.setflags(write=False)
        engine = ParticleGradientDescent(seed=seed)
        particles = fit_dataset(Dataset(domain, fitted), arguments.epsilon, engine).model
        assert isinstance(particles, Particles)
        rng = np.random.default_rng(seed)
        for band, share in _BANDS.items():
            tried = _examples(population, particles.codes.T, share, arguments.conditions, rng)
            found[band] += [_errors(particles, population, values, rng) for values in tried]
    header = True
    for band, errors in found.items():
        if errors:
            means = {key: float(np.mean([each[key] for each in errors])) for key in errors[0]}
            print_table([{"frequency": band, "conditions": len(errors), **means}], header=header)
            header = False
    print()
    _seconds(arguments.timed)


def _examples(
    population: np.ndarray,
    particles: np.ndarray,
    share: float,
    number: int,
    rng: np.random.Generator,
) -> Iterator[Values]:
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


def _fitting(codes: np.ndarray, values: Values) -> np.ndarray:
    """True for rows with the values, given codes of shape (attribute, row)."""
    return np.all([codes[axis] == code for axis, code in values.items()], axis=0)


def _errors(
    particles: Particles, population: np.ndarray, values: Values, rng: np.random.Generator
) -> dict[str, float]:
    """The number of particles that fit, and each method's mean error of the other attributes."""
    domain, pool = particles.domain, particles.codes.T
    truth = population[:, _fitting(population, values)]
    fitting = _fitting(pool, values)
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
        "100 rows": rows.draw(wish, _FEW, rng).T,
        "nearest 100": pool[:, rng.choice(np.flatnonzero(costs == np.min(costs)), _FEW)],
    }
    others = [axis for axis in range(len(domain)) if axis not in values]
    return {"particles": float(fitting.sum())} | {
        way: float(
            np.mean([_distance(codes[axis], truth[axis], domain.sizes[axis]) for axis in others])
        )
        for way, codes in drawn.items()
    }


def _distance(ours: np.ndarray, theirs: np.ndarray, size: int) -> float:
    """The total variation distance of two columns of codes."""
    counts = [np.bincount(codes, minlength=size) / len(codes) for codes in (ours, theirs)]
    return float(np.abs(counts[0] - counts[1]).sum() / 2)


def _seconds(number: int) -> None:
    """Prints how long so many conditions of 100 rows each take, written in each way."""
    from sdv.metadata import Metadata
    from sdv.sampling import Condition, DataFrameCondition

    from sdv_privpgd import Between, PrivPGDSynthesizer

    metadata = Metadata.load_from_dict(
        {"tables": {"table": {"columns": MIXED_COLUMNS, "primary_key": "key"}}}
    )
    synthesizer = PrivPGDSynthesizer(metadata, 1.0, public_domain=MIXED_DOMAIN)
    synthesizer.fit(mixed_table(50_000))
    rng = np.random.default_rng(0)
    known = mixed_table(number, seed=1).drop(columns="key")
    three = known[["year", "city", "member"]]
    repeated = three.loc[three.index.repeat(100)].reset_index(drop=True)
    sets = [rng.choice(known.columns, rng.integers(1, 5), replace=False) for _ in range(number)]
    ranges = [
        Condition({"year": Between(low, low + 10), "price": Between(None, 100)}, num_rows=100)
        for low in rng.integers(1900, 2016, number).tolist()
    ]
    ways = {
        "Condition, one set of columns": lambda: synthesizer.sample_from_conditions(
            [Condition(dict(row), num_rows=100) for _, row in three.iterrows()]
        ),
        "Condition, many sets of columns": lambda: synthesizer.sample_from_conditions(
            [Condition(dict(known.loc[row, names]), num_rows=100) for row, names in enumerate(sets)]
        ),
        "Condition, ranges": lambda: synthesizer.sample_from_conditions(ranges),
        "DataFrameCondition": lambda: synthesizer.sample_from_conditions(
            [DataFrameCondition(repeated)]
        ),
        "remaining columns": lambda: synthesizer.sample_remaining_columns(repeated),
    }
    watch = Stopwatch()
    for way, sample in ways.items():
        watch.lap("before")
        num_rows = len(sample())
        watch.lap(way)
        print(f"{way:<32} {number:,} x 100: {num_rows:,} rows in {watch.seconds[way]:.2f} s")
