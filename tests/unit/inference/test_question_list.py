"""Questions that are listed before a fit: where cells begin, their tables, and what is refused."""

from datetime import date

import numpy as np
import pandas as pd
import pytest

from sdv_privpgd import (
    Between,
    Boolean,
    Categorical,
    Datetime,
    FittedTable,
    Numerical,
    fit_table,
    plan_table,
)
from sdv_privpgd.columns.cuts import column_of
from sdv_privpgd.columns.facts import CategoryFacts, DateFacts, NumberFacts
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.inference import Criterion, Question
from sdv_privpgd.inference.conditions import code_values, condition_shares
from sdv_privpgd.inference.question_list import queries_for, with_borders
from sdv_privpgd.privacy.queries import GroupedMarginalQuery, MarginalQuery

DAY = 86_400_000_000_000
MANY = tuple(f"town {place}" for place in range(600))
OFTEN = tuple(np.arange(600, 0, -1.0).tolist())
COLUMNS = {
    "numbers": (NumberFacts(low=0, high=999, decimal_places=0), Between(333, 471)),
    "an open end": (NumberFacts(low=0, high=999, decimal_places=0), Between(high=471)),
    "one number": (NumberFacts(low=0, high=999, decimal_places=0), 77),
    "several": (NumberFacts(low=0, high=999, decimal_places=0), [77, 78, 400, None]),
    "cents": (NumberFacts(low=0, high=99, decimal_places=2), Between(33.33, 47.1)),
    "few": (NumberFacts(low=0, high=9, decimal_places=0), Between(3, 4)),
    "increments": (NumberFacts(low=0, high=10_000, increment=10), Between(3_335, 4_711)),
    "reals": (NumberFacts(low=0.0, high=99.0), Between(33.3, 47.1)),
    "shaped": (
        NumberFacts(low=0, high=999, decimal_places=0, cuts=(*range(5, 900, 5),),
                    frequencies=(*(float(place % 7) for place in range(180)),)),
        Between(333, 471),
    ),
    "shaped reals": (
        NumberFacts(low=0.0, high=99.0, cuts=(*np.arange(1.0, 90.0).tolist(),),
                    frequencies=(*(float(place % 7) for place in range(90)),)),
        Between(33.3, 47.1),
    ),
    "dates": (
        DateFacts(low=0, high=2_000 * DAY),
        Between(pd.Timestamp("1971-03-03"), pd.Timestamp("1972-02-29")),
    ),
    "towns": (CategoryFacts(values=MANY, frequencies=OFTEN), ["town 599", "town 3"]),
    "towns in order": (
        CategoryFacts(values=MANY, frequencies=OFTEN, is_ordered=True),
        Between("town 333", "town 471"),
    ),
    "categories": (CategoryFacts(values=("a", "b", "c")), "b"),
}  # fmt: skip


@pytest.mark.parametrize("kind", COLUMNS)
def test_no_condition_cuts_a_code_of_a_listed_question(kind):
    facts, wish = COLUMNS[kind]
    plain = column_of("x", facts)
    asked = [Question(what="count", where={"x": wish}), Question(what="count", where={"y": "?"})]
    column = with_borders(plain, asked)
    assert not condition_shares(column, wish).is_cut
    assert condition_shares(plain, wish).is_cut == (kind not in ("few", "categories"))
    assert plain.num_values <= column.num_values <= plain.num_values + 8
    assert with_borders(column, asked) == column


@pytest.mark.parametrize("kind", COLUMNS)
def test_the_values_and_how_often_they_occur_stay(kind):
    facts, wish = COLUMNS[kind]
    plain = column_of("x", facts)
    column = with_borders(plain, [Question(what="count", where={"x": wish})])
    assert column.cells.ends == plain.cells.ends
    if plain.merging is not None and column.merging is not None:
        assert sum(column.merging.frequencies) == pytest.approx(sum(plain.merging.frequencies))
    positions = np.linspace(0, 0.999, 11)
    for code in range(column.num_values):
        codes = np.full(11, code)
        found, _ = column.locate(column.at(codes, positions))
        np.testing.assert_array_equal(found, codes)


