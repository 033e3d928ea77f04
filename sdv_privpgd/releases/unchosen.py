"""The engine of a measurement, whose answers others make rows of."""

from collections.abc import Sequence
from dataclasses import dataclass

from sdv_privpgd.base.domain import Clique, Domain
from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.synthesize.engine import Engine, Model
from sdv_privpgd.synthesize.pgm import PrivatePGM


@dataclass(frozen=True)
class Unchosen(Engine):
    """The engine of a measurement: whoever combines releases chooses the one that makes rows.

    A method that looks at a model of its earlier answers gets that of Private-PGM. What that
    engine could not take at the end is no reason to refuse it here.
    """

    def megabytes(self, domain: Domain, cliques: Sequence[Clique]) -> float:
        """The size of a graphical model of these cliques."""
        return PrivatePGM().megabytes(domain, cliques)

    def fit(
        self,
        domain: Domain,
        measurements: Sequence[Measurement],
        *,
        warm_start: Model | None = None,
        progress: Progress = silent,
    ) -> Model:
        """The graphical model of the measurements."""
        return PrivatePGM().fit(domain, measurements, warm_start=warm_start, progress=progress)
