"""Rows of which none stands alone: enough of each combination, and little else moved."""

import datetime

import numpy as np
import pandas as pd
import pytest

from sdv_privpgd import Boolean, Categorical, Datetime, Numerical, People, fit_table
from sdv_privpgd.constraints import Inequality, ProgrammableConstraint
from sdv_privpgd.inference.crowds import _cells

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "p": RNG.integers(0, 600, 2_000),
        "ward": RNG.choice(list("ABCDEFGH"), 2_000, p=[0.5, 0.3, 0.1, *[0.02] * 5]),
        "age": np.clip(np.rint(RNG.normal(50, 15, 2_000)), 0, 99),
        "seen": pd.Timestamp("2024-01-01") + pd.to_timedelta(RNG.integers(0, 90, 2_000), unit="D"),
        "ill": RNG.random(2_000) < 0.3,
    }
)
COLUMNS = {
    "ward": Categorical(list("ABCDEFGH"), nullable=True),
    "age": Numerical(0, 99, decimal_places=0),
    "seen": Datetime(datetime.date(2024, 1, 1), datetime.date(2024, 3, 31)),
    "ill": Boolean(),
}
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def fit(**more):
    return fit_table(TABLE, COLUMNS, 3.0, 1e-6, method="mst", **more)


@pytest.fixture(scope="module")
def fitted():
    return fit()


@pytest.fixture(scope="module")
def rows(fitted):
    made = fitted.sample(1_500)
    made.loc[::50, "ward"] = None
    return made.set_index(np.arange(1_500) * 2)


def rarest(rows, on):
    return rows.groupby(on, dropna=False, observed=True).size().min()


@pytest.mark.parametrize("least", [2, 5, 40])
@pytest.mark.parametrize("on", [["age"], ["ward", "age"], ["ward", "age", "seen", "ill"]])
def test_enough_rows_have_each_combination_and_the_rest_stays(fitted, rows, on, least):
    made = fitted.crowded(rows, on, min_rows_like=least)
    assert rarest(made.rows, on) >= least
    assert made.rows.index.equals(rows.index)
    assert (made.rows.dtypes == rows.dtypes).all()
    others = [name for name in rows if name not in on]
    pd.testing.assert_frame_equal(made.rows[others], rows[others])
    known = set(rows[on].astype(str).itertuples(index=False, name=None))
    assert set(made.rows[on].astype(str).itertuples(index=False, name=None)) <= known
    size = rows.groupby(on, dropna=False, observed=True)["ill"].transform("size")
    kept = (size >= least).to_numpy()
    pd.testing.assert_frame_equal(made.rows[kept], rows[kept])
    same = (made.rows[on].astype(str) == rows[on].astype(str)).all(axis=1)
    assert made.changed == int((~same).sum())


def test_what_it_costs_is_told_and_grows_with_what_is_asked(fitted, rows):
    costs = [fitted.crowded(rows, ["ward", "age"], min_rows_like=k).moved for k in (2, 5, 40)]
    means = [each["share"].mean() for each in costs]
    assert 0 < means[0] < means[1] < means[2] < 0.5
    made = fitted.crowded(rows, "age", min_rows_like=5)
    share = made.moved.set_index(["column", "with"])["share"]
    assert set(share.index) == {("age", ""), ("age", "ward"), ("age", "seen"), ("age", "ill")}
    assert share["age", ""] <= made.changed / len(rows) < 0.05
    assert f"At least 5 rows have each combination of age. {made.changed}" in repr(made)


def test_few_rare_rows_join_the_nearest_and_nothing_else_is_changed(fitted):
    rows = pd.DataFrame({"age": np.random.default_rng(2).permutation(100).astype(float)})
    made = fitted.crowded(rows, ["age"], min_rows_like=5)
    away = (made.rows["age"] - rows["age"]).abs()
    assert made.changed > 75
    assert away.max() < 10
    rows = pd.DataFrame({"ward": ["A"] * 5 + ["B"] * 6, "age": [20.0] * 5 + [60.0] * 5 + [58.0]})
    made = fitted.crowded(rows, ["ward", "age"], min_rows_like=3)
    assert made.changed == 1
    assert made.rows.iloc[-1].tolist() == ["B", 60.0]
    rows = pd.DataFrame({"ward": ["A", "B"] * 5})
    made = fitted.crowded(rows, ["ward"])
    assert made.changed == 0
    assert not made.moved["share"].any()
    pd.testing.assert_frame_equal(made.rows, rows)


def test_cells_hold_all_rows_once_and_enough():
    ranks = np.random.default_rng(1).random((997, 3)).round(2)
    cells = _cells(ranks, np.arange(997), np.array([True, False, True]), 7)
    assert sorted(np.concatenate(cells)) == list(range(997))
    assert min(map(len, cells)) >= 7
    assert np.mean([len(each) for each in cells]) < 20


@pytest.mark.parametrize(
    ("on", "more", "told"),
    [
        (["wage"], {}, "choose from"),
        ([], {}, "At least"),
        (["age"], {"min_rows_like": 1}, "min_rows_like"),
        (["age"], {"min_rows_like": 2_000}, "got 1500 rows"),
    ],
)
def test_what_cannot_be_is_told(fitted, rows, on, more, told):
    with pytest.raises(ValueError, match=told):
        fitted.crowded(rows, on, **more)
    with pytest.raises(ValueError, match="have no column 'ill'"):
        fitted.crowded(rows[["age"]], ["ill"])


@pytest.mark.long
def test_what_constraints_and_the_order_tie_together_moves_together_or_not_at_all():
    columns = {**COLUMNS, "most": Numerical(0, 120, decimal_places=0)}
    table = TABLE.assign(most=TABLE["age"] + 5)
    fitted = fit_table(table, columns, 3.0, method="mst", constraints=[Inequality("age", "most")])
    rows = fitted.sample(400)
    with pytest.raises(ValueError, match=r"of \['age', 'most'\]"):
        fitted.crowded(rows, ["age"])
    made = fitted.crowded(rows, ["age", "most"], min_rows_like=4).rows
    assert (made["age"] <= made["most"])[made.notna().all(axis=1)].all()
    assert fitted.crowded(rows, ["ward"]).rows["age"].equals(rows["age"])
    free = fit(constraints=[ProgrammableConstraint(lambda rows: rows["age"] < 98)])
    with pytest.raises(ValueError, match="a function"):
        free.crowded(free.sample(50), ["ward"])
    order = People("p", 3, sequence_index="seen", previous=["ward"])
    visits = fit(adjacency="add_remove", people=order)
    with pytest.raises(ValueError, match="order of rows"):
        visits.crowded(visits.sample(50), ["seen"])
    assert rarest(visits.crowded(visits.sample(300), ["age"]).rows, ["age"]) >= 2
