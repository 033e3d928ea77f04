"""The curator charges first, reads then, and adds the noise that the charge pays for."""

import contextlib
import functools
import inspect
import math
import random
import threading
from fractions import Fraction

import numpy as np
import pytest
from answers import NOTHING, SpyDataset, open_curator, scaled, values_of
from scipy.stats import norm

from sdv_privpgd.base.domain import Domain, Grouping
from sdv_privpgd.estimate.features import SigmoidSumQuery
from sdv_privpgd.privacy import curator as curator_module
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.ledger import FitLedger, PrivacyBudgetError, PrivacyLedger
from sdv_privpgd.privacy.noise import SAMPLING_DELTA
from sdv_privpgd.privacy.queries import Adjacency, CountQuery, GroupedMarginalQuery, MarginalQuery

REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE


@pytest.fixture
def spied(domain, codes):
    def make(adjacency):
        spy = SpyDataset(domain, codes)
        spy.reads = 0
        spy.curator = open_curator(spy, adjacency=adjacency)
        return spy

    return make


GROUPING = Grouping(("a", "c"), ((0, 1), (0, 0, 1, 2)))
QUERIES = [
    MarginalQuery(("a", "b")),
    GroupedMarginalQuery(("c", "a"), GROUPING),
    CountQuery(),
    SigmoidSumQuery.of({"c": 1.0}, 0.2, 9.0),
]


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("query", QUERIES)
def test_the_charge_is_on_the_ledger_before_the_table_is_read(spied, adjacency, query):
    spy = spied(adjacency)
    spy.curator.measure([query], spy.curator.ledger.remaining, what="a query")
    assert spy.reads == 1
    assert len(spy.curator.ledger.charges) == 1


@pytest.mark.parametrize("query", QUERIES)
def test_nothing_is_released_past_the_budget(spied, query):
    spy = spied(ADD)
    budget = spy.curator.ledger.budget
    with pytest.raises(PrivacyBudgetError, match="left"):
        spy.curator.measure([query], budget + Fraction(1, 10**40), what="a query")
    assert spy.reads == 0
    assert spy.curator.ledger.charges == ()
    spy.curator.measure([query], budget, what="a query")
    with pytest.raises(PrivacyBudgetError, match="left"):
        spy.curator.measure([query], Fraction(1, 10**6), what="another")
    assert spy.reads == 1
    assert spy.curator.ledger.remaining == 0


def test_unknown_attributes_and_other_groups_cost_nothing_and_read_nothing(spied):
    spy = spied(REPLACE)
    with pytest.raises(ValueError, match="not in the domain"):
        spy.curator.measure([MarginalQuery(("x",))], spy.curator.ledger.budget, what="x")
    assert (spy.reads, spy.curator.ledger.charges) == (0, ())
    spy = spied(REPLACE)
    query = GroupedMarginalQuery(("b",), Grouping(("b",), ((0, 1),)))
    with pytest.raises(ValueError, match="'b' has 3 codes and groups for 2 of them"):
        spy.curator.measure([query], spy.curator.ledger.budget, what="b")
    assert (spy.reads, spy.curator.ledger.charges) == (0, ())


@pytest.mark.parametrize("mu_squared", [Fraction(0), Fraction(-1), Fraction(1, 10**40)])
def test_a_share_that_buys_only_absurd_noise_is_refused_before_reading(spied, mu_squared):
    spy = spied(REPLACE)
    with pytest.raises(ValueError, match="mu"):
        spy.curator.measure([MarginalQuery(("a",))], mu_squared, what="a")
    assert (spy.reads, spy.curator.ledger.charges) == (0, ())


def test_a_charge_stays_on_the_ledger_when_reading_fails(domain, codes):
    class Broken(Dataset):
        def total(self, tally):
            raise RuntimeError("broken")

    curator = open_curator(Broken(domain, codes))
    with pytest.raises(RuntimeError, match="broken"):
        curator.measure([MarginalQuery(("a",))], curator.ledger.budget, what="a")
    assert curator.ledger.remaining == 0


