"""Answers and their differences have intervals that are where their tests say."""

import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from fast_fits import NUM_ROWS, asked, drawn
from statsmodels.stats.proportion import proportion_confint

from sdv_privpgd.inference.answers import Combined
from sdv_privpgd.inference.intervals import KINDS, Enclosed, Open, Quantile, Ratio, Sum, deviations
from sdv_privpgd.methods.k_way import Independent
from sdv_privpgd.sampling.conditions import Between


@pytest.fixture(scope="module")
def questions():
    return asked(drawn(np.random.default_rng(0))[1])


def among(ward, **where):
    return {"where": where or {"smokes": True}, "among": {"ward": ward}}


def test_a_difference_of_counts_is_as_sure_as_the_tables_say(questions):
    """It is one linear function of the counts: 1 where ward is A, -1 where it is B."""
    counts = [questions.answer("count", where={"ward": ward}) for ward in "AB"]
    difference = counts[0] - counts[1]
    found = questions.linear.answers([{}, {"ward": np.array([1.0, -1, 0, 0])}])
    assert difference.estimate == pytest.approx(found.values[1])
    assert difference.stddev == pytest.approx(math.sqrt(found.covariance[1, 1]))
    low, high = difference.interval("table")
    half = deviations("table", 0.95) * difference.stddev
    np.testing.assert_allclose((low, high), found.values[1] + np.array([-half, half]))
    # Wald's interval, of sampling as well: the rows of both, and of none.
    sampling = sum(each.estimate for each in counts) - found.values[1] ** 2 / NUM_ROWS
    wide = deviations("table", 0.95) * math.sqrt(found.covariance[1, 1] + sampling)
    ends = np.array(difference.interval("population"))
    np.testing.assert_allclose(ends, found.values[1] + np.array([-wide, wide]), atol=0.02 * wide)
    assert "rows" in str(difference)


def test_a_share_less_its_rest_is_twice_as_unsure_and_less_itself_nothing(questions):
    yes, no = (questions.answer("share", where={"smokes": each}) for each in (True, False))
    difference = yes - no
    for kind in KINDS:
        expected = 2 * np.array(yes.interval(kind)) - 1
        np.testing.assert_allclose(difference.interval(kind), expected, atol=1e-9)
        naive = replace(difference.statistic, correlations=dict.fromkeys(KINDS, 0.0))
        parts = [np.subtract(*each.interval(kind, 0.95)) for each in (naive, difference.statistic)]
        assert parts[0] / parts[1] == pytest.approx(2**-0.5)  # and holds the truth 83 times in 100
    assert "points in this table" in str(difference)
    one = questions.answer("mean", of="age", where={"ward": "B"})
    for both, value in ((one - one, 0.0), (one / one, 1.0)):
        assert both.estimate == value
        assert both.stddev == pytest.approx(0.0, abs=1e-9)
        for kind in KINDS:
            np.testing.assert_allclose(both.interval(kind), value, atol=0.02)


@pytest.mark.parametrize("what", ["share", "mean", "sum", "count"])
def test_a_ratio_is_the_other_way_round_over_one(questions, what):
    of = {} if what == "count" else {"of": "age"}
    how = among if what == "share" else lambda ward: {**of, "where": {"ward": ward}}
    one, other = (questions.answer(what, **how(ward)) for ward in "AB")
    for kind in KINDS:
        low, high = (one / other).interval(kind)
        assert low < (one / other).estimate < high
        np.testing.assert_allclose((other / one).interval(kind), (1 / high, 1 / low))


def test_sampling_is_shared_as_far_as_rows_are():
    """Without noise: by none of two wards, and by a ward and all rows as much as it is a part."""
    counts, codes = drawn(np.random.default_rng(0))
    exact = asked(codes, epsilon=1e7)
    one, other = (exact.answer("share", **among(ward)) for ward in "AB")
    everyone = exact.answer("share", where={"smokes": True})
    assert (one - other).statistic.correlations["population"] == pytest.approx(0.0, abs=1e-3)
    rates = [own[1].sum() / own.sum() for own in (counts[0].sum((1, 2)), counts.sum((0, 2, 3)))]
    squares = [rate * (1 - rate) for rate in rates]
    part = math.sqrt(counts[0].sum() / NUM_ROWS * squares[0] / squares[1])
    found = (one - everyone).statistic.correlations["population"]
    assert found == pytest.approx(part, abs=1e-3)


