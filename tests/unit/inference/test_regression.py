"""Regressions agree with statsmodels where there is no noise, and say what they cannot do."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from answers import noisy_answers, number_of_rows
from columns_of_words import ranged
from toy import Joints

from sdv_privpgd import Between
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.estimate.support import clear_support
from sdv_privpgd.inference.design import design_of
from sdv_privpgd.inference.questions import Questions, Undetected
from sdv_privpgd.inference.regression import Regression, regression
from sdv_privpgd.methods import pipeline
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.synthesize.engine import Particles

FACTS = {
    "age": {"sdtype": "numerical", "range_min": 20, "range_max": 29, "decimal_places": 0},
    "ward": {"sdtype": "categorical", "range_values": ["A", "B", "C"]},
    "pay": {"sdtype": "numerical", "range_min": 0, "range_max": 15, "decimal_places": 0},
    "ill": {"sdtype": "boolean"},
    "seen": ranged("datetime", "2024-01-01", "2024-01-04", datetime_format="%Y-%m-%d"),
}
SCHEMA = Schema.from_sdv(FACTS)
DOMAIN = SCHEMA.domain()


def drawn(num_rows=3_000, missing=0.0):
    """Codes of rows in which everything depends on everything, with values missing by chance."""
    rng = np.random.default_rng(0)
    age, ward = rng.integers(0, 10, num_rows), rng.choice(3, num_rows, p=[0.5, 0.3, 0.2])
    age = np.clip(age + ward, 0, 9)
    pay = np.clip(np.rint(4 + 0.5 * age - ward + rng.normal(0, 2, num_rows)), 0, 15).astype(int)
    ill = rng.random(num_rows) < 1 / (1 + np.exp(1 - 0.3 * age + 0.8 * (ward == 1) + 0.1 * pay))
    codes = np.stack([age, ward, pay, ill, rng.integers(0, 4, num_rows)], axis=1).astype(int)
    for axis, column in enumerate(SCHEMA.attributes):
        codes[rng.random(num_rows) < missing, axis] = column.num_values
    return codes


def questions(codes, *, stddev=0.0, held=(), pairs=None):
    """A release of all pairs of these codes with this noise, whose model is the codes."""
    model = Particles(domain=DOMAIN, codes=codes)
    cliques = DOMAIN.cliques(2) if pairs is None else pairs
    tables = {clique: model.marginal(clique) * len(codes) for clique in cliques}
    release = pipeline.Release(
        domain=DOMAIN,
        ledger=PrivacyLedger.open(1.0, 1e-5, Adjacency.REPLACE_ONE),
        measurements=(number_of_rows(len(codes)), *noisy_answers(tables, stddev)),
        model=model,
        held={c.name: np.full(c.size, True) for c in SCHEMA.attributes if c.name in held},
    )
    return Questions(release, SCHEMA)


def design(codes):
    frame = pd.DataFrame({"intercept": 1.0, "age": codes[:, 0] + 20.0})
    return frame.assign(B=codes[:, 1] == 1, C=codes[:, 1] == 2).astype(float)


def test_without_noise_regressions_are_least_squares_and_maximum_likelihood():
    codes = drawn()
    codes[codes[:, 0] > 6, 2] = np.where(np.arange((codes[:, 0] > 6).sum()) % 2, 0, 15)  # spread
    found = regression(questions(codes), "pay", ["age", "ward"])
    real = sm.OLS(codes[:, 2], design(codes)).fit(cov_type="HC0")
    np.testing.assert_allclose(found.coefficients, real.params, rtol=1e-6)
    np.testing.assert_allclose(found.stddev, real.bse, rtol=1e-6)
    np.testing.assert_allclose(found.summary()["z"], real.tvalues, rtol=1e-6)
    assert found.coefficients.index.tolist() == ["intercept", "age", "ward = B", "ward = C"]
    same = sm.OLS(codes[:, 2], design(codes)).fit()  # errors of one size are another thing
    assert abs(found.stddev["age"] / same.bse["age"] - 1) > 0.05
    codes = drawn()
    found = regression(questions(codes), "ill", ["age", "ward"], "logistic")
    real = sm.Logit(codes[:, 3], design(codes)).fit(disp=False)
    np.testing.assert_allclose(found.coefficients, real.params, rtol=1e-5)
    # What pairs do not tell of the covariates costs next to nothing.
    ratio = found.stddev.to_numpy() / real.bse.to_numpy()
    assert (ratio >= 1 - 1e-6).all()
    assert (ratio < 1.02).all()


@pytest.mark.long
def test_the_noise_adds_what_it_does():
    """The spread of coefficients over the noise alone is the noise's part, for the same rows."""
    asked = questions(drawn())
    count, *exact = asked.release.measurements
    tables = {each.query.clique: each.answer for each in exact}
    for outcome, kind in (("pay", "linear"), ("ill", "logistic")):
        found, parts = [], []
        for seed in range(60):
            noisy = (count, *noisy_answers(tables, 12.0, seed))
            release = replace(asked.release, measurements=noisy)
            each = regression(Questions(release, SCHEMA), outcome, ["age", "ward"], kind)
            found.append(each.coefficients.to_numpy())
            parts.append(np.diagonal(each.noise))
        ratio = np.var(found, axis=0, ddof=1) / np.mean(parts, axis=0)
        # Of 60 draws a variance has a standard error of 0.18; five of them.
        assert (np.abs(ratio - 1) < 0.9).all(), (kind, ratio)
        assert (ratio > 0.4).all(), (kind, ratio)


