"""Factors that many pairs share: what the tables of all other pairs say of a pair.

Where two attributes depend on a third, or many on something that no column holds, the residuals of
their pairs tell of each other: R_ab = L_a L_b^T, with the loadings L_a of the codes of a on a few
factors. The noise that hides one pair does not hide what all pairs share, and a pair that is noise
becomes what the others imply, not the product of its margins. The loadings are posterior means by
variational Bayes (Bishop 1999): for each attribute and factor there is one variance, which goes to
zero where nothing but noise speaks for it.

What a pair itself says of its loadings is left out of what it is expected to have, as in a cavity
of expectation propagation (Minka 2001). Its noise would be in both, and what is left of the pair
would look as if it had less noise than it has.

Everything here is post-processing of noisy answers: public and free.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.linalg import eigh  # pyright: ignore[reportMissingTypeStubs]

from sdv_privpgd.estimate.consistency import ConsistentTables
from sdv_privpgd.estimate.effects import expected
from sdv_privpgd.estimate.signals import ResidualSignals


def with_factors(tables: ConsistentTables, look: ResidualSignals) -> ConsistentTables:
    """The same tables, with all pairs expected to have what the pairs over codes share.

    ``shared`` of ``tests/benchmarks budget`` is the L1 error of pairs with it beside that without.
    """
    # What a pair has of its own is noise to the factors: this part of the variance that would make
    # its residual likeliest. With a tenth or a half in place of it the L1 error of pairs of five of
    # the tables is 0.4 % lower or 1 % higher, but with a tenth that of flights is 2 % higher.
    own_part = 0.2
    most = 12  # directions of an attribute, the likeliest ones: with all, errors are as large
    if len(look.residuals) < 3:
        return tables  # no two tell of a third one
    start = look.start
    kept = {name: slice(-min(most, len(each.variances)), None) for name, each in start.items()}
    variances = {name: each.variances[kept[name]] for name, each in start.items()}
    turned = {name: each.directions[:, kept[name]] for name, each in start.items()}
    places, end = {}, 0
    for name, own in variances.items():
        places[name] = slice(end, end + len(own))
        end += len(own)
    values, weights = np.zeros((end, end)), np.zeros((end, end))
    for residual, scale in zip(look.residuals, own_part * look.scales, strict=True):
        first, second = residual.clique
        seen = residual.values
        for each in look.sums.get(residual.clique, ()):
            seen = each.joined(seen, residual.variance)
        cells = np.ix_(*(np.r_[places[name]] for name in residual.clique))
        values[cells] = turned[first].T @ seen @ turned[second]
        own = scale * np.outer(variances[first], variances[second])
        weights[cells] = 1 / (residual.variance + own)
    loadings = _loadings(
        values + values.T,
        weights + weights.T,
        np.concatenate(list(variances.values())),
        list(places.values()),
    )
    found = dict(tables.expected)
    for residual in [*look.residuals, *look.unmeasured]:
        first, second = residual.clique
        rows, columns = (
            look.bases[name] @ turned[name] @ loadings(places[name], places[other])
            for name, other in ((first, second), (second, first))
        )
        found[residual.clique] = expected(tables, residual.clique)
        found[residual.clique][np.ix_(*tables.support(residual.clique))] += rows @ columns.T
    return replace(tables, expected=found)


def _loadings(
    values: np.ndarray, weights: np.ndarray, variances: np.ndarray, places: list[slice]
) -> Callable[[slice, slice], np.ndarray]:
    """What gives the loadings of an attribute as its pairs with all others but one tell them.

    They are of shape (direction, factor). ``values`` are all residuals in one symmetric matrix,
    ``weights`` the inverse variances of their noise, 0 where nothing was measured, ``variances``
    those of each direction of an attribute beside its others, and ``places`` where each attribute
    has its own directions.
    """
    factors, sweeps = min(8, len(values)), 20  # twelve factors, or thirty sweeps, change nothing
    # Probable directions come first in what the sweeps start from.
    scales = np.sqrt(variances)
    strengths, found = eigh(
        values * np.outer(scales, scales), subset_by_index=(len(values) - factors, len(values) - 1)
    )
    found = scales[:, None] * found * np.sqrt(np.maximum(strengths, 0.0))
    fitted = (found @ found.T) * (weights > 0)
    found *= np.sqrt(max(np.vdot(fitted, values), 0.0) / max(np.vdot(fitted, fitted), 1e-300))
    moments = found[:, :, None] * found[:, None, :]
    weighed, diagonal = weights * values, np.arange(factors)
    before = np.zeros_like(moments)  # the precisions of loadings of which nothing was seen

    def from_others(own: slice, others: slice = slice(None)) -> tuple[np.ndarray, np.ndarray]:
        """How precisely others tell an attribute's loadings, and what they tell."""
        precisions = np.tensordot(weights[own, others], moments[others], axes=1)
        return precisions, (weighed[own, others] @ found[others])[:, :, None]

    for _ in range(sweeps):
        for own in places:
            relative = variances[own, None]
            # One direction more, without any loading, counts: noise alone so has no factors.
            seen = (moments[own][:, diagonal, diagonal] / relative).sum(axis=0)
            spread = seen / (len(relative) + 1)
            before[own][:, diagonal, diagonal] = 1 / (relative * np.maximum(spread, 1e-12))
            precisions, said = from_others(own)
            covariances = np.linalg.inv(before[own] + precisions)
            found[own] = (covariances @ said)[:, :, 0]
            moments[own] = found[own, :, None] * found[own, None, :] + covariances
    every = {own.start: from_others(own) for own in places}

    def but_for(own: slice, other: slice) -> np.ndarray:
        (whole, said), (part, theirs) = every[own.start], from_others(own, other)
        return np.linalg.solve(before[own] + whole - part, said - theirs)[:, :, 0]

    return but_for
