"""What may be asked, what matters more, what a model of it would weigh, and its noise."""

import pickle
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from selecting import ADD, REPLACE
from small_engine import MaximumEntropy, measured_by

from sdv_privpgd import Categorical, fit_table
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.methods import AIM, MST, Independent
from sdv_privpgd.methods.adaptive import MWEM, affordable, expected_noise
from sdv_privpgd.methods.method import (
    TARGET,
    checked_workload,
    downward_closure,
    importance_of,
    weighed,
)
from sdv_privpgd.methods.privpgd import PrivPGD
from sdv_privpgd.privacy.accounting import stddev_for
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.ledger import FitLedger, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency, GroupedMarginalQuery, MarginalQuery


def test_a_closure_has_every_subset_once_and_weighs_what_it_shares():
    weights = downward_closure([("a", "b"), ("b", "c", "d")])
    assert set(weights) == {
        ("a",), ("b",), ("c",), ("d",), ("a", "b"), ("b", "c"), ("b", "d"), ("c", "d"),
        ("b", "c", "d"),
    }  # fmt: skip
    # Shared attributes with either clique, by hand.
    assert weights["a",] == 1
    assert weights["b",] == 2
    assert weights["a", "b"] == 2 + 1
    assert weights["c", "d"] == 0 + 2
    assert weights["b", "c", "d"] == 1 + 3
    assert list(weights) == sorted(weights, key=len)


def test_a_workload_is_put_in_order_and_checked(domain):
    assert checked_workload(domain, None) == (("a", "b"), ("a", "c"), ("b", "c"))
    assert checked_workload(domain, [("c", "a"), ("a", "c"), ("b",)]) == (("a", "c"), ("b",))
    for workload, message in (
        ([], "empty"),
        ([()], "distinct"),
        ([("a", "a")], "distinct"),
        ([("a", "x")], "not in the domain"),
    ):
        with pytest.raises(ValueError, match=message):
            checked_workload(domain, workload)


def test_only_models_within_the_limit_are_affordable(domain):
    @dataclass
    class Cells(MaximumEntropy):
        def megabytes(self, domain, cliques):
            return float(sum(domain.size(clique) for clique in cliques))

    pairs = list(domain.cliques(2))  # 6, 8 and 12 cells
    assert affordable(Cells(), domain, [], pairs, 8) == pairs[:2]
    assert affordable(Cells(), domain, [], pairs, 1) == pairs[:1]
    assert affordable(Cells(), domain, [("b", "c")], pairs, 17.9) == [("b", "c")]
    assert affordable(Cells(), domain, [("b", "c")], pairs, 18) == [("a", "b"), ("b", "c")]
    assert affordable(Cells(), domain, [("a", "b", "c")], pairs, 0) == pairs


@pytest.mark.parametrize(("adjacency", "unit"), [(REPLACE, 2), (ADD, 1)])
def test_the_expected_noise_is_the_mean_of_the_noise_that_is_added(domain, adjacency, unit):
    ledger = PrivacyLedger.open(1.0, 1e-5, adjacency, 3)
    clique, part = ("b", "c"), ledger.budget / 50
    stddev = stddev_for(9 * unit, part)
    found = expected_noise(ledger, domain, clique, part)
    noise = np.random.default_rng(0).normal(0, stddev, (4_000, 12))
    # A sum of 12 absolute normals has a deviation of 0.6 sqrt(12) sigma: 0.34 % in 4,000.
    assert found == pytest.approx(np.abs(noise).sum(axis=1).mean(), rel=0.02)
    assert found != pytest.approx(1.1 * np.abs(noise).sum(axis=1).mean(), rel=0.02)


DOMAIN = Domain(tuple("abcde"), (4, 4, 4, 4, 4))
"""Five attributes that follow a sixth alike; ``e`` is the one of interest."""


def run(strategy):
    rng = np.random.default_rng(0)
    hidden, others = rng.integers(0, 4, (2_000, 1)), rng.integers(0, 4, (2_000, len(DOMAIN)))
    table = Dataset(DOMAIN, np.where(rng.random(others.shape) < 0.7, hidden, others))
    shared = FitLedger(PrivacyLedger.open(1.0, 1e-6, Adjacency.REPLACE_ONE))
    curator = Curator(table, shared)
    measured_by(strategy, curator)
    assert curator.ledger.remaining == 0
    return curator.measurements


