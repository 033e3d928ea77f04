"""What a wrong domain does to a column is error, and is named; a right one does next to nothing."""

import numpy as np
import pandas as pd
import pytest
from columns_of_words import ranged
from encoding import Codec

from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.metrics.values import (
    MISSING,
    UNREADABLE,
    Described,
    as_codes,
    common_cells,
    out_of_domain,
)
from sdv_privpgd.report.evaluation import evaluate

ROWS = 4_000

RIGHT = {
    "range too small": {"range_min": 0, "range_max": 2**20, "decimal_places": 2, "num_bins": 4096},
    "range too large": {"range_min": 0, "range_max": 60, "decimal_places": 1},
    "categories missing": {"range_values": list("ABCDE")},
    "never missing": {"range_min": 0, "range_max": 100, "decimal_places": 0},
    "decimals too few": {"range_min": 0, "range_max": 1, "decimal_places": 3},
    "text, not numbers": {"range_values": [1, 2, 3]},
}
WRONG = {
    "range too small": {"range_min": 0, "range_max": 1000, "decimal_places": 2},
    "range too large": {"range_min": 0, "range_max": 10**9, "decimal_places": 0},
    "categories missing": {"range_values": list("ABC")},
    "never missing": {**RIGHT["never missing"], "range_is_nullable": False},
    "decimals too few": {"range_min": 0, "range_max": 1, "decimal_places": 0},
    "text, not numbers": {"range_values": ["1", "2", "3"]},
}
OUTSIDE = [name for name in WRONG if name not in ("range too large", "decimals too few")]
"""The others are inside: in one cell, and rounded."""


def sdtype_of(name):
    return "categorical" if "range_values" in RIGHT[name] else "numerical"


def table(seed=0):
    rng = np.random.default_rng(seed)
    numbers = rng.integers(0, 101, ROWS).astype(float)
    numbers[rng.random(ROWS) < 0.2] = np.nan
    columns = [
        rng.lognormal(7, 1, ROWS).round(2),
        rng.gamma(4, 5, ROWS).clip(0, 60).round(1),
        rng.choice(list("ABCDE"), ROWS, p=[0.3, 0.3, 0.2, 0.1, 0.1]),
        numbers,
        rng.random(ROWS).round(3),
        rng.integers(1, 4, ROWS),
    ]
    return pd.DataFrame(dict(zip(RIGHT, columns, strict=True)))


def metadata(facts):
    return {"columns": {name: {"sdtype": sdtype_of(name), **facts[name]} for name in facts}}


def through(described, frame):
    """The rows as a perfect method gives them back: encoded, spread in their cells, decoded."""
    rng = np.random.default_rng(1)
    found = {}
    for column in Schema.from_sdv(described["columns"], num_bins=1024).columns:
        transformer = Codec(column)
        codes, _ = transformer.encode(frame[column.name])
        found[column.name] = transformer.decode(codes, rng.random(ROWS))
    return pd.DataFrame(found)