def columns():
    return {
        name: column_of(name, facts)
        for name, facts in {
            "ward": CategoryFacts(values=("A", "B", "C"), nullable=False),
            "age": NumberFacts(low=0, high=99, decimal_places=0, nullable=False),
            "cost": NumberFacts(low=0, high=999, decimal_places=0, nullable=False),
        }.items()
    }


def test_each_question_has_a_table_of_what_it_tells_apart():
    young = {"age": Between(high=30)}
    asked = [
        Question(what="share", where=young, among={"ward": ["A", "B"]}),
        Question(what="mean", of="cost", where=young),
        Question(what="mean", of="cost", where={"age": Between(50, 60)}, minus=young),
        Question(what="table", of=["ward", "cost"]),
        Question(what="quantile", of="age", q=0.5),
        Question(what="coefficient", of="cost", on=["ward", ("age", "ward")]),
        Question(what="count"),
    ]
    known = {name: with_borders(each, asked) for name, each in columns().items()}
    sizes = {name: column.size for name, column in known.items()}
    found = [
        (each.clique, each.shape(Schema(tuple(known.values())).domain()))
        for each in queries_for(asked, known)
    ]
    pair, of_cost = ("ward", "age"), ("age", "cost")
    assert sorted(found) == sorted([
        (pair, (2, 2)),
        (of_cost, (3, sizes["cost"])),
        (("ward", "cost"), (3, sizes["cost"])),  # also of the regression
        (("age",), (sizes["age"],)),
        (("ward", "age", "cost"), (3, sizes["age"], sizes["cost"])),
        (pair, (3, sizes["age"])),
        (of_cost, (sizes["age"], sizes["cost"])),
    ])  # fmt: skip
    queries = queries_for(asked, known)
    assert [type(each) for each in queries if each.clique == ("age",)] == [MarginalQuery]
    assert [type(each) for each in queries if each.clique == pair] == [
        GroupedMarginalQuery,
        MarginalQuery,
    ]


def test_a_listed_mean_counts_the_far_end_of_a_tail_by_itself():
    cuts = (*np.arange(25.0, 1_000, 25).tolist(), *np.arange(1_000.0, 9_000, 1_000).tolist())
    often = (*np.exp(-np.arange(40) / 4).tolist(), *(1e-4 * 2.0 ** -np.arange(8)).tolist())
    facts = NumberFacts(low=0.0, high=100_000.0, cuts=cuts, frequencies=often)
    asked = [Question(what="mean", of="x")]
    plain = column_of("x", facts)
    column = with_borders(plain, asked)
    values = code_values(column)
    masses = np.bincount(column.merging.codes, column.merging.frequencies)
    assert not (values.heavy(masses) & ~values.outermost(masses)).any()
    whole, far = queries_for(asked, {"x": column})
    assert whole == MarginalQuery(("x",))
    (alone,) = np.flatnonzero(np.bincount(far.grouping["x"]) == 1)
    (code,) = np.flatnonzero(far.grouping["x"] == alone)
    assert values.highs[code] == 100_000
    assert 20_000 < values.lows[code] < 30_000  # a quarter of the way


RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "ward": RNG.choice(["A", "B", "C"], 3_000),
        "ill": RNG.random(3_000) < 0.3,
        "age": np.clip(np.rint(RNG.normal(45, 18, 3_000)), 0, 99),
        "cost": RNG.lognormal(6, 1, 3_000).round(2),
        "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(RNG.integers(0, 900, 3_000), unit="D"),
    }
)
DECLARED = {
    "ward": Categorical(["A", "B", "C"], nullable=False),
    "ill": Boolean(nullable=False),
    "age": Numerical(0, 99, decimal_places=0, nullable=False),
    "cost": Numerical(),
    "day": Datetime(date(2020, 1, 1), date(2024, 12, 31)),
}
ASKED = [
    Question(what="count", where={"age": Between(33, 47), "cost": Between(250, 900)}),
    Question(what="share", where={"ill": True, "age": Between(high=33)}, among={"ward": "B"}),
    Question(what="count", where={"day": Between("2020-03-03", "2021-02-02"), "ward": ["A", "C"]}),
    Question(what="count", where={"cost": Between(low=10**9)}),  # beyond what is found
    Criterion(what="mean", of="age", where={"ward": "B"}, minus={"ward": "A"}, above=0),
]


