"""Verdicts on criteria: what an interval decides, what rows say, and what is refused."""

import math

import numpy as np
import pandas as pd
import pytest

from sdv_privpgd import Between, Boolean, Categorical, Numerical, fit_table, plan_table
from sdv_privpgd.inference import Criterion
from sdv_privpgd.inference.acceptance import MET, NOT_MET, UNTOLD, _verdict
from sdv_privpgd.inference.intervals import Interval

RNG = np.random.default_rng(0)
WARD = RNG.choice(["A", "B"], 20_000)
TABLE = pd.DataFrame(
    {
        "ward": WARD,
        "ill": RNG.random(20_000) < np.where(WARD == "B", 0.5, 0.2),
        "age": np.clip(np.rint(RNG.normal(40 + 10 * (WARD == "B"), 8)), 0, 99),
        "note": RNG.choice(["x", "y"], 20_000),
    }
)
TABLE.loc[::9, "age"] = np.nan
COLUMNS = {
    "ward": Categorical(["A", "B"]),
    "ill": Boolean(),
    "age": Numerical(0, 99, decimal_places=0, num_bins=100),
    "note": Categorical(["x", "y"]),
}
SHARE = {"what": "share", "where": {"ill": True}}
SLOPE = {"what": "coefficient", "of": "age", "on": ["ward", "ill"], "term": "ward = B"}


@pytest.fixture(scope="module")
def fitted():
    return fit_table(TABLE, COLUMNS, 5.0, method="privpgd+pgm")


@pytest.mark.parametrize(
    ("bound", "value", "table", "verdict"),
    [
        ({"within": 0.1}, 0.5, (0.45, 0.55), MET),
        ({"within": 0.1}, 0.5, (0.45, 0.65), UNTOLD),
        ({"within": 0.1}, 0.5, (0.65, 0.7), NOT_MET),
        ({"relative": 0.2}, 10.0, (8.4, 12.4), MET),  # 12.4 * 0.8 is below 10
        ({"relative": 0.2}, 10.0, (8.3, 12.4), UNTOLD),
        ({"relative": 0.2}, -10.0, (-12.4, -8.4), MET),
        ({"relative": 0.2}, -10.0, (1.0, 2.0), NOT_MET),
        ({"above": 1.0}, 1.5, (1.1, 9.0), MET),
        ({"above": 1.0}, 1.5, (0.9, 9.0), UNTOLD),
        ({"above": 1.0}, 1.5, (0.1, 0.9), NOT_MET),
        ({"above": 1.0}, 0.9, (1.1, 9.0), NOT_MET),
        ({"below": 1.0}, 0.9, (-3.0, 1.0), MET),
        ({"below": 1.0}, 1.1, (-3.0, 1.0), NOT_MET),
        ({"within": 0.1}, math.nan, (0.45, 0.55), UNTOLD),
        ({"within": 0.1}, 0.5, (-math.inf, math.inf), UNTOLD),
    ],
)
def test_the_interval_decides(bound, value, table, verdict):
    allowed = Criterion(**SHARE, **bound).allowed(value)
    assert _verdict(value, allowed, Interval(*table)) == verdict


def test_what_rows_say_is_computed_of_them_as_pandas_does(fitted):
    rows = fitted.sample(5_000)
    of_b = rows["ward"] == "B"
    old = rows["age"].between(33, 47)
    asked = {
        (rows["ill"] == True).mean(): SHARE,  # noqa: E712 - some are missing
        (old & of_b).sum() / of_b.sum(): {
            "what": "share", "where": {"age": Between(33, 47)}, "among": {"ward": "B"},
        },
        rows["age"].isna().mean(): {"what": "share", "where": {"age": None}},
        (rows["age"].isin([40, 41]) | rows["age"].isna()).mean(): {
            "what": "share", "where": {"age": [40, 41, None]},
        },
        rows["age"].mean(): {"what": "mean", "of": "age"},
        rows["age"][of_b].mean() - rows["age"][~of_b].mean(): {
            "what": "mean", "of": "age", "where": {"ward": "B"}, "minus": {"ward": "A"},
        },
    }  # fmt: skip
    found = fitted.accept([Criterion(**each, within=1.0) for each in asked.values()], rows)
    assert [each.rows for each in found.verdicts] == pytest.approx(list(asked))


@pytest.mark.parametrize("kind", ["linear", "logistic"])
def test_a_coefficient_of_rows_is_that_of_those_that_have_all_values(fitted, kind):
    rows = fitted.sample(30_000)
    how = SLOPE if kind == "linear" else {**SLOPE, "of": "ill", "on": ["ward"], "kind": kind}
    criteria = [Criterion(**how, relative=0.5)]
    (verdict,) = fitted.accept(criteria, rows, level=1 - 1e-6).verdicts
    assert verdict.rows == pytest.approx(coefficient(rows, kind), rel=1e-6)
    assert verdict.verdict == MET
    assert verdict.table.low < coefficient(TABLE, kind) < verdict.table.high


