"""Rows of tables that belong together: whose they are, how many are used, what their parents have.

A family is a row of the root table with the rows that lead to it. The keys of all tables are read
once, and say of each row whether it is used, and in which family. Where keys are no keys the rule
is one that a family alone decides:

- A row of the root whose key is missing, or which other rows of the root have as well, is left out.
- A row that leads nowhere, or to a row that is left out, is left out.
- A row that leads to a key that several rows have is left out. Those rows are used.
- Of more than so many rows that lead to one row as many in succession stay, from a place on that a
  keyed hash of the parent's key draws. They are in the order of the source, and after the last one
  comes the first; or in that of a column, and then none comes after the last one.

Privacy: take away a row of the root, the rows that lead to it, and those that lead to these. The
families of other rows, and what is added to their rows, are as they were. For what leads to a key
that several rows have is left out, before as after: one of these rows is gone with all that lead to
that key. And if a key of the root is left to one row alone, a family comes where none was, and none
goes. So tables of neighbors differ in one family. Each of its rows counts as 1 / their number,
whatever is counted: rows of a table, or pairs of siblings. So a family counts as one, and so does
its absence. A source may give other rows at a later reading: rows of a key have no more places then
than they were planned, and what is added to them is that of the same keys.
"""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd.base import cached_property
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.dtypes import inner_of
from sdv_privpgd.columns.links import Tree, following, sibling
from sdv_privpgd.columns.visits import time_between
from sdv_privpgd.sources.people import numbers_in, rank_of, starts_of, staying
from sdv_privpgd.sources.source import Batch, Source, free_name
from sdv_privpgd.sources.visits import all_times, joined, taken, times_of

_BLOCK = 1 << 17
"""Pairs of siblings of a batch."""


