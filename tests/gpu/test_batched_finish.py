"""The batched finish: on the processor, and on a device where there is one (-m gpu)."""

import numpy as np
import pytest
import torch
from devices import DEVICES, skip_without

from sdv_privpgd.base.domain import Domain, Grouping
from sdv_privpgd.estimate.interactions import GroupedTarget
from sdv_privpgd.synthesize.particles import batched_finish
from sdv_privpgd.synthesize.particles.batched_finish import BatchedFinish
from sdv_privpgd.synthesize.particles.compiler import HAS_NUMBA
from sdv_privpgd.synthesize.particles.finish import ExchangeFinish, Start, at_all_levels

DOMAIN = Domain(("a", "b", "c"), (3, 4, 5))
GROUPING = Grouping(("a", "b", "c"), ((0, 1, 1), (0, 0, 1, 1), (1, 0, 0, 1, 2)))
WEIGHT = 0.25
MIXED = (("b",), ("c", "a"), ("a", "b", "c"))


@pytest.fixture(params=DEVICES)
def device(request):
    return skip_without(request.param)


def marginals(cliques, *, noise=0.0, domain=DOMAIN, seed=0):
    """Tables of one distribution with strong dependencies, each with noise of its own."""
    rng = np.random.default_rng(seed)
    joint = np.exp(rng.normal(scale=1.5, size=domain.sizes))
    joint /= joint.sum()
    found = {}
    for clique in cliques:
        axes = domain.axes(clique)
        table = np.einsum(joint, list(range(len(domain))), list(axes))
        found[clique] = table + noise * rng.normal(size=table.shape)
    return found


def grouped_of(cliques, **options):
    """The tables over groups of the distribution that ``marginals`` has."""
    return {
        GROUPING: {
            clique: GroupedTarget(GROUPING.sums(table, clique), WEIGHT)
            for clique, table in marginals(cliques, **options).items()
        }
    }


def groups_of(codes):
    return np.stack([GROUPING[name][codes[:, axis]] for axis, name in enumerate("abc")], axis=1)


def independent(num_particles, domain=DOMAIN, seed=1):
    return np.random.default_rng(seed).integers(0, domain.sizes, (num_particles, len(domain)))


def counts(codes, clique, domain=DOMAIN):
    cells = np.ravel_multi_index(tuple(codes[:, domain.axes(clique)].T), domain.shape(clique))
    return np.bincount(cells, minlength=domain.size(clique)).reshape(domain.shape(clique))


def objective(codes, targets, domain=DOMAIN, grouped=None):
    own = sum(
        ((target * len(codes) - counts(codes, clique, domain)) ** 2).sum()
        for clique, target in targets.items()
    )
    for grouping, tables in (grouped or {}).items():
        values = {clique: target.values for clique, target in tables.items()}
        own += WEIGHT * objective(groups_of(codes), values, grouping.domain)
    return own


def test_no_batch_raises_the_squares_and_the_lacks_stay_exact(device):
    targets = marginals(MIXED, noise=0.01)
    grouped = grouped_of((("a", "b", "c"), ("a", "c")), noise=0.01)
    start = Start.of(independent(200), DOMAIN, targets, grouped)
    search = batched_finish._Search.of(start, torch.Generator(device).manual_seed(0))
    codes = search.held
    weights = torch.cat(
        [torch.full((own.values.size,), round(256 * own.weight)) for own in start.tables]
    ).to(device)
    squares = [int((weights * search.lacks.square()).sum())]
    for first, axis in [(0, 0), (0, 2), (110, 2), (110, 1)]:
        before = codes.clone()
        block = slice(first, min(first + 110, 200))
        num_moved = search.move(axis, block)
        np.testing.assert_array_equal(
            codes.cpu(), at_all_levels(start.maps, codes[:3].cpu().numpy())
        )
        recounted = torch.cat([batched_finish._lacks(table, codes) for table in start.tables])
        assert torch.equal(search.lacks, recounted)
        squares.append(int((weights * search.lacks.square()).sum()))
        assert squares[-1] < squares[-2]
        moved = (codes != before).cpu()
        assert set(moved.nonzero()[:, 0].tolist()) == {axis, 3 + axis}
        assert moved[:3, block].sum() == moved[:3].sum() == int(num_moved)


