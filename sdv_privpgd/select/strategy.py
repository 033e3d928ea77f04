"""The protocol of selection strategies."""

from typing import Protocol, runtime_checkable

from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.progress import Progress, silent
from sdv_privpgd.synthesize.engine import Engine


@runtime_checkable
class Strategy(Protocol):
    """Selects queries and has the curator measure them.

    A strategy of your own is a class with this one method. It sees the table through the curator
    alone, which charges for every answer, so it cannot overspend.

    >>> class FirstColumn:
    ...     def run(self, curator, engine, *, progress=silent):
    ...         query = MarginalQuery(curator.domain.attributes[:1])
    ...         return curator.measure([query], curator.ledger.remaining, what="the first column")
    >>> from sdv_privpgd.privacy.queries import MarginalQuery
    >>> isinstance(FirstColumn(), Strategy)
    True
    """

    def run(
        self, curator: Curator, engine: Engine, *, progress: Progress = silent
    ) -> list[Measurement]:
        """Returns the measurements, bought with all that is left of the curator's budget.

        An adaptive strategy fits the engine to what it has measured so far to decide what to ask
        next; it sees the private table through the curator alone.
        """
        ...
