"""What the ledger says, word for word: no planted fault in it goes unnoticed."""

import json
import math
import os
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from answers import charge_of

from sdv_privpgd.base.files import digest_of
from sdv_privpgd.privacy.accounting import epsilon_of, mu_squared_of, mu_squared_of_range
from sdv_privpgd.privacy.ledger import FitLedger, PrivacyBudgetError, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency

REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE
TENTH = Fraction(1, 10)

NOISE = charge_of(
    "Gaussian, rounded", "two tables", 2, 7, (4, 2), 8.0, Fraction(1, 16), Fraction(1, 10**9)
)
CHOICE = charge_of(
    "exponential", "a pair", 5, 1, (9, 4), 0.0, TENTH, Fraction(2, 10**9),
    temperature=Fraction(25, 2),
)  # fmt: skip
VALUES = charge_of(
    "Gaussian, rounded, over a threshold", "values", 1, 0, (2, 1), 20.0, Fraction(1, 200),
    Fraction(3, 10**9), threshold=91,
)  # fmt: skip


def ledger_of(*charges, **changes):
    facts = {"adjacency": REPLACE, "epsilon": 1.5, "delta": 1e-5, "budget": Fraction(1, 2)}
    return PrivacyLedger(charges=charges, **{**facts, **changes})


class TestPlainValues:
    ledger = ledger_of(NOISE, CHOICE, VALUES, reserved=Fraction(1, 10**6), rows_per_person=3)

    def test_of_a_ledger(self):
        plain = self.ledger.to_dict()
        assert plain.pop("digest") == digest_of(plain)
        assert len(plain.pop("charges")) == 3
        left = 1e-5 - 6e-9
        other = Fraction(2, 64) + mu_squared_of_range(Fraction(4 * 2, 25)) + Fraction(1, 400)
        assert plain == {
            "adjacency": "replace_one", "rows_per_person": 3, "people": None, "weighed": False,
            "rows_are_people": False, "weights": None, "units": 1, "epsilon": 1.5, "delta": 1e-5,
            "reserved_delta": "1/1000000", "budget_mu_squared": "1/2", "spent_mu_squared": "67/400",
            "spent_epsilon": {
                "replace_one": pytest.approx(epsilon_of(Fraction(67, 400), left), rel=1e-9),
                "add_remove": pytest.approx(epsilon_of(other, left), rel=1e-9),
            },
        }  # fmt: skip

    def test_of_noise_choices_and_values_over_a_threshold(self):
        names = (
            "mechanism", "what", "num_queries", "num_values", "sensitivity_squared", "stddev",
            "temperature", "threshold", "range_epsilon", "mu_squared", "share", "delta",
        )  # fmt: skip
        both = lambda *under: dict(zip(("replace_one", "add_remove"), under, strict=True))
        rows = (
            ("Gaussian, rounded", "two tables", 2, 7, both(4, 2), 8.0, None, None, both(0.0, 0.0),
             "1/16", 0.125, "1/1000000000"),
            ("exponential", "a pair", 5, 1, both(9, 4), 0.0, "25/2", None, both(0.48, 0.32),
             "1/10", 0.2, "1/500000000"),
        )  # fmt: skip
        *first, last = self.ledger.to_dict()["charges"]
        assert first == [dict(zip(names, row, strict=True)) for row in rows]
        assert (last["threshold"], last["num_values"]) == (91, 0)

    def test_as_text_they_are_the_same(self):
        plain = self.ledger.to_dict()
        assert self.ledger.to_json() == json.dumps(plain, indent=2)
        assert self.ledger.to_json(indent=None) == json.dumps(plain)


class TestRefusals:
    """Each message ends with what to do."""

    def test_of_a_charge_or_a_delta_that_is_too_large(self):
        with pytest.raises(PrivacyBudgetError) as refused:
            ledger_of(NOISE, budget=TENTH).record(CHOICE)
        assert str(refused.value) == (
            "exponential on a pair needs mu²=0.1, but 0.0375 of 0.1 is left. "
            "Ask for less or allow a larger epsilon."
        )
        with pytest.raises(PrivacyBudgetError) as refused:
            ledger_of().record(VALUES)
        assert str(refused.value) == (
            "Gaussian, rounded, over a threshold on values adds 3e-09 to delta, too much for "
            "delta=1e-05. Choose a larger delta."
        )

    def test_of_ledgers_that_are_unlike(self):
        with pytest.raises(ValueError, match="compose") as refused:
            ledger_of().followed_by(ledger_of(adjacency=ADD, rows_per_person=4))
        assert str(refused.value) == (
            "Ledgers compose only under one adjacency and one rows_per_person, got "
            "replace_one/1 and add_remove/4."
        )

    @pytest.mark.parametrize("reserved", [Fraction(-1, 10**9), Fraction(1e-5), Fraction(1, 2)])
    def test_of_what_is_reserved(self, reserved):
        said = rf"^reserved must lie in \[0, delta\), got {float(reserved)!r}\.$"
        with pytest.raises(ValueError, match=said):
            PrivacyLedger.open(1.0, 1e-5, REPLACE, reserved=reserved)


