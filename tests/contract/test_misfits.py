"""A fit stops where nearly nothing is as declared, and can go on; oddities stop none."""

import sys

import numpy as np
import pandas as pd
import pytest
import sdv_tables
from made_up import kinds, made_up, quiet

from sdv_privpgd import (
    Categorical,
    Datetime,
    DomainMismatchError,
    MSTSynthesizer,
    Numerical,
    PrivPGDSynthesizer,
    fit_table,
)
from sdv_privpgd.report.warnings import OPENING

COLUMNS = kinds(ward="categorical", age="numerical", ill="boolean")
AGE = {"range_min": 0, "range_max": 99, "decimal_places": 0, "cut_points": [33, 66]}
CELLS = np.random.default_rng(0)
TABLE = made_up(900, ward="ab", age=(0, 100), ill=0.5)


def new(ward, method="mst", epsilon=3.0, **more):
    domain = {"ward": ward, "age": AGE, **more}
    return PrivPGDSynthesizer(
        sdv_tables.metadata_of(COLUMNS), epsilon, method=method, public_domain=domain,
    )  # fmt: skip


CAPITALS = {"range_values": ["A", "B"]}
WITH_OTHER = {**CAPITALS, "other_value": "other"}


@pytest.mark.parametrize(
    ("ward", "told"),
    [
        (WITH_OTHER, r"Nearly all values are none that is declared.*: 'ward' \("),
        (CAPITALS, r"no declared values: 'ward' \("),
        ({**CAPITALS, "range_is_nullable": True}, r"no declared values: 'ward' \("),
    ],
)
@pytest.mark.parametrize("strategy", ["mst", "aim", "privpgd+pgm"])
def test_a_wrong_codebook_stops_the_fit_and_the_rest_stays(ward, told, strategy):
    rows, epsilon = (9, 0.5) if strategy == "privpgd+pgm" else (1, 3.0)
    table = pd.concat([TABLE] * rows, ignore_index=True)
    synthesizer = new(ward, strategy, epsilon)
    with pytest.raises(DomainMismatchError, match=told) as error:
        synthesizer.fit(table)
    assert "'age'" not in str(error.value)
    assert 0 < synthesizer.ledger.spent() < 0.1 * epsilon
    assert synthesizer.unfinished is not None
    if sys.version_info >= (3, 11):
        assert "resume(data)" in error.value.__notes__[0]


@pytest.mark.parametrize(
    ("ward", "table"),
    [
        ({"range_values": ["a", "b"]}, TABLE),
        ({"range_values": ["a"], "other_value": "other"}, TABLE),
        ({}, TABLE.assign(ward=None)),
    ],
    ids=["right", "a missing category", "undeclared"],
)
def test_nothing_stops_where_nobody_is_surely_wrong(ward, table):
    synthesizer = new(ward)
    with quiet():
        synthesizer.fit(table)
    assert len(synthesizer.sample(5)) == 5


def test_truths_in_other_words_stop_a_fit_and_few_rows_are_only_warned_of():
    table = TABLE.assign(ward="A", ill=np.where(TABLE["ill"], "oui", "non"))
    with pytest.raises(DomainMismatchError, match=r"'ill'.*only true and false, 1 and 0 are read"):
        new(CAPITALS).fit(table)
    synthesizer = new(WITH_OTHER, epsilon=0.2)
    with pytest.warns(UserWarning, match=OPENING):
        synthesizer.fit(TABLE.iloc[:60])
    assert synthesizer.unfinished is None


ROWS = 3_000
WARD = CELLS.choice(["a", "b"], ROWS)
DAYS = pd.Timestamp("2023-01-01") + pd.to_timedelta(CELLS.integers(0, 300, ROWS), "D")
SMALL = CELLS.integers(1, 10, ROWS)


def rarely(values, usual, share=0.02):
    """The usual value, but for few rows."""
    return np.where(CELLS.random(ROWS) < share, values, usual)


def fitted(values, declared, ward=WARD, **settings):
    table = pd.DataFrame({"ward": ward, "x": values})
    columns = {"ward": Categorical(["a", "b"]), "x": declared}
    settings = {"method": "mst", **settings}
    with quiet():
        return fit_table(table, columns, 3.0, **settings)


AGES = Numerical(0, 99, decimal_places=0)
YEARS = CELLS.integers(1900, 2000, ROWS)
SCORE = Numerical(0, 10, decimal_places=0)
LATER = Numerical(2_001, 2_010, decimal_places=0, nullable=False)

WRONG = {
    "years for ages": (YEARS, AGES, "range_max=99: 'x' ("),
    "one side and the other": (
        np.where(CELLS.random(ROWS) < 0.5, -5, 500), AGES, "range_min=0 and range_max=99"
    ),
    "another year": (DAYS, Datetime("2020-01-01", "2020-12-31"), "Check the year"),
    "few values": (YEARS, SCORE, "outside the declared range_max=10: 'x'"),
    "few values, below": (YEARS, LATER, "outside the declared range_min=2001: 'x'"),
    "missing ones": (rarely(np.nan, SMALL, 0.3),
                     {**SCORE, "sdtype": "numerical", "range_is_nullable": False},
                     "range_is_nullable=False says that none is: 'x'"),
    "few days": (DAYS, Datetime("2020-01-01", "2020-01-25"), "Check the year"),
}  # fmt: skip

RIGHT = {
    "gains, nearly all zero": (rarely(SMALL * 9_999, 0), Numerical(0, 99_999, decimal_places=0)),
    "few values, nearly all zero": (rarely(SMALL, 0), SCORE),
    "nearly all at an end that is inside": (rarely(SMALL, 99), AGES),
    "a wide range of small values": (SMALL, Numerical(0, 1_000_000, decimal_places=0)),
    "nearly all one": (rarely(SMALL, 1), Numerical(1, 10, decimal_places=0)),
    "codes in half of the rows": (np.where(CELLS.random(ROWS) < 0.5, 50, 999), AGES),
    "nearly all missing, the others beyond": (
        rarely(500.0, np.nan),
        {**AGES, "sdtype": "numerical", "range_is_nullable": True},
    ),
}