@pytest.mark.parametrize("method", ["privpgd+pgm", "mst", "aim", "independent+gum"])
def test_listed_questions_are_answered_from_tables_and_precisely(method, tmp_path):
    fitted = fit_table(TABLE, DECLARED, 3.0, 1e-5, method=method, questions=ASKED)
    charges = {each.what for each in fitted.ledger.charges}
    assert "tables of listed questions" in charges
    alone = 2 * 1.96 / float(fitted.ledger.budget) ** 0.5
    for asked in ASKED[:3]:
        answer = fitted.answer(asked.what, where=asked.where, among=asked.among)
        low, high = answer.interval("table")
        assert answer.basis == "tables"
        assert not any("cuts cells" in each for each in answer.notes)
        if asked.what == "count":
            assert high - low < 6 * alone
    fitted.save(tmp_path / "model.zip")
    kept = FittedTable.load(tmp_path / "model.zip")
    assert kept.fitted.description.questions == tuple(ASKED)
    assert str(kept.answer("count", where=ASKED[0].where)) == str(
        fitted.answer("count", where=ASKED[0].where)
    )


def test_a_plan_says_how_precise_a_listed_count_will_be():
    whole = {**DECLARED, "cost": Numerical(0, 10_000, decimal_places=2, nullable=False)}
    whole["town"] = Categorical()
    asked = [
        Question(what="count", where={"ill": True, "age": Between(high=33), "ward": "B"}),
        Question(what="count", where={"town": "north", "cost": Between(250, 900)}),
    ]
    frame = TABLE.assign(town=RNG.choice(["north", "south"], len(TABLE)))
    of_all = Question(what="mean", of="age")  # the number of all rows is known
    told: dict = {"epsilon": 2.0, "delta": 1e-5, "method": "privpgd+pgm"}
    told["questions"] = [*asked, of_all]
    plan = plan_table(whole, num_rows=len(TABLE), **told)
    expected = plan.to_dict()["expected"]["questions"]
    fitted = fit_table(frame, whole, **told)
    answers = [fitted.answer("count", where=each.where) for each in asked]
    found = {each.question: 1.96 * (each.stddev or 0) for each in answers}
    # Which pairs are asked twice is not known before.
    assert found == pytest.approx(expected, rel=0.25)
    assert all(question in str(plan) for question in found)


@pytest.mark.parametrize(
    ("questions", "said"),
    [
        ("share of ward", "questions takes a list of Question"),
        ([{"what": "count"}], "questions takes a list of Question"),
        ([Question(what="count", where={"wards": "A"})], "questions names .'wards'."),
        ([Question(what="count", where={"ward": "D"})], "'D' is not in the domain"),
        ([Question(what="mean", of="ward")], "which has no mean"),
        ([Question(what="count", where={"cost": 3, "ward": "D"})], "'D' is not in the domain"),
        ([Question(what="mean", of="age", among={"ward": "A"})], "takes no among="),
    ],
)
def test_what_cannot_be_asked_is_refused_before_spending(questions, said):
    with pytest.raises(ValueError, match=said):
        plan_table(DECLARED, 1.0, num_rows=1_000, questions=questions)


def test_a_method_without_tables_takes_no_questions():
    with pytest.raises(ValueError, match="so it takes no questions"):
        plan_table(DECLARED, 1.0, num_rows=1_000, questions=ASKED, method="dp-merf")


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"what": "median"}, "what must be one of"),
        ({"what": "coefficient", "of": "age"}, "A coefficient has of= and on="),
        ({"what": "mean", "of": "age", "on": ["ward"]}, "A coefficient has of= and on="),
        ({"what": "count", "where": "ward"}, "Conditions are a dictionary"),
    ],
)
def test_what_is_no_question_is_refused(told, said):
    with pytest.raises(ValueError, match=said):
        Question(**told)
