"""Pair tables denoised together: what one table tells of an attribute's codes helps all others.

Consistent tables have almost noiseless 1-way marginals; the remaining noise is in the residuals
R_ab = table - product of its marginals. Their signal has structure, and the noise has none. The
model: R_ab is matrix normal with covariance g_ab K_a of its rows and K_b of its columns, plus white
noise of the known variance. K_a says which codes of attribute a are common and which behave alike.
It is the same in all d - 1 tables with the attribute, so they estimate it together, by the EM
algorithm (Dempster, Laird & Rubin 1977). Where the tables say little, K_a stays near its prior: the
covariance of a table that is the product of its marginals times a factor that varies from cell to
cell, much of it smoothly. How strong dependences are, all tables say together: where most pairs
depend little, a little more than noise is believed to be noise. The denoised table is the posterior
mean: the smaller a direction's signal is relative to the noise, the more it is shrunk. Single
contrasts that clearly stand out of the noise are kept all the same (``effects``).

Where tables over groups of codes were measured as well, the posterior uses their sums, too: a
group's sum has much less noise in a table over few groups than as the sum of a pair's many cells.
Of pairs that were measured over groups alone the sums are all there is. The model tells how they
are spread over codes, and so over finer groups.

Tables of other degrees stay as they are. Everything here is post-processing of noisy answers:
public and free.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from sdv_privpgd.base.domain import Clique, Grouping
from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.estimate.consistency import ConsistentTables
from sdv_privpgd.estimate.copula import with_copulas
from sdv_privpgd.estimate.effects import (
    ClearContrasts,
    Residual,
    expected,
    group_sums_of,
    residuals_of,
)
from sdv_privpgd.estimate.factors import with_factors
from sdv_privpgd.estimate.signals import Covariance, ResidualSignals, Signal, signals_of

FINER = 16
"""Groups of each attribute in a completed pair. In a fit to 100,000 simulated rows of 100 columns
at epsilon 1 the L1 error of pairs was 0.172 with eight and 0.160 with sixteen, for a quarter more
processor seconds."""


def denoised(
    tables: ConsistentTables, progress: Progress = silent, stage: str = "denoise"
) -> ConsistentTables:
    """The same tables with less noise in the pairs, and with the same marginals.

    Pairs that were measured over groups alone are ``completed``, over finer groups.
    """
    finer = Grouping.of(
        {name: equal_groups(counts, FINER) for name, counts in tables.one_way.items()}
    )
    found, completed = dict(tables.tables), {}
    look = ResidualSignals.of(tables)
    known = look.covariances(progress, stage)
    shared = with_copulas(tables, with_factors(tables, look), look, known)
    for residual, _, mean, beyond in _judged(look, known, shared, look.unmeasured):
        clique, counts = residual.clique, expected(shared, residual.clique)
        rows, columns = (look.bases[name] for name in clique)
        counts[np.ix_(*tables.support(clique))] += rows @ (mean + beyond[0]) @ columns.T
        if math.isinf(residual.variance):
            completed[clique] = finer.sums(counts, clique)
        else:
            found[clique] = counts
    return replace(tables, tables=found, completed={finer: completed} if completed else {})


def signal_variances(
    tables: ConsistentTables, progress: Progress = silent
) -> dict[Clique, np.ndarray]:
    """The variances of the signal of each pair with a residual, in squared counts: one axis.

    They are variances along orthogonal directions: measured with noise of variance v, the signal's
    expected square error is the sum of s v / (s + v) over its variances s. Contrasts that stand out
    although they were not expected count as further directions.
    """
    look = ResidualSignals.of(tables)
    judged = _judged(look, look.covariances(progress, "compare"), tables, [])
    return {
        residual.clique: np.append(signal.variances.ravel(), overlooked)
        for residual, signal, _, (_, overlooked) in judged
    }


def strengths(tables: ConsistentTables) -> dict[Clique, float]:
    """How far each pair is from independence, but for what is likely noise, in squared counts."""
    look = ResidualSignals.of(tables)
    squares = look.evidence.explained(look.scales).tolist()
    return {each.clique: own for each, own in zip(look.residuals, squares, strict=True)}


def _judged(
    look: ResidualSignals,
    known: Mapping[str, Covariance],
    shared: ConsistentTables,
    unmeasured: list[Residual],
) -> Iterator[tuple[Residual, Signal, np.ndarray, tuple[np.ndarray, list[float]]]]:
    """Each residual, its signal, the expected residual, and what clearly stands out beyond it.

    Residuals are what the tables have beyond those that are ``shared``. Where in a table signal
    lies, the residuals show better from which nothing is taken that all pairs share.
    """
    residuals, sums = look.residuals, look.sums
    if shared.expected:
        residuals, sums = residuals_of(shared, look.bases), group_sums_of(shared, look.bases)
    clear = ClearContrasts(look.bases, residuals)
    residuals = [*residuals, *unmeasured]
    signals = signals_of(shared, known, residuals, sums)
    for residual, signal in zip(residuals, signals, strict=True):
        mean = signal.mean(residual, sums.get(residual.clique, ()))
        yield residual, signal, mean, clear.within(residual, mean)


def equal_groups(counts: np.ndarray, most: int) -> np.ndarray:
    """The group of each code: at most ``most`` runs of neighboring codes with about equal counts.

    The sum of the groups' squared counts is the smallest possible. ``counts`` must not be negative.
    """
    size = len(counts)
    if size <= most:
        return np.arange(size)
    before = np.concatenate([[0.0], np.cumsum(counts)])
    squares = np.square(before[None, :] - before[:, None])  # of the codes from row to column
    squares[np.tril_indices(size + 1)] = np.inf  # no run is empty
    best, starts = squares[0], []
    for _ in range(most - 1):
        longer = best[:, None] + squares
        starts.append(longer.argmin(axis=0))
        best = longer.min(axis=0)
    edges = [size]
    for start in reversed(starts):
        edges.append(int(start[edges[-1]]))
    return np.searchsorted(np.sort(edges[1:]), np.arange(size), side="right")


def over_groups(tables: ConsistentTables, grouping: Grouping) -> ConsistentTables:
    """The pairs that were measured over these groups, and the groups' own counts.

    The pairs are as they were measured: they need not agree with the marginals.
    """
    measured = {
        clique: table for clique, table in tables.grouped[grouping].items() if len(clique) == 2
    }
    return ConsistentTables(
        total=tables.total,
        one_way={
            name: grouping.sums(tables.one_way[name], (name,)) for name in grouping.attributes
        },
        tables={clique: table.counts for clique, table in measured.items()},
        variances={clique: table.variance for clique, table in measured.items()},
        grouped={},
    )
