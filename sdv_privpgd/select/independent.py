"""Every attribute alone."""

from dataclasses import dataclass

from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.progress import Progress, silent
from sdv_privpgd.select.fixed import AllKWay
from sdv_privpgd.synthesize.engine import Engine


@dataclass(frozen=True, kw_only=True)
class Independent:
    """All 1-way marginals, in one joint Gaussian release that takes the whole budget.

    The baseline of every comparison: what it misses is what dependencies add.
    """

    def run(
        self, curator: Curator, engine: Engine, *, progress: Progress = silent
    ) -> list[Measurement]:
        """One measurement an attribute, bought with all that is left of the budget."""
        return AllKWay(degree=1).run(curator, engine, progress=progress)
