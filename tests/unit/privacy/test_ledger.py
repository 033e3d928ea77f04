"""The ledger adds exactly, refuses what does not fit, and forgets nothing."""

import math
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction

import pytest
from answers import charge_of

from sdv_privpgd.cli.journal import after, check_spending, closed, rest
from sdv_privpgd.cli.messages import CommandError
from sdv_privpgd.fitting.resume import booked
from sdv_privpgd.privacy.accounting import epsilon_of, mu_squared_of
from sdv_privpgd.privacy.ledger import PrivacyBudgetError, PrivacyLedger, raised
from sdv_privpgd.privacy.ledger_file import epsilon_in_all
from sdv_privpgd.privacy.noise import SAMPLING_DELTA
from sdv_privpgd.privacy.queries import Adjacency

REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE


def charge(mu_squared, *, stddev=8.0, replace=2, add=1, delta=SAMPLING_DELTA, what="tables"):
    mechanism = "Gaussian, rounded" if stddev else "exact (public)"
    return charge_of(mechanism, what, 1, 6, (replace, add), stddev, mu_squared, delta)


@pytest.fixture
def ledger():
    return PrivacyLedger.open(1.0, 1e-5, REPLACE)


def test_budgets_add_up_exactly_and_not_beyond(ledger):
    assert ledger.mu_squared == 0
    assert ledger.remaining == ledger.budget == mu_squared_of(1.0, 1e-5)
    assert ledger.spent() == 0.0
    assert ledger.exact_releases == ()
    whole = ledger
    for _ in range(3):
        whole = whole.record(charge(ledger.budget / 3))
    assert whole.mu_squared == whole.budget
    assert whole.remaining == 0
    assert isinstance(whole.remaining, Fraction)
    assert whole.spent() == pytest.approx(1.0, rel=1e-9)
    assert whole.spent() <= 1.0
    half = ledger.record(charge(ledger.budget / 2))
    before = half.to_dict()
    with pytest.raises(PrivacyBudgetError, match=r"needs mu² *=.*left"):
        # Over by one part in 10^60: floats would not see it.
        half.record(charge(ledger.budget / 2 + Fraction(1, 10**60)))
    assert half.to_dict() == before
    half.record(charge(ledger.budget / 2))
    later = ledger.record(charge(ledger.budget))
    assert ledger.charges == ()
    assert len(later.charges) == 1
    with pytest.raises(FrozenInstanceError):
        ledger.budget = Fraction(10)


def test_the_other_adjacency_is_summed_event_by_event(ledger):
    # Costs under add/remove, 1/8^2 and 3/4^2, do not follow from the charges under replace-one.
    ledger = ledger.record(charge(ledger.budget / 3, stddev=8.0, replace=2, add=1))
    ledger = ledger.record(charge(ledger.budget / 3, stddev=40.0, replace=6, add=3))
    other = Fraction(1, 64) + Fraction(3, 1600)
    assert ledger.spent(adjacency=ADD) == pytest.approx(epsilon_of(other, 1e-5), rel=1e-12)
    assert ledger.spent(adjacency="add_remove") == ledger.spent(adjacency=ADD)
    assert ledger.spent(adjacency=REPLACE) == ledger.spent()
    assert ledger.spent() == pytest.approx(epsilon_of(ledger.budget * 2 / 3, 1e-5), rel=1e-12)


@pytest.mark.parametrize(("epsilon", "other"), [(0.2, 0.137), (1.0, 0.684), (2.5, 1.697)])
def test_replace_one_costs_root_two_of_add_remove(epsilon, other):
    ledger = PrivacyLedger.open(epsilon, 1e-5, REPLACE)
    stddev = math.sqrt(2 / ledger.budget)
    ledger = ledger.record(charge(ledger.budget, stddev=stddev))
    # The notes' table (privacy.md section 7), three digits.
    assert ledger.spent(adjacency=ADD) == pytest.approx(other, abs=6e-4)


def test_an_exact_release_is_free_and_is_named_as_the_condition(ledger):
    ledger = ledger.record(charge(0, stddev=0.0, replace=0, add=1, delta=0, what="number of rows"))
    ledger = ledger.record(charge(ledger.budget))
    assert [event.what for event in ledger.exact_releases] == ["number of rows"]
    assert ledger.exact_releases[0].mu_squared_under(ADD) == 0
    assert ledger.spent(adjacency=ADD) == pytest.approx(
        epsilon_of(Fraction(1, 64), 1e-5), rel=1e-12
    )


def test_deltas_of_events_are_taken_from_delta(ledger):
    half = replace(ledger, charges=(charge(ledger.budget, delta=Fraction(1e-5) / 2),))
    assert half.spent() == pytest.approx(epsilon_of(ledger.budget, 5e-6), rel=1e-12)
    assert half.spent() > 1.0


