"""Rows of a person in order: at most so many that follow each other, each told of the one before.

Which rows stay, their order and what is added to them depend on the person's own rows and on a
secret key alone. So the rows of one person, at most so many, are all that differs between the
tables of neighbors, whatever the added columns say.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.encoders import read
from sdv_privpgd.columns.scalars import cells, quiet
from sdv_privpgd.columns.visits import Visits, time_between
from sdv_privpgd.sources.people import BoundedSource, Plan, rank_of, starts_of
from sdv_privpgd.sources.source import Columns, Source


class VisitsSource(BoundedSource):
    """A source of which at most so many rows of each person are read, that follow each other.

    A person's rows are put in order by time in a first reading: those without a time come last, and
    rows of the same time stay in the order of the source. Of more rows than may be as many in
    succession stay, from one on that a keyed hash of the person draws, so that the row before each
    row that stays but the first is the one that was there. What is added to rows is held in memory.
    """

    def __init__(self, inner: Source, visits: Visits, clock: Column) -> None:
        """Takes a source, the order of a person's rows, and what is public of its column."""
        super().__init__(inner, (visits.person, visits.most, False))
        self._visits, self._clock = visits, clock

    def _planned(self, people: dict[str | None, int]) -> Plan:
        visits = self._visits
        whose, times = [np.zeros(0, np.int64)], []
        before: dict[str, list[pd.Series]] = {name: [] for name in visits.previous}
        wanted = list(dict.fromkeys([visits.person, visits.by, *visits.previous]))
        for batch in self.inner.batches(wanted):
            whose.append(self._whose(batch, people, grows=True))
            times.append(times_of(self._clock, batch.columns))
            for name, pieces in before.items():
                pieces.append(batch.columns[name])
        owner, (time, missing) = np.concatenate(whose), all_times(times)
        no_time = missing > 0
        numbers = np.bincount(owner, minlength=len(people))
        starts = starts_of(list(people), numbers, visits.most, self._key, in_order=True)
        stays, last = _in_order(owner, visits.most, starts, time, no_time)
        one = last >= 0
        earlier = last[one & ~no_time]  # a row with a time has a row with one before it
        apart = time_between(self._clock, time[earlier], time[one & ~no_time])
        since = np.zeros(len(owner), dtype=apart.dtype)  # a row without a time follows at once
        since[one & ~no_time] = apart
        added = {
            visits.since: taken(pd.Series(since), np.where(one, np.arange(len(one)), -1)),
            visits.number: pd.Series(np.minimum(numbers, visits.most)[owner]),
        }
        for name, pieces in before.items():
            added[visits.before(name)] = taken(joined(pieces), last)
        order = np.argsort(owner, kind="stable")
        added = {name: series.iloc[order] for name, series in added.items()}
        return Plan(people, numbers, stays[order], added)


def _in_order(
    owner: np.ndarray, most: int, starts: np.ndarray, *keys: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Which rows stay, and the row of the same owner before each one of these, or -1.

    At most so many of each owner stay that follow each other in the order of the last key first.
    ``starts`` has the first place that stays of each owner. Ties are in the order of the source.
    """
    order = np.lexsort((*keys, owner))  # it is stable
    place, previous = np.empty_like(order), np.empty_like(order)
    place[order], previous[order] = rank_of(owner[order]), np.roll(order, 1)
    place -= starts[owner]
    stays = (place >= 0) & (place < most)
    return stays, np.where(stays & (place > 0), previous, -1)


def times_of(clock: Column, columns: Columns) -> np.ndarray:
    """When the rows of a batch were, and whether that is missing, shape (2, row)."""
    times, missing = read(clock, columns[clock.name])
    return np.array([np.where(missing, 0, np.clip(times, *clock.cells.ends)), missing])


def all_times(times: Sequence[np.ndarray]) -> np.ndarray:
    """Those of all batches in one."""
    return np.concatenate([np.zeros((2, 0), np.int64), *times], axis=1)


@quiet()
def taken(series: pd.Series, places: np.ndarray) -> pd.Series:
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


def joined(pieces: Sequence[pd.Series]) -> pd.Series:
    """The pieces of a column, one after another; as objects if they differ in their dtypes."""
    if not pieces:
        return pd.Series([], dtype=object)
    alike = all(each.dtype == pieces[0].dtype for each in pieces)
    with quiet():
        return pd.concat(
            [each if alike else pd.Series(cells(each), dtype=object) for each in pieces],
            ignore_index=True,
        )