class Families:
    """Tables that belong together. Which rows stay is decided at the first reading.

    ``most`` is the number of rows of a family that is allowed for all tables: what weighs rows.
    ``clocks`` is what is public of the columns by which tables are in order, each with the parent's
    column at which that order begins, if there is one.
    """

    def __init__(
        self,
        sources: Mapping[str, Source],
        tree: Tree,
        most: int,
        clocks: Mapping[str, Sequence[Column]] = MappingProxyType({}),
    ) -> None:
        self.sources, self.tree, self.most, self.clocks = sources, tree, most, clocks
        self.key = secrets.token_bytes(32)

    @cached_property
    def plans(self) -> dict[str, "_Plan"]:
        """What the keys say of the rows of each table. Private."""
        found: dict[str, _Plan] = {}
        for table in self.tree.tables:
            found[table] = self._plan(table, found)
        for table in self.tree.tables:
            for link in self.tree.below(table):
                child, number = found[link.child], len(found[table].parent)
                stays = child.parent[child.stays]
                found[table].numbers[link.number] = np.bincount(stays, minlength=number)
        return found

    def _plan(self, table: str, known: Mapping[str, "_Plan"]) -> "_Plan":
        link, key = self.tree.above(table), self.tree.key_of(table)
        keys: dict[Any, int] = {}
        rows, own, leading = 0, [np.zeros(0, np.int64)], (0, 0)
        parents, strangers, others = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], {}
        clock, *starts = self.clocks.get(table) or (None,)
        times: list[np.ndarray] = []
        names = [*self.tree.keys_of(table), *([] if clock is None else [clock.name])]
        for batch in self.sources[table].batches(list(dict.fromkeys(names))):
            if key is not None:
                own.append(self._numbers(table, batch.columns[key], keys, grows=True))
            if link is not None:
                above = known[link.parent].keys
                led = self._numbers(link.parent, batch.columns[link.key], above)
                led[led == above.get(None, -1)] = -1
                away = batch.columns[link.key][led < 0]
                strangers.append(self._numbers(link.parent, away, others, grows=True))
                parents.append(led)
            if clock is not None:
                times.append(times_of(clock, batch.columns))
            rows += len(next(iter(batch.columns.values())))
        codes = np.concatenate(own)
        if link is None:
            single = _singles(codes, keys)
            stays, rank = single[codes] >= 0, codes
            parent, family = np.full(rows, -1), np.where(stays, np.arange(rows), -1)
        else:
            above = known[link.parent]
            parent = above.single[np.concatenate(parents)]  # -1 is the last entry
            parent[~np.append(above.stays, False)[parent]] = -1
            led, used = np.concatenate(parents), np.unique(parent[parent >= 0])
            gone = _number_of(np.concatenate(strangers), others)
            if link.parent == self.tree.root:
                gone += len(np.unique(led[(parent < 0) & (led >= 0)]))
            leading = int(np.count_nonzero(rank_of(above.family[used]) < 2)), gone
            rank = rank_of(parent, *(all_times(times) if clock else ()))
            stays = self._chosen(parent, rank, above, link.max_children, in_order=bool(clock))
            family = np.where(stays, np.append(above.family, -1)[parent], -1)
            single = _singles(codes, keys) if key is not None else np.zeros(0, np.int64)
        place = np.zeros(rows, dtype=np.int64)
        if link is not None:
            place[stays] = 1 + rank_of(parent[stays], rank[stays])
        plan = _Plan(keys, codes, single, np.asarray(parent), family, stays, place, leading)
        if link is not None and link.since is not None and clock is not None:
            began = None
            for start in starts:
                began = times_of(start, self.again(link.parent, [start.name], known))
            plan.numbers[link.since] = _since(plan, clock, all_times(times), began)
        return plan

    def read(
        self, table: str, names: Sequence[str], known: Mapping[str, "_Plan"]
    ) -> Iterator[tuple[Batch, np.ndarray]]:
        """The batches of a table, with the place of each row that stays by known plans, else -1.

        Of a key's rows the first one has the first one's place, and so on: what a source has of
        other keys by now has no part in it.
        """
        plan, link = known[table], self.tree.above(table)
        named, key = (table, self.tree.key_of(table)) if link is None else (link.parent, link.key)
        keys, stays = known[named].keys, np.append(plan.stays, False)
        owner = plan.codes if link is None else np.append(known[named].codes, -1)[plan.parent]
        order = np.append(np.argsort(owner, kind="stable"), -1)
        numbers = np.bincount(owner + 1, minlength=len(keys) + 1)
        firsts, read = np.cumsum(numbers) - numbers, np.zeros_like(numbers)
        for batch in self.sources[table].batches(list(dict.fromkeys([*names, str(key)]))):
            whose = 1 + self._numbers(named, batch.columns[str(key)], keys)
            rank = read[whose] + rank_of(whose)
            np.add.at(read, whose, 1)
            places = order[np.where(rank < numbers[whose], firsts[whose] + rank, -1)]
            yield batch, np.where(stays[places], places, -1)

    def again(
        self, table: str, names: Sequence[str], known: Mapping[str, "_Plan"]
    ) -> dict[str, pd.Series]:
        """Columns of a table at the places that its rows have by known plans.

        Those that do not stay, or are not there any more, have no cells.
        """
        pieces: dict[str, list[pd.Series]] = {name: [] for name in names}
        found, read = np.full(len(known[table].stays), -1), 0
        for batch, places in self.read(table, names, known) if names else ():
            found[places[places >= 0]] = read + np.flatnonzero(places >= 0)
            read += len(places)
            for name, held in pieces.items():
                held.append(batch.columns[name])
        return {name: taken(joined(held), found) for name, held in pieces.items()}

    def _numbers(
        self, table: str, cells: pd.Series, keys: dict[Any, int], *, grows: bool = False
    ) -> np.ndarray:
        """The number of each cell's key; -1 for an unknown one.

        Keys are exact unless by its dtypes one end of a link to the table has gone through floats.
        """
        dtypes = [self.sources[table].dtypes.get(self.tree.key_of(table) or "")]
        dtypes += [self.sources[e.child].dtypes.get(e.key) for e in self.tree.below(table)]
        exact = all(getattr(inner_of(each), "kind", "O") != "f" for each in dtypes)
        return numbers_in(cells, exact, keys, grows=grows)

    def _chosen(
        self, parent: np.ndarray, rank: np.ndarray, above: "_Plan", most: int, *, in_order: bool
    ) -> np.ndarray:
        """Which rows stay, by the rows that they lead to and their ranks among those; bool."""
        numbers = np.bincount(parent[parent >= 0], minlength=len(above.parent) + 1)
        keys = [*above.keys, None]
        names = [keys[code] for code in [*above.codes.tolist(), -1]]
        starts = starts_of(names, numbers, most, self.key, in_order=in_order)
        return staying(parent, rank, numbers, starts, most)


