"""What the order of a person's rows says of single rows: a first row has nothing before it."""

from collections.abc import Sequence

import numpy as np

from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.visits import Visits
from sdv_privpgd.constraints.rules import Combinations, Rule


def visit_rules(visits: Visits, columns: Sequence[Column]) -> tuple[Rule, ...]:
    """The rules that the added columns obey, as far as the columns are there.

    A first row has no row before it, and a person of one row has no other than a first one.
    """
    known = {column.name: column for column in columns}
    if visits.since not in known:
        return ()
    since, number = known[visits.since], known[visits.number]
    rules: list[Rule] = []
    for name in visits.previous:
        if visits.before(name) in known:
            before = known[visits.before(name)]
            allowed = np.ones((since.size, before.size), dtype=bool)
            allowed[-1, :-1] = False
            rules.append(_rule(since, before, allowed))
    allowed = np.ones((since.size, number.size), dtype=bool)
    allowed[:-1, 0] = False
    return (*rules, _rule(since, number, allowed))


def _rule(one: Column, other: Column, allowed: np.ndarray) -> Rule:
    return Combinations((one.name, other.name), allowed.shape, np.argwhere(allowed))
