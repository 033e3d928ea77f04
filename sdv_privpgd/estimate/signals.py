"""The signal in the residuals of all pairs: how strong it is, and where in a table it lies.

``denoising`` has the model. An effect's square norm beside its noise says little of one effect with
few directions: half of those that are pure noise look larger than noise. Together they say how
effects are spread, and so how likely it is that this one is noise. That is nonparametric empirical
Bayes: the spread is the one of largest likelihood (Robbins 1956; Kiefer & Wolfowitz 1956), on a
grid, by the EM algorithm.

Everything here is post-processing of noisy answers: public and free.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sdv_privpgd.base.domain import Clique
from sdv_privpgd.base.progress import Progress
from sdv_privpgd.estimate.consistency import ConsistentTables
from sdv_privpgd.estimate.effects import (
    ClearContrasts,
    GroupSums,
    Residual,
    contrast_bases,
    group_sums_of,
    residuals_of,
    unseen_residuals,
)

_STEPS = 10
"""Steps of the EM algorithm. Ten to thirty give errors within 3 % of each other on Adult and
Bank."""

_PRIORS = ((0.7, 5.0), (0.97, 20.0))
"""Shares of the prior factor's variance that vary smoothly with the code, with the number of codes
over which its correlation falls to 1 / e. On Adult, Bank and simulated rows shares of 0.5 to 0.7
and lengths of 3 to 8 are as good within 3 %. The second is for codes that are answers in order.
With it pairs of nine public tables are 1 to 2 % nearer, and covariances 3 to 4 %
(``tests/benchmarks budget``)."""

_SMALLEST = 1e-12
"""Variances below this share of the largest are raised to it, so that nothing is divided by
zero."""


@dataclass(frozen=True)
class Covariance:
    """K = directions diag(variances) directions^T, of trace 1 but for that of sums."""

    variances: np.ndarray
    directions: np.ndarray

    @classmethod
    def of(cls, matrix: np.ndarray) -> "Covariance":
        variances, directions = np.linalg.eigh(matrix / np.trace(matrix))
        return cls(np.maximum(variances, _SMALLEST * variances[-1]), directions)

    def summed(self, sums: np.ndarray) -> "Covariance":
        """The covariance of these sums, the rows of a matrix."""
        turned = (sums @ self.directions) * np.sqrt(self.variances)
        variances, directions = np.linalg.eigh(turned @ turned.T)
        return Covariance(np.maximum(variances, 0.0), directions)


@dataclass(frozen=True)
class Signal:
    """What is believed of a residual: normal, of mean zero, independent along directions."""

    variances: np.ndarray  # along each pair of a direction of rows and one of columns
    rows: np.ndarray  # the directions of rows, as columns of a matrix
    columns: np.ndarray  # the directions of columns

    def given(self, values: np.ndarray, noise: float) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance along the directions, given values and the variance of their noise."""
        kept = self.variances / (self.variances + noise)
        return kept * (self.rows.T @ values @ self.columns), kept * noise

    def mean(self, residual: Residual, sums: Sequence[GroupSums]) -> np.ndarray:
        """The expected residual given it and sums of it, in the residual's own coordinates.

        The sums are taken one after the other, as if what one set leaves uncertain had no
        correlations; for a single set that is exact.
        """
        mean, variance = np.zeros_like(self.variances), self.variances
        if math.isfinite(residual.variance):
            mean, variance = self.given(residual.values, residual.variance)
        for seen in sums:
            rows, columns = seen.rows @ self.rows, seen.columns @ self.columns
            size = seen.values.size
            surprise = (seen.values - rows @ mean @ columns.T).ravel()
            noisy = _of_sums(rows, columns, variance)
            # Groups without a supported code would make it singular if their sums had no noise.
            noisy += max(seen.variance, _SMALLEST * float(np.trace(noisy))) * np.eye(size)
            scaled = np.linalg.solve(noisy, surprise)
            mean = mean + variance * (rows.T @ scaled.reshape(seen.values.shape) @ columns)
        return self.rows @ mean @ self.columns.T


