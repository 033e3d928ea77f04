"""Values are counted in one spelling, and released above a threshold alone."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from answers import NOTHING, open_curator, values_of
from hypothesis import given
from hypothesis import strategies as st

from sdv_privpgd.columns.scalars import canonical, key_counts
from sdv_privpgd.privacy.ledger import PrivacyBudgetError, PrivacyLedger
from sdv_privpgd.privacy.noise import rounded_gaussian
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.privacy.thresholding import threshold_for, thresholded_delta
from sdv_privpgd.privacy.value_counts import Counted, ValueCounts

REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE
BOOKS = {each: PrivacyLedger.open(1.0, 1e-5, each) for each in Adjacency}
CELLS = [
    1, 1.0, True, np.True_, np.int8(1), 0, 0.0, -0.0, False, None, float("nan"), pd.NA, pd.NaT,
    "a", "1", b"a", Decimal(1), Fraction(1, 3), 10**400, float("inf"), 2.5, (1,), [1], object(),
]  # fmt: skip


def one_by_one(column):
    """The keys of a column, each cell read by itself."""
    return values_of({"x": ((canonical(cell), 1) for cell in column)})


class TestThresholds:
    def test_they_are_those_of_columns_adjacency_reserve_and_rows_of_a_person(self):
        one = thresholded_delta(10.0, 60, 4, BOOKS[ADD])
        assert float(thresholded_delta(10.0, 60, 4, BOOKS[REPLACE])) == pytest.approx(
            float(2 * one), rel=1e-6
        )
        assert thresholded_delta(10.0, 60, 8, BOOKS[ADD]) == 2 * one
        delta, stddev, draws = Fraction(1, 1000), 9.0, 2_000_000
        threshold = threshold_for(stddev, delta, 1, BOOKS[ADD])
        released = int((1 + rounded_gaussian(stddev, draws) >= threshold).sum())
        assert released <= 1000 * draws / 1e6 + 5 * (1000 * draws / 1e6) ** 0.5
        lower = int((1 + rounded_gaussian(0.9 * stddev, draws) >= threshold).sum())
        assert lower < 0.6 * released, "the test would not notice a smaller scale"
        threshold = threshold_for(10.0, Fraction(1e-6), 1, replace(BOOKS[ADD], rows_per_person=5))
        assert threshold > threshold_for(10.0, Fraction(1e-6), 1, BOOKS[ADD]) + 4


class TestKeys:
    def test_they_are_in_one_spelling_and_sorted(self):
        cells = ["b", 2, "a", True, 2.0, None, Decimal(2), float("nan"), 2.5, b"b", "a", 1,
                 np.int8(2)]  # fmt: skip
        keys = one_by_one(cells)
        assert keys.counts("x").pairs() == [
            (True, 1), (1, 1), (2, 3), (2.5, 1), (Decimal(2), 1), ("a", 2), ("b", 1), (b"b", 1),
            (None, 2)
        ]  # fmt: skip

    @given(st.lists(st.sampled_from(CELLS), max_size=30))
    def test_counting_by_distinct_cells_changes_nothing(self, cells):
        series = pd.Series(cells, dtype=object)
        apart = one_by_one(cells).counts("x").pairs()
        together = values_of({"x": key_counts(series)}).counts("x").pairs()
        assert [(type(key), key, n) for key, n in together] == [
            (type(key), key, n) for key, n in apart
        ]

    @given(st.lists(st.one_of(st.integers(-3, 3), st.sampled_from("ab"), st.none()), max_size=30))
    def test_the_order_of_rows_changes_nothing(self, cells):
        there, back = (one_by_one(order).counts("x").pairs() for order in (cells, cells[::-1]))
        assert there == back

    @pytest.mark.parametrize(
        "cell", [10**400, Decimal("1e999999"), Fraction(1, 3), float("inf"), -(10**400)]
    )
    def test_no_number_is_too_large(self, cell):
        assert isinstance(canonical(cell), int | float)


class TestTheCurator:
    @staticmethod
    def curator(cells, *, epsilon=1.0, reserved=Fraction(1e-6)):
        how = {"epsilon": epsilon, "reserved": reserved, "seed": 1}
        return open_curator(NOTHING, **how, values=one_by_one(cells))

    def test_frequent_values_are_released_with_noise_and_rare_ones_leave_no_trace(self):
        curator = self.curator(["a"] * 4_000 + ["b"] * 3_000 + ["rare"])
        released = dict(curator.discover(Fraction(1, 100), Fraction(1e-6), what="x")["x"])
        (charge,) = curator.ledger.charges
        assert released.keys() == {"a", "b", None}
        assert abs(released[None]) < 6 * charge.stddev
        assert 0 < abs(released["a"] - 4_000) < 6 * charge.stddev
        assert charge.threshold > 4 * charge.stddev
        assert charge.stddev == pytest.approx((2 / 0.01) ** 0.5)
        assert 0.5e-6 < charge.delta <= Fraction(1e-6) + Fraction(1, 2**120)

    def test_rarer_values_pay_for_the_columns_that_a_row_is_counted_in(self):
        counted = {name: Counted(np.array(["a"]), np.array([500, 0])) for name in "xyz"}
        charged = []
        for most in (1, 2, 3, None):
            curator = self.curator([])
            curator._values = ValueCounts(counted, most)
            curator.discover(Fraction(1, 100), Fraction(1e-6), what="x")
            charged += curator.ledger.charges
        assert [charge.stddev**2 for charge in charged] == pytest.approx([200, 400, 600, 600])
        assert all(0.5e-6 < charge.delta <= Fraction(1.001e-6) for charge in charged)
        assert [charge.num_queries for charge in charged] == [3] * 4
        # The tail is that of so many values as a row may have on its own.
        for charge in charged:
            own = thresholded_delta(charge.stddev, charge.threshold, 3, BOOKS[REPLACE])
            assert own == pytest.approx(charge.delta)

    def test_parts_of_one_have_noise_and_a_threshold_in_parts_and_come_out_as_ones(self):
        values = np.array(["many", "rare", *map(str, range(999))], dtype=object)
        counted = Counted(values, np.array([256 * 500, 256, *[256 * 100] * 999, 0]))
        curator = self.curator([], epsilon=9.0)
        curator._values = ValueCounts({"x": counted}, 1, 256)
        found = dict(curator.discover(Fraction(2, 25), Fraction(1e-6), what="x")["x"])
        (charge,) = curator.ledger.charges
        assert charge.stddev == pytest.approx(5)
        assert abs(found["many"] - 500) < 40
        assert "rare" not in found
        noise = np.array([found[str(number)] for number in range(999)]) - 100
        assert 4.4 < noise.std() < 5.6  # five standard errors of 5 / sqrt(2 * 999)

    def test_noise_that_is_too_large_in_parts_is_refused_before_it_is_charged(self):
        curator = self.curator(["a"])
        before, mu_squared = curator.ledger, Fraction(1, 2**68)
        curator._values = ValueCounts({"x": Counted(np.array(["a"]), np.array([256, 0]))}, 1, 256)
        with pytest.raises(PrivacyBudgetError, match=r"above 4\.29e\+09: allow a larger epsilon"):
            curator.discover(mu_squared, Fraction(1e-6), what="x")
        assert curator.ledger == before

    @pytest.mark.parametrize("cells", [[], [None] * 9])
    def test_a_column_of_nothing_is_charged_like_any_other(self, cells):
        curator, other = self.curator(cells), self.curator(["a"] * 500)
        found = curator.discover(Fraction(1, 100), Fraction(1e-6), what="x")
        assert [key for key, _ in found["x"]] == [None]
        other.discover(Fraction(1, 100), Fraction(1e-6), what="x")
        assert curator.ledger == other.ledger

    def test_useless_noise_and_delta_not_reserved_are_refused_unread(self, monkeypatch):
        curator = self.curator(["a"] * 500)
        curator.discover(curator.ledger.remaining, Fraction(1e-6), what="x")
        assert 0.98 < curator.ledger.spent() <= 1.0
        assert curator.ledger.budget < PrivacyLedger.open(1.0, 1e-5, REPLACE).budget
        monkeypatch.setattr(ValueCounts, "counts", None)
        useless = (Fraction(1, 10**30), {}, "larger epsilon")
        for share, shared, why in (useless, (Fraction(1, 100), {"reserved": Fraction(0)}, "delta")):
            curator = self.curator(["a"] * 500, **shared)
            with pytest.raises(PrivacyBudgetError, match=why):
                curator.discover(share, Fraction(1e-6), what="x")
            assert curator.ledger.charges == ()
