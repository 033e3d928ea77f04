"""Answers about tables that belong together hold what is true, by rows, families and holders."""

import numpy as np
import pandas as pd
import pytest

from sdv_privpgd import Between, Boolean, Link, Numerical, fit_tables
from sdv_privpgd.fitting.family_answers import _between
from sdv_privpgd.inference import Criterion, Question
from sdv_privpgd.inference.intervals import Enclosed, Ratio

NUMBER = 4_000
COLUMNS = {
    "homes": {"rents": Boolean(nullable=False)},
    "people": {"ill": Boolean(nullable=False), "age": Numerical(0, 99, decimal_places=0)},
    "pills": {"strong": Boolean(nullable=False)},
}


def tables(most):
    """Homes in which illness runs, and the more people the older they are."""
    rng = np.random.default_rng(0)
    homes = pd.DataFrame({"home": np.arange(NUMBER), "rents": rng.random(NUMBER) < 0.4})
    number = np.minimum(rng.integers(0, most + 1, NUMBER), np.where(homes["rents"], most, 2))
    whose = np.repeat(homes["home"].to_numpy(), number)
    ill = rng.random(len(whose)) < np.where(rng.random(NUMBER) < 0.3, 0.7, 0.1)[whose]
    age = np.clip(rng.normal(40, 10, len(whose)) + 5 * number[whose], 0, 99).round()
    people = pd.DataFrame({"home": whose, "person": range(len(whose)), "ill": ill, "age": age})
    pills = pd.DataFrame({"person": np.repeat(people["person"], 1 + 1 * ill)})
    return {
        "homes": homes,
        "people": people,
        "pills": pills.assign(strong=rng.random(len(pills)) < 0.2).reset_index(drop=True),
    }


@pytest.fixture(scope="module", params=[2, 4])
def fitted(request):
    most = request.param
    links = [Link("homes", "people", "home", most), Link("people", "pills", "person", 2)]
    given = tables(most)
    joined = given["people"].merge(given["homes"], on="home")
    return fit_tables(given, COLUMNS, links, 5.0, 1e-6), given, joined, most


def holds(given, met):
    return given["homes"]["home"].isin(given["people"].loc[met, "home"])


def on_strong_pills(t, j):
    return j["person"].isin(t["pills"].loc[t["pills"]["strong"], "person"])


def small(t, j):
    """Homes of one to three people."""
    return t["homes"]["home"].map(j["home"].value_counts()).fillna(0).between(1, 3)


PEOPLE, HOMES = {"what": "share", "table": "people"}, {"what": "share"}
ILL, STRONG = {"holding": {"people": {"ill": True}}}, {"holding": {"pills": {"strong": True}}}
YOUNG = {"holding": {"people": {"age": Between(0, 45)}}}


@pytest.mark.long
@pytest.mark.parametrize(
    ("asked", "true"),
    [
        ({"what": "count", "table": "people"}, lambda t, j: len(j)),
        ({"what": "count", "table": "pills"}, lambda t, j: len(t["pills"])),
        (PEOPLE | {"where": {"ill": True}}, lambda t, j: j["ill"].mean()),
        (PEOPLE | {"where": {"homes.rents": True}}, lambda t, j: j["rents"].mean()),
        (PEOPLE | {"where": {"age": Between(0, 50)}}, lambda t, j: (j["age"] <= 50).mean()),
        (PEOPLE | {"where": {"ill": True}, "each": "family"},
         lambda t, j: j.groupby("home")["ill"].mean().mean()),
        ({"what": "mean", "table": "people", "of": "age"}, lambda t, j: j["age"].mean()),
        ({"what": "sum", "table": "people", "of": "age"}, lambda t, j: j["age"].sum()),
        (HOMES | {"where": {"rents": True}}, lambda t, j: t["homes"]["rents"].mean()),
        (HOMES | ILL, lambda t, j: holds(t, j["ill"]).mean()),
        ({"what": "count"} | YOUNG, lambda t, j: holds(t, j["age"] <= 45).sum()),
        (HOMES | STRONG, lambda t, j: holds(t, on_strong_pills(t, j)).mean()),
        (HOMES | ILL | {"where": {"rents": True}, "among": {"number of people": Between(1, 3)}},
         lambda t, j: (holds(t, j["ill"]) & t["homes"]["rents"])[small(t, j)].mean()),
        (HOMES | STRONG | {"among": {"rents": True}},
         lambda t, j: holds(t, on_strong_pills(t, j))[t["homes"]["rents"]].mean()),
        (HOMES | ILL | {"among": {"rents": True}},
         lambda t, j: holds(t, j["ill"])[t["homes"]["rents"]].mean()),
    ],
)  # fmt: skip
def test_intervals_hold_what_is_true(fitted, asked, true):
    """At five standard deviations one of a million does not."""
    model, given, joined, _ = fitted
    answer, real = model.answer(**asked), true(given, joined)
    assert answer.estimate == pytest.approx(real, rel=0.15 if answer.basis == "tables" else 0.3)
    if answer.statistic is None:
        assert answer.basis == "model"
        return
    for kind in ("table", "population"):
        low, high = answer.interval(kind, 1 - 1e-6)
        assert low <= real <= high
    own, drawn = (answer.interval(kind) for kind in ("table", "population"))
    assert drawn.low <= own.low
    assert own.high <= drawn.high
    assert str(answer)