@dataclass(frozen=True)
class ResidualSignals:
    """The residuals of tables, and how strong their signal is where it lies as the prior has it."""

    bases: Mapping[str, np.ndarray]  # the ``contrasts`` of each attribute's supported codes
    residuals: list[Residual]  # those of pairs that were measured over codes
    unmeasured: list[Residual]  # those of pairs that were measured over groups alone
    sums: Mapping[Clique, Sequence[GroupSums]]  # what tables over groups say of each pair
    # The prior covariance of each attribute in the residuals, the one of ``_PRIORS`` that makes its
    # residuals likelier.
    start: "Mapping[str, Covariance]"
    evidence: "Evidence"  # what was seen of the ``residuals``
    scales: np.ndarray  # the likeliest scale of each of them

    @classmethod
    def of(cls, tables: ConsistentTables) -> "ResidualSignals":
        bases = contrast_bases(tables)
        residuals, sums = residuals_of(tables, bases), group_sums_of(tables, bases)
        unmeasured = unseen_residuals(tables, bases, sums)
        names = dict.fromkeys(name for each in [*residuals, *unmeasured] for name in each.clique)
        starts = [
            {
                name: Covariance.of(_prior(tables.one_way[name], bases[name], *prior))
                for name in names
            }
            for prior in _PRIORS
        ]
        looks = [Evidence(residuals, sums, start) for start in starts]
        nats = np.array([each.nats(each.likeliest_scales()[:, None])[:, 0] for each in looks])
        start = {}
        for name in names:
            of_name = [name in each.clique for each in residuals]
            start[name] = starts[int(nats[:, of_name].sum(axis=1).argmin())][name]
        evidence = Evidence(residuals, sums, start)
        return cls(bases, residuals, unmeasured, sums, start, evidence, evidence.likeliest_scales())

    def covariances(self, progress: Progress, stage: str) -> "dict[str, Covariance]":
        """Where in tables the signal of each attribute lies, as all these residuals show it."""
        # Where the priors make less than this part of a residual's excess over the noise likely,
        # but a contrast clearly stands out, all of the excess is taken for signal at first.
        overlooked = 0.1
        clear, scales = ClearContrasts(self.bases, self.residuals), self.scales.copy()
        for place in np.flatnonzero(scales < overlooked * self.evidence.excess):
            if clear.has_any(self.residuals[place]):
                scales[place] = self.evidence.excess[place]
        return _covariances(self.residuals, scales, self.start, progress, stage)


def signals_of(
    tables: ConsistentTables,
    known: "Mapping[str, Covariance]",
    residuals: Sequence[Residual],
    sums: Mapping[Clique, Sequence[GroupSums]],
) -> list[Signal]:
    """The signal in each residual, as all residuals and sums of these tables together show it.

    Of a residual of infinite variance nothing is known but its sums. They say how strong it is; the
    covariances that are ``known`` say where in the table it lies.
    """
    if not residuals:
        return []
    chances, scales = _chances(tables, residuals, Evidence(residuals, sums, known))
    found = []
    for residual, own, chance in zip(residuals, scales, chances, strict=True):
        sides = [known[name] for name in residual.clique]
        relative = np.outer(*(side.variances for side in sides))
        variances = _mixed(relative, residual.variance, own, chance)
        found.append(Signal(variances, *(side.directions for side in sides)))
    return found


def _prior(one_way: np.ndarray, basis: np.ndarray, share: float, length: float) -> np.ndarray:
    """A prior covariance of the supported codes, of trace 1, in the coordinates of the basis.

    It is that of p_i f_i, shifted to sum to zero in proportion to p, for factors f of one variance.
    """
    codes = np.flatnonzero(one_way)
    p = one_way[codes] / one_way.sum()
    smooth = np.exp(-np.abs(codes[:, None] - codes) / length)
    factor = share * smooth + (1 - share) * np.eye(len(codes))
    shifted = basis.T @ (np.diag(p) - np.outer(p, p))
    covariance = shifted @ factor @ shifted.T
    return covariance / np.trace(covariance)


