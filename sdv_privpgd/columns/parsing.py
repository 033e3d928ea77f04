"""Facts read from SDV's words: what is declared is checked, with messages in the same words.

Public: nothing here sees a private table.
"""

from collections.abc import Collection, Mapping

import numpy as np
import pandas as pd

from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.cutting import column_of
from sdv_privpgd.columns.declared_ranges import read_dates, read_frequencies, read_numbers
from sdv_privpgd.columns.facts import CategoryFacts, ColumnFacts, TruthFacts
from sdv_privpgd.columns.scalars import category
from sdv_privpgd.columns.vocabulary import blank, modelled, needed, problems


def read_table(
    columns: Mapping[str, Mapping],
    keys: Collection[str] = (),
    public_domain: Mapping[str, Mapping] | None = None,
) -> dict[str, ColumnFacts]:
    """The facts on each modelled column of a table.

    Args:
        columns: SDV's facts on each column. All of them are taken to be public: the caller has
            removed ranges that may have been detected from the data.
        keys: Columns that are primary or alternate keys. They are not modelled.
        public_domain: Facts that take the place of the metadata's.

    Raises:
        ValueError: If a fact is not what its key means, does not apply or contradicts another.
    """
    public_domain = {} if public_domain is None else public_domain
    for problem in problems(columns, keys, public_domain):
        raise ValueError(problem)
    return {
        name: read_facts(name, {**columns[name], **public_domain.get(name, {})})
        for name in modelled(columns, keys)
    }


def describe(name: str, words: Mapping) -> Column:
    """The column that SDV's words, which name its domain, describe.

    Raises:
        ValueError: As ``read_facts``.
    """
    return column_of(name, read_facts(name, words))


def read_facts(name: str, words: Mapping) -> ColumnFacts:
    """The facts on one column; what is left out is not known.

    Raises:
        ValueError: For facts that are not what SDV's words mean or that contradict another.
    """
    for key in ("cut_points", "frequencies"):
        if words.get(key) is not None and blank(words):
            raise ValueError(
                f"{key} of {name!r} are about cells that nobody declared. Declare "
                f"{' and '.join(needed(words['sdtype']))} as well, or leave {key} out."
            )
    nullable = words.get("range_is_nullable")
    if not isinstance(nullable, bool | np.bool_ | None):
        raise ValueError(f"range_is_nullable of {name!r} must be True or False, got {nullable!r}.")
    nullable = None if nullable is None else bool(nullable)
    if words["sdtype"] == "boolean":
        return TruthFacts(nullable=nullable)
    if words["sdtype"] == "numerical":
        return read_numbers(name, words, nullable)
    if words["sdtype"] == "datetime":
        return read_dates(name, words, nullable)
    return _categories(name, words, nullable)


def _categories(name: str, words: Mapping, nullable: bool | None) -> CategoryFacts:
    values = words.get("range_values")
    if not isinstance(values, list | tuple | range | np.ndarray | pd.Index | pd.Series | None):
        raise ValueError(f"range_values of {name!r} must be a list, got {values!r}.")
    listed = [] if values is None else list(values)
    declared = tuple(category(value) for value in listed)
    for value, read in zip(listed, declared, strict=True):
        if read is None:
            raise ValueError(
                f"range_values of {name!r} may hold strings, numbers, booleans, dates and times "
                f"without a time zone, got {value!r}. "
                "Say with range_is_nullable whether values may be missing."
            )
    if len(set(declared)) < len(declared):
        raise ValueError(
            f"range_values of {name!r} must differ, got {listed!r}. Values that Python "
            "finds equal, like 1, 1.0 and True, are the same: keep one of them."
        )
    other = words.get("other_value")
    read = category(other)
    if other is not None and (read is None or read in declared):
        raise ValueError(
            f"other_value of {name!r} stands for values that are not in range_values: it must be "
            f"a string, a number or a boolean that is not one of them, got {other!r}."
        )
    return CategoryFacts(
        values=None if values is None else declared,
        other=read,
        is_ordered=words["sdtype"] == "ordinal",
        frequencies=read_frequencies(name, words, "range_values", len(declared)),
        nullable=nullable,
    )
