"""Pair tables denoised together: what one table tells of an attribute's codes helps all others.

Consistent tables have almost noiseless 1-way marginals; the remaining noise is in the residuals
R_ab = table - product of its marginals. Their signal has structure, and the noise has none. The
model: R_ab is matrix normal with covariance g_ab K_a of its rows and K_b of its columns, plus white
noise of the known variance. K_a says which codes of attribute a are common and which behave alike.
It is the same in all d - 1 tables with the attribute, so they estimate it together, by the EM
algorithm (Dempster, Laird & Rubin 1977). Where the tables say little, K_a stays near its prior: the
covariance of a table that is the product of its marginals times a factor that varies from cell to
cell, much of it smoothly. The denoised table is the posterior mean: the smaller a direction's
signal is relative to the noise, the more it is shrunk.

Where tables over groups of codes were measured as well, the posterior uses their sums, too: a
group's sum has much less noise in a table over few groups than as the sum of a pair's many cells.

Tables of other degrees stay as they are. Everything here is post-processing of noisy answers:
public and free.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh  # pyright: ignore[reportMissingTypeStubs]

from sdv_privpgd.domain import Clique
from sdv_privpgd.estimate.consistency import ConsistentTables
from sdv_privpgd.estimate.noisy_tables import margin_estimates
from sdv_privpgd.progress import Progress, silent

_STEPS = 10
"""Steps of the EM algorithm. Ten to thirty give errors within 3 % of each other on Adult and
Bank."""

_PRIOR_WEIGHT = 10.0
"""The prior counts as much as this many columns of a table; 5 to 20 are as good within 3 %."""

_SMOOTH, _LENGTH = 0.7, 5.0
"""Share of the prior factor's variance that varies smoothly with the code, and the number of
codes over which its correlation falls to 1 / e. On Adult, Bank and simulated rows shares of 0.5
to 0.7 and lengths of 3 to 8 are as good within 3 %."""

_FAINTEST, _CLEAREST = -10.0, 30.0
"""The smallest and the largest scale that is tried, in units of the noise, as powers of two."""

_SMALLEST = 1e-12
"""Variances below this share of the largest are raised to it, so that nothing is divided by
zero."""


def denoised(tables: ConsistentTables, progress: Progress = silent) -> ConsistentTables:
    """The same tables with less noise in the pairs, and with the same marginals.

    >>> noisy = np.array([[33.0, 17.0], [7.0, 43.0]])
    >>> tables = ConsistentTables(
    ...     total=100.0, one_way={"a": noisy.sum(axis=1), "b": noisy.sum(axis=0)},
    ...     tables={("a", "b"): noisy}, variances={("a", "b"): 25.0}, grouped={},
    ... )
    >>> found = denoised(tables).tables["a", "b"]
    >>> bool(np.allclose(found.sum(axis=1), [50, 50])), bool(25 < found[0, 0] < 33)
    (True, True)
    """
    bases, residuals = _residuals(tables)
    sums = _group_sums(tables, bases)
    signals = _signals(tables, bases, residuals, sums, progress, "denoise")
    found = dict(tables.tables)
    for residual, signal in zip(residuals, signals, strict=True):
        clique, mean = residual.clique, signal.mean(residual, sums.get(residual.clique, ()))
        rows, columns = (bases[name] for name in clique)
        found[clique] = _independent(tables, clique)
        found[clique][np.ix_(*tables.support(clique))] += rows @ mean @ columns.T
    return replace(tables, tables=found)


def signal_variances(
    tables: ConsistentTables, progress: Progress = silent
) -> dict[Clique, np.ndarray]:
    """The variances of the signal of each pair with a residual, in squared counts.

    They are variances along orthogonal directions: measured with noise of variance v, the signal's
    expected square error is the sum of s v / (s + v) over its variances s.

    >>> counts = np.array([[30.0, 20.0], [10.0, 40.0]])
    >>> tables = ConsistentTables(
    ...     total=100.0, one_way={"a": counts.sum(axis=1), "b": counts.sum(axis=0)},
    ...     tables={("a", "b"): counts}, variances={("a", "b"): 4.0}, grouped={},
    ... )
    >>> signal_variances(tables)["a", "b"].shape
    (1, 1)
    """
    bases, residuals = _residuals(tables)
    sums = _group_sums(tables, bases)
    signals = _signals(tables, bases, residuals, sums, progress, "compare")
    return {
        residual.clique: signal.variances
        for residual, signal in zip(residuals, signals, strict=True)
    }


def _residuals(tables: ConsistentTables) -> tuple[dict[str, np.ndarray], "list[_Residual]"]:
    """The bases of all attributes' contrasts, and the noisy pairs' residuals in these bases."""
    sizes = {name: int(np.count_nonzero(counts)) for name, counts in tables.one_way.items()}
    bases = {name: _contrasts(size) for name, size in sizes.items()}
    residuals = []
    for clique, counts in tables.tables.items():
        # Where an attribute has one value left, the marginals say it all.
        if len(clique) == 2 and tables.variances[clique] > 0 and min(sizes[n] for n in clique) > 1:
            rows, columns = (bases[name] for name in clique)
            apart = (counts - _independent(tables, clique))[np.ix_(*tables.support(clique))]
            residuals.append(_Residual(clique, rows.T @ apart @ columns, tables.variances[clique]))
    return bases, residuals


@dataclass(frozen=True)
class _Residual:
    """R_ab on the supported codes, without its zero sums, and the variance of its noise."""

    clique: Clique
    values: np.ndarray
    variance: float


@dataclass(frozen=True)
class _GroupSums:
    """Noisy values of ``rows @ R_ab @ columns.T``, with R_ab in the coordinates of ``_Residual``.

    They are the residual's sums over groups, in coordinates without their zero sums.
    """

    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    variance: float


@dataclass(frozen=True)
class _Covariance:
    """K = directions diag(variances) directions^T, of trace 1."""

    variances: np.ndarray
    directions: np.ndarray

    @classmethod
    def of(cls, matrix: np.ndarray) -> "_Covariance":
        # numpy's solver wakes all cores for matrices of 26 rows, and takes ten times as long.
        variances, directions = eigh(matrix / np.trace(matrix), check_finite=False)
        return cls(np.maximum(variances, _SMALLEST * variances[-1]), directions)


@dataclass(frozen=True)
class _Signal:
    """The prior of a residual: normal, of mean zero, with a scale and two covariances."""

    scale: float
    row: _Covariance
    column: _Covariance

    @property
    def relative(self) -> np.ndarray:
        """The variances along the directions of rows and columns, without the scale."""
        return np.outer(self.row.variances, self.column.variances)

    @property
    def variances(self) -> np.ndarray:
        """The variances along the directions of rows and columns."""
        return self.scale * self.relative

    def posterior(self, residual: _Residual) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance along the directions, given the residual."""
        kept = self.variances / (self.variances + residual.variance)
        seen = self.row.directions.T @ residual.values @ self.column.directions
        return kept * seen, kept * residual.variance

    def mean(self, residual: _Residual, sums: "Sequence[_GroupSums]") -> np.ndarray:
        """The expected residual given it and sums of it, in the residual's own coordinates.

        The sums are taken one after the other, as if what one set leaves uncertain had no
        correlations; for a single set that is exact.
        """
        mean, variance = self.posterior(residual)
        for seen in sums:
            rows, columns = seen.rows @ self.row.directions, seen.columns @ self.column.directions
            size = seen.values.size
            # This is the covariance of rows @ R @ columns.T, as a matrix over its cells.
            spread = np.einsum(
                "ia,ka,ab,jb,lb->ijkl", rows, rows, variance, columns, columns, optimize=True
            ).reshape(size, size)
            surprise = (seen.values - rows @ mean @ columns.T).ravel()
            # Groups without a supported code make it singular if their sums have no noise.
            told = np.linalg.pinv(spread + seen.variance * np.eye(size), hermitian=True) @ surprise
            mean = mean + variance * (rows.T @ told.reshape(seen.values.shape) @ columns)
        return self.row.directions @ mean @ self.column.directions.T