@pytest.fixture(scope="module")
def evaluations(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    known = {"right": metadata(RIGHT), "wrong": metadata(WRONG)}
    return {
        name: evaluate(through(facts, table()), table(), facts, path=folder / f"{name}.html")
        for name, facts in known.items()
    }


@pytest.mark.parametrize("name", WRONG)
def test_what_a_wrong_domain_does_to_a_column_is_error(evaluations, name):
    assert evaluations["wrong"].columns[name] > 0.08
    assert evaluations["right"].columns[name] < 0.04


def test_wrong_columns_are_named_and_their_pairs_are_at_least_as_far(evaluations):
    wrong, right = evaluations["wrong"], evaluations["right"]
    assert {name for name, part in wrong.outside.items() if part > 0} == set(OUTSIDE)
    assert set(right.outside.values()) == {0.0}
    page = wrong.path.read_text(encoding="utf-8")
    first = page[page.index("<h2>") :].split("</section>")[0]
    assert "Real values outside the domain" in first
    worst_first = sorted(OUTSIDE, key=lambda name: -wrong.outside[name])
    places = [first.index(f"{name}: ") for name in worst_first]
    assert places == sorted(places)
    assert "range too large: " not in first
    found = evaluations["wrong"]
    for pair, distance in found.pairs.items():
        assert distance >= max(found.columns[name] for name in pair) - 1e-12


# Cells


def cells_of(real, synthetic, sdtype="numerical", **facts):
    column = Described(name="x", sdtype=sdtype, **facts)
    return common_cells([column], {"x": pd.Series(real)}, {"x": pd.Series(synthetic)})["x"]


def test_values_that_are_shared_far_or_rare_are_apart():
    real = [0.0] * 6 + [10.0, 20.0, 30.0, 40.0]
    found = cells_of(real, [0.0] * 5)
    assert found.w1 == pytest.approx(1.0, rel=1e-12)
    assert found.distance == pytest.approx(0.4, rel=1e-12)
    rng = np.random.default_rng(0)
    real = np.where(rng.random(2_000) < 0.5, 40.0, rng.uniform(30, 50, 2_000))
    spread = np.where(rng.random(2_000) < 0.5, rng.uniform(39, 41, 2_000), real)
    found = cells_of(real, np.where(real == 40, spread, real))
    assert found.distance > 0.2
    real = np.arange(100.0)
    found = cells_of(real, np.concatenate((real[10:], np.full(10, 99.5))))
    assert found.shares[1][found.synthetic[-1]] == pytest.approx(0.1)
    assert found.shares[0][found.synthetic[-1]] == 0
    assert found.ends[-1] == (99.5, 99.5)
    real = [f"r{number}" for number in range(500)]
    found = cells_of(real, [f"s{number}" for number in range(500)], "categorical")
    assert found.distance == 1
    assert cells_of(real, real[::-1], "categorical").distance == 0


def test_values_are_the_same_where_python_says_so_and_missing_is_not_unreadable():
    found = cells_of(["1", "x", None, "2"] * 10, [1.0, np.nan, np.nan, 2.0] * 10)
    assert list(found.others) == [UNREADABLE, MISSING]
    assert found.distance == pytest.approx(0.25, rel=1e-12)
    assert cells_of([1, 2, 3], [1.0, 2.0, 3.0], "categorical").distance == 0
    assert cells_of(["true", "False"], [True, False], "boolean").distance == 0
    assert cells_of(["1", "2"], [1, 2], "categorical").distance == 1
    assert cells_of([["a"], ["b"]], [["a"], ["b"]], "categorical").distance == 0


def test_any_table_is_at_no_distance_from_itself_in_another_order():
    frame = table().assign(**{"range too small": np.nan})
    columns = [Described(name=name, sdtype=sdtype_of(name)) for name in RIGHT]
    again = frame.sample(frac=1, random_state=0)
    cells = common_cells(columns, dict(frame.items()), dict(again.items()))
    assert {each.distance for each in cells.values()} == {0.0}
    domain, real, synthetic = as_codes(cells)
    assert (real.max(axis=0) < domain.sizes).all()
    assert sorted(map(tuple, real)) == sorted(map(tuple, synthetic))


# What a domain does not hold


def test_each_way_of_being_outside_is_told_apart():
    columns = {
        "n": ranged("numerical", 0, 9, decimal_places=1, range_is_nullable=False),
        "d": ranged("datetime", "2020-01-01", "2020-12-31", datetime_format="%Y-%m-%d"),
        "c": {"sdtype": "categorical", "range_values": ["a"], "other_value": "rest"},
    }
    real = {
        "n": pd.Series([-1, 0.1, 0.3, 9.04, 9.06, 0.25, None, "x"], dtype=object),
        "d": pd.Series(["2019-12-31", "2020-06-01", "2021-01-01", "06/2020", *[None] * 4]),
        "c": pd.Series(["a", "b", None, "rest", *"aaaa"]),
    }
    found = out_of_domain(Schema.from_sdv(columns), real)
    number = found["n"]
    assert (number.below, number.above, number.unreadable, number.missing) == (1 / 8,) * 4
    assert number.finer == 2 / 8  # 9.04 and 0.25
    assert number.share == 0.5
    date = found["d"]
    assert (date.below, date.above, date.unreadable, date.missing) == (1 / 8, 1 / 8, 1 / 8, 0)
    assert found["c"].undeclared == 1 / 8
    assert found["c"].fate == "rest"
