"""The curator's choices are charged first, and read the table once."""

import inspect
import json
import math
import random
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from answers import SpyDataset, open_curator

from sdv_privpgd.privacy.accounting import epsilon_of, mu_squared_of_range, range_epsilon_of
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.ledger import PrivacyBudgetError
from sdv_privpgd.privacy.noise import SAMPLING_DELTA
from sdv_privpgd.privacy.queries import Adjacency, MarginalQuery, ModelErrorQuery
from sdv_privpgd.report.privacy import privacy_report

REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE


def errors_of(domain, cliques=None, *, weight=1, bias=0):
    return [
        ModelErrorQuery(
            clique=clique,
            expected=np.zeros(domain.shape(clique), dtype=np.int64),
            bias=bias,
            weight=weight,
        )
        for clique in cliques or domain.cliques(2)
    ]


@pytest.fixture
def spy(domain, codes):
    table = SpyDataset(domain, codes)
    table.reads = 0
    table.curator = open_curator(table)
    return table


def test_the_charge_is_on_the_ledger_before_the_table_is_read(spy, domain):
    budget = spy.curator.ledger.budget
    assert spy.curator.select(errors_of(domain), budget / 3, what="a pair") in range(3)
    assert spy.reads == 1
    (charge,) = spy.curator.ledger.charges
    assert (charge.mechanism, charge.what, charge.num_queries) == ("exponential", "a pair", 3)
    assert charge.mu_squared == budget / 3
    assert charge.delta == SAMPLING_DELTA
    assert not charge.is_exact


def test_nothing_is_chosen_past_the_budget_and_a_single_score_is_free(spy, domain):
    assert spy.curator.select(errors_of(domain)[:1], Fraction(1), what="a pair") == 0
    assert (spy.reads, spy.curator.ledger.charges) == (0, ())
    budget = spy.curator.ledger.budget
    with pytest.raises(PrivacyBudgetError, match="left"):
        spy.curator.select(errors_of(domain), budget + Fraction(1, 10**40), what="a pair")
    with pytest.raises(ValueError, match="raise epsilon"):
        spy.curator.select(errors_of(domain), Fraction(1, 10**60), what="a pair")
    assert (spy.reads, spy.curator.ledger.charges) == (0, ())
    spy.curator.select(errors_of(domain), budget, what="a pair")
    assert spy.curator.ledger.remaining == 0


def test_bad_scores_cost_nothing_and_read_nothing(spy, domain):
    wrong = ModelErrorQuery(clique=("a", "b"), expected=np.zeros((3, 2), dtype=np.int64))
    unknown = ModelErrorQuery(clique=("x",), expected=np.zeros(3, dtype=np.int64))
    for scores, message in (
        ([], "empty"),
        ([*errors_of(domain), wrong], r"need shape \(2, 3\)"),
        ([unknown], "not in the domain"),
    ):
        with pytest.raises(ValueError, match=message):
            spy.curator.select(scores, Fraction(1, 100), what="a pair")
    assert (spy.reads, spy.curator.ledger.charges) == (0, ())


def test_a_clique_is_counted_once_for_all_choices(spy, domain):
    part = spy.curator.ledger.budget / 4
    for cliques, reads in (
        (domain.cliques(2), [3]),
        (domain.cliques(2), [3, 0]),
        ((*domain.cliques(1), *domain.cliques(2)), [3, 0, 3]),
    ):
        spy.curator.select(errors_of(domain, cliques), part, what="a clique")
        assert len(spy.curator._tables) == sum(reads)


def test_no_caller_can_name_a_temperature_or_a_seed(dataset, domain):
    """The seeds of others decide nothing: 30 choices of 3 are the same once in 3^29 times."""
    assert list(inspect.signature(Curator.select).parameters) == [
        "self", "scores", "mu_squared", "what"
    ]  # fmt: skip

    def choice():
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002
        curator = open_curator(dataset, seed=None)
        return curator.select(errors_of(domain), Fraction(1, 10**9), what="a pair")

    assert len({choice() for _ in range(30)}) > 1


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize(("weight", "rows"), [(1, 1), (3, 1), (1, 4), (5, 2)])
def test_the_temperature_grows_with_weight_rows_and_adjacency(dataset, adjacency, weight, rows):
    curator = open_curator(dataset, adjacency=adjacency, rows=rows)
    part = curator.ledger.budget / 10
    scores = errors_of(dataset.domain, weight=weight)
    curator.select([*errors_of(dataset.domain), *scores], part, what="a pair")
    (charge,) = curator.ledger.charges
    sensitivity = {REPLACE: 2 * weight * rows, ADD: weight * rows}
    assert dict(charge.sensitivity_squared) == {key: s**2 for key, s in sensitivity.items()}
    epsilon = range_epsilon_of(part)
    assert charge.range_epsilon_under(adjacency) == Fraction(epsilon)
    assert charge.temperature == 2 * sensitivity[adjacency] / Fraction(epsilon)


