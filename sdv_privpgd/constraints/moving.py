"""Codes that are moved to cells which can hold rows that obey, by the nearest rows. Public.

Codes are of shape (row, attribute). ``scales`` says for each attribute how much a step between
codes counts, beside the 1 that another code counts; it is 0 where codes have no order.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from sdv_privpgd.constraints.rules import Rule

_DONORS = 2048
"""The number of donor rows that are examined."""

_CHUNK = 256
"""Rows that are compared with all donors at a time."""

_GRID = 1 << 16
"""The largest number of cells of some columns that are examined if there is no donor."""


def move(
    codes: np.ndarray,
    group: Sequence[Rule],
    donors: np.ndarray | None,
    axes_of: Mapping[str, int],
    held: Collection[str],
    *,
    sizes: np.ndarray,
    scales: np.ndarray,
    generator: np.random.Generator,
) -> None:
    """Moves codes to cells that can hold rows which obey the group, if there are any; in place.

    Args:
        codes: Of the rows.
        group: Rules that share columns.
        donors: Codes of rows that obey; without any the rows themselves are asked.
        axes_of: The axis of each attribute.
        held: Attributes that stay as they are.
        sizes: How many codes each attribute has.
        scales: What a step between codes counts.
        generator: Draws the donors that are examined, and breaks ties.
    """
    names = list(dict.fromkeys(name for rule in group for name in rule.names))
    axes = np.array([axes_of[name] for name in names], dtype=np.int64)
    others = np.array([axes_of[name] for name in axes_of if name not in names], dtype=np.int64)
    fixed = [at for at, name in enumerate(names) if name in held]

    def allowed(own: np.ndarray) -> np.ndarray:
        by_name = dict(zip(names, own.T, strict=True))
        return np.all([rule.allows(by_name) for rule in group], axis=0)

    is_allowed = allowed(codes[:, axes])
    bad = np.flatnonzero(~is_allowed)
    if not bad.size:
        return
    pool = codes[is_allowed] if donors is None else donors
    pool = pool[generator.permutation(len(pool))[:_DONORS]]
    distinct, which = np.unique(codes[np.ix_(bad, axes)], axis=0, return_inverse=True)
    for index, own in enumerate(distinct):
        taking = bad[which.reshape(-1) == index]
        options = pool.copy()
        options[:, axes[fixed]] = own[fixed]
        options = options[allowed(options[:, axes])]
        if not len(options):
            options = _grid(sizes, axes, fixed, own)
            options = options[allowed(options[:, axes])]
        if not len(options):
            continue
        costs = _costs(own[None], options[:, axes], scales[axes])[0]
        best = options[costs <= costs.min() + 1e-6]
        near = nearest(codes[taking], best, others, scales, generator)
        codes[np.ix_(taking, axes)] = best[near][:, axes]


def nearest(
    wanted: np.ndarray,
    pool: np.ndarray,
    axes: np.ndarray,
    scales: np.ndarray,
    generator: np.random.Generator,
) -> np.ndarray:
    """The index of each row's nearest row among those examined in the pool."""
    looked = generator.permutation(len(pool))[:_DONORS]
    near = pool[np.ix_(looked, axes)]
    found = np.empty(len(wanted), dtype=np.int64)
    for start in range(0, len(wanted), _CHUNK):
        part = slice(start, start + _CHUNK)
        costs = _costs(wanted[part][:, axes], near, scales[axes])
        # Ties are broken at random, not always by the first.
        costs += generator.random(len(near), dtype=np.float32) * 1e-3
        found[part] = looked[costs.argmin(axis=1)]
    return found


def _grid(sizes: np.ndarray, axes: np.ndarray, fixed: list[int], own: np.ndarray) -> np.ndarray:
    """Rows with all codes of some axes but the fixed ones; none if there are too many."""
    own_sizes = sizes[axes]
    own_sizes[fixed] = 1
    if np.prod(own_sizes, dtype=float) > _GRID:
        own_sizes[:] = 0
    every = np.indices(tuple(own_sizes)).reshape(len(axes), -1).T
    every[:, fixed] = own[fixed]
    rows = np.zeros((len(every), len(sizes)), dtype=np.int64)
    rows[:, axes] = every
    return rows


def _costs(rows: np.ndarray, pool: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """The distance of each row to each of a pool: 1 for a wrong code, plus its scaled distance."""
    costs = np.zeros((len(rows), len(pool)), dtype=np.float32)
    for own, other, scale in zip(rows.T, pool.T, scales, strict=True):
        apart = np.abs(own[:, None] - other)
        costs += apart > 0
        if scale:
            costs += np.float32(scale) * apart
    return costs
