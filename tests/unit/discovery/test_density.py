"""Where rows lie is found from coarse to fine, and stays wide where the noise hides it."""

from dataclasses import replace

import numpy as np
import pytest

from sdv_privpgd.columns.facts import DateFacts
from sdv_privpgd.discovery.density import DAY, POWERS, YEARS, Density
from sdv_privpgd.discovery.ranges import _finest, _rough_dates
from sdv_privpgd.estimate.noisy_tables import NoisyTable, Total

STDDEV = 100.0


def noisy(counts, seed=0, stddev=STDDEV):
    noise = np.random.default_rng(seed).normal(0.0, stddev, len(counts))
    return NoisyTable(np.asarray(counts) + noise, stddev**2)


def density(counts, seed=0, stddev=STDDEV, edges=None):
    """Of cells of equal width where no others are meant."""
    edges = np.arange(len(counts) + 1.0) if edges is None else edges
    return Density.of(edges, noisy(counts, seed, stddev))


def exactly(counts, stddev=1.0):
    """The counts, as if the noise had been none."""
    counts = np.array(counts, dtype=np.float64)
    return Density.of(np.arange(counts.size + 1.0), NoisyTable(counts, stddev**2))


class TestGrids:
    @pytest.mark.parametrize("grid", [POWERS, YEARS])
    def test_of_noise_alone_the_usual_range_is_left(self, grid):
        counts = np.zeros(len(grid.cells))
        counts[8] = 20.0
        found = [
            grid.held(noisy(counts, seed, 200.0), Total(float(np.sum(counts)), 0.0))
            for seed in range(200)
        ]
        assert sum(each.clear > 0 for each, _, _ in found) <= 3
        assert sum((low, high) == grid.usual for _, low, high in found) >= 197

    def test_rows_far_from_all_others_are_found_across_what_is_empty(self):
        """9 of 10 rows are zero, the others some thousands."""
        counts = np.zeros(len(POWERS.cells))
        (zero, far), _ = POWERS.cells.locate(np.array([0.0, 5_000.0]))
        counts[zero], counts[far] = 18_000, 2_000
        for seed in range(20):
            _, low, high = POWERS.held(
                noisy(counts, seed, 300.0), Total(float(np.sum(counts)), 0.0)
            )
            assert low <= 0
            assert high >= 2**14

    @pytest.mark.parametrize(("others", "zeros", "stddev"), [(640, 960, 140.0), (300, 2_700, 83.0)])
    def test_rows_that_must_lie_somewhere_are_looked_for_where_few_seem_to_be(
        self, others, zeros, stddev
    ):
        """Six or nine of ten are zero, and no power of two has more of the others than noise."""
        counts = np.zeros(len(POWERS.cells))
        amounts = np.random.default_rng(0).gamma(2, 50, others)
        np.add.at(counts, POWERS.cells.locate(np.append(amounts, np.zeros(zeros)))[0], 1)
        without, known = (
            sum(POWERS.held(noisy(counts, seed, stddev), total)[2] >= 128 for seed in range(200))
            for total in (Total(0.0, 0.0), Total(others + zeros, stddev))
        )
        assert known > 1.2 * without
        assert known > 150

    def test_a_tail_that_noise_hides_is_seldom_looked_for_far_from_all_others(self):
        """45 of 2,000 ranges went on to 2**31 where the price fell in all cells, and 17 do."""
        counts = np.zeros(len(POWERS.cells))
        places = np.array([-4.0, 0.5, 4.0, 500.0, 1_500.0, 1_900.0, 5_000.0])
        counts[POWERS.cells.locate(places)[0]] = [60, 1_500, 300, 60, 60, 60, 60]
        total = Total(2_100.0, 40.0)
        highs = [POWERS.held(noisy(counts, seed, 40.0), total)[2] for seed in range(2_000)]
        assert sum(high > 2**20 for high in highs) < 30

    @pytest.mark.parametrize("total", [Total(0.0, 0.0), Total(4_000, 60.0)])
    def test_no_range_of_large_numbers_goes_on_to_the_largest(self, total):
        """Ten digits, as of phones and taxes: each cell up to 2**62 would have its noise."""
        counts = np.zeros(len(POWERS.cells))
        (large,), _ = POWERS.cells.locate(np.array([3.4e9]))
        counts[large] = 4_000
        for seed in range(20):
            _, low, high = POWERS.held(noisy(counts, seed, 60.0), total)
            assert (low, high) == (2**31, 2**35)


