"""What every selection strategy looks like."""

from typing import Protocol, runtime_checkable

from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.progress import Progress, silent
from sdv_privpgd.synthesize.engine import Engine


@runtime_checkable
class Strategy(Protocol):
    """Selects queries and has the curator measure them."""

    def run(
        self, curator: Curator, engine: Engine, *, progress: Progress = silent
    ) -> list[Measurement]:
        """The measurements, bought with all that is left of the curator's budget.

        An adaptive strategy fits the engine to what it has measured so far to see what to ask
        next; it sees the private table through the curator alone.
        """
        ...
