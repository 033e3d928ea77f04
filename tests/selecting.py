"""Tables with known dependence, and what strategies chose of them."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from small_engine import MaximumEntropy

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.base.linear_thresholds import Line
from sdv_privpgd.methods.adaptive import AIM, MWEM, Adaptive
from sdv_privpgd.methods.dp_merf import DPMERF
from sdv_privpgd.methods.k_way import AllKWay, Independent
from sdv_privpgd.methods.mst import MST
from sdv_privpgd.methods.privmrf import PrivMRF
from sdv_privpgd.methods.privpgd import PrivPGD
from sdv_privpgd.methods.privsyn import PrivSyn
from sdv_privpgd.methods.rap_plus_plus import RAPPlusPlus
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.queries import Adjacency, MarginalQuery

REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE
HUGE = 1e4
STRATEGIES = {
    "AllKWay": AllKWay(),
    "PrivPGD": PrivPGD(),
    "PrivPGD of many": PrivPGD(most_pairs=2),
    "Independent": Independent(),
    "MST": MST(),
    "AIM": AIM(rounds_per_attribute=2),
    "MWEM": MWEM(),
    "DPMERF": DPMERF(num_features=20, nominal=("b",), nullable=("c",)),
    "DPMERF by a label": DPMERF(num_features=20, importance={"a": 6.0}),
    "RAPPlusPlus": RAPPlusPlus(rounds=2, queries=2, directions=5),
    "RAPPlusPlus by a label": RAPPlusPlus(
        rounds=2, queries=2, directions=5, importance={"a": 6.0}, lines=(Line("b", (0, 1, 2)),)
    ),
    "PrivSyn": PrivSyn(),
    "PrivMRF": PrivMRF(),
    "Adaptive": Adaptive(rounds=2, marginals=2),
}
"""Every strategy that asks for tables or sums: a new one is a line here."""


def cliques_of(measurements):
    return [m.query.clique for m in measurements if isinstance(m.query, MarginalQuery)]


def chain(num_rows=2_000):
    """a - b - c - d, each link weaker than the one before; e depends on b alone, and weakest."""
    rng = np.random.default_rng(0)
    columns = [rng.integers(0, 3, num_rows)]
    for keep in (0.9, 0.8, 0.7):
        stays = rng.random(num_rows) < keep
        columns.append(np.where(stays, columns[-1], rng.integers(0, 3, num_rows)))
    columns.append(np.where(rng.random(num_rows) < 0.6, columns[1], rng.integers(0, 3, num_rows)))
    return Dataset(Domain(tuple("abcde"), (3,) * 5), np.stack(columns, axis=1))


def dependence(dataset, pair):
    """L1 distance of a pair's counts from those of independence, in counts."""
    counts = dataset.counts(pair)
    product = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    return np.abs(counts - product).sum()


def maximum_spanning_tree(dataset):
    """By brute force over all sets of d - 1 pairs that join all attributes."""
    names = dataset.domain.attributes
    weights = {pair: dependence(dataset, pair) for pair in combinations(names, 2)}

    def joins(edges):
        reached = {names[0]}
        for _ in edges:
            reached |= {name for edge in edges if reached & set(edge) for name in edge}
        return len(reached) == len(names)

    trees = (edges for edges in combinations(weights, len(names) - 1) if joins(edges))
    return set(max(trees, key=lambda edges: sum(weights[edge] for edge in edges)))


def rounds_of(ledger):
    """The choice and the measurement of each round, in mu^2 as shares of the budget."""
    charges = [c for c in ledger.charges if c.what != "1-way marginals" and c.mu_squared]
    return [
        (choice.mu_squared / ledger.budget, table.mu_squared / ledger.budget)
        for choice, table in zip(charges[::2], charges[1::2], strict=True)
    ]


@dataclass
class Limited(MaximumEntropy):
    """Weighs every clique of two attributes at 1 MiB, and remembers what it was asked."""

    def megabytes(self, domain, cliques):
        return float(sum(len(clique) > 1 for clique in set(cliques)))
