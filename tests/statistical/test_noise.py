"""The noise is a rounded Gaussian of the stated scale, to the last bit, from the system's source.

Tests of the law take their words from a seeded generator, so that they cannot fail by chance;
each also shows that it would reject a wrong law.
"""

import math
import random
import subprocess
import sys
from fractions import Fraction
from itertools import combinations

import mpmath
import numpy as np
import pytest
from answers import Words, seeded_words
from scipy.special import ndtr
from scipy.stats import chi2

from sdv_privpgd.privacy.noise import MAX_STDDEV, SAMPLING_DELTA, _tail, rounded_gaussian

pytestmark = pytest.mark.long

ALPHA = 1e-6
Z = 4.9  # two-sided normal quantile of ALPHA
DRAWS = 200_000
SCALES = (0.3, 2.8, 13.9, 50.3, 350.0)


def draw(stddev, seed, size=DRAWS):
    return rounded_gaussian(stddev, size, seeded_words(seed))


def chi_square_p_value(draws, stddev):
    """Of the draws against the exact probabilities of bins of about sigma / 8."""
    width = max(1, round(stddev / 8))
    reach = math.ceil(8 * stddev / width) * width
    last = np.arange(-reach, reach, width)  # the last integer of each bin but the topmost
    below = np.concatenate(([0.0], ndtr((last + 0.5) / stddev), [1.0]))
    above = np.concatenate(([1.0], ndtr(-(last + 0.5) / stddev), [0.0]))
    # Differences on the side where they do not cancel.
    chances = np.where(below[1:] < 0.5, np.diff(below), -np.diff(above))
    seen = np.bincount(np.searchsorted(last, draws), minlength=len(chances))
    kept = chances * len(draws) >= 10  # for the chi-square approximation; the rest is one bin
    chances = np.append(chances[kept], chances[~kept].sum())
    seen = np.append(seen[kept], seen[~kept].sum())
    expected = chances * len(draws)
    if expected[-1] < 10:
        chances, seen, expected = chances[:-1], seen[:-1], expected[:-1]
    return chi2.sf(np.sum((seen - expected) ** 2 / expected), len(expected) - 1)


@pytest.mark.parametrize("stddev", SCALES)
def test_draws_follow_the_exact_probabilities(stddev):
    assert chi_square_p_value(draw(stddev, 1), stddev) > ALPHA


@pytest.mark.parametrize("stddev", SCALES)
@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_the_chi_square_test_rejects_a_scale_wrong_by_a_tenth(stddev, factor):
    assert chi_square_p_value(draw(factor * stddev, 1), stddev) < ALPHA


def test_the_chi_square_test_rejects_truncation_in_place_of_rounding():
    normals = np.random.default_rng(0).normal(0, 2.8, DRAWS)
    assert chi_square_p_value(np.rint(normals).astype(int), 2.8) > ALPHA
    assert chi_square_p_value(np.trunc(normals).astype(int), 2.8) < ALPHA


def moments(stddev):
    """The exact second and fourth moments of the rounded Gaussian."""
    reach = math.ceil(12 * stddev) + 2
    k = np.arange(1, reach)
    chances = 2 * (ndtr(-(k - 0.5) / stddev) - ndtr(-(k + 0.5) / stddev))
    return (chances * k.astype(float) ** 2).sum(), (chances * k.astype(float) ** 4).sum()


def variance_z(draws, stddev):
    second, fourth = moments(stddev)
    error = math.sqrt((fourth - second**2) / len(draws))
    return (np.mean(draws.astype(float) ** 2) - second) / error


@pytest.mark.parametrize("stddev", [*SCALES, 1e5, 4e7])
def test_the_variance_is_the_exact_one(stddev):
    if stddev > 1000:  # rounding no longer matters: the Gaussian's own moments
        error = math.sqrt(2 / DRAWS)
        for factor, accepted in ((1.0, True), (0.97, False), (1.03, False)):
            draws = draw(factor * stddev, 2) / stddev
            assert (abs(np.mean(draws**2) - 1) / error < Z) is np.bool_(accepted)
        return
    assert abs(variance_z(draw(stddev, 2), stddev)) < Z
    # At 200,000 draws the standard error of the variance is 0.3 % (more for tiny sigmas): 10 %
    # of scale is far outside at every sigma, and 3 % at all but the first.
    assert abs(variance_z(draw(0.9 * stddev, 2), stddev)) > Z
    if stddev > 1:
        assert abs(variance_z(draw(0.97 * stddev, 2), stddev)) > Z


