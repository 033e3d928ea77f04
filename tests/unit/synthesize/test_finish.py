from itertools import pairwise, product

import numpy as np
import pytest
from answers import margin

from sdv_privpgd.base.domain import Domain, Grouping
from sdv_privpgd.estimate.interactions import GroupedTarget
from sdv_privpgd.synthesize.particles import compiler, finish
from sdv_privpgd.synthesize.particles.finish import ExchangeFinish, Residuals, Start, nearest

DOMAIN = Domain(("a", "b", "c", "d"), (2, 3, 4, 5))


def joint(domain=DOMAIN, seed=0):
    """Probabilities with strong dependencies: some cells are far more likely than others."""
    logits = np.random.default_rng(seed).normal(scale=1.5, size=domain.sizes)
    weights = np.exp(logits)
    return weights / weights.sum()


def marginals(table, cliques, domain=DOMAIN):
    return {clique: margin(table, domain, clique) for clique in cliques}


def counts(codes, clique, domain=DOMAIN):
    cells = np.ravel_multi_index(tuple(codes[:, domain.axes(clique)].T), domain.shape(clique))
    return np.bincount(cells, minlength=domain.size(clique)).reshape(domain.shape(clique))


def objective(codes, targets, domain=DOMAIN):
    return sum(
        ((target * len(codes) - counts(codes, clique, domain)) ** 2).sum()
        for clique, target in targets.items()
    )


def independent(num_particles, domain=DOMAIN, seed=1):
    return np.random.default_rng(seed).integers(0, domain.sizes, (num_particles, len(domain)))


def worst_l1(codes, targets, domain=DOMAIN):
    return max(
        np.abs(counts(codes, clique, domain) / len(codes) - target).sum()
        for clique, target in targets.items()
    )


GROUPING = Grouping(tuple("abcd"), ((0, 1), (0, 1, 1), (0, 0, 1, 1), (1, 0, 2, 0, 1)))
OTHER = Grouping(("d", "b"), ((0, 0, 0, 1, 1), (1, 0, 1)))


WEIGHT = 0.5


def grouped_of(table):
    """Tables over the groups of two groupings."""
    found = {}
    for grouping, cliques in ((GROUPING, (("a", "b", "d"), ("d", "c"))), (OTHER, (("b", "d"),))):
        tables = marginals(table, cliques)
        found[grouping] = {
            clique: GroupedTarget(grouping.sums(own, clique), WEIGHT)
            for clique, own in tables.items()
        }
    return found


def grouped_objective(codes, grouped):
    total = 0.0
    for grouping, targets in grouped.items():
        axes = DOMAIN.axes(grouping.attributes)
        names = zip(grouping.attributes, axes, strict=True)
        groups = np.stack([grouping[name][codes[:, axis]] for name, axis in names], axis=1)
        values = {clique: target.values for clique, target in targets.items()}
        total += WEIGHT * objective(groups, values, domain=grouping.domain)
    return total


MIXED = (("b",), ("a", "c"), ("d", "a"), ("b", "c", "d"))


@pytest.mark.parametrize("sizes", [(4, 5), (3, 4, 5)])
def test_noiseless_pairs_are_reached_to_a_few_particles(sizes):
    domain = Domain(tuple("abc"[: len(sizes)]), sizes)
    targets = marginals(joint(domain), domain.cliques(2), domain)
    codes = ExchangeFinish(sweeps=15)(independent(20_000, domain), domain, targets, 0)
    # A table of 20 cells can miss half a particle in each: 20 * 0.5 / 20,000 = 0.0005.
    assert worst_l1(codes, targets, domain) < 0.002


def test_tables_of_one_two_and_three_attributes_are_fitted_together():
    targets = marginals(joint(), MIXED)
    codes = ExchangeFinish(sweeps=15)(independent(20_000), DOMAIN, targets, 0)
    assert worst_l1(codes, targets) < 0.005


@pytest.mark.parametrize("num_particles", [1, 7, 300, 10_000])
def test_no_sweep_raises_the_objective(num_particles):
    noise = np.random.default_rng(2)
    targets = {
        clique: table + noise.normal(scale=0.01, size=table.shape)
        for clique, table in marginals(joint(), MIXED).items()
    }
    codes = independent(num_particles)
    values = [objective(codes, targets)]
    for sweeps in range(1, 6):
        moved = ExchangeFinish(sweeps=sweeps)(codes, DOMAIN, targets, 0)
        values.append(objective(moved, targets))
    # Residuals are float32: one move may misjudge its gain by about 1e-4 of a particle.
    assert all(later <= earlier + 0.01 for earlier, later in pairwise(values))
    if num_particles > 100:
        assert values[-1] < 0.2 * values[0]


def test_the_books_agree_with_recounted_tables():
    targets = marginals(joint(), MIXED)
    grouped, rng = grouped_of(joint()), np.random.default_rng(0)
    books = Residuals.of(Start.of(independent(5_000), DOMAIN, targets, grouped))
    moved = [
        sum(number for _, number in books.sweep(np.array([2, 0, 3, 1]), rng)) for _ in range(4)
    ]
    assert moved[0] > 1_000
    recounted = Residuals.of(Start.of(books.codes[:4].T, DOMAIN, targets, grouped))
    np.testing.assert_array_equal(books.codes, recounted.codes)
    np.testing.assert_allclose(books.values, recounted.values, rtol=0, atol=0.01)


