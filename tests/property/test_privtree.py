"""No neighbor changes the chance of any tree by more than PrivTree's price says, by brute force."""

import math
from fractions import Fraction

import numpy as np
import pytest
from answers import open_curator
from hypothesis import given
from hypothesis import strategies as st

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.ledger import PrivacyBudgetError
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.privacy.selection import COST, decay_of, halved


def log_chances(counts, temperature, decay):
    """The logarithm of the probability of every tree, by its leaves: all decisions are tried."""
    found = {}

    def log_s(score):
        return -math.log1p(math.exp(-score / temperature))

    left = [()]
    while left:
        decided = left.pop()
        path, chance = iter(decided), 0.0
        asked = []

        def splits(score, path=path, asked=asked):
            asked.append(score)
            return next(path, False)

        edges = tuple(halved(counts, decay, splits))
        if len(asked) > len(decided):
            left += [(*decided, choice) for choice in (False, True)]
            continue
        for choice, score in zip(decided, asked, strict=True):
            chance += log_s(score if choice else -score)
        found[edges] = chance
    return found


@st.composite
def tables(draw):
    """Counts of up to eight codes, many of them near the scores at which halvings turn."""
    temperature = draw(st.floats(0.3, 30))
    decay = decay_of(Fraction(temperature))
    near = st.integers(0, 4).flatmap(
        lambda depth: st.integers(0, 2).map(lambda x: depth * decay + x)
    )
    counts = draw(st.lists(st.one_of(st.integers(0, 3), near), min_size=1, max_size=8))
    codes = st.integers(0, len(counts) - 1)
    return temperature, decay, counts, draw(codes), draw(codes)


@given(tables())
def test_no_row_changes_the_chance_of_a_tree_by_more_than_its_price(drawn):
    temperature, decay, counts, code, other = drawn
    without = log_chances(counts, temperature, decay)
    assert math.isclose(sum(map(math.exp, without.values())), 1)
    more = [count + (place == code) for place, count in enumerate(counts)]
    instead = [count + (place == other) for place, count in enumerate(counts)]
    added, replaced = (log_chances(each, temperature, decay) for each in (more, instead))
    # The interval of log ratios: of a row that comes, and of one that becomes another.
    for first, second, rows in ((added, without, 1), (added, replaced, 2)):
        ratios = [first[tree] - second[tree] for tree in first]
        assert max(ratios) - min(ratios) <= rows * float(COST) / temperature + 1e-9
        assert min(ratios) <= 1e-9
        assert max(ratios) >= -1e-9


def parts(counts, decay, splits, start=0, depth=0):
    """By the definition: the first codes of the parts, the earlier half first."""
    if len(counts) == 1 or not splits(max(sum(counts) - depth * decay, -decay)):
        return [start]
    middle = (len(counts) + 1) // 2
    halves = (counts[:middle], start), (counts[middle:], start + middle)
    return [edge for own, first in halves for edge in parts(own, decay, splits, first, depth + 1)]


@given(tables(), st.integers(0, 2**32))
def test_the_same_is_asked_and_found_as_by_the_definition(drawn, seed):
    _, decay, counts, *_ = drawn
    found = []
    for way in (halved, parts):
        asked, rng = [], np.random.default_rng(seed)

        def splits(score, asked=asked, rng=rng):
            asked.append(score)
            return rng.random() < 0.8

        found.append((way(counts, decay, splits), asked))
    assert found[0] == found[1]


def test_the_price_and_the_decay_are_what_the_proof_says_and_hardly_more():
    assert 0 <= COST - (2 + sum(1 / (1 + 2**j) for j in range(60))) < 1e-3
    for temperature in (Fraction(1, 3), Fraction(10), Fraction(10**9), Fraction(2**40)):
        exact = Fraction(math.log(2)) * temperature
        assert exact <= decay_of(temperature) <= exact * (1 + Fraction(1, 10**9)) + 1


def widest(temperature, decay, num_codes=16, counts=range(0, 60)):
    """The widest interval over tables in which all rows have one code."""
    widths = []
    for count in counts:
        pair = [[number, *[0] * (num_codes - 1)] for number in (count, count + 1)]
        less, more = (log_chances_of_one(each, temperature, decay) for each in pair)
        ratios = more - less
        widths.append(ratios.max() - ratios.min())
    return max(widths)


def log_chances_of_one(counts, temperature, decay):
    """Of the trees that halve the first code's part 0, 1, 2, ... times."""
    depth = math.ceil(math.log2(len(counts)))
    scores = [max(counts[0] - each * decay, -decay) for each in range(depth)]
    log_s = [-math.log1p(math.exp(-score / temperature)) for score in scores]
    log_not = [-math.log1p(math.exp(score / temperature)) for score in scores]
    last = [*log_not, 0.0]
    return np.array([sum(log_s[:stop]) + last[stop] for stop in range(depth + 1)])


def test_the_price_is_nearly_attained_and_a_missing_decay_would_be_caught():
    temperature = 12.0
    decay = decay_of(Fraction(12))
    price = float(COST) / temperature
    deep = {"num_codes": 2**10, "counts": range(0, 200, 3)}
    assert 0.8 * price < widest(temperature, decay, **deep) <= price
    assert widest(temperature, 0, **deep) > price
    assert widest(temperature, decay // 3, **deep) > price


def a_table(rows):
    return Dataset(Domain(("x", "y"), (9, 2)), np.array(rows, dtype=np.int64).reshape(-1, 2))


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("adjacency", Adjacency)
def test_the_ledger_has_the_price_under_both_adjacencies(adjacency, rows):
    curator = open_curator(a_table([[3, 1]] * 50), adjacency=adjacency, rows=rows)
    edges = curator.split("x", 8, curator.ledger.budget / 2, what="parts of x")
    assert edges[0] == 0
    assert edges == sorted(set(edges))
    (charge,) = curator.ledger.charges
    assert charge.mu_squared == curator.ledger.budget / 2
    assert math.isclose(charge.mu_squared, charge.mu_squared_under(adjacency), rel_tol=1e-9)
    one, other = (charge.range_epsilon_under(each) for each in Adjacency)
    assert one == 2 * other
    assert other == 2 * rows / charge.temperature


def test_rows_of_later_codes_have_no_part_in_it():
    found = [
        open_curator(a_table([[1, 0]] * 40 + [[8, 0]] * more), seed=4).split(
            "x", 8, Fraction(1, 20), what="parts of x"
        )
        for more in (0, 5_000)
    ]
    assert found[0] == found[1]


def test_nothing_is_split_past_the_budget():
    curator = open_curator(a_table([[1, 0]]))
    with pytest.raises(PrivacyBudgetError, match="PrivTree"):
        curator.split("x", 8, curator.ledger.budget * 2, what="parts of x")
    with pytest.raises(ValueError, match="1 to 9"):
        curator.split("x", 10, curator.ledger.budget, what="parts of x")
    assert not curator.ledger.charges
