"""Private-PGM: closed forms, inverse variances, permutations, rows and warm starts."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from answers import answered, number_of_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from processes import python_says

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.synthesize.engine import Particles
from sdv_privpgd.synthesize.graphical import GraphicalModel, JunctionTree
from sdv_privpgd.synthesize.pgm import PrivatePGM

DOMAIN = Domain(("a", "b", "c", "d"), (2, 3, 4, 5))


@pytest.fixture(scope="module")
def engine():
    # Ends by tolerance long before: what is compared with closed forms must have converged.
    return PrivatePGM(steps=20_000, tolerance=1e-9)


def joint(seed: int = 0) -> np.ndarray:
    """Counts of all cells of the domain, each at least 1."""
    return np.random.default_rng(seed).integers(1, 400, DOMAIN.sizes)


def margin(table: np.ndarray, clique: str) -> np.ndarray:
    """The counts of a clique, axes in the clique's order."""
    return np.einsum(table, [0, 1, 2, 3], ["abcd".index(name) for name in clique])


def shares(clique: str) -> np.ndarray:
    return margin(joint(), clique) / joint().sum()


AB, BC, CD = (answered(pair, margin(joint(), pair)) for pair in ("ab", "bc", "cd"))
CHAIN = np.einsum("ab,bc->abc", shares("ab"), shares("bc") / shares("b")[:, None])
FIRST, SECOND = np.array([300, 500, 200]), np.array([400, 300, 300])
PAIR = np.array([[150, 100, 150], [200, 250, 150]])
# The pair's row sums have 3 times its variance: least squares in closed form.
BEST = (PAIR.sum(axis=1) / 3 + np.array([500, 500]) / 4) / (1 / 3 + 1 / 4)

CLOSED_FORMS = {
    "one clique": ([answered("cb", margin(joint(), "cb"))], "cb", shares("cb")),
    "a chain is a pair and a conditional": ([AB, BC], "abc", CHAIN),
    "its ends": ([AB, BC], "ca", CHAIN.sum(axis=1).T),
    "two answers to one question are averaged by inverse variance": (
        [answered("b", FIRST, 3.0), answered("b", SECOND, 4.0)], "b",
        (FIRST / 9 + SECOND / 16) / (1 / 9 + 1 / 16) / 1000,
    ),
    "a pair and a single are weighed by what they say of the single": (
        [answered("ab", PAIR, 1.0), answered("a", [500, 500], 2.0)], "ab",
        (PAIR + ((BEST - PAIR.sum(axis=1)) / 3)[:, None]) / 1000,
    ),
    "tables without a common attribute are independent": (
        [AB, CD], "abcd", np.einsum("ab,cd->abcd", shares("ab"), shares("cd")),
    ),
    "an attribute that no table has is uniform": (
        [AB], "ad", np.repeat(shares("a")[:, None] / 5, 5, axis=1),
    ),
    "without tables all is uniform": ([number_of_rows(9)], "abcd", np.full(DOMAIN.sizes, 1 / 120)),
    # The nearest table of total 1,000 to one of 1,300 is 100 lower in each of 3 cells.
    "a known number of rows shifts a table evenly": (
        [number_of_rows(1000), answered("b", [600, 400, 300])], "b", [0.5, 0.3, 0.2],
    ),
    "an estimated one leaves it": (
        [answered("b", [600, 400, 300])], "b", np.array([6, 4, 3]) / 13,
    ),
}  # fmt: skip


class TestClosedForms:
    @pytest.mark.parametrize(
        ("answers", "clique", "expected"), CLOSED_FORMS.values(), ids=CLOSED_FORMS
    )
    def test_it_is_reached(self, engine, answers, clique, expected):
        model = engine.fit(DOMAIN, answers)
        np.testing.assert_allclose(model.marginal(tuple(clique)), expected, rtol=0, atol=1e-6)

    def test_cycles_agree_with_their_tables_and_negative_counts_are_small(self, engine):
        tables = [answered(pair, margin(joint(), pair)) for pair in ("ab", "bc", "ac")]
        model = engine.fit(DOMAIN, tables)
        for pair in ("ab", "bc", "ac"):
            expected = margin(joint(), pair) / joint().sum()
            np.testing.assert_allclose(model.marginal(tuple(pair)), expected, rtol=0, atol=1e-5)
        model = engine.fit(DOMAIN, [answered("b", [-200, 500, 700], 10.0)])
        marginal = model.marginal(("b",))
        assert (marginal > 0).all()
        # The nearest distribution of total 1,000 is (0, 400, 600): 0.4 within a row.
        np.testing.assert_allclose(marginal, [0, 0.4, 0.6], rtol=0, atol=1e-3)


