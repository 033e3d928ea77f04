"""What three or four attributes have beyond their pairs is found where a target is named."""

from fractions import Fraction

import numpy as np
import pytest
from answers import counted_curator, open_curator
from selecting import ADD, REPLACE
from small_engine import measured_by

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.estimate.consistency import consistent_tables
from sdv_privpgd.estimate.interactions import grouped_targets
from sdv_privpgd.methods import higher_order
from sdv_privpgd.methods.privpgd import PrivPGD
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.queries import GroupedMarginalQuery

DOMAIN = Domain(tuple("abcdey"), (20, 2, 2, 2, 9, 2))
TARGET = {"y": 6.0}


def people(kind, number=20_000):
    """Rows of which ``y`` follows ``b`` where ``a`` is 7, or is the parity of three others."""
    rng = np.random.default_rng(1)
    codes = rng.integers(0, DOMAIN.sizes, (number, len(DOMAIN)))
    if kind == "subgroup":
        follows = (codes[:, 0] == 7) & (rng.random(number) < 0.8)
        codes[follows, 5] = codes[follows, 1]
    elif kind == "parity":
        codes[:, 5] = codes[:, 1] ^ codes[:, 2] ^ codes[:, 3] ^ (rng.random(number) < 0.1)
    return Dataset(DOMAIN, codes)


def asked(table, *, importance=TARGET, epsilon=1.0, adjacency=ADD, seed=0, **settings):
    curator = counted_curator(table, epsilon=epsilon, adjacency=adjacency, seed=seed)
    measured = measured_by(PrivPGD(importance=importance, **settings), curator)
    assert curator.ledger.remaining == 0
    return measured, curator.ledger.charges


def fine_tables(measured):
    """Those of four attributes, and those over the codes of ``a``."""
    grouped = [each for each in measured if isinstance(each.query, GroupedMarginalQuery)]
    return [each for each in grouped if each.answer.ndim == 4 or 20 in each.answer.shape]


def whats(charges):
    return [charge.what for charge in charges if "stand" in charge.what]


@pytest.mark.parametrize("adjacency", [ADD, REPLACE])
def test_a_subgroup_is_found_and_measured_over_codes(adjacency):
    epsilon = 2.0 if adjacency is ADD else 4.0
    measured, charges = asked(people("subgroup"), epsilon=epsilon, adjacency=adjacency)
    (table,) = [each for each in fine_tables(measured) if each.query.clique == ("a", "b", "y")]
    assert table.answer.shape == (20, 2, 2)
    of_choices = [charge for charge in charges if charge.what == "triple that stands out"]
    assert [charge.mu_squared for charge in of_choices] == [of_choices[0].mu_squared] * 2
    assert "a x b x y" in whats(charges)[-1]


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_a_parity_is_found(epsilon):
    measured, charges = asked(people("parity"), epsilon=epsilon)
    (table,) = [each for each in fine_tables(measured) if each.answer.ndim == 4]
    assert table.query.clique == ("b", "c", "d", "y")
    assert "b x c x d x y" in whats(charges)[-1]


def test_where_there_is_none_pairs_and_triples_get_what_a_parity_would_cost():
    measured, charges = asked(people("none"), epsilon=0.3)
    assert whats(charges) == ["parity that stands out"]
    assert not fine_tables(measured)


@pytest.mark.parametrize(
    "changed", [{"importance": {}}, {"epsilon": 0.02}, {"triples": Fraction(0)}]
)
def test_nothing_is_looked_for_without_a_target_or_where_noise_hides_it(changed):
    _, charges = asked(people("parity"), **changed)
    assert not whats(charges)


def test_no_more_than_a_fifth_is_spent_on_it():
    _, charges = asked(people("parity"), epsilon=2.0)
    whole = sum(charge.mu_squared for charge in charges)
    spent = sum(charge.mu_squared for charge in charges if "stand" in charge.what)
    assert 0.15 * whole < spent < 0.2 * whole


@pytest.mark.parametrize("clique", [("a", "b", "y"), ("a", "e", "y"), ("b", "c", "d", "y")])
def test_a_row_adds_one_or_takes_one_away(clique):
    """By the parity of halves in the group that is looked at, and everywhere else it adds."""
    data = people("subgroup", 3_000)
    measured = measured_by(PrivPGD(triples=Fraction(0)), open_curator(data, epsilon=1e4))
    curator, tables = open_curator(data), consistent_tables(DOMAIN, measured)
    looks = list(higher_order._candidates(curator, [clique], tables, Fraction(1)))
    assert {look.clique for look in looks} == {clique}
    assert {look.focus for look in looks} == {None, *{"a", "e"} & set(clique)}
    rows = [Dataset(DOMAIN, np.array(each).reshape(-1, 6)) for each in ([], [7, 0, 1, 0, 3, 1])]
    for look, other in zip(looks[::2], looks[1::2], strict=True):
        one, opposite = (
            np.subtract(*(int(each.score.answer(own)[0]) for own in rows[::-1]))
            for each in (look, other)
        )
        assert abs(one) == 1
        assert opposite == -one or (look.focus is not None and one == opposite == 1)
    found = [int(look.score.answer(data)[0]) for look in looks]
    is_there = clique == ("a", "b", "y")
    assert (max(found) > 80) == is_there
    if is_there:
        assert looks[int(np.argmax(found))].focus == "a"


def test_a_contrast_that_is_clear_is_kept_whole_and_noise_is_not():
    measured, _ = asked(people("subgroup"), epsilon=3.0)
    tables = consistent_tables(DOMAIN, measured)
    pairs = {pair: np.maximum(own, 0) / tables.total for pair, own in tables.tables.items()}
    real = people("subgroup").counts(("a", "b", "y"))
    for grouping, own in grouped_targets(tables, pairs).items():
        if ("a", "b", "y") in own and max(grouping.domain.sizes) == 20:
            found = own["a", "b", "y"].values * tables.total
            (agree,) = np.diff([found[7, 0, 0] + found[7, 1, 1], found[7, 0, 1] + found[7, 1, 0]])
            truth = real[7, 0, 1] + real[7, 1, 0] - real[7, 0, 0] - real[7, 1, 1]
            assert agree == pytest.approx(truth, rel=0.2)