@pytest.mark.parametrize(("values", "declared", "told"), WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("share", [0, 0.2])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_rows_beyond_a_declared_range_stop_a_fit(values, declared, told, adjacency, share):
    with pytest.raises(DomainMismatchError) as error:
        fitted(values, declared, adjacency=adjacency, discovery_share=share, delta=1e-5)
    assert told in str(error.value)
    assert "'x'" in str(error.value)
    assert "'ward'" not in str(error.value)
    assert 0 < error.value.ledger.spent() < 0.3
    assert f"Epsilon {error.value.ledger.spent():.3g} of 3 is spent" in str(error.value)


@pytest.mark.parametrize(("values", "declared"), RIGHT.values(), ids=RIGHT)
@pytest.mark.parametrize("share", [0, 0.2])
def test_nothing_stops_where_rows_may_belong_there(values, declared, share):
    assert fitted(values, declared, discovery_share=share).num_rows == ROWS


OPEN_ENDS = rarely(2**63 - 1, SMALL, 0.3), rarely("9999-12-31", DAYS.strftime("%Y-%m-%d"), 0.3)


@pytest.mark.parametrize(
    ("values", "declared", "told"),
    [
        (CELLS.integers(2**61, 2**64, ROWS, dtype=np.uint64), Numerical(), "beyond 2**62"),
        (-(2.0**70) * SMALL, Numerical(range_max=9), "beyond 2**62"),
        (rarely("1600-01-01", "1543-05-24", 0.5), Datetime(datetime_format="%Y-%m-%d"), "1678"),
        (OPEN_ENDS[0], Numerical(), None),
        (OPEN_ENDS[1], Datetime(datetime_format="%Y-%m-%d"), None),
    ],
)
def test_what_is_not_told_apart_stops_a_fit_where_most_rows_have_it(values, declared, told):
    if told is None:
        assert fitted(values, declared).num_rows == ROWS
        return
    with pytest.raises(DomainMismatchError) as error:
        fitted(values, declared)
    assert told in str(error.value)
    assert "{" not in str(error.value)
    assert error.value.ledger.spent() < 0.3


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("cell", ["d", None])
def test_rows_whose_cells_are_replaced_are_told_of(nullable, cell):
    declared = Categorical(["m", "w"], nullable=nullable)
    said = " ".join(fitted(rarely(cell, "m", 0.08), declared, discovery_share=0).warnings)
    assert ("rows have declared ones instead" in said) == (not nullable)


@pytest.mark.parametrize(
    ("values", "ward", "strategy"),
    [
        (values, ward, name)
        for values, ward in ((YEARS, WARD), (SMALL, np.full(ROWS, "A")))
        for name in ("mst", "aim", "privpgd")
    ],
)
def test_a_stopped_fit_table_goes_on_all_the_same(values, ward, strategy):
    with pytest.raises(DomainMismatchError) as caught:
        fitted(values, AGES, ward, method=strategy)
    error = caught.value
    paid = error.ledger.charges
    table = pd.DataFrame({"ward": ward, "x": values})
    with pytest.raises(ValueError, match=r"missing|not in|no column"):
        error.resume(table[["x"]])  # it is checked before anything is spent
    with pytest.warns(UserWarning, match=OPENING) as told:
        done = error.resume(table)
    assert [each.filename for each in told] == [__file__]
    assert done.ledger.charges[: len(paid)] == paid
    assert done.ledger.spent() == pytest.approx(3.0, abs=1e-3)
    assert len(done.sample(5)) == 5
    with pytest.raises(ValueError, match="goes on once"):
        error.resume(table)


def test_what_a_stopped_fit_has_spent_is_kept_for_another_table_and_later():
    with pytest.raises(DomainMismatchError) as caught:
        fitted(SMALL, SCORE, ["A"] * ROWS)
    with pytest.raises(ValueError, match=r"had 3,000 rows, and this one has 10"):
        caught.value.resume(pd.DataFrame({"ward": ["A"] * 10, "x": SMALL[:10]}))
    shared = caught.value.ledger
    later = fitted(SMALL, SCORE, after=shared)
    assert later.ledger.charges[: len(shared.charges)] == shared.charges
    assert caught.value.goes_on is not None
    first = fitted(SMALL, SCORE).ledger
    with pytest.raises(DomainMismatchError) as caught:
        fitted(YEARS, SCORE, after=first)
    assert caught.value.ledger.charges[: len(first.charges)] == first.charges


def test_a_synthesizer_stops_and_its_own_resume_goes_on():
    columns = kinds(ward="categorical", x="numerical")
    domain = {"ward": {"range_values": ["a", "b"]}, "x": {"range_min": 0, "range_max": 99}}
    synthesizer = MSTSynthesizer(sdv_tables.metadata_of(columns), 3.0, public_domain=domain)
    table = pd.DataFrame({"ward": WARD, "x": YEARS})
    with pytest.raises(DomainMismatchError, match="range_max=99") as caught:
        synthesizer.fit(table)
    with pytest.raises(ValueError, match="of a synthesizer call resume"):
        caught.value.resume(table)
    with pytest.warns(UserWarning, match="above its declared"):
        synthesizer.resume(table)
    # A threshold is a whole number, and so need not use all of its delta.
    assert synthesizer.ledger.spent() == pytest.approx(3.0, abs=3e-3)
    assert (synthesizer.sample(200)["x"] > 90).mean() > 0.9