def test_no_caller_can_name_a_scale_or_a_seed(dataset, domain):
    """What is asked and what it may cost is all that any of the curator's methods takes."""
    public = {name: each for name, each in vars(Curator).items() if not name.startswith("_")}
    asked = {
        name: list(inspect.signature(each).parameters)
        for name, each in public.items()
        if inspect.isfunction(each)
    }
    assert asked["measure"] == ["self", "queries", "mu_squared", "what", "progress"]
    words = {word for names in asked.values() for name in names for word in name.split("_")}
    assert not words & {"stddev", "sigma", "scale", "noise", "temperature", "seed", "words", "rng"}

    def answer():
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002
        curator = open_curator(dataset, seed=None)
        budget = curator.ledger.budget
        queries = [MarginalQuery(clique) for clique in domain.cliques(2)]
        return [each.answer.tolist() for each in curator.measure(queries, budget, what="pairs")]

    assert answer() != answer()


def test_the_number_of_rows_is_free_where_it_is_public_and_paid_for_where_not(dataset, codes):
    curator = open_curator(dataset, adjacency=REPLACE)
    (count,) = curator.measure([CountQuery()], curator.ledger.budget / 100, what="number of rows")
    assert count.answer.tolist() == [len(codes)]
    assert count.stddev == 0
    assert curator.ledger.mu_squared == 0
    (charge,) = curator.ledger.exact_releases
    assert charge.mechanism == "exact (public)"
    assert charge.delta == 0
    curator = open_curator(dataset, epsilon=2.5, adjacency=ADD, seed=1)
    share = curator.ledger.budget / 100
    (count,) = curator.measure([CountQuery()], share, what="number of rows")
    assert count.stddev == pytest.approx(16.34, abs=0.01)  # privacy.md section 7: 16
    assert count.answer[0] != len(codes)
    assert curator.ledger.mu_squared == share
    assert curator.ledger.exact_releases == ()


@pytest.mark.parametrize(("adjacency", "unit"), [(REPLACE, 2), (ADD, 1)])
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_tables_released_together_share_one_joint_sensitivity(
    dataset, domain, adjacency, unit, degree
):
    curator = open_curator(dataset, adjacency=adjacency)
    cliques = domain.cliques(degree)
    measurements = curator.measure(
        [MarginalQuery(clique) for clique in cliques], curator.ledger.budget, what="tables"
    )
    (charge,) = curator.ledger.charges
    assert dict(charge.sensitivity_squared) == {REPLACE: 2 * len(cliques), ADD: len(cliques)}
    assert charge.num_queries == len(cliques)
    assert charge.num_values == sum(domain.size(clique) for clique in cliques)
    assert charge.delta == SAMPLING_DELTA
    expected = math.sqrt(unit * len(cliques) / curator.ledger.budget)
    for measurement, clique in zip(measurements, cliques, strict=True):
        assert measurement.query == MarginalQuery(clique)
        assert measurement.stddev == charge.stddev == pytest.approx(expected, rel=1e-12)
        assert measurement.answer.dtype == np.int64
        assert measurement.answer.shape == domain.shape(clique)


def test_kinds_add_their_squares_and_no_query_means_no_charge(dataset):
    curator = open_curator(dataset, adjacency=ADD)
    curator.measure(QUERIES, curator.ledger.budget, what="all")
    (charge,) = curator.ledger.charges
    grid = SigmoidSumQuery.GRID**2
    assert dict(charge.sensitivity_squared) == {REPLACE: 2 + 2 + 0 + grid, ADD: 3 + grid}
    curator = open_curator(dataset)
    assert curator.measure([], curator.ledger.budget, what="nothing") == []
    assert curator.ledger.charges == ()
    dataset = Dataset(Domain(("a",), (1,)), np.zeros((3, 1), dtype=np.int64))
    for clique, shape in ((("a",), (1,)), ((), ())):
        curator = open_curator(dataset)
        query = MarginalQuery(clique)
        (measurement,) = curator.measure([query], curator.ledger.budget, what="one cell")
        assert isinstance(measurement.answer, np.ndarray)
        assert measurement.answer.shape == shape


@pytest.mark.parametrize("rows", [2, 5, 37])
@pytest.mark.parametrize("adjacency", Adjacency)
def test_the_noise_grows_with_the_rows_of_a_person(dataset, adjacency, rows):
    def scale(count):
        curator = open_curator(dataset, adjacency=adjacency, rows=count)
        curator.measure([MarginalQuery(("a",))], curator.ledger.budget, what="a")
        return curator.ledger.charges[0].stddev

    assert scale(rows) == pytest.approx(rows * scale(1), rel=1e-14)


