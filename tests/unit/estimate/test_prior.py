"""Public rows that are weighted until they fit noisy tables."""

from dataclasses import replace

import numpy as np
import pytest
from answers import noisy_answers, number_of_rows

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.estimate.consistency import consistent_tables
from sdv_privpgd.estimate.denoising import denoised
from sdv_privpgd.estimate.interactions import of_largest_entropy
from sdv_privpgd.estimate.noisy_tables import noisy_tables
from sdv_privpgd.estimate.prior import (
    PriorComparison,
    PublicRows,
    WeightedRows,
    _shown,
    are_as_good_as_own,
    towards,
    use_of,
    weighted,
)
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.queries import MarginalQuery, Measurement
from sdv_privpgd.synthesize.particles.descent import ParticleGradientDescent

DOMAIN = Domain(("a", "b", "c"), (4, 5, 3))
NUMBER = 4_000


def chain(number, rng, tilt=0.0):
    """Rows of which each column depends on the one before."""
    a = rng.choice(4, number, p=np.array([0.4, 0.3, 0.2, 0.1]))
    b = (a + rng.choice(5, number, p=np.array([0.6 - tilt, 0.2 + tilt, 0.1, 0.06, 0.04]))) % 5
    c = (b + rng.choice(3, number, p=np.array([0.7, 0.2, 0.1]))) % 3
    return np.column_stack([a, b, c])


def counted(codes, clique):
    return Dataset(DOMAIN, codes).counts(clique)


def measured(codes, stddev, seed=0):
    """All pairs with noise, and the number of rows."""
    tables = {clique: counted(codes, clique) for clique in DOMAIN.cliques(2)}
    return [number_of_rows(len(codes)), *noisy_answers(tables, stddev, seed)]


def public(codes, **others):
    return PublicRows(domain=DOMAIN, codes=codes, weights=np.ones(len(codes)), **others)


def error(tables, codes):
    """Half the L1 distance of pairs, as a share of rows."""
    return np.mean(
        [
            np.abs(tables[clique] - counted(codes, clique)).sum() / 2 / len(codes)
            for clique in DOMAIN.cliques(2)
        ]
    )


def test_weighted_rows_have_the_tables_where_there_is_no_noise():
    rng = np.random.default_rng(1)
    codes = chain(NUMBER, rng, tilt=0.2)
    found = weighted(DOMAIN, measured(codes, 0.5), public(chain(8_000, rng)))
    assert found is not None
    tables = {clique: len(codes) * found.shares(clique) for clique in DOMAIN.cliques(2)}
    assert error(tables, codes) < 0.01
    assert found.weights.sum() == pytest.approx(1.0)
    assert found.effective_rows < 8_000


def test_a_near_prior_lowers_the_error_where_noise_is_loud():
    errors = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        codes = chain(NUMBER, rng, tilt=0.05)
        answers = measured(codes, 60.0, seed)
        plain = consistent_tables(DOMAIN, answers)
        prior = weighted(DOMAIN, answers, public(chain(8_000, rng)), seed=seed)
        assert prior is not None
        leant = denoised(towards(plain, answers, prior))
        errors.append((error(denoised(plain).tables, codes), error(leant.tables, codes)))
    without, with_prior = np.mean(errors, axis=0)
    assert with_prior < 0.7 * without


def test_a_far_prior_is_left_out_where_answers_are_clear():
    rng = np.random.default_rng(0)
    codes = chain(NUMBER, rng)
    codes[:, 2] = codes[:, 0] % 3  # what no public row has
    uneven = public(rng.integers(0, 1, (500, 3)))
    assert weighted(DOMAIN, measured(codes, 5.0), uneven) is None
    assert not use_of(uneven, None, consistent_tables(DOMAIN, measured(codes, 5.0))).is_used


@pytest.mark.parametrize("kind", ["few", "uniform"])
def test_a_prior_that_says_nothing_of_pairs_costs_little(kind):
    """Few rows depend by chance; those of equal shares would have to be bent to a handful."""
    errors = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        codes = chain(NUMBER, rng)
        few = chain(30, rng)
        rows = few if kind == "few" else rng.integers(0, DOMAIN.sizes, (8_000, 3))
        answers = measured(codes, 20.0, seed)
        plain = consistent_tables(DOMAIN, answers)
        prior = weighted(DOMAIN, answers, public(rows), seed=seed)
        leant = plain if prior is None else towards(plain, answers, prior)
        errors.append([error(denoised(each).tables, codes) for each in (plain, leant)])
    without, with_prior = np.mean(errors, axis=0)
    assert with_prior < 1.05 * without


