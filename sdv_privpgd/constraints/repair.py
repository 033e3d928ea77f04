"""Rows of a model made to obey rules: by moving codes, then values in their cells. Public.

Nothing is drawn until it fits. A row whose cells cannot hold a row that obeys takes the codes of
the columns in question from a row whose cells can, and keeps the others: from the one that has them
nearest to its own, and of several from the one that is most like it elsewhere (nearest-neighbor hot
deck, Andridge & Little 2010). Then values are put in order inside their cells. What still breaks a
rule, which only one that is a black box is likely to do, gets new places in its cells a few times,
and last of all the values of a row that obeys.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pandas as pd

from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.differences import Difference
from sdv_privpgd.columns.ordered import put_differences
from sdv_privpgd.constraints.orders import Order, settle
from sdv_privpgd.constraints.rules import Rule, groups

_TRIES = 4
"""How often values are placed anew before a row takes another's."""

_DONORS = 2048
"""Rows to take from that are looked at."""

_BESIDE = 256
"""Rows to take from that are tried beside values that are held."""

_CHUNK = 256
"""Rows that are compared with all donors at a time."""

_GRID = 1 << 16
"""Cells of some columns that are looked at where no row can be taken from."""

_FEWEST = 1000
"""One row of so many must obey: what is made of fewer would be copies of a few rows."""


class ConstraintError(ValueError):
    """Raised where next to no row that a model can give obeys a rule."""


class Predicate(Protocol):
    """A rule that is a black box."""

    @property
    def name(self) -> str:
        """What it is called in messages."""
        ...

    def __call__(self, columns: Mapping[str, pd.Series]) -> np.ndarray:
        """Which rows of decoded columns obey, bool."""
        ...


@dataclass(frozen=True)
class _Rows:
    """Codes and positions in their cells, both of shape (row, attribute)."""

    codes: np.ndarray
    positions: np.ndarray

    def __len__(self) -> int:
        return len(self.codes)

    def at(self, which: np.ndarray) -> "_Rows":
        """Those of the rows, copied."""
        return _Rows(self.codes[which], self.positions[which])

    def put(self, which: np.ndarray, rows: "_Rows") -> None:
        """Writes rows over those."""
        self.codes[which], self.positions[which] = rows.codes, rows.positions