@pytest.mark.parametrize("epsilon", [0.05, 0.2, 1.0, 2.5])
def test_a_statistic_at_one_percent_of_the_budget_can_be_bought(dataset, epsilon):
    curator = open_curator(dataset, epsilon=epsilon)
    query = SigmoidSumQuery.of({"a": 1.0}, 0.5, 10.0)
    (answer,) = curator.measure([query], curator.ledger.budget / 100, what="statistic")
    rows = answer.stddev / query.GRID
    assert rows == pytest.approx(10 / math.sqrt(curator.ledger.budget), rel=1e-9)


def residual_z(codes_of_nobody, *, epsilon=2.5):
    """How far the residuals' variance lies from the ledger's sigma, in standard errors."""
    domain = Domain(tuple("abcdefghi"), (32,) * 9)
    dataset = Dataset(domain, codes_of_nobody)
    curator = open_curator(dataset, epsilon=epsilon)
    queries = [MarginalQuery(clique) for clique in domain.cliques(2)]
    measurements = curator.measure(queries, curator.ledger.budget, what="tables")
    residuals = np.concatenate([(m.answer - m.query.answer(dataset)).ravel() for m in measurements])
    assert len(residuals) == 36_864
    stddev = curator.ledger.charges[0].stddev
    assert stddev == pytest.approx(13.86, abs=0.01)  # privacy.md section 2: 36 tables at 2.5
    variance = stddev**2 + 1 / 12  # rounding adds 1/12
    # The square of a Gaussian has variance 2 sigma^4.
    return (np.mean(residuals.astype(float) ** 2) / variance - 1) / math.sqrt(2 / len(residuals))


@pytest.fixture
def some_codes():
    return np.random.default_rng(2).integers(0, 32, (500, 9))


def test_residuals_have_the_scale_in_the_ledger(some_codes):
    assert abs(residual_z(some_codes)) < 4.9  # two-sided, alpha 1e-6


def test_the_residual_test_rejects_noise_wrong_by_a_tenth(some_codes, monkeypatch):
    for factor in (0.9, 1.1, 0.97):
        monkeypatch.setattr(curator_module, "rounded_gaussian", scaled(factor))
        assert abs(residual_z(some_codes)) > 4.9


def test_no_noise_is_used_twice(domain, codes):
    curator = open_curator(Dataset(domain, codes), epsilon=0.2)
    query = MarginalQuery(("a", "b", "c"))
    part = curator.ledger.budget / 4
    answers = [curator.measure([query], part, what="again")[0].answer for _ in range(4)]
    shared = FitLedger(PrivacyLedger.open(0.2, 1e-5, REPLACE))
    twice = Curator(Dataset(domain, codes), shared).measure([query, query], part, what="together")
    answers += [measurement.answer for measurement in twice]
    for i, one in enumerate(answers):
        for other in answers[:i]:
            assert not np.array_equal(one, other)


@pytest.mark.parametrize("sizes", [(2, 2), (40, 40), (1, 900)])
def test_one_pass_answers_at_least_32_queries_and_many_small_ones(sizes):
    domain = Domain(("a", "b"), sizes)
    queries = [MarginalQuery(clique) for clique in [("a",), ("b",), ("a", "b")]] * 100
    blocks = curator_module._blocks(queries, domain)
    assert [query for block in blocks for query in block] == queries
    for block in blocks[:-1]:
        cells = [domain.size(query.clique) for query in block]
        assert len(block) >= 32
        assert sum(cells) >= 1 << 15
        assert len(block) == 32 or sum(cells[:-1]) < 1 << 15


@pytest.mark.parametrize("adjacency", Adjacency)
def test_an_empty_table_is_measured_like_any_other(domain, adjacency):
    empty = Dataset(domain, np.zeros((0, 3), dtype=np.int64))
    curator = open_curator(empty, adjacency=adjacency)
    measurements = curator.measure(QUERIES, curator.ledger.budget, what="all")
    assert [m.answer.shape for m in measurements] == [(2, 3), (3, 2), (1,), (1,)]


