"""Whether intervals hold the truth as often as they say, on real tables, and how wide they are.

Each fit is of as many rows as the table has, drawn from it with replacement: so both truths are
known, that of the table that was fitted and that of its population. The curator, the strategy and
the noise are the real ones; no model is fitted, because answers from tables need none. Questions
are counts where one or two columns are in ranges or sets of codes, the same in all fits: a third
single cells of pairs, a third parts of a pair, a third parts of a column.

``of_table`` and ``of_people`` are the parts of 95 % intervals that hold the table's and the
population's truth, ``worst`` the smallest part of the first among the questions (with 20 fits
chance alone takes one of 150 to about 0.75). ``width`` is the population interval's mean width over
that of the best possible one, which knows the true shares: for any unbiased answer w'y to noisy
tables y ~ N(M n p, n M S M' + C) the sampling part of the variance is the same, n p (1 - p) of a
count, and least squares under C have the smallest noise (unit tests compare ours with dense ones).
Not private.
"""

from dataclasses import dataclass, replace

import numpy as np
from answers import open_curator

from benchmarks.experiment import options
from sdv_privpgd.benchmark.fits import Stopwatch
from sdv_privpgd.benchmark.tables import load
from sdv_privpgd.inference.intervals import KINDS, Sum, deviations
from sdv_privpgd.inference.linear import LinearEstimate
from sdv_privpgd.methods import pipeline
from sdv_privpgd.methods.privpgd import PrivPGD
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.synthesize.pgm import PrivatePGM

_LEVEL = 0.95


@options(
    tables=["adult", "bank", "california_housing", "acs_income_co_2018", "diamonds", "nist"],
    epsilons=[0.2, 1.0, 2.5], fits=20, questions=150, rows=int, cells=32, adjacency="replace_one",
)  # fmt: skip
def rows(given):
    for name in given.tables:
        table = load(name, given.data, given.cells)
        frame = table.frame
        if given.rows is not None and given.rows < len(frame):
            frame = frame.sample(n=given.rows, random_state=0)
        codes, domain = table.encode(frame), table.domain
        questions = _questions(domain, given.questions)
        for epsilon in given.epsilons:
            watch = Stopwatch()
            found = _covered(codes, domain, questions, epsilon, given)
            watch.lap("all")
            line = {"table": name[:13], "epsilon": epsilon, **found}
            yield {**line, "fit_s": watch.seconds["all"] / given.fits}


@dataclass(frozen=True)
class _Question:
    """A count where attributes have one of some codes: 1.0 for these, by attribute."""

    weights: dict[str, np.ndarray]

    def count(self, codes, domain):
        """The exact count, given codes of shape (record, attribute)."""
        axes = domain.axes(self.weights)
        parts = zip(self.weights.values(), axes, strict=True)
        return float(np.prod([own[codes[:, axis]] for own, axis in parts], axis=0).sum())


def _questions(domain, number):
    """Questions about columns of more than one code, always the same ones."""
    rng = np.random.default_rng(0)
    names = [name for name, size in zip(domain.attributes, domain.sizes, strict=True) if size > 1]
    found = []
    for place in range(number):
        chosen = rng.choice(names, 1 if place % 3 == 2 else 2, replace=False).tolist()
        make = _cell if place % 3 == 0 else _codes
        sizes = zip(chosen, domain.shape(chosen), strict=True)
        found.append(_Question({name: make(size, rng) for name, size in sizes}))
    return found


def _cell(size, rng):
    return np.eye(size)[rng.integers(size)]


def _codes(size, rng):
    """A range or a set of codes, neither none nor all."""
    if rng.random() < 0.5:
        low, high = np.sort(rng.choice(size + 1, 2, replace=False))
        inside = (np.arange(size) >= low) & (np.arange(size) < high)
    else:
        inside = rng.random(size) < 0.5
    if inside.all() or not inside.any():
        inside = np.arange(size) == rng.integers(size)
    return inside.astype(np.float64)


def _covered(codes, domain, questions, epsilon, given):
    """How often intervals held the truth, and how wide they were."""
    rng, number = np.random.default_rng(1), len(codes)
    expected = [question.count(codes, domain) for question in questions]
    held = np.zeros((len(KINDS), len(questions)))
    widths = []
    for _ in range(given.fits):
        drawn = codes[rng.integers(number, size=number)]
        known = {"adjacency": Adjacency(given.adjacency), "seed": None}
        curator = open_curator(Dataset(domain, drawn), epsilon=epsilon, **known)
        # The default strategy. The engine is asked for its statistics: it has none.
        pipeline.ask(curator, replace(PrivPGD(), engine=PrivatePGM()))
        estimate = LinearEstimate(domain, curator.measurements)
        found = estimate.answers([{}, *(question.weights for question in questions)])
        assert found.known.all()
        for place, question in enumerate(questions):
            value, variance = found.values[place + 1], found.covariance[place + 1, place + 1]
            total = Sum(value, variance, num_rows=found.values[0], low=0.0)
            truths = question.count(drawn, domain), expected[place]
            for kind, truth in enumerate(truths):
                low, high = total.interval(KINDS[kind], _LEVEL)
                held[kind, place] += low <= truth <= high
            best = variance + expected[place] * (1 - expected[place] / number)
            uncut = Sum(value, variance, num_rows=found.values[0])
            low, high = uncut.interval("population", _LEVEL)
            widths.append((high - low) / (2 * deviations("table", _LEVEL) * np.sqrt(best)))
    parts = held / given.fits
    return {
        "of_table": float(parts[0].mean()),
        "of_people": float(parts[1].mean()),
        "worst": float(parts[0].min()),
        "width": float(np.mean(widths)),
    }
