"""Rows of which none stands alone: each combination of some columns is that of several. Public.

Noise protects people, whatever the rows look like. But who finds a synthetic row that is like
nobody else's may take it for somebody's. Rows whose combination fewer than k rows have are put
into cells of at least k of them (Mondrian: LeFevre, DeWitt & Ramakrishnan 2006), and all rows of a
cell take the combination of one that lies in its middle. Other rows stay as they are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd

from sdv_privpgd.base.arguments import check_integer, check_names
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.base.words import share
from sdv_privpgd.columns.column import Column
from sdv_privpgd.inference.conditions import cells_of, codes_of
from sdv_privpgd.synthesize.engine import Particles


@dataclass(frozen=True, kw_only=True, repr=False)
class Crowded:
    """Rows without rare combinations, and what that cost. Public.

    Attributes:
        rows: The rows, in their order.
        on: The columns whose combinations were looked at.
        min_rows_like: The fewest rows that have a combination.
        changed: The rows that have another combination than before.
        moved: For each of the columns, and each pair with one of them, the share of the rows that
            is in another cell: how much larger errors of its table may be than before. A frame.

    >>> moved = pd.DataFrame({"column": ["age"], "with": [""], "share": [0.25]})
    >>> rows = pd.DataFrame({"age": [30, 30, 50, 50]})
    >>> Crowded(rows=rows, on=("age",), min_rows_like=2, changed=1, moved=moved)
    At least 2 rows have each combination of age. 1 of 4 rows have another one than before. In
    tables of columns and pairs 25 % of the rows have moved on average, and 25 % at most (age).
    """

    rows: pd.DataFrame
    on: tuple[str, ...]
    min_rows_like: int
    changed: int
    moved: pd.DataFrame

    def __str__(self) -> str:
        worst = self.moved.loc[self.moved["share"].idxmax()]
        named = " x ".join(filter(None, (worst["column"], worst["with"])))
        return (
            f"At least {self.min_rows_like} rows have each combination of {', '.join(self.on)}. "
            f"{self.changed:,} of {len(self.rows):,} rows have another one than before. In tables "
            f"of columns and pairs {share(float(self.moved['share'].mean()))} of the rows have "
            f"moved on average, and {share(float(worst['share']))} at most ({named})."
        )

    __repr__ = __str__


def crowded(
    rows: pd.DataFrame,
    domain: Domain,
    columns: Mapping[str, Column],
    on: Sequence[str],
    min_rows_like: int,
) -> Crowded:
    """The rows without rare combinations, as ``FittedTable.crowded`` describes it."""
    names = tuple(check_names("on", on))
    least = check_integer("min_rows_like", min_rows_like, least=2)
    for name in names:
        if name not in columns:
            raise ValueError(f"on names {name!r}: choose from {list(columns)!r}.")
        cells_of(rows, name)
    if not names or len(rows) < least:
        raise ValueError(
            f"At least {least} rows are to be alike in some columns, got {len(rows)} rows and the "
            f"columns {list(names)!r}."
        )
    ranks = np.column_stack([_ranks(columns[name], cells_of(rows, name)) for name in names])
    is_ordered = np.array([columns[name].is_ordered for name in names])
    takes = np.arange(len(rows))
    _, which, counts = np.unique(ranks, axis=0, return_inverse=True, return_counts=True)
    size = counts[which.reshape(-1)]
    rare = np.flatnonzero(size < least)
    if 0 < len(rare) < least:  # too few for a cell of their own: they join the nearest others
        common = np.flatnonzero(size >= least)
        for row in rare:
            apart = _apart(ranks[common], ranks[row], is_ordered)
            takes[row] = common[int(apart.argmin())]
    else:
        for cell in _cells(ranks, rare, is_ordered, least):
            takes[cell] = cell[_middle(ranks[cell], is_ordered)]
    made = rows.copy()
    for name in names:
        made[name] = pd.Series(rows[name]).take(takes).set_axis(rows.index)
    return Crowded(
        rows=made,
        on=names,
        min_rows_like=least,
        changed=int((ranks[takes] != ranks).any(axis=1).sum()),
        moved=_moved(rows, made, domain, columns, names),
    )


def _ranks(column: Column, cells: pd.Series) -> np.ndarray:
    """The place of each value among all values, in [0, 1]; 2 for missing ones."""
    found = _sortable(cells) if column.is_ordered else cells.astype(str)
    codes, values = pd.factorize(found, sort=True)
    ranks = codes / max(len(values) - 1, 1)
    return np.where(cells.isna().to_numpy(), 2.0, ranks)


def _sortable(cells: pd.Series) -> pd.Series:
    """The cells so that they can be put in order: as they are, or else as text."""
    if isinstance(cells.dtype, pd.CategoricalDtype):
        return cells.cat.codes
    try:
        cells.dropna().sort_values()
    except TypeError:
        return cells.astype(str)
    return cells


def _cells(
    ranks: np.ndarray, rare: np.ndarray, is_ordered: np.ndarray, least: int
) -> list[np.ndarray]:
    """The rare rows in cells of at least so many, cut where they differ most."""
    found, left = [], [rare] if len(rare) else []
    while left:
        cell = left.pop()
        halves = _halves(ranks[cell], is_ordered, least)
        if halves is None:
            found.append(cell)
        else:
            left += [cell[half] for half in halves]
    return found


def _halves(
    ranks: np.ndarray, is_ordered: np.ndarray, least: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """Two parts with at least so many rows, which have no value of a column in common."""
    spreads = np.where(is_ordered, np.ptp(ranks, axis=0), 1.0 * (np.ptp(ranks, axis=0) > 0))
    for axis in np.argsort(-spreads, kind="stable"):
        order = np.argsort(ranks[:, axis], kind="stable")
        values = ranks[order, axis]
        places = np.flatnonzero(np.diff(values)) + 1
        places = places[(places >= least) & (places <= len(values) - least)]
        if len(places):
            place = places[np.abs(places - len(values) / 2).argmin()]
            return order[:place], order[place:]
    return None


def _middle(ranks: np.ndarray, is_ordered: np.ndarray) -> int:
    """The row that is nearest to the medians, and to the most frequent values where none are."""
    center = np.median(ranks, axis=0)
    for axis in np.flatnonzero(~is_ordered):
        values, counts = np.unique(ranks[:, axis], return_counts=True)
        center[axis] = values[counts.argmax()]
    return int(_apart(ranks, center, is_ordered).argmin())


def _apart(ranks: np.ndarray, center: np.ndarray, is_ordered: np.ndarray) -> np.ndarray:
    """How far rows are from a place: by ranks, and by 1 for another value without an order."""
    return np.where(is_ordered, np.abs(ranks - center), 1.0 * (ranks != center)).sum(axis=1)


def _moved(
    before: pd.DataFrame,
    after: pd.DataFrame,
    domain: Domain,
    columns: Mapping[str, Column],
    on: Sequence[str],
) -> pd.DataFrame:
    own = {name: column for name, column in columns.items() if name in before}
    one, two = (
        Particles(domain=domain, codes=codes_of(domain, own, rows)) for rows in (before, after)
    )
    pairs = {frozenset(pair): pair for pair in product(on, own) if pair[0] != pair[1]}
    cliques = [*((name,) for name in on), *pairs.values()]
    found = [np.abs(one.marginal(each) - two.marginal(each)).sum() / 2 for each in cliques]
    return pd.DataFrame(
        {
            "column": [each[0] for each in cliques],
            "with": ["" if len(each) == 1 else each[1] for each in cliques],
            "share": found,
        }
    )
