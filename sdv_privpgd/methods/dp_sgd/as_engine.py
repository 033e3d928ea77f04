"""Lets these methods go by the names of a strategy and of two engines. To be replaced as one.

Until methods are one protocol, ``PrivateGradients`` measures what a method measures, and a method
is the engine that makes rows of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sdv_privpgd.domain import Domain
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.privacy.queries import Query
from sdv_privpgd.progress import Progress, silent
from sdv_privpgd.synthesize.engine import Model


class AsEngine:
    """A method as an engine."""

    takes_groups = False
    fits_gradients, fits_tables = True, False

    def statistics(self, domain: Domain) -> tuple[Query, ...]:
        """No queries: the method asks for all that it needs."""
        del domain
        return ()

    def fit(
        self,
        domain: Domain,
        measurements: Sequence[Measurement],
        *,
        warm_start: Model | None = None,
        progress: Progress = silent,
    ) -> Model:
        """The method's model."""
        own: Any = self
        return own.model(domain, measurements, warm_start=warm_start, progress=progress)


@dataclass(frozen=True, kw_only=True)
class PrivateGradients:
    """Trains ``DPDiffusion`` or ``DPCTGAN``, the engine, by DP-SGD.

    Attributes:
        steps: The number of samples; ``None`` is the engine's own.
        batch: The number of rows of a sample, on average; ``None`` is the engine's own.

    >>> PrivateGradients(steps=5).own_delta
    Fraction(1, 10)
    """

    steps: int | None = None
    batch: int | None = None

    asks_gradients = True
    """It goes with an engine that has gradients, and with no other."""

    own_delta = Fraction(1, 10)
    """The part of delta that the ledger must reserve for it."""

    def __post_init__(self) -> None:
        check_counts(**{name: each for name, each in vars(self).items() if each is not None})

    def run(
        self, curator: Curator, engine: Any, *, progress: Progress = silent
    ) -> list[Measurement]:
        """Returns the tables and the trained weights, bought with all that is left."""
        own = {name: each for name, each in vars(self).items() if each is not None}
        method = replace(engine, **own)
        return method.measure(curator, progress=progress)


def check_counts(**counts: object) -> None:
    """Raises ``ValueError`` unless all are whole numbers of at least 1."""
    for name, value in counts.items():
        if type(value) is not int or value < 1:
            raise ValueError(f"{name} must be an integer of at least 1, got {value!r}.")
