"""Models trained on synthetic rows, against scikit-learn used by hand."""

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.metrics import downstream_error, f1_by_model, learning
from sdv_privpgd.metrics.pairs import average, columns

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