class TestTheFit:
    def test_the_order_of_attributes_and_answers_does_not_matter(self, engine):
        noise = np.random.default_rng(1)
        tables = {
            pair: margin(joint(), pair) + noise.integers(-9, 10, margin(joint(), pair).shape)
            for pair in ("ab", "bc", "cd", "bd")
        }
        model = engine.fit(DOMAIN, [answered(pair, table) for pair, table in tables.items()])
        turned = Domain(DOMAIN.attributes[::-1], DOMAIN.sizes[::-1])
        other = engine.fit(
            turned, [answered(pair[::-1], table.T) for pair, table in reversed(tables.items())]
        )
        for pair in ("ab", "ad", "cd"):
            np.testing.assert_allclose(
                model.marginal(tuple(pair)), other.marginal(tuple(pair)), rtol=0, atol=1e-6
            )

    def test_warm_starts_of_any_engine_lead_to_the_same_model(self, engine):
        first = [answered("ab", margin(joint(), "ab") + 3)]
        more = [*first, answered("bc", margin(joint(), "bc") - 2)]
        warm = engine.fit(DOMAIN, more, warm_start=engine.fit(DOMAIN, first))
        cold = engine.fit(DOMAIN, more)
        np.testing.assert_allclose(
            warm.marginal(("a", "b", "c")), cold.marginal(("a", "b", "c")), rtol=0, atol=1e-5
        )
        other = Particles(domain=DOMAIN, codes=np.zeros((3, 4), dtype=np.int64))
        counts = margin(joint(), "ab")
        model = engine.fit(DOMAIN, [answered("ab", counts)], warm_start=other)
        np.testing.assert_allclose(
            model.marginal(("a", "b")), counts / counts.sum(), rtol=0, atol=1e-6
        )

    def test_a_warm_start_is_where_the_descent_starts(self, engine):
        """After one lot of steps the loss of a warm start is that of a converged fit."""
        skewed = joint() ** 3
        tables = [
            answered(pair, margin(skewed, pair), 99.0)
            for pair in ("ab", "bc", "cd", "ad", "ac", "bd")
        ]
        short = replace(engine, steps=1)
        expected = margin(skewed, "ab") / skewed.sum()

        def error(model):
            return np.abs(model.marginal(("a", "b")) - expected).max()

        warm = short.fit(DOMAIN, tables, warm_start=engine.fit(DOMAIN, tables))
        assert 100 * error(warm) < error(short.fit(DOMAIN, tables))

    def test_the_same_answers_give_the_same_bytes_in_another_process(self, engine):
        """Sets of text are walked in another order in each process: nothing may hang on it."""
        code = """
import pickle, hashlib, numpy as np
from sdv_privpgd.methods import PrivatePGM
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.privacy.queries import Measurement
from sdv_privpgd.privacy.queries import MarginalQuery
domain = Domain(("a", "b", "c", "d"), (2, 3, 4, 5))
rng = np.random.default_rng(0)
tables = [
    Measurement(query=MarginalQuery(pair), answer=rng.integers(0, 99, domain.shape(pair)), stddev=1)
    for pair in (("a", "b"), ("b", "c"), ("c", "d"), ("a", "d"))
]
model = PrivatePGM(steps=100).fit(domain, tables)
print(hashlib.sha256(pickle.dumps(model)).hexdigest())
"""
        found = {
            python_says("-W", "error", "-c", code, PYTHONHASHSEED=seed, PATH="")
            for seed in ("1", "2")
        }
        assert len(found) == 1

    def test_sizes_are_those_of_trees_and_too_large_ones_are_refused(self, engine):
        wide = Domain(tuple("abcdefgh"), (32,) * 8)
        pairs = [answered(pair, np.zeros((32, 32))) for pair in wide.cliques(2)]
        with pytest.raises(ValueError, match=r"MiB.*'mst' and 'aim'.*'particles'"):
            engine.fit(wide, pairs)
        assert engine.megabytes(DOMAIN, [("a", "b"), ("c", "b")]) == pytest.approx(
            (6 + 12 + 5) * 8 / 2**20, rel=1e-12
        )
        assert engine.megabytes(DOMAIN, [("a", "b"), ("c", "b"), ("a", "c")]) == pytest.approx(
            (24 + 5) * 8 / 2**20, rel=1e-12
        )