@pytest.mark.parametrize("how", ["minus", "over"])
def test_answers_by_rows_have_differences_and_ratios_and_the_model_s_an_interval(fitted, how):
    model, _, joined, _ = fitted
    one, other = ({"ill": ill} for ill in (True, False))
    first, second = (model.answer("share", "people", where=each) for each in (one, other))
    share = joined["ill"].mean()
    true = 2 * share - 1 if how == "minus" else share / (1 - share)
    found = first - second if how == "minus" else first / second
    for kind in ("table", "population"):
        low, high = found.interval(kind, 1 - 1e-6)
        assert low < true < high
    assert found.stddev > 1.9 * first.stddev or how == "over"  # both err by the same
    asked = {"where": {"ill": True}, "among": {"homes.rents": True, "age": Between(0, 50)}}
    answer = model.answer("share", "people", **asked, bootstrap=5)
    low, high = answer.interval("table", 0.999)  # of 95 % ones one in 40 misses
    those = joined[joined["rents"] & (joined["age"] <= 50)]
    assert 0 <= low < those["ill"].mean() < high <= 1
    assert "from 5 repetitions of the fit" in str(answer)


@pytest.mark.long
def test_listed_questions_are_answered_by_tables_of_their_own():
    given, links = (
        tables(3),
        [Link("homes", "people", "home", 3), Link("people", "pills", "person", 2)],
    )
    joined = given["people"].merge(given["homes"]).merge(given["pills"])
    asked = {
        "people": {"where": {"age": Between(33, 47)}, "among": {"homes.rents": True}},
        "pills": {"where": {"strong": True}, "among": {"people.ill": True}},
    }
    people = joined.drop_duplicates("person")
    true = {
        "people": people.loc[people["rents"], "age"].between(33, 47).mean(),
        "pills": joined.loc[joined["ill"], "strong"].mean(),
    }
    questions = {name: [Question(what="share", **own)] for name, own in asked.items()}
    how = {"epsilon": 5.0, "delta": 1e-6, "method": "independent"}
    fitted = fit_tables(given, COLUMNS, links, questions=questions, **how)
    for name, own in asked.items():
        for each in ("row", "family"):
            answer = fitted.answer("share", name, each=each, **own)
            assert answer.basis == "tables"
        low, high = fitted.answer("share", name, **own).interval("table", 1 - 1e-6)
        assert low < true[name] < high < low + 0.25
    plain = fit_tables(given, COLUMNS, links, **how)
    assert plain.answer("share", "people", **asked["people"]).basis == "model"
    for wrong, said in ({"persons": []}, "no tables"), ([], "dictionary of lists by table"):
        with pytest.raises(ValueError, match=said):
            fit_tables(given, COLUMNS, links, questions=wrong, **how)


@pytest.mark.long
def test_who_holds_such_a_row_is_told_of_two_and_bounded_of_more(fitted):
    model, *_, most = fitted
    answer = model.answer("share", holding={"people": {"ill": True}})
    assert answer.basis == ("tables" if most == 2 else "model")
    assert (answer.stddev is None) == (most > 2)
    low, high = answer.interval()
    assert high - low < (0.02 if most == 2 else 0.2)
    before = model.sample(5)["people"]
    model.reset_sampling()
    model.answer("share", holding={"people": {"ill": True}})
    pd.testing.assert_frame_equal(model.sample(5)["people"], before)


@pytest.mark.long
def test_no_more_families_hold_a_row_than_there_are_and_their_number_says_who_holds_any(fitted):
    model, _, joined, _ = fitted
    held, number = joined["home"].nunique(), model.answer("count").interval("table", 1 - 1e-6)
    for wishes in ({}, {"age": Between(0, 99)}):
        answer = model.answer("count", holding={"people": wishes})
        low, high = answer.interval("table", 1 - 1e-6)
        assert low <= held <= high <= number.high
        assert (answer.basis == "tables") >= (not wishes)
    low, high = model.answer("share", holding={"pills": {}}).interval("table", 1 - 1e-6)
    assert low <= held / NUMBER <= high  # everybody has some


