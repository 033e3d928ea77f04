"""What the fits of one object have paid for: the books, and answers that no model was made of."""

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from sdv_privpgd.fitting.door import RunningFit
from sdv_privpgd.fitting.unfinished import Unfinished, note_on
from sdv_privpgd.privacy.ledger import PrivacyLedger

LOST = (
    "The fit ended in the middle of a question. What that had cost stays on the books, and of its "
    "answers nothing could be kept: a new fit asks again."
)
"""What is said where a fit has spent something and nothing of it is of use."""


class Account:
    """The books of all fits of an object. Public, and so are its pickles.

    Attributes:
        ledger: Every charge so far; ``None`` before the first.
        unfinished: What a fit that failed had paid for, until another succeeds.
        lock: Held while one thread fits.
    """

    def __init__(
        self, ledger: PrivacyLedger | None = None, unfinished: Unfinished | None = None
    ) -> None:
        self.ledger = ledger
        self.unfinished = unfinished
        self.lock = threading.RLock()

    @contextmanager
    def charged(
        self, running: RunningFit, names: tuple[bool, Any], *, goes_on: bool = False
    ) -> Iterator[None]:
        """Lets a fit run while one thread has the object to itself.

        What it charges stays on the books. If it fails, its answers are kept, and all else is as
        it was. One that ``goes_on`` has been warned of before. ``names`` are what ``Unfinished``
        keeps of the table's names.
        """
        with self.lock:
            if not goes_on and self.ledger is not None:
                self._warn_of_refit(self.ledger.followed_by(running.fit.books.ledger))
            running.before = self.ledger
            try:
                yield
                self.unfinished = None
            except BaseException as error:
                left = running.unfinished
                if left is not None:
                    self.unfinished = replace(left.kept, names=names)
                    note_on(error, self.unfinished.remedy())
                elif running.has_charged:
                    note_on(error, LOST)
                raise
            finally:
                if running.has_charged:
                    self.ledger = running.ledger

    def _warn_of_refit(self, composed: PrivacyLedger) -> None:
        kept = " One failed after it had paid: finish() makes use of its answers instead."
        warnings.warn(
            f"This synthesizer was fitted before. Together the fits spend epsilon "
            f"{composed.epsilon:.4g} at delta {composed.delta:g} on the people in the table."
            f"{kept if self.unfinished is not None else ''}",
            stacklevel=6,
        )

    def __getstate__(self) -> dict[str, Any]:
        return {"ledger": self.ledger, "unfinished": self.unfinished}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.lock = threading.RLock()
