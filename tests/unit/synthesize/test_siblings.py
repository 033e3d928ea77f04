"""Children change places between parents: who they are stays, and who goes with whom is mended."""

import numpy as np
import pytest

from sdv_privpgd.synthesize.siblings import Places, exchanged

NUMBERS = np.random.default_rng(0).integers(0, 4, 600)


def places(parents, children, most=4):
    numbers = NUMBERS[: len(parents)]
    whose = np.repeat(np.arange(len(numbers)), numbers)
    first = np.r_[0, np.cumsum(numbers)]
    used = np.minimum(numbers, most)
    return Places(
        first=first.astype(np.int64), whose=whose.astype(np.int64), pairs=used.astype(np.int64),
        weights=1 / np.maximum(used * (used - 1), 1), next_weights=1 / np.maximum(numbers - 1, 1),
        order=np.arange(len(whose)), alike=numbers[whose], kin=numbers[whose],
        parents=parents.astype(np.int64), children=children.astype(np.int64),
        groups=children.astype(np.int64), times=np.zeros(0), before=np.zeros(0), starts=np.zeros(0),
    )  # fmt: skip


def couples(codes):
    number = len(codes) // 2
    return places(np.zeros((number, 1)), codes)._replace(
        first=2 * np.arange(number + 1), whose=np.repeat(np.arange(number), 2),
        pairs=np.full(number, 2), weights=np.full(number, 0.5), next_weights=np.ones(number),
        order=np.arange(2 * number), alike=np.arange(2 * number) % 2,
        kin=np.arange(2 * number) % 2,
    )  # fmt: skip


@pytest.fixture
def own():
    rng = np.random.default_rng(1)
    return places(
        rng.integers(0, 2, (len(NUMBERS), 1)), rng.integers(0, 3, (int(NUMBERS.sum()), 2))
    )


def of_parents(own, found):
    cells = own.parents[own.whose, 0] * 3 + own.children[found, 0]
    return np.bincount(cells, minlength=6).reshape(2, 3) / len(found)


def of_siblings(own, found):
    table, codes = np.zeros((3, 3)), own.children[found, 1]
    for parent, (start, stop) in enumerate(zip(own.first[:-1], own.first[1:], strict=True)):
        stop = start + min(stop - start, own.pairs[parent])
        for x in range(start, stop):
            for y in range(start, stop):
                if x != y:
                    table[codes[x], codes[y]] += own.weights[parent]
    return table / table.sum()


def of_next_ones(own, found):
    later, codes = np.flatnonzero(np.diff(own.whose) == 0) + 1, own.children[found, 1]
    cells, weights = codes[later - 1] * 3 + codes[later], own.next_weights[own.whose[later]]
    return np.bincount(cells, weights, minlength=9).reshape(3, 3) / weights.sum()


def test_children_stay_who_they_are_and_so_does_what_is_right_or_nothing(own):
    found = exchanged(own, {(0, 0): of_parents(own, np.arange(len(own.whose)))}, {}, 0)
    assert sorted(found) == list(range(len(own.whose)))
    assert (own.alike[found] == own.alike).all()
    before = np.arange(len(own.whose))
    targets = {(0, 0): of_parents(own, before)}
    followed = {(1, 1): of_next_ones(own, before)}
    found = exchanged(own, targets, {(1, 1): of_siblings(own, before)}, 0, followed=followed)
    assert np.abs(of_parents(own, found) - targets[0, 0]).sum() < 1e-9
    assert np.abs(of_next_ones(own, found) - followed[1, 1]).sum() < 1e-9
    assert np.abs(of_siblings(own, found) - of_siblings(own, before)).sum() < 1e-9
    assert list(exchanged(own, {}, {}, 0)) == list(range(len(own.whose)))
    none = places(np.zeros((0, 1)), np.zeros((0, 2)))
    assert list(exchanged(none, {(0, 0): np.ones((2, 3)) / 6}, {}, 0)) == []


def test_tables_come_near_their_targets(own):
    parents = np.array([[0.3, 0.1, 0.1], [0.03, 0.23, 0.24]])
    siblings = np.eye(3) * 0.3 + 0.1 / 9
    before = np.arange(len(own.whose))
    found = exchanged(own, {(0, 0): parents}, {(1, 1): siblings}, 0)
    for shares, target in ((of_parents, parents), (of_siblings, siblings)):
        far, near = (np.abs(shares(own, each) - target).sum() for each in (before, found))
        assert near < 0.4 * far


