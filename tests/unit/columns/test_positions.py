"""Positions in cells that follow the other columns: how much, and what stays as it is."""

from dataclasses import replace

import numpy as np
import pytest

from sdv_privpgd.columns.bins import Categories, Reals, Ticks
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.positions import coupled

ROWS = 5_000
WIDE = Column(name="x", sdtype="numerical", cells=Reals(-4.0, 4.0, 4))
WHOLE = Column(name="y", sdtype="numerical", cells=Ticks(-400, 400, 5), nullable=False)
WORDS = Column(name="z", sdtype="categorical", cells=Categories(("a", "b")))
COLUMNS = WIDE, WORDS, WHOLE


def rows(correlation):
    """Codes of two numbers and of a category, positions drawn apart, and a generator."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(ROWS)
    y = correlation * x + np.sqrt(1 - correlation**2) * rng.standard_normal(ROWS)
    codes = np.column_stack(
        [WIDE.locate(x)[0], rng.integers(0, 2, ROWS), WHOLE.locate((100 * y).astype(np.int64))[0]]
    )
    codes[:50, 0] = WIDE.num_values  # missing
    return codes, rng.random(codes.shape), rng


def correlation_of(codes, positions):
    held = codes[:, 0] < WIDE.num_values
    both = [c.at(codes[held, k], positions[held, k]) for k, c in ((0, WIDE), (2, WHOLE))]
    return np.corrcoef(*both)[0, 1]


@pytest.mark.parametrize(
    ("correlation", "least"), [(0.99, 0.75), (-0.99, 0.75), (0.6, 0.5), (0, 0)]
)
def test_numbers_are_nearly_as_dependent_as_they_were(correlation, least):
    codes, positions, rng = rows(correlation)
    apart = correlation_of(codes, positions)
    found = correlation_of(codes, coupled(COLUMNS, codes, positions, rng))
    if not correlation:
        assert abs(found - apart) < 4 / np.sqrt(ROWS)
        return
    assert abs(apart) < least <= abs(found) <= abs(correlation) + 0.01
    assert np.sign(found) == np.sign(correlation)


def test_each_code_keeps_its_positions_and_categories_keep_theirs():
    codes, positions, rng = rows(0.9)
    found = coupled(COLUMNS, codes, positions, rng)
    np.testing.assert_array_equal(found[:, 1], positions[:, 1])
    for axis in (0, 2):
        for code in np.unique(codes[:, axis]):
            own = codes[:, axis] == code
            np.testing.assert_array_equal(np.sort(found[own, axis]), np.sort(positions[own, axis]))


@pytest.mark.parametrize("columns", [(WIDE, WORDS), (WORDS,), ()])
def test_without_two_numbers_nothing_changes(columns):
    codes, positions, rng = rows(0.9)
    own = positions[:, : len(columns)]
    assert coupled(columns, codes[:, : len(columns)], own, rng) is own


@pytest.mark.parametrize("code", [WIDE.num_values, 1])
@pytest.mark.parametrize("end", [4.0, 8e307])
def test_missing_numbers_a_single_code_and_the_largest_numbers_are_no_trouble(code, end):
    codes, positions, rng = rows(0.9)
    codes[:, 0] = code
    wide = replace(WIDE, cells=Reals(-end, end, 4))
    found = coupled((wide, WORDS, WHOLE), codes, positions, rng)
    assert ((found >= 0) & (found < 1)).all()
