"""Layers: what nobody declared must leave no trace of few rows, and each cell is read alone.

Values that one person alone has come out if their noisy count reaches a threshold. How likely that
is stands in the ledger, as a part of delta, and is far too rare to be seen: it is recomputed, and
the same curator is watched with a delta that is large enough to be counted.

A crowd of equal cells is put beside cells of every kind: whatever is counted of them must be what
is counted of each cell alone. Of rows in order the last one of each person is changed, and all
other people leave: what is added to other rows must stay. Chance decides neither.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binom, norm

from sdv_privpgd.audit.checks import Check, check_of, skipped
from sdv_privpgd.audit.noise import unlikely_noise
from sdv_privpgd.audit.recorder import Event, Tape
from sdv_privpgd.audit.tables import ODD, of_objects, pool_of
from sdv_privpgd.columns.bins import SIGNED_POWERS
from sdv_privpgd.columns.readings import Reading
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.options import opened
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.ledger import Charge, FitLedger, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency

LAYER = "what nobody declared"

_MISSING = (type(None), None)


def threshold_checks(
    events: Sequence[Event], settings: Settings, runs: int, false_alarms: float
) -> list[Check]:
    """Whether rare values stay hidden."""
    events = [event for event in events if event.kind == "discover" and event.charges]
    if not events:
        why = "No column has values that nobody declared: none has to be found by a threshold."
        return [skipped(LAYER, "thresholds", why)]
    own = _promised(events, settings), _rare(events, settings)
    return [*own, *_released(settings, runs, false_alarms)]


def _promised(events: Sequence[Event], settings: Settings) -> Check:
    """The thresholds of the ledger hide a person's values as its deltas say."""
    faults = []
    for event in events:
        for charge in event.charges:
            chance = chance_of(event, charge, settings)
            if chance > float(charge.delta) * (1 + 1e-9):
                faults.append(
                    f"{charge.what!r} has a threshold of {charge.threshold}, which lets a person's "
                    f"values out with probability {chance:.3g}; {float(charge.delta):.3g} is said."
                )
            # What is given out is rounded to whole people.
            least = (charge.threshold or 0) - event.units // 2
            if low := sum(noisy < least for noisy, _ in _given_out(event)):
                faults.append(f"{charge.what!r} gave out {low} values below its threshold.")
    total = float(sum(charge.delta for event in events for charge in event.charges))
    looked_at = f"{len(events)} questions for values"
    right = (
        f"A value of one person comes out with probability {total:.2g} at most, which is part of "
        f"delta, {settings.delta:g}."
    )
    return check_of(LAYER, "thresholds", looked_at, faults, right, delta_of_thresholds=total)


def chance_of(event: Event, charge: Charge, settings: Settings) -> float:
    """How likely a person's own values come out of one question, by the Gaussian's tail."""
    rows = settings.people.max_rows
    whole = event.units * (1 if settings.people.weighed else rows)
    beyond = ((charge.threshold or 0) - whole - 0.5) / charge.stddev
    one = len(event.queries) * rows * float(norm.sf(beyond))  # a row counts in all columns
    return one + (one / (1 - one) if settings.adjacency is Adjacency.REPLACE_ONE else 0.0)


def _rare(events: Sequence[Event], settings: Settings) -> Check:
    """Of many values that one row has, none came out of the recorded fit."""
    ledger = settings.ledger()
    whole = ledger.rows_counted * ledger.units
    rare = sum(true <= whole for event in events for _, true in _given_out(event))
    asked = sum(n <= whole for event in events for own in event.exact for n in own.values())
    looked_at = f"{asked:,} values that no more rows have than one person may"
    passed, found = rare < 2, f"{rare} of them came out of the recorded fit."
    # One may come out by chance; two do as good as never.
    chance = min((asked * ledger.delta / 2) ** 2, 1.0)
    facts = {"rare": asked, "given_out": rare}
    return Check(LAYER, "rare values", looked_at, passed, found, chance, facts)


