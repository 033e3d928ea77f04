"""What models learn of synthetic rows: against scikit-learn used by hand, and of known truths."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.metrics import downstream_error, f1_by_model, learning
from sdv_privpgd.metrics.learning import (
    distances,
    learning_scores,
    propensity_error,
    tail_error,
    usefulness,
)
from sdv_privpgd.metrics.pairs import average, columns
from sdv_privpgd.metrics.values import Described

DOMAIN = Domain(("a", "b", "y"), (6, 4, 3))


def table(num_rows, seed):
    """The label is the sum of both features in three parts, one time in ten at random."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, DOMAIN.sizes, (num_rows, 3))
    told = (codes[:, 0] + codes[:, 1]) // 3
    noisy = rng.random(num_rows) < 0.1
    codes[:, 2] = np.where(noisy, codes[:, 2], told)
    return codes


TRAINED, TEST = table(400, 0), table(300, 1)


def test_errors_and_efficiency_are_those_of_scikit_learn_by_hand():
    model = GradientBoostingClassifier(random_state=3).fit(TRAINED[:, :2], TRAINED[:, 2])
    expected = np.mean(model.predict(TEST[:, :2]) != TEST[:, 2])
    found = downstream_error(DOMAIN, TRAINED, TEST, "y", seed=3)
    assert found == pytest.approx(expected, rel=1e-12)
    # A tenth of the labels are random, two thirds of those wrong: 0.07 cannot be learned.
    assert 0.03 < found < 0.25
    model = GradientBoostingRegressor(random_state=0).fit(TRAINED[:, 1:], TRAINED[:, 0])
    expected = np.mean((model.predict(TEST[:, 1:]) - TEST[:, 0]) ** 2)
    found = downstream_error(DOMAIN, TRAINED, TEST, "a", task="regression")
    assert found == pytest.approx(expected, rel=1e-6)  # trees of float32 either way
    rows = columns(DOMAIN, np.array([[0, 3, 0], [5, 0, 2]]))
    vectors = learning._vectors(DOMAIN, rows, ("a", "b"), ["b"])
    np.testing.assert_allclose(vectors, [[1 / 12, 0, 0, 0, 1], [11 / 12, 1, 0, 0, 0]], rtol=1e-6)
    scores = f1_by_model(DOMAIN, TRAINED, TEST, "y", nominal=["a"])
    assert list(scores) == [
        "random forest", "gradient boosting", "perceptron", "logistic regression",
    ]  # fmt: skip
    # One column a code of a nominal attribute, a single one of the others.
    assert all(0.5 < score < 1 for score in scores.values())
    assert f1_by_model(DOMAIN, TRAINED, TEST, "y", nominal=["a"]) == scores  # seeded


def test_single_and_rare_labels_are_learned_and_nothing_else_is_no_label():
    constant = TRAINED.copy()
    constant[:, 2] = 1
    expected = np.mean(TEST[:, 2] != 1)
    assert downstream_error(DOMAIN, constant, TEST, "y") == pytest.approx(expected, rel=1e-12)
    share = np.mean(TEST[:, 2] == 1)
    scores = f1_by_model(DOMAIN, constant, TEST, "y")
    # Its precision is its share, its recall 1; the two other labels have none.
    assert scores == pytest.approx(dict.fromkeys(scores, 2 * share / (1 + share) / 3), rel=1e-12)
    rare = TRAINED.copy()
    rare[:, 2] = rare[:, 2].clip(0, 1)
    rare[7, 2] = 2
    assert 0 <= downstream_error(DOMAIN, rare, TEST, "y") <= 1
    assert 0 < average(f1_by_model(DOMAIN, rare, TEST, "y")) < 1
    with pytest.raises(ValueError, match="'z'"):
        downstream_error(DOMAIN, TRAINED, TEST, "z")
    with pytest.raises(ValueError, match="needs another attribute"):
        downstream_error(DOMAIN.project(["y"]), TRAINED[:, 2:], TEST[:, 2:], "y")


