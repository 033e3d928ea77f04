"""The merging of rare categories: what it finds, and what it spends."""

import math

import numpy as np
import pytest
from answers import open_curator

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.benchmark.methods import MANY, RARE, merge_rare
from sdv_privpgd.privacy import curator as curating
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.queries import Adjacency


def categories(number=MANY, leans=1):
    weights = np.arange(1, number + 1) ** float(leans)
    often = np.random.default_rng(0).choice(number, 20_000, p=weights / weights.sum())
    return Dataset(Domain(("job", "ill"), (number + 1, 2)), np.stack([often, often % 2], axis=1))


@pytest.mark.parametrize("epsilon", [0.05, 100.0])
def test_categories_below_either_threshold_share_the_last_code(epsilon):
    table = categories()
    curator = open_curator(table, epsilon=epsilon)
    merging = merge_rare(curator, {"job": MANY, "ill": 2}, curator.ledger.budget)["job"]
    (measured,) = curator.measurements
    counts = measured.answer[:MANY]
    least = max(float(RARE) * counts.sum(), 3 * measured.stddev)
    assert bool(least == 3 * measured.stddev) is (epsilon < 1)
    codes = np.array(merging.codes)
    assert (codes[counts < least] == len(merging) - 1).all()
    kept = codes[counts >= least]
    assert kept.tolist() == list(range(len(kept)))
    assert len(merging) == len(kept) + 1
    assert math.isclose(curator.ledger.spent(), epsilon, rel_tol=1e-6)


def test_categories_may_all_be_rare_or_kept_and_few_are_not_asked_for(monkeypatch):
    for count, size in ((0, 1), (500, MANY)):
        monkeypatch.setattr(
            curating, "_noisy", lambda answer, *_, count=count: np.full(answer.shape, count)
        )
        curator = open_curator(categories())
        merging = merge_rare(curator, {"job": MANY}, curator.ledger.budget)["job"]
        assert len(merging) == size
    curator = open_curator(categories(MANY - 1))
    assert merge_rare(curator, {"job": MANY - 1, "ill": 2}, curator.ledger.budget) == {}
    assert not curator.ledger.charges


@pytest.mark.parametrize("adjacency", Adjacency)
def test_what_is_found_depends_on_the_answers_alone(adjacency, monkeypatch):
    """Byte by byte the same for other tables of as many rows, with the same noisy answers."""
    monkeypatch.setattr(
        curating, "_noisy", lambda answer, *_: np.arange(answer.size).reshape(answer.shape) * 9
    )
    seen = []
    for table in (categories(), categories(leans=3)):
        curator = open_curator(table, adjacency=adjacency)
        merged = merge_rare(curator, {"job": MANY}, curator.ledger.remaining)
        seen.append(repr((merged, curator.ledger.to_json())))
    assert seen[0] == seen[1]
