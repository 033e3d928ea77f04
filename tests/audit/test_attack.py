"""The bounds of the audit: below the claim as often as they say, and close to it."""

import math

import numpy as np
import pytest

from sdv_privpgd import Categorical, People
from sdv_privpgd.audit import audit_fit
from sdv_privpgd.audit.attack import Attack, attacked
from sdv_privpgd.audit.noise import moments
from sdv_privpgd.fitting.options import parse_options

COLUMNS = {name: Categorical(list("ABCDEFGHIJ")) for name in ("ward", "job", "town")}
MU = 0.268


def simulated(mu, number, seed, people=1):
    here, there = np.random.default_rng(seed).normal(size=(2, number))
    return Attack(claim=MU, without=here, within=there + mu, people=people)


@pytest.mark.parametrize("bound", ["lower_bound", "counted_bound"])
def test_a_bound_is_exceeded_as_rarely_as_it_says(bound):
    audits = [simulated(MU, 1_000, seed) for seed in range(2_000)]
    above = sum(getattr(audit, bound)(0.95) > MU for audit in audits)
    # Of 2,000 at 5 %: 100 with a standard error of 9.7; five of those are 149.
    assert above <= 149
    if bound == "lower_bound":
        assert above >= 51  # it is no wider than it needs to be


def test_a_right_configuration_is_hardly_ever_called_wrong():
    audits = [simulated(MU, 1_000, seed) for seed in range(2_000)]
    assert sum(audit.lower_bound(1 - 1e-5) > MU for audit in audits) <= 1


@pytest.mark.parametrize("people", [1, 4])
def test_the_bounds_are_as_near_as_theory_says(people):
    """The notes' figures for 10,000 runs: 0.244 by the normal law and 0.218 by counting."""
    audits = [simulated(MU, 10_000, seed, people) for seed in range(100)]
    normal = np.mean([audit.lower_bound(0.95) for audit in audits])
    counted = np.mean([audit.counted_bound(0.95) for audit in audits])
    assert normal == pytest.approx(0.244, abs=0.006)  # four standard errors of 0.0014
    assert counted == pytest.approx(0.218, abs=0.01)


def test_so_many_comparisons_can_show_no_more():
    apart = Attack(without=np.zeros(1_000), within=np.ones(1_000), claim=MU)
    assert apart.counted_bound(0.95) == apart.ceiling(0.95)
    assert simulated(0, 1_000, 0).ceiling(0.95) == pytest.approx(5.4, abs=0.05)  # the notes'


def test_noise_that_is_known_is_no_noise():
    constant = np.zeros(100)
    attack = Attack(without=constant, within=constant + 0.1, claim=MU)
    assert attack.lower_bound(0.95) == math.inf
    people = np.tile([0.0, 5.0, -3.0], 40)  # another constant for each person
    attack = Attack(claim=MU, without=people, within=people + 0.1, people=3)
    assert attack.lower_bound(0.95) == math.inf


@pytest.mark.parametrize("stddev", [0.3, 1.0, 4.0, 49.0])
def test_the_moments_are_those_of_rounded_draws(stddev):
    draws = np.rint(np.random.default_rng(0).normal(0, stddev, 1_000_000))
    second, fourth = moments(stddev)
    assert np.mean(draws**2) == pytest.approx(second, rel=0.02)
    assert np.mean(draws**4) == pytest.approx(fourth, rel=0.05)


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("rows", [1, 3])
def test_several_people_are_attacked_at_once_as_hard_as_one(adjacency, rows):
    told = {"method": "privpgd+pgm", "adjacency": adjacency, "delta": 1e-5}
    settings, description = parse_options(COLUMNS, 1.0, people=People(max_rows=rows), **told)
    attack = attacked(settings, description.attributes, runs=1_000)
    assert attack.people == (5 if adjacency == "replace_one" else 11)
    assert attack.claim == pytest.approx(MU, abs=0.001)
    # Two means of 5,000 scores or more; six standard errors.
    assert attack.estimate == pytest.approx(MU, abs=6 * math.sqrt(2 / attack.comparisons) + 0.005)


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings", [{}, {"adjacency": "add_remove", "delta": 1e-5, "people": People(max_rows=2)}]
)
def test_ten_thousand_runs_come_within_a_tenth_of_the_claim(settings):
    """At epsilon 1."""
    facts = audit_fit(COLUMNS, epsilon=1.0, false_alarms=1e-7, **settings).to_dict()
    assert facts["passed"]
    (attack,) = [each["facts"] for each in facts["checks"] if each["name"] == "attack"]
    # 50,000 comparisons: 0.96 of mu is expected, and 0.90 is nine standard errors below.
    assert attack["mu_lower_bound"] >= 0.9 * attack["mu_claimed"]