def test_noise_that_hides_what_terms_leave_is_in_the_intervals():
    asked = questions(drawn())
    count, *exact = asked.release.measurements
    tables = {each.query.clique: each.answer for each in exact}
    truth, held = regression(asked, "pay", ["age"]).coefficients["age"], []
    for seed in range(60):
        noisy = (count, *noisy_answers(tables, 60.0, seed))
        own = Questions(replace(asked.release, measurements=noisy), SCHEMA)
        low, high = regression(own, "pay", ["age"]).interval().loc["age"]
        assert high - low > 0.1
        held.append(low <= truth <= high)
    assert sum(held) >= 53


def test_another_reference_or_event_gives_the_same_model():
    asked = questions(drawn())
    one = regression(asked, "pay", ["age", "ward"])
    other = regression(asked, "pay", ["age", "ward"], reference={"ward": "C"})
    np.testing.assert_allclose(
        other.coefficients["ward = A"], -one.coefficients["ward = C"], rtol=1e-6
    )
    np.testing.assert_allclose(other.stddev["ward = A"], one.stddev["ward = C"], rtol=1e-6)
    assert "Compared: ward with C." in str(other)
    codes = drawn()
    found = regression(questions(codes), "pay", ["age"], "logistic", event=Between(low=8))
    x = sm.add_constant(codes[:, 0] + 20.0)
    real = sm.Logit((codes[:, 2] >= 8).astype(float), x).fit(disp=False)
    np.testing.assert_allclose(found.coefficients, real.params, rtol=1e-5)
    assert found.title == "Logistic regression of pay is at least 8 on age"


@pytest.mark.parametrize("kind", ["linear", "logistic"])
def test_values_that_are_missing_by_chance_do_no_harm(kind):
    codes = drawn(20_000, missing=0.1)
    whole = codes[(codes[:, [0, 1, 3]] < [10, 3, 2]).all(axis=1)]
    found = regression(questions(codes, held=["age", "ill", "ward"]), "ill", ["age", "ward"], kind)
    real = regression(questions(whole), "ill", ["age", "ward"], kind)
    apart = (found.coefficients - real.coefficients) / real.stddev
    assert (apart.abs() < 2).all(), apart  # other rows take part: a standard error or less
    assert "'age' and 'ill' and 'ward' are missing" in " ".join(found.notes)


def missing_by_ward(codes):
    """The codes with half of the pay of ward C missing, which is where age is highest."""
    codes = codes.copy()
    codes[(codes[:, 1] == 2) & (np.arange(len(codes)) % 2 == 0), 2] = 16
    return codes


def whole_rows(codes):
    return codes[codes[:, 2] < 16]


def test_of_one_column_the_pair_tells_which_rows_have_the_outcome():
    codes = missing_by_ward(drawn())
    real = sm.OLS(whole_rows(codes)[:, 2], design(whole_rows(codes)).drop(columns="age"))
    found = regression(questions(codes, held=["pay"]), "pay", ["ward"])
    np.testing.assert_allclose(found.coefficients, real.fit().params, rtol=1e-6)
    np.testing.assert_allclose(found.stddev, real.fit(cov_type="HC0").bse, rtol=1e-6)
    assert "rows that have all values" in str(found)
    assert "the fitted model's" not in str(found)