def _covariances(
    residuals: Sequence[Residual],
    scales: np.ndarray,
    start: Mapping[str, Covariance],
    progress: Progress,
    stage: str,
) -> dict[str, Covariance]:
    """Each attribute's covariance of largest posterior density, from scales to begin with."""
    # The prior counts as much as this many columns of a table; 5 to 20 are as good within 3 %.
    prior_weight = 10.0
    covariances = dict(start)
    priors = {
        name: (each.directions * each.variances) @ each.directions.T for name, each in start.items()
    }
    scales = scales.copy()
    for _ in progress(range(_STEPS), stage):
        # Moments are taken along the directions of each covariance so far, and turned back below.
        moments = {attribute: np.zeros_like(prior) for attribute, prior in priors.items()}
        spreads = {attribute: np.zeros(len(prior)) for attribute, prior in priors.items()}
        columns = dict.fromkeys(priors, 0)
        for place, residual in enumerate(residuals):
            row, column = (covariances[name] for name in residual.clique)
            relative = np.outer(row.variances, column.variances)
            signal = Signal(scales[place] * relative, row.directions, column.directions)
            mean, variance = signal.given(residual.values, residual.variance)
            scales[place] = ((mean**2 + variance) / relative).mean()
            for attribute, other, means, variances in (
                (residual.clique[0], column, mean, variance),
                (residual.clique[1], row, mean.T, variance.T),
            ):
                sizes = scales[place] * other.variances
                moments[attribute] += (means / sizes) @ means.T
                spreads[attribute] += (variances / sizes).sum(axis=1)
                columns[attribute] += len(sizes)
        for attribute, prior in priors.items():
            if not columns[attribute]:
                continue  # in no table over codes
            directions = covariances[attribute].directions
            moment = moments[attribute] + np.diag(spreads[attribute])
            mean_moment = directions @ moment @ directions.T / columns[attribute]
            share = prior_weight / (prior_weight + columns[attribute])
            covariances[attribute] = Covariance.of(
                (1 - share) * mean_moment + share * np.trace(mean_moment) * prior
            )
    return covariances


class _Informing(NamedTuple):
    """A table that tells of a residual: itself, or sums of it."""

    owner: int  # the place of the residual
    is_finest: bool
    sides: list[Covariance]  # of rows and of columns
    values: np.ndarray
    noise: float