def test_answers_tell_how_much_of_a_prior_s_relations_is_there():
    rng = np.random.default_rng(0)
    answers, near = measured(chain(NUMBER, rng), 20.0), chain(8_000, rng)
    turned = np.sort(near, axis=0)  # its columns have the right shares, and no right relation
    turned[:, 1] = turned[::-1, 1]
    known = consistent_tables(DOMAIN, answers)
    noisy = {(None, clique): table for clique, table in noisy_tables(DOMAIN, answers).items()}
    found = [_shown(noisy, known, public(codes)) for codes in (near, turned)]
    assert found[0] == pytest.approx(1, abs=0.05)
    assert found[1] < 0.2
    shares = public(turned).loosened(found[1], 0).codes
    apart = np.multiply.outer(*(np.bincount(column) for column in shares.T[:2])) / 8_000
    assert np.abs(counted(shares, ("a", "b")) - apart).sum() / 8_000 < 0.3


def test_cells_that_no_public_row_has_get_rows_where_answers_say_so():
    rng = np.random.default_rng(0)
    codes = chain(NUMBER, rng)
    rows = chain(8_000, rng)
    rows = rows[(rows[:, 0] != 3) & ~((rows[:, 1] == 0) & (rows[:, 2] == 0))]
    answers = measured(codes, 5.0)
    even = np.full(len(rows), 1 / len(rows))
    prior = WeightedRows(rows=public(rows), weights=even, trust=1.0)
    leant = denoised(towards(consistent_tables(DOMAIN, answers), answers, prior))
    held = counted(codes, ("a",))[3] / NUMBER
    assert leant.one_way["a"][3] / NUMBER == pytest.approx(held, abs=0.02)
    cell = counted(codes, ("b", "c"))[0, 0] / NUMBER
    assert leant.tables["b", "c"][0, 0] / NUMBER == pytest.approx(cell, abs=0.04)


def test_tables_agree_on_their_marginals():
    rng = np.random.default_rng(0)
    answers = measured(chain(NUMBER, rng), 30.0)
    prior = weighted(DOMAIN, answers, public(chain(8_000, rng)))
    assert prior is not None
    tables = towards(consistent_tables(DOMAIN, answers), answers, prior)
    for clique, counts in tables.tables.items():
        for axis, name in enumerate(clique):
            for each in (counts, tables.expected[clique]):
                assert each.sum(axis=1 - axis) == pytest.approx(tables.one_way[name], abs=1)


def test_an_attribute_that_a_prior_lacks_is_independent_of_the_others_at_first():
    rng = np.random.default_rng(0)
    codes, rows = chain(NUMBER, rng), chain(8_000, rng)
    rows[:, 1] = 0  # not read
    one_way = {name: counted(codes, (name,)) + 0.0 for name in DOMAIN.attributes}
    completed = public(rows, lacking=frozenset({"b"})).completed(one_way, 0)
    shares = counted(completed.codes, ("b",)) / len(rows)
    assert shares == pytest.approx(one_way["b"] / NUMBER, abs=1e-3)
    assert np.array_equal(completed.codes[:, [0, 2]], rows[:, [0, 2]])
    apart = counted(completed.codes, ("a", "b")) / len(rows)
    even = np.outer(counted(rows, ("a",)), counted(completed.codes, ("b",))) / len(rows) ** 2
    assert np.abs(apart - even).sum() < 0.06


def compared(apart, stddev, columns=1, num_rows=1e9, draws=1_000):
    """Columns of 1,000 rows with other shares than four equal ones, draw by draw."""
    shares, rng = 0.25 + np.array([apart, -apart, 0, 0]), np.random.default_rng(0)
    domain = Domain(tuple(map(str, range(columns))), (4,) * columns)
    rows = PublicRows(
        domain=domain, codes=np.arange(4)[:, None].repeat(columns, 1), weights=np.ones(4)
    )
    queries = [MarginalQuery((name,)) for name in domain.attributes]
    for _ in range(draws):
        noise = rng.normal(0, stddev, (columns, 4))
        answers = [
            Measurement(query=query, answer=a, stddev=stddev)
            for query, a in zip(queries, 1e3 * shares + noise, strict=True)
        ]
        yield PriorComparison.of(rows, num_rows, answers, 1e3)


