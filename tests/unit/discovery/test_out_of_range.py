"""Rows beyond a declared range are counted at no cost, and spoken of."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from columns_of_words import ranged
from encoding import Codec

from sdv_privpgd.columns.cuts import column_of
from sdv_privpgd.columns.facts import NumberFacts
from sdv_privpgd.columns.parser import read_facts
from sdv_privpgd.discovery.first_queries import reserved_delta
from sdv_privpgd.discovery.out_of_range import OutOfRange, out_of_range
from sdv_privpgd.discovery.plan import discover
from sdv_privpgd.discovery.transcript import Inquiry
from sdv_privpgd.estimate.noisy_tables import Total
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.ledger import FitLedger, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency, MarginalQuery, Measurement

ROWS = 5_000
AGE = {"sdtype": "numerical", "range_min": 0, "range_max": 150, "decimal_places": 0}
WEIGHT = {"sdtype": "numerical", "range_min": 0, "range_max": 200}
MONEY = {**WEIGHT, "decimal_places": 2}
BORN = ranged("datetime", "01.01.1920", "31.12.2019", datetime_format="%d.%m.%Y")


def said_of(column, facts, *, epsilon=2.0, seed=0):
    """What discovery says of a column, and the ledger."""
    known = {"x": read_facts("x", facts)}
    kept = reserved_delta(known, 1e-5)
    ledger = PrivacyLedger.open(epsilon, 1e-5, Adjacency.REPLACE_ONE, reserved=kept)
    shared = FitLedger(ledger, words=np.random.default_rng(seed).bytes)
    table = PrivateTable({"x": pd.Series(column)})
    found = discover(Inquiry(table=table, shared=shared), known, Fraction(1, 5))
    return found.diagnostics.get("x", ""), shared.ledger


def with_code(values, code, share=0.05):
    values = np.array(values, dtype=object)
    values[: int(share * len(values))] = code
    return values


def ages():
    return np.random.default_rng(0).integers(0, 100, ROWS)


def dates():
    days = np.random.default_rng(0).integers(0, 30_000, ROWS)
    return (pd.Timestamp("1921-01-01") + pd.to_timedelta(days, "D")).strftime("%d.%m.%Y")


@pytest.mark.parametrize(
    ("values", "facts", "low", "high"),
    [
        (ages(), AGE, -1, 999),
        (ages() * 1.7, WEIGHT, -1.0, 1e300),
        (ages() + 0.25, MONEY, -99.99, 1e300),
        (dates(), BORN, "01.01.1900", "31.12.2099"),
    ],
    ids=["integers", "floats", "decimals", "dates"],
)
class TestCodes:
    def test_many_below_and_above_are_said_with_their_share(self, values, facts, low, high):
        said, _ = said_of(with_code(values, low), facts)
        share = float(said.removeprefix("About ").split(" %")[0])
        assert share == pytest.approx(5, abs=0.5)  # a standard deviation is below 0.1
        assert f"below its declared range_min={facts['range_min']!r}" in said
        assert "range_max" not in said
        said, _ = said_of(with_code(values, high), facts)
        assert f"above its declared range_max={facts['range_max']!r}" in said
        assert "range_min" not in said

    @pytest.mark.parametrize("seed", range(5))
    def test_a_table_without_them_is_not_spoken_of(self, values, facts, low, high, seed):
        # The ends themselves are inside.
        ends = with_code(with_code(values, facts["range_max"], 0.6), facts["range_min"], 0.3)
        assert said_of(ends, facts, seed=seed)[0] == ""

    def test_few_and_noise_are_not_spoken_of_and_it_costs_nothing(self, values, facts, low, high):
        assert said_of(with_code(values, low, 0.005), facts)[0] == ""
        # A count of noise alone is 4 standard deviations once in 30,000.
        assert not any(said_of(values, facts, epsilon=0.01, seed=seed)[0] for seed in range(20))
        _, ledger = said_of(with_code(values, low), facts)
        assert ledger.mu_squared <= ledger.budget / 5


def test_rows_that_clearly_lie_beyond_a_range_that_was_found_are_told():
    """Of claims in seven of a thousand rows the first grid shows nothing but zeros."""
    rng = np.random.default_rng(0)
    claims = np.where(rng.random(ROWS) < 0.007, rng.lognormal(9, 2, ROWS), 0).round(2)
    said = [said_of(claims, {"sdtype": "numerical"}, seed=seed)[0] for seed in range(12)]
    told = "lie above the range that was found, and come out at its end"
    assert sum(told in each for each in said) >= 6


def test_few_rows_beyond_an_end_that_was_found_are_no_news():
    said, _ = said_of(with_code(ages(), -1), {"sdtype": "numerical", "range_min": 0})
    assert "range_min=0" in said
    assert said_of(with_code(ages(), 10_000, 0.001), {"sdtype": "numerical"})[0] == ""


def answer_of(counts):
    query = MarginalQuery(("x",))
    return Measurement(query=query, answer=np.array(counts), stddev=5.0)


def test_clear_rows_from_beyond_are_counted_at_the_ends_and_noise_is_not():
    inner = column_of("x", NumberFacts(low=0, high=2, decimal_places=0))
    both = OutOfRange(inner=inner, declared={"range_min": 0, "range_max": 2})
    answer = answer_of([21, 100, 200, 300, 19, 7])
    counted = both.counted(answer, both.groups(answer).clear).answer
    assert counted.tolist() == [121, 200, 300, 7]
    above, answer = OutOfRange(inner=inner, declared={"range_max": 2}), answer_of([9, 2, 3, 40, 7])
    assert above.counted(answer, above.groups(answer).clear).answer.tolist() == [9, 2, 43, 7]


def test_clear_rows_beyond_a_found_end_of_one_number_have_the_number_beside_it():
    inner = column_of("x", NumberFacts(low=0, high=0, decimal_places=0, nullable=True))
    both = OutOfRange(inner=inner, declared={"range_min": 0, "range_max": 0}, found=["range_max"])
    answer = answer_of([40, 800, 180, 7])
    opened = both.opened(both.groups(answer).clear)
    assert opened.column == both.column
    assert opened.inner.cells.ends == (0, 1)
    assert opened.counted(answer, both.groups(answer).clear).answer.tolist() == [840, 180, 7]
    wide = column_of("x", NumberFacts(low=0, high=9, decimal_places=0, num_bins=2))
    wide = OutOfRange(inner=wide, declared={"range_max": 9}, found={"range_max"})
    assert wide.opened(["range_max"]) == wide


def test_what_all_groups_miss_of_the_number_of_rows_is_shared_out():
    inner = column_of("x", NumberFacts(low=0, high=2, decimal_places=0))
    both = OutOfRange(inner=inner, declared={"range_min": 0, "range_max": 2})
    answer = answer_of([25, 110, 210, 310, 100, 6])
    groups = both.groups(answer)
    assert groups == ({"range_min": 25.0, "range_max": 100.0}, 6, 5)
    given = both.groups(answer, Total(1_000.0, 0.0))
    # All six cells together miss 239 rows.
    assert given.out_of_range["range_max"] == pytest.approx(100 + 239 / 6)
    assert given.missing == pytest.approx(6 + 239 / 6)
    assert given.stddev == pytest.approx(5 * np.sqrt(5 / 6))
    assert both.groups(answer, Total(1_000.0, 9.0)) == groups


@pytest.mark.parametrize("facts", [AGE, WEIGHT, MONEY])
def test_the_cells_inside_are_the_same(facts):
    known = read_facts("x", facts)
    each = out_of_range("x", known, known)
    values = pd.Series(np.concatenate([np.random.default_rng(0).random(2_000) * 150, [0, 150]]))
    inside, _ = Codec(each.inner).encode(values)
    counted, _ = Codec(each.column).encode(values)
    np.testing.assert_array_equal(counted, inside + 1)