def coefficient(rows, kind):
    """That of ward B, by least squares among rows with all values, or of a two by two table."""
    whole = rows.dropna(subset=["age", "ill", "ward"] if kind == "linear" else ["ill", "ward"])
    is_b, ill = (whole["ward"] == "B").to_numpy(float), whole["ill"].to_numpy(dtype=float)
    if kind == "linear":
        x = np.column_stack([np.ones(len(whole)), is_b, ill])
        return np.linalg.lstsq(x, whole["age"].to_numpy(float), rcond=None)[0][1]
    one, other = (ill[is_b == each].mean() for each in (1, 0))
    return math.log(one / (1 - one) * (1 - other) / other)


def test_rows_that_are_not_like_the_table_do_not_meet_what_others_meet(fitted):
    criteria = [
        Criterion(**SHARE, within=0.02),
        Criterion(**SHARE, among={"ward": "B"}, minus={"ward": "A"}, above=0.2),
        Criterion(**SLOPE, relative=0.2),
    ]
    assert fitted.accept(criteria).is_met
    others = fitted.sample(20_000).assign(ill=True, ward="A")
    found = fitted.accept(criteria, others)
    assert [each.verdict for each in found.verdicts] == [NOT_MET, UNTOLD, NOT_MET]
    assert not found.is_met
    assert "0 of 3 criteria are met" in str(found)
    assert "NOT MET: Share where ill is True, the rows' within 0.02" in repr(found)
    assert found.to_frame()["verdict"].tolist() == [NOT_MET, UNTOLD, NOT_MET]


def test_nothing_is_moved_or_spent_and_what_no_table_knows_cannot_be_told(fitted):
    three = {"ward": "B", "age": Between(33, 47), "note": "x"}
    (verdict,) = fitted.accept([Criterion(what="share", where=three, within=0.5)]).verdicts
    assert verdict.verdict == UNTOLD
    assert verdict.notes == ("The tables do not determine the table's value.",)
    fitted.reset_sampling()
    before = fitted.ledger
    first = fitted.sample(5)
    fitted.accept([Criterion(**SHARE, within=0.1)])
    fitted.reset_sampling()
    pd.testing.assert_frame_equal(fitted.sample(5), first)
    assert fitted.ledger == before
    with pytest.raises(ValueError, match="a list of Criterion"):
        fitted.accept(Criterion(**SHARE, within=0.1))
    with pytest.raises(ValueError, match="a list of Criterion"):
        fitted.accept(["share"])
    with pytest.raises(ValueError, match="rows have no column 'ill'"):
        fitted.accept([Criterion(**SHARE, within=0.1)], fitted.sample(9)[["ward"]])


def test_unique_rows_are_counted_in_the_rows_alone(fitted):
    rows = fitted.sample(400)
    names = ["age", "ward", "ill"]
    alone = int((rows.groupby(names, dropna=False)["age"].transform("size") == 1).sum())
    assert alone > 3
    few = {"what": "unique", "of": names}
    criteria = [Criterion(**few, below=alone), Criterion(**few, below=alone - 1)]
    found = fitted.accept(criteria, rows)
    assert [each.verdict for each in found.verdicts] == [MET, NOT_MET]
    assert str(found).endswith(f"in age, ward, ill, at most {alone - 1}: rows {alone}.")
    assert found.to_frame()["table_low"].isna().all()
    crowded = fitted.crowded(rows, on=names, min_rows_like=2).rows
    assert fitted.accept([Criterion(**few, below=0)], crowded).is_met
    with pytest.raises(ValueError, match="no column 'age'"):
        fitted.accept(criteria, rows[["ward"]])
    for more, is_asked in (criteria, False), ([*criteria, Criterion(**SHARE, within=1)], True):
        plan = plan_table(COLUMNS, 1.0, num_rows=1_000, questions=more)
        assert ("tables of listed questions" in str(plan).replace("\n", " ")) is is_asked


@pytest.mark.parametrize(
    ("told", "match"),
    [
        ({"what": "median", "within": 1}, "what must be"),
        ({"what": "unique", "of": "age", "above": 1}, "has of= and below="),
        (SHARE, "takes one of"),
        ({**SHARE, "within": True}, "is a number"),
        ({**SHARE, "within": -0.1}, "above 0"),
        ({**SHARE, "relative": 1.0}, "below 1"),
        ({**SHARE, "on": ["ward"], "within": 1}, "nothing else has on="),
        ({"what": "coefficient", "of": "age", "within": 1}, "has of= and on="),
    ],
)
def test_what_is_no_criterion_is_refused(told, match):
    with pytest.raises(ValueError, match=match):
        Criterion(**told)


@pytest.mark.parametrize(
    ("told", "match"),
    [
        ({"what": "share", "where": {"wage": 1}, "within": 1}, "wage"),
        ({**SLOPE, "term": "age", "within": 1}, "term must be one of"),
        ({**SLOPE, "term": None, "within": 1}, "term must be one of"),
        ({**SLOPE, "on": ["wage"], "within": 1}, "wage"),
    ],
)
def test_what_cannot_be_asked_is_told(fitted, told, match):
    with pytest.raises(ValueError, match=match):
        fitted.accept([Criterion(**told)])
