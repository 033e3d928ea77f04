"""Every strategy, and discovery, repeated on other tables with the same noisy answers."""

import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import replay
import sdv_tables
from made_up import kinds
from small_engine import MaximumEntropy

from sdv_privpgd import MSTSynthesizer, People
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.base.linear_thresholds import Line
from sdv_privpgd.methods import pipeline
from sdv_privpgd.methods.adaptive import AIM, MWEM, Adaptive
from sdv_privpgd.methods.dp_merf import DPMERF
from sdv_privpgd.methods.k_way import AllKWay, Independent
from sdv_privpgd.methods.mst import MST
from sdv_privpgd.methods.privmrf import PrivMRF
from sdv_privpgd.methods.privpgd import PrivPGD
from sdv_privpgd.methods.privsyn import PrivSyn
from sdv_privpgd.methods.rap_plus_plus import RAPPlusPlus
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.ledger import FitLedger, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.privacy.streams import WeighedRecords, Weighing

REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE
LINES = Line("c", tuple(range(9))), Line("d", (0, 5, 7), nullable=True)
STRATEGIES = [
    PrivPGD(), PrivPGD(most_pairs=3), AllKWay(degree=3), Independent(), MST(),
    AIM(rounds_per_attribute=2), MWEM(), PrivSyn(), PrivMRF(), Adaptive(rounds=2),
    RAPPlusPlus(rounds=2, queries=2, directions=5, lines=LINES),
    RAPPlusPlus(rounds=2, queries=2, directions=5, lines=LINES, importance={"a": 6.0}),
    DPMERF(num_features=20), DPMERF(num_features=20, importance={"a": 6.0}),
]  # fmt: skip
LEDGERS = [
    PrivacyLedger.open(0.5 * rows, 1e-5, adjacency, rows)
    for adjacency in Adjacency
    for rows in (1, 3)
] + [PrivacyLedger.open(0.5, 1e-5, ADD, 3, people="who", weighed=True)]
"""At an epsilon that a person of so many rows does not see, and single columns have a share."""
ELSEWHERE = "dependence", "embedding"
SIZES = (2, 3, 9, 4)  # one with more codes than triples have groups


def codes(num_rows, seed):
    """Records of dependent attributes: what depends on what is another for each seed."""
    rng = np.random.default_rng(seed)
    table = rng.integers(0, SIZES, (num_rows, len(SIZES)))
    one, other = rng.permutation(len(SIZES))[:2]
    table[:, other] = np.minimum(table[:, one], SIZES[other] - 1)
    return table


def neighbors(ledger, num_rows=500):
    """Two tables that differ in one person's rows: moved as far as can be, or gone."""
    here, rows = codes(num_rows, 0), ledger.rows_per_person
    here[:rows] = 0
    there = here.copy()
    there[:rows] = np.array(SIZES) - 1
    return here, there if ledger.adjacency is REPLACE else here[rows:]


def recorded(table, strategy, ledger, monkeypatch, answers=None, of_person=()):
    """A run over the whole way.

    Where people are weighed, the first rows are of people of so many; the others are of people of
    one row each.
    """

    def fit():
        domain, records = Domain(tuple("abcd"), SIZES), table
        held = Dataset(domain, records)
        if ledger.weighed:
            numbers = np.array([*of_person, *[1] * (len(records) - len(of_person))])
            whole = Domain((*"abcd", "number"), (*SIZES, 256))
            own = Weighing("number", ledger.bound)
            held = Dataset(whole, np.c_[records, own.coded(own.of_rows({"number": numbers})).T])
            held = WeighedRecords(held, domain, own)
        curator = Curator(held, FitLedger(ledger))
        release = pipeline.run(curator, replace(strategy, engine=MaximumEntropy(sweeps=3)))
        measured = [(m.query, m.answer.tobytes(), m.stddev) for m in release.measurements]
        return pickle.dumps((measured, release.model.table, release.ledger))

    return replay.run(fit, monkeypatch, answers=answers)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: type(strategy).__name__)
