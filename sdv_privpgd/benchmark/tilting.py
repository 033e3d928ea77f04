"""Fits particles to hyperplanes beside tables: a tilt, and a finish towards tilted tables. Public.

Moves of single codes can meet the answers of any hyperplanes by pushing a few particles over each
of them, which tells nothing of other hyperplanes. A tilt weighs all particles by a function of the
sides they are on, so that the answer of one hyperplane also changes those that lie near it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from sdv_privpgd.benchmark.hyperplanes import HyperplaneQuery
from sdv_privpgd.domain import Clique, Domain
from sdv_privpgd.estimate.interactions import GroupedTargets
from sdv_privpgd.estimate.noisy_tables import estimate_total
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.privacy.queries import Query
from sdv_privpgd.progress import Progress, silent
from sdv_privpgd.synthesize.engine import Model
from sdv_privpgd.synthesize.particles.descent import ParticleGradientDescent
from sdv_privpgd.synthesize.particles.finish import STAYS_EMPTY, ExchangeFinish
from sdv_privpgd.synthesize.particles.particles import Particles

_SPREADS = (0.001, 0.003, 0.01, 0.03, 0.06, 0.1, 0.2, 0.4, 1.0)
"""Standard deviations of the particles' relative weights that are tried."""

_ROUNDED = 1e-9
"""Added to the variance of a share, which may be 0."""


def memberships(query: HyperplaneQuery, domain: Domain, codes: np.ndarray) -> np.ndarray:
    """Which particles are in each cell (hyperplane, code of the label, side), float32.

    The cells are flat, shape (cell, particle), in the order of the query's answer.

    >>> query = HyperplaneQuery(features=("age",), number=2, seed=0)
    >>> domain, codes = Domain(("age",), (4,)), np.array([[0], [1], [3]])
    >>> held = memberships(query, domain, codes).sum(axis=1)
    >>> bool((held == query.of_codes(domain, codes).ravel()).all())
    True
    """
    parts, cuts = query.scores(domain)
    axes = domain.axes(query.features)
    scores = sum(part[:, codes[:, axis]] for part, axis in zip(parts, axes, strict=True))
    labels = np.zeros(len(codes), dtype=np.int64)
    if query.label is not None:
        labels = codes[:, domain.axes((query.label,))[0]].astype(np.int64)
    found = np.zeros((*query.shape(domain), len(codes)), dtype=np.float32)
    particles = np.arange(len(codes))
    for number, above in enumerate(scores > cuts[:, None]):
        found[number, labels, above.astype(np.int64), particles] = 1
    return found.reshape(-1, len(codes))


def tilted(members: np.ndarray, shares: np.ndarray, stddev: float) -> np.ndarray | None:
    """The weights of particles, which sum to 1; ``None`` where the answers are but noise.

    They are the most likely ones if relative weights are independent and normal and the shares
    have normal noise; their standard deviation is that under which the shares are likeliest.

    Args:
        members: Which particles are in each cell, float32 (cell, particle).
        shares: The answer for each cell, over the number of rows.
        stddev: The noise of each.

    >>> members = np.array([[1, 1, 0, 0], [0, 0, 1, 1]], dtype=np.float32)
    >>> tilted(members, np.array([0.6, 0.4]), 0.01).round(2)
    array([0.3, 0.3, 0.2, 0.2], dtype=float32)
    >>> tilted(members, np.array([0.51, 0.49]), 0.1) is None
    True
    """
    means = members.mean(axis=1, keepdims=True)
    around = members - means
    covariance = (around @ around.T).astype(np.float64) / members.shape[1]
    values, vectors = np.linalg.eigh(covariance)
    values, beyond = values.clip(0), vectors.T @ (shares - means[:, 0])
    likeliest, coefficients = -np.inf, None
    for spread in (0.0, *_SPREADS):
        variances = spread**2 * values + stddev**2 + _ROUNDED
        likelihood = -0.5 * float((beyond**2 / variances + np.log(variances)).sum())
        if likelihood > likeliest:
            likeliest = likelihood
            coefficients = spread**2 * beyond / variances if spread else None
    if coefficients is None:
        return None
    weights = (1 + (vectors @ coefficients).astype(np.float32) @ around).clip(0)
    return weights / weights.sum()