def test_what_the_tables_leave_open_of_two_groups_is_the_model_s(questions):
    class Model:
        block = 1_000

        def sample(self, num_rows, seed):
            return drawn(np.random.default_rng(seed), num_rows)[1]

    own = replace(questions, release=replace(questions.release, model=Model()))
    one = own.answer("share", where={"grade": 3}, among={"smokes": True})
    other = own.answer("share", where={"ward": "A"}, among={"age": Between(6, 11)})
    difference = one - other  # four columns together
    assert "was taken from the model" in difference.notes[-1]
    assert difference.interval("table") == (one - other).interval("table")
    exact = own.answer("share", **among("A")) - own.answer("share", **among("B"))
    assert exact.notes == ()


def test_what_cannot_be_combined_is_refused_with_a_reason(questions):
    count = questions.answer("count", where={"ward": "A"})
    again = asked(drawn(np.random.default_rng(0))[1]).answer("count", where={"ward": "A"})
    share = questions.answer("share", **among("A"))
    median = questions.answer("quantile", of="age", q=0.5)
    with pytest.raises(ValueError, match="of different fits"):
        count - again
    with pytest.raises(ValueError, match="in the same unit, got 'rows' and 'share'"):
        count - share
    for other in (median, count - count, pickle.loads(pickle.dumps(count)), 3.0):
        with pytest.raises(ValueError, match="Two counts, shares, means or sums are combined"):
            count - other
    codes = drawn(np.random.default_rng(0))[1]
    alone = asked(codes, method=Independent(), model=questions.release.model)
    assert alone.answer("count", where={"ward": "A"}).statistic is not None
    bare = replace(count, statistic=None, stddev=None)
    with pytest.raises(ValueError, match="is the model's answer"):
        bare / count
    below = replace(count, statistic=replace(count.statistic, low=-math.inf))
    with pytest.raises(ValueError, match="may be: ask for the difference"):
        below / count


def test_an_end_that_is_not_known_is_not_known_of_a_difference_either():
    mean = Ratio(500.0, 100.0, np.diag([900.0, 1.0]), 4_000.0, low=0.0, high=50.0)
    closed, open_above = Open(mean, False, False), Open(mean, False, True)
    open_below = Open(mean, True, False)
    none = dict.fromkeys(KINDS, 0.0)
    finite = Combined(mean, mean, none, "minus").interval("table", 0.95)
    for how, one, other, expected in (
        ("minus", closed, closed, finite),
        ("minus", open_above, closed, (finite[0], math.inf)),
        ("minus", closed, open_above, (-math.inf, finite[1])),
        ("minus", open_below, open_above, (-math.inf, finite[1])),
        ("divided by", open_above, closed, (None, math.inf)),
        ("divided by", closed, open_above, (0.0, None)),
        ("divided by", open_below, closed, (-math.inf, None)),
    ):
        found = Combined(one, other, none, how).interval("table", 0.95)
        for end, known in zip(found, expected, strict=True):
            assert (math.isfinite(end) and end > 0) if known is None else end == known


def test_noise_that_hides_a_group_leaves_all_that_is_possible():
    hidden = Ratio(5.0, -2.0, np.diag([30.0, 50.0]))
    seen = Ratio(60.0, 150.0, np.diag([30.0, 50.0]))
    none = dict.fromkeys(KINDS, 0.0)
    for kind in KINDS:
        assert Combined(hidden, seen, none, "minus").interval(kind, 0.95) == (-1, 1)
        low, high = Combined(seen, hidden, none, "divided by").interval(kind, 0.95)
        assert 0 < low < 1
        assert math.isinf(high)
    assert math.isnan(Combined(seen, hidden, none, "divided by").value)
    few = Sum(-3.0, 16.0, num_rows=1e3, low=0.0), Sum(40.0, 16.0, num_rows=1e3, low=0.0)
    low, high = Combined(*few, none, "divided by").interval("table", 0.95)
    assert (low, high) == (0.0, pytest.approx(7.84 / 32.16, rel=0.01))


NONE = np.zeros((2, 2))
NOISE = np.array([[30.0, 12.0], [12.0, 50.0]])


