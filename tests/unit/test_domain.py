"""A domain knows shapes and refuses what is none."""

from itertools import combinations

import pytest

from sdv_privpgd.domain import Domain


def test_shapes_follow_the_order_of_the_clique(domain):
    assert domain.shape(("c", "a")) == (4, 2)
    assert domain.axes(("c", "a")) == (2, 0)
    assert domain.size(("c", "a")) == 8
    assert domain.size(()) == 1
    assert domain.shape(()) == ()


def test_a_generator_of_attributes_is_as_good_as_a_tuple(domain):
    assert domain.shape(name for name in ("c", "a")) == (4, 2)
    assert domain.axes(name for name in ("b",)) == (1,)
    with pytest.raises(ValueError, match="not in the domain"):
        domain.axes(name for name in ("b", "x"))


def test_cliques_are_all_combinations_in_the_order_of_the_attributes(domain):
    for degree in range(len(domain) + 2):
        assert domain.cliques(degree) == tuple(combinations("abc", degree))


def test_projection_keeps_names_and_sizes(domain):
    assert domain.project(("c", "a")) == Domain(("c", "a"), (4, 2))
    assert len(domain.project(())) == 0


def test_domains_are_values(domain):
    assert domain == Domain(("a", "b", "c"), (2, 3, 4))
    assert hash(domain) == hash(Domain(("a", "b", "c"), (2, 3, 4)))


@pytest.mark.parametrize(
    ("attributes", "sizes", "message"),
    [
        (("a", "b"), (2,), "one size per attribute"),
        (("a", "a"), (2, 3), "distinct"),
        (("a",), (0,), "at least 1"),
        (("a",), (-1,), "at least 1"),
    ],
)
def test_a_malformed_domain_is_refused(attributes, sizes, message):
    with pytest.raises(ValueError, match=message):
        Domain(attributes, sizes)


def test_an_unknown_attribute_is_named(domain):
    with pytest.raises(ValueError, match=r"\['x'\] are not in the domain"):
        domain.shape(("a", "x"))
