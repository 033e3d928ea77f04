"""Adaptive has equal rounds of several marginals, and a model between them."""

from dataclasses import replace
from fractions import Fraction

import pytest
from answers import open_curator
from selecting import HUGE, Limited, chain, cliques_of, dependence
from small_engine import MaximumEntropy

from sdv_privpgd.methods import pipeline
from sdv_privpgd.methods.adaptive import Adaptive


def test_rounds_are_equal_and_a_tenth_of_each_pays_for_its_choices():
    curator, engine = open_curator(chain()), MaximumEntropy()
    release = pipeline.run(curator, replace(Adaptive(rounds=3, marginals=2), engine=engine))
    spent = [charge for charge in release.ledger.charges if charge.mu_squared]
    shares = [charge.mu_squared / release.ledger.budget for charge in spent]
    assert shares == [Fraction(1, 60), Fraction(1, 60), Fraction(3, 10)] * 3
    assert [charge.num_queries for charge in spent] == [10, 9, 2, 8, 7, 2, 6, 5, 2]
    # The first of the strategy's two fits has nothing to start from; nor has the release's.
    assert engine.fits == [False, True, False]


def test_no_marginal_is_measured_twice_and_rounds_end_with_the_cliques():
    for strategy, number in (
        (Adaptive(), 10),
        (Adaptive(marginals=4, rounds=2), 8),
        (Adaptive(marginals=20), 10),
        (Adaptive(workload=(("a", "b"), ("c", "d"))), 2),
    ):
        measured = cliques_of(strategy.run(open_curator(chain(100)), MaximumEntropy()))
        assert len(measured) == len(set(measured)) == number


def test_with_a_huge_budget_it_measures_what_depends_most():
    table = chain()
    measured = cliques_of(
        Adaptive(rounds=4, marginals=1).run(open_curator(table, epsilon=HUGE), MaximumEntropy())
    )
    strongest = sorted(
        table.domain.cliques(2), key=lambda pair: dependence(table, pair), reverse=True
    )
    assert measured[0] == strongest[0]
    # a and c depend on each other through b alone, which the model knows by then.
    assert set(measured[1:]) & {("a", "c")} == set()


def test_the_model_grows_with_the_rounds():
    strategy = Adaptive(rounds=4, marginals=1, max_megabytes=4.0)
    measured = cliques_of(strategy.run(open_curator(chain(), epsilon=HUGE), Limited()))
    assert len(set(measured)) == 4


@pytest.mark.parametrize("name", ["rounds", "marginals"])
def test_settings_without_a_round_are_refused(name):
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
        replace(Adaptive(), **{name: 0})