class TestStrategies:
    @pytest.mark.parametrize("ledger", LEDGERS, ids=lambda ledger: ledger.unit)
    def test_all_that_is_not_noise_depends_on_the_noisy_answers_alone(
        self, strategy, ledger, monkeypatch
    ):
        first = recorded(codes(500, 0), strategy, ledger, monkeypatch)
        for seed in (1, 2):
            others = 500 if ledger.adjacency is REPLACE else [37, 5_000][seed - 1]
            table, people = codes(others, seed), [2, 2, 3, 3, 3]
            again = recorded(table, strategy, ledger, monkeypatch, first, people)
            replay.require_the_same(first, again)

    @pytest.mark.parametrize("ledger", LEDGERS, ids=lambda ledger: ledger.unit)
    def test_neighbors_differ_by_what_is_charged_and_noise_is_fresh(
        self, strategy, ledger, monkeypatch
    ):
        (here, there), rows = neighbors(ledger), ledger.rows_per_person
        first = recorded(here, strategy, ledger, monkeypatch, of_person=[rows] * rows)
        again = recorded(there, strategy, ledger, monkeypatch, answers=first)
        replay.require_fresh_noise_as_charged(first, ledger)
        replay.require_no_more_than_charged(first, again, ledger.adjacency)
        replay.require_the_same(first, again)
        for one, other in zip(first.releases, again.releases, strict=True):
            # What is charged for is attained, so that less would be noticed; that of a dependence
            # is attained by other tables (tests/unit/privacy/test_dependence.py), and that of an
            # embedding, too (tests/property/test_neighbors.py).
            if one.exact and not any(word in one.charge.what for word in ELSEWHERE):
                limit = dict(one.charge.sensitivity_squared)[ledger.adjacency]
                assert replay.changed(one, other) == limit

    def test_people_of_one_row_each_are_counted_and_chosen_by_as_rows_are(
        self, strategy, monkeypatch
    ):
        """All of it in units, but for rounding: exact numbers, scores and temperatures."""

        def in_units(numbers):
            return pytest.approx([units * each for each in numbers], rel=0.02, abs=3 * units)

        table, (rows, people) = codes(500, 0), (LEDGERS[2], LEDGERS[-1])
        first = recorded(table, strategy, rows, monkeypatch)
        units = people.units
        again = recorded(
            table, strategy, people, monkeypatch, answers=replay.in_units(first, units)
        )
        assert [each[0] for each in first.asked] == [each[0] for each in again.asked]
        for one, other in zip(first.releases, again.releases, strict=True):
            assert other.charge.stddev == pytest.approx(units * one.charge.stddev)
            for here, there in zip(one.exact, other.exact, strict=True):
                assert [*there.values()] == in_units(here.values())
            for (scores, heat, _), (others, more, _) in zip(
                one.choices, other.choices, strict=True
            ):
                assert more == units * heat
                assert others == in_units(scores)


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("rows", [1, 3])
def test_what_stands_out_depends_on_noisy_answers_alone_and_costs_what_is_charged(
    adjacency, rows, monkeypatch
):
    """Of so much budget and so many rows a part is for parities and triples."""
    ledger, strategy = (
        PrivacyLedger.open(20.0 * rows, 1e-5, adjacency, rows),
        PrivPGD(importance={"a": 6.0}),
    )
    here, there = neighbors(ledger, 3_000 * rows)
    first = recorded(here, strategy, ledger, monkeypatch)
    said = [release.charge.what for release in first.releases]
    assert {"parity that stands out", "triple that stands out"} < set(said)
    for table in (there, codes(len(there), 1)):
        again = recorded(table, strategy, ledger, monkeypatch, answers=first)
        replay.require_the_same(first, again)
        if table is there:
            replay.require_no_more_than_charged(first, again, ledger.adjacency)


def test_the_share_of_the_columns_is_one_that_the_number_of_rows_decides(monkeypatch):
    """Else the test above could not notice who told it."""
    first = recorded(codes(500, 0), PrivPGD(), LEDGERS[2], monkeypatch)
    (columns,) = [release.charge for release in first.releases if "1-way" in release.charge.what]
    assert Fraction(3, 100) < columns.mu_squared / LEDGERS[2].budget < Fraction(1, 2)


