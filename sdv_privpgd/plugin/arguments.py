"""What SDV hands us, taken apart: metadata, names, arguments, conditions and constraints."""

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import fields
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from sdv import cag, version
from sdv.cag.base import BaseConstraint
from sdv.cag.programmable_constraint import ProgrammableConstraintHarness
from sdv.errors import InvalidDataError, RefitWarning, SynthesizerInputError
from sdv.metadata import Metadata
from sdv.single_table.base import SYNTHESIZER_LOGGER

from sdv_privpgd.columns.vocabulary import as_declared
from sdv_privpgd.constraints import kinds
from sdv_privpgd.fitting.settings import People, with_sequence

_KINDS = (
    (cag.Inequality, kinds.Inequality),
    (cag.Range, kinds.Range),
    (cag.FixedIncrements, kinds.FixedIncrements),
    (cag.OneHotEncoding, kinds.OneHotEncoding),
)
"""SDV's classes of constraints, and ours that say the same."""

RANGE_KEYS = (
    "range_min",
    "range_max",
    "range_values",
    "range_is_nullable",
    "decimal_places",
    "high_cardinality",
)
"""Column metadata that SDV's detection fills from the values of the table.

Types, keys and datetime formats, which it chooses by looking as well, are taken as public.
"""


def public_facts(
    metadata: Metadata, domain_of: Callable[[str], Any], *, keep_ranges: bool
) -> dict[str, Any]:
    """What metadata says, without what detection reads off the values unless it is to be kept.

    Types are those that the tables' domains declare, if they do.
    """
    if not isinstance(metadata, Metadata):
        raise SynthesizerInputError(
            f"metadata must be an sdv.metadata.Metadata, got {type(metadata).__name__}."
        )
    facts = deepcopy(metadata.to_dict())
    for name, table in facts.get("tables", {}).items():
        if not table.get("columns"):
            raise SynthesizerInputError(f"The metadata names no column of the table {name!r}.")
        for column in table["columns"].values():
            for key in () if keep_ranges else RANGE_KEYS:
                column.pop(key, None)
        keys = [table.get("primary_key"), *table.get("alternate_keys", ())]
        table["columns"] = as_declared(table["columns"], keys, domain_of(name))
    return facts


def public_copy(
    metadata: Metadata, people: People, domain: Any, *, keep_ranges: bool
) -> tuple[Metadata, People]:
    """One table's metadata without what detection reads off the values, and whose the rows are.

    A sequence key and index leave the metadata, and are the people's. Ranges stay if asked for.

    Raises:
        SynthesizerInputError: For several tables, whose unit of privacy is not a row; for a
            sequence where nobody says how many of its rows are protected; and for people of another
            column, or in another order.
    """
    facts = public_facts(metadata, lambda _: domain, keep_ranges=keep_ranges)
    if len(metadata.tables) > 1:
        raise SynthesizerInputError(
            f"The metadata has {len(metadata.tables)} tables, {sorted(metadata.tables)}. One is "
            "taken here: rows of one person in several tables need one privacy budget over all of "
            "them, as PrivPGDMultiTableSynthesizer has it."
        )
    for table in facts.get("tables", {}).values():
        try:
            people = with_sequence(people, table)
        except ValueError as error:
            raise SynthesizerInputError(str(error)) from None
        for key in ("sequence_key", "sequence_index"):
            table.pop(key, None)
    return Metadata.load_from_dict(facts), people


def column_names(table: pd.DataFrame) -> list[str]:
    """The names of the columns as text, as SDV's detection writes them."""
    return list(table.columns.to_flat_index().astype(str))


def original_names(table: pd.DataFrame, order: Sequence[str]) -> pd.Index:
    """The caller's own names in the metadata's order; empty if SDV's names are the same."""
    if all(isinstance(name, str) for name in table.columns):
        return pd.Index([])
    names = column_names(table)
    return table.columns.take([names.index(name) for name in order])


def log_event(
    synthesizer: Any, event: str, numbers: Mapping[str, int], *, logger: Any = None
) -> None:
    """Tells SDV's log of an event, as SDV's own synthesizers do. The numbers are public."""
    log: Any = logger or SYNTHESIZER_LOGGER
    log.info(
        {
            "EVENT": event,
            "TIMESTAMP": datetime.datetime.now(),
            "SYNTHESIZER CLASS NAME": type(synthesizer).__name__,
            "SYNTHESIZER ID": synthesizer._synthesizer_id,
            "TOTAL NUMBER OF TABLES": 1,
            **numbers,
        }
    )


def stamp_fitted(synthesizer: Any) -> None:
    """Sets what SDV's own synthesizers say of their last fit."""
    synthesizer._fitted = True
    synthesizer._fitted_date = datetime.datetime.today().strftime("%Y-%m-%d")
    synthesizer._fitted_sdv_version = version.community
    synthesizer._fitted_sdv_enterprise_version = version.enterprise


def refit_warning(synthesizer: Any) -> RefitWarning:
    """What constraints of a fitted synthesizer cost. SDV advises a refit without a word on that."""
    ledger = synthesizer.ledger
    return RefitWarning(
        "For these constraints to take effect the synthesizer has to be fitted again, which spends "
        f"epsilon {synthesizer.epsilon:g} at delta {ledger.delta:g} once more on the same people. "
        f"So far {ledger.spent():.4g} was spent."
    )


@contextmanager
def as_invalid_data() -> Iterator[None]:
    """Says our ``ValueError`` about a table by SDV's ``InvalidDataError``."""
    try:
        yield
    except ValueError as error:
        raise InvalidDataError([str(error)]) from None


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


def taken(constraint: Any, metadata: Metadata) -> Any:
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
    extra = () if isinstance(constraint, kinds.FixedCombinations) else (metadata,)
    return pd.Series(constraint.is_valid(table, *extra)).to_numpy(dtype=bool)
