"""Rows of a model made to obey rules: codes are moved first, then values in their cells. Public.

No rows are drawn until they fit. A row whose cells cannot hold a row that obeys takes the codes of
the rule's columns from a row whose cells can, and keeps its other codes. The donor is the row with
the nearest codes in these columns, and among several the one that is most similar elsewhere
(nearest-neighbor hot deck, Andridge & Little 2010). Then values are put in order inside their
cells. Rows that still break a rule, usually one that is a black box, get new places in their cells
a few times, and finally the values of a row that obeys.

Codes are of shape (row, attribute). ``scales`` says for each attribute how much a step between
codes counts, beside the 1 that another code counts; it is 0 where codes have no order.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pandas as pd

from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.differences import Difference, put_differences
from sdv_privpgd.constraints.rules import Order, Rule, groups, settle

_DONORS = 2048
"""The number of donor rows that are examined."""


class ConstraintError(ValueError):
    """Raised if next to no row that a model can give obeys a rule."""


class Predicate(Protocol):
    """A rule that is a black box."""

    @property
    def name(self) -> str:
        """The name used in messages."""
        ...

    def __call__(self, columns: Mapping[str, pd.Series]) -> np.ndarray:
        """Marks the rows of decoded columns that obey, bool."""
        ...


@dataclass(frozen=True)
class _RepairedRows:
    """Codes and positions in their cells, both of shape (row, attribute).

    Columns in ``held`` stay as they are when the rows are repaired.
    """

    codes: np.ndarray
    positions: np.ndarray
    held: Collection[str]
    generator: np.random.Generator

    def __len__(self) -> int:
        return len(self.codes)

    def at(self, which: np.ndarray) -> "_RepairedRows":
        """A copy of the rows at these indices."""
        return replace(self, codes=self.codes[which], positions=self.positions[which])

    def put(self, which: np.ndarray, rows: "_RepairedRows") -> None:
        """Overwrites the rows at these indices."""
        self.codes[which], self.positions[which] = rows.codes, rows.positions


class Repair:
    """Makes rows obey rules of cells, and predicates of the values that codes ``decode`` to.

    ``columns`` are all attributes, in the rows' order; ``differences`` say which are computed.
    ``orders`` are the rules of two columns in order.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        rules: Sequence[Rule],
        predicates: Sequence[Predicate],
        decode: Callable[[np.ndarray, np.ndarray], Mapping[str, pd.Series]],
        differences: Sequence[Difference] = (),
    ) -> None:
        self._axes = {column.name: axis for axis, column in enumerate(columns)}
        self._sizes = np.array([column.size for column in columns])
        self._scales = np.array([1 / c.size if c.is_ordered else 0.0 for c in columns])
        self._rules, self._predicates, self._decode = rules, predicates, decode
        self.orders = [rule for rule in rules if isinstance(rule, Order)]
        self._differences = differences

    def __call__(
        self,
        codes: np.ndarray,
        positions: np.ndarray,
        generator: np.random.Generator,
        *,
        held: Collection[str] = (),
        kept: Collection[str] = (),
        donors: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns codes and positions, both of shape (row, attribute), and which rows now obey.

        Columns in ``held`` stay as they are, which may leave rows that do not obey. Otherwise all
        rows obey, or ``ConstraintError`` is raised. Those in ``kept`` stay in rows that obey with
        them. Codes and values are taken from the rows themselves unless ``donors`` that obey are
        given.
        """
        rows = _RepairedRows(codes.copy(), positions.copy(), held, generator)
        given = None if donors is None else _RepairedRows(*donors, held, generator)
        if not kept:
            return rows.codes, rows.positions, self._repair(rows, given)
        fixed = _RepairedRows(codes.copy(), positions.copy(), {*held, *kept}, generator)
        self._fit_cells(fixed, given)
        obeys = self._obeys(fixed)
        bad = np.flatnonzero(~obeys)
        own = rows.at(bad)
        obeys[bad] = self._repair(own, given)
        fixed.put(bad, own)
        return fixed.codes, fixed.positions, obeys

    def _repair(self, rows: _RepairedRows, donors: _RepairedRows | None) -> np.ndarray:
        """Repairs rows in place and returns which of them obey."""
        # One row in this many must obey: rows made from fewer would be copies of a few rows.
        fewest = 1000
        self._fit_cells(rows, donors)
        obeys = self._obeys(rows)
        self._try_again(rows, obeys)
        if obeys.all():
            return obeys
        if donors is None:
            if obeys.sum() * fewest < len(rows):
                rules = [f"{type(rule).__name__} of {list(rule.names)}" for rule in self._rules]
                named = ", ".join([*rules, *(each.name for each in self._predicates)])
                raise ConstraintError(
                    f"{int(obeys.sum())} of {len(rows)} rows of the model meet the constraints "
                    f"{named}. Check that they can be met by the declared values."
                )
            donors = rows.at(obeys)
        # At first a row takes only a donor's codes; below, the positions as well.
        bad = np.flatnonzero(~obeys)
        own = rows.at(bad)
        self._take(own, donors, with_values=False)
        self._fit_cells(own, donors)
        rows.put(bad, own)
        obeys[bad] = self._obeys(own)
        self._try_again(rows, obeys)
        fixed = self._at(rows.held)
        held = np.isin(np.arange(rows.codes.shape[1]), fixed)[None].repeat(len(rows), axis=0)
        bad = np.flatnonzero(~obeys & self.may_obey(rows.codes, rows.positions, held))
        known = np.hstack([rows.codes[bad][:, fixed], rows.positions[bad][:, fixed]])
        _, which = np.unique(known, axis=0, return_inverse=True)
        for index in range(int(which.max(initial=-1)) + 1):
            taking = bad[which.reshape(-1) == index]
            beside = self._beside(rows.at(taking[:1]), donors)
            if len(beside):
                own = rows.at(taking)
                self._take(own, beside, with_values=True)
                rows.put(taking, own)
                obeys[taking] = True
        return obeys

    def _beside(self, row: _RepairedRows, donors: _RepairedRows) -> _RepairedRows:
        """Donors that obey together with the row's values in the held columns."""
        beside = 256  # the number of donor rows that are tried together with held values
        if not row.held:
            return donors
        fixed = self._at(row.held)
        tried = donors.at(row.generator.permutation(len(donors))[:beside])
        tried.codes[:, fixed] = row.codes[:, fixed]
        tried.positions[:, fixed] = row.positions[:, fixed]
        self._fit_cells(tried, donors)
        return tried.at(self._obeys(tried))

    def _take(self, rows: _RepairedRows, donors: _RepairedRows, *, with_values: bool) -> None:
        """Gives rows the codes of their nearest donors in the columns of rules, in place."""
        names = list(self._axes)
        if not self._predicates:  # which may concern any column
            ruled = [name for rule in self._rules for name in rule.names]
            names = list(dict.fromkeys([*ruled, *(each.name for each in self._differences)]))
        free = self._at(name for name in names if name not in rows.held)
        taken = self._nearest(rows, donors.codes, self._at(names))
        rows.codes[:, free] = donors.codes[np.ix_(taken, free)]
        if with_values:
            rows.positions[:, free] = donors.positions[np.ix_(taken, free)]

    def _fit_cells(self, rows: _RepairedRows, donors: _RepairedRows | None) -> None:
        """Moves codes to cells that can hold rows which obey, then values inside them.

        Before that, columns in order are computed from each other and the difference.
        """
        self._put_differences(rows)
        for group in groups(self._rules):
            self._move(rows, group, donors)
        self._settle(rows)

    def _move(
        self, rows: _RepairedRows, group: Sequence[Rule], donors: _RepairedRows | None
    ) -> None:
        """Moves codes to cells that can hold rows which obey rules, if there are any; in place.

        Without ``donors`` that obey the rows themselves are asked.
        """
        codes, names = rows.codes, list(dict.fromkeys(n for rule in group for n in rule.names))
        axes, others = self._at(names), self._at(n for n in self._axes if n not in names)
        fixed = [at for at, name in enumerate(names) if name in rows.held]

        def allowed(own: np.ndarray) -> np.ndarray:
            by_name = dict(zip(names, own.T, strict=True))
            return np.all([rule.allows(by_name) for rule in group], axis=0)

        is_allowed = allowed(codes[:, axes])
        bad = np.flatnonzero(~is_allowed)
        if not bad.size:
            return
        pool = codes[is_allowed] if donors is None else donors.codes
        pool = pool[rows.generator.permutation(len(pool))[:_DONORS]]
        distinct, which = np.unique(codes[np.ix_(bad, axes)], axis=0, return_inverse=True)
        for index, own in enumerate(distinct):
            taking = bad[which.reshape(-1) == index]
            options = pool.copy()
            options[:, axes[fixed]] = own[fixed]
            options = options[allowed(options[:, axes])]
            if not len(options):
                options = self._grid(axes, fixed, own)
                options = options[allowed(options[:, axes])]
            if not len(options):
                continue
            costs = _costs(own[None], options[:, axes], self._scales[axes])[0]
            best = options[costs <= costs.min() + 1e-6]
            near = self._nearest(rows.at(taking), best, others)
            codes[np.ix_(taking, axes)] = best[near][:, axes]

    def _nearest(self, rows: _RepairedRows, pool: np.ndarray, axes: np.ndarray) -> np.ndarray:
        """The index of each row's nearest row among those examined in the pool."""
        chunk = 256  # rows that are compared with all donors at a time
        looked = rows.generator.permutation(len(pool))[:_DONORS]
        near = pool[np.ix_(looked, axes)]
        found = np.empty(len(rows), dtype=np.int64)
        for start in range(0, len(rows), chunk):
            part = slice(start, start + chunk)
            costs = _costs(rows.codes[part][:, axes], near, self._scales[axes])
            # Ties are broken at random, not always by the first.
            costs += rows.generator.random(len(near), dtype=np.float32) * 1e-3
            found[part] = looked[costs.argmin(axis=1)]
        return found

    def _grid(self, axes: np.ndarray, fixed: list[int], own: np.ndarray) -> np.ndarray:
        """Rows with all codes of some axes but the fixed ones; none if there are too many."""
        # The largest number of cells of some columns that are examined if there is no donor.
        grid = 1 << 16
        sizes = self._sizes[axes]
        sizes[fixed] = 1
        if np.prod(sizes, dtype=float) > grid:
            sizes[:] = 0
        every = np.indices(tuple(sizes)).reshape(len(axes), -1).T
        every[:, fixed] = own[fixed]
        rows = np.zeros((len(every), len(self._sizes)), dtype=np.int64)
        rows[:, axes] = every
        return rows

    def _at(self, names: Iterable[str]) -> np.ndarray:
        return np.array([self._axes[name] for name in names], dtype=np.int64)

    def _by_name(self, array: np.ndarray) -> dict[str, np.ndarray]:
        return {name: array[:, axis] for name, axis in self._axes.items()}

    def may_obey(self, codes: np.ndarray, positions: np.ndarray, held: np.ndarray) -> np.ndarray:
        """Marks the rows whose values in held columns alone, of (row, attribute), break no rule."""
        free = [~held[:, self._at(rule.names)].all(axis=1) for rule in self._rules]
        met = self._met(codes, positions)
        return np.all([np.ones(len(codes), dtype=bool), *map(np.logical_or, free, met)], axis=0)

    def _met(self, codes: np.ndarray, positions: np.ndarray) -> list[np.ndarray]:
        """Marks the rows that obey each of the rules; of most the places in cells do not matter."""
        by_name, places = self._by_name(codes), self._by_name(positions)
        return [
            rule.allows(by_name) & (not isinstance(rule, Order) or rule.holds(by_name, places))
            for rule in self._rules
        ]

    def _obeys(self, rows: _RepairedRows) -> np.ndarray:
        obeys = np.ones(len(rows), dtype=bool)
        for met in self._met(rows.codes, rows.positions):
            obeys &= met
        if self._predicates and len(rows):
            decoded = self._decode(rows.codes, rows.positions)
            for predicate in self._predicates:
                obeys &= predicate(decoded)
        return obeys

    def _put_differences(self, rows: _RepairedRows) -> None:
        if self._differences:
            codes, places = self._by_name(rows.codes), self._by_name(rows.positions)
            put_differences(self._differences, codes, places, rows.held)  # these are views

    def _settle(self, rows: _RepairedRows) -> None:
        if self.orders:
            codes, places = self._by_name(rows.codes), self._by_name(rows.positions)
            settle(self.orders, codes, places, rows.generator, rows.held)  # in place, as above

    def _try_again(self, rows: _RepairedRows, obeys: np.ndarray) -> None:
        """Places the values of rows that do not obey anew, and updates ``obeys`` in place."""
        # The number of times that values are placed anew before a row takes another row's values.
        tries = 4
        free = self._at(name for name in self._axes if name not in rows.held)
        for _ in range(tries):
            bad = np.flatnonzero(~obeys)
            if not bad.size:
                return
            tried = rows.at(bad)
            tried.positions[:, free] = rows.generator.random((len(bad), len(free)))
            self._put_differences(tried)
            self._settle(tried)
            obeys[bad] = self._obeys(tried)
            rows.put(bad, tried)


def _costs(rows: np.ndarray, pool: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """The distance of each row to each of a pool: 1 for a wrong code, plus its scaled distance."""
    costs = np.zeros((len(rows), len(pool)), dtype=np.float32)
    for own, other, scale in zip(rows.T, pool.T, scales, strict=True):
        apart = np.abs(own[:, None] - other)
        costs += apart > 0
        if scale:
            costs += np.float32(scale) * apart
    return costs