def test_a_choice_is_counted_under_the_other_adjacency_by_its_own_epsilon(dataset):
    curator = open_curator(dataset, epsilon=2.5)
    budget = curator.ledger.budget
    curator.select(errors_of(dataset.domain), budget / 2, what="a pair")
    curator.measure([MarginalQuery(("a",))], budget / 2, what="a")
    choice, noise = curator.ledger.charges
    half = range_epsilon_of(budget / 2) / 2  # add-remove: half the sensitivity, half the epsilon
    own = math.sqrt(mu_squared_of_range(choice.range_epsilon_under(REPLACE)))
    assert own == pytest.approx(math.sqrt(budget / 2), rel=1e-12)
    other = choice.mu_squared_under(ADD)
    with mpmath.workdps(60):  # mu = 2 Phi^-1(1 / (1 + exp(-epsilon / 2))) by its definition
        chance = 1 / (1 + mpmath.exp(-mpmath.mpf(half) / 2))
        exact = 2 * mpmath.sqrt(2) * mpmath.erfinv(2 * chance - 1)
        assert exact**2 <= mpmath.mpf(other.numerator) / other.denominator
    assert float(other) == pytest.approx(float(exact) ** 2, rel=1e-12)
    assert curator.ledger.spent(adjacency=ADD) == pytest.approx(
        epsilon_of(other + noise.mu_squared_under(ADD), 1e-5), rel=1e-12
    )
    assert curator.ledger.exact_releases == ()


def test_the_ledger_and_the_report_show_choices(dataset):
    curator = open_curator(dataset)
    part = curator.ledger.budget / 4
    for _ in range(2):
        curator.select(errors_of(dataset.domain), part, what="edge of a tree")
    curator.measure([MarginalQuery(("a",))], part, what="a table")
    book = json.loads(curator.ledger.to_json())
    choice, _, noise = book["charges"]
    (first, *_) = curator.ledger.charges
    assert Fraction(choice["temperature"]) == first.temperature
    assert choice["range_epsilon"] == {
        "replace_one": pytest.approx(range_epsilon_of(part)),
        "add_remove": pytest.approx(range_epsilon_of(part) / 2),
    }
    assert noise["temperature"] is None
    report = privacy_report(curator.ledger)
    assert "edge of a tree, 2 times" in report
    assert f"eps {range_epsilon_of(part):.3g}" in report
    assert "50 %" in report
    assert "range epsilon" in report
    plain = open_curator(dataset)
    plain.measure([MarginalQuery(("a",))], part, what="a table")
    assert "range epsilon" not in privacy_report(plain.ledger)


def test_with_a_huge_budget_the_largest_score_is_chosen(dataset, domain):
    true = [dataset.counts(clique) for clique in domain.cliques(2)]
    for worst in range(3):
        scores = [
            ModelErrorQuery(clique=clique, expected=counts + (3 if index == worst else 1))
            for index, (clique, counts) in enumerate(zip(domain.cliques(2), true, strict=True))
        ]
        values = [score.of_counts(counts) for score, counts in zip(scores, true, strict=True)]
        curator = open_curator(dataset, epsilon=1e4, seed=worst)
        chosen = curator.select(scores, curator.ledger.budget, what="a pair")
        assert chosen == int(np.argmax(values)) == worst


def test_the_curator_keeps_what_it_measured_in_order(dataset):
    curator = open_curator(dataset)
    part = curator.ledger.budget / 2
    assert curator.measurements == ()
    (first,) = curator.measure([MarginalQuery(("a",))], part, what="a")
    (second,) = curator.measure([MarginalQuery(("b",))], part, what="b")
    assert curator.measurements == (first, second)
