"""Worst-case tables of a schema, made up. No private row is read: there is none here.

The cells of a made-up table are of the kinds that have led astray other programs: values inside
the declared range and far outside, missing in all spellings, categories that nobody declared, dates
that pandas cannot hold, numbers beyond any float, lists, and what has no type at all.

Where rows are people's, some people have more rows than may be used, so that a bound that is not
kept shows. A neighbor has one person more, or less, with all rows: its rows are among those of
others.
"""

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd.fitting.settings import Settings

ODD = (
    10**400, -(10**400), float("inf"), float("-inf"), float("nan"), None, pd.NA, pd.NaT,
    "made up", b"made up", "", " ", (1, 2), {"made": "up"}, complex(1, 2), True, -0.0, 5e-324,
    1.7e308, 2**63, datetime.date(9999, 12, 31), datetime.datetime(1, 1, 1), "2020-02-30",
    datetime.time(23, 59), pd.Timestamp("2020-05-05", tz="Asia/Tokyo"), pd.Timestamp.max, object,
)  # fmt: skip
"""Cells that no column expects."""

_DATES = "2015-01-01", "2024-12-31"
_FREQUENT = ("often", "usual", "known")


@dataclass(frozen=True, eq=False)
class MadeUp:
    """A table of nobody's rows."""

    name: str  # what is special about it
    frame: pd.DataFrame  # its rows

    def holds(self, columns: Mapping[str, Any]) -> bool:
        """Whether these are columns of the table, and share its memory: no others can.

        Columns without rows have no memory, and nobody's rows.
        """
        return columns.keys() <= set(self.frame.columns) and all(
            np.shares_memory(self.frame[name].to_numpy(), column.to_numpy())
            for name, column in columns.items()
            if len(column)
        )


def made_up(
    columns: Mapping[str, Mapping], num_rows: int, seed: int = 0, *, missing: float = 0.05
) -> MadeUp:
    """A table of values that its columns expect, some missing, some that few rows have."""
    rng = np.random.default_rng([seed, num_rows])
    cells = {name: _usual(facts, rng, num_rows, missing) for name, facts in columns.items()}
    return MadeUp("usual rows", _framed(cells, num_rows))


def others(usual: MadeUp, columns: Mapping[str, Mapping], rows: Sequence[int]):
    """Tables of the same columns that share no row with a usual one.

    ``rows`` are the numbers of rows that they may have: one under replace-one.
    """
    frame = usual.frame

    number = lambda place: rows[place % len(rows)]

    def sized(cells: Callable[[int, int], Any], place: int) -> pd.DataFrame:
        places = range(number(place))
        data = {each: [cells(row, at) for row in places] for at, each in enumerate(frame.columns)}
        return _framed(data, len(places))

    first = frame.iloc[0].tolist() if len(frame) else [None] * frame.shape[1]
    # In the dtypes that pandas would have read them in, in reverse order.
    read = made_up(columns, number(4), seed=7, missing=0).frame.infer_objects()
    return [
        MadeUp("other values", made_up(columns, number(0), seed=99).frame),
        MadeUp("nothing but missing cells", sized(lambda *_: None, 1)),
        MadeUp("cells of every kind", sized(lambda row, at: ODD[(row + at) % len(ODD)], 2)),
        MadeUp("one row again and again", sized(lambda _, place: first[place], 3)),
        MadeUp("other dtypes", read.iloc[::-1, ::-1].copy()),
        MadeUp("values that only one row has", sized(_single(columns), 5)),
    ]


def neighbors(
    usual: MadeUp, columns: Mapping[str, Mapping], rows: int, *, removes: bool
) -> list[MadeUp]:
    """Tables that differ from a usual one in its first rows, which are a person's, in many ways."""
    frame = usual.frame
    rest = frame.iloc[rows:]
    width = frame.shape[1]
    odd = [[ODD[(5 * at + place) % len(ODD)] for place in range(width)] for at in range(6)]
    people = {
        "at the upper ends": [_ends(columns[name])[1] for name in frame.columns],
        "with nothing but missing cells": [None] * width,
        "with categories that nobody knows": ["made up"] * width,
        "a copy of another": rest.iloc[0].tolist() if len(rest) else [None] * width,
        **{f"with odd cells, number {at}": cells for at, cells in enumerate(odd, 1)},
    }
    made = [MadeUp("a person gone", _objects(rest))] if removes else []
    for name, person in people.items():
        own = pd.DataFrame([person] * rows, columns=frame.columns, dtype=object)
        parts = [frame, own] if removes else [own, rest]
        made.append(MadeUp(f"a person {name}", _objects(pd.concat(parts, ignore_index=True))))
    return made


def lowest(usual: MadeUp, columns: Mapping[str, Mapping], rows: int) -> MadeUp:
    """The usual table with a person in it who is at the lower end of every column."""
    frame = usual.frame.astype(object)
    person = [_ends(columns[name])[0] for name in frame.columns]
    own = pd.DataFrame([person] * rows, columns=frame.columns, dtype=object)
    return MadeUp(usual.name, _objects(pd.concat([own, frame.iloc[rows:]], ignore_index=True)))


def _framed(cells: Mapping[str, Sequence[Any]], num_rows: int) -> pd.DataFrame:
    """A frame of objects: no dtype is guessed."""
    made = {name: of_objects(column) for name, column in cells.items()}
    return pd.DataFrame(made, index=range(num_rows))


def of_objects(cells: Sequence[Any]) -> pd.Series:
    """A column of these cells, each as it is."""
    own = np.empty(len(cells), dtype=object)
    own[:] = list(cells)
    return pd.Series(own, dtype=object)