@pytest.mark.parametrize("kind", ["linear", "logistic"])
def test_outcomes_that_are_missing_in_one_group_do_no_harm(kind):
    codes = missing_by_ward(drawn(20_000))
    asked = questions(codes, held=["pay"])
    release = replace(asked.release, model=Joints().fit(DOMAIN, asked.release.measurements))
    how = {"event": Between(low=8)} if kind == "logistic" else {}
    arguments = (Questions(release, SCHEMA), "pay", ["age", "ward"], kind)
    found = regression(*arguments, **how)
    real = regression(questions(whole_rows(codes)), *arguments[1:], **how)
    apart = (found.coefficients - real.coefficients) / real.stddev
    assert (apart.abs() < 1).all(), apart  # the same rows: the model's part alone differs
    assert (found.stddev > 0.99 * real.stddev).all()  # and costs something
    assert "How often 'pay' is missing depends on the value of 'age'" in str(found)
    assert "the fitted model's" in str(found)
    assert abs(found.num_rows - len(whole_rows(codes))) < 1


def test_triples_that_were_measured_leave_nothing_to_the_model():
    codes = missing_by_ward(drawn())
    asked = questions(codes, held=["pay"], pairs=DOMAIN.cliques(3))
    release = replace(asked.release, model=Particles(domain=DOMAIN, codes=codes[::-1][:100]))
    found = regression(Questions(release, SCHEMA), "pay", ["age", "ward"])
    real = sm.OLS(whole_rows(codes)[:, 2], design(whole_rows(codes))).fit()
    np.testing.assert_allclose(found.coefficients, real.params, rtol=1e-6)
    assert "the fitted model's" not in str(found)


def test_interactions_and_dates_are_predictors():
    codes = drawn()
    asked = questions(codes, pairs=DOMAIN.cliques(3))
    frame = design(codes)
    frame["AB"], frame["AC"] = frame["age"] * frame["B"], frame["age"] * frame["C"]
    found = regression(asked, "pay", [("age", "ward")])
    real = sm.OLS(codes[:, 2], frame).fit(cov_type="HC0")
    assert found.coefficients.index[-2:].tolist() == ["age:ward = B", "age:ward = C"]
    np.testing.assert_allclose(found.coefficients, real.params, rtol=1e-5)
    np.testing.assert_allclose(found.stddev, real.bse, rtol=1e-5)
    found = regression(asked, "ill", [("age", "ward")], "logistic")
    real = sm.Logit(codes[:, 3], frame).fit(disp=False)
    np.testing.assert_allclose(found.coefficients, real.params, rtol=1e-4)
    frame = pd.DataFrame({"intercept": 1.0, "seen": codes[:, 4], "age": codes[:, 0] + 20.0})
    frame["both"] = frame["seen"] * frame["age"]
    found = regression(asked, "pay", ["seen", "age", ("seen", "age")])
    real = sm.OLS(codes[:, 2], frame).fit()
    np.testing.assert_allclose(found.coefficients, real.params, rtol=1e-5)
    assert "'seen' counts in days since 2024-01-01." in str(found)


def test_categories_that_follow_hide_or_come_first_are_references():
    codes = drawn()
    codes[:, 3] = codes[:, 1] == 1
    for kind in ("linear", "logistic"):
        found = regression(questions(codes), "pay", ["ward", "ill"], kind, event=Between(low=8))
        assert len(found.coefficients) == 3
        assert "With the reference count, as too few rows are known to have them: " in str(found)
    codes = drawn()
    codes[:, 1] = np.maximum(codes[:, 1], 1)  # nobody is in ward A
    asked = questions(codes, stddev=5.0)
    held = clear_support(DOMAIN, asked.release.measurements)
    found = regression(Questions(replace(asked.release, held=held), SCHEMA), "pay", ["ward"])
    assert found.coefficients.index.tolist() == ["intercept", "ward = C"]
    assert "Compared: ward with B." in str(found)
    codes = drawn()
    codes[:, 1] = codes[:, 1] % 2  # nobody is in ward C
    found = regression(questions(codes, stddev=5.0), "ill", ["ward"])
    assert found.coefficients.index.tolist() == ["intercept", "ward = B"]
    said = "With the reference count, as too few rows are known to have them: ward = C."
    assert said in str(found)


