"""A number that many rows have, far from all others, is told; long tails and zeros are not."""

import numpy as np
import pytest

from sdv_privpgd.cli.saying import in_options
from sdv_privpgd.columns.parsing import describe, read_facts
from sdv_privpgd.report.column_advice import far_away

AGE = {"range_min": -99, "range_max": 90, "cut_points": [-98, 18, 30, 42, 54, 66, 78]}
ABOVE = {"range_min": 0, "range_max": 999, "cut_points": [20, 40, 60, 80, 100, 999]}
TAIL = {"range_min": 0, "range_max": 5_000, "cut_points": [1, 100, 300, 1_000]}
OTHER = {**AGE, "range_min": -95, "cut_points": [-94, 18, 30, 42, 54, 66, 78]}
NEAR = {**AGE, "range_min": -9, "cut_points": [-8, 18, 30, 42, 54, 66, 78]}
BELL = [0, 2, 3, 4, 3, 2, 1]


def said(facts, parts, seed=0, error=0.01, declared=None):
    column = describe("x", {"sdtype": "numerical", "decimal_places": 0, **facts})
    declared = read_facts("x", {"sdtype": "numerical", **(declared or {})})
    shares = np.append(parts, 0.0) / np.sum(parts)
    noise = np.random.default_rng(seed).normal(0, error / 3, len(shares))
    return far_away(column, shares + noise, error, declared)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("facts", "parts", "told"),
    [(AGE, [2.5, *BELL], "are -99, far"), (ABOVE, [3, 4, 3, 2, 1, 0, 2], "are 999, far")],
    ids=["below", "above"],
)
def test_a_code_is_told(facts, parts, told, seed):
    sentence = said(facts, parts, seed)
    assert sentence is not None
    assert told in sentence
    assert "with --na where" in in_options(sentence)
    declared = {"range_min": -100, "range_max": 1_000}
    assert said(facts, parts, seed, declared=declared) is None
    declared = {"range_min": -99, "range_max": 999}
    assert "leave it out of the declared range_m" in said(facts, parts, seed, declared=declared)


@pytest.mark.parametrize("seed", range(5))
def test_a_code_is_told_where_its_cell_ends_a_little_beyond_it(seed):
    found = {**ABOVE, "range_max": 1_020}
    assert "are 999 – 1,020, far" in said(found, [3, 4, 3, 2, 1, 0, 0.8], seed)
    # 6 % are few for a number that is no code, and of all that is in a wide cell 999 is one.
    assert said({**found, "range_max": 1_200}, [3, 4, 3, 2, 1, 0, 0.8], seed) is None
    other = {**found, "cut_points": [20, 40, 60, 80, 100, 990]}
    assert said(other, [3, 4, 3, 2, 1, 0, 0.8], seed) is None


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(
    ("facts", "parts", "error"),
    [
        (AGE, [0.2, *BELL], 0.01),
        (OTHER, [0.8, *BELL], 0.01),
        (AGE, [1] * 8, 0.2),
        (TAIL, [9, 2, 2, 2, 1], 0.01),
        (NEAR, [2.5, *BELL], 0.01),
        (AGE, [1] * 8, 0.01),
    ],
    ids=[
        "few rows",
        "few, no code",
        "loud noise",
        "zeros and a tail",
        "near",
        "even",
    ],
)
def test_other_numbers_are_met_with_silence(facts, parts, error, seed):
    assert said(facts, parts, seed, error) is None


ANSWERS = [5, 9, 8, 6, 4]
FEW = {
    "1 to 5 and 9": ((1, 9), [*ANSWERS, 0, 0, 0, 2], "are 9, far from all others, which are 1 to"),
    "-9 and 1 to 5": ((-9, 5), [1, *[0] * 9, *ANSWERS], "are -9, far"),
    "0 to 20 and 99": ((0, 99), [*[1] * 21, *[0] * 78, 1], "are 99, far from all others"),
    "0 and 1 and 8": ((0, 8), [9, 8, *[0] * 6, 1], "are 8, far"),
}
NO_CODES = {
    "the rest of a tail": ((0, 9), [9, 6, 4, 3, 2, 1.5, 1, 0.8, 0.5, 1.6]),
    "an end like all others": ((1, 9), [1] * 9),
    "two numbers": ((1, 2), [1, 1]),
    "neighbors": ((-1, 1), [1, 3, 3]),
    "two numbers in a wider range": ((0, 9), [0, 5, 4, *[0] * 7]),
    "few codes": ((1, 9), [*ANSWERS, 0, 0, 0, 0.2]),
    "a number that is no code": ((1, 11), [*ANSWERS, *[0] * 5, 1]),
}


