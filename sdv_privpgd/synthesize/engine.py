"""The protocols of engines and of fitted models."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from sdv_privpgd.domain import Clique, Domain
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.privacy.queries import Query
from sdv_privpgd.progress import Progress, silent


@runtime_checkable
class Model(Protocol):
    """A fitted distribution over the codes of a domain. Public."""

    @property
    def domain(self) -> Domain:
        """The attributes of its rows and their numbers of codes."""
        ...

    @property
    def block(self) -> int:
        """The number of rows that one pass over the model gives; draw them in such blocks."""
        ...

    def marginal(self, clique: Clique) -> np.ndarray:
        """The probabilities of a clique's cells, axes in the clique's order."""
        ...

    def sample(self, num_rows: int, seed: int) -> np.ndarray:
        """Codes of shape (row, attribute). The same seed gives the same rows."""
        ...


@runtime_checkable
class Engine(Protocol):
    """Fits a model to measurements. It sees noisy answers only: all it does is post-processing.

    An engine may say more of itself, which ``sdv_privpgd.matching`` asks before anything is spent:
    an attribute ``takes_groups`` that is False where answers about groups of codes are of no use to
    it, and a method ``refusal(domain, cliques)``: why it cannot model tables of these cliques, in a
    sentence or two, or ``None``.

    >>> from sdv_privpgd import ParticleGradientDescent, PrivatePGM
    >>> isinstance(PrivatePGM(), Engine), isinstance(ParticleGradientDescent(), Engine)
    (True, True)
    """

    def statistics(self, domain: Domain) -> Sequence[Query]:
        """The queries that the engine needs answered besides the strategy's."""
        ...

    def megabytes(self, domain: Domain, cliques: Sequence[Clique]) -> float:
        """The size of a model of measured tables of these cliques, in MiB of float64."""
        ...

    def fit(
        self,
        domain: Domain,
        measurements: Sequence[Measurement],
        *,
        warm_start: Model | None = None,
        progress: Progress = silent,
    ) -> Model:
        """A model of the measurements, reproducible from the engine's own seed."""
        ...


def takes_groups(engine: Engine) -> bool:
    """Whether the engine uses answers about groups of codes, unless it says that it does not."""
    return bool(getattr(engine, "takes_groups", True))


def refusal(engine: Engine, domain: Domain, cliques: Sequence[Clique]) -> str | None:
    """Why the engine cannot model tables of these cliques, ``None`` where it can."""
    own = getattr(engine, "refusal", None)
    return None if own is None else own(domain, cliques)
