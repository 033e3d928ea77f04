"""The finish, compiled and in batches: on the processor, and on a device where there is one."""

from itertools import pairwise, product

import numpy as np
import pytest
import torch
from devices import DEVICES, needs_numba, skip_without

from sdv_privpgd.base.domain import Domain, Grouping
from sdv_privpgd.estimate.interactions import GroupedTarget
from sdv_privpgd.synthesize.particles import batched_local_search, compiler
from sdv_privpgd.synthesize.particles import local_search as module
from sdv_privpgd.synthesize.particles.batched_local_search import BatchedSearch
from sdv_privpgd.synthesize.particles.local_search import (
    ExchangeSearch,
    Residuals,
    Start,
    at_all_levels,
    nearest,
)

DOMAIN = Domain(("a", "b", "c", "d"), (2, 3, 4, 5))
GROUPING = Grouping(tuple("abcd"), ((0, 1), (0, 1, 1), (0, 0, 1, 1), (1, 0, 2, 0, 1)))
OTHER = Grouping(("d", "b"), ((0, 0, 0, 1, 1), (1, 0, 1)))
MIXED = (("b",), ("a", "c"), ("d", "a"), ("b", "c", "d"))
WEIGHT = 0.5


@pytest.fixture(params=[pytest.param("compiled", marks=needs_numba), *DEVICES])
def finish(request, monkeypatch):
    """Makes a finish of some settings."""
    if request.param == "compiled":
        return ExchangeSearch
    device = str(skip_without(request.param))
    monkeypatch.setattr(batched_local_search, "FEWEST_BLOCKS", 6)  # there are few particles
    return lambda **settings: BatchedSearch(device=device, **settings)


def joint(domain=DOMAIN, seed=0):
    """Probabilities with strong dependencies: some cells are far more likely than others."""
    weights = np.exp(np.random.default_rng(seed).normal(scale=1.5, size=domain.sizes))
    return weights / weights.sum()


def marginals(cliques, table=None, *, noise=0.0, domain=DOMAIN):
    """Tables of one distribution, each with noise of its own."""
    table, rng = joint(domain) if table is None else table, np.random.default_rng(2)
    every = list(range(len(domain)))
    found = {clique: np.einsum(table, every, list(domain.axes(clique))) for clique in cliques}
    return {clique: own + noise * rng.normal(size=own.shape) for clique, own in found.items()}


def grouped_of(noise=0.0):
    """Tables over the groups of two groupings."""
    return {
        grouping: {
            clique: GroupedTarget(grouping.sums(own, clique), WEIGHT)
            for clique, own in marginals(cliques, noise=noise).items()
        }
        for grouping, cliques in ((GROUPING, (("a", "b", "d"), ("d", "c"))), (OTHER, (("b", "d"),)))
    }


def independent(num_particles, domain=DOMAIN, seed=1):
    return np.random.default_rng(seed).integers(0, domain.sizes, (num_particles, len(domain)))


def counts(codes, clique, domain=DOMAIN):
    cells = np.ravel_multi_index(tuple(codes[:, domain.axes(clique)].T), domain.shape(clique))
    return np.bincount(cells, minlength=domain.size(clique)).reshape(domain.shape(clique))


def objective(codes, targets, grouped=None, domain=DOMAIN):
    own = sum(
        ((target * len(codes) - counts(codes, clique, domain)) ** 2).sum()
        for clique, target in targets.items()
    )
    for grouping, tables in (grouped or {}).items():
        names = zip(grouping.attributes, domain.axes(grouping.attributes), strict=True)
        groups = np.stack([grouping[name][codes[:, axis]] for name, axis in names], axis=1)
        values = {clique: target.values for clique, target in tables.items()}
        own += WEIGHT * objective(groups, values, domain=grouping.domain)
    return own


@needs_numba
@pytest.mark.parametrize("num_particles", [1, 7, 300, 10_000])
def test_no_sweep_raises_the_objective(num_particles):
    targets, codes = marginals(MIXED, noise=0.01), independent(num_particles)
    values = [objective(codes, targets)]
    for sweeps in range(1, 6):
        moved = ExchangeSearch(sweeps=sweeps)(codes, DOMAIN, targets, 0)
        values.append(objective(moved, targets))
    # Residuals are float32: one move may misjudge its gain by about 1e-4 of a particle.
    assert all(later <= earlier + 0.01 for earlier, later in pairwise(values))
    if num_particles > 100:
        assert values[-1] < 0.2 * values[0]