@pytest.mark.parametrize(
    ("arguments", "reference", "said"),
    [
        (("pay", []), None, "must name columns"),
        (("pay", ["pay"]), None, "none of them the outcome"),
        (("nobody", ["age"]), None, "choose from"),
        (("pay", [("age", "age")]), None, "pairs of two columns"),
        (("pay", [("age", "ward"), ("ward", "age")]), None, "pairs of two columns"),
        (("pay", [("age", "ward")]), None, "do not determine age x ward x pay"),
        (("ward", ["age"]), None, "say which of its values"),
        (("pay", ["age"], "logistic"), None, "say which of its values"),
        (("pay", ["age"], "probit"), None, "kind must be"),
        (("ill", ["age", "ward"]), {"age": 3}, "numerical"),
        (("ill", ["age", "ward"]), {"pay": 1}, "not in on="),
        (("ill", ["ward"]), {"ward": ["A", "B"]}, "not a single value"),
    ],
)
def test_what_cannot_be_regressed_is_refused_in_words(arguments, reference, said):
    with pytest.raises(ValueError, match=said):
        regression(questions(drawn()), *arguments, reference=reference)


def test_a_pair_that_was_not_measured_is_named_and_so_is_a_column_that_noise_hides():
    asked = questions(drawn(), pairs=[("age", "ward"), ("ward", "ill")])
    with pytest.raises(ValueError, match="do not determine age x ill"):
        regression(asked, "ill", ["age", "ward"])
    with pytest.raises(ValueError, match="Too few rows are known to have ward = B, ward = C"):
        regression(questions(drawn(300), stddev=400.0), "ill", ["ward"])


def test_first_dates_and_cut_cells_are_noted_and_a_column_of_one_value_is_refused():
    age = {"sdtype": "numerical", "range_min": 0, "range_max": 99, "decimal_places": 0}
    site = {"sdtype": "categorical", "range_values": ["A"]}
    seen = ranged("datetime", "01.02.2024", "04.02.2024", datetime_format="%d.%m.%Y")
    facts = {"age": age, "site": site, "ill": {"sdtype": "boolean"}, "seen": seen}
    columns = Schema.from_sdv(facts, num_bins=10)
    note, _ = design_of(columns.named, "age", ["seen"], "linear", held={}).notes
    assert note == "'seen' counts in days since 01.02.2024."
    for low, is_cut in ((60, False), (65, True)):
        found = design_of(columns.named, "age", ["ill"], "linear", held={}, event=Between(low))
        assert any("cuts cells of 'age'" in note for note in found.notes) is is_cut
    with pytest.raises(ValueError, match="'site' has one value alone"):
        design_of(columns.named, "age", ["ill", "site"], "linear", held={})


def test_wide_cells_and_rows_beyond_a_range_are_noted_where_their_numbers_count():
    pay = {**FACTS["pay"], "range_max": 1_000_000, "cut_points": [*range(1, 16)]}
    tailed = replace(questions(drawn()), schema=Schema.from_sdv({**FACTS, "pay": pay}))
    for event, is_noted in ((None, True), (Between(8), False)):
        notes = regression(tailed, "pay", ["age"], event=event).notes
        assert any("Much of 'pay' lies" in each for each in notes) is is_noted
    assert "Much of" not in str(regression(questions(drawn()), "pay", ["age"]))
    unseen = Undetected(rows=12.0, below=False, above=True)
    asked = replace(questions(drawn()), undetected={"pay": unseen})
    for event, is_noted in ((None, True), (Between(8), False)):
        notes = regression(asked, "pay", ["age"], event=event).notes
        assert any("12 rows may lie beyond it and count" in each for each in notes) is is_noted
    assert "may lie beyond" in str(regression(asked, "ill", ["pay"]))


def test_columns_that_say_the_same_and_too_many_features_are_refused(monkeypatch):
    codes = drawn()
    codes[:, 2] = codes[:, 0]
    for kind in ("linear", "logistic"):
        with pytest.raises(ValueError, match=r"told apart|follow from others"):
            regression(questions(codes), "ill", ["age", "pay"], kind)
    monkeypatch.setattr("sdv_privpgd.inference.regression.MOST_FEATURES", 5)
    with pytest.raises(ValueError, match="5 is the limit"):
        regression(questions(drawn()), "ill", ["age", "ward"], "logistic")


def test_the_text_has_a_table_and_says_what_is_the_noise_s():
    found = regression(questions(drawn(), stddev=5.0), "pay", ["age", "ward"])
    assert isinstance(found, Regression)
    text = str(found)
    assert "Linear regression of pay on age, ward, about 3,000 rows" in text
    assert "[0.025" in text
    assert "% of the variances" in text
    assert found.interval(0.5)["low"].gt(found.interval(0.9)["low"]).all()
