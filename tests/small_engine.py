"""An engine for tiny domains: the maximum entropy joint table, by iterative proportional fitting.

Independent of the engines under test elsewhere; deterministic, exact for consistent tables.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.estimate.noisy_tables import estimate_total, noisy_tables
from sdv_privpgd.estimate.support import simplex_projection
from sdv_privpgd.synthesize.engine import Engine


@dataclass(frozen=True)
class Joint:
    """Probabilities of every cell of a tiny domain."""

    domain: Domain
    table: np.ndarray
    block: int = 1

    def marginal(self, clique):
        axes = self.domain.axes(clique)
        others = tuple(axis for axis in range(len(self.domain)) if axis not in axes)
        # Summing leaves the axes in the domain's order; the clique's own is asked for.
        return self.table.sum(axis=others).transpose(np.argsort(np.argsort(axes)))

    def sample(self, num_rows, seed):
        cells = np.random.default_rng(seed).choice(self.table.size, num_rows, p=self.table.ravel())
        return np.stack(np.unravel_index(cells, self.table.shape), axis=1)


@dataclass
class MaximumEntropy(Engine):
    """Fits each table in turn; ``fits`` counts calls, and whether each was a warm start."""

    sweeps: int = 20
    fits: list = field(default_factory=list)
    takes = ("tables", "mean embeddings", "half-spaces")  # it leaves the last two unused

    def statistics(self, domain):
        return ()

    def megabytes(self, domain, cliques):
        return sum(domain.size(clique) for clique in set(cliques)) * 8 / 2**20

    def fit(self, domain, measurements, *, warm_start=None, progress=None):
        self.fits.append(warm_start is not None)
        total = estimate_total(domain, measurements).value
        table = np.full(domain.sizes, 1 / domain.size(domain.attributes))
        targets = {
            clique: simplex_projection(noisy.counts / total, 1.0)
            for clique, noisy in noisy_tables(domain, measurements).items()
        }
        for _ in range(self.sweeps):
            for clique, target in targets.items():
                now = Joint(domain, table).marginal(clique)
                ratio = np.divide(target, now, out=np.ones_like(target), where=now > 0)
                axes = domain.axes(clique)
                table = table * ratio.reshape(
                    [size if axis in axes else 1 for axis, size in enumerate(domain.sizes)]
                )
                table = (
                    table / table.sum() if table.sum() > 0 else np.full_like(table, 1 / table.size)
                )
        return Joint(domain, table)


def measured_by(method, curator, engine=None, **more):
    """What a method measures with an engine, by default a small one."""
    engine = MaximumEntropy() if engine is None else engine
    return replace(method, engine=engine).measure(curator, **more)
