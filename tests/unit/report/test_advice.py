"""What a fit says of itself: a planted fault is told, a healthy table is met with silence."""

import datetime
import math
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdv_privpgd.columns.facts import CategoryFacts, NumberFacts, TruthFacts
from sdv_privpgd.columns.parsing import describe, read_facts
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.discovery.plan import FINE_GRIDS
from sdv_privpgd.pipeline import Release
from sdv_privpgd.privacy.ledger import Charge, PrivacyLedger
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.privacy.queries import Adjacency, CountQuery, MarginalQuery
from sdv_privpgd.report.advice import advice
from sdv_privpgd.report.known_facts import Facts

STDDEV = 20.0
AGE = {"sdtype": "numerical", "range_min": 18, "range_max": 65, "decimal_places": 0}
WARD = {"sdtype": "categorical", "range_values": ["A", "B", "C"], "other_value": "other"}
CITY = {"sdtype": "categorical", "range_values": [f"city {number}" for number in range(8)]}


def fitted(facts, shares, *, num_rows=10_000, seed=0, delta=1e-6, doubts=None, **settings):
    """A fit of one column, of whose values and missing cells there are so many parts."""
    schema = Schema.from_sdv({"x": facts}, num_bins=12)
    (size,) = schema.domain().sizes
    parts = np.array([*shares, *[0.0] * (size - len(shares))])
    counts = np.rint(parts / parts.sum() * num_rows).astype(np.int64)
    noise = np.rint(np.random.default_rng(seed).normal(0, STDDEV, size)).astype(np.int64)
    ledger = PrivacyLedger.open(1.0, delta, Adjacency.REPLACE_ONE, settings.get("rows", 1))
    measurements = (
        Measurement(query=CountQuery(), answer=np.array([num_rows]), stddev=0.0),
        Measurement(query=MarginalQuery(("x",)), answer=counts + noise, stddev=STDDEV),
    )
    release = Release(domain=schema.domain(), ledger=ledger, measurements=measurements, model=None)
    return Facts(
        schema=schema,
        release=release,
        ledger=ledger,
        declared={"x": read_facts("x", facts)},
        doubts=doubts or {},
        repeated_ids=settings.get("ids", ()),
    )


def bell(size=12):
    return np.exp(-(np.linspace(-2, 2, size) ** 2))


HEALTHY = {
    "a bell": (AGE, bell()),
    "even": (AGE, np.ones(12)),
    "falling": (AGE, 0.7 ** np.arange(12)),
    "half missing, as declared": (
        {**AGE, "range_is_nullable": True},
        [*bell(), 0.9 * bell().sum()],
    ),
    "a few missing, as declared": (
        {**AGE, "range_is_nullable": True},
        [*bell(), 0.1 * bell().sum()],
    ),
    "hardly any missing": (AGE, [*bell(), 0.005 * bell().sum()]),
    "others": (WARD, [5, 3, 2, 0.1, 0.1]),
    "missing where all values are read": (WARD, [5, 3, 2, 0.1, 6]),
    "mostly zero": (
        {**AGE, "range_min": 0, "cut_points": [1, *range(6, 60, 6), 60]},
        [90, *[1] * 11],
    ),
    "wards": (WARD, [5, 3, 2, 0.1]),
    "some others": (WARD, [5, 3, 2, 4]),
    "few cities are rare": (CITY, [5, 5, 5, 5, 5, 0.01, 0.01, 0.01]),
    "two values, one rare": ({**WARD, "range_values": ["A", "B"]}, [99.5, 0.5]),
    "truths": ({"sdtype": "boolean"}, [9, 1]),
}


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("facts", "shares"), HEALTHY.values(), ids=HEALTHY)
def test_a_healthy_column_is_met_with_silence(facts, shares, seed):
    if facts["sdtype"] == "numerical":
        facts = {**facts, "range_max": facts["range_max"] - 1}
    assert advice(fitted(facts, shares, seed=seed)) == ()


