"""However two ledgers become one, it says what both can have spent, with all of their deltas."""

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from sdv_privpgd.cli.journal import after, check_spending, closed, rest
from sdv_privpgd.cli.saying import CommandError
from sdv_privpgd.fitting.unfinished import booked
from sdv_privpgd.privacy.accounting import epsilon_of, mu_squared_of
from sdv_privpgd.privacy.ledger import Charge, PrivacyLedger, epsilon_in_all, raised
from sdv_privpgd.privacy.queries import Adjacency

REPLACE = Adjacency.REPLACE_ONE
MILLIONTHS = [(0, 0), (4, 0), (0, 3), (3, 2), (1, 4), (4, 5), (5, 5), (7, 7)]
"""Parts of delta that two fits reserve, of 8 and 10."""


def opened(part, epsilon=1.0, delta=1e-5):
    return PrivacyLedger.open(epsilon, delta, REPLACE, reserved=Fraction(part, 10**6))


def used(ledger, share=Fraction(1)):
    """The ledger with so much of its budget spent, and as much of the delta that it reserves."""
    mu_squared = ledger.budget * share
    event = Charge(
        mechanism="Gaussian, rounded, over a threshold",
        what="values",
        num_queries=1,
        num_values=0,
        sensitivity_squared=((REPLACE, 2), (Adjacency.ADD_REMOVE, 1)),
        stddev=math.sqrt(2 / mu_squared),
        mu_squared=mu_squared,
        delta=ledger.reserved * share,
        threshold=9,
    )
    return ledger.record(event)


def said_of(*ledgers, delta=1e-5):
    """By the definition, of all charges: mu^2 and deltas add up."""
    charges = [charge for ledger in ledgers for charge in ledger.charges]
    left = Fraction(delta) - sum(charge.delta for charge in charges)
    spent = sum((charge.mu_squared for charge in charges), Fraction(0))
    return epsilon_of(spent, float(left)) if left > 0 else math.inf


@pytest.mark.parametrize("parts", MILLIONTHS)
def test_of_two_fits_of_the_same_people(parts):
    fits = opened(parts[0], delta=8e-6), opened(parts[1])
    for one, other in (fits, fits[::-1]):
        first, second = used(one), used(other)
        both = first.followed_by(second)
        assert both.reserved == one.reserved + other.reserved
        assert both.delta == 1e-5
        assert both.epsilon == both.spent() == said_of(first, second)
        assert one.followed_by(other).epsilon == both.epsilon  # of what is planned
        assert epsilon_in_all([first, second]) == both.epsilon
        assert booked(first, other, second).epsilon == both.epsilon


@pytest.mark.parametrize("parts", MILLIONTHS)
@pytest.mark.parametrize("share", [Fraction(1, 4), Fraction(1)])
def test_of_a_command_after_a_fit_that_ended_with_less(parts, share):
    first, planned = used(opened(parts[0], delta=8e-6), share), opened(parts[1])
    together = after(closed(first), planned)
    assert together.budget == first.mu_squared + planned.budget
    assert together.reserved == first.reserved * share + planned.reserved
    expected = said_of(first, used(planned))
    assert together.epsilon == expected
    assert after(None, planned) is planned
    check_spending(first, planned, expected if expected < math.inf else None)
    if expected < math.inf:
        with pytest.raises(CommandError, match="would come to epsilon"):
            check_spending(first, planned, expected * (1 - 1e-9))


@pytest.mark.parametrize("part", [0, 4, 9])
@pytest.mark.parametrize("share", [Fraction(1, 4), Fraction(3, 4)])
def test_of_a_fit_that_goes_on(part, share):
    """What it has spent, and what is left to it, are no more than what it was opened with."""
    begun = used(opened(part), share)
    left = rest(begun)
    assert not left.charges
    assert left.budget == begun.budget * (1 - share)
    assert left.reserved == begun.reserved * (1 - share)
    assert said_of(begun, used(left)) == pytest.approx(begun.epsilon, rel=1e-9)
    assert left.epsilon == said_of(used(left))


@pytest.mark.parametrize("part", [0, 4, 9])
def test_of_a_fit_that_gets_more_budget(part):
    begun = used(opened(part))
    more = raised(begun, 0.5)
    assert (more.epsilon, more.delta, more.charges) == (1.5, 1e-5, begun.charges)
    left = float(Fraction(1e-5) - begun.reserved)
    assert more.budget == mu_squared_of(1.5, left)
    spent = replace(more, charges=(*begun.charges, *used(rest(more)).charges))
    assert 1.4999 < spent.spent() <= 1.5
    other = replace(begun, people="who")  # the books of another fit, before it goes on
    later = booked(other, begun=begun, now=spent)
    assert later.budget == more.budget
    assert later.charges == spent.charges
    assert later.epsilon == pytest.approx(1.5)


def test_what_cannot_be_added():
    whole = opened(9, delta=1e-5)
    with pytest.raises(ValueError, match=r"use up its delta=1e-05: nothing can be added"):
        raised(replace(whole, reserved=Fraction(1e-5)), 0.5)
    for wrong in (0.0, -1.0, math.inf):
        with pytest.raises(ValueError, match="epsilon"):
            raised(whole, wrong)


def test_of_several_tables_at_the_delta_that_is_asked_for():
    ledgers = [used(opened(part, epsilon)) for part, epsilon in ((1, 0.5), (2, 1.0), (3, 0.2))]
    assert epsilon_in_all(ledgers) == said_of(*ledgers)
    assert epsilon_in_all(ledgers, 1e-3) == said_of(*ledgers, delta=1e-3)
    assert epsilon_in_all(ledgers, 6e-6) == said_of(*ledgers, delta=6e-6)
    assert epsilon_in_all([]) == 0.0
    whole = replace(opened(0), reserved=Fraction(1e-5))  # and all of delta with it
    assert epsilon_in_all([used(whole)]) == math.inf
    with pytest.raises(ValueError, match="delta"):
        epsilon_in_all(ledgers, 0.0)