@dataclass(frozen=True, kw_only=True)
class HyperplaneFinish(ExchangeFinish):
    """The finish of the tables, a tilt, and the finish once more.

    The second one starts from particles that are drawn by the tilt's weights. Its targets are those
    of the first with the tables' changes by the tilt.

    Attributes:
        query: The hyperplanes.
        shares: The answer, over the number of rows.
        stddev: The noise of a share.

    >>> query = HyperplaneQuery(features=("age",), number=2, seed=0)
    >>> HyperplaneFinish(query=query, shares=np.full((2, 1, 2), 0.5), stddev=0.1).sweeps
    3
    """

    query: HyperplaneQuery
    shares: np.ndarray = field(compare=False)
    stddev: float

    def __call__(
        self,
        codes: np.ndarray,
        domain: Domain,
        targets: Mapping[Clique, np.ndarray],
        seed: int,
        *,
        grouped: GroupedTargets | None = None,
        fixed: Collection[str] = (),
        progress: Progress = silent,
    ) -> np.ndarray:
        """Codes that fit the tables and, where it is more than noise, the hyperplanes' answer."""
        grouped = grouped or {}
        codes = super().__call__(
            codes, domain, targets, seed, grouped=grouped, fixed=fixed, progress=progress
        )
        members = memberships(self.query, domain, codes)
        weights = tilted(members, self.shares.ravel(), self.stddev)
        if weights is None:
            return codes
        changes = weights - 1 / len(codes)
        moved = {
            clique: np.where(
                target == STAYS_EMPTY,
                target,
                target + _sums(codes[:, domain.axes(clique)], target.shape, changes),
            )
            for clique, target in targets.items()
        }
        moved_groups = {}
        for grouping, own in grouped.items():
            moved_groups[grouping] = {}
            for clique, target in own.items():
                columns = zip(clique, codes[:, domain.axes(clique)].T, strict=True)
                groups = np.stack([grouping[name][column] for name, column in columns], axis=1)
                values = target.values + _sums(groups, target.values.shape, changes)
                moved_groups[grouping][clique] = target._replace(values=values)
        drawn = codes[_drawn(weights, seed)]
        return super().__call__(drawn, domain, moved, seed, grouped=moved_groups, fixed=fixed)


def _sums(codes: np.ndarray, shape: tuple[int, ...], weights: np.ndarray) -> np.ndarray:
    """The table of codes of shape (particle, axis), with weights."""
    cells = np.ravel_multi_index(tuple(codes.T.astype(np.int64)), shape)
    return np.bincount(cells, weights=weights, minlength=int(np.prod(shape))).reshape(shape)


def _drawn(weights: np.ndarray, seed: int) -> np.ndarray:
    """As many particles as there are, each as often as its weight says, to within one."""
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(weights))
    ends = np.cumsum(weights[order].astype(np.float64))
    steps = (np.arange(len(weights)) + generator.random()) / len(weights)
    places = np.searchsorted(ends / ends[-1], steps, side="right")
    return order[places.clip(max=len(weights) - 1)]


@dataclass(frozen=True, kw_only=True)
class ParticlesWithHyperplanes:
    """The particles; where hyperplanes were measured, they are fitted too.

    >>> ParticlesWithHyperplanes(base=ParticleGradientDescent(seed=3)).base.seed
    3
    """

    base: ParticleGradientDescent = field(default_factory=ParticleGradientDescent)

    def statistics(self, domain: Domain) -> Sequence[Query]:
        """No queries: the strategy asks."""
        return self.base.statistics(domain)

    def megabytes(self, domain: Domain, cliques: Sequence[Clique]) -> float:
        """The size of the target tables in MiB of float64."""
        return self.base.megabytes(domain, cliques)

    def fit(
        self,
        domain: Domain,
        measurements: Sequence[Measurement],
        *,
        warm_start: Model | None = None,
        progress: Progress = silent,
    ) -> Particles:
        """A point cloud that fits the tables, and the hyperplanes if they were measured."""
        tables = [each for each in measurements if not isinstance(each.query, HyperplaneQuery)]
        base, total = self.base, estimate_total(domain, tables).value
        for each in measurements:
            if isinstance(each.query, HyperplaneQuery):
                shares, stddev = each.answer / total, each.stddev / total
                finish = HyperplaneFinish(query=each.query, shares=shares, stddev=stddev)
                base = replace(base, finish=finish)
        return base.fit(domain, tables, warm_start=warm_start, progress=progress)