PLANTED = {
    "mostly in one wide cell": (
        {**AGE, "range_min": 0},
        [90, *[1] * 11],
        "nothing says where in them the rows are",
    ),
    "all missing": (AGE, [*[0] * 12, 1], "is missing in nearly all rows"),
    "no value at all": (AGE, [*[0] * 12, 1], r"no values at all, leave the column out\."),
    "points for thousands": (AGE, [*[0.05] * 6, *[0] * 6, 0.7], r"70 % .*separators of thousands"),
    "a wrong spelling": (CITY, [*[1] * 8, 3], r"about 2\d % of the rows.*Check the codebook"),
    "a category too few": (CITY, [*[1] * 8, 1.4], r"about 1\d % of the .* lacks a category"),
    "some missing": (AGE, [*[1] * 12, 0.4], r"those of x \(\d(\.\d)? %\)\. .* such as '<0\.5'"),
    "a rare category too few": (CITY, [*[1] * 8, 0.5], r"those of x \(\d(\.\d)? %\)"),
    "mostly missing, as allowed": (
        {**AGE, "range_is_nullable": True},
        [*[1] * 12, 20],
        r"about 6\d % of the rows, or cannot be read there as what is declared",
    ),
    "dates without a format": (
        {"sdtype": "datetime", "range_min": "2020-01-01", "range_max": "2020-12-31"},
        [*[0] * 12, 1],
        "nearly all rows.*declare their datetime_format",
    ),
    "dates of another format": (
        {
            "sdtype": "datetime",
            "range_min": "01.01.2020",
            "range_max": "31.12.2020",
            "datetime_format": "%d.%m.%Y",
        },
        [*[1] * 12, 6],
        r"about 3\d % of the rows.*written as '%d\.%m\.%Y'",
    ),
    "words for truths": ({"sdtype": "boolean"}, [5, 2, 3], "about 30 % .*true and false, 1 and 0"),
    "missing where all is read": (WARD, [1, 1, 1, 1, 9], r"about (69|70) % of the rows\."),
    "all other": (WARD, [0, 0, 0, 1], "is 'other' in nearly all rows"),
    "mostly other": (WARD, [1, 1, 1, 9], r"is 'other' in more than \d\d % of the rows"),
    "clipped above": (AGE, [*bell(11), 2], r"at 62 – 65, the end of its declared range_max=65"),
    "clipped below": (AGE, [2, *bell(11)], r"range_min=18"),
    "one value": (CITY, [0, 1, 0, 0, 0, 0, 0, 0], "is city 1 in nearly all rows"),
    "one cell": (AGE, [*[0] * 5, 1, *[0] * 6], "is 38 – 41 in nearly all rows"),
    "rare": (CITY, [3, 2, 2, *[0.001] * 5], r"5 of 8 of 'x' \(city 3, city 4, city 5, \.\.\.\)"),
}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("facts", "shares", "told"), PLANTED.values(), ids=PLANTED)
def test_a_planted_fault_is_told(facts, shares, told, seed):
    import re

    said = advice(fitted(facts, shares, seed=seed))
    assert any(re.search(told, sentence) for sentence in said), said


@pytest.mark.parametrize("facts", [AGE, CITY, {"sdtype": "boolean"}], ids=str)
def test_the_share_that_is_told_is_silenced_by_a_declaration(facts):
    size = Schema.from_sdv({"x": facts}, num_bins=12).domain().sizes[0] - 1
    shares = [*[1] * size, size / 3]
    (told,) = advice(fitted(facts, shares))
    assert "range_is_nullable=True" in told
    assert advice(fitted({**facts, "range_is_nullable": True}, shares)) == ()


def test_missing_cells_that_the_noise_hides_are_told_unless_there_are_none():
    few = {"num_rows": 1_500}
    (said,) = advice(fitted(AGE, [*np.ones(12), 0.0], **few))
    assert "Up to about 4 % of the cells of x may be missing" in said
    for known in (True, False):
        assert advice(fitted({**AGE, "range_is_nullable": known}, np.ones(12), **few)) == ()
    assert advice(fitted(AGE, np.ones(12), num_rows=2_500)) == ()


def test_values_that_discovery_did_not_find_are_not_said_to_be_missing():
    """Times and bytes have no category for others."""
    hours = {"sdtype": "categorical", "range_values": [datetime.time(hour) for hour in range(8)]}
    facts = fitted(hours, [*[1] * 8, 9])
    found = Facts(**{**vars(facts), "declared": {"x": CategoryFacts()}})
    (said,) = advice(found)
    assert "what discovery did not find among values of its type counts as missing" in said
    assert "Declare its range_values" in said


