"""SDV's methods about constraints: declared, so public; no private row is checked against them."""

import warnings
from contextlib import suppress
from copy import deepcopy

import numpy as np
from sdv.cag._errors import ConstraintNotMetError
from sdv.cag._utils import _validate_constraints_single_table
from sdv.errors import RefitWarning, SynthesizerInputError

from sdv_privpgd.columns.schema import PublicDomainError
from sdv_privpgd.plugin.constraint_kinds import taken
from sdv_privpgd.plugin.constraints import valid_rows
from sdv_privpgd.plugin.state import FittedState


class ConstrainedRows(FittedState):
    """Constraints of ``sdv.cag`` that rows will meet."""

    epsilon: float
    delta: float

    def add_constraints(self, constraints) -> None:
        """Adds constraints of ``sdv.cag`` that all sampled rows will meet after the next fit.

        ``Inequality``, ``Range``, ``FixedIncrements``, ``OneHotEncoding``, subclasses of
        ``SingleTableProgrammableConstraint`` whose ``is_valid`` decides row by row, and
        ``sdv_privpgd.FixedCombinations``. They are never fitted: rows of the private table that
        break them are neither found nor reported.

        Raises:
            SynthesizerInputError: For a constraint that would have to be learned from the table,
                that names generated columns, or that the declared values cannot meet.
            ConstraintNotMetError: SDV's, for one that does not fit the metadata.
        """
        modelled = self._description().modelled
        added = [
            taken(constraint, self.metadata, modelled)
            for constraint in _validate_constraints_single_table(constraints, False)
        ]
        if self._fitted:
            self._warn_of_cost("For these constraints to take effect the synthesizer has to be")
        before = self._reject_sampling_constraints
        # SDV's list of constraints that change neither the data nor the metadata.
        self._reject_sampling_constraints = [*before, *deepcopy(added)]
        try:
            description = self._description()
            description.declared.require_possible()
            with suppress(PublicDomainError):
                refusals = description.constraints.limits(description.schema).refusals
                if refusals:
                    raise SynthesizerInputError(refusals[0])
        except BaseException:
            self._reject_sampling_constraints = before
            raise

    def _warn_of_cost(self, why: str) -> None:
        """Says what SDV advises without a word on the cost."""
        warnings.warn(
            f"{why} fitted again, which spends epsilon {self.epsilon:g} at delta {self.delta:g} "
            f"once more on the same people. So far {self.ledger.spent():.4g} was spent.",
            RefitWarning,
            stacklevel=3,
        )

    def validate_constraints(self, synthetic_data) -> None:
        """Checks synthetic rows. Raises SDV's ``ConstraintNotMetError`` with the rows' numbers."""
        for constraint in self._reject_sampling_constraints:
            wrong = ~valid_rows(constraint, synthetic_data, self.metadata)
            if wrong.any():
                raise ConstraintNotMetError(
                    f"{constraint!r} is not met by {wrong.sum()} rows; the first of them are "
                    f"{np.flatnonzero(wrong)[:5].tolist()}."
                )

    def _validate_transform_constraints(self, table_data, enforce_constraint_fitting=False):
        """The table as it is: SDV would fit the constraints on it."""
        del enforce_constraint_fitting
        return table_data
