"""Every strategy spends exactly all, measures nothing in vain and asks what answers say."""

import numpy as np
import pytest
from selecting import open_curator
from small_engine import Joint, MaximumEntropy

from sdv_privpgd import pipeline
from sdv_privpgd.domain import Domain
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.queries import Adjacency, CountQuery, MarginalQuery
from sdv_privpgd.select.aim import AIM
from sdv_privpgd.select.all_pairs import AllPairs
from sdv_privpgd.select.independent import Independent
from sdv_privpgd.select.mst import MST
from sdv_privpgd.select.mwem import MWEM
from sdv_privpgd.select.strategy import Strategy
from sdv_privpgd.synthesize.engine import Engine, Model

STRATEGIES = [AllPairs(), Independent(), MST(), AIM(rounds_per_attribute=2), MWEM()]


def test_they_and_the_small_engine_are_what_the_protocols_say(domain):
    assert all(isinstance(strategy, Strategy) for strategy in STRATEGIES)
    assert isinstance(MaximumEntropy(), Engine)
    assert isinstance(Joint(domain, np.full(domain.sizes, 1 / 24)), Model)


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_fit_spends_all_of_the_budget_and_returns_each_measurement_once(
    dataset, strategy, adjacency
):
    curator = open_curator(dataset, adjacency=adjacency)
    release = pipeline.run(curator, strategy, MaximumEntropy())
    assert release.ledger.remaining == 0
    assert release.measurements == curator.measurements
    values = sum(charge.num_values for charge in release.ledger.charges if charge.stddev)
    assert values == sum(m.answer.size for m in release.measurements if m.stddev)
    counted = [m for m in release.measurements if isinstance(m.query, CountQuery)]
    assert len(counted) == 1
    assert np.isclose(release.model.marginal(("a",)).sum(), 1)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_same_answers_give_the_same_questions(dataset, strategy):
    first, second = (
        strategy.run(open_curator(dataset, seed=5), MaximumEntropy()) for _ in range(2)
    )
    assert [m.query for m in first] == [m.query for m in second]
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one.answer, other.answer)


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("strategy", [Independent(), MST(), AIM(), MWEM()])
def test_one_attribute_is_measured_once_with_everything(strategy, adjacency):
    table = Dataset(Domain(("a",), (3,)), np.zeros((5, 1), dtype=np.int64))
    curator = open_curator(table, adjacency=adjacency)
    (measurement,) = strategy.run(curator, MaximumEntropy())
    assert measurement.query == MarginalQuery(("a",))
    (charge,) = curator.ledger.charges
    assert charge.mu_squared == curator.ledger.budget