@dataclass(frozen=True, eq=False)
class _Plan:
    """What keys say of a table's rows."""

    keys: dict[Any, int]  # a number for each key
    codes: np.ndarray  # the number of each row's own key
    single: np.ndarray  # the row of each key that one row has, else -1; and last -1
    parent: np.ndarray  # the row of the parent that each row leads to, or -1
    family: np.ndarray  # the row of the root that each row that stays belongs to, or -1
    stays: np.ndarray  # which rows are used, bool
    # The place of each row that stays among those that lead to the same row, from 1 on.
    place: np.ndarray
    # How many keys lead to a row of the parent that stays, two of a family at most; and nowhere.
    leading: tuple[int, int]
    # How many children of each link a row has, and how long after the one before it is, by column.
    numbers: dict[str, np.ndarray] = field(default_factory=dict)

    @cached_property
    def in_family(self) -> np.ndarray:
        """How many rows the family of each row has."""
        held = np.bincount(self.family[self.stays], minlength=1)
        return np.where(self.stays, held[np.where(self.stays, self.family, 0)], 0)


def _since(plan: _Plan, clock: Column, time: np.ndarray, began: np.ndarray | None) -> Any:
    """How long before each row that stays the last one of its parent was.

    A first row has its parent's start before it, if that is read. It is missing where one of both
    has no time.
    """
    rows = np.flatnonzero(plan.stays)
    rows = rows[np.lexsort((plan.place[rows], plan.parent[rows]))]
    before, is_first = time[:, np.roll(rows, 1)], plan.place[rows] == 1
    if began is None:
        before[1, is_first] = 1
    else:
        before[:, is_first] = began[:, plan.parent[rows[is_first]]]
    now = time[:, rows]
    apart = np.maximum(time_between(clock, before[0], now[0]), 0)
    found, missing = np.zeros(len(plan.stays), apart.dtype), np.ones(len(plan.stays), bool)
    found[rows], missing[rows] = apart, (before[1] + now[1]) > 0
    return pd.Series(found, dtype=_NULLABLE[found.dtype.kind]).mask(missing).array


_NULLABLE = {"i": "Int64", "f": "Float64"}


def _singles(codes: np.ndarray, keys: Mapping[Any, int]) -> np.ndarray:
    """The row of each key that one row has, -1 for others; and last -1, for the key -1."""
    there = codes >= 0
    times = np.bincount(codes[there], minlength=len(keys))
    found = np.full(len(keys) + 1, -1, dtype=np.int64)
    found[codes[there]] = np.flatnonzero(there)
    found[:-1][times != 1] = -1
    found[keys.get(None, -1)] = -1  # a missing one is nobody's
    return found


def _number_of(codes: np.ndarray, keys: Mapping[Any, int]) -> int:
    """How many keys are among codes, and rows without one."""
    rows = np.bincount(codes, minlength=1)
    is_missing = np.arange(len(rows)) == keys.get(None, -1)
    return int(np.where(is_missing, rows, rows > 0).sum())


