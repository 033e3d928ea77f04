"""What a fit that failed had paid for: kept, so that it can be finished from there. Public."""

import math
import sys
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.discovery.transcript import Answered
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.fit import Fit
from sdv_privpgd.fitting.opening import opened
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.privacy.accounting import epsilon_of
from sdv_privpgd.privacy.boundary import EncodedTable, PrivateTable
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import CountQuery, GroupedMarginalQuery, MarginalQuery, Measurement


@dataclass(frozen=True, kw_only=True)
class Unfinished:
    """Noisy answers that no model was made of.

    Attributes:
        description: What was public of the table, with what was discovered.
        doubts: What discovery has to say of columns' ranges; ``None`` if it had not ended.
        looked: What discovery had been answered until then; of one that had ended the number of
            rows, which says whether a table can be the same.
        ledger: The books of the fit. What they have left can still be spent.
        schema: What the codes mean that the answers are about; ``None`` before any was asked for.
        answers: In the order in which they were asked for.
        names: Whether a frame was fitted, and the names of its columns, where SDV's class asks.
    """

    description: Description
    doubts: Mapping[str, str] | None
    ledger: PrivacyLedger
    schema: Schema | None
    answers: tuple[Measurement, ...]
    looked: tuple[Answered, ...] = ()
    names: tuple[bool, Any] = (True, None)

    @classmethod
    def of(cls, fit: Fit) -> "Unfinished":
        """What is left of a fit that failed."""
        asked = fit.curator is not None
        return cls(
            description=fit.description,
            doubts=fit.doubts if fit.has_discovered else None,
            ledger=fit.books.ledger,
            schema=fit.description.attributes if asked else None,
            answers=fit.curator.measurements if fit.curator is not None else (),
            looked=tuple(
                each
                for each in fit.transcript.answered
                if not fit.has_discovered or _counts(each.found)
            ),
        )

    @property
    def has_tables(self) -> bool:
        """Whether a model can be made of the answers."""
        tables = MarginalQuery | GroupedMarginalQuery
        return any(isinstance(answer.query, tables) for answer in self.answers)

    @property
    def known_rows(self) -> int | None:
        """The number of rows, where the fit had released it as it is."""
        counts = _counts([*self.answers, *(each for look in self.looked for each in look.found)])
        return next((int(each.answer[0]) for each in counts if not each.stddev), None)

    def remedy(self) -> str:
        """What can be done with it."""
        if not self.has_tables:
            return (
                "What was paid for is kept: finish(data) with the same table spends what is left "
                "of the budget, and asks for nothing twice."
            )
        more = " With the same table, finish(data), what is left of the budget is spent as well."
        return (
            "What was paid for is kept: finish() makes a model of it, at no cost."
            f"{more if self.ledger.remaining else ''}"
        )

    def opened(self, table: Any, settings: Settings) -> PrivateTable:
        """The same table once more.

        Raises ``ValueError`` for another one, as far as that is public.
        """
        settings.require(self.ledger)
        private = opened(table, self.description, self.ledger.bound, settings.objections)
        self.require_same_rows(private)
        return private

    def require_same_rows(self, table: PrivateTable | EncodedTable) -> None:
        """Raises ``ValueError`` for another number of rows, where that is public."""
        rows = table.known_rows(self.ledger.adjacency)
        if rows is not None and self.known_rows not in (None, rows):
            raise ValueError(
                f"The table of the fit that stopped had {self.known_rows:,} rows, and this one has "
                f"{rows:,}: hand over the same one."
            )

    def require(self, settings: Settings, description: Description, *, with_data: bool) -> None:
        """Raises ``ValueError`` unless it can be finished under these settings."""
        settings.require(self.ledger)
        if description.visits != self.description.visits or (
            self.schema is not None and description.attributes != self.schema
        ):
            raise ValueError(
                "The settings that give the noisy answers their meaning have changed since the fit "
                "that is to be finished: public_domain, method, enforce_rounding, constraints or "
                "people. Set them back, or fit anew."
            )
        if not (self.has_tables or with_data):
            raise ValueError(
                "No table was asked for before the fit failed. Call finish(data) with the table of "
                "that fit: what was answered is not paid for again."
            )


def _counts(found: Iterable[Any]) -> list[Measurement]:
    """The numbers of rows among what was answered."""
    return [
        each
        for each in found
        if isinstance(each, Measurement) and isinstance(each.query, CountQuery)
    ]


def booked(
    books: PrivacyLedger | None, begun: PrivacyLedger, now: PrivacyLedger
) -> PrivacyLedger | None:
    """The books of all fits with what was charged since one of them began, or went on."""
    charged = now.charges[len(begun.charges) :]
    if not charged:
        return books
    if books is None or books == begun:
        return now
    if not begun.charges:
        return books.followed_by(now)
    grown = replace(
        books, charges=books.charges + charged, budget=books.budget + now.budget - begun.budget
    )
    if grown.budget == books.budget:
        return grown
    left = float(Fraction(books.delta) - books.reserved)
    return replace(grown, epsilon=epsilon_of(grown.budget, left) if left > 0 else math.inf)


def note_on(error: BaseException, note: str) -> None:
    """Adds a sentence to an error; where Python cannot, it is a warning."""
    if sys.version_info >= (3, 11):
        error.add_note(note)
    else:
        warnings.warn(note, stacklevel=2)
