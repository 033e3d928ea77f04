"""Pairs that depend as the ranks of two normal numbers do.

Where one number nearly follows from another, as a length from a weight, the rows of a pair lie in a
band. A few smooth directions do not make a band, so ``denoising`` alone shrinks much of it away
with the noise. A Gaussian copula makes it with one number, the correlation of the normal scores,
and all cells together tell that one. A pair is expected to be like its copula if that makes the
rest of what it says likelier by far. Attributes whose codes have no order hardly ever look so.

Everything here is post-processing of noisy answers: public and free.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
from scipy.optimize import minimize_scalar  # pyright: ignore[reportMissingTypeStubs]
from scipy.special import ndtr, ndtri, owens_t  # pyright: ignore[reportMissingTypeStubs]

from sdv_privpgd.base.domain import Clique
from sdv_privpgd.estimate.consistency import ConsistentTables
from sdv_privpgd.estimate.effects import expected, group_sums_of, independent, residuals_of
from sdv_privpgd.estimate.signals import Covariance, Evidence, ResidualSignals

_LIKELIER = 5.0
"""The nats by which a copula makes a pair's residual likelier, at least. With two, the L1 error of
pairs of bank and of Nebraska is 1 % higher than without copulas; with ten, half of the gain on
california_housing at epsilon 0.2 is lost (``tests/benchmarks budget``)."""


def with_copulas(
    tables: ConsistentTables,
    shared: ConsistentTables,
    look: ResidualSignals,
    known: Mapping[str, Covariance],
) -> ConsistentTables:
    """The ``shared`` tables, with pairs over codes expected to be copulas where they look so.

    ``copula`` of ``tests/benchmarks budget`` is the L1 error of pairs with it beside that without.
    """
    found = dict(_copulas(tables, look))
    if not found:
        return shared
    trial = replace(shared, expected={**shared.expected, **found})
    gains = (_nats(shared, look, known, found) - _nats(trial, look, known, found)).tolist()
    likely = {
        clique: table
        for (clique, table), gain in zip(found.items(), gains, strict=True)
        if gain > _LIKELIER
    }
    return replace(shared, expected={**shared.expected, **likely}) if likely else shared


def copula(first: np.ndarray, second: np.ndarray, correlation: float) -> np.ndarray:
    """The shares of a Gaussian copula's cells, with these shares of rows and of columns.

    Those below a cell's corner follow from Owen's T function (Owen 1956).
    """
    spread = math.sqrt(1 - correlation**2)
    scores = (_scores(np.cumsum(side)[:-1]) for side in (first, second))
    h, k = (np.where(side == 0, 1e-300, side) for side in scores)  # none is divided by
    h = h[:, None]
    below = np.zeros((len(first) + 1, len(second) + 1))
    below[1:, -1], below[-1, 1:] = np.cumsum(first), np.cumsum(second)
    below[1:-1, 1:-1] = (
        (ndtr(h) + ndtr(k) - (h * k < 0)) / 2
        - owens_t(h, (k / h - correlation) / spread)
        - owens_t(k, (h / k - correlation) / spread)
    )
    return np.diff(np.diff(below, axis=0), axis=1)


def _copulas(
    tables: ConsistentTables, look: ResidualSignals
) -> Iterator[tuple[Clique, np.ndarray]]:
    """The likeliest copula's counts for each pair of which a trend along both codes is seen."""
    for residual in look.residuals:
        clique = residual.clique
        cells, even = np.ix_(*tables.support(clique)), independent(tables, clique)
        bases = [look.bases[name] for name in clique]
        seen = residual.values
        for each in look.sums.get(clique, ()):
            seen = each.joined(seen, residual.variance)
        seen = seen + bases[0].T @ (expected(tables, clique) - even)[cells] @ bases[1]
        shares = [tables.one_way[name] / tables.total for name in clique]
        held = [own[own > 0] for own in shares]
        found = _likeliest(seen, bases, held, residual.variance / tables.total**2, tables.total)
        if found is not None:
            even[cells] += found
            yield clique, even


def _likeliest(
    seen: np.ndarray,
    bases: Sequence[np.ndarray],
    shares: Sequence[np.ndarray],
    noise: float,
    total: float,
) -> np.ndarray | None:
    """What the likeliest copula has beyond independence, in counts; ``None`` without a trend.

    The last code of an attribute, which often stands for missing, may be independent.
    """
    largest = 3.5  # of Fisher's z: a correlation of 0.998
    seen = seen / total
    trends = {}
    for lasts in product((None, -1), repeat=2):
        if all(len(own[:last]) > 1 for own, last in zip(shares, lasts, strict=True)):
            rows, columns = map(_trend, bases, shares, lasts)
            trends[lasts] = float(rows @ seen @ columns)
    lasts, trend = max(trends.items(), key=lambda each: abs(each[1]))
    if trend**2 < 2 * _LIKELIER * noise:  # no copula makes it likelier by so much
        return None
    held = [own[:last] for own, last in zip(shares, lasts, strict=True)]
    first, second = (own / own.sum() for own in held)
    apart, part = np.outer(*held), np.s_[: lasts[0], : lasts[1]]

    def tail(z: float) -> np.ndarray:
        found = np.zeros([len(own) for own in shares])
        found[part] = apart.sum() * copula(first, second, math.tanh(z)) - apart
        return found

    def misfit(z: float) -> float:
        return float(np.square(seen - bases[0].T @ tail(z) @ bases[1]).sum())

    ends = sorted((0.0, math.copysign(largest, trend)))
    found = minimize_scalar(misfit, bounds=ends, method="bounded", options={"xatol": 0.02})
    return total * tail(found.x)


def _trend(basis: np.ndarray, shares: np.ndarray, last: int | None) -> np.ndarray:
    """The direction in which normal scores rise with the code, of length 1, or with all but one."""
    held = shares[:last] / shares[:last].sum()
    scores = np.zeros(len(shares))
    scores[:last] = _scores(np.cumsum(held) - held / 2)
    direction = basis.T @ scores
    return direction / max(float(np.linalg.norm(direction)), 1e-300)


def _scores(ranks: np.ndarray) -> np.ndarray:
    """The normal scores of ranks from 0 to 1; rounding makes none of them infinite."""
    return ndtri(np.clip(ranks, 1e-15, 1 - 1e-15))


def _nats(
    tables: ConsistentTables,
    look: ResidualSignals,
    known: Mapping[str, Covariance],
    cliques: Collection[Clique],
) -> np.ndarray:
    """The negative log-likelihood of each of these pairs' residuals and of their sums."""
    held = [each for each in residuals_of(tables, look.bases) if each.clique in cliques]
    evidence = Evidence(held, group_sums_of(tables, look.bases), known)
    return evidence.nats(evidence.likeliest_scales()[:, None])[:, 0]
