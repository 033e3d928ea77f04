"""What a fit says of itself: a planted fault is told, a healthy table is met with silence."""

import datetime
import math
import re
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from answers import answered, charge_of, number_of_rows
from columns_of_words import ranged
from hypothesis import given
from hypothesis import strategies as st
from made_up import quiet

from sdv_privpgd import (
    Boolean,
    Datetime,
    Link,
    MSTSynthesizer,
    Numerical,
    People,
    draft_metadata,
    fit_table,
    fit_tables,
    measure,
)
from sdv_privpgd.base.linear_thresholds import Cut, Line
from sdv_privpgd.cli.messages import in_options
from sdv_privpgd.columns.facts import CategoryFacts, DateFacts, NumberFacts, TruthFacts
from sdv_privpgd.columns.parser import describe, read_facts
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.estimate.support import FINE_GRIDS
from sdv_privpgd.inference.conditions import CodeValues
from sdv_privpgd.inference.question_list import Question
from sdv_privpgd.methods import ParticleGradientDescent, PrivPGD
from sdv_privpgd.methods.pipeline import Release
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import (
    Adjacency,
    CutMarginalQuery,
    GroupedMarginalQuery,
    Measurement,
)
from sdv_privpgd.report.measures import PublicFacts
from sdv_privpgd.report.warnings import OPENING, Rank, warnings_of

STDDEV = 20.0


def whole(low, high, *cuts, **more):
    """A column of whole numbers, with or without cuts."""
    facts = ranged("numerical", low, high, decimal_places=0)
    return facts | ({"cut_points": list(cuts)} if cuts else {}) | more


def dated(low, high, *cuts, **more):
    """A column of dates, with or without cuts."""
    known = {"cut_points": [str(np.datetime64(cut)) for cut in cuts]} if cuts else {}
    return ranged("datetime", low, high, **known, **more)


AGE = whole(18, 65)
WARD = {"sdtype": "categorical", "range_values": ["A", "B", "C"], "other_value": "other"}
CITY = {"sdtype": "categorical", "range_values": [f"city {number}" for number in range(8)]}
TRUTH = {"sdtype": "boolean"}
INCOME = {**whole(0, 100_000, *range(10, 101, 10), 1_000), "decimal_places": None}


def measured(facts, shares, *, num_rows=10_000, seed=0, stddev=STDDEV):
    """The column's schema, and answers about it: so many parts for each value, missing last."""
    schema = Schema.from_sdv({"x": facts}, num_bins=12)
    (size,) = schema.domain().sizes
    parts = np.array([*shares, *[0.0] * (size - len(shares))])
    counts = np.rint(parts / parts.sum() * num_rows)
    noisy = counts + np.random.default_rng(seed).normal(0, stddev, size)
    return schema, (number_of_rows(num_rows), answered("x", noisy, stddev))


def of(schema, measurements, delta=1e-6, **known):
    ledger = PrivacyLedger.open(1.0, delta, Adjacency.REPLACE_ONE)
    release = Release(domain=schema.domain(), ledger=ledger, measurements=measurements, model=None)
    return PublicFacts(schema=schema, release=release, ledger=ledger, **known)


def fitted(facts, shares, *, delta=1e-6, **how):
    """The public facts of a fit of one column."""
    return of(*measured(facts, shares, **how), delta, declared={"x": read_facts("x", facts)})


def lines(facts):
    """The warnings without their summary."""
    said = warnings_of(facts)
    return said[1:] if said and " usable, " in said[0] else said


@pytest.mark.parametrize("has_line", [False, True])
def test_columns_of_which_nothing_was_asked_are_lost_and_all_columns_are_counted(has_line):
    schema = Schema.from_sdv({"x": TRUTH, "y": TRUTH, "z": TRUTH}, num_bins=12)
    answers = [number_of_rows(1_000), answered("x", [500.0, 500.0, 0.0], STDDEV)]
    if has_line:
        query = CutMarginalQuery((), (Cut((Line("y", (0, 1, 2)),), (1,), (0,)),))
        answers.append(Measurement(query=query, answer=np.array([400, 600]), stddev=STDDEV))
    summary, made_up, *_ = warnings_of(of(schema, answers, declared={}))
    number, names = (1, "'z'") if has_line else (2, "'y', 'z'")
    assert summary == f"{3 - number} of 3 columns usable, 0 doubtful, {number} lost."
    assert f"asked nothing of these columns: {names}. Choose" in made_up


