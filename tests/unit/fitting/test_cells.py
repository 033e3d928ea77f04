"""The number of codes: a rule of public facts, which gives way to whatever someone says."""

import numpy as np
import pandas as pd
import pytest

from sdv_privpgd import fit_table
from sdv_privpgd.fitting.fit import codes_paid_for
from sdv_privpgd.methods import AIM, MST, Independent, PrivPGD
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency


def codes(columns=12, rows=7_500, epsilon=1.0, method=None, **of_ledger):
    ledger = PrivacyLedger.open(epsilon, 1e-5, Adjacency.REPLACE_ONE, **of_ledger)
    names = [str(number) for number in range(columns)]
    return codes_paid_for(names, rows, ledger, method or PrivPGD())


@pytest.mark.parametrize(
    ("more", "less"),
    [
        (codes(rows=12_500), codes(rows=5_000)),
        (codes(epsilon=2.0), codes(epsilon=0.5)),
        (codes(columns=8), codes(columns=20)),
        (codes(), codes(rows_per_person=3)),
        (codes(columns=20, method=MST(engine="particles")), codes(columns=20)),
        (codes(columns=20, method=AIM(engine="particles")), codes(columns=20)),
    ],
)
def test_less_noise_pays_for_more_codes(more, less):
    assert 4 <= less < more <= 32


@pytest.mark.parametrize(("rows", "expected"), [(0, 4), (1, 4), (0.5, 4), (10**9, 32)])
def test_there_are_4_to_32(rows, expected):
    assert codes(rows=rows) == expected


@pytest.mark.parametrize(("columns", "strategy"), [(20, Independent()), (1, None)])
def test_without_pairs_there_are_32(columns, strategy):
    assert codes(columns=columns, method=strategy, epsilon=0.01) == 32


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    pay = np.exp(rng.normal(10.0, 1.0, 1_000)).round(2)
    return pd.DataFrame({"pay": pay, "age": rng.integers(0, 100, 1_000)})


def fit(table, adjacency="add_remove", *, facts=None, **settings):
    columns = {
        name: {"sdtype": "numerical", "range_min": 0, "range_max": high, **(facts or {})}
        for name, high in (("pay", 10**6), ("age", 99))
    }
    return fit_table(
        table, columns, 0.2, adjacency=adjacency, delta=1e-5, **{"method": "mst", **settings}
    ).fitted


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_a_fit_follows_the_rule(table, adjacency):
    """Both columns have more values than codes, and rows are few."""
    fitted = fit(table, adjacency)
    (number,) = {facts.num_bins for facts in fitted.description.known.values()}
    # Noise in the number of rows leaves four in one of thirty fits.
    assert (4 if adjacency == "add_remove" else 5) <= number < 16
    # Up to twice as many cells keep codes of their own; in one of sixty fits one column has fewer.
    sizes = [column.num_values for column in fitted.schema.columns]
    assert number <= max(sizes) <= 2 * number
    assert number / 2 <= min(sizes)


def test_only_what_nobody_says_follows_the_rule(table):
    for fitted in (fit(table, method=MST(num_bins=5)), fit(table, facts={"num_bins": 5})):
        assert all(column.num_values <= 10 for column in fitted.schema.columns)
    fitted = fit(table, discovery_share=0)
    assert [column.num_values for column in fitted.schema.columns] == [32, 32]
    known = PrivPGD().knowing([str(number) for number in range(8)])
    assert codes(columns=12, method=known) > codes(columns=12)