def test_scores_weigh_labels_alike_and_only_real_ones(monkeypatch):
    unused = TRAINED[TRAINED[:, 2] < 2], TEST[TEST[:, 2] < 2]
    rows = unused[0].copy()
    rows[:3, 2] = 2
    scores = f1_by_model(DOMAIN, rows, unused[1], "y")
    assert min(scores.values()) > 0.8
    predicted = np.random.default_rng(4).integers(0, 3, len(TEST))
    monkeypatch.setattr(learning, "_predictions", lambda *arguments: predicted)
    both = [(TEST[:, 2] == label, predicted == label) for label in range(3)]
    f1 = [2 * np.sum(asked & told) / (asked.sum() + told.sum()) for asked, told in both]
    scores = f1_by_model(DOMAIN, TRAINED, TEST, "y")
    assert scores == pytest.approx(dict.fromkeys(scores, np.mean(f1)), rel=1e-12)


# What rows are good for

COLUMNS = [
    Described(name="age", sdtype="numerical"),
    Described(name="ward", sdtype="categorical"),
    Described(name="grade", sdtype="ordinal", order=("low", "middle", "high")),
    Described(name="seen", sdtype="datetime", datetime_format="%Y-%m-%d"),
    Described(name="ill", sdtype="boolean"),
]


def people(num_rows, seed, strength=4.0):
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
    real = people(4_000, 0)
    good = learning_scores(COLUMNS, people(4_000, 1), real, "ill")
    bad = learning_scores(COLUMNS, people(4_000, 1, strength=0.0), real, "ill")
    assert good["auroc"] > 0.85
    assert good["linear_auroc"] > 0.85
    assert good["f1"] > 0.7
    assert good["accuracy"] > 0.7
    assert bad["auroc"] == pytest.approx(0.5, abs=0.05)


def test_labels_of_any_kind_have_scores():
    real, train = people(3_000, 0), people(3_000, 1)
    for each in (real, train):
        each["age"] = each["age"].fillna(0.5) + (each["ward"] == "A")
    scores = learning_scores(COLUMNS, train, real, "age")
    assert scores["r2"] > 0.6
    assert scores["linear_r2"] > 0.6
    assert set(scores) == {"r2", "linear_r2"}
    scores = learning_scores(COLUMNS, people(2_000, 1), people(2_000, 0), "grade")
    assert scores["auroc"] == pytest.approx(0.5, abs=0.05)
    one = people(50, 2)
    one["grade"] = pd.Series(["low"] * 50, dtype=object)
    only = learning_scores(COLUMNS, one, people(2_000, 0), "grade")
    assert only["auroc"] == 0.5
    assert only["accuracy"] == pytest.approx(1 / 3, abs=0.05)
    expected = learning_scores(COLUMNS, train, real, "ward")["f1"]
    train["ward"] = train["ward"].copy()
    train["ward"].iloc[:5] = "unused"
    assert learning_scores(COLUMNS, train, real, "ward")["f1"] == pytest.approx(expected, abs=0.02)
    train, real = people(500, 1), people(500, 0)
    train["age"] = pd.Series([np.nan] * 500)
    assert learning_scores(COLUMNS, train, real, "ill")["auroc"] > 0.5
    real["age"] = pd.Series([np.nan] * 499 + [0.5])
    assert 0 <= propensity_error(COLUMNS, train, real) < 0.2


def test_distances_are_of_both_tables_and_grow_with_difference_and_degree():
    same = propensity_error(COLUMNS, people(3_000, 0), people(3_000, 1))
    other = people(3_000, 2)
    other["age"] = other["age"] + 1
    assert same < 0.1
    assert propensity_error(COLUMNS, people(3_000, 0), other) > 0.8
    real = people(20_000, 0)
    fresh, other = (distances(COLUMNS, real, people(20_000, 1, s)) for s in (4.0, 0.0))
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
    assert np.isnan(tail_error(COLUMNS[1:2], people(9, 0), people(9, 1)))


def test_all_scores_have_names_and_those_of_fresh_rows_are_good():
    found = usefulness(COLUMNS, people(3_000, 1), people(3_000, 0), "ill")
    assert set(found) == {
        *(f"{prefix}{name}" for prefix in ("", "linear_") for name in ("auroc", "f1", "accuracy")),
        *("pmse", "tv2", "tv3", "tail"),
    }
    assert found["auroc"] > 0.85
    assert found["pmse"] < 0.1
    without = usefulness(COLUMNS[1:2], people(3_000, 1), people(3_000, 0))
    assert set(without) == {"pmse"}