def _released(settings: Settings, runs: int, false_alarms: float) -> list[Check]:
    """How often a person's value comes out at a delta that can be counted, and how noisy others."""
    # Of a made-up column, and values in it that one row has: they must not show in other numbers.
    at_most, rare_values = 3_000, 60
    large = Fraction(1, 20)  # A delta that shows in some thousand runs
    rows, runs = settings.people.max_rows, min(runs, at_most)
    own = 1 if settings.people.weighed else rows
    true = {"often": 5_000, None: 40}
    rare = [f"rare {number}" for number in range(rare_values)]
    cells = [*rare, *["often"] * true["often"], *[None] * true[None], *["a person's"] * own]
    reading = Reading(name="job", asks=frozenset(["categories"]), cells=SIGNED_POWERS)
    wide = replace(settings, delta=0.5).ledger(Fraction(1, 4))
    table = PrivateTable({"job": of_objects(cells)}, bound=wide.bound)
    first = table.first_queries([reading], FitLedger(wide))
    dataset, values = first._dataset, first._values
    came_out, noise, stddev = 0, {value: np.zeros(runs) for value in true}, 1.0
    for run in range(runs):
        shared = FitLedger(wide)
        curator = Curator(dataset, shared, values=values)
        found = dict(curator.discover(wide.budget / 100, large, what="a made-up column")["job"])
        came_out += "a person's" in found
        for value, number in true.items():
            noise[value][run] = (found.get(value, 0) - number) * wide.units
        stddev = shared.ledger.charges[-1].stddev
    sides = 2 if settings.adjacency is Adjacency.REPLACE_ONE else 1
    most = float(large) / sides / rows
    chance = float(binom.sf(came_out - 1, runs, most))
    faults = [
        f"The number of {'missing cells' if value is None else 'a frequent value'} has noise of "
        f"{math.sqrt(np.mean(draws**2)):.4g}, and {stddev:.4g} was charged for."
        for value, draws in noise.items()
        if unlikely_noise(draws, stddev, (wide.units + (wide.units > 1)) / 2) < false_alarms / 2
    ]
    facts, passed = {"came_out": came_out, "runs": runs, "allowed": most}, chance >= false_alarms
    looked_at = f"a person's value in {runs:,} runs at a delta of {float(large):g}"
    share = 100 * came_out / runs
    found = f"It came out in {share:.2f} % of the runs, and {100 * most:.2f} % is allowed."
    counted = f"numbers of a frequent value and of missing cells in {runs:,} runs"
    noise_is, alarms = "Both have the noise that was charged for.", false_alarms
    return [
        Check(LAYER, "values released", looked_at, passed, found, alarms, facts),
        check_of(LAYER, "counts released", counted, faults, noise_is, false_alarms=alarms),
    ]


def _given_out(event: Event) -> list[tuple[int, int]]:
    """The noisy and the true number of each value that a discovery gave out."""
    found = []
    for exact, given in zip(event.exact, event.given, strict=True):
        found += [(n, exact.get(cell, 0)) for cell, n in given.items() if cell != _MISSING]
    return found


ALONE = "each cell and row alone"

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
        return check_of(ALONE, name, "made-up cells", [fault], "")


def _cells(tape: Tape, description: Description) -> Check:
    far = -(10**9), 10**9
    name, schema = "cells", tape.schema
    if schema is None or not schema.columns:
        return skipped(ALONE, name, "No column has codes.")
    read = [each for each in tape.readings if each.name in schema.read]
    shared = FitLedger(PrivacyLedger.open(1.0, 1e-5, Adjacency.ADD_REMOVE))

    def counted(cells: Mapping[str, pd.Series]) -> Counter[tuple]:
        table = PrivateTable(cells)
        return _counts(table.curator(schema, shared)) + _counts(table.first_queries(read, shared))

    usual = _usual(schema.read, description)
    pool = {each: [*values, *ODD, *far] for each, values in usual.items()}
    faults = []
    looked = 0
    for cells, crowds in ((usual, (0, -1)), (pool, (0, -1, _VALUES - 1))):
        number = max(map(len, cells.values()))
        filled = {each: [own[at % len(own)] for at in range(number)] for each, own in cells.items()}
        alone = [
            counted({each: of_objects([own[at]]) for each, own in filled.items()})
            for at in range(number)
        ]
        for crowd in crowds:
            place = crowd % number
            whole = {
                each: of_objects([*own, *[own[place]] * _CROWD]) for each, own in filled.items()
            }
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
    looked_at = f"{looked:,} cells of {len(usual)} columns, beside crowds of {_CROWD} and alone"
    return check_of(ALONE, name, looked_at, faults, "Each cell is read as it is alone.")


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


def _rows(description: Description, settings: Settings) -> Check:
    name, visits = "rows in order", description.visits
    if visits is None:
        return skipped(ALONE, name, "No column says in which order rows are.")
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
        table = pd.DataFrame({each: of_objects(cells)[stays] for each, cells in frame.items()})
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
    looked_at = f"what is added to {len(people)} rows of {_PEOPLE} people"
    right = "It depends on earlier rows of the same person alone."
    return check_of(ALONE, name, looked_at, faults, right)