@needs_numba
def test_the_residuals_agree_with_recounted_tables():
    targets, grouped, rng = marginals(MIXED), grouped_of(), np.random.default_rng(0)
    shared = Residuals.of(Start.of(independent(5_000), DOMAIN, targets, grouped))
    moved = [
        sum(number for _, number in shared.sweep(np.array([2, 0, 3, 1]), rng)) for _ in range(4)
    ]
    assert moved[0] > 1_000
    recounted = Residuals.of(Start.of(shared.codes[:4].T, DOMAIN, targets, grouped))
    np.testing.assert_array_equal(shared.codes, recounted.codes)
    np.testing.assert_allclose(shared.values, recounted.values, rtol=0, atol=0.01)


@pytest.mark.parametrize("device", DEVICES)
def test_no_batch_raises_the_squares_and_the_lacks_stay_exact(device):
    start = Start.of(independent(200), DOMAIN, marginals(MIXED, noise=0.01), grouped_of(noise=0.01))
    generator = torch.Generator(skip_without(device)).manual_seed(0)
    search = batched_local_search._Search.of(start, generator)
    codes = search.held
    weights = torch.cat(
        [torch.full((own.values.size,), round(256 * own.weight)) for own in start.tables]
    ).to(device)
    squares = [int((weights * search.lacks.square()).sum())]
    for first, axis in [(0, 0), (0, 2), (110, 2), (110, 1)]:
        before, block = codes.clone(), slice(first, min(first + 110, 200))
        num_moved = search.move(axis, block)
        levels = at_all_levels(start.maps, codes[:4].cpu().numpy())
        np.testing.assert_array_equal(codes.cpu(), levels)
        recounted = torch.cat([batched_local_search._lacks(table, codes) for table in start.tables])
        assert torch.equal(search.lacks, recounted)
        squares.append(int((weights * search.lacks.square()).sum()))
        assert squares[-1] < squares[-2]
        moved = (codes != before).cpu()
        assert {row % 4 for row in moved.nonzero()[:, 0].tolist()} == {axis}
        assert moved[:4, block].sum() == moved[:4].sum() == int(num_moved)


@needs_numba
def test_at_the_end_no_move_lowers_the_objective():
    targets, grouped = marginals(MIXED), grouped_of()
    codes = ExchangeSearch(sweeps=1_000)(independent(60), DOMAIN, targets, 0, grouped=grouped)
    reached = objective(codes, targets, grouped)
    for particle, axis in product(range(60), range(4)):
        for code in range(DOMAIN.sizes[axis]):
            changed = codes.copy()
            changed[particle, axis] = code
            assert objective(changed, targets, grouped) >= reached - 1e-4


def one_by_one(codes, targets, domain, sweeps):
    """Every code of every particle in turn goes to where the squares are lowest."""
    codes = codes.copy()
    lacks = {q: table * len(codes) - counts(codes, q, domain) for q, table in targets.items()}
    for _ in range(sweeps):
        for particle in np.random.default_rng(0).permutation(len(codes)):
            for axis, size in enumerate(domain.sizes):
                scores, row, views = np.zeros(size), codes[particle], []
                for clique, lack in lacks.items():
                    axes = domain.axes(clique)
                    if axis in axes:
                        views.append(
                            lack[tuple(slice(None) if q == axis else row[q] for q in axes)]
                        )
                        scores += views[-1]
                scores[row[axis]] += len(views)
                best = scores.argmax()
                for view in views:
                    view[row[axis]] += 1
                    view[best] -= 1
                row[axis] = best
    return codes


def test_two_sweeps_reach_what_is_reached_one_by_one(finish):
    domain = Domain(("a", "b", "c"), (4, 5, 6))
    targets = marginals(domain.cliques(2), noise=0.01, domain=domain)
    codes = independent(600, domain)
    # The noise of the tables contradicts itself: some of the squares cannot be settled.
    reached = objective(one_by_one(codes, targets, domain, 2), targets, domain=domain)
    assert reached < 0.05 * objective(codes, targets, domain=domain)
    found = finish(sweeps=2)(codes, domain, targets, 0)
    assert objective(found, targets, domain=domain) < 1.05 * reached