@pytest.mark.parametrize("factor", [1, 2])
def test_epsilon_is_infinite_where_the_events_use_up_delta(ledger, factor):
    broken = replace(ledger, charges=(charge(ledger.budget, delta=factor * Fraction(1e-5)),))
    assert broken.spent() == math.inf
    assert broken.spent(delta=3e-5) < math.inf


def test_delta_that_events_would_use_up_is_refused(ledger):
    small = PrivacyLedger.open(1.0, 1e-300, REPLACE)
    with pytest.raises(PrivacyBudgetError, match="larger delta"):
        small.record(charge(small.budget))
    allowed = PrivacyLedger.open(1.0, 1e-20, REPLACE)
    assert allowed.record(charge(allowed.budget)).spent() <= 1.0
    most = Fraction(1e-5) / 2**60
    ledger = ledger.record(charge(0, delta=most))
    with pytest.raises(PrivacyBudgetError, match="larger delta"):
        ledger.record(charge(0, delta=SAMPLING_DELTA))


def test_fits_compose_by_adding_budgets_and_keeping_all_charges(ledger):
    first = ledger.record(charge(ledger.budget, what="first"))
    second = PrivacyLedger.open(1.0, 1e-6, REPLACE)
    second = second.record(charge(second.budget, what="second"))
    both = first.followed_by(second)
    assert both.budget == first.budget + second.budget
    assert both.mu_squared == first.mu_squared + second.mu_squared
    assert [event.what for event in both.charges] == ["first", "second"]
    assert both.delta == 1e-5
    assert both.epsilon == pytest.approx(epsilon_of(both.budget, 1e-5), rel=1e-12)
    assert both.spent() == pytest.approx(both.epsilon, rel=1e-9)
    assert 1.0 < both.epsilon < 2.0  # better than adding epsilons
    # privacy.md section 5: ten refits at (2.5, 1e-5) compose to epsilon 9.60.
    one = PrivacyLedger.open(2.5, 1e-5, REPLACE)
    total = one
    for _ in range(9):
        total = total.followed_by(one)
    assert total.epsilon == pytest.approx(9.60, abs=0.005)


@pytest.mark.parametrize(
    "other",
    [PrivacyLedger.open(1.0, 1e-5, ADD), PrivacyLedger.open(1.0, 1e-5, REPLACE, rows_per_person=2)],
)
def test_unlike_ledgers_do_not_compose(ledger, other):
    with pytest.raises(ValueError, match="compose only"):
        ledger.followed_by(other)


@pytest.mark.parametrize("rows", [0, -1, 1.5, True, "1"])
def test_a_group_that_is_no_positive_whole_number_is_refused(rows):
    # 0 would make every sensitivity 0, and every answer exact.
    said = f"^rows_per_person must be an integer of at least 1, got {rows!r}.$"
    with pytest.raises(ValueError, match=said):
        PrivacyLedger.open(1.0, 1e-5, REPLACE, rows_per_person=rows)


def test_opening_checks_epsilon_and_delta():
    with pytest.raises(ValueError, match="epsilon"):
        PrivacyLedger.open(0, 1e-5, REPLACE)
    with pytest.raises(ValueError, match="delta"):
        PrivacyLedger.open(1.0, 0, REPLACE)


@pytest.mark.parametrize("name", ["bounded", "", None])
def test_an_unknown_adjacency_is_refused(ledger, name):
    with pytest.raises(ValueError, match="replace_one"):
        Adjacency(name)


MILLIONTHS = [(0, 0), (4, 0), (0, 3), (3, 2), (1, 4), (4, 5), (5, 5), (7, 7)]
"""Parts of delta that two fits reserve, of 8 and 10."""


def opened(part, epsilon=1.0, delta=1e-5):
    return PrivacyLedger.open(epsilon, delta, REPLACE, reserved=Fraction(part, 10**6))


def used(ledger, share=Fraction(1)):
    """The ledger with so much of its budget spent, and as much of the delta that it reserves."""
    mu_squared = ledger.budget * share
    told = ("Gaussian, rounded, over a threshold", "values", 1, 0, (2, 1))
    costs = math.sqrt(2 / mu_squared), mu_squared, ledger.reserved * share
    event = charge_of(*told, *costs, threshold=9)
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
    other = replace(begun, people="who")  # the ledger of another fit, before it goes on
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


@pytest.mark.parametrize(("family", "said"), [((), (3, 5)), (("homes", "people"), (3, 12))])
def test_a_family_that_is_replaced_may_take_another_with_it(family, said):
    ledger = PrivacyLedger.open(1.0, 1e-5, ADD, 2, people="home", weighed=True, family=family)
    whole = (ledger.rows_counted * ledger.units) ** 2
    squares = ledger.squares(lambda each: {ADD: 3, REPLACE: 5}[each])
    assert (squares[ADD], squares[REPLACE]) == tuple(whole * each for each in said)