def test_dates_that_discovery_did_not_find_are_advised_to_be_dates():
    days = [datetime.date(2024, 1, day) for day in range(1, 9)]
    facts = fitted({"sdtype": "categorical", "range_values": days}, [*[1] * 8, 9])
    found = Facts(**{**vars(facts), "declared": {"x": CategoryFacts()}})
    (said,) = advice(found)
    assert "Its values are dates: give it the sdtype datetime" in said


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("part", [0.45, 0.02])
def test_columns_with_many_rare_values_are_named_with_their_shares(part, seed):
    facts = fitted(WARD, [*[(1 - part) / 3] * 3, part], seed=seed)
    found = replace(facts, declared={"x": CategoryFacts()})
    assert advice(facts) == ()  # somebody named that value
    said = advice(found)
    if part < 0.1:
        assert said == ()
    else:
        assert said[0].startswith("Values that are too rare to be found became one: those of x (4")
        assert " % 'other')" in said[0]


def test_a_column_that_is_other_throughout_may_be_an_id_or_name_people():
    (said,) = advice(fitted(WARD, [0, 0, 0, 1]))
    assert "give it the sdtype id" in said
    assert "name it: people=People(column" in said
    assert "give it the sdtype datetime" in said


def test_nothing_is_said_to_be_declared_of_a_column_of_which_nothing_is():
    facts = fitted(AGE, [*np.ones(12), 6.0])
    found = Facts(**{**vars(facts), "declared": {"x": NumberFacts()}})
    for each, told in ((facts, "as what is declared"), (found, "as a numerical value")):
        (said,) = advice(each)
        assert told in said


def test_a_found_range_is_not_said_to_be_declared_wrongly():
    facts = fitted(AGE, [*bell(11), 2])
    found = Facts(**{**vars(facts), "declared": {"x": NumberFacts()}})
    assert advice(facts) != ()
    assert advice(found) == ()


def test_rows_that_are_too_few_are_told_with_the_number_that_would_do():
    told = next(iter(advice(fitted(AGE, np.ones(12), num_rows=500))))
    moved = 13 * STDDEV / math.sqrt(2 * math.pi)
    assert told.startswith("500 rows are few")
    number = int(told.split("From about ")[1].split(" rows")[0].replace(",", ""))
    assert moved / 0.05 <= number <= 1.1 * moved / 0.05
    assert advice(fitted(AGE, np.ones(12), num_rows=number)) == ()


@pytest.mark.parametrize(("delta", "is_told"), [(1e-4, True), (2e-4, True), (9e-5, False)])
def test_a_delta_is_held_against_the_number_of_rows(delta, is_told):
    said = advice(fitted(AGE, np.ones(12), delta=delta))
    assert [sentence.startswith("delta=") for sentence in said] == [True] * is_told


def test_ids_of_several_rows_are_told_where_one_row_a_person_is_protected():
    (told,) = advice(fitted(AGE, np.ones(12), ids=("patient",)))
    assert "'patient'" in told
    assert "max_rows" in told
    assert advice(fitted(AGE, np.ones(12), ids=("patient",), rows=3)) == ()


def test_doubts_of_discovery_are_passed_on():
    doubts = {"x": "The range of 'x' may be noise."}
    assert advice(fitted(AGE, np.ones(12), doubts=doubts)) == ("The range of 'x' may be noise.",)


def test_a_fit_without_modelled_columns_or_kept_tables_says_nothing_of_them():
    whole = fitted(AGE, np.ones(12))
    nothing = Facts(**{**vars(whole), "release": None, "schema": Schema(())})
    assert advice(nothing) == ()
    kept = Release(**{**vars(whole.release), "measurements": whole.release.measurements[:1]})
    assert advice(Facts(**{**vars(whole), "release": kept})) == ()


FACTS = st.sampled_from(
    [
        AGE,
        {**AGE, "range_min": 65},
        {"sdtype": "numerical", "range_min": 0.0, "range_max": 0.0},
        {"sdtype": "numerical", "range_min": 0.0, "range_max": 1.0, "range_is_nullable": False},
        {"sdtype": "datetime", "range_min": "2020-01-01", "range_max": "2020-12-31"},
        {**CITY, "range_values": list(range(600)), "frequencies": [1.0] * 600},
        {"sdtype": "numerical", "range_min": 0, "range_max": 9, "cut_points": [1, 5]},
        WARD,
    ]
)


