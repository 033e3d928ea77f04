"""What noisy pairs say beyond their marginals: residuals, and the residuals' sums over groups.

They are in coordinates without the zero sums that all residuals have.

The model of ``denoising`` expects little of rare codes, and learns from all pairs of an attribute
which of its codes matter. So a category of few rows that one single column depends on can lose all
of its relation, even where it is seven standard deviations of noise: all other pairs say that
nothing is there. So a few directions in which tables often depend are looked at one by one: single
codes, and whether counts rise with the code, in each attribute. What is so large there that noise
makes such a contrast in one fit of a hundred, in any pair, is signal.

Everything here is post-processing of noisy answers: public and free.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.linalg import helmert  # pyright: ignore[reportMissingTypeStubs]
from scipy.special import ndtri  # pyright: ignore[reportMissingTypeStubs]

from sdv_privpgd.base.domain import Clique
from sdv_privpgd.estimate.consistency import ConsistentTables
from sdv_privpgd.estimate.noisy_tables import margin_estimates


@dataclass(frozen=True)
class Residual:
    """The table of a pair, or of more attributes, less the expected one, on the supported codes."""

    clique: Clique  # the attributes
    values: np.ndarray  # the residual in the ``contrasts`` of each attribute
    # That of the noise of each value; infinite for a pair that was asked for over groups alone.
    variance: float


@dataclass(frozen=True)
class GroupSums:
    """Noisy values of ``rows @ R @ columns.T``, with R as ``Residual.values`` without its noise.

    They are the residual's sums over groups, in coordinates without their zero sums.
    """

    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    variance: float

    def joined(self, values: np.ndarray, noise: float) -> np.ndarray:
        """The best estimate of R from its values, whose noise has this variance, and the sums."""
        sides = [np.linalg.eigh(side @ side.T) for side in (self.rows, self.columns)]
        (of_rows, rows), (of_columns, columns) = sides
        apart = rows.T @ (self.values - self.rows @ values @ self.columns.T) @ columns
        spread = noise * np.outer(of_rows, of_columns)
        # Groups without a supported code say nothing.
        heard = np.zeros_like(apart)
        np.divide(noise * apart, spread + self.variance, out=heard, where=spread > noise * 1e-9)
        correction = rows @ heard @ columns.T
        return values + self.rows.T @ correction @ self.columns


def contrast_bases(tables: ConsistentTables) -> dict[str, np.ndarray]:
    """The ``contrasts`` of each attribute's supported codes."""
    return {
        name: contrasts(int(np.count_nonzero(counts))) for name, counts in tables.one_way.items()
    }


@cache
def contrasts(size: int) -> np.ndarray:
    """An orthonormal basis of the vectors that sum to zero, shape (size, size - 1) (Helmert)."""
    found = helmert(size).T.copy()
    found.setflags(write=False)
    return found


def along(values: np.ndarray, matrices: Sequence[np.ndarray]) -> np.ndarray:
    """The values with each axis multiplied by its matrix."""
    for matrix in matrices:  # the first axis, which then is the last: all take their turn
        first, *rest = values.shape
        values = (matrix @ values.reshape(first, -1)).T.reshape(*rest, len(matrix))
    return values


def residuals_of(tables: ConsistentTables, bases: Mapping[str, np.ndarray]) -> list[Residual]:
    """The residuals of all pairs that were measured with noise and can have one."""
    found = []
    for clique, counts in tables.tables.items():
        # Where an attribute has one value left, the marginals say it all.
        if len(clique) == 2 and tables.variances[clique] > 0 and _vary(bases, clique):
            rows, columns = (bases[name] for name in clique)
            apart = (counts - expected(tables, clique))[np.ix_(*tables.support(clique))]
            found.append(Residual(clique, rows.T @ apart @ columns, tables.variances[clique]))
    return found


def unseen_residuals(
    tables: ConsistentTables,
    bases: Mapping[str, np.ndarray],
    sums: Mapping[Clique, Sequence[GroupSums]],
) -> list[Residual]:
    """The residuals of pairs that were asked for over groups alone: only their sums are known."""
    asked = dict.fromkeys(clique for measured in tables.grouped.values() for clique in measured)
    return [
        Residual(clique, np.zeros([bases[name].shape[1] for name in clique]), math.inf)
        for clique in asked
        if len(clique) == 2 and clique in sums and clique not in tables.tables
    ]