def test_tables_over_groups_are_reached_like_those_over_codes(finish):
    targets, grouped, codes = marginals(DOMAIN.cliques(1)), grouped_of(), independent(2_000)
    moved = finish(sweeps=15)(codes, DOMAIN, targets, 0, grouped=grouped)
    assert objective(moved, {}, grouped) < 1e-3 * objective(codes, {}, grouped)
    assert objective(moved, targets) < 1e-3 * objective(codes, targets)


def test_codes_without_support_are_left_and_never_chosen(finish):
    table = joint()
    table[:, 1] = 0
    table[:, :, 0] = 0
    targets = marginals(DOMAIN.cliques(2), table / table.sum())
    codes = finish(sweeps=1)(independent(500), DOMAIN, targets, 0)
    assert set(codes[:, 1]) == {0, 2}
    assert set(codes[:, 2]) <= {1, 2, 3}


def test_a_cell_with_a_target_of_minus_one_is_emptied(finish):
    targets = marginals(DOMAIN.cliques(2))
    forbidden = targets["b", "c"].argmax()
    targets["b", "c"].ravel()[forbidden] = -1
    codes = finish()(independent(2_000), DOMAIN, targets, 0)
    assert counts(codes, ("b", "c")).ravel()[forbidden] == 0


def test_fixed_attributes_and_those_in_no_table_stay_as_they_are(finish):
    targets, codes = marginals((("a", "c"), ("b", "c"))), independent(2_000)
    kept = codes.copy()
    moved = finish()(codes, DOMAIN, targets, 0, fixed=("c",))
    np.testing.assert_array_equal(codes, kept)
    np.testing.assert_array_equal(moved[:, 2:], codes[:, 2:])
    assert (moved[:, :2] != codes[:, :2]).any()
    assert objective(moved, targets) < objective(codes, targets)


def test_nothing_to_do_changes_nothing(finish):
    codes, targets = independent(1_000), marginals(DOMAIN.cliques(2))
    perfect = {clique: counts(codes, clique) / len(codes) for clique in DOMAIN.cliques(2)}
    for sweeps, goals, fixed in (
        (0, targets, ()),
        (3, {}, ()),
        (3, targets, DOMAIN.attributes),
        (3, perfect, ()),
    ):
        found = finish(sweeps=sweeps)(codes, DOMAIN, goals, 0, fixed=fixed)
        np.testing.assert_array_equal(found, codes)


def test_the_same_seed_gives_the_same_codes(finish):
    targets, codes = marginals(MIXED), independent(3_000)
    first, again, other = (finish(sweeps=1)(codes, DOMAIN, targets, seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@needs_numba
def test_the_number_of_threads_does_not_matter(monkeypatch):
    targets, codes = marginals(MIXED), independent(20_000)
    found = [ExchangeSearch(sweeps=3)(codes, DOMAIN, targets, 0)]
    monkeypatch.setattr(module, "_PARALLEL_FROM", 0)
    for threads in (1, 2, 3):
        monkeypatch.setattr(compiler.numba.config, "NUMBA_NUM_THREADS", threads)
        found.append(ExchangeSearch(sweeps=3)(codes, DOMAIN, targets, 0))
    for other in found:
        np.testing.assert_array_equal(other, found[0])


def test_the_nearest_supported_code_is_the_lower_of_two():
    found = nearest(np.array([0, 1, 2, 3, 4, 5, 6]), np.array([1, 3, 4]))
    assert found.tolist() == [0, 0, 0, 1, 2, 2, 2]


def test_errors_name_the_argument_and_the_value(finish):
    with pytest.raises(ValueError, match="sweeps must be an integer of at least 0, got -1"):
        finish(sweeps=-1)


def test_scores_have_room_for_groups_of_codes_that_are_not_supported():
    """Where two codes of four are left, scores over four groups are longer than over codes."""
    domain = Domain(("a", "b"), (4, 2))
    groups = Grouping(("a", "b"), ((0, 1, 2, 3), (0, 1)))
    grouped = {groups: {("a", "b"): GroupedTarget(np.full((4, 2), 1 / 8), 1.0)}}
    codes, targets = np.ones((5, 2), dtype=int), {("a",): np.array([0, 0.5, 0.5, 0])}
    residuals = Residuals.of(Start.of(codes, domain, targets, grouped))
    assert residuals.maps.shape[2] == 2
    assert residuals.widest == 4
