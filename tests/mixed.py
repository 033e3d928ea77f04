"""Tables of all kinds about one small domain: of one to three attributes, and over groups."""

import numpy as np
from answers import answered, margin, noisy_answers, number_of_rows

from sdv_privpgd.base.domain import Domain, Grouping

DOMAIN = Domain(("a", "b", "c", "d"), (2, 3, 4, 5))
CLIQUES = (("a",), ("a", "b"), ("c", "a"), ("b", "d"), ("a", "b", "c"))
GROUPS = Grouping.of({"c": np.array([0, 1, 1, 0]), "d": np.array([2, 0, 1, 0, 2])})


def mixed_answers(stddev=2.0):
    counts = np.random.default_rng(0).integers(0, 30, DOMAIN.sizes)
    tables = {clique: margin(counts, DOMAIN, clique) for clique in CLIQUES}
    grouped = GROUPS.sums(margin(counts, DOMAIN, "dc"), ("d", "c"))
    rows = number_of_rows(int(counts.sum()))
    return [rows, *noisy_answers(tables, stddev), answered("dc", grouped, 3 * stddev, GROUPS)]
