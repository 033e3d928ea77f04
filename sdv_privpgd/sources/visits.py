"""Rows of a person in order: at most so many that follow each other, each told of the one before.

Which rows stay, their order and what is added to them depend on the person's own rows and on a
secret key alone. So the rows of one person, at most so many, are all that differs between the
tables of neighbors, whatever the added columns say.
"""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from sdv_privpgd.base import cached_property
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.dtypes import is_whole
from sdv_privpgd.columns.encoders import read
from sdv_privpgd.columns.scalars import quiet
from sdv_privpgd.columns.visits import Visits, time_between
from sdv_privpgd.sources.frames import joined
from sdv_privpgd.sources.people import numbers_in, rank_of, starts_of
from sdv_privpgd.sources.source import Batch, Source


class VisitsSource:
    """A source of which at most so many rows of each person are read, that follow each other.

    A person's rows are put in order by time in a first reading: those without a time come last, and
    rows of the same time stay in the order of the source. Of more rows than may be as many in
    succession stay, from one on that a keyed hash of the person draws, so that the row before each
    row that stays but the first is the one that was there. All rows without a person are taken for
    those of one. What is added to rows is held in memory, and so is where they are.
    """

    def __init__(self, inner: Source, visits: Visits, clock: Column) -> None:
        """Takes a source, the order of a person's rows, and what is public of its column."""
        self.inner, self._visits, self._clock = inner, visits, clock
        self.names, self.dtypes = inner.names, inner.dtypes
        self.people = visits.person, visits.most, False
        self._is_whole = is_whole(inner.dtypes.get(visits.person))
        self._key = secrets.token_bytes(32)

    def num_rows(self) -> int:
        return int(np.count_nonzero(self._plan.stays))

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        plan, person = self._plan, self._visits.person
        own = [name for name in names if name not in self._visits.added]
        read = 0
        for batch in self.inner.batches(list(dict.fromkeys([*own, person]))):
            whose = numbers_in(batch.columns[person], self._is_whole, plan.people, grows=False)
            part = slice(read, read + len(whose))
            planned = plan.stays[part]
            # A source that changed while it was read could have another person's row here.
            stays = np.zeros(len(whose), dtype=bool)
            stays[: len(planned)] = planned & (plan.whose[part] == whose[: len(planned)])
            rows, read = read + np.flatnonzero(stays), part.stop
            columns = {
                name: batch.columns[name][stays] if name in own else plan.added[name].iloc[rows]
                for name in names
            }
            yield Batch(batch.done, columns)

    @cached_property
    def _plan(self) -> "_Plan":
        """Which rows stay, and what is added to them."""
        visits = self._visits
        people: dict[Any, int] = {}
        whose, times, timeless = [np.zeros(0, np.int64)], [], [np.zeros(0, bool)]
        before: dict[str, list[pd.Series]] = {name: [] for name in visits.previous}
        wanted = list(dict.fromkeys([visits.person, visits.by, *visits.previous]))
        for batch in self.inner.batches(wanted):
            cells = batch.columns[visits.person]
            whose.append(numbers_in(cells, self._is_whole, people, grows=True))
            moments, missing = read(self._clock, batch.columns[visits.by])
            times.append(np.clip(moments, *self._clock.cells.ends))
            timeless.append(missing)
            for name, pieces in before.items():
                pieces.append(batch.columns[name])
        owner, no_time = np.concatenate(whose), np.concatenate(timeless)
        time = np.concatenate(times) if times else np.zeros(0)
        numbers = np.bincount(owner, minlength=len(people))
        starts = starts_of(list(people), numbers, visits.most, self._key, in_order=True)
        place = _in_order(owner, visits.most, starts, time, no_time)
        one = place.before >= 0
        earlier = place.before[one & ~no_time]  # a row with a time has a row with one before it
        apart = time_between(self._clock, time[earlier], time[one & ~no_time])
        since = np.zeros(len(owner), dtype=apart.dtype)  # a row without a time follows at once
        since[one & ~no_time] = apart
        added = {
            visits.since: _taken(pd.Series(since), np.where(one, np.arange(len(one)), -1)),
            visits.number: pd.Series(place.number),
        }
        for name, pieces in before.items():
            added[visits.before(name)] = _behind(pieces, place.before)
        return _Plan(people=people, whose=owner, stays=place.stays, added=added)


@dataclass(frozen=True, eq=False)
class _Plan:
    """What a first reading says of all rows."""

    people: dict[Any, int]  # a number for each person
    whose: np.ndarray  # the person of each row
    stays: np.ndarray  # which rows stay, bool
    added: Mapping[str, pd.Series]  # what is added to each


class _Places(NamedTuple):
    """Of each row whether it stays, the row before it or -1, and how many its person keeps."""

    stays: np.ndarray
    before: np.ndarray
    number: np.ndarray


def _in_order(owner: np.ndarray, most: int, starts: np.ndarray, *keys: np.ndarray) -> _Places:
    """At most so many rows of each owner that follow each other in the order of the last key first.

    ``starts`` has the first place that stays of each owner. Ties are in the order of the source.
    """
    order = np.lexsort((*keys, owner))  # it is stable
    place, previous = np.empty_like(order), np.empty_like(order)
    place[order], previous[order] = rank_of(owner[order]), np.roll(order, 1)
    number = np.minimum(np.bincount(owner, minlength=len(starts)), most)[owner]
    place -= starts[owner]
    stays = (place >= 0) & (place < most)
    return _Places(stays, np.where(stays & (place > 0), previous, -1), number)


def _behind(pieces: Sequence[pd.Series], before: np.ndarray) -> pd.Series:
    """The cells of a column in the rows before, missing where there is none."""
    if not pieces:
        return pd.Series([], dtype=object)
    with quiet():
        return _taken(joined(pieces), before)


def _taken(series: pd.Series, places: np.ndarray) -> pd.Series:
    """The cells at these places, just as they are, and missing ones for -1."""
    array = series.array
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "iub":
        array = pd.array(series.to_numpy())  # floats would round whole numbers
    elif isinstance(series.dtype, pd.SparseDtype):
        array = series.astype(object).array
    taken = array.take(places, allow_fill=True)
    if isinstance(taken, pd.arrays.NumpyExtensionArray):
        taken = np.asarray(taken)  # pandas asks cells of its own array whether they are missing
    return pd.Series(taken, dtype=taken.dtype)  # else pandas looks into objects
