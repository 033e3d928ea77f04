"""Every strategy, and discovery, repeated on other tables with the same noisy answers."""

import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import replay
import sdv_tables
from small_engine import MaximumEntropy

from sdv_privpgd import MSTSynthesizer, pipeline
from sdv_privpgd.domain import Domain
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.ledger import Books, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.select.adaptive import Adaptive
from sdv_privpgd.select.aim import AIM
from sdv_privpgd.select.all_pairs import AllPairs
from sdv_privpgd.select.fixed import AllKWay
from sdv_privpgd.select.independent import Independent
from sdv_privpgd.select.mst import MST
from sdv_privpgd.select.mwem import MWEM
from sdv_privpgd.select.privmrf import PrivMRF
from sdv_privpgd.select.privsyn import PrivSyn

REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE
STRATEGIES = [
    AllPairs(), AllPairs(most_pairs=3), AllKWay(degree=3), Independent(), MST(),
    AIM(rounds_per_attribute=2), MWEM(), PrivSyn(), PrivMRF(), Adaptive(rounds=2),
]  # fmt: skip
SIZES = (2, 3, 9, 4)  # one with more codes than triples have groups


def codes(num_rows, seed):
    """Records of dependent attributes: what depends on what is another for each seed."""
    rng = np.random.default_rng(seed)
    table = rng.integers(0, SIZES, (num_rows, len(SIZES)))
    one, other = rng.permutation(len(SIZES))[:2]
    table[:, other] = np.minimum(table[:, one], SIZES[other] - 1)
    return table


def neighbors(rows, adjacency):
    """Two tables that differ in one person's rows: moved as far as can be, or gone."""
    here = codes(500, 0)
    here[:rows] = 0
    there = here.copy()
    there[:rows] = np.array(SIZES) - 1
    return here, there if adjacency is REPLACE else here[rows:]


def recorded(table, strategy, adjacency, rows, monkeypatch, answers=None):
    """A run over the whole way, at an epsilon that a person of so many rows does not see."""

    def fit():
        ledger = PrivacyLedger.open(2.0 * rows, 1e-5, adjacency, rows)
        curator = Curator(Dataset(Domain(tuple("abcd"), SIZES), table), Books(ledger))
        release = pipeline.run(curator, strategy, MaximumEntropy(sweeps=3))
        measured = [(m.query, m.answer.tobytes(), m.stddev) for m in release.measurements]
        return pickle.dumps((measured, release.model.table, release.ledger))

    return replay.run(fit, monkeypatch, answers=answers)


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: type(strategy).__name__)
class TestStrategies:
    def test_all_that_is_not_noise_depends_on_the_noisy_answers_alone(
        self, strategy, adjacency, rows, monkeypatch
    ):
        first = recorded(codes(500, 0), strategy, adjacency, rows, monkeypatch)
        for seed in (1, 2):
            others = 500 if adjacency is REPLACE else [37, 5_000][seed - 1]
            table = codes(others, seed)
            again = recorded(table, strategy, adjacency, rows, monkeypatch, answers=first)
            replay.require_the_same(first, again)

    def test_neighbors_differ_by_what_is_charged_and_noise_is_fresh(
        self, strategy, adjacency, rows, monkeypatch
    ):
        here, there = neighbors(rows, adjacency)
        first = recorded(here, strategy, adjacency, rows, monkeypatch)
        again = recorded(there, strategy, adjacency, rows, monkeypatch, answers=first)
        replay.require_fresh_noise_as_charged(first, adjacency, rows)
        replay.require_no_more_than_charged(first, again, adjacency)
        replay.require_the_same(first, again)
        for one, other in zip(first.releases, again.releases, strict=True):
            # What is charged for is attained, so that less would be noticed; that of a dependence
            # is attained by other tables (tests/unit/privacy/test_dependence.py).
            if one.exact and "dependence" not in one.charge.what:
                limit = dict(one.charge.sensitivity_squared)[adjacency]
                assert replay.changed(one, other) == limit


def test_the_share_of_the_columns_is_one_that_the_number_of_rows_decides(monkeypatch):
    """Else the test above could not notice who told it."""
    first = recorded(codes(500, 0), AllPairs(), ADD, 1, monkeypatch)
    (columns,) = [release.charge for release in first.releases if "1-way" in release.charge.what]
    budget = PrivacyLedger.open(2.0, 1e-5, ADD).budget
    assert Fraction(3, 100) < columns.mu_squared / budget < Fraction(13, 100)


UNDECLARED = {
    "ward": {"sdtype": "categorical"},
    "code": {"sdtype": "categorical"},
    "age": {"sdtype": "numerical"},
    "cost": {"sdtype": "numerical"},
    "seen": {"sdtype": "datetime"},
}


def undeclared_table(num_rows=3_000):
    """Frequent values, and in columns of categories a quarter of all rows with rare ones."""
    rng = np.random.default_rng(0)
    rare = [f"rare {row}" for row in range(num_rows)]
    is_rare = rng.random(num_rows) < 0.25
    days = pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 900, num_rows), unit="D")
    return pd.DataFrame(
        {
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

    return table.apply(frequent)


def fitted_undeclared(table, adjacency, rows, monkeypatch, answers=None):
    synthesizer = MSTSynthesizer(
        sdv_tables.metadata_of(UNDECLARED),
        5.0 * rows,
        adjacency=adjacency.value,
        rows_per_person=rows,
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


@pytest.mark.filterwarnings("ignore:The ranges or categories")
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("adjacency", Adjacency)
class TestDiscovery:
    def test_all_that_is_not_noise_depends_on_the_noisy_answers_alone(
        self, adjacency, rows, monkeypatch
    ):
        table = undeclared_table()
        first = fitted_undeclared(table, adjacency, rows, monkeypatch)
        others = with_frequent_values_only(table, 3_000 if adjacency is REPLACE else 700)
        again = fitted_undeclared(others, adjacency, rows, monkeypatch, answers=first)
        replay.require_the_same(first, again)
        asked = [each for each in first.asked if each[0] == "discover"]
        assert len(asked) > 1, "the rare values were not looked for"

    def test_neighbors_differ_by_what_is_charged_and_noise_is_fresh(
        self, adjacency, rows, monkeypatch
    ):
        here = undeclared_table()
        here.iloc[:rows] = here[here["ward"] == "A"].iloc[0]
        there = here.copy()
        # Another of each frequent value, far from the first.
        there.iloc[:rows] = here[(here["ward"] == "B") & (here["code"] != here["code"][0])].iloc[0]
        there = there if adjacency is REPLACE else here.iloc[rows:]
        first = fitted_undeclared(here, adjacency, rows, monkeypatch)
        again = fitted_undeclared(there, adjacency, rows, monkeypatch, answers=first)
        replay.require_fresh_noise_as_charged(first, adjacency, rows)
        replay.require_no_more_than_charged(first, again, adjacency)
        replay.require_the_same(first, again)
        for one, other in zip(first.releases, again.releases, strict=True):
            if one.charge.what == "categories of undeclared columns":  # what is charged is attained
                limit = dict(one.charge.sensitivity_squared)[adjacency]
                assert replay.changed(one, other) == limit