def bell(size=12):
    return np.exp(-(np.linspace(-2, 2, size) ** 2))


# fmt: off
HEALTHY = {
    "a bell": (AGE, bell()),
    "even": (AGE, np.ones(12)),
    "half missing, as declared": (AGE | {"range_is_nullable": True}, [*bell(), 0.9 * sum(bell())]),
    "hardly any missing": (AGE, [*bell(), 0.005 * bell().sum()]),
    "others": (WARD, [5, 3, 2, 0.1, 0.1]),
    "missing where all values are read": (WARD, [5, 3, 2, 0.1, 6]),
    "mostly zero": (whole(0, 65, 1, *range(6, 60, 6), 60), [90, *[1] * 11]),
    "some others": (WARD, [5, 3, 2, 4]),
    "counts beyond all dates": (whole(20_190_101, 99_999_999), [1] * 12),
    "few cities are rare": (CITY, [5, 5, 5, 5, 5, 0.01, 0.01, 0.01]),
    "two values, one rare": (WARD | {"range_values": ["A", "B"]}, [99.5, 0.5]),
}
# fmt: on


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("facts", "shares"), HEALTHY.values(), ids=HEALTHY)
def test_a_healthy_column_is_met_with_silence(facts, shares, seed):
    if facts["sdtype"] == "numerical":
        facts = {**facts, "range_max": facts["range_max"] - 1}
    assert warnings_of(fitted(facts, shares, seed=seed)) == ()


# fmt: off
PLANTED = {
    "mostly in one wide cell": (whole(0, 65), [90, *[1] * 11], "Wide cells hide .*: 'x'"),
    "all missing": (AGE, [*[0] * 12, 1], r"^Nearly all values are missing: 'x' \(.*100 %\)"),
    "points for thousands": (AGE, [*[0.05] * 6, *[0] * 6, 0.7], r"70 %.*separators of thousands"),
    "a wrong spelling": (CITY, [*[1] * 8, 3], r"Many.*2\d %.* not in the codebook"),
    "a category too few": (CITY, [*[1] * 8, 1.4], r"Many.*1\d %.*takes in all that is not decl"),
    "some missing": (AGE, [*[1] * 12, 0.4], r"^Some values are missing: 'x' \(\d(\.\d)? %\)"),
    "a rare category too few": (CITY, [*[1] * 8, 0.5], r"Some .*: 'x' \(\d(\.\d)? %\)"),
    "mostly missing, as allowed": (
        AGE | {"range_is_nullable": True}, [*[1] * 12, 20],
        r"^Most values are missing: 'x' \(6\d %\)\. Or they are not read as numbers"),
    "dates without a format": (
        dated("2020-01-01", "2020-12-31"), [*[0] * 12, 1],
        "^Nearly all.*declare their datetime_format"),
    "dates of another format": (
        dated("01.01.2020", "31.12.2020", datetime_format="%d.%m.%Y"), [*[1] * 12, 6],
        r"3\d %.*written as '%d\.%m\.%Y'"),
    "words for truths": (TRUTH, [5, 2, 3], "30 %.*true and false, 1 and 0"),
    "missing where all is read": (WARD, [1, 1, 1, 1, 9], r"^Most.* 'x' \((69|70) %\)\.$"),
    "all other": (WARD, [0, 0, 0, 1], r"^Nearly all .*'other' in .*100 %.*the codebook"),
    "mostly other": (WARD, [1, 1, 1, 9], r"^Many values are not .*: 'x' \('other' in \d\d %\)"),
    "clipped above": (AGE, [*bell(11), 2], r"pile up .*: 'x' \(range_max=65 in"),
    "mostly clipped above": (AGE, [*[0.1] * 10, 5, 30], r"pile up .*: 'x' \(range_max=65 in"),
    "clipped below": (AGE, [2, *bell(11)], "pile up .*range_min=18 in"),
    "one value": (CITY, [0, 1, 0, 0, 0, 0, 0, 0], r"^Nearly all rows have one .* \(city 1 in "),
    "one cell": (AGE, [*[0] * 5, 1, *[0] * 6], r"^Nearly all rows have one .* \(38 – 41 in "),
    "dates as numbers": (
        whole(20_190_101, 20_211_231), [1] * 12, r"^Numbers may be dates.*: 'x'"),
    "months as numbers": (
        whole(201_901, 202_112), [1] * 12, r"^Numbers may be dates.*: 'x'"),
    "rare": (CITY, [3, 2, 2, *[0.001] * 5], r"'x' \(5 of 8: city 3, city 4, city 5 and 2 others"),
}
# fmt: on


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("facts", "shares", "told"), PLANTED.values(), ids=PLANTED)
def test_a_planted_fault_is_told(facts, shares, told, seed):
    said = lines(fitted(facts, shares, seed=seed))
    assert any(re.search(told, sentence) for sentence in said), said


