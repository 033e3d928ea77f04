"""Rules in codes, orders inside cells, and structural zeros in tables."""

from itertools import product

import numpy as np
import pytest
from answers import noisy_answers, number_of_rows
from columns_of_words import numbers

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.columns.bins import Ticks
from sdv_privpgd.constraints.rules import Combinations, Order, groups, possible_of, settle
from sdv_privpgd.estimate.consistency import consistent_tables, emptied, few_choices, possible_cells
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.queries import MarginalQuery
from sdv_privpgd.synthesize.particles.descent import ParticleGradientDescent
from sdv_privpgd.synthesize.pgm import PrivatePGM

PAIRS = [
    (numbers("a", 0, 19, 4, decimal_places=0), numbers("b", 5, 30, 5, decimal_places=0)),
    (numbers("a", 0, 9, 10, decimal_places=0), numbers("b", 0, 9, 3, decimal_places=0)),
    (numbers("a", 0, 1, 4), numbers("b", 0.25, 2, 7, range_is_nullable=False)),
    (numbers("a", 0, 1, 3, decimal_places=1), numbers("b", 0, 2, 2, decimal_places=0)),
    (numbers("a", 0, 90, 3, increment=10), numbers("b", 0, 90, 4)),
    (numbers("a", 0, 3, 3, decimal_places=2), numbers("b", 1, 4, 4, decimal_places=2)),
]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("pair", PAIRS)
def test_cells_allow_what_some_of_their_values_do(pair, strict):
    order = Order(*pair, strict)
    positions = np.linspace(0, 1, 501)[:-1]
    (allowed,) = order.possible().values()
    for codes in product(*(range(column.size) for column in pair)):
        values = [
            column.numbers(column.cells.at(np.full(500, code), positions))
            for column, code in zip(pair, codes, strict=True)
            if code < column.num_values
        ]
        possible = len(values) < 2 or (
            values[0].min() < values[1].max() if strict else values[0].min() <= values[1].max()
        )
        assert allowed[codes] == possible, codes


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    "pair", [pair for pair in PAIRS if all(isinstance(each.cells, Ticks) for each in pair)]
)
def test_ranges_are_narrowed_to_what_some_value_of_the_other_allows(pair, strict):
    order, rng = Order(*pair, strict), np.random.default_rng(0)
    for _ in range(50):
        spans = [
            tuple(sorted(rng.integers(each.cells.first, each.cells.last + 1, 2))) for each in pair
        ]
        low, high = ([*range(*span), span[1]] for span in spans)
        is_met = np.less if strict else np.less_equal
        met = is_met.outer(
            *(c.numbers(np.array(v)) for c, v in zip(pair, (low, high), strict=True))
        )
        (first, last), (after, end) = order.narrowed(*spans)
        left = [low[i] for i in np.flatnonzero(met.any(axis=1))]
        also = [high[i] for i in np.flatnonzero(met.any(axis=0))]
        assert [*range(first, last + 1)] == left
        assert [*range(after, end + 1)] == also


@pytest.mark.parametrize("held", [(), ("a",), ("b",)])
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("pair", PAIRS)
def test_values_settle_where_their_cells_allow_it(pair, strict, held):
    rng = np.random.default_rng(0)
    order = Order(*pair, strict)
    codes = {column.name: rng.integers(0, column.size, 4_000) for column in pair}
    before = {name: rng.random(4_000) for name in codes}
    places = {name: own.copy() for name, own in before.items()}
    was = order.holds(codes, places)
    settle([order], codes, places, rng, held)
    holds = order.holds(codes, places)
    assert (holds == order.allows(codes)).all() or held
    assert holds[was].all()
    for name in codes:
        assert ((places[name] >= 0) & (places[name] < 1)).all()
        assert (places[name] == before[name])[was | (name in held)].all()


def test_values_settle_by_either_moving():
    """Half of the rows are in order, of mean 1/3. Of the others one number stays, of mean 1/3 or
    2/3, and the other is even below or above it: 1/6 or 2/3 for the lower one, 5/12 on average."""
    pair = (numbers("a", 0, 1, 1), numbers("b", 0, 1, 1))
    rng = np.random.default_rng(0)
    codes = {name: np.zeros(40_000, dtype=np.int64) for name in "ab"}
    places = {name: rng.random(40_000) for name in "ab"}
    settle([Order(*pair, False)], codes, places, rng)
    assert places["a"].mean() == pytest.approx((1 / 3 + 5 / 12) / 2, abs=0.005)  # 4 errors
    assert 1 - places["b"].mean() == pytest.approx(places["a"].mean(), abs=0.01)


def test_one_column_is_hot():
    rule = Combinations(("a", "b", "c"), (3,) * 3, np.eye(3, dtype=np.int64), tied=True)
    rows = np.array(list(product(range(3), repeat=3)))
    allowed = rule.allows(dict(zip("abc", rows.T, strict=True)))
    assert rows[allowed].tolist() == [[0, 0, 1], [0, 1, 0], [1, 0, 0]]
    cells_of = rule.possible()
    assert sorted(cells_of) == [("a", "b"), ("a", "c"), ("b", "c")]
    for cells in cells_of.values():
        assert cells.tolist() == [[True, True, False], [True, False, False], [False] * 3]


