"""The benchmarks' distances between tables, against brute force on the rows themselves."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import wasserstein_distance

from sdv_privpgd.benchmark.errors import covariance_error, mean_l1, mean_sw1
from sdv_privpgd.domain import Domain

DOMAIN = Domain(("a", "b", "c"), (2, 3, 5))
PAIRS = list(combinations(range(3), 2))


@pytest.fixture
def tables():
    """Two tables of different lengths and distributions."""
    rng = np.random.default_rng(0)
    uniform = rng.integers(0, DOMAIN.sizes, (60, 3))
    skewed = np.floor(rng.random((85, 3)) ** 2 * DOMAIN.sizes).astype(np.uint8)
    return uniform, skewed


def test_l1_is_that_of_counting_rows(tables):
    real, synthetic = tables
    distances = []
    for i, j in PAIRS:
        rows = [[(row[i], row[j]) for row in table.tolist()] for table in tables]
        cells = set(rows[0]) | set(rows[1])
        distances.append(
            sum(
                abs(rows[0].count(c) / len(real) - rows[1].count(c) / len(synthetic)) for c in cells
            )
        )
    assert mean_l1(DOMAIN, real, synthetic) == pytest.approx(np.mean(distances), rel=1e-12)


def test_l1_runs_from_0_to_2():
    zeros, ones = np.zeros((4, 3), dtype=int), np.ones((9, 3), dtype=int)
    assert mean_l1(DOMAIN, zeros, np.zeros((7, 3), dtype=int)) == 0
    assert mean_l1(DOMAIN, zeros, ones) == pytest.approx(2)


def test_sw1_is_that_of_scipy_on_the_embedded_rows(tables):
    real, synthetic = (
        (2 * table.astype(float) + 1) / (2 * np.array(DOMAIN.sizes)) for table in tables
    )
    generator = np.random.default_rng(3)  # the directions are drawn as documented
    distances = []
    for pair in PAIRS:
        directions = generator.standard_normal((20, 2))
        for direction in directions:
            theta = direction / np.linalg.norm(direction)
            projected = real[:, pair] @ theta, synthetic[:, pair] @ theta
            distances.append(wasserstein_distance(*projected))
    found = mean_sw1(DOMAIN, *tables, num_slices=20, seed=3)
    assert found == pytest.approx(np.mean(distances), rel=1e-9)


def test_sw1_of_a_shift_is_the_mean_of_its_projections():
    """Moved by (1/2, 0, 0): E |cos| / 2 = 1/pi for 2 pairs, 0 for the third."""
    zeros = np.zeros((5, 3), dtype=int)
    moved = zeros + [1, 0, 0]
    found = mean_sw1(DOMAIN, zeros, moved, num_slices=100_000)
    # |cos| has standard deviation 0.31: 5 standard errors of 2/3 of half of it are 0.001.
    assert found == pytest.approx(2 / 3 / np.pi, abs=1.1e-3)


def test_covariance_error_is_that_of_sums_over_rows(tables):
    covariances = []
    for table in tables:
        rows = [
            [(2 * code + 1) / (2 * k) for code, k in zip(row, DOMAIN.sizes, strict=True)]
            for row in table.tolist()
        ]
        means = [sum(row[i] for row in rows) / len(rows) for i in range(3)]
        covariances.append(
            [
                [
                    sum((row[i] - means[i]) * (row[j] - means[j]) for row in rows) / (len(rows) - 1)
                    for j in range(3)
                ]
                for i in range(3)
            ]
        )
    ours, theirs = np.array(covariances)
    expected = np.sqrt(((ours - theirs) ** 2).sum() / (ours**2).sum())
    assert covariance_error(DOMAIN, *tables) == pytest.approx(expected, rel=1e-9)