@pytest.mark.parametrize("stddev", SCALES)
def test_the_mean_is_zero(stddev):
    draws, error = draw(stddev, 3), math.sqrt(moments(stddev)[0] / DRAWS)
    assert abs(draws.mean()) < Z * error
    assert abs((draws + 0.05 * stddev).mean()) > Z * error  # a bias of 5 % of sigma is seen
    signs = np.sign(draws)
    assert abs(signs.sum()) < Z * math.sqrt(np.abs(signs).sum())


def correlation(x, y):
    return np.corrcoef(x, y)[0, 1]


@pytest.mark.parametrize("stddev", SCALES)
def test_draws_are_not_correlated_with_those_before_them(stddev):
    draws, limit = draw(stddev, 4), Z / math.sqrt(DRAWS)
    for lag in (1, 2, 3, 7, 64):
        assert abs(correlation(draws[:-lag], draws[lag:])) < limit
        assert abs(correlation(abs(draws[:-lag]), abs(draws[lag:]))) < limit
    smoothed = draws[:-1] + 0.05 * draws[1:]
    assert abs(correlation(smoothed[:-1], smoothed[1:])) > limit


def test_two_calls_share_no_noise():
    source, limit = seeded_words(5), Z / math.sqrt(DRAWS)
    first, second = (rounded_gaussian(13.9, DRAWS, source) for _ in range(2))
    assert abs(correlation(first, second)) < limit
    reused = rounded_gaussian(13.9, DRAWS, seeded_words(5))
    assert correlation(first, reused) == pytest.approx(1)


@pytest.mark.parametrize("stddev", [1e-300, 1e-3, 0.3, 13.9, 1e6, 1e9])
def test_draws_are_int64_of_the_size_asked_for(stddev):
    for size in (0, 1, 1000):
        draws = rounded_gaussian(stddev, size)
        assert draws.dtype == np.int64
        assert draws.shape == (size,)


@pytest.mark.parametrize("stddev", [*SCALES, 1e6])
def test_a_whole_fit_of_22_attributes_is_drawn_at_once(stddev):
    """In one piece: of the right scale from end to end, and no part of it comes twice."""
    draws = draw(stddev, seed=8, size=236_544)
    assert draws.shape == (236_544,)
    second, fourth = moments(stddev) if stddev < 1e3 else (stddev**2, 3 * stddev**4)
    parts = draws.reshape(4, -1).astype(float)
    error = math.sqrt((fourth - second**2) / parts.shape[1])
    assert np.abs((parts**2).mean(axis=1) - second).max() < Z * error
    for one, other in combinations(parts, 2):
        assert abs(correlation(one, other)) < Z / math.sqrt(parts.shape[1])


@pytest.mark.parametrize("stddev", [0.0, -1.0, math.nan, math.inf, 2 * MAX_STDDEV])
def test_a_scale_that_is_none_is_refused(stddev):
    with pytest.raises(ValueError, match="stddev"):
        rounded_gaussian(stddev, 1)


def test_noise_of_a_trillion_is_the_most():
    assert MAX_STDDEV == 2.0**40
    # Every third or so is decided by further bits, here of the operating system.
    assert np.abs(rounded_gaussian(2.0**40, 60)).max() < 39 * 2**40
    with pytest.raises(
        ValueError, match=r"^stddev must be in \(0, 1\.09951e\+12\], got 1099511627776\.000"
    ):
        rounded_gaussian(math.nextafter(2.0**40, math.inf), 1)


# The law bit by bit, against arithmetic in 1,600 bits


