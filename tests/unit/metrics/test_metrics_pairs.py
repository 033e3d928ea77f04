"""Distances over all pairs, of codes and of values, against brute force on the rows."""

import re
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import wasserstein_distance

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.columns.links import Link, Tree
from sdv_privpgd.metrics import (
    covariance_error,
    fidelity_by_pair,
    l1_by_pair,
    range_errors,
    sw1_by_pair,
)
from sdv_privpgd.metrics.pairs import average, of_families

DOMAIN = Domain(("a", "b", "c"), (2, 3, 5))
PAIRS = list(combinations(range(3), 2))


def mean_l1(*tables, **settings):
    return average(l1_by_pair(*tables, **settings))


def mean_sw1(*tables, **settings):
    return average(sw1_by_pair(*tables, **settings))


DISTANCES = [mean_l1, mean_sw1, covariance_error]


@pytest.fixture
def tables():
    """Two tables of different lengths and distributions."""
    rng = np.random.default_rng(0)
    uniform = rng.integers(0, DOMAIN.sizes, (60, 3))
    skewed = np.floor(rng.random((85, 3)) ** 2 * DOMAIN.sizes).astype(np.uint8)
    return uniform, skewed


def test_l1_is_that_of_counting_rows_and_runs_from_0_to_2(tables):
    real, synthetic = tables
    distances = []
    for i, j in PAIRS:
        ours, theirs = ([(row[i], row[j]) for row in table.tolist()] for table in tables)
        shares = (
            (ours.count(cell) / len(real), theirs.count(cell) / len(synthetic))
            for cell in {*ours, *theirs}
        )
        distances.append(sum(abs(one - other) for one, other in shares))
    assert list(l1_by_pair(DOMAIN, real, synthetic).values()) == pytest.approx(distances, rel=1e-12)
    zeros, ones = np.zeros((4, 3), dtype=int), np.ones((9, 3), dtype=int)
    assert average(l1_by_pair(DOMAIN, zeros, np.zeros((7, 3), dtype=int))) == 0
    assert average(l1_by_pair(DOMAIN, zeros, ones)) == pytest.approx(2)
    sparse = Domain(DOMAIN.attributes, (1_000,) * 3)
    assert l1_by_pair(sparse, *tables) == pytest.approx(l1_by_pair(DOMAIN, *tables), rel=1e-12)
    huge = Domain(("a", "b"), (10**9, 10**9))
    ends, middles = np.array([[0, 10**9 - 1]] * 3), np.array([[10**9 // 2] * 2])
    assert average(l1_by_pair(huge, ends, middles)) == 2


def test_sw1_is_that_of_scipy_on_the_embedded_rows(tables):
    real, synthetic = (
        (2 * table.astype(float) + 1) / (2 * np.array(DOMAIN.sizes)) for table in tables
    )
    generator = np.random.default_rng(3)  # one offset a pair, as documented
    distances = []
    for pair in PAIRS:
        offset = generator.random()
        slices = []
        for number in range(20):
            angle = (number + offset) * np.pi / 20
            theta = np.array([np.cos(angle), np.sin(angle)])
            slices.append(wasserstein_distance(real[:, pair] @ theta, synthetic[:, pair] @ theta))
        distances.append(np.mean(slices))
    found = sw1_by_pair(DOMAIN, *tables, num_slices=20, seed=3)
    assert list(found) == list(DOMAIN.cliques(2))
    assert list(found.values()) == pytest.approx(distances, rel=1e-9)


def test_sw1_of_a_shift_is_the_mean_of_its_projections():
    zeros = np.zeros((5, 3), dtype=int)
    moved = zeros + [1, 0, 0]
    found = average(sw1_by_pair(DOMAIN, zeros, moved))
    # 100 equal steps of |cos| integrate it to pi²/(24 * 100²) of its mean at the worst offset.
    assert found == pytest.approx(2 / 3 / np.pi, rel=1e-4)


def test_covariance_error_is_that_of_sums_over_rows(tables):
    covariances = []
    for table in tables:
        points = (2 * table.astype(float) + 1) / (2 * np.array(DOMAIN.sizes))
        far = points - points.mean(axis=0)
        covariances.append(sum(np.outer(row, row) for row in far) / len(points))
    ours, theirs = covariances
    distance = np.sqrt(((ours - theirs) ** 2).sum())
    to_real = distance / np.sqrt((ours**2).sum())
    to_synthetic = distance / np.sqrt((theirs**2).sum())
    assert covariance_error(DOMAIN, *tables) == pytest.approx(to_real, rel=1e-9)
    papers = covariance_error(DOMAIN, *tables, relative_to="synthetic")
    assert papers == pytest.approx(to_synthetic, rel=1e-9)
    assert to_real != pytest.approx(to_synthetic, rel=0.01)  # the tables tell them apart


def test_a_covariance_of_zero_and_one_attribute_have_no_finite_error(tables):
    constant = np.zeros((1, 3), dtype=int)
    assert covariance_error(DOMAIN, constant, constant) == 0
    assert covariance_error(DOMAIN, constant, tables[0]) == np.inf
    assert covariance_error(DOMAIN, constant, tables[0], relative_to="synthetic") == 1
    single = Domain(("a",), (2,))
    with pytest.raises(ValueError, match="at least 2 attributes, got 1"):
        average(l1_by_pair(single, tables[0][:, :1], tables[1][:, :1]))


@pytest.mark.parametrize("distance", DISTANCES)
def test_the_same_shares_have_no_distance_and_outer_codes_are_the_nearest(distance, tables):
    real, _ = tables
    again = np.random.default_rng(1).permutation(np.concatenate([real] * 3))
    # Shares are equal to the last bit; sums over rows are not.
    assert distance(DOMAIN, real, again) == pytest.approx(0, abs=1e-14)
    if distance is not covariance_error:
        assert distance(DOMAIN, real, again) == 0
    real, synthetic = tables
    outside = synthetic.astype(int)
    outside[:3] = [[-4, 7, 99], [2, -1, 5], [300, 3, -9]]
    inside = np.clip(outside, 0, np.array(DOMAIN.sizes) - 1)
    assert distance(DOMAIN, real, outside) == distance(DOMAIN, real, inside)
    with pytest.raises(ValueError, match="one column for each of the 3 attributes"):
        distance(DOMAIN, real, synthetic[:, :2])
    with pytest.raises(ValueError, match="at least one row"):
        distance(DOMAIN, real, synthetic[:0])


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
def test_rows_in_another_order_have_no_error_and_inputs_are_left_as_they_are(errors):
    shuffled = REAL.sample(frac=1, random_state=0)
    assert average(errors(REAL, shuffled, numeric=NUMERIC)) == 0
    assert average(errors(REAL, SYNTHETIC[REAL.columns[::-1]], numeric=NUMERIC)) > 0
    real, synthetic = REAL.copy(), SYNTHETIC.copy()
    errors(real, synthetic, numeric=NUMERIC)
    pd.testing.assert_frame_equal(real, REAL)
    pd.testing.assert_frame_equal(synthetic, SYNTHETIC)
    with pytest.raises(ValueError, match="the same columns"):
        errors(REAL, SYNTHETIC.drop(columns="x"), numeric=NUMERIC)
    with pytest.raises(ValueError, match="at least one row"):
        errors(REAL, SYNTHETIC[:0], numeric=NUMERIC)


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


def test_real_families_are_joined_as_a_fit_joins_them():
    homes = pd.DataFrame({"home": ["1", "2", "02"], "rents": [True, False, True]}, index=[5, 6, 7])
    people = pd.DataFrame({"home": [1.0, 1.0, 1.0, 2.0, np.nan], "age": [3, 4, 5, 6, 7]})
    tree = Tree((Link("homes", "people", "home", 2),))
    found = of_families({"homes": homes, "people": people}, tree)
    assert found["homes"].to_dict("list") == {
        "home": ["1"], "rents": [True], "number of people": [2],
    }  # fmt: skip
    assert found["people"]["homes.rents"].tolist() == [True, True]
    assert set(found["people"]["age"]) < {3, 4, 5}
    assert not len(of_families({"homes": homes[:0], "people": people}, tree)["people"])