@pytest.mark.parametrize(
    ("facts", "size", "ranks"), [(CITY, 8, "1 doubtful, 0 lost"), (AGE, 12, "0 doubtful, 1 lost")]
)
def test_one_value_of_several_is_kept_and_one_wide_cell_is_lost(facts, size, ranks):
    summary, _ = warnings_of(fitted(facts, [0, 1, *[0] * (size - 2)]))
    assert ranks in summary


def test_lost_columns_come_first_and_columns_of_one_kind_share_a_line():
    facts = {"lost": AGE, "well": AGE, "one": CITY, "two": CITY}
    schema = Schema.from_sdv(facts, num_bins=12)
    shares = {"lost": [0] * 12 + [9.9], "well": [1] * 12 + [0]}
    answers = [
        answered([name], np.array(shares.get(name, [1] * 8 + [2])) * 1_000.0)
        for name in ("two", "one", "well", "lost")
    ]
    declared = {name: read_facts(name, each) for name, each in facts.items()}
    answers = (number_of_rows(10_000), *answers)
    known = of(schema, answers, 1e-3, declared=declared, settings=("Of a setting.",))
    summary, lost, doubtful, setting, delta = warnings_of(known)
    assert summary == "1 of 4 columns usable, 2 doubtful, 1 lost."
    assert lost.startswith("Nearly all values are missing: 'lost'")
    assert doubtful.startswith("Many values are missing: 'one' (20 %), 'two' (20 %). Or they are")
    assert (setting, delta[:6]) == ("Of a setting.", "delta=")
    assert warnings_of(known, but=[Rank.DOUBTFUL, Rank.SETTINGS]) == (summary, lost)


@pytest.mark.parametrize("facts", [AGE, CITY, TRUTH], ids=str)
def test_the_share_that_is_told_is_silenced_by_a_declaration(facts):
    size = Schema.from_sdv({"x": facts}, num_bins=12).domain().sizes[0] - 1
    shares = [*[1] * size, size / 3]
    (told,) = lines(fitted(facts, shares))
    assert "range_is_nullable=True" in told
    assert lines(fitted({**facts, "range_is_nullable": True}, shares)) == ()


def test_truths_of_a_dtype_of_truths_are_not_written_otherwise():
    facts = fitted(TRUTH, [5, 2, 3])
    for dtype in (pd.BooleanDtype(), pd.ArrowDtype(pa.bool_())):
        assert lines(replace(facts, schema=facts.schema.typed({"x": dtype}))) == ()


@pytest.mark.parametrize(
    ("values", "remedy"),
    [
        ([datetime.time(hour) for hour in range(8)], "declare their range_values"),
        ([datetime.date(2024, 1, day) for day in range(1, 9)], "give them the sdtype datetime"),
    ],
)
def test_values_that_discovery_did_not_find_are_not_said_to_be_missing(values, remedy):
    """Times and dates have no category for others."""
    facts = fitted({"sdtype": "categorical", "range_values": values}, [*[1] * 8, 9])
    (said,) = lines(replace(facts, declared={"x": CategoryFacts()}))
    assert f"Or they are values that too few rows share to be found: {remedy}" in said


@pytest.mark.parametrize("part", [0.45, 0.02])
def test_columns_with_many_rare_values_are_named_with_their_shares(part):
    facts = fitted(WARD, [*[(1 - part) / 3] * 3, part])
    assert lines(facts) == ()  # somebody named that value
    said = lines(replace(facts, declared={"x": CategoryFacts()}))
    assert ["'x' ('other' in " in each for each in said] == [True] * (part > 0.1)


