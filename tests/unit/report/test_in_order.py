"""Dates that are in order are named, and the constraint that keeps them so."""

import numpy as np
import pandas as pd
import pytest
from sdv.cag import Inequality

from sdv_privpgd import MSTSynthesizer, draft_metadata

ROWS = 4_000
CAME = pd.Timestamp("2023-01-01") + pd.to_timedelta(np.arange(ROWS) % 365, "D")
RNG = np.random.default_rng(0)


def told(columns, constraints=(), epsilon=3.0, first="2022-09-01"):
    table = pd.DataFrame({"came": CAME, **columns})
    year = {"range_min": first, "range_max": "2024-06-30"}
    synthesizer = MSTSynthesizer(
        draft_metadata(table.dtypes), epsilon, public_domain=dict.fromkeys(table, year)
    )
    if constraints:
        synthesizer.add_constraints(list(constraints))
    synthesizer.fit(table)
    return [each for each in synthesizer.warnings_ if "Inequality" in each]


def later(days):
    return CAME + pd.to_timedelta(days, "D")


@pytest.mark.filterwarnings("ignore::UserWarning")
class TestOrder:
    def test_a_discharge_after_admission_is_told(self):
        columns = {"left": later(RNG.gamma(2.0, 15.0, ROWS).astype(int))}
        (sentence,) = told(columns)
        assert sentence.startswith("Dates seem to be in order")
        assert "the constraint Inequality('came', 'left')." in sentence
        assert told(columns, [Inequality("came", "left")]) == []

    def test_where_cells_do_not_tell_which_is_first_nothing_is_claimed(self):
        (sentence,) = told({"left": later(RNG.integers(0, 2, ROWS))})
        assert "Inequality(earlier, later) of 'came' and 'left'." in sentence

    @pytest.mark.parametrize("order", [1, -1])
    def test_other_dates_are_met_with_silence(self, order):
        shuffled = RNG.permutation(CAME)
        assert told({"seen": shuffled}) == []  # no order
        assert told({"seen": later(order * RNG.integers(-90, 91, ROWS))}) == []  # either order
        born = CAME - pd.to_timedelta(RNG.integers(7_000, 30_000, ROWS), "D")
        assert told({"born": born}, first="1935-01-01") == []  # nor would any others be in order
