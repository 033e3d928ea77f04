"""Private-PGM: the graphical model that fits noisy tables best, estimated by ``mbi``."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from sdv_privpgd.domain import Clique, Domain
from sdv_privpgd.measure import Measurement, NoisyTable, estimate_total, noisy_tables
from sdv_privpgd.progress import Progress, silent
from sdv_privpgd.queries import Query
from sdv_privpgd.synthesize.engine import Model
from sdv_privpgd.synthesize.graphical import GraphicalModel

_STEPS_AT_ONCE = 50
"""mbi compiles so many steps together and reports after each lot."""

_LARGEST = 2048.0
"""MiB of the largest junction tree that is fitted; its estimation takes several times as much."""

_EXACT = 1e-3
"""Standard deviation, in records, that stands for an answer without noise."""


@dataclass(frozen=True, kw_only=True)
class PrivatePGM:
    """Fits the maximum entropy distribution with the highest likelihood of the measured tables.

    McKenna, Sheldon & Miklau 2019 (Private-PGM), Algorithm 1: mirror descent over the marginals
    of a junction tree, in double precision. It sees noisy answers only, so all it does is
    post-processing; it draws no random numbers. The models that it returns need ``mbi`` neither
    to be loaded nor to be sampled.

    Raises ``ImportError`` where ``mbi`` 2 is not installed.

    Attributes:
        steps: The largest number of steps.
        tolerance: The fit ends early once the loss falls by less than this share of itself, or of
            1, in each of two lots of 50 steps.
    """

    steps: int = 2_500
    tolerance: float = 1e-3

    def __post_init__(self) -> None:
        if not isinstance(self.steps, int) or self.steps < 1:
            raise ValueError(f"steps must be an integer of at least 1, got {self.steps!r}.")
        if not 0 <= self.tolerance < 1:
            raise ValueError(f"tolerance must lie in [0, 1), got {self.tolerance!r}.")
        _require_mbi()  # before anything is spent on answers that could not be fitted

    def statistics(self, domain: Domain) -> tuple[Query, ...]:
        """Nothing besides the tables."""
        del domain
        return ()

    def megabytes(self, domain: Domain, cliques: Sequence[Clique]) -> float:
        """The size of a model of these cliques: MiB of float64 of its junction tree."""
        mbi = _mbi()
        return mbi.junction_tree.hypothetical_model_size(*_numbered(mbi, domain, cliques))

    def fit(
        self,
        domain: Domain,
        measurements: Sequence[Measurement],
        *,
        warm_start: Model | None = None,
        progress: Progress = silent,
    ) -> GraphicalModel:
        """The model of the measured tables; attributes that no table has are uniform.

        ``warm_start`` is where the descent starts if it is a model of this engine. Raises
        ``ValueError`` if the tables' junction tree would be too large to hold.
        """
        total = estimate_total(domain, measurements).value
        tables = noisy_tables(domain, measurements)
        size = self.megabytes(domain, list(tables))
        if size > _LARGEST:
            raise ValueError(
                f"A graphical model of these {len(tables)} tables takes {size:.3g} MiB, above "
                f"{_LARGEST:g}. Measure fewer cliques (strategies MST and AIM do), or fit them "
                "with ParticleGradientDescent, whose size does not depend on how they overlap."
            )
        mbi = _mbi()
        known, cliques = _numbered(mbi, domain, list(tables))
        names = domain.attributes
        start = warm_start.potentials if isinstance(warm_start, GraphicalModel) else {}
        potentials = {
            tuple(names[axis] for axis in clique): values
            for clique, values in self._estimate(
                known,
                dict(zip(cliques, tables.values(), strict=True)),
                total,
                {domain.axes(clique): values for clique, values in start.items()},
                progress,
            ).items()
        }
        tree, _ = mbi.junction_tree.make_junction_tree(known, cliques)
        order, parents = _parents_first(tree)
        own = [tuple(names[axis] for axis in clique) for clique in order]
        return GraphicalModel.of_potentials(domain, own, parents, potentials)

    def _estimate(
        self,
        known: Any,
        tables: dict[tuple[int, ...], NoisyTable],
        total: float,
        start: dict[tuple[int, ...], np.ndarray],
        progress: Progress,
    ) -> dict[tuple[int, ...], np.ndarray]:
        """The log-potentials of the largest of the measured cliques."""
        import jax

        mbi = _mbi()
        lots = -(-self.steps // _STEPS_AT_ONCE)
        bar = iter(progress(range(lots), "fit"))
        found: dict[tuple[int, ...], np.ndarray] = {}
        # The context is this thread's own: a library must not set the precision of others.
        with jax.enable_x64(True):
            if tables:
                model = mbi.estimation.MirrorDescent().estimate(
                    known,
                    [
                        mbi.LinearMeasurement(
                            table.counts.ravel(), clique, max(table.variance**0.5, _EXACT)
                        )
                        for clique, table in tables.items()
                    ],
                    known_total=total,
                    iters=self.steps,
                    callback_fn=lambda _: next(bar),
                    warm_start=_factors(mbi, known, start) if start else None,
                    tol=self.tolerance,
                )
                for clique, factor in model.potentials.tables.items():
                    values = np.array(factor.values)
                    found[clique] = values - values.max()
        for _ in bar:  # what an early end leaves
            pass
        return found


def _require_mbi() -> None:
    """Raises ``ImportError`` unless mbi 2 is installed; imports nothing, as jax takes seconds."""
    try:
        found = version("mbi")
    except PackageNotFoundError:
        found = "none"
    if found.partition(".")[0] != "2":
        raise ImportError(
            f"Graphical models need mbi 2, found {found}: pip install 'sdv-privpgd[pgm]' (Python "
            "3.11 or newer), or use PrivPGDSynthesizer, which needs no extra."
        )


def _mbi() -> Any:
    """The module, imported late: it is optional, and its jax takes seconds."""
    _require_mbi()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on global settings of jax: we set ours in a context
        import mbi
    return mbi


def _numbered(mbi: Any, domain: Domain, cliques: Sequence[Clique]) -> tuple[Any, list]:
    """The domain and the cliques for mbi, with positions for names.

    Sets of integers are walked in the same order in every process, sets of text are not: so fits
    are the same to the last bit.
    """
    known = mbi.Domain(range(len(domain)), domain.sizes)
    return known, [tuple(sorted(domain.axes(clique))) for clique in cliques]


def _factors(mbi: Any, known: Any, start: dict[tuple[int, ...], np.ndarray]) -> Any:
    """Log-potentials in mbi's words."""
    import jax.numpy as jnp

    tables = {
        clique: mbi.Factor(known.project(clique), jnp.asarray(values))
        for clique, values in start.items()
    }
    return mbi.CliqueVector(known, list(tables), tables)


def _parents_first(tree: Any) -> tuple[list[tuple[int, ...]], list[int]]:
    """The cliques of a junction forest and each one's parent; -1 for the first.

    Trees of the forest hang on the first clique, with which they share nothing.
    """
    order: list[tuple[int, ...]] = []
    parents: list[int] = []
    for start in sorted(tree.nodes):
        waiting = [] if start in order else [(start, 0 if order else -1)]
        while waiting:
            clique, parent = waiting.pop()
            below = [other for other in sorted(tree.neighbors(clique)) if other not in order]
            waiting += [(other, len(order)) for other in below]
            order.append(clique)
            parents.append(parent)
    return order, parents