class TestReserves:
    """What is kept of delta for the events' own."""

    def test_reserves_have_the_rest_of_delta_and_of_two_fits_add_up(self):
        reserved = Fraction(1, 10**6)
        ledger = PrivacyLedger.open(1, Fraction(1, 10**5), ADD, 2, reserved=reserved)
        told = {"adjacency": ADD, "rows_per_person": 2, "epsilon": 1.0, "delta": 1e-5}
        budget = mu_squared_of(1.0, float(Fraction(9, 10**6)))
        assert ledger == PrivacyLedger(budget=budget, reserved=reserved, **told)
        assert isinstance(ledger.epsilon, float)
        assert isinstance(ledger.delta, float)
        ledger = ledger_of(reserved=Fraction(4, 10**9))
        little = Fraction(1e-5) / 2**60
        both = ledger.record(NOISE).record(replace(VALUES, delta=VALUES.delta + little))
        assert len(both.charges) == 2
        with pytest.raises(PrivacyBudgetError, match="larger delta"):
            ledger.record(NOISE).record(replace(VALUES, delta=VALUES.delta + little * 2))
        first = ledger_of(NOISE, reserved=Fraction(1, 10**6))
        second = ledger_of(VALUES, reserved=Fraction(2, 10**6), delta=2e-5, budget=Fraction(1, 4))
        both = first.followed_by(second)
        assert both == ledger_of(
            NOISE,
            VALUES,
            epsilon=epsilon_of(Fraction(3, 4), float(Fraction(2e-5) - Fraction(3, 10**6))),
            delta=2e-5,
            budget=Fraction(3, 4),
            reserved=Fraction(3, 10**6),
        )

    @pytest.mark.parametrize("second", [Fraction(1e-5) / 2, Fraction(1e-5)])
    def test_reserves_that_use_up_delta_leave_no_epsilon(self, second):
        both = ledger_of(reserved=Fraction(1e-5) / 2).followed_by(ledger_of(reserved=second))
        assert both.epsilon == math.inf


class TestCosts:
    """Of one event, under each adjacency."""

    def test_of_noise_choices_and_what_is_public(self):
        assert NOISE.mu_squared_under(REPLACE) == Fraction(1, 16)
        assert NOISE.mu_squared_under(ADD) == Fraction(1, 32)
        assert NOISE.range_epsilon_under(REPLACE) == 0
        assert not NOISE.is_exact
        assert CHOICE.range_epsilon_under(REPLACE) == Fraction(12, 25)
        assert CHOICE.range_epsilon_under(ADD) == Fraction(8, 25)
        assert CHOICE.mu_squared_under(ADD) == mu_squared_of_range(Fraction(8, 25))
        assert not CHOICE.is_exact
        exact = replace(NOISE, stddev=0.0)
        assert exact.is_exact
        assert exact.mu_squared_under(REPLACE) == exact.mu_squared_under(ADD) == 0
        assert ledger_of(NOISE, exact, CHOICE).exact_releases == (exact,)


def test_numbers_stay_exact_where_nothing_is_spent_and_where_they_come_from_numpy():
    ledger = PrivacyLedger.open(1.0, 1e-5, REPLACE, np.int64(3))
    assert type(ledger.rows_per_person) is int
    assert ledger.rows_per_person == 3
    assert isinstance(ledger.mu_squared, Fraction)
    assert ledger.mu_squared == 0


@pytest.mark.fresh_noise
def test_ledgers_begin_with_a_ledger_and_draw_from_the_operating_system():
    begun = ledger_of(NOISE, reserved=Fraction(1, 10**6))
    shared = FitLedger(begun)
    assert shared.ledger is begun
    assert shared.words is os.urandom
    assert FitLedger(begun, words=bytes).words is bytes
    shared.charge(CHOICE)
    assert shared.ledger == replace(begun, charges=(NOISE, CHOICE))
    with pytest.raises(PrivacyBudgetError):
        shared.charge(replace(CHOICE, mu_squared=Fraction(1)))
    assert shared.ledger.charges == (NOISE, CHOICE)
