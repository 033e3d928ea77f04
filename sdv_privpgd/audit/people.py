"""Made-up tables whose rows are people's, and what a bound on a person's rows must leave of them.

Some people have more rows than may be used, so that a bound that is not kept shows. A neighbor has
one person more, or less, with all rows: its rows are among those of others.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd.audit.checks import Check, check_of
from sdv_privpgd.audit.recording import Event
from sdv_privpgd.audit.tables import ODD, MadeUp, neighbors, others
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.privacy.counting import Weights
from sdv_privpgd.privacy.queries import CountQuery, GroupedMarginalQuery, MarginalQuery

_BEYOND = 2
"""Rows of a person beyond those that may be used."""

_ADDED = "another", 8, None, True, "Person 1"
"""Who comes: nobody of the usual table is called so."""

_FIRST = "7", 7, 7.0, " 07", b"7", "7e0"
"""How the first person of the usual table is spelled, row by row."""

_CALLED = "people"


def rows_of_one(settings: Settings) -> int:
    """How many rows the person has who makes a neighbor: more than are used, if that is bounded."""
    return settings.people.max_rows + (_BEYOND if settings.people.column else 0)


def of_people(made: MadeUp, settings: Settings) -> MadeUp:
    """The table with whose each row is: the first rows are one person's, in several spellings."""
    if settings.people.column is None:
        return made
    own = rows_of_one(settings)
    first = [_FIRST[row % len(_FIRST)] for row in range(own)]
    return _belonging(made, settings, first + _in_turn(len(made.frame) - own, own))


def neighbors_of_people(
    base: MadeUp, columns: Mapping[str, Mapping], settings: Settings
) -> list[MadeUp]:
    """Tables that differ from a usual one in one person, with all of the person's rows."""
    assert settings.people.column is not None
    person, own = settings.people.column, rows_of_one(settings)
    whose = base.frame[person].tolist()
    plain = MadeUp(base.name, base.frame.drop(columns=person))
    gone, *more = neighbors(plain, columns, own, removes=True)
    found = [_belonging(gone, settings, whose[own:])]
    for place, each in enumerate(more):
        # All numbers of rows; the first ones, which are fitted whole, have too many.
        number = own if place < 2 else 1 + place % own
        frame = each.frame.iloc[: len(whose) + number]
        ids = [*whose, *[_ADDED[place % len(_ADDED)]] * number]
        among = (np.arange(number) + 0.5) * len(whose) / number
        order = np.argsort(np.r_[np.arange(len(whose)), among], kind="stable")
        mixed = MadeUp(each.name, frame.iloc[order].reset_index(drop=True))
        found.append(_belonging(mixed, settings, [ids[at] for at in order]))
    return found