def boundary(stddev, k, bits):
    """floor(2^bits P(|N| > k + 1/2)), by the normal distribution function."""
    with mpmath.workprec(1600):
        tail = 2 * mpmath.ncdf(-(mpmath.mpf(2 * k + 1) / 2) / mpmath.mpf(stddev))
        return int(mpmath.floor(mpmath.ldexp(tail, bits)))


def expected_magnitude(stddev, uniform, extra):
    """How many boundaries lie above the word and its further bits, by bisection."""
    whole = uniform << 1024 | extra
    low, high = 0, math.ceil(45 * stddev) + 1
    while low < high:
        middle = (low + high) // 2
        if whole < boundary(stddev, middle, 1087):
            low = middle + 1
        else:
            high = middle
    return low


CELLS = [
    (0.3, 0), (0.3, 1), (2.8, 0), (2.8, 9), (13.9, 14), (50.3, 0), (50.3, 200), (350.0, 1000),
    (4e7, 123_456_789),
]  # fmt: skip


@pytest.mark.parametrize(("stddev", "k"), CELLS)
def test_a_word_on_a_boundary_is_decided_by_its_further_bits(stddev, k):
    whole = boundary(stddev, k, 1087)
    uniform, edge = whole >> 1024, whole & (2**1024 - 1)
    # Exactly on the boundary the tail beyond k is not exceeded; one step below it is.
    for extra, magnitude in (
        (0, k + 1), (edge - 1, k + 1), (edge, k), (edge + 1, k), (2**1024 - 1, k)
    ):  # fmt: skip
        for sign in (0, 1):
            words = Words(uniform << 1 | sign, extra)
            drawn = int(rounded_gaussian(stddev, 1, words)[0])
            assert words.asked == [8, 128]  # double precision did not decide
            assert drawn == (-magnitude if sign else magnitude)
            assert magnitude == expected_magnitude(stddev, uniform, extra)


@pytest.mark.parametrize(("stddev", "k"), CELLS)
@pytest.mark.parametrize("offset", [-(2**21), -(2**10), -3, -1, 1, 3, 2**10, 2**21])
def test_words_next_to_a_boundary_fall_on_their_side(stddev, k, offset):
    uniform = boundary(stddev, k, 63) + offset
    words = Words(uniform << 1, 2**1000 + 7)
    drawn = int(rounded_gaussian(stddev, 1, words)[0])
    assert drawn == (k + 1 if offset < 0 else k) == expected_magnitude(stddev, uniform, 0)
    if abs(offset) == 1:
        assert words.asked == [8, 128]
    # At 2^21 words, beyond any margin of 2^-44 of 2^63, no further bits are asked for.
    if abs(offset) == 2**21:
        assert words.asked == [8]


@pytest.mark.parametrize(
    ("stddev", "k", "inside", "outside"),
    [
        (50.3, 0, (-430_000, 430_000), (-600_000, 600_000)),  # 2^19 is 2^-44 of nearly 2^63
        (50.3, 10, (-370_000, 370_000), (-500_000, 500_000)),  # and 2^18.7 of the tail there
        (13.9, 111, (-1, 2), (-2, 3)),  # where 2^-44 of the tail is nothing: two words
        (350.0, 2800, (-1, 2), (-2, 3)),
    ],
)
def test_further_bits_are_asked_for_within_the_margin_and_not_beyond(stddev, k, inside, outside):
    edge = boundary(stddev, k, 63)
    for offsets, asked in ((inside, [8, 128]), (outside, [8])):
        for offset in offsets:
            words = Words((edge + offset) << 1)
            rounded_gaussian(stddev, 1, words)
            assert words.asked == asked


@pytest.mark.parametrize("stddev", [0.3, 2.8, 350.0, 1e6])
@pytest.mark.parametrize("extra", [0, 1, 2**1024 - 1])
@pytest.mark.parametrize("uniform", [0, 1, 2, 2**63 - 1])
def test_the_first_and_last_words_are_placed_too(stddev, uniform, extra):
    drawn = int(rounded_gaussian(stddev, 1, Words(uniform << 1, extra))[0])
    assert drawn == expected_magnitude(stddev, uniform, extra)
    assert drawn <= 39 * stddev + 1  # beyond lies less than 2^-1087