def test_without_noise_a_share_has_wilson_s_interval_and_the_table_is_known():
    expected = proportion_confint(30, 200, method="wilson")
    np.testing.assert_allclose(Ratio(30, 200, NONE).interval("population", 0.95), expected)
    count = Sum(30, 0.0, num_rows=200).interval("population", 0.95)
    np.testing.assert_allclose(count, 200 * np.array(expected))
    assert Sum(30, 0.0, num_rows=200).interval("table", 0.95) == (30, 30)
    np.testing.assert_allclose(Ratio(30, 200, NONE).interval("table", 0.95), (0.15, 0.15))
    assert Sum(98.0, 4.0, num_rows=100, high=100.0).interval("table", 0.95).high == 100
    assert Ratio(5.0, 5.0, NOISE, high=1.0).interval("table", 0.95) == (0, 1)  # noise hides all
    hidden = Ratio(5.0, -2.0, NOISE)
    assert hidden.interval("population", 0.95) == (0, 1)
    assert math.isnan(hidden.value)
    assert math.isnan(hidden.stddev)
    low, middle, high = (Sum(value, 9.0, num_rows=1e4) for value in (50.0, 60.0, 400.0))
    enclosed = Enclosed(middle, low, high)
    for kind in KINDS:
        ends = enclosed.interval(kind, 0.9)
        assert ends.low == low.interval(kind, 0.9).low
        assert ends.high == high.interval(kind, 0.9).high


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("beyond", "end"),
    [
        (Ratio(-20.0, 150.0, NOISE), Ratio(0.0, 150.0, NOISE)),
        (Ratio(190.0, 150.0, NOISE), Ratio(150.0, 150.0, NOISE)),
        (Ratio(2.0, 9.0, NOISE / 9, 80.0, 3.0, 8.0), Ratio(27.0, 9.0, NOISE / 9, 80.0, 3.0, 8.0)),
        (Sum(-9.0, 4.0, 100.0, low=0.0), Sum(0.0, 4.0, 100.0, low=0.0)),
        (Sum(130.0, 4.0, 100.0, high=100.0), Sum(100.0, 4.0, 100.0, high=100.0)),
    ],
)
def test_an_estimate_that_is_not_possible_has_the_interval_of_the_nearest_that_is(
    beyond, end, kind
):
    """Its own would be empty or short, and is in it."""
    low, high = beyond.interval(kind, 0.95)
    assert (low, high) == end.interval(kind, 0.95)
    assert high > low
    own = replace(beyond, low=-math.inf, high=math.inf).interval(kind, 0.95)
    assert all(low <= min(max(each, beyond.low), beyond.high) <= high for each in own)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("squares", [None, 4_000.0])
@pytest.mark.parametrize("kind", ["table", "population"])
def test_the_ends_of_a_ratio_are_as_far_off_as_the_level_says(kind, squares, level):
    above, below = 60.0, 150.0
    ratio = Ratio(above, below, NOISE, squares, low=-math.inf, high=math.inf)
    for end in ratio.interval(kind, level):
        weights = np.array([1, -end])
        variance = weights @ NOISE @ weights
        if kind == "population":
            own = above if squares is None else squares
            # Of a share the values are 0 and 1, and their mean under test is the end.
            variance += (
                below * end * (1 - end)
                if squares is None
                else own - 2 * end * above + end**2 * below
            )
        assert abs(above - end * below) == pytest.approx(deviations(kind, level) * variance**0.5)


def test_a_quantile_is_between_the_first_open_ends_of_cells():
    ends = np.arange(5)
    excess = np.array([-50.0, -20.0, 10.0, 40.0, 50.0])
    known = Quantile(0.5, excess, np.zeros(5), 100.0, ends, ends)
    assert known.interval("table", 0.95) == (2, 2)
    noisy = Quantile(0.5, excess, np.full(5, 100.0), 100.0, ends, ends)
    assert noisy.interval("table", 0.95) == (2, 3)
    sampled = Quantile(0.5, excess, np.full(5, 1.0), 400.0, ends, ends)
    assert sampled.interval("population", 0.9) == (2, 3)
    assert sampled.interval("population", 0.99) == (1, 3)
    # An end that only noise put below the quantile closes nothing beyond it.
    odd = Quantile(0.5, np.array([-50.0, 5.0, -50.0, 60.0, 70.0]), np.ones(5), 9.0, ends, ends)
    assert odd.interval("table", 0.95) == (1, 3)
