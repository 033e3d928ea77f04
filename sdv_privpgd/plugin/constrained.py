"""SDV's methods about constraints: declared, so public; no private row is checked against them."""

import warnings
from contextlib import suppress
from copy import deepcopy
from dataclasses import fields
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from sdv import cag
from sdv.cag._errors import ConstraintNotMetError
from sdv.cag._utils import _validate_constraints
from sdv.cag.base import BaseConstraint
from sdv.cag.programmable_constraint import ProgrammableConstraintHarness
from sdv.errors import RefitWarning, SynthesizerInputError
from sdv.metadata import Metadata

from sdv_privpgd.columns.schema import PublicDomainError
from sdv_privpgd.constraints import kinds
from sdv_privpgd.constraints.repair import ConstraintError
from sdv_privpgd.plugin.state import FittedState

_KINDS = (
    (cag.Inequality, kinds.Inequality),
    (cag.Range, kinds.Range),
    (cag.FixedIncrements, kinds.FixedIncrements),
    (cag.OneHotEncoding, kinds.OneHotEncoding),
)
"""SDV's classes, and ours that say the same."""


class ConstrainedRows(FittedState):
    """Constraints of ``sdv.cag`` that rows will meet."""

    epsilon: float

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
        added = [
            _taken(constraint, self.metadata)
            for constraint in _validate_constraints(constraints, False)
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
                    raise ConstraintError(refusals[0])
        except BaseException as error:
            self._reject_sampling_constraints = before
            if isinstance(error, ConstraintError):
                raise SynthesizerInputError(str(error)) from error
            raise

    def _warn_of_cost(self, why: str) -> None:
        """Says what SDV advises without a word on the cost."""
        ledger = self.ledger
        warnings.warn(
            f"{why} fitted again, which spends epsilon {self.epsilon:g} at delta {ledger.delta:g} "
            f"once more on the same people. So far {ledger.spent():.4g} was spent.",
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


def translated(constraint: Any) -> kinds.Constraint:
    """Returns our constraint that says what one of SDV's does, or ours itself."""
    if isinstance(constraint, ProgrammableConstraintHarness):
        own = constraint.programmable_constraint
        return kinds.ProgrammableConstraint(own.is_valid, f"{type(own).__name__}.is_valid")
    for theirs, ours in _KINDS:
        if isinstance(constraint, theirs):
            said, names = vars(constraint), [each.name for each in fields(ours)]
            return ours(*(said.get(f"_{name}", said.get(name)) for name in names))  # pyright: ignore
    return constraint


def _taken(constraint: Any, metadata: Metadata) -> Any:
    """Returns the constraint as it is kept: SDV's own, or our ``FixedCombinations``.

    Raises:
        SynthesizerInputError: For one that would have to be learned from the table, or that is
            none of these.
        ConstraintNotMetError: SDV's, for one that does not fit the metadata.
    """
    if isinstance(constraint, cag.ProgrammableConstraint):
        constraint = ProgrammableConstraintHarness(constraint)
    elif type(constraint) is cag.FixedCombinations:
        raise SynthesizerInputError(
            "sdv.cag.FixedCombinations learns the combinations from the private table, outside the "
            "privacy budget. Use sdv_privpgd.FixedCombinations(column_names, combinations)."
        )
    elif not isinstance(constraint, (kinds.FixedCombinations, *(theirs for theirs, _ in _KINDS))):
        raise SynthesizerInputError(
            f"{type(constraint).__name__} is not supported: it may have to learn from the private "
            f"table. Supported are {[kind.__name__ for kind, _ in _KINDS]} of sdv.cag, subclasses "
            "of its SingleTableProgrammableConstraint, and sdv_privpgd.FixedCombinations."
        )
    if isinstance(constraint, BaseConstraint):
        constraint.validate(metadata=metadata)
    return constraint


def valid_rows(constraint: Any, table: pd.DataFrame, metadata: Metadata) -> np.ndarray:
    """Returns which rows of a table meet a constraint, bool. For synthetic rows."""
    if isinstance(constraint, cag.Range):
        # Unfitted, SDV's compares dates that are written as text letter by letter.
        pairs = combinations(translated(constraint).columns, 2)
        parts = [cag.Inequality(*pair, constraint.strict_boundaries) for pair in pairs]
        return np.all([valid_rows(part, table, metadata) for part in parts], axis=0)
    if isinstance(constraint, cag.ProgrammableConstraint):
        constraint = ProgrammableConstraintHarness(constraint)
    told = () if isinstance(constraint, kinds.FixedCombinations) else (metadata,)
    return pd.Series(constraint.is_valid(table, *told)).to_numpy(dtype=bool)
