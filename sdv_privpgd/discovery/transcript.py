"""Discovery's questions with their answers, so that one that ended early can go on. Public.

What discovery asks next follows from what was answered. So whoever has the answers so far comes to
the same question again, and neither reads rows nor pays for those that he has.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from sdv_privpgd.base import cached_property
from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.columns.dtypes import inner_of
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.columns.units import zone_of
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.ledger import FitLedger
from sdv_privpgd.privacy.queries import MarginalQuery, Measurement, Query


@dataclass(frozen=True, kw_only=True, eq=False)
class Answered:
    """What the curator was asked at once, in words, and what he ``found``. Public.

    ``what`` is as the ledger has it, and ``stddev`` of the noise of each count.
    """

    what: str
    names: tuple[str, ...]
    found: Any
    stddev: float
    has_threshold: bool


@dataclass(eq=False)
class Transcript:
    """All that was ``answered`` so far, in order; the ``next`` one is to what is asked now."""

    answered: Sequence[Answered] = ()
    next: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Inquiry:
    """A table with the ledger that pays for questions, and with what was answered so far."""

    table: PrivateTable
    shared: FitLedger
    transcript: Transcript = field(default_factory=Transcript)
    progress: Progress = silent

    @property
    def rows(self) -> int | None:
        """The number of rows, if it is public."""
        return self.table.known_rows(self.shared.ledger.adjacency)

    def about(self, schema: Schema, progress: Progress = silent) -> "Asker":
        """Who asks about codes, of dates by the clock of their time zone."""
        dtypes = self.table.dtypes.items()
        schema = schema.typed({n: own for n, own in dtypes if zone_of(inner_of(own)) is not None})
        return Asker(self, lambda: self.table.curator(schema, self.shared, progress=progress))

    def at_first(self, readings: Sequence[Any], *more: Any) -> "Asker":
        """Who asks about columns of which little is known."""
        return Asker(
            self, lambda: self.table.first_queries(readings, self.shared, self.progress, *more)
        )


@dataclass(eq=False)
class Asker:
    """Asks a curator, who is ``opened``, and reads rows, at the first question that is not known.

    ``stddev`` is the noise of the last answer.
    """

    inquiry: Inquiry
    opened: Callable[[], Curator]
    stddev: float = 0.0

    @cached_property
    def _curator(self) -> Curator:
        return self.opened()

    def measure(
        self,
        queries: Sequence[Query],
        mu_squared: Fraction,
        *,
        what: str,
        progress: Progress = silent,
    ) -> list[Measurement]:
        """As ``Curator.measure`` does."""
        asked, how = (query.describe() for query in queries), {"what": what, "progress": progress}
        ask = lambda: self._curator.measure(queries, mu_squared, **how)
        return self._answer(what, asked, ask, has_threshold=False)

    def tables(
        self, names: Collection[str], mu_squared: Fraction, what: str
    ) -> dict[str, Measurement]:
        """The counts of the codes of some attributes, of equal parts of the budget."""
        if not names:
            return {}
        queries, progress = [MarginalQuery((name,)) for name in names], self.inquiry.progress
        found = self.measure(queries, mu_squared, what=what, progress=progress)
        return dict(zip(names, found, strict=True))

    def discover(
        self, mu_squared: Fraction, delta: Fraction, *, what: str, names: Sequence[str]
    ) -> dict[str, list]:
        """As ``Curator.discover`` does."""
        ask = lambda: self._curator.discover(mu_squared, delta, what=what, names=names)
        return self._answer(what, names, ask, has_threshold=True)

    def _answer(self, what: str, names: Iterable[str], ask: Callable[[], Any], **kind: bool) -> Any:
        """What was answered to that before, or what is answered now.

        Raises ``ValueError`` if something else was asked at this place before.
        """
        known, names = self.inquiry.transcript, tuple(names)
        if known.next == len(known.answered):
            found, charges = ask(), self.inquiry.shared.ledger.charges
            now = Answered(what=what, names=names, found=found, stddev=charges[-1].stddev, **kind)
            known.answered = *known.answered, now
        answered = known.answered[known.next]
        if (answered.what, answered.names) != (what, names):
            raise ValueError(
                "The settings that decide what is looked for have changed since the fit that is "
                "to be finished: public_domain, the metadata or constraints. Set them back, or "
                "fit anew."
            )
        known.next += 1
        self.stddev = answered.stddev
        return answered.found