class Evidence:
    """What was seen of residuals along directions in which signal and noise are independent.

    The covariances say where signal would lie: a smooth dependence is seen although the noise of
    all cells together is larger. Directions in which the signal is about as large count together.
    """

    _BINS, _WIDTH = 80, 0.25  # of signals' variances beside the largest, in powers of two

    def __init__(
        self,
        residuals: Sequence[Residual],
        sums: Mapping[Clique, Sequence[GroupSums]],
        known: "Mapping[str, Covariance]",
    ) -> None:
        """Takes residuals and what sums say of them, and the covariances that are known."""
        seen = list(self._seen(residuals, sums, known))
        self.noise, self.excess = np.zeros(len(residuals)), np.zeros(len(residuals))
        for each in seen:
            if each.is_finest:
                self.noise[each.owner] = each.noise * each.values.size
                beyond = float(np.square(each.values).sum() - self.noise[each.owner])
                whole = math.prod(float(side.variances.sum()) for side in each.sides)
                self.excess[each.owner] = max(beyond, 0.0) / max(whole, 1e-300)
        held = np.concatenate([np.zeros((6, 0)), *map(self._bins, seen)], axis=1)
        self._sizes, self._numbers, self._squares, self._noise = held[:4]
        self._owners, self._is_finest = held[4].astype(np.int64), held[5] > 0

    @staticmethod
    def _seen(
        residuals: Sequence[Residual],
        sums: Mapping[Clique, Sequence[GroupSums]],
        known: "Mapping[str, Covariance]",
    ) -> Iterator[_Informing]:
        """The tables that tell of each residual, the finest one first."""
        summed: dict[tuple[str, int], Covariance] = {}  # the same for all pairs of an attribute
        for place, residual in enumerate(residuals):
            is_known = math.isfinite(residual.variance)
            if is_known:
                sides = [known[name] for name in residual.clique]
                yield _Informing(place, True, sides, residual.values, residual.variance)
            for number, each in enumerate(sums.get(residual.clique, ())):
                sides = []
                for name, own in zip(residual.clique, (each.rows, each.columns), strict=True):
                    if (name, id(own)) not in summed:
                        summed[name, id(own)] = known[name].summed(own)
                    sides.append(summed[name, id(own)])
                yield _Informing(
                    place, not is_known and not number, sides, each.values, each.variance
                )

    def _bins(self, table: _Informing) -> np.ndarray:
        """What a table tells, one column for each bin that is not empty.

        They are the mean variance in the bin, the number of its directions, their squares, the
        noise, the place of the residual, and 1 for its finest table.
        """
        row, column = table.sides
        variances = np.outer(row.variances, column.variances)
        values = row.directions.T @ table.values @ column.directions
        relative = variances / max(float(variances.max()), 1e-300)
        below = -np.log2(np.maximum(relative, _SMALLEST)) / self._WIDTH
        bins = np.minimum(below.astype(np.int64), self._BINS - 1).ravel()
        numbers = np.bincount(bins)
        held = np.flatnonzero(numbers)
        sizes, squares = (
            np.bincount(bins, own.ravel())[held] for own in (variances, np.square(values))
        )
        noise = max(table.noise, _SMALLEST * self.noise[table.owner])
        of_table = np.array([[noise], [table.owner], [table.is_finest]]).repeat(len(held), axis=1)
        return np.vstack([sizes / numbers[held], numbers[held], squares, of_table])

    def nats(self, scales: np.ndarray) -> np.ndarray:
        """The negative log-likelihood of scales, shape (residual, scale), but for a constant.

        What a residual and its sums tell of the scale is taken to be independent.
        """
        found = np.zeros(scales.shape)
        for place, own in enumerate(scales.T):
            spread = own[self._owners] * self._sizes + self._noise
            nats = (self._numbers * np.log(spread) + self._squares / spread) / 2
            found[:, place] = np.bincount(self._owners, nats, len(scales))
        return found

    def explained(self, scales: np.ndarray) -> np.ndarray:
        """The sum of the squares in the finest tables, as far as these scales make them signal."""
        signal = scales[self._owners] * self._sizes
        kept = self._is_finest * np.square(signal / (signal + self._noise))
        return np.bincount(self._owners, kept * self._squares, len(scales))

    def likeliest_scales(self) -> np.ndarray:
        """The scale under which each residual, and its sums over groups, are most likely."""
        # The smallest and the largest scale that is tried, in units of the noise, as powers of two.
        faintest, clearest = -10.0, 30.0
        scales = self.noise[:, None] * 2.0 ** np.arange(faintest, clearest)
        return np.take_along_axis(scales, self.nats(scales).argmin(axis=1)[:, None], 1)[:, 0]


