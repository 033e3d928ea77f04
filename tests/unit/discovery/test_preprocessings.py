"""PrivTree and the merging of rare categories: what they find, and what they spend."""

import math

import numpy as np
import pytest
from answers import open_curator

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.benchmark.methods import MANY, RARE, cut_by_privtree, merge_rare
from sdv_privpgd.privacy import curator as curating
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.queries import Adjacency


def two_numbers(num_rows=40_000, spread=1.0):
    """Codes of which the first attribute has most low, the second evenly; the last is missing."""
    rng = np.random.default_rng(1)
    low = np.minimum(rng.exponential(20 * spread, num_rows), 256).astype(np.int64)
    return Dataset(
        Domain(("low", "even"), (257, 65)), np.stack([low, rng.integers(0, 65, num_rows)], axis=1)
    )


def test_a_tree_is_finer_where_rows_are_and_costs_what_it_may():
    curator = open_curator(two_numbers(), epsilon=2.0)
    share = curator.ledger.budget / 5
    found = cut_by_privtree(curator, {"low": 256, "even": 64}, share)
    widths = {name: np.bincount(merging.codes) for name, merging in found.items()}
    assert {name: each.sum() for name, each in widths.items()} == {"low": 256, "even": 64}
    codes = found["low"].codes
    assert codes[31] > 15 > codes[-1] - codes[128]  # nearly all rows are in the first 100 cells
    assert widths["even"].max() <= 2 * widths["even"].min()
    for merging in found.values():
        assert set(np.diff(merging.codes)) <= {0, 1}
    assert [charge.what for charge in curator.ledger.charges] == [
        "where to cut low", "where to cut even"
    ]  # fmt: skip
    assert curator.ledger.mu_squared == share


def categories(number=MANY):
    rng = np.random.default_rng(0)
    often = rng.choice(number, 20_000, p=np.arange(1, number + 1) / (number * (number + 1) / 2))
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
    for choice in (0, 1):
        monkeypatch.setattr(curating, "exponential_choice", lambda *_, choice=choice: choice)
        seen = []
        for table in (two_numbers(500), two_numbers(500, spread=9.0)):
            curator = open_curator(table, adjacency=adjacency)
            tree = cut_by_privtree(curator, {"low": 256, "even": 64}, curator.ledger.budget / 2)
            merged = merge_rare(curator, {"low": 256}, curator.ledger.remaining)
            seen.append(repr((tree, merged, curator.ledger.to_json())))
        assert seen[0] == seen[1]
        assert len(tree["low"]) == (256 if choice else 1)
