"""Every strategy spends exactly its budget, whatever the table, the model and the noise."""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from selecting import STRATEGIES
from small_engine import measured_by

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.base.linear_thresholds import Line
from sdv_privpgd.methods import Engine, pipeline
from sdv_privpgd.methods.adaptive import AIM, MWEM, Adaptive
from sdv_privpgd.methods.method import TARGET
from sdv_privpgd.methods.mst import MST
from sdv_privpgd.methods.privpgd import PrivPGD
from sdv_privpgd.methods.rap_plus_plus import RAPPlusPlus
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.ledger import FitLedger, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency, CountQuery, GroupedMarginalQuery, MarginalQuery


@dataclass(frozen=True)
class Arbitrary(Engine):
    """A model and its engine in one: tables at random, with or without regard to the fit.

    ``turn`` changes at every fit where ``moves``, so that some rounds anneal and some do not.
    """

    seed: int
    moves: bool
    turn: int = 0

    takes = ("tables", "mean embeddings", "half-spaces")  # it leaves the last two unused

    def statistics(self, domain):
        return ()

    def megabytes(self, domain, cliques):
        return float(sum(domain.size(clique) for clique in cliques))

    def fit(self, domain, measurements, *, warm_start=None, progress=None):
        assert measurements, "nothing was known"
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "turn", self.turn + self.moves)
        return self

    def marginal(self, clique):
        weights = np.random.default_rng([self.seed, self.turn, len(clique)]).random(
            self.domain.shape(clique)
        )
        return weights / weights.sum()

    @property
    def block(self):
        return 1

    def sample(self, num_rows, seed):
        rng = np.random.default_rng([self.seed, self.turn, seed])
        return rng.integers(0, self.domain.sizes, size=(num_rows, len(self.domain)))


@st.composite
def cases(draw):
    """A strategy, a table and a ledger, part of which may be spent already."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=5))
    domain = Domain(tuple("abcde"[: len(sizes)]), tuple(sizes))
    cliques = [clique for degree in (1, 2, 3) for clique in domain.cliques(degree)]
    pairs = [clique for clique in cliques if len(clique) == 2]
    workload = draw(
        st.none() | st.lists(st.sampled_from(cliques), min_size=1, max_size=4).map(tuple)
    )
    megabytes = draw(st.sampled_from([1e-9, 10.0, 80.0, 1e6]))
    importance = draw(st.dictionaries(st.sampled_from(domain.attributes), st.floats(1, 1e3)))
    told = {"importance": importance, "workload": workload, "max_megabytes": megabytes}
    codes = zip(domain.attributes[1:], sizes[1:], strict=True)
    lines = tuple(Line(name, tuple(range(size))) for name, size in codes)
    labels = dict.fromkeys({domain.attributes[0]} & importance.keys(), TARGET)
    chosen = st.lists(st.sampled_from(pairs), max_size=3).map(tuple) if pairs else st.just(())
    rounds = st.none() | st.integers(1, 5)
    most = {"most_pairs": draw(st.integers(1, 9)), "pairs": draw(chosen)}
    strategy = draw(
        st.sampled_from(
            [
                *(each for name, each in STRATEGIES.items() if name != "RAPPlusPlus by a label"),
                RAPPlusPlus(rounds=2, queries=2, directions=5, importance=labels, lines=lines),
                PrivPGD(importance=importance),
                PrivPGD(importance=importance, **most),
                MST(importance=importance),
                AIM(rounds_per_attribute=draw(st.integers(1, 5)), **told),
                Adaptive(rounds=draw(rounds), marginals=draw(st.integers(1, 4)), **told),
                MWEM(rounds=draw(st.none() | st.integers(1, 9)), **told),
            ]
        )
    )
    num_rows = draw(st.sampled_from([0, 1, 7, 300]))
    rng = np.random.default_rng(draw(st.integers(0, 100)))
    table = Dataset(domain, rng.integers(0, sizes, (num_rows, len(sizes))))
    ledger = PrivacyLedger.open(
        draw(st.sampled_from([0.01, 0.2, 1.0, 8.0, 300.0])),
        draw(st.sampled_from([1e-9, 1e-5])),
        draw(st.sampled_from(Adjacency)),
        draw(st.integers(1, 3)),
    )
    curator = Curator(table, FitLedger(ledger, words=rng.bytes))
    engine = Arbitrary(draw(st.integers(0, 100)), draw(st.booleans()))
    return curator, strategy, engine, draw(st.sampled_from([0, Fraction(1, 3), Fraction(6, 7)]))


@given(cases())
def test_a_strategy_spends_exactly_what_is_left(case):
    curator, strategy, engine, earlier = case
    budget = curator.ledger.budget
    if earlier:
        curator.measure(
            [MarginalQuery(curator.domain.attributes[:1])], budget * earlier, what="earlier"
        )
    before = len(curator.measurements)
    measured = measured_by(strategy, curator, engine)
    assert curator.ledger.mu_squared == budget
    assert all(charge.mu_squared >= 0 for charge in curator.ledger.charges)
    assert curator.ledger.spent() <= curator.ledger.epsilon
    # What it returns is what it measured, each once; and every noisy number was charged for.
    assert tuple(measured) == curator.measurements[before:]
    assert len({id(measurement) for measurement in measured}) == len(measured)
    charged = sum(c.num_values for c in curator.ledger.charges if c.temperature is None)
    assert charged == sum(m.answer.size for m in curator.measurements)


@given(cases())
def test_the_whole_way_spends_the_budget_too(case):
    curator, strategy, engine, _ = case
    release = pipeline.run(curator, replace(strategy, engine=engine))
    assert release.ledger.remaining == 0
    counts = [m for m in release.measurements if isinstance(m.query, CountQuery)]
    assert len(counts) == 1


@given(cases())
def test_no_charge_pays_for_the_same_question_twice(case):
    curator, strategy, engine, _ = case
    measured = measured_by(strategy, curator, engine)
    asked = iter(each.query for each in measured)
    for charge in curator.ledger.charges:
        if charge.temperature is None:
            together = [next(asked) for _ in range(charge.num_queries)]
            assert len(set(together)) == len(together)
    assert not list(asked)


@given(cases())
def test_each_pair_is_asked_for_over_groups_once_at_most(case):
    curator, strategy, engine, _ = case
    measured = measured_by(strategy, curator, engine)
    coarse = [
        each.query.clique
        for each in measured
        if isinstance(each.query, GroupedMarginalQuery) and len(each.query.clique) == 2
    ]
    assert len(set(coarse)) == len(coarse)
    if coarse:
        assert set(coarse) == set(curator.domain.cliques(2))
