"""Fits of a small table by the real curator and strategies, without a model: milliseconds each.

The table has four columns, drawn from a known distribution, so that both truths of an interval are
known: what the table says, and what the population says.
"""

from dataclasses import replace

import numpy as np
from answers import open_curator
from columns_of_words import ranged
from small_engine import MaximumEntropy

from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.inference.questions import Questions
from sdv_privpgd.methods import pipeline
from sdv_privpgd.methods.privpgd import PrivPGD
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.sampling.conditions import Between

SCHEMA = Schema.from_sdv(
    {
        "ward": {"sdtype": "categorical", "range_values": [*"ABCD"], "range_is_nullable": False},
        "smokes": {"sdtype": "boolean", "range_is_nullable": False},
        "age": ranged("numerical", 0, 11, decimal_places=0, range_is_nullable=False),
        "grade": {"sdtype": "ordinal", "range_values": [1, 2, 3], "range_is_nullable": False},
    }
)
DOMAIN = SCHEMA.domain()
NUM_ROWS = 2_000


def population():
    """The probability of each cell: every pair of columns depends on each other."""
    ward, smokes, age, grade = np.ogrid[:4, :2, :12, :3]
    scores = (
        -0.3 * ward + 0.5 * smokes * (ward == 1) - 0.08 * (age - 4 - ward) ** 2
        + 0.05 * age * grade - 0.6 * smokes * (grade == 2) - 0.4 * smokes - 0.3 * ward * grade
    )  # fmt: skip
    weights = np.exp(np.broadcast_to(scores, DOMAIN.sizes))
    return weights / weights.sum()


POPULATION = population()


def drawn(rng, num_rows=NUM_ROWS):
    """The counts of a table of rows of the population, and its codes."""
    counts = rng.multinomial(num_rows, POPULATION.ravel())
    cells = np.repeat(np.arange(counts.size), counts)
    return counts.reshape(DOMAIN.sizes), np.stack(np.unravel_index(cells, DOMAIN.sizes), axis=1)


def asked(codes, *, method=None, domain=DOMAIN, schema=SCHEMA, model=None, **settings):
    """The questions that can be asked of a fit to these codes, with the system's noise."""
    curator = open_curator(Dataset(domain, codes), **{"seed": None, **settings})
    pipeline.ask(curator, replace(PrivPGD() if method is None else method, engine=MaximumEntropy()))
    release = pipeline.Release(
        domain=domain, ledger=curator.ledger, measurements=curator.measurements, model=model
    )
    return Questions(release, schema)


def _count(table, ward=slice(None), smokes=slice(None), age=slice(None), grade=slice(None)):
    for axis, own in enumerate((ward, smokes, age, grade)):
        table = np.take(table, np.atleast_1d(np.arange(table.shape[axis])[own]), axis=axis)
    return table.sum()


def _mean(table, power=1, **where):
    ages = np.arange(12)
    own = np.array([_count(table, **{**where, "age": age}) for age in ages])
    return (own * ages**power).sum() / own.sum()


def _quantile(table, q, **where):
    own = np.array([_count(table, **{**where, "age": age}) for age in range(12)])
    return int(np.searchsorted(own.cumsum(), q * own.sum() * (1 - 1e-12)))


OLD, YOUNG = slice(9, None), slice(0, 5)
QUESTIONS = {
    "a value": (("count", {"where": {"ward": "B"}}), lambda t: _count(t, ward=1)),
    "true": (("count", {"where": {"smokes": True}}), lambda t: _count(t, smokes=1)),
    "a range": (("count", {"where": {"age": Between(3, 7)}}), lambda t: _count(t, age=slice(3, 8))),
    "one number": (("count", {"where": {"age": 6}}), lambda t: _count(t, age=6)),
    "a list": (
        ("count", {"where": {"ward": ["A", "C"], "age": Between(high=4)}}),
        lambda t: _count(t, ward=[0, 2], age=YOUNG),
    ),
    "an open range": (
        ("count", {"where": {"smokes": True, "age": Between(9)}}),
        lambda t: _count(t, smokes=1, age=OLD),
    ),
    "a small cell": (
        ("count", {"where": {"ward": "D", "age": 7}}), lambda t: _count(t, ward=3, age=7)
    ),
    "ordered categories": (
        ("count", {"where": {"grade": Between(2), "ward": "A"}}),
        lambda t: _count(t, ward=0, grade=[1, 2]),
    ),
    "three columns": (
        ("count", {"where": {"ward": "A", "smokes": False, "grade": 1}}),
        lambda t: _count(t, ward=0, smokes=0, grade=0),
    ),
    "a share of all": (
        ("share", {"where": {"grade": 3}}), lambda t: _count(t, grade=2) / t.sum()
    ),
    "a share of two columns": (
        ("share", {"where": {"ward": "B", "grade": 2}}),
        lambda t: _count(t, ward=1, grade=1) / t.sum(),
    ),
    "a share among": (
        ("share", {"where": {"smokes": True}, "among": {"ward": "B"}}),
        lambda t: _count(t, ward=1, smokes=1) / _count(t, ward=1),
    ),
    "a share among a range": (
        ("share", {"where": {"grade": 3}, "among": {"age": Between(6, 11)}}),
        lambda t: _count(t, grade=2, age=slice(6, 12)) / _count(t, age=slice(6, 12)),
    ),
    "a share among few": (
        ("share", {"where": {"smokes": True, "grade": 2}, "among": {"ward": "D"}}),
        lambda t: _count(t, ward=3, smokes=1, grade=1) / _count(t, ward=3),
    ),
    "a mean": (("mean", {"of": "age"}), _mean),
    "a mean where": (
        ("mean", {"of": "age", "where": {"ward": "B"}}), lambda t: _mean(t, ward=1)
    ),
    "a mean of few": (
        ("mean", {"of": "age", "where": {"ward": "D"}}), lambda t: _mean(t, ward=3)
    ),
    "a sum": (
        ("sum", {"of": "age", "where": {"grade": 1}}),
        lambda t: _mean(t, grade=0) * _count(t, grade=0),
    ),
    "the median": (("quantile", {"of": "age", "q": 0.5}), lambda t: _quantile(t, 0.5)),
    "a quantile where": (
        ("quantile", {"of": "age", "q": 0.9, "where": {"smokes": True}}),
        lambda t: _quantile(t, 0.9, smokes=1),
    ),
}  # fmt: skip
"""Twenty questions, and their answers given the counts of all cells, or the expected counts."""

CONSERVATIVE = {"the median", "a quantile where"}
"""Their intervals end at cells, so they cover more often than they say."""
