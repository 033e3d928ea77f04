"""Curators with repeatable noise, and noisy answers as a curator would give them."""

from fractions import Fraction

import numpy as np

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.ledger import Charge, FitLedger, PrivacyLedger
from sdv_privpgd.privacy.noise import rounded_gaussian
from sdv_privpgd.privacy.queries import (
    Adjacency,
    CountQuery,
    GroupedMarginalQuery,
    MarginalQuery,
    Measurement,
)
from sdv_privpgd.privacy.value_counts import KindCounts, ValueCounts


def seeded_words(seed=0):
    """A source of random words that gives the same ones in every run."""
    return np.random.default_rng(seed).bytes


class Words:
    """A source of one word, and of the further bits of its number, if it is asked for them."""

    def __init__(self, word, extra=0):
        self.parts = [word.to_bytes(8, "little"), extra.to_bytes(128, "little")]
        self.asked = []

    def __call__(self, size):
        part = self.parts[len(self.asked)]
        self.asked.append(size)
        assert len(part) == size
        return part


NOTHING = Dataset(Domain((), ()), np.empty((0, 0), np.uint8))
"""Rows without an attribute."""


def open_curator(
    dataset, *, epsilon=1.0, adjacency=Adjacency.REPLACE_ONE, rows=1, seed=0, reserved=0.0, **more
):
    """A curator of a table, with the noise of a seed, or for ``None`` with the system's."""
    ledger = PrivacyLedger.open(epsilon, 1e-5, adjacency, rows, reserved=Fraction(reserved))
    words = {} if seed is None else {"words": seeded_words(seed)}
    return Curator(dataset, FitLedger(ledger, **words), **more)


def counted_curator(dataset, **how):
    """The same, that has spent a hundredth of the budget on the number of rows."""
    curator = open_curator(dataset, **how)
    curator.measure([CountQuery()], curator.ledger.budget / 100, what="number of rows")
    return curator


def margin(table, domain, clique):
    """The sums of a table over all attributes but those of a clique, axes in its order."""
    return np.einsum(table, list(range(len(domain))), list(domain.axes(clique)))


def number_of_rows(count, stddev=0.0):
    return Measurement(query=CountQuery(), answer=np.array([count]), stddev=stddev)


def answered(clique, counts, stddev=1.0, grouping=None):
    """A measurement of these counts of a clique, over groups if there are any."""
    clique, counts = tuple(clique), np.rint(counts).astype(np.int64)
    query = MarginalQuery(clique) if grouping is None else GroupedMarginalQuery(clique, grouping)
    return Measurement(query=query, answer=counts, stddev=stddev)


def noisy_answers(tables, stddev=0.0, seed=0):
    """Measurements of the counts of each clique, with rounded noise.

    Args:
        tables: Counts by clique.
        stddev: The noise's standard deviation.
        seed: A seed, or a generator that goes on.
    """
    rng = np.random.default_rng(seed)
    found = []
    for clique, counts in tables.items():
        noise = stddev * rng.standard_normal(counts.shape)
        found.append(answered(clique, counts + noise, stddev))
    return found


def values_of(columns):
    """The values of columns that nobody declared, of pairs of a value and its number."""
    found = {}
    for name, pairs in columns.items():
        found[name] = KindCounts()
        found[name].add(pairs)
    return ValueCounts({name: own.counted() for name, own in found.items()})


def charge_of(mechanism, what, queries, values, squared, stddev, mu_squared, delta, **more):
    """An entry of the ledger; ``squared`` are sensitivities under replace-one and add-remove."""
    return Charge(
        mechanism=mechanism, what=what, num_queries=queries, num_values=values,
        sensitivity_squared=tuple(zip(Adjacency, squared, strict=True)), stddev=stddev,
        mu_squared=Fraction(mu_squared), delta=Fraction(delta), **more,
    )  # fmt: skip


class SpyDataset(Dataset):
    """Fails when it is read before the ledger holds a charge; counts its reads."""

    __slots__ = ("curator", "reads")

    def blocks(self):
        assert self.curator.ledger.charges, "the table was read before it was paid for"
        self.reads += 1
        return super().blocks()


def squared_change(query, before, after):
    """The squared L2 distance of two tables' answers."""
    pairs = zip(query.answer(after).flat, query.answer(before).flat, strict=True)
    return sum((int(x) - int(y)) ** 2 for x, y in pairs)  # Python integers: exact


def scaled(factor):
    """Noise that is so many times what it has to be."""
    return lambda stddev, size, words: rounded_gaussian(factor * stddev, size, words)


def discovering(change):
    """``Curator.discover`` of which ``change`` makes others, of the true pairs and the found."""
    real = Curator.discover

    def discover(self, *asked, **told):
        found = real(self, *asked, **told)
        return {name: change(self._values.counts(name).pairs(), found[name]) for name in found}

    return discover