def one_by_one(codes, targets, domain, sweeps):
    """Every code of every particle in turn goes to where the squares are lowest."""
    codes = codes.copy()
    lacks = {q: table * len(codes) - counts(codes, q, domain) for q, table in targets.items()}
    for _ in range(sweeps):
        for particle in np.random.default_rng(0).permutation(len(codes)):
            for axis, size in enumerate(domain.sizes):
                scores, row = np.zeros(size), codes[particle]
                views = []
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


def test_two_sweeps_reach_what_is_reached_one_by_one(device, monkeypatch):
    domain = Domain(("a", "b", "c"), (4, 5, 6))
    targets = marginals(domain.cliques(2), noise=0.01, domain=domain)
    codes = independent(600, domain)
    others = [one_by_one(codes, targets, domain, 2)]
    if HAS_NUMBA:
        others.append(ExchangeFinish(sweeps=2)(codes, domain, targets, 0))
    # The noise of the tables contradicts itself: 752 of the 20,129 squares cannot be settled.
    monkeypatch.setattr(batched_finish, "FEWEST_BLOCKS", 6)
    found = BatchedFinish(sweeps=2, device=str(device))(codes, domain, targets, 0)
    for other in others:
        reached = objective(other, targets, domain)
        assert reached < 0.05 * objective(codes, targets, domain)
        assert objective(found, targets, domain) < 1.05 * reached


def test_tables_over_groups_are_reached_like_those_over_codes(device, monkeypatch):
    monkeypatch.setattr(batched_finish, "FEWEST_BLOCKS", 3)
    targets, codes = marginals(DOMAIN.cliques(1)), independent(400)
    grouped = grouped_of((("a", "b", "c"),))
    finishes = [BatchedFinish(sweeps=3, device=str(device))]
    if HAS_NUMBA:
        finishes.append(ExchangeFinish(sweeps=3))
    before = objective(codes, targets, grouped=grouped)
    for finish in finishes:
        found = finish(codes, DOMAIN, targets, 0, grouped=grouped)
        assert objective(found, targets, grouped=grouped) < 0.05 * before


def test_what_may_not_move_stays_and_what_must_be_empty_is_emptied(device, monkeypatch):
    monkeypatch.setattr(batched_finish, "FEWEST_BLOCKS", 2)
    targets = marginals((("a", "b"), ("b", "c")))
    for table in targets.values():  # code 1 of b is in no table
        table[{3: (slice(None), 1), 4: 1}[len(table)]] = 0
        table /= table.sum()
    forbidden = targets["b", "c"].argmax()
    targets["b", "c"].ravel()[forbidden] = -1
    codes = independent(150)
    kept = codes.copy()
    moved = BatchedFinish(device=str(device))(codes, DOMAIN, targets, 0, fixed=("a",))
    np.testing.assert_array_equal(codes, kept)
    np.testing.assert_array_equal(moved[:, 0], codes[:, 0])
    assert 1 not in moved[:, 1]
    assert counts(moved, ("b", "c")).ravel()[forbidden] == 0
    assert objective(moved, targets) < objective(codes, targets)


def test_the_same_seed_gives_the_same_codes(device, monkeypatch):
    monkeypatch.setattr(batched_finish, "FEWEST_BLOCKS", 2)
    targets, codes = marginals((("a", "c"),)), independent(300)
    finish = BatchedFinish(sweeps=1, device=str(device))
    first, again, other = (finish(codes, DOMAIN, targets, seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_nothing_to_do_changes_nothing(device, monkeypatch):
    monkeypatch.setattr(batched_finish, "FEWEST_BLOCKS", 1)
    codes, pairs = independent(100), (("a", "b"),)
    perfect = {clique: counts(codes, clique) / len(codes) for clique in pairs}
    for sweeps, goals, fixed in (
        (0, marginals(pairs), ()),
        (1, {}, ()),
        (1, marginals(pairs), DOMAIN.attributes),
        (5, perfect, ()),
    ):
        finish = BatchedFinish(sweeps=sweeps, device=str(device))
        np.testing.assert_array_equal(finish(codes, DOMAIN, goals, 0, fixed=fixed), codes)