@pytest.mark.parametrize("stddev", SCALES)
def test_random_words_are_placed_as_by_exact_arithmetic(stddev):
    uniforms = np.random.default_rng(6).integers(0, 2**63, 100, dtype=np.uint64)
    small = uniforms >> np.arange(0, 50, 0.5).astype(np.uint64)  # the tails, too
    for uniform in (int(word) for word in (*uniforms[:20], *small[::2])):
        drawn = int(rounded_gaussian(stddev, 1, Words(uniform << 1))[0])
        assert drawn == expected_magnitude(stddev, uniform, 0)


@pytest.mark.parametrize("stddev", [*SCALES, 1e6])
def test_the_magnitude_falls_as_the_uniform_rises(stddev):
    rng = np.random.default_rng(7)
    uniforms = np.sort(
        rng.integers(0, 2**63, 20_000, dtype=np.uint64)
        >> rng.integers(0, 40, 20_000).astype(np.uint64)  # the tails, too
    )
    source = (chunk for chunk in [(uniforms << np.uint64(1)).astype("<u8").tobytes()])
    drawn = rounded_gaussian(stddev, len(uniforms), lambda size: next(source, bytes(size)))
    assert (np.diff(drawn) <= 0).all()
    assert drawn[0] > drawn[-1] >= 0


@pytest.mark.parametrize("stddev", SCALES)
def test_double_precision_bounds_hold_the_exact_tail(stddev):
    magnitudes = np.unique(np.linspace(0, math.ceil(9.4 * stddev), 150).astype(np.int64))
    lower, upper = _tail(magnitudes, stddev)
    for k, low, high in zip(magnitudes.tolist(), lower, upper, strict=True):
        with mpmath.workprec(300):
            exact = mpmath.ldexp(
                mpmath.erfc((mpmath.mpf(k) + 0.5) / (mpmath.mpf(stddev) * mpmath.sqrt(2))), 63
            )
            # Half of the margin would do: the bound is generous, as it says.
            middle, half = (mpmath.mpf(low) + high) / 2, (mpmath.mpf(high) - low) / 4
            assert low < exact < high
            assert abs(exact - middle) < half


def test_the_samplers_delta_covers_its_error():
    # One floor a boundary at 2^-1087, at most 39 sigma boundaries of each sign, 2^64 values.
    variation = Fraction(2 * (39 * int(MAX_STDDEV) + 2), 2**1087) * 2**64
    assert variation < Fraction(1, 2**960)
    with mpmath.workdps(50):
        assert (1 + mpmath.exp(570)) * mpmath.mpf(2) ** -960 < mpmath.mpf(2) ** -128
    assert Fraction(1, 2**128) == SAMPLING_DELTA


# Where the words come from


@pytest.mark.fresh_noise
def test_no_seed_has_any_effect_on_the_noise():
    torch = pytest.importorskip("torch")
    from sdv_privpgd.privacy.ledger import FitLedger  # as in a fit

    assert FitLedger.__init__.__kwdefaults__["words"].__name__ == "urandom"

    def seeded_draw():
        np.random.seed(42)  # noqa: NPY002 - SDV's and RDT's own way
        random.seed(42)
        torch.manual_seed(42)
        return rounded_gaussian(50.3, 64)

    assert not np.array_equal(seeded_draw(), seeded_draw())
    # The globals' own draws do repeat, so the seeds were in force.
    seeded_draw()
    first = (random.random(), torch.rand(1).item())
    seeded_draw()
    assert first == (random.random(), torch.rand(1).item())


def test_drawing_noise_leaves_the_global_generators_alone():
    np.random.seed(7)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    rounded_gaussian(50.3, 64)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_forked_processes_draw_different_noise():
    script = (
        "import os, sys\n"
        "from sdv_privpgd.privacy.noise import rounded_gaussian\n"
        "rounded_gaussian(350.0, 8)\n"
        "child = os.fork()\n"
        "os.write(1, (str(rounded_gaussian(350.0, 64).tolist()) + '\\n').encode())\n"
        "os._exit(0) if child == 0 else os.waitpid(child, 0)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    first, second = result.stdout.splitlines()
    assert first != second
