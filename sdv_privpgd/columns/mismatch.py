"""Finds columns whose dtype shows that no cell can be as declared, before anything is spent.

This is decided from dtypes and declarations alone. A dtype that text, numbers and missing cells can
all have (objects, categories) shows nothing and passes. Floats count as numbers, because one
missing cell turns whole numbers into floats; a column of text that is wholly missing has to be
converted.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd.columns.dates import BEYOND, to_ticks
from sdv_privpgd.columns.dtypes import is_wide
from sdv_privpgd.columns.facts import CategoryFacts, ColumnFacts, DateFacts, NumberFacts, TruthFacts
from sdv_privpgd.columns.scalars import LARGEST_WHOLE
from sdv_privpgd.columns.units import digits_of


def mismatches(dtypes: Mapping[str, Any], facts: Mapping[str, ColumnFacts]) -> list[str]:
    """Sentences on the columns that cannot be read as declared, with the remedy."""
    said = (_mismatch(name, dtypes[name], known) for name, known in facts.items())
    return [sentence for sentence in said if sentence is not None]


def misnamed(names: Sequence[str], described: Collection[str], has_others: bool) -> list[str]:
    """Sentences on names of a table's columns that are not as described.

    A table that ``has_others`` may have columns that nobody described.
    """
    names = [name for name in names if name in described or not has_others]
    return [
        f"The columns {sorted(map(str, wrong))} are {what}."
        for what, wrong in (
            ("not present in the metadata", [n for n in names if n not in described]),
            ("missing in the data", [n for n in described if n not in names]),
            ("there more than once", {n for n in names if names.count(n) > 1}),
        )
        if wrong
    ]


def on_ends(stated: Mapping[str, ColumnFacts], known: Mapping[str, ColumnFacts]) -> list[str]:
    """Sentences on whole numbers and dates, and on ranges found, that reach what can be told apart.

    ``stated`` is what was declared of each column, and ``known`` what is known after a fit.
    """
    numbers = [
        name
        for name, facts in known.items()
        if _reaches(facts, NumberFacts, (1 - LARGEST_WHOLE, LARGEST_WHOLE))
        and (getattr(facts, "decimal_places", None) == 0 or stated[name].lacks_domain)
    ]
    dates = [name for name, facts in known.items() if _reaches(facts, DateFacts, BEYOND)]
    of_numbers = (
        f"The numbers of {numbers!r} reach 2**62 or -2**62, as which all beyond are read. If they "
        "are hashes or ids, leave them out; if they are amounts, divide them."
    )
    of_dates = (
        f"The dates of {dates!r} reach the first or the last day that is told apart: all before "
        "1678-01-03 count as one, which is written 0001-01-01, and all after 2262-04-09 as one, "
        "which is written 9999-12-31. If they are no placeholders, give their years as numbers."
    )
    return [of_numbers] * bool(numbers) + [of_dates] * bool(dates)


def on_wide(dtypes: Mapping[str, Any], facts: Mapping[str, ColumnFacts]) -> list[str]:
    """A sentence on undeclared numbers whose types hold larger whole ones than are told apart."""
    wide = {
        name: str(dtypes[name])
        for name, known in facts.items()
        if isinstance(known, NumberFacts) and known.lacks_domain and is_wide(dtypes.get(name))
    }
    if not wide:
        return []
    return [
        f"The types of {wide} hold whole numbers of 2**62 and beyond, which are read as 2**62. If "
        "they are hashes or ids, leave them out; if they are amounts, declare their range, or "
        "divide them."
    ]


def _reaches(
    facts: ColumnFacts, kind: type[NumberFacts | DateFacts], ends: tuple[int, int]
) -> bool:
    """Whether a range has such an end, at which a row was found if rows were looked for."""
    if not isinstance(facts, kind) or facts.lacks_domain:
        return False
    (low, high), (first, last), rows = facts.ends, ends, facts.frequencies or (1.0,)
    if isinstance(facts, DateFacts):  # the last year begins before the last day
        low, high, first, last = to_ticks(np.array([low, high, first, last]), facts.unit)
    return bool(low <= first and rows[0] >= 1) or bool(high >= last and rows[-1] >= 1)


def _mismatch(name: str, dtype: Any, facts: ColumnFacts) -> str | None:
    holds, is_date = _held(dtype), isinstance(facts, DateFacts)
    if holds is None:
        return None
    written = getattr(facts, "number_format", None)
    if holds == "numbers" and "%" in getattr(written, "example", ""):
        return (
            f"Column {name!r} has the dtype {dtype}, and its number_format writes percentages in "
            "text: numbers such as 0.12, as which Excel keeps 12 %, would come back as 0.12 %. "
            f"Leave number_format out, or convert the column.{_if_empty(dtype)}"
        )
    if (holds == "dates") == is_date:
        return _of_categories(name, dtype, holds, facts)
    if holds == "dates":
        return (
            f"Column {name!r} has the dtype {dtype} and is {facts.sdtype} in the metadata: all of "
            "its dates would count as missing. Make it datetime in the metadata, or convert it."
        )
    written = getattr(facts, "datetime_format", None)
    if holds == "text" or (holds == "numbers" and digits_of(written or "") is not None):
        return None
    return (
        f"Column {name!r} has the dtype {dtype} and is datetime in the metadata, with no format "
        "of digits alone that reads numbers: all of them would count as missing. Convert them with "
        f"pandas.to_datetime, or declare their datetime_format, such as '%Y%m%d'.{_if_empty(dtype)}"
    )


def _held(dtype: Any) -> str | None:
    """The kind of all cells of the dtype that are not missing; ``None`` if it may be any."""
    if isinstance(dtype, pd.CategoricalDtype):
        return None
    of_arrow = str(dtype.pyarrow_dtype) if isinstance(dtype, pd.ArrowDtype) else ""
    if isinstance(dtype, pd.StringDtype) or "string" in of_arrow.split("<")[0]:
        return "text"
    kinds = {"M": "dates", "i": "numbers", "u": "numbers", "f": "numbers", "b": "truths"}
    return kinds.get(dtype.kind)


def _of_categories(name: str, dtype: Any, holds: str, facts: ColumnFacts) -> str | None:
    """A sentence if no declared category can be found among what the dtype holds."""
    if isinstance(facts, CategoryFacts) and facts.is_grouped:
        return _of_codes(name, dtype, holds, facts)
    if not (isinstance(facts, CategoryFacts | TruthFacts) and facts.values):
        return None
    texts = [isinstance(value, str) for value in facts.values]
    if any(texts) if holds == "text" else not all(texts):
        return None
    declared = "numbers" if holds == "text" else "text"
    instead = {
        "text": "'1' instead of 1",
        "numbers": "1 instead of '1'",
        "truths": "True instead of 'True'",
    }
    return (
        f"Column {name!r} has the dtype {dtype}, and its declared categories are {declared}: none "
        f"would be found. Declare them as {holds}, {instead[holds]}, "
        f"or convert the column.{_if_empty(dtype)}"
    )


def _of_codes(name: str, dtype: Any, holds: str, facts: CategoryFacts) -> str | None:
    """A sentence if no code can be found, or its first characters cannot be known."""
    codes = [code for code, _ in facts.groups or ()]
    if holds == "truths" or (codes and holds == "numbers" and not any(map(_is_number, codes))):
        return (
            f"Column {name!r} has the dtype {dtype}, and the codes of its groups are text: none "
            f"would be found. Declare them as the table has them, or convert the column."
            f"{_if_empty(dtype)}"
        )
    if holds == "numbers" and facts.prefix is not None:
        return (
            f"Column {name!r} has the dtype {dtype}, and is declared by its first characters: "
            "numbers have lost zeros in front. Read it as text, such as dtype={'zip': 'str'} of "
            f"pandas, or --dtype zip=str on the command line, or convert it.{_if_empty(dtype)}"
        )
    return None


def _is_number(code: str) -> bool:
    return code.removeprefix("-").replace(".", "", 1).isdecimal()


def _if_empty(dtype: Any) -> str:
    """What to do with a column of floats that has no cell at all."""
    if dtype.kind != "f":
        return ""
    return " If all of it is missing, convert it with .astype('object')."