class TestPrecision:
    @pytest.mark.parametrize("rows", [3_000, 300_000])
    def test_noise_hardly_ever_makes_fractions_of_whole_numbers(self, rows):
        """Codes of decimal places: all rows have none. A table has many such columns."""
        counts = np.append(float(rows), np.zeros(8))
        wrong = [_finest(noisy(counts, rows + seed, 60.0))[0] != 0 for seed in range(3_000)]
        assert sum(wrong) <= 9
        total = Total(float(rows), 30.0)
        wrong = [_finest(noisy(counts, rows + seed, 60.0), total)[0] != 0 for seed in range(3_000)]
        assert sum(wrong) <= 9

    def test_cents_beside_many_zeros_are_seen_by_what_no_coarser_number_is(self):
        """In 16 of 100 tables they were taken for whole numbers."""
        counts, total = np.array([900.0, 60, 540, *[0] * 6]), Total(1_500.0, 56.0)
        found = [_finest(noisy(counts, seed, 112.0), total)[0] for seed in range(300)]
        assert np.mean([code == 0 for code in found]) < 0.05
        few = Total(300.0, 56.0)  # all with a decimal: they are no whole numbers that are clear
        clear = [_finest(noisy(counts[:2] * 0 + [0, 300], seed, 112.0), few) for seed in range(300)]
        assert not any(found == (0, True) for found in clear)

    def test_noise_makes_no_months_of_few_days(self):
        """90 rows of which 3 are the first of a month, as in a table of three months."""
        facts, counts = DateFacts(), np.array([0.0, 3, 87, 0, 0, 0, 0])
        year = 0.0, 366.0 * DAY
        found = [_rough_dates(facts, year, noisy(counts, seed, 40.0), False) for seed in range(300)]
        assert {each.whole for each in found}.isdisjoint({"Y", "M"})


class TestEnds:
    def test_a_tail_is_kept_as_far_as_rows_may_be_in_it(self):
        counts = [5_000.0] * 10 + [60.0] * 10 + [0.0] * 40
        assert exactly(counts).end(sum(counts)) == 20
        assert exactly(counts[::-1]).backwards.end(sum(counts)) == 20
        counts = [1_000.0] * 10 + [0.0] * 20
        assert exactly(counts, 1.0).end(10_000) == 10
        assert exactly(counts, 90.0).end(10_000) > 15
        counts = np.array([1_000.0] * 10 + [2_000, 0, 0])
        edges = np.array([*range(0, 110, 10), 101, 150, 200], dtype=np.float64)
        noisy = NoisyTable(counts, 150.0**2)
        assert Density.of(edges, noisy).end(12_000) == 11
        assert Density.of(np.arange(14.0), noisy).end(12_000) > 11
        assert density([0.0] * 50).end(100.0) == 50
        # Noise may hide more rows beyond than a number has that looks like a cap.
        noisy = NoisyTable(np.array([1_000.0] * 10 + [900, 120, 120]), 350.0**2)
        found = Density.of(edges, noisy)
        assert found.reach == 11
        assert found.end(11_140) == 13

    def test_beyond_the_rows_few_counts_have_little_noise(self):
        """60 cells without rows become six, and the noise of all hardly more for that."""
        before = density([500.0] * 5 + [0.0] * 30, 1, 10.0, np.arange(36) * 2.0)
        fine = Density.of(np.arange(70.0 + 1), noisy([250.0] * 10 + [0.0] * 60, 2, 10.0), before)
        found = fine.thinned()
        np.testing.assert_allclose(np.diff(found.edges), [*[1] * 10, 1, 2, 4, 8, 16, 29])
        assert found.counts.sum() == pytest.approx(fine.counts.sum())
        assert fine.tail_counts[1][0] <= found.tail_counts[1][0] < 1.1 * fine.tail_counts[1][0]
        np.testing.assert_allclose(found.variances[:10], fine.variances[:10])

    def test_a_tail_falls_as_the_rows_before_it_do(self):
        """Noise of 100 rows beyond 4,000 even ones lies near, and beyond money far out."""
        even, falling = np.full(32, 125.0), 4_000 * -np.diff((1 + np.arange(33) / 4) ** -2.0)
        far = []
        for counts in (even, falling):
            tail = exactly(np.append(counts, np.zeros(96)), 10.0).rows()
            far.append(tail[48:].sum() / tail[32:].sum())
        assert far[0] < 1e-4 < 0.02 < far[1]

    def test_a_broad_tail_beside_one_heavy_value_is_kept_though_no_cell_of_it_stands_out(self):
        """Ten cells of 30 rows beside noise of 29: together they are clear."""
        truth = np.concatenate([[2_000.0], np.full(10, 30.0), np.zeros(4)])
        ends = []
        for seed in range(50):
            found = density(truth, seed, 29.0).summing_up_to(Total(2_300.0, 40.0))
            ends.append(found.reach)
        assert np.mean(np.array(ends) >= 8) > 0.8