def _objects(frame: pd.DataFrame) -> pd.DataFrame:
    return _framed({name: frame[name].tolist() for name in frame}, len(frame))


def _usual(facts: Mapping, rng: np.random.Generator, num_rows: int, missing: float) -> list[Any]:
    """Cells of one column: frequent ones, a few that are missing, a few that are rare."""
    pool = pool_of(facts)
    # Squared, so that some are frequent whatever the pool.
    places = (len(pool) * rng.random(num_rows) ** 2).astype(int)
    cells: list[Any] = [pool[place] for place in places]
    for row in np.flatnonzero(rng.random(num_rows) < missing):
        cells[row] = None
    if facts["sdtype"] == "categorical" and not facts.get("range_values"):
        for row in np.flatnonzero(rng.random(num_rows) < 0.2):
            cells[row] = f"rare {row}"
    if facts["sdtype"] not in ("numerical", "categorical", "ordinal", "boolean", "datetime"):
        cells = [f"made up {row}" for row in range(num_rows)]
    return cells


def pool_of(facts: Mapping) -> list[Any]:
    """Values of a column, from the lower end to the upper."""
    kind = facts["sdtype"]
    if kind == "boolean":
        return [facts.get("true_value", True), facts.get("false_value", False)]
    if kind in ("categorical", "ordinal"):
        return list(facts.get("range_values") or (_FREQUENT if kind == "categorical" else (1, 2)))
    if kind == "datetime":
        low, high = _dates(facts)
        days = [low + (high - low) * share for share in np.linspace(0, 1, 40)]
        return [_written(facts, day) for day in days]
    if kind == "numerical":
        low, high = _numbers(facts)
        values = np.linspace(low, high, 40)
        places = facts.get("decimal_places", 0)
        return [int(value) for value in values] if places == 0 else values.round(places).tolist()
    return ["made up"]


def _ends(facts: Mapping) -> tuple[Any, Any]:
    """The lower and the upper end of a column."""
    pool = pool_of(facts)
    return (pool[-1], pool[0]) if facts["sdtype"] == "boolean" else (pool[0], pool[-1])


def _numbers(facts: Mapping) -> tuple[float, float]:
    low, high = facts.get("range_min"), facts.get("range_max")
    low = float(high) - 60 if low is None and high is not None else float(low or 0)
    return low, low + 60 if high is None else float(high)


def _dates(facts: Mapping) -> list[Any]:
    """The ends of a column of dates, as pandas reads them."""
    ends: list[Any] = []
    for key, usual in zip(("range_min", "range_max"), _DATES, strict=True):
        end: Any = facts.get(key)
        form = facts.get("datetime_format")
        form = form if isinstance(end, str) and form else None
        read: Any = pd.to_datetime(end, errors="coerce", format=form)  # ``None`` stays what it is
        ends.append(pd.Timestamp(usual) if read is None or pd.isna(read) else read)
    return [end.tz_localize(None) for end in ends]


def _written(facts: Mapping, day: Any) -> Any:
    usual = "%H:%M:%S" if str(facts.get("range_min"))[2:3] == ":" else "%Y-%m-%d"
    return day.strftime(facts.get("datetime_format") or usual)


def _single(columns: Mapping[str, Mapping]) -> Callable[[int, int], Any]:
    """A cell that no other row has, of a kind that the column can read where it can."""
    kinds = [facts["sdtype"] for facts in columns.values()]

    def cell(row: int, place: int) -> Any:
        kind = kinds[place]
        if kind == "numerical":
            return (-1) ** row * (row + 0.123456) * 10.0 ** (row % 9)
        if kind == "datetime":
            return str(datetime.date(1900, 1, 1) + datetime.timedelta(days=31 * row))
        return f"only row {row}"

    return cell


BEYOND = 2
"""Rows of a person beyond those that may be used."""

_ADDED = "another", 8, None, True, "Person 1"
"""Who comes: nobody of the usual table is called so."""

_FIRST = "7", 7, 7.0, " 07", b"7", "7e0"
"""How the first person of the usual table is spelled, row by row."""


def rows_of_one(settings: Settings) -> int:
    """How many rows the person has who makes a neighbor: more than are used, if that is bounded."""
    return settings.people.max_rows + (BEYOND if settings.people.column else 0)


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
    base: MadeUp,
    columns: Mapping[str, Mapping],
    rows: Sequence[int],
    settings: Settings,
    *,
    as_read: bool,
) -> list[MadeUp]:
    """Tables that share no row with a usual one, with people of all kinds.

    Some columns of people have other dtypes, as they would be ``as_read`` by pandas.
    """
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
        _belonging(each, settings, own, as_read=as_read and place in (0, 3, 4))
        for place, (each, own) in enumerate(zip(tables, ids, strict=True))
    ]


def numbers_of_people(made: MadeUp, column: str) -> pd.Series:
    """How many rows each person of a table has."""
    called = made.frame[column].astype(object).map(repr)
    return called.replace(list(map(repr, _FIRST)), "the first").value_counts()


def _in_turn(number: int, most: int) -> list[str]:
    """So many rows of people of one row, of two, up to so many, and again."""
    every = (f"person {one}" for one in count(1) for _ in range((one - 1) % most + 1))
    return list(islice(every, number))


def _belonging(
    made: MadeUp, settings: Settings, whose: Sequence[Any], *, as_read: bool = False
) -> MadeUp:
    assert settings.people.column is not None
    column = of_objects(whose).set_axis(made.frame.index)
    column = column.infer_objects() if as_read else column
    return MadeUp(made.name, made.frame.assign(**{settings.people.column: column}))