@given(facts=FACTS, data=st.data(), num_rows=st.integers(0, 10**6))
def test_no_answer_however_odd_stops_it(facts, data, num_rows):
    (size,) = Schema.from_sdv({"x": facts}, num_bins=12).domain().sizes
    odd = st.integers(-(10**6), 10**7)
    whole = fitted(facts, np.ones(size))
    answer = np.array(data.draw(st.lists(odd, min_size=size, max_size=size)))
    stddev = data.draw(st.sampled_from([0.0, 1.0, 1e6]))
    measured = (
        Measurement(query=CountQuery(), answer=np.array([num_rows]), stddev=stddev),
        Measurement(query=MarginalQuery(("x",)), answer=answer, stddev=stddev),
    )
    release = Release(**{**vars(whole.release), "measurements": measured})
    assert all(
        isinstance(sentence, str)
        for sentence in advice(Facts(**{**vars(whole), "release": release}))
    )


@pytest.mark.parametrize(
    ("is_found", "quiet_at", "loud_at"), [(False, 30_000, 8_000), (True, 200_000, 30_000)]
)
def test_tails_that_discovery_cannot_have_seen_are_told(is_found, quiet_at, loud_at):
    ledger = PrivacyLedger.open(1.0, 1e-6, Adjacency.REPLACE_ONE)
    charge = Charge(
        mechanism="rounded Gaussian",
        what=FINE_GRIDS,
        num_queries=1,
        num_values=200,
        sensitivity_squared=((Adjacency.REPLACE_ONE, 2),),
        stddev=100.0,
        mu_squared=Fraction(1, 100),
        delta=Fraction(0),
    )
    quiet = fitted(AGE, bell(), num_rows=quiet_at)
    loud = fitted(AGE, bell(), num_rows=loud_at)
    quiet, loud = (
        replace(each, ledger=replace(ledger, charges=(charge,))) for each in (quiet, loud)
    )
    if is_found:
        known = {"x": NumberFacts(low=18)}
        quiet, loud = (replace(each, declared=known) for each in (quiet, loud))
    assert advice(quiet) == ()
    (said,) = advice(loud)
    assert "fewer than about 300 rows" in said
    assert "long tails may be cut" in said
    assert ("the ranges of x were found" in said) == is_found


@pytest.mark.parametrize(
    ("declared", "told"),
    [({}, True), ({"low": 0}, True), ({"low": 0, "high": 0}, False)],
)
def test_a_column_that_was_found_to_be_constant_is_told(declared, told):
    constant = {"sdtype": "numerical", "range_min": 0, "range_max": 0, "decimal_places": 0}
    facts = replace(fitted(constant, [1.0]), declared={"x": NumberFacts(**declared)})
    assert any("was found to be 0 in all rows" in each for each in advice(facts)) == told


@pytest.mark.parametrize(("declared", "told"), [({}, True), ({"other": 9}, False)])
def test_a_number_that_stands_for_others_is_told(declared, told):
    returned = {"sdtype": "categorical", "range_values": [0], "other_value": 9}
    facts = replace(fitted(returned, [93, 7]), declared={"x": CategoryFacts(**declared)})
    said = [each for each in advice(facts) if "stands for values" in each]
    assert bool(said) == told
    assert all("is 9 in more than 6" in each for each in said)


def test_a_few_wide_cells_that_decide_a_mean_are_told():
    """A hundredth of the rows lies anywhere between 1,000 and 100,000, the others below 100."""
    cuts = [*range(10, 101, 10), 1_000]
    income = {"sdtype": "numerical", "range_min": 0, "range_max": 100_000, "cut_points": cuts}
    (said,) = advice(fitted(income, [*[9] * 11, 1], num_rows=50_000))
    assert said.startswith("Much of the sum of x lies in a few wide cells")


@pytest.mark.parametrize(("last", "high", "told"), [(0, 1e6, 1), (3, 1e6, 0), (0, 500, 0)])
def test_a_range_that_reaches_far_beyond_the_rows_is_told(last, high, told):
    """Noise hides a few rows in the last code. Where more are seen there, another sentence is."""
    income = {"sdtype": "numerical", "range_min": 0, "range_max": high}
    income |= {"cut_points": list(range(10, 101, 10)), "frequencies": [9] * 10 + [1e-6]}
    said = advice(fitted(income, [*[9] * 10, last / 100], num_rows=50_000))
    assert sum("reaches far beyond nearly all rows" in each for each in said) == told