def test_importances_are_numbers_and_targets_that_cost_as_many_times_as_much():
    measured = run(PrivPGD(importance={"e": 4}, columns=False, triples=0, first_share=1))
    variances = {each.query.clique: each.stddev**2 for each in measured}
    others = {variance for clique, variance in variances.items() if "e" not in clique}
    important = {variance for clique, variance in variances.items() if "e" in clique}
    assert len(others) == len(important) == 1
    assert others.pop() / important.pop() == pytest.approx(4, rel=1e-3)
    factors = {"a": np.int64(2), "b": np.float32(1.5), "c": Fraction(3)}
    assert PrivPGD(importance=factors).importance == {"a": 2.0, "b": 1.5, "c": 3.0}
    assert pickle.loads(pickle.dumps(PrivPGD(importance=factors))).importance["c"] == 3.0
    assert importance_of(None) == {}
    assert importance_of("e") == {"e": TARGET}
    assert importance_of({"a": 2, "e": 6}) == {"a": 2.0, "e": 6.0}
    assert importance_of(["a", "e"]) == {"a": TARGET, "e": TARGET}
    with pytest.raises(ValueError, match="name of a column"):
        importance_of(3)


def test_what_matters_is_measured_more_in_both_rounds():
    """All attributes hang on one another alike."""
    spent = {False: [], True: []}
    for each in run(PrivPGD(importance={"e": 4}, columns=False, triples=0)):
        spent["e" in each.query.clique].append(each.stddev**-2)
    assert sum(spent[True]) / 4 > 2 * sum(spent[False]) / 6


@pytest.mark.parametrize(
    ("importance", "num_rows", "groups"),
    [({}, 50_000, 4), ({"e": 4}, 50_000, 8), ({"e": 4}, 1_000, 4), ({"e": 1}, 50_000, 4)],
)
def test_triples_with_what_matters_are_finer_where_the_noise_can_pay(importance, num_rows, groups):
    domain = Domain(tuple("abcde"), (12, 12, 12, 12, 2))
    rng = np.random.default_rng(0)
    codes = rng.integers(0, domain.sizes, (num_rows, len(domain)))
    shared = FitLedger(PrivacyLedger.open(1.0, 1e-6, Adjacency.REPLACE_ONE))
    curator = Curator(Dataset(domain, codes), shared)
    measured_by(PrivPGD(importance=importance), curator)
    shapes = {
        each.answer.shape
        for each in curator.measurements
        if isinstance(each.query, GroupedMarginalQuery) and "e" in each.query.clique
    }
    assert shapes == {(groups, groups, 2)}


def test_triples_are_measured_with_what_matters_or_all():
    measured = run(PrivPGD(importance={"e": 2}))
    triples = [each.query.clique for each in measured if len(each.query.clique) == 3]
    assert len(triples) == 6
    assert all("e" in clique for clique in triples)
    assert isinstance(measured[-1].query, GroupedMarginalQuery)
    for importance in ({}, {"e": 1}):
        measured = run(PrivPGD(importance=importance))
        assert sum(len(each.query.clique) == 3 for each in measured) == 10


@pytest.mark.parametrize("strategy", [AIM(), MWEM(rounds=4), MST()], ids=lambda s: type(s).__name__)
def test_chosen_cliques_are_those_with_what_matters(strategy):
    shares = []
    for importance in ({}, {"e": 1_000}):
        chosen = [
            each.query.clique
            for _ in range(5)
            for each in run(weighed(strategy, importance))
            if isinstance(each.query, MarginalQuery) and len(each.query.clique) == 2
        ]
        shares.append(np.mean(["e" in clique for clique in chosen]))
    assert shares[1] > shares[0]


VISITS = pd.DataFrame({"ward": ["A", "B"] * 50, "ill": ["yes", "no", "no", "no"] * 25, "id": 1})
COLUMNS = {"ward": Categorical(["A", "B"]), "ill": Categorical(["yes", "no"])}


def test_wishes_that_cannot_be_met_are_refused_before_a_row_is_read(monkeypatch):
    with pytest.raises(ValueError, match="'independent' asks the same of all columns"):
        fit_table(VISITS, COLUMNS, 1.0, method=Independent(), target="ill")
    with pytest.raises(ValueError, match="'private_gsd' asks the same of all columns"):
        fit_table(VISITS, COLUMNS, 1.0, method="private_gsd", target="ill")
    for method in ("dp-merf", "rap++"):
        with pytest.raises(ValueError, match=r"whatever its factor: .* target=\['ill'\]"):
            fit_table(VISITS, COLUMNS, 1.0, method=method, target={"ill": 3})
    with pytest.raises(ValueError, match="and not both"):
        fit_table(
            VISITS,
            COLUMNS,
            1.0,
            method=AIM(importance={"ill": 2}, engine="particles"),
            target="ill",
        )
    monkeypatch.setattr("sdv_privpgd.fitting.door.PrivateTable", None)
    for settings in ({"target": "id"}, {"target": {"illness": 2}}):
        with pytest.raises(ValueError, match=r"no modelled columns: choose from \['ward', 'ill'\]"):
            fit_table(VISITS, COLUMNS, 1.0, **settings)