class FamilySource:
    """A table's rows that are used, with what is added of their families.

    Besides its own columns it has how many children rows have, what their parents have, and how
    many rows of the table there are in the family, which weighs them.
    """

    def __init__(self, families: Families, table: str) -> None:
        """Takes the families, and the name of one of their tables."""
        self._families, self._table = families, table
        self._inner = families.sources[table]
        tree = families.tree
        self.people = tree.root_key, families.most, True
        self._link, self._in_family = tree.above(table), tree.in_family(table)
        self._counts, link = [each.number for each in tree.below(table)], self._link
        self._place, since = (None, None) if link is None else (link.place, link.since)
        self._added = [each for each in (self._in_family, self._place, since) if each is not None]
        self.numbered = free_name(self.names)

    @cached_property
    def parent(self) -> "FamilySource | None":
        """The rows that these lead to."""
        link = self._link
        return None if link is None else FamilySource(self._families, link.parent)

    @property
    def _above(self) -> dict[str, str]:
        """The parent's columns, by their names here."""
        link, parent = self._link, self.parent
        if link is None or parent is None:
            return {}
        return {link.above(name): name for name in parent.carried}

    @property
    def carried(self) -> list[str]:
        """The columns of the table, the numbers of children, and what its parents have."""
        return [*self._inner.names, *self._counts, *self._above]

    @property
    def names(self) -> Sequence[str]:
        return [*self.carried, *self._added]

    @property
    def dtypes(self) -> Mapping[str, Any]:
        parent = self.parent
        above = {} if parent is None else parent.dtypes
        found = {name: above[own] for name, own in self._above.items()}
        counts = [*self._counts, *self._added, self.numbered]
        whole: dict[str, Any] = dict.fromkeys(counts, np.dtype("int64"))
        if self._link is not None and self._link.since is not None:
            cells = self._families.clocks[self._table][0].cells
            whole[self._link.since] = _NULLABLE[np.asarray(cells.ends).dtype.kind]
        return {**self._inner.dtypes, **found, **whole}

    def num_rows(self) -> int:
        return int(np.count_nonzero(self._families.plans[self._table].stays))

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        plan, above = self._families.plans[self._table], self._above
        own = [name for name in names if name in self._inner.names]
        wanted = [above[name] for name in names if name in above]
        parents = self.parent.taken(wanted) if wanted and self.parent is not None else {}
        added = {name: counts for name, counts in plan.numbers.items() if name in names}
        added |= {self.numbered: plan.in_family, str(self._in_family): plan.in_family}
        added[str(self._place)] = plan.place
        for batch, places in self._families.read(self._table, own, self._families.plans):
            stays, rows = places >= 0, places[places >= 0]
            columns = {name: batch.columns[name][stays] for name in own}
            for name in names:
                if name in above:
                    columns[name] = taken(parents[above[name]], plan.parent[rows])
                elif name not in own:
                    columns[name] = pd.Series(added[name][rows])
            yield Batch(batch.done, columns)

    def taken(self, names: Sequence[str]) -> dict[str, pd.Series]:
        """Columns of all rows of the table, those that stay and others: they hold the place."""
        plan, above = self._families.plans[self._table], self._above
        own = [name for name in dict.fromkeys(names) if name in self._inner.names]
        found = self._families.again(self._table, own, self._families.plans)
        handed = [name for name in names if name in above]
        parents = {} if self.parent is None else self.parent.taken([above[n] for n in handed])
        for name in handed:
            own = parents[above[name]]
            found[name] = taken(own, plan.parent)
        return found | {name: pd.Series(plan.numbers[name]) for name in names if name not in found}


class KeySource:
    """The keys of a table, and whether what leads by one is ``lost``: no more of them.

    Of the root it has a row for each key, and for each row without one, also of rows that are left
    out; none is called lost. Take away a row of the root, or all rows of a key, and one of these
    goes at most.

    Of a table between it has the first two rows of each family that stay, as 1 / 2: of one alone a
    family would not tell that its rows share a key, and more of them would have more noise. Of the
    rows of a key all but the first one are lost; those without a key are not. Take away a family,
    and its two rows are gone. Where one of them was the first one of its key, a later one is that:
    so as many rows go as there were, whichever of both kinds they are of.

    Of what a table says of the root it has a row for each key, and for each row without one. It is
    lost if it leads to no row that stays. Take away a row of the root and all that leads to its
    key, and one of these goes at most. Rows that lead nowhere are as if each key were a family.
    Of what a table says of one between it has two keys of each family at most, as 1 / 2, that lead
    to rows that stay; and each key that no row has, and each row without one, which are lost. Take
    away a family, with all that leads to its keys, and its two are gone. What is lost leads to none
    of its rows.
    """

    def __init__(self, families: Families, table: str, key: str) -> None:
        """Takes the families, one of their tables, and its key or that to its parent."""
        self._families, self._table = families, table
        self._link = families.tree.above(table)
        self._leads = self._link is not None and self._link.key == key
        self.people = families.tree.root_key, families.most, True
        self.names, self.dtypes, self.numbered = ["lost"], {"lost": np.dtype(bool)}, "number"
        of_family = table if self._link is None or not self._leads else self._link.parent
        self._number = min(families.tree.most_of(of_family), 2)

    def num_rows(self) -> int:
        return len(self._lost)

    @cached_property
    def _lost(self) -> np.ndarray:
        """Whether what leads by each key is lost."""
        plan = self._families.plans[self._table]
        if self._leads:
            return np.repeat([False, True], plan.leading)
        nobody = plan.keys.get(None, -1)
        if self._link is None:
            return np.zeros(_number_of(plan.codes, plan.keys), dtype=bool)
        rows = np.flatnonzero(plan.stays)
        codes = plan.codes[rows[rank_of(plan.family[rows]) < self._number]]
        return (rank_of(codes) > 0) & (codes != nobody)

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        number = np.where(self._lost & self._leads, 1, self._number)
        found = {"lost": self._lost, "number": number}
        yield Batch(1.0, {name: pd.Series(found[name]) for name in names})