class TestThresholds:
    @staticmethod
    def curator(adjacency, rows, columns):
        how = {"epsilon": 9.0, "adjacency": adjacency, "rows": rows, "reserved": Fraction(1e-6)}
        return open_curator(NOTHING, **how, values=values_of(columns))

    @pytest.mark.parametrize("rows", [1, 4])
    @pytest.mark.parametrize("adjacency", Adjacency)
    def test_a_value_is_released_from_the_threshold_on_that_is_in_the_ledger(
        self, adjacency, rows, monkeypatch
    ):
        curator = self.curator(adjacency, rows, {"x": [("at", 5), ("below", 5)]})

        def leading_there(stddev, size, words):
            threshold = curator.ledger.charges[-1].threshold
            return np.array([threshold - 5, threshold - 6, -7])

        monkeypatch.setattr(curator_module, "rounded_gaussian", leading_there)
        found = curator.discover(Fraction(1, 10), Fraction(1e-6), what="x")
        assert found == {"x": [("at", curator.ledger.charges[-1].threshold), (None, -7)]}

    @pytest.mark.parametrize("rows", [1, 4])
    @pytest.mark.parametrize("adjacency", Adjacency)
    def test_the_ledger_have_the_noise_and_the_delta_of_all_rows_of_a_person(self, adjacency, rows):
        columns = {name: [("a", 50)] for name in "xyz"}
        curator = self.curator(adjacency, rows, columns)
        curator.discover(Fraction(1, 10), Fraction(1e-6), what="x")
        (charge,) = curator.ledger.charges
        unit = 2 if adjacency is REPLACE else 1
        assert dict(charge.sensitivity_squared) == {REPLACE: 6 * rows**2, ADD: 3 * rows**2}
        assert charge.stddev**2 == pytest.approx(3 * unit * rows**2 * 10, rel=1e-9)
        # All of the person's rows may have one value, and each of three columns may give it away.
        beyond = (charge.threshold - rows - 0.5) / charge.stddev
        chance = unit * 3 * rows * norm.sf(beyond)
        assert 0.1e-6 < chance <= float(charge.delta) <= 1e-6 * (1 + 1e-9)

    def test_no_column_costs_nothing_and_each_has_noise_of_its_own(self):
        for columns, names in (({}, None), ({"x": [("a", 50)]}, [])):
            curator = self.curator(REPLACE, 1, columns)
            assert curator.discover(Fraction(1, 10), Fraction(1e-6), what="x", names=names) == {}
            assert curator.ledger.charges == ()
        curator = self.curator(REPLACE, 1, {name: [("a", 10**6)] for name in "wxyz"})
        found = curator.discover(Fraction(1, 10**4), Fraction(1e-6), what="x")
        assert len({tuple(values) for values in found.values()}) == 4


def test_answers_that_were_given_are_kept_when_the_next_one_fails(domain, codes, monkeypatch):
    curator = open_curator(Dataset(domain, codes))

    def once(stddev, size, words):
        if curator.measurements:
            raise MemoryError
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr(curator_module, "rounded_gaussian", once)
    with pytest.raises(MemoryError):
        curator.measure(
            [MarginalQuery(("a",)), MarginalQuery(("b",))], curator.ledger.budget, what="two"
        )
    assert [m.query for m in curator.measurements] == [MarginalQuery(("a",))]
    assert curator.ledger.remaining == 0


def test_earlier_answers_about_the_same_codes_are_known(dataset):
    before = open_curator(dataset)
    known = before.measure([MarginalQuery(("a",))], before.ledger.budget, what="a")
    curator = open_curator(dataset, known=known)
    assert list(curator.measurements) == known
    assert curator.ledger.charges == ()


class TestThreads:
    """Two threads meet in the middle of a charge: neither is lost."""

    def test_no_charge_is_lost(self, dataset, monkeypatch):
        curator = open_curator(dataset)
        record, both = PrivacyLedger.record, threading.Barrier(2)

        def slowly(ledger, charge):
            after = record(ledger, charge)
            with contextlib.suppress(threading.BrokenBarrierError):
                both.wait(0.2)  # would be met by the other thread if it were let in
            return after

        monkeypatch.setattr(PrivacyLedger, "record", slowly)
        part = curator.ledger.budget / 4
        ask = functools.partial(curator.measure, [MarginalQuery(("a",))], part)
        threads = [threading.Thread(target=ask, kwargs={"what": name}) for name in ("one", "two")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {charge.what for charge in curator.ledger.charges} == {"one", "two"}
        assert curator.ledger.mu_squared == 2 * part
        assert len(curator.measurements) == 2