def test_no_reason_means_no_words():
    others = fitted(WARD, [0, 0, 0, 1])
    (said,) = lines(replace(others, declared={"x": CategoryFacts()}))
    assert "give it the sdtype id" in said
    assert "name it: people=People(column" in said
    assert "Dates and times need the sdtype datetime" in said
    facts = fitted(AGE, [*bell(11), 2])
    assert lines(facts) != ()
    assert lines(replace(facts, declared={"x": NumberFacts()})) == ()
    assert lines(replace(facts, counted={"x"})) == ()
    for facts, dtype in ((TRUTH, pd.BooleanDtype()), (AGE, pd.Int64Dtype())):
        size = 2 if facts["sdtype"] == "boolean" else 12
        plain = fitted(facts, [*[1] * size, 3 * size])
        typed = replace(plain.schema.columns[0], dtype=dtype)
        assert any("Or they are" in each for each in lines(plain))
        (said,) = lines(replace(plain, schema=replace(plain.schema, columns=(typed,))))
        assert said == "Most values are missing: 'x' (75 %)."


@pytest.mark.parametrize("num_rows", [1, 10, 60])
def test_a_column_that_is_mostly_noise_is_not_called_usable(num_rows):
    summary, *_ = warnings_of(fitted(CITY, np.ones(8), num_rows=num_rows))
    assert summary == "0 of 1 column usable, 1 doubtful, 0 lost."


def test_rows_that_are_too_few_are_told_with_the_number_that_would_do():
    (told,) = lines(fitted(AGE, np.ones(12), num_rows=500))
    moved = 13 * STDDEV / math.sqrt(2 * math.pi)
    assert told.startswith("The rows are few")
    assert "12 % of its values may be missing unseen" in told
    number = int(told.split("From about ")[1].split(" rows")[0].replace(",", ""))
    assert moved / 0.05 <= number <= 1.1 * moved / 0.05
    assert warnings_of(fitted(AGE, np.ones(12), num_rows=number)) == ()


@pytest.mark.parametrize(("delta", "is_told"), [(1e-4, True), (2e-4, True), (9e-5, False)])
def test_a_delta_is_held_against_the_number_of_rows(delta, is_told):
    said = lines(fitted(AGE, np.ones(12), delta=delta))
    assert [sentence.startswith("delta=") for sentence in said] == [True] * is_told


def test_doubts_of_discovery_are_passed_on_and_nothing_is_said_of_columns_or_tables_that_lack():
    even = fitted(AGE, np.ones(12))
    doubt = "The range of 'x' may be noise."
    assert lines(replace(even, diagnostics={"x": doubt})) == (doubt,)
    assert warnings_of(replace(even, release=None, schema=Schema(()))) == ()
    kept = replace(even.release, measurements=even.release.measurements[:1])
    assert warnings_of(replace(even, release=kept)) == ()


FACTS = st.sampled_from(
    [
        AGE, whole(65, 65), whole(0.0, 0.0, decimal_places=None),
        whole(0.0, 1.0, decimal_places=None, range_is_nullable=False),
        dated("2020-01-01", "2020-12-31"),
        {**CITY, "range_values": list(range(600)), "frequencies": [1.0] * 600},
        whole(0, 9, 1, 5, decimal_places=None), WARD,
    ]
)  # fmt: skip


@given(facts=FACTS, data=st.data(), num_rows=st.integers(0, 10**6))
def test_no_answer_however_odd_stops_it(facts, data, num_rows):
    schema = Schema.from_sdv({"x": facts}, num_bins=12)
    (size,) = schema.domain().sizes
    odd = st.integers(-(10**6), 10**7)
    answer = np.array(data.draw(st.lists(odd, min_size=size, max_size=size)))
    stddev = data.draw(st.sampled_from([0.0, 1.0, 1e6]))
    answers = (number_of_rows(num_rows, stddev), answered("x", answer, stddev))
    said = warnings_of(of(schema, answers, declared={"x": read_facts("x", facts)}))
    assert all(isinstance(sentence, str) for sentence in said)


@pytest.mark.parametrize(("num_rows", "told"), [(200_000, False), (25_000, True)])
def test_tails_that_discovery_cannot_have_seen_are_told(num_rows, told):
    charge = charge_of("rounded Gaussian", FINE_GRIDS, 1, 200, (2, 1), 100.0, 0.01, 0)
    facts = fitted(AGE, bell(), num_rows=num_rows)
    facts = replace(facts, ledger=replace(facts.ledger, charges=(charge,)))
    assert lines(facts) == ()  # the range is declared
    said = lines(replace(facts, declared={"x": NumberFacts(low=18)}))
    assert ["about 400 rows (1.6 %) have when the ranges of 'x'" in each for each in said] == [
        True
    ] * told