class SiblingSource:
    """Pairs of children of one parent: what one has, and what another one has, in both orders.

    Of more than ``siblings`` children of one parent the first so many that stay make pairs.
    ``in_order`` only those make pairs that follow each other: what one has, and what the next one.
    """

    def __init__(
        self,
        families: Families,
        table: str,
        columns: Sequence[str],
        siblings: int,
        *,
        in_order: bool = False,
    ) -> None:
        """Takes the families, a table, columns of it, and of how many children pairs are made."""
        self._families, self._table, self._columns = families, table, list(columns)
        self._siblings, self._own = siblings, FamilySource(families, table)
        self._in_order, self._other = in_order, following if in_order else sibling
        self.people = self._own.people
        self.numbered = free_name(self.names)

    @property
    def names(self) -> Sequence[str]:
        return [*self._columns, *map(self._other, self._columns)]

    @property
    def dtypes(self) -> Mapping[str, Any]:
        own = self._own.dtypes
        found = {name: own[name] for name in self._columns}
        return {**found, **{self._other(name): own[name] for name in self._columns}}

    def num_rows(self) -> int:
        return int(self._numbers.sum())

    @cached_property
    def _rows(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows that make pairs, those of one parent beside each other, and their parents."""
        plan = self._families.plans[self._table]
        rows = np.flatnonzero(plan.stays)
        rows = rows[np.lexsort((plan.place[rows], plan.parent[rows]))]
        rows = rows[plan.place[rows] <= self._siblings]
        return rows, plan.parent[rows]

    @cached_property
    def _numbers(self) -> np.ndarray:
        """How many pairs each family has."""
        rows, parent = self._rows
        plan = self._families.plans[self._table]
        others = np.bincount(parent, minlength=1)[parent] - 1
        if self._in_order:  # those before it are counted
            others = np.minimum(plan.place[rows] - 1, 1)
        return np.bincount(plan.family[rows], weights=others, minlength=1).astype(np.int64)

    def _pairs(self) -> Iterator[np.ndarray]:
        """The rows of pairs, some at a time: there are many more than rows."""
        rows, parent = self._rows
        held = [none := np.zeros((2, 0), dtype=np.int64)]
        most = min(self._siblings, 2) if self._in_order else self._siblings
        for apart in range(1, most):  # those of one parent lie beside each other
            same = np.flatnonzero(parent[apart:] == parent[:-apart])
            for start in range(0, len(same), _BLOCK):
                both = rows[same[start : start + _BLOCK] + np.array([[0], [apart]])]
                held += [both] if self._in_order else [both, both[::-1]]
                if sum(own.shape[1] for own in held) >= _BLOCK:
                    yield np.concatenate(held, axis=1)
                    held = [none]
        yield np.concatenate(held, axis=1)

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        own, read = self._own.taken(self._columns), 0
        family, real = self._families.plans[self._table].family, {self._other(n): n for n in own}
        for first, second in self._pairs():
            columns = {}
            for name in names:
                if name == self.numbered:
                    columns[name] = pd.Series(self._numbers[family[first]])
                elif name in own:
                    columns[name] = taken(own[name], first)
                else:
                    columns[name] = taken(own[real[name]], second)
            read += len(first)
            yield Batch(min(read / max(self.num_rows(), 1), 1.0), columns)