class Repair:
    """Makes rows obey.

    Args:
        columns: The modelled columns and differences, in the order of the rows' attributes.
        rules: What is known of cells.
        predicates: What is known of values only.
        decode: The columns of codes and positions, in the user's values.
        differences: Which of the columns are others and a difference.
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
        self._orders = [rule for rule in rules if isinstance(rule, Order)]
        self._differences = differences

    def __call__(
        self,
        codes: np.ndarray,
        positions: np.ndarray,
        generator: np.random.Generator,
        *,
        held: Collection[str] = (),
        donors: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Codes and positions, both of shape (row, attribute), and which rows obey now.

        Columns in ``held`` stay as they are, which may leave rows that do not obey. Others always
        do, or ``ConstraintError`` is raised. Codes and values are taken from the rows themselves
        unless ``donors`` that obey are given.
        """
        rows = _Rows(codes.copy(), positions.copy())
        obeys = self._repair(rows, generator, held, None if donors is None else _Rows(*donors))
        return rows.codes, rows.positions, obeys

    def _repair(
        self,
        rows: "_Rows",
        generator: np.random.Generator,
        held: Collection[str],
        donors: "_Rows | None",
    ) -> np.ndarray:
        """Which rows obey, once they are repaired in place."""
        self._fit_cells(rows, held, donors, generator)
        obeys = self._obeys(rows)
        self._try_again(rows, obeys, held, generator)
        if obeys.all():
            return obeys
        if donors is None:
            if obeys.sum() * _FEWEST < len(rows):
                raise ConstraintError(
                    f"{int(obeys.sum())} of {len(rows)} rows of the model meet the constraints "
                    f"{self._names()}. Check that they can be met by the declared values."
                )
            donors = rows.at(obeys)
        # Another row's cells first, which leaves values of one's own; then its values, too.
        bad = np.flatnonzero(~obeys)
        own = rows.at(bad)
        self._take(own, donors, held, generator, with_values=False)
        self._fit_cells(own, held, donors, generator)
        rows.put(bad, own)
        obeys[bad] = self._obeys(own)
        self._try_again(rows, obeys, held, generator)
        fixed = self._at(held)
        bad = np.flatnonzero(~obeys)
        known = np.hstack([rows.codes[bad][:, fixed], rows.positions[bad][:, fixed]])
        _, which = np.unique(known, axis=0, return_inverse=True)
        for index in range(int(which.max(initial=-1)) + 1):
            taking = bad[which.reshape(-1) == index]
            beside = self._beside(rows.at(taking[:1]), donors, held, generator)
            if len(beside):
                own = rows.at(taking)
                self._take(own, beside, held, generator, with_values=True)
                rows.put(taking, own)
                obeys[taking] = True
        return obeys

    def _beside(
        self, row: _Rows, donors: _Rows, held: Collection[str], generator: np.random.Generator
    ) -> _Rows:
        """Donors that obey with the row's values in the columns that are held."""
        if not held:
            return donors
        fixed = self._at(held)
        tried = donors.at(generator.permutation(len(donors))[:_BESIDE])
        tried.codes[:, fixed], tried.positions[:, fixed] = (
            row.codes[:, fixed],
            row.positions[:, fixed],
        )
        self._fit_cells(tried, held, donors, generator)
        return tried.at(self._obeys(tried))

    def _take(
        self,
        rows: _Rows,
        donors: _Rows,
        held: Collection[str],
        generator: np.random.Generator,
        *,
        with_values: bool,
    ) -> None:
        """Gives rows what the donors nearest to them have in the columns of rules, in place."""
        names = self._constrained()
        free = self._at(name for name in names if name not in held)
        taken = self._nearest(rows.codes, donors.codes, self._at(names), generator)
        rows.codes[:, free] = donors.codes[np.ix_(taken, free)]
        if with_values:
            rows.positions[:, free] = donors.positions[np.ix_(taken, free)]

    def _fit_cells(
        self,
        rows: _Rows,
        held: Collection[str],
        donors: _Rows | None,
        generator: np.random.Generator,
    ) -> None:
        """Moves codes to cells that can hold rows which obey, and values inside them.

        Where columns are in order, one is the other and the difference before.
        """
        self._put_differences(rows, held)
        for group in groups(self._rules):
            self._move(rows, group, held, donors, generator)
        self._settle(rows, held, generator)

    def _names(self) -> str:
        named = [f"{type(rule).__name__} of {list(rule.names)}" for rule in self._rules]
        return ", ".join([*named, *(predicate.name for predicate in self._predicates)])

    def _constrained(self) -> list[str]:
        """The columns that a rule may be about."""
        if self._predicates:
            return list(self._axes)
        names = [name for rule in self._rules for name in rule.names]
        return list(dict.fromkeys([*names, *(each.name for each in self._differences)]))

    def _at(self, names: Iterable[str]) -> np.ndarray:
        return np.array([self._axes[name] for name in names], dtype=np.int64)

    def _by_name(self, array: np.ndarray) -> dict[str, np.ndarray]:
        return {name: array[:, axis] for name, axis in self._axes.items()}

    def _obeys(self, rows: _Rows) -> np.ndarray:
        obeys = np.ones(len(rows), dtype=bool)
        codes, places = self._by_name(rows.codes), self._by_name(rows.positions)
        for rule in self._rules:
            obeys &= rule.holds(codes, places)
        if self._predicates and len(rows):
            decoded = self._decode(rows.codes, rows.positions)
            for predicate in self._predicates:
                obeys &= predicate(decoded)
        return obeys

    def _put_differences(self, rows: _Rows, held: Collection[str]) -> None:
        if self._differences:
            codes, places = self._by_name(rows.codes), self._by_name(rows.positions)
            put_differences(self._differences, codes, places, held)  # in place: these are views

    def _settle(self, rows: _Rows, held: Collection[str], generator: np.random.Generator) -> None:
        if self._orders:
            codes, places = self._by_name(rows.codes), self._by_name(rows.positions)
            settle(self._orders, codes, places, generator, held)  # in place: these are views

    def _try_again(
        self,
        rows: _Rows,
        obeys: np.ndarray,
        held: Collection[str],
        generator: np.random.Generator,
    ) -> None:
        """New places for the values of rows that do not obey; ``obeys`` learns which do then."""
        free = self._at(name for name in self._axes if name not in held)
        for _ in range(_TRIES):
            bad = np.flatnonzero(~obeys)
            if not bad.size:
                return
            tried = rows.at(bad)
            tried.positions[:, free] = generator.random((len(bad), len(free)))
            self._put_differences(tried, held)
            self._settle(tried, held, generator)
            obeys[bad] = self._obeys(tried)
            rows.put(bad, tried)

    def _move(
        self,
        rows: _Rows,
        group: Sequence[Rule],
        held: Collection[str],
        donors: _Rows | None,
        generator: np.random.Generator,
    ) -> None:
        """Codes of cells that can hold rows which obey the group, where there are any to take."""
        names = list(dict.fromkeys(name for rule in group for name in rule.names))
        axes = self._at(names)
        others = self._at(name for name in self._axes if name not in names)
        fixed = [at for at, name in enumerate(names) if name in held]

        def allowed(own: np.ndarray) -> np.ndarray:
            codes = dict(zip(names, own.T, strict=True))
            return np.all([rule.allows(codes) for rule in group], axis=0)

        is_allowed = allowed(rows.codes[:, axes])
        bad = np.flatnonzero(~is_allowed)
        if not bad.size:
            return
        pool = rows.codes[is_allowed] if donors is None else donors.codes
        pool = pool[generator.permutation(len(pool))[:_DONORS]]
        distinct, which = np.unique(rows.codes[np.ix_(bad, axes)], axis=0, return_inverse=True)
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
            near = self._nearest(rows.codes[taking], best, others, generator)
            rows.codes[np.ix_(taking, axes)] = best[near][:, axes]

    def _grid(self, axes: np.ndarray, fixed: list[int], own: np.ndarray) -> np.ndarray:
        """Rows with all codes of some axes but the fixed ones; none if they are too many."""
        sizes = self._sizes[axes]
        sizes[fixed] = 1
        if np.prod(sizes, dtype=float) > _GRID:
            sizes[:] = 0
        every = np.indices(tuple(sizes)).reshape(len(axes), -1).T
        every[:, fixed] = own[fixed]
        rows = np.zeros((len(every), len(self._axes)), dtype=np.int64)
        rows[:, axes] = every
        return rows

    def _nearest(
        self,
        wanted: np.ndarray,
        pool: np.ndarray,
        axes: np.ndarray,
        generator: np.random.Generator,
    ) -> np.ndarray:
        """For each row the index of one in the pool that is as near as any that is looked at."""
        looked = generator.permutation(len(pool))[:_DONORS]
        near = pool[np.ix_(looked, axes)]
        found = np.empty(len(wanted), dtype=np.int64)
        for start in range(0, len(wanted), _CHUNK):
            part = slice(start, start + _CHUNK)
            costs = _costs(wanted[part][:, axes], near, self._scales[axes])
            # A tie is broken by chance, not always by the first.
            costs += generator.random(len(near), dtype=np.float32) * 1e-3
            found[part] = looked[costs.argmin(axis=1)]
        return found


def _costs(rows: np.ndarray, pool: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """How far each row is from each of a pool: a wrong code costs 1, plus its scaled distance."""
    costs = np.zeros((len(rows), len(pool)), dtype=np.float32)
    for own, other, scale in zip(rows.T, pool.T, scales, strict=True):
        apart = np.abs(own[:, None] - other)
        costs += apart > 0
        if scale:
            costs += np.float32(scale) * apart
    return costs
