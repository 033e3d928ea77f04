"""What a threshold adds to delta, against its definition in 60 digits."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import mpmath
import pytest

from sdv_privpgd.privacy import thresholding
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.privacy.thresholding import threshold_for, thresholded_delta

REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE
SHAPES = [(1, 1), (14, 1), (3, 5)]


def shared(adjacency, rows=1, **whose):
    return PrivacyLedger.open(1.0, 1e-5, adjacency, rows, **whose)


def chance_by_definition(stddev, threshold, columns, rows):
    """K R P(N >= T - R - 1/2)."""
    with mpmath.workdps(60):
        beyond = mpmath.ncdf(-(mpmath.mpf(threshold) - rows - mpmath.mpf(1) / 2) / stddev)
        return Fraction(str(beyond * columns * rows))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("stddev", [0.5, 7.3, 250.0])
@pytest.mark.parametrize("sigmas", [2.0, 5.0, 9.0])
def test_delta_is_its_bound_and_hardly_more(sigmas, stddev, shape):
    threshold = round(shape[1] + sigmas * stddev) + 1
    chance = chance_by_definition(stddev, threshold, *shape)
    for adjacency, delta in ((ADD, chance), (REPLACE, chance + chance / (1 - chance))):
        columns, rows = shape
        found = thresholded_delta(stddev, threshold, columns, shared(adjacency, rows))
        if chance >= Fraction(1, 2):
            assert found == 1
        else:
            assert delta <= found <= delta * (1 + Fraction(1, 2**36))


def test_two_families_may_go_where_one_is_replaced():
    """Both may be all that a value has: it has twice the rows, and twice the units."""
    ledger = replace(shared(ADD, 3), people="key", weighed=True, family=("homes", "people"))
    for adjacency, gone in ((ADD, 1), (REPLACE, 2)):
        chance = chance_by_definition(50.0, 300 + gone * (3 - ledger.units), 4, gone * 3)
        delta = chance + (gone - 1) * chance / (1 - chance)
        found = thresholded_delta(50.0, 300, 4, replace(ledger, adjacency=adjacency))
        assert delta <= found <= delta * (1 + Fraction(1, 2**36))


@pytest.mark.parametrize("adjacency", Adjacency)
def test_deltas_of_one_a_half_and_exactly_the_reserve_are_decided_alike(adjacency, monkeypatch):
    one, three = shared(adjacency), shared(adjacency, 3)
    assert thresholded_delta(1.0, 2, 1, one) < 1  # a chance of 0.31
    assert thresholded_delta(1.0, 2, 2, one) == 1  # twice that
    assert thresholded_delta(10.0, -50, 1, one) == 1
    delta = thresholded_delta(7.3, 40, 3, three)
    assert threshold_for(7.3, delta, 3, three) == 40
    in_units = replace(three, people="who", weighed=True)  # one is 6 units
    assert thresholded_delta(7.3, 43, 3, in_units) == delta
    assert threshold_for(7.3, delta, 3, in_units) == 43
    monkeypatch.setattr(thresholding, "_RELATIVE_ERROR", 0.0)
    monkeypatch.setattr(thresholding, "erfc", lambda x: 0.5)
    assert thresholded_delta(1.0, 3, 2, one) == 1
    assert thresholded_delta(1.0, 3, 1, shared(ADD)) == Fraction(1, 4)


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("stddev", [0.5, 7.3, 250.0])
@pytest.mark.parametrize(
    "delta", [Fraction(1e-12), Fraction(1e-6), Fraction(1, 10), Fraction(1, 2)]
)
def test_the_threshold_is_the_smallest_that_keeps_delta(delta, stddev, shape, adjacency):
    columns, ledger = shape[0], shared(adjacency, shape[1])
    threshold = threshold_for(stddev, delta, columns, ledger)
    assert thresholded_delta(stddev, threshold, columns, ledger) <= delta
    assert thresholded_delta(stddev, threshold - 1, columns, ledger) > delta


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_search_begins_where_it_ends(shape, adjacency, monkeypatch):
    """Else it would take as long as the noise is large."""
    tried, (columns, rows) = [], shape
    plain = shared(adjacency, rows)

    def counted(stddev, threshold, *shape):
        tried.append(threshold)
        return thresholded_delta(stddev, threshold, *shape)

    monkeypatch.setattr(thresholding, "thresholded_delta", counted)
    in_units = replace(plain, people="who", weighed=True)
    for stddev, ledger in product((0.5, 7.3, 1e4, 2.0**40), (plain, in_units)):
        tried.clear()
        assert threshold_for(stddev, Fraction(1e-9), columns, ledger) == tried[-1]
        assert len(tried) <= (3 if stddev < 1e5 else 2_000)
