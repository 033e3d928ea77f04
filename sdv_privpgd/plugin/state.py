"""What a synthesizer keeps of its fits: what is public of the table, the books, the model."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pandas as pd
from sdv.errors import NotFittedError
from sdv.single_table.base import BaseSingleTableSynthesizer

from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.fit import Fitted
from sdv_privpgd.fitting.fitted import Account, FittedTable
from sdv_privpgd.fitting.resume import on_several_releases
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.methods.pipeline import Release
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.sampling.families import RowMaker


class FittedState(BaseSingleTableSynthesizer, ABC):
    """A synthesizer's state, and what its parts ask of each other. All of it is public."""

    _fitted_table: FittedTable | None
    """Of the last fit that succeeded."""
    dialect: Mapping[str, Any] = MappingProxyType({})
    """How the command line was told to read and write text. No cell decides it."""
    ledger_file: tuple[Any, ...] | None = None
    """The file of the ledger that the command line was told, how many of the charges it has, from
    the first on, and what it has in the place of the others, if anything; ``None`` where there was
    none. No cell decides it."""
    verbose: bool
    """Whether bars are shown."""
    _account: Account
    """The books of all fits, and what one that failed had paid for."""
    _dtypes: Mapping[str, Any]
    """Those of the table that no cell chose."""
    _gives_frames: bool
    """Whether a DataFrame was fitted, and not a dict of one."""
    _original_columns: pd.Index
    """The names of the fitted table's columns."""

    @property
    def ledger(self) -> PrivacyLedger:
        """Every charge of every fit of this object, exact. Public."""
        ledger = self._account.ledger
        return self._settings().ledger() if ledger is None else ledger

    @property
    def fitted_table(self) -> FittedTable:
        """The fitted table, as ``fit_table`` returns it, with the books of all fits. Public."""
        self._require_fitted()
        assert self._fitted_table is not None
        table, own = self._fitted_table, self._fitted_table.fitted.release
        notes = () if own is None else on_several_releases(self.ledger, own.ledger)
        return replace(
            table,
            ledger=self.ledger,
            warnings=(*table.warnings, *notes),
            date=str(self._fitted_date),
            name=str(self._table_name),
        )

    @property
    def _model_of_table(self) -> Fitted | None:
        return None if self._fitted_table is None else self._fitted_table.fitted

    @property
    def _described(self) -> Mapping[str, Mapping]:
        """SDV's description of each column, in order."""
        return self._get_table_metadata().columns

    @property
    def _release(self) -> Release | None:
        return None if self._model_of_table is None else self._model_of_table.release

    @property
    def _sampler(self) -> RowMaker | None:
        return None if self._model_of_table is None else self._model_of_table.sampler

    @abstractmethod
    def _check_settings(self) -> None:
        """Raises ``ValueError`` for a setting that no fit can work with."""

    @abstractmethod
    def _settings(self) -> Settings:
        """The settings, checked."""

    @abstractmethod
    def _description(self) -> Description:
        """What is public of the table: of the one that was fitted, once there is one."""

    @abstractmethod
    def _open(self, data: Any, description: Description) -> PrivateTable:
        """The described columns of a table, in the metadata's order. Private."""

    @abstractmethod
    def _kept(self, table: PrivateTable, description: Description) -> dict[str, Any]:
        """The dtypes that rows come back in, because no cell chose them. Public."""

    @abstractmethod
    def _ready_generators(self, description: Description) -> None:
        """Makes what is generated ready for rows."""

    def _told(self) -> dict[str, Any]:
        """What a fit would be told, but for what the settings and the description hold."""
        left_out = ("public_domain", "method")
        return {
            name: deepcopy(value)
            for name, value in self.get_parameters().items()
            if name not in left_out
        }

    def _schema(self) -> Schema:
        """The modelled columns. Raises ``PublicDomainError`` where a domain is not known.

        Those that an order of rows adds are not the user's.
        """
        fitted = self._model_of_table
        description = self._description() if fitted is None else fitted.description
        own = (each for each in description.schema.columns if each.name in self._described)
        return replace(description.schema, columns=tuple(own))

    def _require_fitted(self) -> None:
        if not self._fitted:
            raise NotFittedError("There is nothing to show yet. Please fit your synthesizer first.")