@pytest.mark.parametrize(
    ("declared", "last", "told"),
    [({}, 0, True), ({"low": 0}, 0, True), ({"low": 0, "high": 0}, 0, False), ({}, 9, False)],
)
def test_a_column_that_was_found_to_be_constant_is_told(declared, last, told):
    facts = fitted(whole(0, last) | {"num_bins": 1}, [1.0])
    facts = replace(facts, declared={"x": NumberFacts(**declared)})
    said = lines(facts)
    assert any("One value was found in all rows: 'x' (0" in each for each in said) == told


SPREAD = "Wide cells hide how rows are spread: 'x'"
PAID = whole(0, 280, decimal_places=2)
CENTS = {"cut_points": [*(cent / 100 for cent in range(1, 9)), 1.0, 10.0], "num_bins": 2}
LONG, NOBODY = INCOME | {"range_max": 1e6}, {"frequencies": [9] * 10 + [1e-6] * 2}
SHORT = INCOME | {"range_max": 500, "frequencies": [9] * 10 + [1e-6]}
SHORT |= {"cut_points": list(range(10, 101, 10))}
TAILS = {
    "a hundredth anywhere between 1,000 and 100,000": (INCOME, [*[9] * 11, 1], True),
    "nobody beyond 100, and a range to 10^6": (LONG | NOBODY, [9] * 10, False),
    "nobody beyond 100, and a range to 500": (SHORT, [9] * 10, False),
    "four of ten rows above 0, drawn at its very beginning": (
        PAID | CENTS | {"frequencies": [60, *[5] * 8, 1e-7, 1e-9]}, [60, 40], True
    ),
    "nearly all missing": (INCOME, [*[0.01] * 11, 0.05, 99], False),
    "few ones among zeros, in cells of their own": (whole(0, 1), [99.7, 0.3], False),
}  # fmt: skip


@pytest.mark.parametrize(("facts", "shares", "told"), TAILS.values(), ids=TAILS)
def test_cells_that_reach_far_out_and_decide_a_mean_are_told(facts, shares, told):
    said = lines(fitted(facts, shares, num_rows=50_000))
    assert any(each.startswith(SPREAD) for each in said) == told


@pytest.mark.parametrize(
    ("last", "noise", "told"), [(20, 10, True), (5, 10, False), (20, 0.001, False), (0, 0, False)]
)
def test_noise_in_few_rows_far_out_moves_a_mean(last, noise, told):
    ends = np.array([0.0, 10.0, 20.0, 30.0, 9_000.0])
    values = CodeValues(ends, ends + 9, ends + 4.5, np.full(5, 3.0), 1)
    counts = np.array([1_000.0, 1_000.0, 1_000.0, 1_000.0, last])
    assert values.moved_by_noise(counts, noise, 0.1).tolist() == [False] * 4 + [told]


@pytest.mark.parametrize(("noise", "told"), [(0, False), (100, False), (300, True)])
def test_a_shape_that_noise_made_counts_as_none(noise, told):
    lows, highs, means = np.array([[0.0, 1.0], [0.9, 2_000.0], [0.5, 1_968.0]])
    values = CodeValues(lows, highs, means, np.array([0.3, 18.0]), np.array([24, 25]))
    assert values.heavy(np.array([300.0, 1_200.0]), 0.1, noise).tolist() == [False, told]


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"num_bins": 32}, True),
        ({"cut_points": [1, *range(9, 279, 9)]}, False),  # 0 has a cell of its own
    ],
)
def test_a_cell_of_many_rows_in_which_zeros_are_lost_is_told(facts, told):
    paid = {**PAID, "decimal_places": 0, **facts}
    size = describe("x", paid).num_values
    said = lines(fitted(paid, [60, *[40 / (size - 1)] * (size - 1)], num_rows=50_000))
    assert any(each.startswith(SPREAD) for each in said) == told


@pytest.mark.parametrize(
    ("declared", "counted", "advice"),
    [
        ({}, (), "Let a fit see where rows lie (discovery_share above 0), or declare the range"),
        ({}, ("x",), "Declare the range and decimal_places and cut_points that double"),
        ({"high": 65, "decimal_places": 0}, ("x",), "Declare cut_points that double"),
        ({"high": 65, "decimal_places": 0, "cuts": (30,)}, (), "Spend more."),
    ],
)
def test_nothing_is_advised_of_wide_cells_that_was_done(declared, counted, advice):
    known = {"x": NumberFacts(low=0, **declared)}
    facts = replace(fitted(whole(0, 65), [90, *[1] * 11]), declared=known, counted=counted)
    (said,) = (each for each in lines(facts) if each.startswith(SPREAD))
    assert said.partition("any spread. ")[2].startswith(advice)