def others_of_people(
    base: MadeUp, columns: Mapping[str, Mapping], rows: Sequence[int], settings: Settings
) -> list[MadeUp]:
    """Tables that share no row with a usual one, with people of all kinds."""
    assert settings.people.column is not None
    plain = MadeUp(base.name, base.frame.drop(columns=settings.people.column))
    tables = others(plain, columns, rows)
    numbers = [len(each.frame) for each in tables]
    ids: list[Any] = [
        range(numbers[0]),  # whole numbers, as pandas reads them
        [None] * numbers[1],
        [ODD[row % len(ODD)] for row in range(numbers[2])],
        [7] * numbers[3],
        [float("nan") if row == 3 else float(row // 2) for row in range(numbers[4])],
        _in_turn(numbers[5], 40),
    ]
    return [
        _belonging(each, settings, own, as_read=place in (0, 3, 4))
        for place, (each, own) in enumerate(zip(tables, ids, strict=True))
    ]


def people_check(
    layer: str, recorded: Sequence[tuple[MadeUp, Sequence[Event]]], settings: Settings
) -> Check:
    """Whether of each person as many rows were counted as may be, or all of them as one.

    Args:
        layer: That it belongs to.
        recorded: Tables of people, and what was asked of each.
        settings: Of the fit.
    """
    nearly = 1 - 1 / 2_500  # of what a person counts as, at least, where weights are rounded down
    if settings.people.weights is not None:
        return _weights_check(layer, recorded, settings.people.weights)
    person, most, weighs = settings.people.column, settings.people.max_rows, settings.people.weighed
    if person is None:
        return Check(
            layer=layer,
            name=_CALLED,
            looked_at="",
            passed=None,
            found="No column says whose a row is.",
        )
    faults, looked = [], 0
    for made, events in recorded:
        called = made.frame[person].astype(object).map(repr)
        numbers = called.replace(list(map(repr, _FIRST)), "the first").value_counts()
        right = len(numbers) if weighs else int(numbers.clip(upper=most).sum())
        for event in events:
            for number in _numbers_of_rows(event):
                looked += 1
                counted = number / event.units
                if not right * (nearly if weighs else 1) <= counted <= right:
                    faults.append(
                        f"With {made.name}, {event.asked[-1]!r} counted {counted:,.6g}, and "
                        f"{right:,} is right."
                    )
    return check_of(
        layer,
        _CALLED,
        f"{looked:,} true answers about people of whom some have {_BEYOND} rows too many",
        faults,
        "All rows of a person count as one."
        if weighs
        else f"Of each person {most} rows are counted, or all if they are fewer.",
    )


def _weights_check(
    layer: str, recorded: Sequence[tuple[MadeUp, Sequence[Event]]], weights: Weights
) -> Check:
    """Whether each row was counted as its weight / the upper end, by another reading of cells."""
    faults, looked = [], 0
    for made, events in recorded:
        read = [_weight(cell, weights) for cell in made.frame[weights.column]]
        right, rounding = sum(read) / weights.high, len(read) / 2
        for event in events:
            for number in _numbers_of_rows(event):
                looked += 1
                if abs(number - right * event.units) > rounding:
                    faults.append(
                        f"With {made.name}, {event.asked[-1]!r} counted "
                        f"{number / event.units:,.6g}, and {right:,.6g} is right."
                    )
    return check_of(
        layer,
        _CALLED,
        f"{looked:,} true answers about rows with weights",
        faults,
        f"Each row is counted as its weight / {weights.high:g}.",
    )


def _weight(cell: Any, weights: Weights) -> float:
    """What a row weighs by its cell, within the range."""
    try:
        weight = float(cell) if isinstance(cell, int | float | str) else math.nan
    except OverflowError:  # a whole number beyond any float
        return weights.high if isinstance(cell, int) and cell > 0 else weights.low
    except ValueError:
        weight = math.nan
    return min(max(weight, weights.low), weights.high) if math.isfinite(weight) else weights.low


def _numbers_of_rows(event: Event) -> list[int]:
    """How many rows there are, by each true answer that says it."""
    tables = CountQuery, MarginalQuery, GroupedMarginalQuery
    if event.kind == "discover":
        return [sum(exact.values()) for exact in event.exact]
    if event.kind != "measure":
        return []
    return [
        sum(exact.values())
        for query, exact in zip(event.queries, event.exact, strict=False)
        if isinstance(query, tables)
    ]


def _in_turn(number: int, most: int) -> list[str]:
    """So many rows of people of one row, of two, up to so many, and again."""
    found: list[str] = []
    person = 0
    while len(found) < number:
        person += 1
        found += [f"person {person}"] * ((person - 1) % most + 1)
    return found[:number]


def _belonging(
    made: MadeUp, settings: Settings, whose: Sequence[Any], *, as_read: bool = False
) -> MadeUp:
    assert settings.people.column is not None
    ids = np.empty(len(whose), dtype=object)
    ids[:] = list(whose)
    column = pd.Series(ids, dtype=object, index=made.frame.index)
    column = column.infer_objects() if as_read else column
    return MadeUp(made.name, made.frame.assign(**{settings.people.column: column}))