def random_model(seed: int) -> tuple[GraphicalModel, np.ndarray]:
    """A model of a random tree of triples, and its joint table, multiplied out by hand."""
    rng = np.random.default_rng(seed)
    names = tuple("abcdefg")
    domain = Domain(names, tuple(int(size) for size in rng.integers(1, 4, len(names))))
    cliques, parents = [("a", "b")], [-1]
    for fresh in names[2:]:
        parent = int(rng.integers(len(cliques)))
        number = int(rng.integers(0, 1 + min(2, len(cliques[parent]))))
        shared = rng.choice(cliques[parent], number, replace=False)
        cliques.append(tuple(sorted((*shared, fresh))))
        parents.append(parent)
    potentials = {clique: rng.normal(0, 2, domain.shape(clique)) for clique in cliques}
    logs = np.zeros(domain.sizes)
    for clique, values in potentials.items():
        others = tuple(axis for axis, name in enumerate(names) if name not in clique)
        logs = logs + np.expand_dims(values, others)
    table = np.exp(logs)
    tree = JunctionTree(domain=domain, cliques=tuple(cliques), parents=tuple(parents))
    model = GraphicalModel.of_potentials(domain, tree, potentials)
    return model, table / table.sum()


class TestTheModel:
    @settings(max_examples=60)
    @given(st.integers(0, 10**6), st.integers(0, 4))
    def test_every_marginal_is_that_of_the_whole_table(self, seed, degree):
        model, table = random_model(seed)
        clique = np.random.default_rng(seed).permutation(list("abcdefg"))[:degree]
        expected = np.einsum(table, range(7), ["abcdefg".index(name) for name in clique])
        np.testing.assert_allclose(model.marginal(tuple(clique)), expected, rtol=1e-9, atol=1e-15)

    def test_first_cliques_and_rows_follow_the_model(self):
        model, table = random_model(1)
        rows = model.sample(10_000, 0)
        counts = np.zeros(model.domain.sizes[:2])
        np.add.at(counts, tuple(rows[:, :2].T), 1)
        assert np.abs(counts - 10_000 * table.sum(axis=(2, 3, 4, 5, 6))).max() < 1
        model, table = random_model(2)
        rows = model.sample(50_000, 0)[:5_000, 0]
        shares = table.sum(axis=(1, 2, 3, 4, 5, 6))
        mean = shares @ np.arange(len(shares))
        error = np.sqrt(shares @ (np.arange(len(shares)) - mean) ** 2 / 5_000)
        assert abs(rows.mean() - mean) < 5 * error
        with pytest.raises(ValueError, match="height"):
            random_model(0)[0].marginal(("a", "height"))

    def test_vanishing_probabilities_are_no_trouble(self):
        domain = Domain(("a", "b"), (2, 2))
        logs = {("a", "b"): np.array([[0.0, -5000.0], [-9000.0, -0.5]])}
        model = GraphicalModel.of_potentials(domain, JunctionTree.of(domain, logs), logs)
        expected = 1 / (1 + np.exp(-0.5))
        np.testing.assert_allclose(
            model.marginal(("a", "b")), [[expected, 0], [0, 1 - expected]], atol=1e-15
        )
        assert set(map(tuple, model.sample(500, 0))) == {(0, 0), (1, 1)}


NAMES = tuple("abcdefg")


@st.composite
def cliques_of_a_domain(draw):
    number = draw(st.integers(0, len(NAMES)))
    names = NAMES[:number]
    sizes = draw(st.lists(st.integers(1, 4), min_size=number, max_size=number))
    chosen = st.sets(st.sampled_from(names), max_size=3).map(sorted).map(tuple)
    cliques = draw(st.lists(chosen, max_size=9)) if names else []
    return Domain(names, tuple(sizes)), cliques


@given(cliques_of_a_domain())
def test_any_cliques_get_a_tree_that_holds_them(made):
    domain, cliques = made
    tree = JunctionTree.of(domain, cliques)
    assert all(any(set(clique) <= set(own) for own in tree.cliques) for clique in cliques)
    assert {name for own in tree.cliques for name in own} == set(domain.attributes)
    assert not any(set(a) < set(b) for a in tree.cliques for b in tree.cliques)
    assert len(set(tree.cliques)) == len(tree.cliques)
    for at, (own, parent) in enumerate(zip(tree.cliques, tree.parents, strict=True)):
        assert list(own) == sorted(own)  # the domain's order
        assert (parent == -1) if at == 0 else (0 <= parent < at)
        earlier = {name for other in tree.cliques[:at] for name in other}
        shared = set(own) & set(tree.cliques[parent]) if at else set()
        assert set(own) & earlier == shared == set(tree.separators[at])


def test_cycles_are_cut_by_the_cheapest_chord_and_all_pairs_are_one_clique():
    domain = Domain(("a", "b", "c", "d"), (2, 50, 3, 60))
    cycle = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")]
    tree = JunctionTree.of(domain, cycle)
    assert set(tree.cliques) == {("a", "b", "c"), ("a", "c", "d")}
    assert tree.num_cells == 2 * 50 * 3 + 2 * 3 * 60
    domain = Domain(NAMES, (2,) * len(NAMES))
    assert JunctionTree.of(domain, combinations(NAMES, 2)).cliques == (NAMES,)