@pytest.mark.parametrize(("zeros", "advice"), [(60, "Declare cut_points that"), (1, "Spend more.")])
def test_cuts_are_advised_beside_a_value_that_most_rows_have(zeros, advice):
    """Those of 150 to 600 ages had means 2 to 15 times worse with them, rare claims better ones."""
    looked = PAID | CENTS | {"frequencies": [zeros, *[5 if zeros > 1 else 1] * 10], "num_bins": 5}
    known = {"x": NumberFacts(low=0, high=280, decimal_places=2)}
    facts = replace(fitted(looked, [60, *[10] * 4], num_rows=50_000), declared=known, counted="x")
    (said,) = (each for each in lines(facts) if each.startswith(SPREAD))
    assert said.partition("any spread. ")[2].startswith(advice)


TURNS = np.arange(3_000)


@pytest.mark.parametrize(
    "cells", [TURNS * 0 + 4.0, np.where(TURNS % 3, 4.0, np.nan), np.where(TURNS % 140, 0, TURNS)]
)
def test_one_value_of_a_column_that_was_looked_into_is_not_lost(cells):
    table = pd.DataFrame({"x": cells, "y": TURNS % 2 > 0})
    columns = {"x": Numerical(nullable=True), "y": Boolean()}
    for _ in range(3):
        with quiet():
            said = fit_table(table, columns, 1.0, method="independent").warnings
        assert not any(" lost" in each and "0 lost" not in each for each in said)
        assert np.nanmax(cells) > 4 or not any(each.startswith("How rows are") for each in said)


@pytest.mark.parametrize(
    ("declared", "advice"), [(WARD, "Check the codebook"), (None, "If each row has another value")]
)
def test_a_codebook_is_to_be_checked_where_there_is_one(declared, advice):
    facts = fitted(WARD, [0.1, 0.1, 0.1, 9])
    if declared is None:
        facts = replace(facts, declared={"x": CategoryFacts()})
    (said,) = (each for each in lines(facts) if each.startswith("Nearly all values are not among"))
    assert said.partition(" %). ")[2].startswith(advice)


@pytest.mark.parametrize(
    ("stddev", "part", "told"), [(1e4, 0.5, True), (1e3, 0.5, False), (200, 0.994, False)]
)
def test_noise_that_hides_relations_is_told(stddev, part, told):
    """In yes/no columns of equal shares a correlation's noise s is 2 sigma in n rows."""
    even = np.zeros((3, 3))
    even[:2, :2] = 10_000 * np.array([[part], [1 - part]])
    answers = (number_of_rows(20_000), answered("ab", even, stddev))
    schema = Schema.from_sdv(dict.fromkeys("ab", TRUTH))
    facts = of(schema, answers, declared=dict.fromkeys("ab", TruthFacts(nullable=True)))
    said = [each for each in lines(facts) if "Correlations" in each]
    assert ["50 %" in each for each in said] == [True] * told


def test_pairs_that_were_too_many_are_counted():
    rng = np.random.default_rng(0)
    codes = {name: rng.integers(0, 2, 900).astype(bool) for name in "abcd"}
    columns = dict.fromkeys(codes, TRUTH)
    engine = ParticleGradientDescent(num_particles=200, epochs=2)
    for most, told in ((6, False), (2, True)):
        with quiet():
            method = PrivPGD(most_pairs=most, engine=engine)
            done = fit_table(pd.DataFrame(codes), columns, 5.0, method=method)
        assert ("of 6 pairs" in " ".join(done.warnings)) == told


def test_the_table_of_a_listed_question_is_no_pair_too_many():
    rows = pd.DataFrame({"age": [20, 30, 40] * 300, "ward": ["A", "B", "C"] * 300})
    asked = [Question(what="mean", of="age", where={"ward": "A"})]
    how = {"method": "independent", "questions": asked}
    with quiet():
        done = fit_table(rows, {"age": AGE, "ward": WARD}, 5.0, **how)
    queries = [each.query for each in done.fitted.release.measurements]
    assert any(isinstance(each, GroupedMarginalQuery) for each in queries)
    assert "groups of values" not in " ".join(done.warnings)


# Codes for missing: numbers and dates that many rows have, far from all others.