UNDECLARED = kinds(
    who="id", ward="categorical", code="categorical", age="numerical", cost="numerical",
    seen="datetime",
)  # fmt: skip


def undeclared_table(num_rows=3_000):
    """Frequent values, and in columns of categories a quarter of all rows with rare ones."""
    rng = np.random.default_rng(0)
    rare = [f"rare {row}" for row in range(num_rows)]
    is_rare = rng.random(num_rows) < 0.25
    days = pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 900, num_rows), unit="D")
    return pd.DataFrame(
        {
            "who": np.arange(num_rows),
            "ward": np.where(is_rare, rare, rng.choice(["A", "B", "C"], num_rows)),
            "code": rng.choice([1, 2, 7], num_rows),
            "age": np.where(rng.random(num_rows) < 0.3, 40, rng.integers(20, 60, num_rows)),
            "cost": np.round(rng.gamma(2.0, 90.0, num_rows), 2),
            "seen": days,
        }
    )


def with_frequent_values_only(table, num_rows):
    """A table without a rare value, and with other numbers of the frequent ones."""

    def frequent(column):
        numbers = column.value_counts()
        kept = numbers.index[numbers >= min(20, numbers.max())].sort_values()
        return pd.Series(np.resize(kept.to_numpy(), num_rows))

    return table.apply(frequent).assign(who=np.arange(num_rows))


def fitted_undeclared(table, ledger, monkeypatch, answers=None):
    synthesizer = MSTSynthesizer(
        sdv_tables.metadata_of(UNDECLARED),
        5.0 * ledger.rows_counted,
        adjacency=ledger.adjacency.value,
        delta=1e-5,
        people=People(ledger.people, max_rows=ledger.rows_per_person, weighed=ledger.weighed),
        discovery_share=0.3,
    )

    def fit():
        synthesizer.fit(table)
        return (
            repr(synthesizer._description().discovered),
            synthesizer.ledger.to_json(),
            synthesizer.sample(100).to_csv(),
        )

    return replay.run(fit, monkeypatch, answers=answers)


@pytest.mark.filterwarnings("ignore:The ranges or categories", "ignore:.*have the sdtype id")
@pytest.mark.parametrize("ledger", LEDGERS, ids=lambda ledger: ledger.unit)
class TestDiscovery:
    def test_all_that_is_not_noise_depends_on_the_noisy_answers_alone(self, ledger, monkeypatch):
        table = undeclared_table()
        first = fitted_undeclared(table, ledger, monkeypatch)
        others = with_frequent_values_only(table, 3_000 if ledger.adjacency is REPLACE else 700)
        again = fitted_undeclared(others, ledger, monkeypatch, answers=first)
        replay.require_the_same(first, again)
        asked = [each for each in first.asked if each[0] == "discover"]
        assert len(asked) > 1, "the rare values were not looked for"

    def test_neighbors_differ_by_what_is_charged_and_noise_is_fresh(self, ledger, monkeypatch):
        here, rows = undeclared_table(), ledger.rows_per_person
        here.iloc[:rows] = here[here["ward"] == "A"].iloc[0]
        there = here.copy()
        # Another of each frequent value, far from the first.
        there.iloc[:rows] = here[(here["ward"] == "B") & (here["code"] != here["code"][0])].iloc[0]
        there = there if ledger.adjacency is REPLACE else here.iloc[rows:]
        first = fitted_undeclared(here, ledger, monkeypatch)
        again = fitted_undeclared(there, ledger, monkeypatch, answers=first)
        replay.require_fresh_noise_as_charged(first, ledger)
        replay.require_no_more_than_charged(first, again, ledger.adjacency)
        replay.require_the_same(first, again)
        for one, other in zip(first.releases, again.releases, strict=True):
            if one.charge.what == "categories of undeclared columns":  # what is charged is attained
                limit = dict(one.charge.sensitivity_squared)[ledger.adjacency]
                assert replay.changed(one, other) == limit
