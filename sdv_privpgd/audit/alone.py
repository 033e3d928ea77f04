"""Layer: what becomes of a cell, and of a row, says nothing of others.

A crowd of equal cells is put beside cells of every kind: whatever is counted of them must be what
is counted of each cell alone. Of rows in order the last one of each person is changed, and all
other people leave: what is added to other rows must stay. Chance decides neither.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd.audit.checks import Check, check_of, unseen
from sdv_privpgd.audit.recording import Tape
from sdv_privpgd.audit.tables import ODD, pool_of
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.opening import opened
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.ledger import Books, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency

LAYER = "each cell and row alone"

_VALUES, _CROWD = 24, 200
_PEOPLE, _ROWS = 6, 4


def alone_checks(tape: Tape, description: Description, settings: Settings) -> list[Check]:
    """Whether cells are read alone, and rows in order are told of earlier rows alone."""
    return [
        _ended("cells", lambda: _cells(tape, description)),
        _ended("rows in order", lambda: _rows(description, settings)),
    ]


def _ended(name: str, check: Callable[[], Check]) -> Check:
    """The check; an error while it reads is a fault, for none may come of a cell."""
    try:
        return check()
    except Exception as error:  # noqa: BLE001 - whatever it is, a cell has led to it
        fault = f"Reading made-up cells ends with {type(error).__name__}."
        return check_of(LAYER, name, "made-up cells", [fault], "")


def _cells(tape: Tape, description: Description) -> Check:
    far = -(10**9), 10**9
    name, schema = "cells", tape.schema
    if schema is None or not schema.columns:
        return unseen(LAYER, name, "No column has codes.")
    read = [each for each in tape.readings if each.name in schema.read]
    books = Books(PrivacyLedger.open(1.0, 1e-5, Adjacency.ADD_REMOVE))

    def counted(cells: Mapping[str, pd.Series]) -> Counter[tuple]:
        table = PrivateTable(cells)
        return _counts(table.curator(schema, books)) + _counts(table.first_look(read, books))

    usual = _usual(schema.read, description)
    pool = {each: [*values, *ODD, *far] for each, values in usual.items()}
    faults = []
    looked = 0
    for cells, crowds in ((usual, (0, -1)), (pool, (0, -1, _VALUES - 1))):
        number = max(map(len, cells.values()))
        filled = {each: [own[at % len(own)] for at in range(number)] for each, own in cells.items()}
        alone = [
            counted({each: _series([own[at]]) for each, own in filled.items()})
            for at in range(number)
        ]
        for crowd in crowds:
            place = crowd % number
            whole = {each: _series([*own, *[own[place]] * _CROWD]) for each, own in filled.items()}
            if cells is usual:  # as pandas would have read them
                whole = {each: own.infer_objects() for each, own in whole.items()}
            expected = sum(alone, Counter[tuple]())
            expected.update({key: n * _CROWD for key, n in alone[place].items()})
            looked += number
            found = counted(whole)
            faults += [
                f"{key[0]!r} counts {found[key]:,} of cells beside {_CROWD} equal ones, and "
                f"{expected[key]:,} alone."
                for key in sorted(found.keys() | expected.keys(), key=repr)
                if found[key] != expected[key]
            ]
    return check_of(
        LAYER,
        name,
        f"{looked:,} cells of {len(usual)} columns, beside crowds of {_CROWD} and alone",
        faults,
        "Each cell is read as it is alone.",
    )


def _counts(curator: Curator) -> Counter[tuple]:
    """All that can be counted of single columns, by the attribute and its code or its value."""
    found: Counter[tuple] = Counter()
    for name in curator.domain.attributes:
        found.update({(name, code): n for code, n in enumerate(curator._dataset.counts((name,)))})
    for name in curator._values.names:
        pairs = curator._values.counts(name).pairs()
        found.update({(name, type(value), value): number for value, number in pairs})
    return found


def _usual(names: Iterable[str], description: Description) -> dict[str, list[Any]]:
    """Values of columns, from the first to the last; also of those that an order adds."""
    facts, visits = description.words, description.visits
    own = {} if visits is None else {visits.before(name): name for name in visits.previous}
    found = {}
    for name in names:
        known = facts.get(own.get(name, name))
        values = [*range(_ROWS)] if known is None else list(dict.fromkeys(pool_of(known)))
        places = np.unique(np.linspace(0, len(values) - 1, _VALUES).astype(int))
        found[name] = [values[place] for place in places]
    return found


def _series(cells: Sequence[Any]) -> pd.Series:
    own = np.empty(len(cells), dtype=object)
    own[:] = list(cells)
    return pd.Series(own, dtype=object)


def _rows(description: Description, settings: Settings) -> Check:
    name, visits = "rows in order", description.visits
    if visits is None:
        return unseen(LAYER, name, "No column says in which order rows are.")
    own = _usual([visits.by, *visits.previous], description)
    times = own[visits.by]
    most = min(visits.most, len(times), _ROWS)
    people = np.repeat(np.arange(_PEOPLE), most)
    ranks = np.tile(np.arange(most), _PEOPLE)
    order = np.random.default_rng(0).permutation(len(people))  # of the rows in the table
    people, ranks = people[order], ranks[order]

    last = ranks == most - 1

    def added(stays: np.ndarray, *, shift: int = 0, later: int = 0) -> list[tuple]:
        """What is added to the rows that stay, where the last ones of all people are changed."""
        at = np.minimum(ranks + later * last, len(times) - 1)
        had = people + ranks + shift * last
        frame: dict[str, list[Any]] = {each: [None] * len(people) for each in description.columns}
        frame[visits.person] = [f"person {each}" for each in people]
        frame[visits.by] = [times[each] for each in at]
        for each in visits.previous:
            values = [*own[each], None]
            frame[each] = [values[place % len(values)] for place in had]
        table = pd.DataFrame({each: _series(cells)[stays] for each, cells in frame.items()})
        source = opened(table, description, settings.people.limit)._source
        parts = [batch.columns for batch in source.batches(list(visits.added))]
        whole = {each: [cell for part in parts for cell in part[each]] for each in visits.added}
        return list(zip(*(map(repr, cells) for cells in whole.values()), strict=True))

    everybody = np.ones(len(people), dtype=bool)
    first, changed = added(everybody), added(everybody, shift=1)
    moved = added(everybody, later=1)
    faults = []
    if first != changed:
        faults.append("What is added to rows depends on a later row of the same person.")
    if any(first[row] != moved[row] for row in np.flatnonzero(~last)):
        faults.append("What is added to rows depends on when a later row was.")
    for person in range(_PEOPLE):
        whose = people == person
        if [first[row] for row in np.flatnonzero(whose)] != added(whose):
            faults.append("What is added to a person's rows depends on other people.")
    return check_of(
        LAYER,
        name,
        f"what is added to {len(people)} rows of {_PEOPLE} people",
        faults,
        "It depends on earlier rows of the same person alone.",
    )