AGED, NEAR = whole(-99, 90, -98, *range(18, 79, 12)), whole(-9, 90, -8, *range(18, 79, 12))
OTHER = whole(-95, 90, -94, *range(18, 79, 12))
WAVES = dated("2019-01-01", "2021-01-01", "2019-01-02", "2020-01-01", "2020-01-02", "2021-01-01")
LATER = dated("2020-03-01", "2021-01-01", "2020-03-02", "2021-01-01")
ABOVE, BEYOND = (whole(0, last, 20, 40, 60, 80, 100, 999) for last in (999, 1_020))
TAIL, ZERO = whole(0, 5_000, 1, 100, 300, 1_000), whole(0, 511, 1, 256, 320, 384, 448)
SEEN = dated(
    "1900-01-01", "2022-12-31", "1900-01-08", "2021-01-01", "2021-06-01", "2022-01-01", "2022-06-01"
)
STARTS = ("2020-01-01", "2020-06-01", "2021-01-01", "2021-06-01", "2022-01-01")
LEFT = dated(STARTS[0], "2262-04-10", *STARTS[1:], "2262-03-25")
BORN = dated(
    "1900-01-01", "2000-12-31", "1930-01-01", "1950-01-01", "1970-01-01", "1985-01-01", "1990-01-01"
)
BELL, ANSWERS, UPPER = [0, 2, 3, 4, 3, 2, 1], [5, 9, 8, 6, 4], [3, 4, 3, 2, 1, 0]


def single(low, high):
    """A code for each number."""
    return whole(low, high, *range(low + 1, high + 1))


TEXT_LEFT = {**LEFT, "datetime_format": "%Y-%m-%d"}
CODES = {
    "below": (AGED, [2.5, *BELL], "-99"),
    "above": (ABOVE, [*UPPER, 2], "999"),
    "a cell that ends a little beyond it": (BEYOND, [*UPPER, 0.8], "999 – 1,020"),
    "1 to 5 and 9": (single(1, 9), [*ANSWERS, 0, 0, 0, 2], "9"),
    "-9 and 1 to 5": (single(-9, 5), [1, *[0] * 9, *ANSWERS], "-9"),
    "0 to 20 and 99": (single(0, 99), [*[1] * 21, *[0] * 78, 1], "99"),
    "1900": (SEEN, [1.0, 0, 4, 4, 4, 4], "1900-01-01 – 1900-01-07"),
    "9999": (LEFT, [4, 4, 4, 4, 0, 1.3], "2262-03-25 – 2262-04-10"),
    "9999 in text": (TEXT_LEFT, [4, 4, 4, 4, 0, 1.3], "2262-03-25 – 9999-12-31"),
}
NO_CODES = {
    "few rows": (AGED, [0.1, *BELL], 0.01),
    "no usual code": (OTHER, [0.8, *BELL], 0.01),
    "large noise": (AGED, [1] * 8, 0.2),
    "zeros and a tail": (TAIL, [9, 2, 2, 2, 1], 0.01),
    "zero, far from all others": (ZERO, [8, 0, 3, 4, 5, 6], 0.01),
    "near": (NEAR, [2.5, *BELL], 0.01),
    "even": (AGED, [1] * 8, 0.01),
    "a wide cell that begins with one": (BEYOND | {"range_max": 1_200}, [*UPPER, 0.8], 0.01),
    "the rest of a tail": (single(0, 9), [9, 6, 4, 3, 2, 1.5, 1, 0.8, 0.5, 1.6], 0.005),
    "an end like all others": (single(1, 9), [1] * 9, 0.005),
    "two numbers in a wider range": (single(0, 9), [0, 5, 4, *[0] * 7], 0.005),
    "few codes": (single(1, 9), [*ANSWERS, 0, 0, 0, 0.2], 0.005),
    "a number that is no code": (single(1, 11), [*ANSWERS, *[0] * 5, 1], 0.005),
    "a wide cell beside one number": (whole(-1, 1_000, 0, 2, 512), [0.8, 0, 0.2, 0], 0.005),
    "a tail of dates": (SEEN, [1.0, 4, 4, 4, 4, 4], 0.01),
    "births": (BORN, [1, 2, 3, 4, 4, 4], 0.01),
    "three years' first days": (WAVES, [1, 0, 1, 0, 1], 0.01),
    "a year's first day beside one other day": (LATER, [1, 0, 1], 0.01),
    "a late tail": (LEFT, [4, 4, 4, 4, 1.3, 1.3], 0.01),
}


