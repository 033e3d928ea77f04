"""A domain knows shapes and refuses what is none."""

import pickle
from functools import cached_property
from itertools import combinations

import pytest

from sdv_privpgd.base.domain import Domain, Grouping
from sdv_privpgd.columns.bins import SIGNED_POWERS, Reals, Ticks
from sdv_privpgd.fitting.description import Description


def test_shapes_cliques_and_projections_follow_the_domain_which_is_a_value(domain):
    assert domain.shape(("c", "a")) == (4, 2)
    assert domain.axes(("c", "a")) == (2, 0)
    assert domain.size(("c", "a")) == 8
    assert domain.size(()) == 1
    assert domain.shape(()) == ()
    assert domain.shape(name for name in ("c", "a")) == (4, 2)
    assert domain.axes(name for name in ("b",)) == (1,)
    with pytest.raises(ValueError, match="not in the domain"):
        domain.axes(name for name in ("b", "x"))
    for degree in range(len(domain) + 2):
        assert domain.cliques(degree) == tuple(combinations("abc", degree))
    assert domain.project(("c", "a")) == Domain(("c", "a"), (4, 2))
    assert len(domain.project(())) == 0
    assert domain == Domain(("a", "b", "c"), (2, 3, 4))
    assert hash(domain) == hash(Domain(("a", "b", "c"), (2, 3, 4)))
    with pytest.raises(ValueError, match=r"\['x'\] are not in the domain"):
        domain.shape(("a", "x"))


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


FIELDS_ALONE = [
    Grouping(("a", "b"), ((0, 0, 1), (0, 1))),
    Reals(0.0, 9.0, 3),
    SIGNED_POWERS,
    Ticks(0, 9, 1, (0, 5)),
    Description.of(
        {"a": {"sdtype": "numerical"}, "b": {"sdtype": "categorical"}},
        {"a": {"range_min": 0, "range_max": 9}, "b": {"range_values": ["x", "y"]}},
    ),
]


def computed_names(kind):
    return [name for name in dir(kind) if isinstance(getattr(kind, name, None), cached_property)]


@pytest.mark.parametrize("value", FIELDS_ALONE, ids=lambda value: type(value).__name__)
def test_a_pickle_does_not_tell_what_was_computed(value):
    """It may depend on the private table what was computed, and in which order."""
    before = pickle.dumps(value)
    names = computed_names(type(value))
    assert names, "nothing is computed: simplify"
    for name in names:
        getattr(value, name)
    assert set(names) <= set(vars(value))
    assert pickle.dumps(value) == before
    again = pickle.loads(before)
    assert again == value
    assert not set(names) & set(vars(again))