def test_an_estimate_lies_in_its_interval_where_noise_turns_what_bounds_it():
    for least, most in ((0.05, -0.012), (-0.05, -0.012), (0.02, 0.06), (1.2, 1.1)):
        noise, drawn = np.diag([20.0**2, 1]), np.zeros((2, 2))
        bounds = [Ratio(each * 900, 900, noise, drawn=drawn) for each in (least, most)]
        low, high = Enclosed(bounds[0], *bounds).interval("table", 0.95)
        found = [_between(model, *bounds) for model in (0.0, 0.04, 0.5)]
        assert low <= min(found) <= max(found) <= high
        assert 0 <= min(found) <= max(found) <= 1
    assert found[1] == pytest.approx(1)


def test_criteria_are_about_rows_and_each_table_has_its_own(fitted):
    model, given, joined, _ = fitted
    ages = [Criterion(what="mean", of="age", within=years) for years in (3, 0.01)]
    ill = Criterion(what="share", where={"ill": True}, within=0.1)
    asked = {"people": [*ages, ill, Criterion(what="unique", of=["ill"], below=0)]}
    asked["homes"] = [Criterion(what="share", where={"number of people": 0}, within=0.1)]
    found = model.accept(asked, given)
    mean, too_close, *others = [each.verdict for each in found.verdicts]
    assert {mean, *others} == {"met"}
    assert too_close != "met"  # a mean is not known to a hundredth of a year
    people = {f"people: {said}" for said in ("Mean of age", "Rows that are unique in ill")}
    assert {each.question for each in found.verdicts} > people
    own, told = found.verdicts[0], model.answer("mean", "people", of="age")
    assert own.rows == pytest.approx(joined["age"].mean())  # and not that of families
    assert own.table == told.interval("table", 0.95)
    wrong = {**given, "people": given["people"].assign(age=90.0)}
    assert model.accept(asked, wrong).verdicts[0].verdict == "not met"
    of_model = model.accept({"people": ages[:1]}).verdicts[0]
    of_families, _ = model.first_families(model.num_rows["homes"])
    assert of_model.rows == of_families["people"]["age"].mean()
    for wrong, why in (
        ({"people": [Criterion(what="coefficient", of="age", on=["ill"], within=1)]}, "are of fam"),
        ({"dogs": ages}, "are no tables"),
        (ages, "a dictionary of lists by table"),
    ):
        with pytest.raises(ValueError, match=why):
            model.accept(wrong)
    with pytest.raises(ValueError, match="The rows are to be"):
        model.accept(asked, {"people": given["people"]})


def test_a_regression_counts_each_family_as_one(fitted):
    model, _, joined, _ = fitted
    found = model.regression("age", ["ill", "homes.rents"], "people")
    terms = np.column_stack([np.ones(len(joined)), joined["ill"], joined["rents"]])
    root = 1 / np.sqrt(joined.groupby("home")["age"].transform("size").to_numpy())
    true = np.linalg.lstsq(terms * root[:, None], joined["age"] * root, rcond=None)[0]
    ends = found.interval(0.9999)
    assert ((ends["low"] < true) & (true < ends["high"])).all()
    assert "Each family counts as one, by its rows' mean." in found.notes
    assert any("were read of each row of 'homes'" in said for said in found.notes)
    assert not any("person" in said for said in found.notes)
    with pytest.raises(ValueError, match="are no tables"):
        model.regression("age", ["ill"], "dogs")


def test_each_reading_is_named(fitted):
    model = fitted[0]
    assert str(model.answer("count", "people", each="family")).startswith("people: Count: ")
    assert model.answer("count", "people", each="family").unit == "families"
    assert model.answer("count").unit == model.answer("count", "people").unit == "rows"
    assert "were read of each row of 'homes'" in str(model.answer("count", "people"))
    assert model.answer("quantile", of="age", table="people", each="family", q=0.5).estimate > 30


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"what": "share", "table": "dogs"}, "which are no tables: choose from"),
        ({"what": "count", "each": "person"}, "each must be one of 'row', 'family'"),
        ({"what": "quantile", "table": "people", "of": "age", "q": 0.5}, "each='family'"),
        ({"what": "mean", "table": "people", "of": "age", "clipped": True}, "each='family'"),
        ({"what": "mean", "holding": {"people": {"ill": True}}}, "for a count or a share"),
        (
            {"what": "count", "holding": {"people": {"ill": True}}, "among": {"rents": True}},
            "takes no among=",
        ),
        ({"what": "count", "holding": {"homes": {"rents": True}}}, "one table below it"),
        ({"what": "count", "table": "people", "holding": {"people": {}}}, "goes with the root"),
        ({"what": "count", "holding": {"people": {"tall": True}}}, "No tables were measured"),
    ],
)
def test_what_cannot_be_asked_is_said(fitted, asked, said):
    with pytest.raises(ValueError, match=said):
        fitted[0].answer(**asked)
