"""The benchmark paper's metrics on data frames, row by row."""

import re
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from sdv_privpgd.metrics import fidelity_by_pair, range_errors
from sdv_privpgd.metrics.pairs import average

NUMERIC = ["x", "z"]


def frame(num_rows, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    # Whole numbers: an end printed to six digits has the same ones on either side.
    x = rng.normal(shift, 9.0, num_rows).round()
    x[:3] = np.nan
    city = rng.choice(["Bern", "Rome", "Oslo"], num_rows, p=[0.6, 0.3, 0.1]).astype(object)
    city[5:7] = None
    return pd.DataFrame(
        {"x": x, "city": city, "z": rng.integers(0, 50, num_rows), "ok": rng.random(num_rows) < 0.4}
    )


REAL, SYNTHETIC = frame(120, 0), frame(80, 1, shift=0.7)


BOTH = pd.concat([REAL, SYNTHETIC], ignore_index=True)
NUMBERS = {  # categories are numbered as they come, from 1; missing is 0
    value: number + 1
    for name in ("city", "ok")
    for number, value in enumerate(BOTH[name].dropna().unique().tolist())
}


def error_of(terms):
    """The error of a query as it is printed, from a look at each row."""
    shares = []
    for table in (REAL, SYNTHETIC):
        inside = np.ones(len(table), dtype=bool)
        for term in terms:
            name, low, high = re.fullmatch(r"(\w+) in \[(.+), (.+)\]", term).groups()
            numeric = name in NUMERIC
            values = [value if numeric else NUMBERS.get(value, 0) for value in table[name]]
            inside &= [float(low) <= value <= float(high) for value in values]
        shares.append(inside.mean())
    return abs(shares[0] - shares[1])


def terms_of(found):
    return [text.split(": ")[1].split(" and ") for text in found]


def test_queries_are_answered_row_by_row():
    found = range_errors(REAL, SYNTHETIC, numeric=NUMERIC, num_queries=60)
    assert len(found) == 60
    expected = [error_of(terms) for terms in terms_of(found)]
    assert list(found.values()) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_the_mode_of_the_code_averages_over_prefixes():
    asked = {"numeric": NUMERIC, "num_queries": 40, "seed": 3}
    found = range_errors(REAL, SYNTHETIC, **asked, mode="tab_bench")
    assert list(found) == list(range_errors(REAL, SYNTHETIC, **asked))  # the same queries
    expected = [
        np.mean([error_of(terms[:length]) for length in (1, 2, 3)]) for terms in terms_of(found)
    ]
    assert list(found.values()) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_points_are_categories_of_the_real_table():
    lonely = SYNTHETIC.assign(city="Paris")
    found = range_errors(REAL, lonely, numeric=NUMERIC, num_queries=300)
    numbers = {
        int(number) for text in found for number in re.findall(r"city in \[(\d+), \d+\]", text)
    }
    assert numbers == {0, 1, 2, 3}  # missing is one of them, Paris would be 4


def test_fidelity_is_that_of_counting_rows_in_100_levels():
    rng = np.random.default_rng(2)
    # Numbers between the whole ones, so that some share a level.
    real, synthetic = (table.assign(z=rng.normal(size=len(table))) for table in (REAL, SYNTHETIC))
    both = pd.concat([real, synthetic], ignore_index=True)
    levels = {}
    for name in both:
        values = both[name]
        if name in NUMERIC:
            low, high = values.min(), values.max()
            levels[name] = [
                "no number" if np.isnan(value) else round(99 * (value - low) / (high - low))
                for value in values
            ]
        else:
            levels[name] = [str(value) for value in values]
    assert len(set(levels["z"])) < len(both)
    expected = {}
    for first, second in combinations(both, 2):
        cells = list(zip(levels[first], levels[second], strict=True))
        ours, theirs = cells[: len(real)], cells[len(real) :]
        expected[first, second] = 0.5 * sum(
            abs(ours.count(cell) / len(ours) - theirs.count(cell) / len(theirs))
            for cell in set(cells)
        )
    assert fidelity_by_pair(real, synthetic, numeric=NUMERIC) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("errors", [range_errors, fidelity_by_pair])
def test_the_same_rows_in_another_order_have_no_error(errors):
    shuffled = REAL.sample(frac=1, random_state=0)
    assert average(errors(REAL, shuffled, numeric=NUMERIC)) == 0
    assert average(errors(REAL, SYNTHETIC[REAL.columns[::-1]], numeric=NUMERIC)) > 0


@pytest.mark.parametrize("mode", ["paper", "tab_bench"])
def test_the_seed_draws_the_queries(mode):
    asked = {"numeric": NUMERIC, "num_queries": 50, "mode": mode}
    found = [range_errors(REAL, SYNTHETIC, **asked, seed=seed) for seed in (0, 0, 1)]
    assert found[0] == found[1] != found[2]


def test_columns_of_one_number_or_none_have_levels_and_no_ranges():
    real, synthetic = REAL.assign(z=7), SYNTHETIC.assign(z=7)
    distances = fidelity_by_pair(real, synthetic, numeric=NUMERIC)
    city = BOTH["city"].astype(str)
    ours, theirs = city[: len(REAL)], city[len(REAL) :]
    shares = [side.value_counts(normalize=True) for side in (ours, theirs)]
    expected = shares[0].sub(shares[1], fill_value=0).abs().sum() / 2
    assert distances["city", "z"] == pytest.approx(expected, rel=1e-12)
    real, synthetic = REAL.assign(x=np.nan), SYNTHETIC.assign(x=np.nan)
    errors = range_errors(real, synthetic, numeric=NUMERIC, num_queries=100)
    assert {errors[text] for text in errors if "x in" in text} == {0.0}
    assert fidelity_by_pair(real, real, numeric=NUMERIC)["x", "z"] == 0


@pytest.mark.parametrize("errors", [range_errors, fidelity_by_pair])
def test_inputs_are_left_as_they_are_and_refused_where_they_cannot_be_compared(errors):
    real, synthetic = REAL.copy(), SYNTHETIC.copy()
    errors(real, synthetic, numeric=NUMERIC)
    pd.testing.assert_frame_equal(real, REAL)
    pd.testing.assert_frame_equal(synthetic, SYNTHETIC)
    with pytest.raises(ValueError, match="the same columns"):
        errors(REAL, SYNTHETIC.drop(columns="x"), numeric=NUMERIC)
    with pytest.raises(ValueError, match="at least one row"):
        errors(REAL, SYNTHETIC[:0], numeric=NUMERIC)
