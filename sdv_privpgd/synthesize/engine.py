"""What every engine and every fitted model look like."""

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
        """What the codes of its rows mean."""
        ...

    @property
    def block(self) -> int:
        """How many rows are best drawn at once: a whole pass over what the model holds."""
        ...

    def marginal(self, clique: Clique) -> np.ndarray:
        """The probabilities of a clique's cells, axes in the clique's order."""
        ...

    def sample(self, num_rows: int, seed: int) -> np.ndarray:
        """Codes of shape (row, attribute). The same seed gives the same rows."""
        ...


@runtime_checkable
class Engine(Protocol):
    """Fits a model to measurements. Sees noisy answers only, so all it does is post-processing."""

    def statistics(self, domain: Domain) -> Sequence[Query]:
        """Queries that the engine wants answered besides the strategy's."""
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
