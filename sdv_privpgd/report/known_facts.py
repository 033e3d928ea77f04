"""The public facts after a fit that warnings are made of."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from sdv_privpgd.base.domain import Clique, Domain
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.facts import ColumnFacts
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.estimate.noisy_tables import (
    NoisyTable,
    Total,
    estimate_total,
    margin_estimates,
    noisy_tables,
)
from sdv_privpgd.pipeline import Release
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.measurement import Measurement

SURE = 3.0
"""Standard deviations of the noise that a finding must exceed."""


class Answers(NamedTuple):
    """Noisy answers that no model is made of, where a holder has measured. Public."""

    domain: Domain
    """The domain of the codes."""
    measurements: tuple[Measurement, ...]
    """The answers."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """The public facts after a fit.

    Attributes:
        schema: The modelled columns.
        release: The release of the fit, if any column was modelled, or answers alone.
        ledger: The ledger of this fit.
        declared: What was declared of each column.
        doubts: Sentences on columns whose domain the noise has left uncertain, or beyond whose
            range many rows lie.
        repeated_ids: Columns of ids that are no keys, so that several rows may have one.
        added: Columns that an order of rows adds, of which there is nothing to mend.
    """

    schema: Schema
    release: Release | Answers | None
    ledger: PrivacyLedger
    declared: Mapping[str, ColumnFacts]
    doubts: Mapping[str, str]
    repeated_ids: tuple[str, ...]
    added: tuple[str, ...] = ()

    @property
    def columns(self) -> list[Column]:
        """The modelled columns of the table."""
        return [column for column in self.schema.columns if column.name not in self.added]

    @cached_property
    def noisy(self) -> dict[Clique, NoisyTable]:
        """The measured tables over codes, those of a clique averaged."""
        if self.release is None:
            return {}
        return noisy_tables(self.release.domain, self.release.measurements)

    @cached_property
    def tables(self) -> dict[str, NoisyTable]:
        """The noisy counts of each column that is in some measured table."""
        return {name: table for (name,), table in margin_estimates(self.noisy, 1).items()}

    @cached_property
    def total(self) -> Total:
        """The number of rows. There must be a release."""
        assert self.release is not None
        return estimate_total(self.release.domain, self.release.measurements)
