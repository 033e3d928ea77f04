"""Those who have measured, and what their people are promised. Public."""

from dataclasses import dataclass

from sdv_privpgd.estimate.noisy_tables import Total, estimate_total
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.releases.measured import Measured


@dataclass(frozen=True, kw_only=True)
class Holder:
    """One of the holders of a combined table. Public.

    Attributes:
        name: Whose table it is.
        ledger: What was spent on it.
        rows: How many rows it has, noisy where that is private.
        strategy: What chose the questions.
        date: When it was measured.
    """

    name: str
    ledger: PrivacyLedger
    rows: Total
    strategy: str
    date: str

    @classmethod
    def of(cls, measured: Measured) -> "Holder":
        """The holder of a release."""
        return cls(
            name=measured.holder,
            ledger=measured.ledger,
            rows=estimate_total(measured.domain, measured.answers),
            strategy=measured.strategy,
            date=measured.date,
        )

    @property
    def unit(self) -> str:
        """What is protected: one row, or the rows of one person."""
        return self.ledger.unit