def _group_sums(
    tables: ConsistentTables, bases: Mapping[str, np.ndarray]
) -> dict[Clique, list[_GroupSums]]:
    """The sums that tables over groups give for each pair's residual: one set a grouping."""
    found: dict[Clique, list[_GroupSums]] = {}
    for grouping, measured in tables.grouped.items():
        for clique, sums in margin_estimates(measured, 2).items():
            if not all(name in bases for name in clique) or min(sums.counts.shape) < 2:
                continue
            apart = sums.counts - grouping.sums(_independent(tables, clique), clique)
            contrasts = [_contrasts(size).T for size in sums.counts.shape]
            maps = []
            for name, own in zip(clique, contrasts, strict=True):
                groups = grouping[name][np.flatnonzero(tables.one_way[name])]
                member = (groups == np.arange(own.shape[1])[:, None]).astype(np.float64)
                maps.append(own @ member @ bases[name])
            found.setdefault(clique, []).append(
                _GroupSums(
                    rows=maps[0],
                    columns=maps[1],
                    values=contrasts[0] @ apart @ contrasts[1].T,
                    variance=sums.variance,
                )
            )
    return found


def _independent(tables: ConsistentTables, clique: Clique) -> np.ndarray:
    """The table of a pair if its attributes were independent."""
    first, second = (tables.one_way[attribute] for attribute in clique)
    return np.outer(first, second) / tables.total