def test_listed_combinations_are_allowed_and_no_others():
    listed = np.array([[0, 1, 2], [1, 1, 0], [0, 0, 0]])
    rule = Combinations(("a", "b", "c"), (2, 2, 3), listed)
    rows = np.array(list(product(range(2), range(2), range(3))))
    allowed = rule.allows(dict(zip("abc", rows.T, strict=True)))
    assert sorted(rows[allowed].tolist()) == sorted(listed.tolist())
    cells_of = rule.possible()
    assert sorted(cells_of) == [("a", "b"), ("a", "b", "c"), ("a", "c"), ("b", "c")]
    assert cells_of["a", "b", "c"].sum() == 3
    assert cells_of["a", "b"].tolist() == [[True, True], [False, True]]


def test_possible_cells_join_rules_and_follow_the_domain():
    domain = Domain(("b", "a"), (2, 2))
    rules = [
        Combinations(("a", "b"), (2, 2), np.array([[0, 0], [0, 1], [1, 1]])),
        Combinations(("b", "a"), (2, 2), np.array([[0, 0], [1, 0], [0, 1]])),
    ]
    assert possible_of(rules, domain)["b", "a"].tolist() == [[True, False], [True, False]]
    rules = [Combinations(names, (2, 2), np.zeros((1, 2), int)) for names in ("ab", "cd", "bc")]
    other = Combinations(("e", "f"), (2, 2), np.zeros((1, 2), int))
    assert [len(group) for group in groups([*rules, other])] == [3, 1]
    wide = possible_cells(("b", "c", "a"), (6, 3, 6), POSSIBLE)
    assert (wide == (np.arange(6)[:, None, None] >= np.arange(6))).all()
    assert possible_cells(("a", "c"), (6, 3), POSSIBLE).all()


DOMAIN = Domain(("a", "b", "c"), (6, 6, 3))
POSSIBLE = {("a", "b"): np.arange(6)[:, None] <= np.arange(6)}


def answers(stddev=3.0, num_records=2_000):
    """Noisy pairs of records with a <= b."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 6, num_records)
    codes = np.stack([a, rng.integers(a, 6), rng.integers(0, 3, num_records)], axis=1)
    table = Dataset(DOMAIN, codes)
    tables = {clique: table.counts(clique) for clique in DOMAIN.cliques(2)}
    return [number_of_rows(num_records), *noisy_answers(tables, stddev, rng)]


def test_tables_told_of_zeros_keep_their_marginals():
    before = consistent_tables(DOMAIN, answers())
    after = emptied(before, POSSIBLE)
    impossible = ~POSSIBLE["a", "b"]
    assert np.abs(before.tables["a", "b"][impossible]).sum() > 0
    assert (after.tables["a", "b"][impossible] == 0).all()
    for clique, table in after.tables.items():
        for axis, name in enumerate(clique):
            np.testing.assert_allclose(table.sum(axis=1 - axis), before.one_way[name], atol=0.1)
    np.testing.assert_array_equal(after.tables["a", "c"], before.tables["a", "c"])


def test_impossible_cells_are_empty_and_choices_of_two_codes_few():
    dead = POSSIBLE["a", "b"].copy()
    dead[5] = False
    after = emptied(consistent_tables(DOMAIN, answers()), {("a", "b"): dead})
    assert after.one_way["a"][5] == 0
    assert after.one_way["a"].sum() == pytest.approx(2_000)
    assert (after.tables["a", "c"][5] == 0).all()
    assert few_choices(np.array([[True, True], [True, False]]))
    assert few_choices(np.eye(5, dtype=bool))
    assert not few_choices(POSSIBLE["a", "b"])
    assert not few_choices(np.eye(8, dtype=bool).reshape(2, 4, 8))
    pairs = [each for each in answers() if each.query != MarginalQuery(("a", "b"))]
    for measurements in (answers(), pairs):
        model = PrivatePGM(possible=POSSIBLE).fit(DOMAIN, measurements)
        warm = PrivatePGM(possible=POSSIBLE).fit(DOMAIN, measurements, warm_start=model)
        for fitted in (model, warm):
            assert fitted.marginal(("a", "b"))[~POSSIBLE["a", "b"]].sum() < 1e-9
            assert np.isfinite(fitted.marginal(("a", "c"))).all()


def test_particles_are_told_of_impossible_cells():
    loud = answers(stddev=40.0)
    shares = []
    for possible in ({}, POSSIBLE):
        codes = (
            ParticleGradientDescent(num_particles=2_000, possible=possible).fit(DOMAIN, loud).codes
        )
        shares.append((codes[:, 0] > codes[:, 1]).mean())
    assert shares[1] < shares[0]