def test_many_rows_in_a_cell_that_reaches_far_out_are_not_called_few():
    """Four of ten rows lie somewhere above 0, drawn at its very beginning."""
    paid = {"sdtype": "numerical", "range_min": 0, "range_max": 280, "decimal_places": 2}
    cuts = [*(cent / 100 for cent in range(1, 9)), 1.0, 10.0]
    paid |= {"cut_points": cuts, "frequencies": [60, *[5] * 8, 1e-7, 1e-9], "num_bins": 2}
    said = advice(fitted(paid, [60, 40], num_rows=50_000))
    assert sum("More than 10 % of the rows of x lie in a cell" in each for each in said) == 1
    assert not any("nearly all rows" in each for each in said)


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"num_bins": 32}, True),
        ({"cut_points": [1, *range(9, 279, 9)]}, False),  # 0 has a cell of its own
        ({"cut_points": [1, 100]}, False),  # three cells: one has half of the rows anyway
    ],
)
def test_a_cell_of_many_rows_in_which_zeros_are_lost_is_told(facts, told):
    paid = {"sdtype": "numerical", "range_min": 0, "range_max": 280, "decimal_places": 0, **facts}
    size = describe("x", paid).num_values
    said = advice(fitted(paid, [60, *[40 / (size - 1)] * (size - 1)], num_rows=50_000))
    assert any("of the rows of x lie in one cell" in each for each in said) == told


def test_the_mean_of_a_column_that_is_nearly_all_missing_is_not_told():
    cuts = [*range(10, 101, 10), 1_000]
    income = {"sdtype": "numerical", "range_min": 0, "range_max": 100_000, "cut_points": cuts}
    (said,) = advice(fitted(income, [*[0.01] * 11, 0.05, 99], num_rows=50_000))
    assert "missing in nearly all rows" in said


def test_a_column_whose_type_has_no_words_cannot_be_misread():
    for facts, dtype in (({"sdtype": "boolean"}, pd.BooleanDtype()), (AGE, pd.Int64Dtype())):
        size = 2 if facts["sdtype"] == "boolean" else 12
        plain = fitted(facts, [*[1] * size, size])
        (column,) = plain.schema.columns
        typed = replace(
            plain, schema=replace(plain.schema, columns=(replace(column, dtype=dtype),))
        )
        assert any("Check how" in each for each in advice(plain))
        (said,) = [each for each in advice(typed) if "missing" in each]
        assert said == "Column 'x' is missing in about 50 % of the rows."


@pytest.mark.parametrize(("stddev", "told"), [(1_000.0, True), (100.0, False)])
def test_noise_that_hides_relations_is_told(stddev, told):
    """In yes/no columns of equal shares a correlation's noise is 2 sigma in n rows."""
    schema = Schema.from_sdv({name: {"sdtype": "boolean"} for name in "ab"})
    even = np.array([[5_000, 5_000, 0], [5_000, 5_000, 0], [0, 0, 0]])
    measurements = (
        Measurement(query=CountQuery(), answer=np.array([20_000]), stddev=0.0),
        Measurement(query=MarginalQuery(("a", "b")), answer=even, stddev=stddev),
    )
    ledger = PrivacyLedger.open(1.0, 1e-6, Adjacency.REPLACE_ONE)
    release = Release(domain=schema.domain(), ledger=ledger, measurements=measurements, model=None)
    facts = Facts(
        schema=schema,
        release=release,
        ledger=ledger,
        declared=dict.fromkeys("ab", TruthFacts(nullable=True)),
        doubts={},
        repeated_ids=(),
    )
    said = [each for each in advice(facts) if "correlation" in each]
    assert bool(said) == told
    assert all("0.1" in each for each in said)
    assert not any("so many columns" in each for each in said)


def test_pairs_that_were_too_many_are_counted():
    from sdv_privpgd import fit_table
    from sdv_privpgd.methods import ParticleGradientDescent, PrivPGD

    rng = np.random.default_rng(0)
    codes = {name: rng.integers(0, 2, 900).astype(bool) for name in "abcd"}
    columns = {name: {"sdtype": "boolean"} for name in codes}
    for most, told in ((6, False), (2, True)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            done = fit_table(
                pd.DataFrame(codes),
                columns,
                5.0,
                method=PrivPGD(
                    most_pairs=most, engine=ParticleGradientDescent(num_particles=200, epochs=2)
                ),
            )
        said = " ".join(done.warnings)
        assert ("of 6 pairs of columns were measured over a few groups" in said) == told