def of_single(ends, parts, seed):
    low, high = ends
    facts = {"range_min": low, "range_max": high, "cut_points": [*range(low + 1, high + 1)]}
    return said(facts, parts, seed, error=0.005)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("ends", "parts", "told"), FEW.values(), ids=FEW)
def test_usual_codes_of_few_rows_are_told_among_few_values(ends, parts, told, seed):
    assert told in of_single(ends, parts, seed)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("ends", "parts"), NO_CODES.values(), ids=NO_CODES)
def test_other_ends_of_few_values_are_met_with_silence(ends, parts, seed):
    assert of_single(ends, parts, seed) is None


def test_a_wide_cell_beside_a_single_number_is_no_code():
    """All values but one are in a wide cell: if one of the two is a code, it is the number."""
    facts = {"range_min": -1, "range_max": 1_000, "cut_points": [0, 2, 512]}
    assert said(facts, [0.8, 0.0, 0.2, 0.0], 0, 0.005) is None


def test_a_column_of_one_number_is_met_with_silence():
    column = describe("x", {"sdtype": "numerical", "decimal_places": 0, **AGE})
    below_none = np.array([1.0, *[-0.001] * 8])  # noise: the other shares add up to less than 0
    assert far_away(column, below_none, 0.01, None) is None


def days(*dates):
    return [str(np.datetime64(date)) for date in dates]


SEEN = {
    "sdtype": "datetime",
    "range_min": "1900-01-01",
    "range_max": "2022-12-31",
    "cut_points": days("1900-01-08", "2021-01-01", "2021-06-01", "2022-01-01", "2022-06-01"),
}
LEFT = {
    "sdtype": "datetime",
    "range_min": "2020-01-01",
    "range_max": "2262-04-10",
    "cut_points": days("2020-06-01", "2021-01-01", "2021-06-01", "2022-01-01", "2262-03-25"),
}
STAYS = {**LEFT, "range_max": "2029-12-31", "cut_points": [*LEFT["cut_points"][:-1], "2029-12-20"]}
BORN = {
    **SEEN,
    "range_max": "2000-12-31",
    "cut_points": days("1930-01-01", "1950-01-01", "1970-01-01", "1985-01-01", "1990-01-01"),
}


def said_of_dates(facts, parts, seed=0, error=0.01, declared=None):
    column = describe("x", facts)
    declared = read_facts("x", {"sdtype": "datetime", **(declared or {})})
    shares = np.append(parts, 0.0) / np.sum(parts)
    noise = np.random.default_rng(seed).normal(0, error / 3, len(shares))
    return far_away(column, shares + noise, error, declared)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("facts", "parts", "told"),
    [
        (SEEN, [1.0, 0, 4, 4, 4, 4], "lie in 1900-01-01 – 1900-01-07, far"),
        (LEFT, [4, 4, 4, 4, 0, 1.3], "2262-04-10 (as which all later dates count"),
        (STAYS, [4, 4, 4, 4, 0, 1.3], "lie in 2029-12-20 – 2029-12-31, far"),
    ],
    ids=["1900", "9999", "at the end of a found range"],
)
def test_a_placeholder_date_is_told(facts, parts, told, seed):
    sentence = said_of_dates(facts, parts, seed)
    assert sentence is not None
    assert told in sentence
    assert "now it counts as a date" in sentence


def test_a_declared_end_was_meant_unless_it_is_a_usual_placeholder():
    ends = {"range_min": "1890-01-01", "range_max": "2029-12-31"}
    assert said_of_dates(STAYS, [4, 4, 4, 4, 0, 1.3], declared=ends) is None
    said = said_of_dates(SEEN, [1.0, 0, 4, 4, 4, 4], declared=ends)
    assert said is not None
    assert "leave it out of the declared range_min" in said


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(
    ("facts", "parts", "error"),
    [
        (SEEN, [0.1, 0, 4, 4, 4, 4], 0.01),
        (SEEN, [1.0, 4, 4, 4, 4, 4], 0.01),
        (SEEN, [1, 1, 1, 1, 1, 1], 0.2),
        (BORN, [1, 2, 3, 4, 4, 4], 0.01),
        (LEFT, [4, 4, 4, 4, 1.3, 1.3], 0.01),
    ],
    ids=["few rows", "a tail", "loud noise", "births", "a late tail"],
)
def test_dates_with_neighbors_and_few_or_noisy_ones_are_not_told(facts, parts, error, seed):
    assert said_of_dates(facts, parts, seed, error) is None