class TestTwoCounts:
    @pytest.mark.long
    def test_what_was_counted_twice_is_combined(self):
        rng = np.random.default_rng(0)
        truth, starts = np.array([5.0, 7, 1, 0, 3, 9]), [0, 3, 5]
        sums = np.add.reduceat(truth, starts)
        found = []
        for _ in range(4_000):
            before = Density.of(
                np.array([0.0, 3, 5, 6]), NoisyTable(sums + rng.normal(0, 2, 3), 4.0)
            )
            fine = NoisyTable(truth + rng.normal(0, 3, 6), 9.0)
            found.append(Density.of(np.arange(7.0), fine, before))
        totals = np.array([np.add.reduceat(each.counts, starts) for each in found])
        np.testing.assert_allclose(totals.mean(axis=0), sums, atol=0.1)
        # Of a variance the relative standard error is sqrt(2 / 4,000), 2 %.
        np.testing.assert_allclose(totals.var(axis=0), found[0].sums, rtol=0.09)
        cells = np.array([each.counts for each in found])
        np.testing.assert_allclose(cells.var(axis=0), found[0].variances, rtol=0.09)
        beyond = np.cumsum(cells[:, ::-1], axis=1)[:, ::-1]
        np.testing.assert_allclose(beyond.std(axis=0), found[0].tail_counts[1], rtol=0.05)
        found = density([50.0, 7, 1, 0, 3, 9]).summing_up_to(Total(70.0, 0.0))
        assert found.counts.sum() == pytest.approx(70)

    @pytest.mark.parametrize("seed", range(10))
    def test_blocks_say_where_rows_lie_that_no_cell_shows(self, seed):
        """40 % of the rows in 64 cells, each below the noise, far from one cell with all others."""
        counts = np.array([4_800] + [0] * 127 + [50] * 64 + [0] * 64) + 0.0
        edges, starts = 2.0 ** (np.arange(257) / 16), range(0, 256, 16)
        before = density(np.add.reduceat(counts, starts), seed, 80.0, edges[::16])
        fine = noisy(counts, seed + 99, 150.0)
        found = Density.of(edges, fine, before).rows(light=True)
        assert found[128:192].sum() == pytest.approx(3_200, rel=0.2)
        assert found[1:128].sum() < 700
        assert found[0] == pytest.approx(4_800, rel=0.15)


class TestRows:
    @pytest.mark.parametrize("seed", range(20))
    def test_an_empty_half_of_a_range_keeps_few_rows_and_keeps_them_near(self, seed):
        found = density([1_000] * 20 + [0] * 80, seed).rows()
        beyond = found[20:]
        # In cells of 100; noise spread evenly would give 3 or more.
        assert (beyond * np.arange(1, 81)).sum() / found.sum() < 2.0

    def test_both_ends_are_alike_and_tails_below_the_noise_keep_their_rows(self):
        own = density([0] * 40 + [1_000] * 20 + [0] * 40)
        np.testing.assert_allclose(own.backwards.rows(), own.rows()[::-1])
        tail = 60 * 0.97 ** np.arange(100)  # each cell below the noise, 1,900 rows together
        counts = np.concatenate([np.full(20, 1_000.0), tail])
        kept = [density(counts, seed).rows()[20:].sum() for seed in range(40)]
        assert 0.5 < np.mean(kept) / tail.sum() < 2
        found = density([5_000] * 3 + [0] * 200).rows()
        assert (found[3:] > 0).all()
        assert (np.diff(found[4:]) <= 0).all()
        own = density([0] * 30 + [1_000] * 20 + [0] * 50)
        light, full = own.rows(light=True), own.rows()
        end = np.flatnonzero(light[50:] < full[50:]) + 50
        assert light[end].sum() < 1e-5 * light.sum()
        assert 0 < full[end].sum() <= max(2 * STDDEV, light.sum() / 32)
        np.testing.assert_allclose(light[end] / light[end].sum(), full[end] / full[end].sum())
        np.testing.assert_array_equal(light[40 : end[0]], full[40 : end[0]])

    def test_clear_values_single_cells_and_noise_alone_stay_where_they_are(self):
        found = density([1_000] * 20 + [0] * 79 + [900]).rows()
        assert found[-1] == pytest.approx(900, abs=4.5 * STDDEV)
        found = density([0] * 50).rows()
        assert found.shape == (50,)
        assert (found >= 0).all()
        assert exactly([1_000.0]).rows().tolist() == [1_000.0]

    def test_neither_where_cells_begin_nor_their_unit_makes_a_difference(self):
        """Dates have no zero."""
        counts, edges = [0] * 30 + [1_000] * 20 + [0] * 50, np.cumsum(np.arange(1, 102)) + 0.0
        found = [density(counts, edges=own).rows() for own in (edges, 7 * edges + 1e6)]
        np.testing.assert_allclose(*found)

    @pytest.mark.parametrize("size", [20, 200, 2_000])
    def test_noise_seldom_looks_like_rows(self, size):
        assert sum(density(np.zeros(size), seed).clear > 0 for seed in range(400)) <= 4

    @pytest.mark.parametrize("seed", range(5))
    def test_cells_of_little_noise_are_not_judged_by_others(self, seed):
        """A cell of 1,000 rows that is known well, beside 40 that were counted in a hurry."""
        counts = np.array([1_000.0] + [50.0] * 40)
        before = density([1_000.0, 2_000.0], seed, 10.0, np.array([0.0, 1, 41]))
        found = Density.of(np.arange(42.0), noisy(counts, seed + 9, 600.0), before).rows()
        assert found[0] == pytest.approx(1_000, abs=50)


