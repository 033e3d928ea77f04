"""The toy of the coverage tests: two binary covariates, a logistic label, and all three pairs.

The label is drawn with log odds -0.5 + a, whatever b is, and b occurs more often with a.
"""

from dataclasses import replace

import numpy as np
from answers import open_curator
from small_engine import MaximumEntropy

from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.inference.questions import Questions
from sdv_privpgd.methods import pipeline
from sdv_privpgd.methods.privpgd import PrivPGD
from sdv_privpgd.privacy.dataset import Dataset

SCHEMA = Schema.from_sdv(
    {name: {"sdtype": "boolean", "range_is_nullable": False} for name in ("a", "b", "y")}
)
DOMAIN = SCHEMA.domain()
TRUTH = np.array([-0.5, 1.0, 0.0])
NUM_ROWS = 2_000
_CELLS = np.array([[1, 0, 0], [1, 0, 1], [1, 1, 0], [1, 1, 1]])


class Joints(MaximumEntropy):
    """Joint tables, rows of which are drawn many at a time."""

    def fit(self, domain, measurements, *, warm_start=None, progress=None):
        return replace(super().fit(domain, measurements, warm_start=warm_start), block=20_000)


def drawn(rng, num_rows=NUM_ROWS):
    """Codes of rows of the population."""
    a = rng.random(num_rows) < 0.5
    b = rng.random(num_rows) < 0.3 + 0.2 * a
    y = rng.random(num_rows) < 1 / (1 + np.exp(0.5 - a))
    return np.stack([a, b, y], axis=1).astype(np.int64)


def questions_of(codes, engine, *, epsilon=1.0):
    """What can be asked of a fit to these codes, by the real strategy and with the real noise."""
    curator = open_curator(Dataset(DOMAIN, codes), epsilon=epsilon, seed=None)
    pipeline.ask(curator, replace(PrivPGD(), engine=engine))
    release = pipeline.fit(pipeline.Answers.of(curator, engine), engine)
    return Questions(release, SCHEMA)


def logit(rows):
    """The coefficients of a logistic regression of y on a and b, and their covariance."""
    a, b, y = (np.asarray(rows[name]).astype(int) for name in ("a", "b", "y"))
    counts = np.bincount(2 * a + b, minlength=4)
    ill = np.bincount(2 * a + b, weights=y, minlength=4)
    found, square = np.zeros(3), np.eye(3)
    for _ in range(12):
        chance = 1 / (1 + np.exp(-_CELLS @ found))
        square = (_CELLS * (counts * chance * (1 - chance))[:, None]).T @ _CELLS
        found = found + np.linalg.solve(square, _CELLS.T @ (ill - counts * chance))
    return found, np.linalg.inv(square)


def effects(rows):
    """The coefficients alone."""
    return logit(rows)[0]
