"""The whole way, with an engine that does next to nothing."""

from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
import pytest
from answers import open_curator

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.estimate.features import SigmoidSumQuery
from sdv_privpgd.methods import pipeline
from sdv_privpgd.methods.k_way import AllKWay
from sdv_privpgd.methods.pipeline import SMALL_SHARE
from sdv_privpgd.privacy.ledger import PrivacyBudgetError
from sdv_privpgd.privacy.queries import Adjacency, CountQuery
from sdv_privpgd.synthesize.engine import Engine

ADD = Adjacency.ADD_REMOVE


@dataclass(frozen=True)
class Uniform:
    domain: Domain
    block: int = 1

    def marginal(self, clique):
        return np.full(self.domain.shape(clique), 1 / self.domain.size(clique))

    def sample(self, num_rows, seed):
        return np.random.default_rng(seed).integers(
            0, self.domain.sizes, (num_rows, len(self.domain))
        )


@dataclass
class FakeEngine(Engine):
    asked: list = field(default_factory=list)
    fails: bool = False
    seen: list = field(default_factory=list)

    def statistics(self, domain):
        return self.asked

    def megabytes(self, domain, cliques):
        return 0.0

    def fit(self, domain, measurements, *, warm_start=None, progress=None):
        if self.fails:
            raise RuntimeError("no model")
        self.seen.extend(measurements)
        return Uniform(domain)


STATISTICS = [SigmoidSumQuery.of({"a": 1.0}, 0.4, 9.0), SigmoidSumQuery.of({"c": 1.0}, 0.7, 9.0)]


def test_under_add_remove_the_count_takes_one_percent_and_the_tables_the_rest(dataset):
    release = pipeline.run(
        open_curator(dataset, adjacency=ADD), replace(AllKWay(), engine=FakeEngine())
    )
    count, tables = release.ledger.charges
    budget = release.ledger.budget
    assert count.mu_squared == budget / 100 == budget * SMALL_SHARE
    assert tables.mu_squared == budget * Fraction(99, 100)
    assert release.ledger.remaining == 0
    # 1 % of mu^2 costs the tables 0.5 % of noise (privacy.md section 7).
    assert tables.stddev**2 * float(budget) == pytest.approx(3 / 0.99, rel=1e-9)


@pytest.mark.parametrize("adjacency", Adjacency)
def test_each_statistic_takes_one_percent_and_what_reveals_it_is_not_released(dataset, adjacency):
    engine = FakeEngine(asked=STATISTICS)
    release = pipeline.run(
        open_curator(dataset, adjacency=adjacency), replace(AllKWay(), engine=engine)
    )
    budget = release.ledger.budget
    shares = [charge.mu_squared / budget for charge in release.ledger.charges]
    count = SMALL_SHARE if adjacency is ADD else 0
    assert shares == [count, SMALL_SHARE, SMALL_SHARE, 1 - count - 2 * SMALL_SHARE]
    assert release.ledger.remaining == 0
    # The engine saw everything, count first and statistics in the order it asked.
    assert [m.query for m in engine.seen[:3]] == [CountQuery(), *STATISTICS]
    assert len(engine.seen) == 3 + 3
    release = pipeline.run(
        open_curator(dataset, adjacency=adjacency),
        replace(AllKWay(), engine=FakeEngine(asked=STATISTICS)),
    )
    assert [m.query for m in release.measurements] == [CountQuery()]


def test_too_many_statistics_are_refused_and_charges_stay_when_the_engine_fails(dataset):
    engine = FakeEngine(asked=STATISTICS[:1] * 100)
    curator = open_curator(dataset, adjacency=ADD)
    with pytest.raises(PrivacyBudgetError):
        pipeline.run(curator, replace(AllKWay(), engine=engine))
    assert curator.ledger.mu_squared <= curator.ledger.budget
    with pytest.raises(RuntimeError, match="no model"):
        pipeline.run(curator, replace(AllKWay(), engine=FakeEngine(fails=True)))
    assert curator.ledger.remaining == 0
    assert curator.ledger.spent() == pytest.approx(1.0, rel=1e-9)
