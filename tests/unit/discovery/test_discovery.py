"""Discovery finds what is there, within its noise, and asks the curator for all of it."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from discovering import described, found, found_in

from sdv_privpgd.privacy.queries import Adjacency

ROWS = 20_000


class TestCategories:
    def test_the_rest_is_other_under_a_name_that_is_no_value(self):
        column = ["b"] * 9_000 + ["a"] * 9_000 + [f"name {row}" for row in range(2_000)]
        facts, ledger = found(column, {"sdtype": "categorical"})
        assert facts == {"range_values": ["a", "b"], "other_value": "other"}
        assert float(ledger.mu_squared / ledger.budget) == pytest.approx(0.05)
        facts, _ = found(["other"] * 9_000 + ["a"] * 9_000, {"sdtype": "categorical"})
        assert facts == {"range_values": ["a", "other"], "other_value": "any other"}
        facts, _ = found([True] * 9_000 + [1] * 4_000 + [0] * 7_000, {"sdtype": "categorical"})
        assert facts == {"range_values": [True, 0], "range_is_nullable": True}
        assert facts["range_values"][0] is True
        facts, _ = found([f"name {row}" for row in range(ROWS)], {"sdtype": "categorical"})
        assert facts == {"range_values": [], "other_value": "other"}
        assert described("categorical", facts)[0].cells.values == ("other",)

    def test_the_second_look_goes_to_the_columns_that_the_first_left_open(self):
        """150 rows of one value are too few for three columns' look, enough for one column's."""
        rng = np.random.default_rng(0)
        names = np.repeat(["common", "rare 1", "rare 2"], [ROWS - 300, 150, 150])
        columns = {
            "x": pd.Series(names),
            "y": pd.Series(rng.choice(["a", "b"], ROWS)),
            "z": pd.Series(rng.choice(["a", None], ROWS)),
        }
        undeclared = {name: {"sdtype": "categorical"} for name in columns}
        facts, ledger = found_in(columns, undeclared, epsilon=2.0)
        first, second = (charge for charge in ledger.charges if charge.threshold)
        assert first.threshold > 160
        assert first.num_queries == 3 > second.num_queries
        assert facts["x"]["range_values"] == ["common", "rare 1", "rare 2"]
        assert facts["y"]["range_values"] == ["a", "b"]
        assert first.delta + second.delta <= ledger.reserved + Fraction(1, 2**100)

    def test_what_no_column_left_open_is_not_spent(self):
        facts, ledger = found(["a", "b"] * (ROWS // 2), {"sdtype": "categorical"})
        assert facts["range_values"] == ["a", "b"]
        assert float(ledger.mu_squared / ledger.budget) == pytest.approx(0.0125)

    @pytest.mark.parametrize("adjacency", Adjacency)
    @pytest.mark.parametrize("rows_per_person", [1, 4])
    def test_it_fits_the_ledger_under_each_adjacency(self, adjacency, rows_per_person):
        settings = {"adjacency": adjacency, "rows_per_person": rows_per_person}
        facts, ledger = found(["a"] * ROWS, {"sdtype": "categorical"}, **settings)
        assert facts["range_values"] == ["a"]
        assert ledger.spent() < 5.0


class TestManyCategories:
    def test_declared_ones_are_counted_and_the_rare_ones_share_a_code(self):
        rng = np.random.default_rng(0)
        values = [f"v{rank}" for rank in range(10_000)]
        frequent = rng.integers(0, 100, ROWS) * 97
        column = np.where(rng.random(ROWS) < 0.9, frequent, rng.integers(0, 10_000, ROWS))
        column = np.array(values, dtype=object)[column]
        known = {"sdtype": "categorical", "range_values": values}
        facts, ledger = found(column, known)
        assert len(facts["frequencies"]) == 10_000
        assert [charge.what for charge in ledger.charges] == ["values of columns on fine grids"]
        (merged,) = described("categorical", {**known, **facts})
        assert merged.num_values == 256
        codes, _ = merged.locate(np.arange(10_000))
        # About 180 rows a frequent value, and noise of 10: all 100 have codes of their own.
        assert np.bincount(codes).max() == 10_000 - 255
        assert np.unique(codes[np.arange(100) * 97]).size == 100
        assert (codes[np.arange(100) * 97] < 255).all()

    def test_many_that_are_discovered_are_merged_and_the_rest_is_apart(self):
        rng = np.random.default_rng(0)
        column = np.array([f"v{rank}" for rank in range(400)], dtype=object)
        column = column[rng.integers(0, 400, 10 * ROWS)]
        facts, _ = found(column, {"sdtype": "categorical"})
        assert len(facts["frequencies"]) == len(facts["range_values"]) == 400
        (merged,) = described("categorical", facts)
        assert merged.num_values == 257
        codes, _ = merged.locate(np.arange(401))
        assert np.count_nonzero(codes == codes[400]) == 1
