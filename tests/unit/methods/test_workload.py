"""What may be asked, what a model of it would weigh, and what noise it would have."""

from dataclasses import dataclass

import numpy as np
import pytest
from selecting import ADD, REPLACE
from small_engine import MaximumEntropy

from sdv_privpgd.methods.adaptive import affordable, expected_noise
from sdv_privpgd.methods.workload import checked_workload, downward_closure
from sdv_privpgd.privacy.accounting import stddev_for
from sdv_privpgd.privacy.ledger import PrivacyLedger


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