@pytest.mark.parametrize("stddev", [40.0, 400.0])
@pytest.mark.parametrize("columns", [1, 10])
def test_one_of_a_hundred_near_priors_is_doubted(columns, stddev):
    """At the distance of 0.5 itself; five standard errors of 1 % are 1.6 %."""
    doubted = np.mean([each.is_wrong.any() for each in compared(0.25, stddev, columns)])
    assert doubted < 0.01 * 2 + 0.016
    assert doubted > 0.001 * (columns == 1)


def test_columns_that_lie_elsewhere_are_seen_alone_or_together():
    (one,) = compared(0.48, 40.0, draws=1)  # a distance of 1.8
    assert one.is_wrong.all()
    together = np.mean([each.is_wrong.all() for each in compared(0.48, 180.0, 10, draws=200)])
    alone = np.mean([each.is_wrong.all() for each in compared(0.48, 180.0, draws=200)])
    assert together > 0.9 > 0.5 > alone


def test_few_public_rows_are_rougher_than_noise():
    few, many = (next(compared(0.0, 40.0, num_rows=number)) for number in (30, 3_000))
    assert few.is_rough.all()
    assert not many.is_rough.any()
    # What chance may have moved is no reason to doubt them, and so far it moves few rows alone.
    doubted = (next(compared(0.3, 1.0, num_rows=number)).is_wrong for number in (30, 3_000))
    assert [each.item() for each in doubted] == [False, True]


def test_rows_are_drawn_as_they_weigh_and_odds_ratios_are_kept():
    weights = np.array([0.5, 0.25, 0.125, 0.125])
    rows = WeightedRows(rows=public(np.arange(4)[:, None] * [1, 1, 0]), weights=weights, trust=1.0)
    drawn = rows.sample(1_000, 0)
    assert np.bincount(drawn[:, 0]) == pytest.approx(1_000 * weights, abs=1)
    shares = np.array([[0.3, 0.2], [0.1, 0.4]])
    margins = {(0,): np.array([[70.0, 30.0]]), (1,): np.array([[20.0, 80.0]])}
    (found,) = of_largest_entropy(margins, shares[None], 100.0)
    assert found.sum(axis=1) == pytest.approx([70, 30], abs=1e-3)
    odds = [each[0, 0] * each[1, 1] / (each[0, 1] * each[1, 0]) for each in (shares, found)]
    assert odds[0] == pytest.approx(odds[1])


def test_particles_are_public_rows_where_these_are_as_good_as_own():
    """What three columns say together, and no pair does, is then kept."""
    rng = np.random.default_rng(0)
    pair = rng.integers(0, 3, (2, NUMBER + 20_000))
    every = np.column_stack([pair[0], pair[1], (pair[0] + pair[1]) % 3])
    own, rows = every[:NUMBER], every[NUMBER:]
    answers = measured(own, 60.0)
    model = ParticleGradientDescent(prior=public(rows)).fit(DOMAIN, answers)
    assert model.prior is not None
    assert model.prior.is_used
    assert ((model.codes[:, 0] + model.codes[:, 1]) % 3 == model.codes[:, 2]).all()
    assert len(model.codes) >= 20_000
    # Not so where the table has a code that they lack, or they are few.
    lacking = rows[rows[:, 0] > 0]
    agreed = consistent_tables(DOMAIN, measured(own, 1.0))
    for those in (lacking, rows[:100]):
        even = np.full(len(those), 1 / len(those))
        prior = WeightedRows(rows=public(those), weights=even, trust=1.0)
        assert not are_as_good_as_own(agreed, prior)
    # Noise makes cells of more rows than there are.
    even = np.full(len(rows), 1 / len(rows))
    prior = WeightedRows(rows=public(rows), weights=even, trust=1.0)
    more = {clique: 9 * counts for clique, counts in agreed.tables.items()}
    assert not are_as_good_as_own(replace(agreed, tables=more), prior)