def test_children_beyond_those_that_make_pairs_do_not_count():
    rng = np.random.default_rng(2)
    few = places(
        rng.integers(0, 2, (len(NUMBERS), 1)), rng.integers(0, 3, (int(NUMBERS.sum()), 2)), most=2
    )
    target = np.eye(3) / 3
    before = np.arange(len(few.whose))
    found = exchanged(few, {}, {(1, 1): target}, 0)
    far, near = (np.abs(of_siblings(few, each) - target).sum() for each in (before, found))
    assert near < 0.3 * far


def test_next_children_come_near_their_targets_in_groups_and_in_codes(own):
    before = np.arange(len(own.whose))
    later = np.flatnonzero(np.diff(own.whose) == 0) + 1
    codes = own.children[:, 1] * 2 + np.arange(len(before)) % 2  # two in a group
    finer = own._replace(children=np.column_stack([own.children[:, 0], codes]))
    weights = own.next_weights[own.whose[later]]
    again = lambda found, held: np.average(
        held[found][later] == held[found][later - 1], weights=weights
    )
    target = np.eye(3) * 0.2 + 0.4 / 9
    followed = {(1, 1): target, (1,): np.array([0.4, 0.6])}
    found = exchanged(finer, {}, {}, 0, followed=followed)
    assert sorted(found) == list(before)
    assert again(found, own.children[:, 1]) == pytest.approx(np.trace(target), abs=0.06)
    assert again(found, codes) == pytest.approx(0.6, abs=0.06)


def test_siblings_have_one_of_many_codes_where_they_all_share_it():
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 20, (int(NUMBERS.sum()), 1))
    own = places(np.zeros((len(NUMBERS), 1)), codes)._replace(groups=codes // 4)
    shares = np.bincount(codes[:, 0] // 4) / len(codes)
    siblings = {(0, 0): np.diag(shares), (0,): np.array([0.0, 1.0])}
    found = exchanged(own, {}, siblings, 0)
    assert sorted(found) == list(range(len(codes)))
    pairs = np.flatnonzero(np.diff(own.whose) == 0)
    assert (codes[found][pairs] == codes[found][pairs + 1]).mean() > 0.8


def test_siblings_share_a_code_though_those_of_parents_that_are_alike_are_too_few():
    # With exchanges among kin alone .86 to .90 of couples do in 20 draws, and .93 to .97 so.
    number, rng = 2_000, np.random.default_rng(5)
    codes, kin = rng.integers(0, 8, (2 * number, 1)), np.repeat(rng.integers(0, 30, number), 2)
    own = couples(codes)._replace(kin=kin * 2 + np.arange(2 * number) % 2)
    found = exchanged(own._replace(order=np.argsort(kin)), {}, {(0, 0): np.eye(8) / 8}, 0)
    one, other = codes[found, 0].reshape(number, 2).T
    assert (one == other).mean() > 0.92


def test_exchanges_go_on_as_long_as_siblings_come_nearer_to_each_other():
    # Couples of one age and opposite sexes. With 10 exchanges for each child the errors of both
    # together are 0.19, and 0.10 so.
    codes = np.random.default_rng(5).integers(0, [8, 2], (4_000, 2))
    found = exchanged(couples(codes), {}, {(0, 0): np.eye(8) / 8, (1, 1): (1 - np.eye(2)) / 2}, 0)
    one, other = codes[found][::2].T, codes[found][1::2].T
    assert (one[0] != other[0]).mean() + (one[1] == other[1]).mean() < 0.14


def test_children_in_order_come_where_they_say_that_they_follow():
    times = np.random.default_rng(2).random(len(NUMBERS))[
        np.repeat(np.arange(len(NUMBERS)), NUMBERS)
    ]
    whole = places(np.zeros((len(NUMBERS), 1)), np.zeros((len(times), 1)))
    mixed = np.random.default_rng(3).permutation(len(times))
    own = whole._replace(
        alike=np.zeros(len(times), np.int64), times=times[mixed], before=times[mixed],
        starts=np.full(len(NUMBERS), np.nan),
    )  # fmt: skip
    found = exchanged(own, {(0, 0): np.ones((1, 1))}, {}, 0)
    follows = np.flatnonzero(np.diff(own.whose) == 0) + 1
    apart = lambda rows: np.abs(own.before[rows][follows] - own.times[rows][follows - 1]).mean()
    assert apart(found) < 0.4 * apart(np.arange(len(times)))