class TestCloser:
    def test_cells_are_cut_by_their_share_as_far_as_the_noise_allows(self):
        edges = exactly([0, 6_000, 2_500, 0]).closer(8_500, {}, 10.0)
        assert list(edges[[0, 1, -2, -1]]) == [0, 1, 3, 4]
        assert np.isin(edges, [1, 2, 3]).sum() == 3
        assert 2 < ((edges > 1) & (edges < 2)).sum() / ((edges > 2) & (edges < 3)).sum() < 3
        assert exactly([8_000, 500, 500]).closer(9_000, {0.0: 8_000}, 10.0) is not None
        assert exactly([8_000, *[50] * 20]).closer(9_000, {0.5: 8_000}, 10.0) is None
        own = exactly([500.0] * 8)
        sizes = [own.fine_edges(512, stddev, whole=False).size - 1 for stddev in (10, 100, 400)]
        assert sizes == [200, 34, 10]
        quarters = replace(own, edges=4 * own.edges)
        assert quarters.fine_edges(512, 10.0, whole=True).size - 1 == 32

    def test_rows_under_loud_noise_are_about_where_they_lie(self):
        """Of 1,500 rows in one cell, by a closer look and the fine one."""
        off = []
        for seed in range(40):
            rows = np.sort(np.random.default_rng(seed).beta(4, 2, 1_500))

            def look(edges, stddev, before=None, rows=rows, seed=seed):
                counts = np.histogram(rows, edges)[0]
                return Density.of(edges, noisy(counts, 7 * seed + len(edges), stddev), before)

            first = look(np.array([0.0, 1.0]), 110.0)
            closer = look(first.closer(1_500.0, {}, 140.0), 140.0, first).thinned()
            found = look(closer.fine_edges(513, 85.0, whole=False), 85.0, closer)
            below = np.cumsum(found.rows()) / found.rows().sum()
            off.append(np.abs(below - np.searchsorted(rows, found.edges[1:]) / 1_500).max())
        assert np.mean(off) < 0.18  # 0.25 in cells as many as the squares of deviations

    @pytest.mark.parametrize(
        ("counts", "stddev"),
        [
            ([100] * 80, 1.0),  # spread already
            ([8_000, 0], 2_500.0),  # not clear
        ],
    )
    def test_no_further_look_where_it_would_say_nothing(self, counts, stddev):
        assert exactly(counts, stddev).closer(8_000, {}, stddev) is None

    def test_cells_where_rows_begin_and_end_are_cut_further(self):
        """What a cell of few rows there holds says how far a range reaches."""
        own = exactly([50, *[2_000] * 9, 50])
        parts = np.diff(np.searchsorted(own.fine_edges(16, 1.0, whole=False), range(12)))
        assert parts.tolist() == [8, *[2] * 9, 8]


@pytest.mark.parametrize(("clear", "least", "most"), [(60, 0, 10), (1, 40, 100)])
def test_a_hint_counts_less_the_wider_it_would_make_the_clear_range(clear, least, most):
    """It is of three standard deviations, and was believed in 61 of 100 tables.

    Beside one cell, such as that of zeros, nothing says how widely other rows are spread.
    """
    counts = np.repeat([6_000 / clear, 5.0], [clear, 32])
    edges = np.append(np.linspace(0, 1, clear + 1), np.linspace(60, 2_000, 32))
    found = [density(counts, seed, 10.0, edges).reach > clear for seed in range(100)]
    assert least <= sum(found) <= most


def test_tails_of_huge_numbers_have_rows():
    """Beside such cells the length of an eighth of the rows may be as good as zero."""
    huge = density([700.0, 300.0, 0.0, 0.0], stddev=10.0, edges=1e30 * np.arange(5.0))
    assert np.isfinite(huge.rows()).all()