def on_codes(facts, parts, seed, error=0.01, *, declared=False):
    """The sentence on codes, where an error is three standard deviations of the noise."""
    found = fitted(facts, parts, seed=seed, num_rows=10**6, stddev=error / 3 * 10**6, delta=1e-9)
    blank = NumberFacts() if facts["sdtype"] == "numerical" else DateFacts()
    found = found if declared else replace(found, declared={"x": blank})
    return [each for each in lines(found) if "codes for missing" in each]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize(("facts", "parts", "told"), CODES.values(), ids=CODES)
def test_a_code_is_told(facts, parts, told, declared, seed):
    error = 0.005 if facts.get("cut_points", [0])[0] in (1, 2, -8) else 0.01
    (sentence,) = on_codes(facts, parts, seed, error, declared=declared)
    assert f"'x' ({told} in " in sentence
    assert "missing_codes" in sentence
    assert "with --na where" in in_options(sentence)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("facts", "parts", "error"), NO_CODES.values(), ids=NO_CODES)
def test_other_numbers_and_dates_are_met_with_silence(facts, parts, error, seed):
    assert on_codes(facts, parts, seed, error) == []


ROWS = 4_000
CAME = pd.Timestamp("2023-01-01") + pd.to_timedelta(np.arange(ROWS) % 365, "D")
RNG = np.random.default_rng(0)


def told(columns, first="2022-09-01"):
    table = pd.DataFrame({"came": CAME, **columns})
    year = {"range_min": first, "range_max": "2024-06-30"}
    synthesizer = MSTSynthesizer(
        draft_metadata(table.dtypes), 5.0, public_domain=dict.fromkeys(table, year)
    )
    synthesizer.fit(table)
    return [each for each in synthesizer.warnings_ if "Inequality" in each]


def later(days):
    return CAME + pd.to_timedelta(days, "D")


@pytest.mark.filterwarnings("ignore::UserWarning")
class TestOrder:
    def test_a_discharge_after_admission_is_told_where_cells_tell_it(self):
        (sentence,) = told({"left": later(RNG.gamma(2.0, 15.0, ROWS).astype(int))})
        assert sentence.startswith("Dates seem to be in order")
        assert "the constraint Inequality('came', 'left')." in sentence
        (sentence,) = told({"left": later(RNG.integers(0, 2, ROWS))})
        assert "Inequality(earlier, later) of 'came' and 'left'." in sentence

    def test_dates_that_few_rows_have_are_in_no_order(self):
        seen = pd.Series(RNG.permutation(CAME)).where(np.arange(ROWS) < 40)
        assert [told({"seen": seen}) for _ in range(8)] == [[]] * 8

    @pytest.mark.parametrize("start", ["came", None])
    def test_a_visit_after_its_parents_date_is_told_unless_it_starts_there(self, start):
        days = Datetime("2022-09-01", "2024-06-30")
        people = pd.DataFrame({"key": range(ROWS), "came": CAME})
        visits = people[["key"]].assign(seen=later(RNG.gamma(2.0, 15.0, ROWS).astype(int)))
        found = fit_tables(
            {"people": people, "visits": visits},
            {"people": {"came": days}, "visits": {"seen": days}},
            Link("people", "visits", "key", 2, order="seen", start=start),
            *(5.0, 1e-6),
        )
        said = " ".join(found.warnings)
        assert said.count("Inequality") == said.count("people.came") == (start is None)

    @pytest.mark.parametrize("order", [1, -1])
    def test_other_dates_are_met_with_silence(self, order):
        shuffled = RNG.permutation(CAME)
        assert told({"seen": shuffled}) == []  # no order
        assert told({"seen": later(order * RNG.integers(-90, 91, ROWS))}) == []  # either order
        born = CAME - pd.to_timedelta(RNG.integers(7_000, 30_000, ROWS), "D")
        assert told({"born": born}, first="1935-01-01") == []  # nor would any others be in order


@pytest.mark.parametrize("fit", [fit_table, partial(measure, site="North")])
def test_what_is_paid_for_is_not_lost_where_warnings_are_errors(fit):
    table = pd.DataFrame({"income": [-1, 2, 3, 4] * 500, "paid": np.arange(2_000) / 20})
    columns = {"income": Numerical(0, 500_000, decimal_places=0), "paid": Numerical(0, 100)}
    with warnings.catch_warnings():
        warnings.filterwarnings("error", OPENING)
        with pytest.raises(UserWarning, match=r"kept in this error, as error\.kept") as caught:
            fit(table, columns, 1.0, method="mst", people=People(rows_are_people=True))
    assert caught.value.kept.ledger.spent() > 0.9