def test_at_the_end_no_move_lowers_the_objective():
    targets, grouped = marginals(joint(), MIXED), grouped_of(joint())
    codes = ExchangeFinish(sweeps=1_000)(independent(60), DOMAIN, targets, 0, grouped=grouped)
    reached = objective(codes, targets) + grouped_objective(codes, grouped)
    for particle, axis in product(range(60), range(4)):
        for code in range(DOMAIN.sizes[axis]):
            changed = codes.copy()
            changed[particle, axis] = code
            own = objective(changed, targets) + grouped_objective(changed, grouped)
            assert own >= reached - 1e-4


def test_tables_over_groups_are_reached_to_a_few_particles():
    targets, grouped = marginals(joint(), DOMAIN.cliques(1)), grouped_of(joint())
    codes = independent(5_000)
    moved = ExchangeFinish(sweeps=15)(codes, DOMAIN, targets, 0, grouped=grouped)
    assert grouped_objective(moved, grouped) < 1e-5 * grouped_objective(codes, grouped)
    assert objective(moved, targets) < 1e-4 * objective(codes, targets)


def test_codes_without_support_are_left_and_never_chosen():
    table = joint()
    table[:, 1] = 0
    table[:, :, 0] = 0
    table /= table.sum()
    targets = marginals(table, DOMAIN.cliques(2))
    codes = ExchangeFinish(sweeps=1)(independent(500), DOMAIN, targets, 0)
    assert set(codes[:, 1]) == {0, 2}
    assert set(codes[:, 2]) <= {1, 2, 3}


def test_a_cell_with_a_target_of_minus_one_is_emptied():
    targets = marginals(joint(), DOMAIN.cliques(2))
    forbidden = targets["b", "c"].argmax()
    targets["b", "c"].ravel()[forbidden] = -1
    codes = ExchangeFinish()(independent(2_000), DOMAIN, targets, 0)
    assert counts(codes, ("b", "c")).ravel()[forbidden] == 0


def test_fixed_attributes_and_those_in_no_table_stay_as_they_are():
    targets = marginals(joint(), (("a", "c"), ("b", "c")))
    codes = independent(2_000)
    moved = ExchangeFinish()(codes, DOMAIN, targets, 0, fixed=("c",))
    np.testing.assert_array_equal(moved[:, 2:], codes[:, 2:])
    assert (moved[:, :2] != codes[:, :2]).any()
    assert objective(moved, targets) < objective(codes, targets)


def test_nothing_to_do_changes_nothing():
    codes = independent(1_000)
    targets = marginals(joint(), DOMAIN.cliques(2))
    perfect = {clique: counts(codes, clique) / len(codes) for clique in DOMAIN.cliques(2)}
    for own, goals, fixed in (
        (ExchangeFinish(sweeps=0), targets, ()),
        (ExchangeFinish(), {}, ()),
        (ExchangeFinish(), targets, DOMAIN.attributes),
        (ExchangeFinish(), perfect, ()),
    ):
        np.testing.assert_array_equal(own(codes, DOMAIN, goals, 0, fixed=fixed), codes)


def test_the_same_seed_gives_the_same_codes_and_the_argument_is_left_alone():
    targets, codes = marginals(joint(), MIXED), independent(3_000)
    kept = codes.copy()
    first, again, other = (ExchangeFinish()(codes, DOMAIN, targets, seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    np.testing.assert_array_equal(codes, kept)


def test_the_number_of_threads_does_not_matter(monkeypatch):
    targets, codes = marginals(joint(), MIXED), independent(20_000)
    found = [ExchangeFinish(sweeps=3)(codes, DOMAIN, targets, 0)]
    monkeypatch.setattr(finish, "_PARALLEL_FROM", 0)
    for threads in (1, 2, 3):
        monkeypatch.setattr(compiler.config, "NUMBA_NUM_THREADS", threads)
        found.append(ExchangeFinish(sweeps=3)(codes, DOMAIN, targets, 0))
    for other in found:
        np.testing.assert_array_equal(other, found[0])


def test_the_nearest_supported_code_is_the_lower_of_two():
    found = nearest(np.array([0, 1, 2, 3, 4, 5, 6]), np.array([1, 3, 4]))
    assert found.tolist() == [0, 0, 0, 1, 2, 2, 2]


def test_errors_name_the_argument_and_the_value():
    with pytest.raises(ValueError, match="sweeps must be an integer of at least 0, got -1"):
        ExchangeFinish(sweeps=-1)
    with pytest.raises(ValueError, match=r"needs shape \(2, 3\), got \(3, 2\)"):
        ExchangeFinish()(independent(5), DOMAIN, {("a", "b"): np.zeros((3, 2))}, 0)
    grouped = {GROUPING: {("a", "b"): GroupedTarget(np.zeros((2, 3)))}}
    with pytest.raises(ValueError, match=r"The target of \('a', 'b'\) needs shape \(2, 2\)"):
        ExchangeFinish()(independent(5), DOMAIN, {}, 0, grouped=grouped)
    grouped = {Grouping(("b",), ((0,),)): {}}
    with pytest.raises(ValueError, match="'b' has 3 codes and groups for 1 of them"):
        ExchangeFinish()(independent(5), DOMAIN, {}, 0, grouped=grouped)


def test_scores_have_room_for_groups_of_codes_that_are_not_supported():
    """Where two codes of four are left, scores over four groups are longer than over codes."""
    domain = Domain(("a", "b"), (4, 2))
    groups = Grouping(("a", "b"), ((0, 1, 2, 3), (0, 1)))
    grouped = {groups: {("a", "b"): GroupedTarget(np.full((4, 2), 1 / 8), 1.0)}}
    codes, targets = np.ones((5, 2), dtype=int), {("a",): np.array([0, 0.5, 0.5, 0])}
    residuals = Residuals.of(Start.of(codes, domain, targets, grouped))
    assert residuals.maps.shape[2] == 2
    assert residuals.widest == 4
