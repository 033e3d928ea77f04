"""A dataset counts like a histogram and shows itself to nobody."""

from itertools import chain, combinations

import numpy as np
import pytest

from sdv_privpgd.base.domain import Domain, code_type
from sdv_privpgd.privacy import dataset as dataset_module
from sdv_privpgd.privacy.dataset import Dataset


@pytest.mark.parametrize(
    "clique", [(), ("a",), ("c",), ("a", "b"), ("c", "a"), ("b", "c"), ("c", "b", "a")]
)
def test_counts_are_those_of_a_brute_force_histogram(dataset, codes, domain, clique):
    counts = dataset.counts(clique)
    axes, shape = domain.axes(clique), domain.shape(clique)
    assert counts.dtype == np.int64
    assert counts.shape == shape
    if clique:
        edges = [np.arange(size + 1) - 0.5 for size in shape]
        expected, _ = np.histogramdd(codes[:, axes], bins=edges)
        np.testing.assert_array_equal(counts, expected)
    assert counts.sum() == len(codes) == dataset.counts(())


def counted_one_by_one(codes, axes, shape):
    table = np.zeros(shape, dtype=np.int64)
    for record in codes:
        table[tuple(record[list(axes)])] += 1
    return table


@pytest.mark.parametrize("block", [1, 7, 100, 1 << 16])
@pytest.mark.parametrize("num_records", [0, 1, 99, 100])
def test_all_tables_of_one_pass_are_those_of_a_loop_over_the_records(
    block, num_records, monkeypatch
):
    monkeypatch.setattr(dataset_module, "BLOCK", block)
    domain = Domain(("a", "b", "c", "d"), (2, 300, 1, 4))  # one size above 8 bits, one of 1
    codes = np.random.default_rng(0).integers(0, domain.sizes, (num_records, 4))
    cliques = [*chain(*(combinations(domain.attributes, k) for k in range(5))), ("d", "b"), ("a",)]
    tables = Dataset(domain, codes).counts_of(cliques)
    for clique, table in zip(cliques, tables, strict=True):
        assert table.dtype == np.int64
        expected = counted_one_by_one(codes, domain.axes(clique), domain.shape(clique))
        np.testing.assert_array_equal(table, expected)


def test_order_does_not_matter_and_nothing_and_single_values_are_counted(dataset, domain, codes):
    assert dataset.counts_of([]) == []
    shuffled = Dataset(domain, codes[::-1])
    np.testing.assert_array_equal(shuffled.counts(("c", "a")), dataset.counts(("c", "a")))
    empty = Dataset(domain, np.zeros((0, 3), dtype=np.int64))
    np.testing.assert_array_equal(empty.counts(("a", "b")), np.zeros((2, 3)))
    assert empty.counts(()) == 0
    domain = Domain(("a", "b"), (1, 3))
    table = Dataset(domain, np.array([[0, 2], [0, 2], [0, 0]]))
    np.testing.assert_array_equal(table.counts(("b", "a")), [[1], [0], [2]])


@pytest.mark.parametrize("size", [1, 2, 256, 257, 65_536, 65_537])
def test_the_largest_code_of_any_size_is_counted(size):
    counts = Dataset(Domain(("a",), (size,)), np.array([[size - 1], [0]])).counts(("a",))
    expected = np.zeros(size)
    expected[0] += 1
    expected[size - 1] += 1
    np.testing.assert_array_equal(counts, expected)


@pytest.mark.filterwarnings("error")
def test_codes_outside_go_to_the_nearest_inside_silently(domain):
    big = np.iinfo(np.int64)
    wild = Dataset(domain, np.array([[-1, 99, 4], [big.min, big.max, 2]]))
    assert wild.counts(("a",)).tolist() == [2, 0]
    assert wild.counts(("b",)).tolist() == [0, 0, 2]
    assert wild.counts(("c",)).tolist() == [0, 0, 1, 1]
    wild = Dataset(domain, np.array([[np.nan, np.inf, -np.inf]]))
    assert wild.counts(("a", "b", "c")).sum() == 1


def test_no_later_write_changes_the_codes(domain, codes, dataset):
    mine = codes.astype(code_type(domain))
    table = Dataset(domain, mine)
    mine[:] = 0
    np.testing.assert_array_equal(table.counts(("c", "a")), dataset.counts(("c", "a")))
    with pytest.raises(ValueError, match="read-only"):
        table._codes[0, 0] = 1
    mine = np.array([[1, 2, 200], [200, 200, 3]], dtype=code_type(domain))
    assert Dataset(domain, mine).counts(("a", "b", "c"))[1, 2, 3] == 2
    assert mine.max() == 200  # the caller's are as they were


@pytest.mark.parametrize("shape", [(3,), (3, 2), (3, 4), (3, 3, 1)])
def test_codes_of_another_shape_are_refused_without_a_number_of_records(domain, shape):
    with pytest.raises(ValueError, match=r"one column for each of the 3 attributes\.$"):
        Dataset(domain, np.zeros(shape, dtype=np.int64))


def test_repr_names_the_domain_alone(dataset, domain):
    assert repr(dataset) == f"Dataset({domain!r})" == str(dataset)
    assert not hasattr(dataset, "__dict__")
