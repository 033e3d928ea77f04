"""What every strategy keeps to: it spends exactly all, and asks what the answers say alone.

A new strategy is one line of ``STRATEGIES``.
"""

import pickle
import pkgutil
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from answers import open_curator
from protocols import concrete, differences
from selecting import STRATEGIES
from small_engine import Joint, MaximumEntropy, measured_by

from sdv_privpgd import methods
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.methods import pipeline
from sdv_privpgd.methods.method import EngineMethod, Method
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.queries import Adjacency, CountQuery, MarginalQuery
from sdv_privpgd.synthesize.engine import Engine, Model

EACH = pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)


def test_every_strategy_of_the_package_is_tested_and_as_the_protocols_say(domain):
    for module in pkgutil.iter_modules(methods.__path__):
        import_module(f"{methods.__name__}.{module.name}")
    found = concrete(EngineMethod, methods.__name__)
    assert found == {type(strategy) for strategy in STRATEGIES.values()}
    for strategy in STRATEGIES.values():
        assert not differences(Method, strategy)
    assert not differences(Engine, MaximumEntropy())
    assert not differences(Model, Joint(domain, np.full(domain.sizes, 1 / 24)))


@EACH
def test_a_strategy_is_a_value_that_asks_the_same_and_tells_what_it_does(strategy, dataset):
    assert pickle.loads(pickle.dumps(strategy)) == strategy
    assert repr(strategy).startswith(type(strategy).__name__)
    with pytest.raises(AttributeError):
        strategy.measure = None
    first, second = (measured_by(strategy, open_curator(dataset, seed=5)) for _ in range(2))
    assert [m.query for m in first] == [m.query for m in second]
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one.answer, other.answer)
    stages = []

    def record(items, stage):
        stages.append(stage)
        yield from items

    told = measured_by(strategy, open_curator(dataset, seed=5), progress=record)
    silent = measured_by(strategy, open_curator(dataset, seed=5))
    assert stages
    assert [m.query for m in told] == [m.query for m in silent]


@pytest.mark.parametrize("adjacency", Adjacency)
@EACH
def test_a_fit_spends_all_of_the_budget_and_returns_each_measurement_once(
    dataset, strategy, adjacency
):
    curator = open_curator(dataset, adjacency=adjacency)
    release = pipeline.run(curator, replace(strategy, engine=MaximumEntropy()))
    assert release.ledger.remaining == 0
    assert release.measurements == curator.measurements
    values = sum(charge.num_values for charge in release.ledger.charges if charge.stddev)
    assert values == sum(m.answer.size for m in release.measurements if m.stddev)
    counted = [m for m in release.measurements if isinstance(m.query, CountQuery)]
    assert len(counted) == 1
    assert np.isclose(release.model.marginal(("a",)).sum(), 1)
    table = Dataset(Domain(("a",), (3,)), np.zeros((5, 1), dtype=np.int64))
    curator = open_curator(table, adjacency=adjacency)
    (measurement,) = measured_by(strategy, curator)
    assert measurement.query == MarginalQuery(("a",))
    (charge,) = curator.ledger.charges
    assert charge.mu_squared == curator.ledger.budget
