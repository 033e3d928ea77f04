"""All metrics at once are the metrics one by one."""

import numpy as np
import pandas as pd
import pytest

from sdv_privpgd import metrics
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.metrics.pairs import average

DOMAIN = Domain(("a", "b", "c", "d", "y"), (4, 3, 7, 5, 2))
NOMINAL = ["b", "d"]


@pytest.fixture
def tables():
    rng = np.random.default_rng(0)
    real, test = (rng.integers(0, DOMAIN.sizes, (rows, 5)) for rows in (150, 60))
    return real, np.floor(rng.random((120, 5)) ** 1.5 * DOMAIN.sizes).astype(int), test


def test_without_test_rows_and_label_there_are_the_distances_and_queries(tables):
    real, synthetic, _ = tables
    found = metrics.scores(DOMAIN, real, synthetic, seed=2)
    pair = DOMAIN, real, synthetic
    assert found == {
        "sw1": average(metrics.sw1_by_pair(*pair, seed=2)),
        "l1": average(metrics.l1_by_pair(*pair)),
        "half_l1": average(metrics.l1_by_pair(*pair)) / 2,
        "covariance": metrics.covariance_error(*pair, relative_to="synthetic"),
        "covariance_to_real": metrics.covariance_error(*pair),
        "counting": average(metrics.counting_errors(*pair, seed=2)),
        "threshold": average(metrics.threshold_errors(*pair, seed=2)),
    }


def test_test_rows_and_a_label_add_what_needs_them(tables):
    real, synthetic, test = tables
    given = {"test": test, "label": "y", "nominal": NOMINAL, "seed": 1}
    found = metrics.scores(DOMAIN, real, synthetic, **given)
    assert set(found) > set(metrics.scores(DOMAIN, real, synthetic))
    frames = [pd.DataFrame(codes, columns=list(DOMAIN.attributes)) for codes in (test, synthetic)]
    numeric = ["a", "c", "y"]
    assert found["range_query"] == average(metrics.range_errors(*frames, numeric=numeric, seed=1))
    assert found["fidelity"] == average(metrics.fidelity_by_pair(*frames, numeric=numeric))
    # No column has more than 100 codes: each is a level.
    assert found["fidelity"] == pytest.approx(
        average(metrics.l1_by_pair(DOMAIN, test, synthetic)) / 2
    )
    asked = {"features": ["a", "c"], "labels": ["y"]}
    pair = DOMAIN, real, synthetic
    for name, errors in {
        "categorical_marginal": metrics.categorical_marginal_errors(
            *pair, features=NOMINAL, labels=["y"]
        ),
        "mixed_marginal": metrics.mixed_marginal_errors(*pair, **asked, seed=1),
        "linear_threshold": metrics.linear_threshold_errors(*pair, **asked, seed=1),
    }.items():
        assert (found[f"{name}_mean"], found[f"{name}_max"]) == errors
    learned = DOMAIN, synthetic, test, "y"
    assert found["downstream"] == metrics.downstream_error(*learned, seed=1)
    assert found["ml_efficiency"] == average(metrics.f1_by_model(*learned, nominal=NOMINAL, seed=1))


def test_features_of_one_kind_or_value_have_only_the_errors_that_make_sense(tables):
    real, synthetic, test = tables
    found = metrics.scores(DOMAIN, real, synthetic, test=test, label="c", task="regression")
    expected = metrics.downstream_error(DOMAIN, synthetic, test, "c", task="regression")
    assert found["downstream"] == expected
    assert not {"ml_efficiency", "categorical_marginal_mean"} & set(found)
    real, synthetic, _ = tables
    found = metrics.scores(DOMAIN, np.zeros_like(real), synthetic)
    assert "counting" not in found
    assert found["half_l1"] > 0


def test_every_public_name_resolves_and_says_that_it_is_not_private():
    for name in metrics.__all__:
        assert getattr(metrics, name).__name__ == name
    assert dir(metrics) == metrics.__all__
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = metrics.nonsense
    for name in metrics.__all__:
        assert "not private" in getattr(metrics, name).__doc__.lower(), name
