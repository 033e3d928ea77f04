"""What rows are good for, on tables whose truth is known."""

import numpy as np
import pandas as pd
import pytest

from sdv_privpgd.metrics.learning import (
    distances,
    learning_scores,
    propensity_error,
    tail_error,
    usefulness,
)
from sdv_privpgd.metrics.values import Described

COLUMNS = [
    Described(name="age", sdtype="numerical"),
    Described(name="ward", sdtype="categorical"),
    Described(name="grade", sdtype="ordinal", order=("low", "middle", "high")),
    Described(name="seen", sdtype="datetime", datetime_format="%Y-%m-%d"),
    Described(name="ill", sdtype="boolean"),
]


def table(num_rows, seed, strength=4.0):
    """Illness depends on age and ward, the more the stronger."""
    rng = np.random.default_rng(seed)
    age, ward = rng.uniform(0, 1, num_rows), rng.choice(["A", "B"], num_rows)
    score = strength * (age - 0.5 + (ward == "A") - 0.5)
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 999, num_rows), unit="D")
    return {
        "age": pd.Series(np.where(rng.random(num_rows) < 0.05, np.nan, age)),
        "ward": pd.Series(ward, dtype=object),
        "grade": pd.Series(rng.choice(["low", "middle", "high"], num_rows), dtype=object),
        "seen": pd.Series(days.strftime("%Y-%m-%d"), dtype=object),
        "ill": pd.Series(rng.random(num_rows) < 1 / (1 + np.exp(-score))),
    }


def test_rows_that_know_the_label_teach_it_and_others_do_not():
    real = table(4_000, 0)
    good = learning_scores(COLUMNS, table(4_000, 1), real, "ill")
    bad = learning_scores(COLUMNS, table(4_000, 1, strength=0.0), real, "ill")
    assert good["auroc"] > 0.85
    assert good["linear_auroc"] > 0.85
    assert good["f1"] > 0.7
    assert good["accuracy"] > 0.7
    assert bad["auroc"] == pytest.approx(0.5, abs=0.05)


def test_labels_of_any_kind_have_scores():
    real, train = table(3_000, 0), table(3_000, 1)
    for each in (real, train):
        each["age"] = each["age"].fillna(0.5) + (each["ward"] == "A")
    scores = learning_scores(COLUMNS, train, real, "age")
    assert scores["r2"] > 0.6
    assert scores["linear_r2"] > 0.6
    assert set(scores) == {"r2", "linear_r2"}
    scores = learning_scores(COLUMNS, table(2_000, 1), table(2_000, 0), "grade")
    assert scores["auroc"] == pytest.approx(0.5, abs=0.05)
    one = table(50, 2)
    one["grade"] = pd.Series(["low"] * 50, dtype=object)
    only = learning_scores(COLUMNS, one, table(2_000, 0), "grade")
    assert only["auroc"] == 0.5
    assert only["accuracy"] == pytest.approx(1 / 3, abs=0.05)
    expected = learning_scores(COLUMNS, train, real, "ward")["f1"]
    train["ward"] = train["ward"].copy()
    train["ward"].iloc[:5] = "unused"
    assert learning_scores(COLUMNS, train, real, "ward")["f1"] == pytest.approx(expected, abs=0.02)
    train, real = table(500, 1), table(500, 0)
    train["age"] = pd.Series([np.nan] * 500)
    assert learning_scores(COLUMNS, train, real, "ill")["auroc"] > 0.5
    real["age"] = pd.Series([np.nan] * 499 + [0.5])
    assert 0 <= propensity_error(COLUMNS, train, real) < 0.2


def test_distances_are_of_both_tables_and_grow_with_difference_and_degree():
    same = propensity_error(COLUMNS, table(3_000, 0), table(3_000, 1))
    other = table(3_000, 2)
    other["age"] = other["age"] + 1
    assert same < 0.1
    assert propensity_error(COLUMNS, table(3_000, 0), other) > 0.8
    real = table(20_000, 0)
    fresh, other = (distances(COLUMNS, real, table(20_000, 1, s)) for s in (4.0, 0.0))
    assert fresh[2] < fresh[3] < 0.1
    assert other[2] > 2 * fresh[2]
    assert distances(COLUMNS[:2], real, real) == {2: 0.0}
    columns = [Described(name=name, sdtype="boolean") for name in "ab"]
    a = pd.Series([False, False, True, True])
    real = {"a": a, "b": pd.Series([False, True, False, True])}
    assert distances(columns, real, {"a": a, "b": a}) == {2: 0.5}


def test_the_tails_of_a_constant_median_are_one_apart_and_a_far_value_counts():
    ages = [Described(name="age", sdtype="numerical")]
    real = {"age": pd.Series(np.arange(10_001.0))}
    assert tail_error(ages, real, real) == 0
    assert tail_error(ages, real, {"age": pd.Series([5_000.0] * 9)}) == pytest.approx(1.0)
    far = {"age": pd.Series(np.where(np.arange(10_001) > 9_900, 1e6, np.arange(10_001)))}
    assert tail_error(ages, real, far) > 90
    # What lies between the tails does not count, nor do categories.
    middle = real["age"].where((real["age"] < 200) | (real["age"] > 9_800), 5_000)
    assert tail_error(COLUMNS[1:2] + ages, real | {"ward": real["age"]}, {"age": middle}) == 0
    assert np.isnan(tail_error(ages, real, {"age": pd.Series([np.nan])}))
    assert np.isnan(tail_error(COLUMNS[1:2], table(9, 0), table(9, 1)))


def test_all_scores_have_names_and_those_of_fresh_rows_are_good():
    found = usefulness(COLUMNS, table(3_000, 1), table(3_000, 0), "ill")
    assert set(found) == {
        *(f"{prefix}{name}" for prefix in ("", "linear_") for name in ("auroc", "f1", "accuracy")),
        *("pmse", "tv2", "tv3", "tail"),
    }
    assert found["auroc"] > 0.85
    assert found["pmse"] < 0.1
    without = usefulness(COLUMNS[1:2], table(3_000, 1), table(3_000, 0))
    assert set(without) == {"pmse"}