def _contrasts(size: int) -> np.ndarray:
    """An orthonormal basis of the vectors that sum to zero, shape (size, size - 1) (Helmert)."""
    rank = np.arange(1, size)
    basis = (np.arange(size)[:, None] < rank).astype(np.float64)
    basis[rank, rank - 1] = -rank
    return basis / np.sqrt(rank * (rank + 1))


def _prior(one_way: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """The prior covariance of the supported codes, of trace 1, in the coordinates of the basis.

    It is that of p_i f_i, shifted to sum to zero in proportion to p, for factors f of one variance.
    """
    codes = np.flatnonzero(one_way)
    p = one_way[codes] / one_way.sum()
    smooth = np.exp(-np.abs(codes[:, None] - codes) / _LENGTH)
    factor = _SMOOTH * smooth + (1 - _SMOOTH) * np.eye(len(codes))
    shifted = basis.T @ (np.diag(p) - np.outer(p, p))
    covariance = shifted @ factor @ shifted.T
    return covariance / np.trace(covariance)


def _signals(
    tables: ConsistentTables,
    bases: Mapping[str, np.ndarray],
    residuals: Sequence[_Residual],
    sums: "Mapping[Clique, list[_GroupSums]]",
    progress: Progress,
    stage: str,
) -> list[_Signal]:
    """Each residual's signal, with the covariances of largest posterior density."""
    priors = {
        name: _prior(tables.one_way[name], bases[name])
        for name in dict.fromkeys(name for residual in residuals for name in residual.clique)
    }
    covariances = {attribute: _Covariance.of(prior) for attribute, prior in priors.items()}

    def signals(scales: Sequence[float]) -> list[_Signal]:
        return [
            _Signal(scale, *(covariances[attribute] for attribute in residual.clique))
            for residual, scale in zip(residuals, scales, strict=True)
        ]

    scales = [
        _likeliest_scale(
            residual,
            covariances[residual.clique[0]],
            covariances[residual.clique[1]],
            sums.get(residual.clique, ()),
        )
        for residual in residuals
    ]
    for _ in progress(range(_STEPS), stage):
        # Moments are taken along the directions of each covariance so far, and turned back below.
        moments = {attribute: np.zeros_like(prior) for attribute, prior in priors.items()}
        spreads = {attribute: np.zeros(len(prior)) for attribute, prior in priors.items()}
        columns = dict.fromkeys(priors, 0)
        for place, (residual, signal) in enumerate(zip(residuals, signals(scales), strict=True)):
            mean, variance = signal.posterior(residual)
            scales[place] = float(((mean**2 + variance) / signal.relative).mean())
            for attribute, other, means, variances in (
                (residual.clique[0], signal.column, mean, variance),
                (residual.clique[1], signal.row, mean.T, variance.T),
            ):
                size = scales[place] * other.variances
                moments[attribute] += (means / size) @ means.T
                spreads[attribute] += (variances / size).sum(axis=1)
                columns[attribute] += len(size)
        for attribute, prior in priors.items():
            directions = covariances[attribute].directions
            moment = moments[attribute] + np.diag(spreads[attribute])
            mean_moment = directions @ moment @ directions.T / columns[attribute]
            share = _PRIOR_WEIGHT / (_PRIOR_WEIGHT + columns[attribute])
            covariances[attribute] = _Covariance.of(
                (1 - share) * mean_moment + share * np.trace(mean_moment) * prior
            )
    return signals(scales)


def _likeliest_scale(
    residual: _Residual, row: _Covariance, column: _Covariance, sums: Sequence[_GroupSums]
) -> float:
    """The scale under which the residual, and its sums over groups, are most likely.

    The covariances say where signal would lie: a smooth dependence is seen although the noise of
    all cells together is larger. What the residual and the sums tell of the scale is taken to be
    independent.
    """
    relative = np.outer(row.variances, column.variances)
    seen = row.directions.T @ residual.values @ column.directions
    known = [(relative.ravel(), np.square(seen).ravel(), residual.variance)]
    for each in sums:
        rows, columns = each.rows @ row.directions, each.columns @ column.directions
        spread = np.einsum(
            "ia,ka,ab,jb,lb->ijkl", rows, rows, relative, columns, columns, optimize=True
        )
        variances, directions = eigh(spread.reshape(each.values.size, -1), check_finite=False)
        told = np.square(directions.T @ each.values.ravel())
        known.append((np.maximum(variances, 0.0), told, each.variance))
    noise = residual.variance * residual.values.size
    scales = noise * 2.0 ** np.arange(_FAINTEST, _CLEAREST)
    nats = np.zeros(len(scales))
    for variances, squares, variance in known:
        spread = scales[:, None] * variances + max(variance, _SMALLEST * noise)
        nats += (np.log(spread) + squares / spread).sum(axis=1) / 2
    return float(scales[nats.argmin()])