def _of_sums(rows: np.ndarray, columns: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """The covariance of ``rows @ R @ columns.T`` over its cells, for these variances of R's."""
    of_rows, of_columns = (
        (side[:, None, :] * side).reshape(len(side) ** 2, -1) for side in (rows, columns)
    )
    shape = (len(rows), len(rows), len(columns), len(columns))
    spread = (of_rows @ variances @ of_columns.T).reshape(shape)
    return spread.swapaxes(1, 2).reshape(len(rows) * len(columns), -1)


def _chances(
    tables: ConsistentTables, residuals: Sequence[Residual], evidence: Evidence
) -> tuple[np.ndarray, np.ndarray]:
    """How likely each strength of dependence is for each pair, and the scales that these are."""
    # The weakest and the strongest dependence beside none, as powers of two: the sum of a
    # residual's squares over that of the table of independent attributes.
    weakest, strongest = -24.0, 8.0
    strengths = np.append(0.0, 2.0 ** np.arange(weakest, strongest))
    squares = {
        name: float(np.square(counts).sum()) / tables.total
        for name, counts in tables.one_way.items()
    }
    of_pairs = [math.prod(squares[name] for name in each.clique) for each in residuals]
    scales = np.outer(of_pairs, strengths)
    return shared_chances(-evidence.nats(scales), np.arange(len(strengths)) == 0), scales


def _mixed(
    relative: np.ndarray, noise: float, scales: np.ndarray, chances: np.ndarray
) -> np.ndarray:
    """The variances whose posterior mean is that of the mixture of scales."""
    unlikely = 1e-6  # strengths that are less likely than this are left out
    likely = chances > unlikely
    variances = scales[likely, None, None] * relative
    if math.isinf(noise):
        return np.tensordot(chances[likely], variances, axes=1)
    kept = np.tensordot(chances[likely], variances / (variances + noise), axes=1)
    return kept * noise / np.maximum(1 - kept, _SMALLEST)


def signal_shares(squares: np.ndarray, freedoms: np.ndarray) -> np.ndarray:
    """The expected share of signal in each effect, 0 to 1: what to multiply its values by.

    Args:
        squares: Each effect's square norm in units of the noise's variance in a direction, so that
            it is chi-squared without signal; infinite where there is no noise.
        freedoms: In how many directions each effect can vary, at least 1.
    """
    finest = -6.0  # the smallest signal of the grid beside the noise, as a power of two
    shares = np.ones(len(squares))
    noisy = np.isfinite(squares)
    if not noisy.any():
        return shares
    squares, freedoms = squares[noisy], freedoms[noisy]
    largest = max(float((squares / freedoms).max()), 1.0)
    # Of signal beside noise, variance by variance: none, or a power of the square root of two.
    ratios = np.append(0.0, 2.0 ** np.arange(finest, np.log2(largest) + 1, 0.5))
    # The density of (1 + ratio) times a chi-squared number, but for what no ratio changes.
    logs = -0.5 * (freedoms[:, None] * np.log1p(ratios) + squares[:, None] / (1 + ratios))
    chances = shared_chances(logs, ratios == 0)
    shares[noisy] = chances @ (ratios / (1 + ratios))
    return shares


def shared_chances(logs: np.ndarray, is_none: np.ndarray) -> np.ndarray:
    """How likely each size of signal is for each effect, as all effects show it together.

    Args:
        logs: The log-likelihood of each size for each effect, shape (effect, size), but for a
            constant of each effect.
        is_none: Which of the sizes is no signal.

    Returns:
        Probabilities, shape (effect, size).
    """
    # So many effects without any signal are added to those that were seen: one effect alone is not
    # believed for a little more than its noise.
    no_signal = 0.5
    share_steps = 200  # of the EM algorithm
    likelihoods = np.exp(logs - logs.max(axis=1, keepdims=True))
    added = no_signal * is_none
    spread = np.full(len(is_none), 1 / len(is_none))
    for _ in range(share_steps):
        spread = _posterior(likelihoods, spread).sum(axis=0) + added
        spread /= spread.sum()
    return _posterior(likelihoods, spread)


def _posterior(likelihoods: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """How likely each ratio is for each effect, shape (effect, ratio)."""
    joint = likelihoods * spread
    return joint / joint.sum(axis=1, keepdims=True)