def group_sums_of(
    tables: ConsistentTables, bases: Mapping[str, np.ndarray]
) -> dict[Clique, list[GroupSums]]:
    """The sums that tables over groups give for each pair's residual: one set a grouping."""
    found: dict[Clique, list[GroupSums]] = {}
    for grouping, measured in tables.grouped.items():
        sides = {}
        for name, size in grouping.domain.size_of.items():
            if size > 1 and _vary(bases, (name,)):
                member, (codes,) = contrasts(size).T[:, grouping[name]], tables.support((name,))
                sides[name] = member, member[:, codes] @ bases[name]
        for clique, sums in margin_estimates(measured, 2).items():
            if all(name in sides for name in clique):
                (rows, of_rows), (columns, of_columns) = (sides[name] for name in clique)
                seen = (contrasts(size) for size in sums.counts.shape)
                values = along(sums.counts, [own.T for own in seen])
                values -= rows @ expected(tables, clique) @ columns.T
                own = GroupSums(of_rows, of_columns, values, sums.variance)
                found.setdefault(clique, []).append(own)
    return found


def independent(tables: ConsistentTables, clique: Clique) -> np.ndarray:
    """The counts of a pair if its attributes were independent."""
    first, second = (tables.one_way[attribute] for attribute in clique)
    return np.outer(first, second) / tables.total


def expected(tables: ConsistentTables, clique: Clique) -> np.ndarray:
    """The counts of a pair before anything is measured: those of a prior, or independent ones."""
    known = tables.expected.get(clique)
    return independent(tables, clique) if known is None else known.copy()


def _vary(bases: Mapping[str, np.ndarray], clique: Clique) -> bool:
    """Whether each attribute of a pair has several supported codes."""
    return all(name in bases and bases[name].size for name in clique)


def directions(basis: np.ndarray) -> np.ndarray:
    """The directions of an attribute that are looked at, as columns of unit length.

    Each supported code beside the others; then a trend over all codes, and one over all but the
    last, which often stands for missing. ``basis`` are the attribute's ``contrasts``.
    """
    size = len(basis)
    trends = []
    if size > 2:
        trends.append(np.arange(size, dtype=np.float64))
    if size > 3:
        trends.append(np.append(np.arange(size - 1) - (size - 2) / 2, 0.0))
    found = basis.T @ np.column_stack([np.eye(size), *trends])
    return found / np.linalg.norm(found, axis=0)


class ClearContrasts:
    """What clearly stands out of the noise in residuals of pairs."""

    def __init__(
        self,
        bases: Mapping[str, np.ndarray],
        residuals: Sequence[Residual],
        false_alarms: float = 0.01,
    ) -> None:
        """Takes how many contrasts of noise alone may stand out, in all of these residuals."""
        self._directions = {
            name: directions(bases[name])
            for name in dict.fromkeys(name for each in residuals for name in each.clique)
        }
        seen = [each for each in residuals if math.isfinite(each.variance)]
        sides = {name: own.shape[1] for name, own in self._directions.items()}
        number = sum(math.prod(sides[name] for name in each.clique) for each in seen)
        self._least = float(-ndtri(false_alarms / 2 / max(number, 1)))

    def has_any(self, residual: Residual) -> bool:
        """Whether a contrast of a residual stands out."""
        return bool(np.abs(self._scores(residual, residual.values)).max() > self._least)

    def within(self, residual: Residual, known: np.ndarray) -> tuple[np.ndarray, list[float]]:
        """What stands out of a residual beyond what is known of it, and the signal's variances.

        The largest contrast is taken first, and what it explains is taken out for the next ones.
        Each is shrunk as if its square were the expected one.
        """
        most = 10  # the largest number of contrasts of one pair that are looked for
        found, variances = np.zeros_like(residual.values), []
        if not math.isfinite(residual.variance):
            return found, variances
        for _ in range(most):
            scores = self._scores(residual, residual.values - known - found)
            place = np.unravel_index(np.abs(scores).argmax(), scores.shape)
            score = float(scores[place])
            if abs(score) <= self._least:
                break
            sides = zip(residual.clique, place, strict=True)
            own = [self._directions[name][:, at] for name, at in sides]
            size = (score - 1 / score) * math.sqrt(residual.variance)
            found += size * math.prod(np.ix_(*own))
            variances.append((score**2 - 1) * residual.variance)
        return found, variances

    def _scores(self, residual: Residual, values: np.ndarray) -> np.ndarray:
        """Each contrast of values in standard deviations of the residual's noise."""
        turned = along(values, [self._directions[name].T for name in residual.clique])
        return turned / math.sqrt(residual.variance)
