"""Decides what the text of a cell means, by the cell alone and by public facts on its column.

pandas infers types from a whole column. Then one word among numbers would turn all of them into
text, and every other row would be read as something else.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd.base import cached_property
from sdv_privpgd.columns.column import EXACT_IN_FLOAT
from sdv_privpgd.columns.dialect import declared_values, has_codes
from sdv_privpgd.columns.scalars import are_there, canonical, quiet, real
from sdv_privpgd.columns.scalars import number_in as number_of

_TRUTHS = {"true": True, "false": False}
_NUMBERED = {"0": False, "1": True, "0.0": False, "1.0": True}

_SPACES = " \u00a0\u202f"
"""The spaces between groups of digits: an ordinary one, one that no line breaks at, a thin one."""


UNPARSED = "unparsed"
"""Stands for a cell of a column of numbers that is there and is none, whatever it holds."""

_WHOLE, _PLAIN = re.compile(r"[-+0-9]*"), re.compile(r"[-+0-9.eE]*")


@dataclass(frozen=True)
class Signs:
    """The signs in numbers of text: before decimals, and between groups of three digits, if any."""

    decimal: str = "."
    thousands: str | None = None

    def plain(self, text: str) -> str:
        """A number as Python writes it. Any other text gives a text that is no number."""
        if self.thousands is not None and self._grouped.fullmatch(text):
            text = re.sub(self._group, "", text)
        if self.decimal == ".":
            return text
        return text.replace(".", "_").replace(self.decimal, ".")

    @property
    def _group(self) -> str:
        assert self.thousands is not None
        return f"[{_SPACES}]" if self.thousands in _SPACES else re.escape(self.thousands)

    @cached_property
    def _grouped(self) -> re.Pattern:
        decimal = re.escape(self.decimal)
        return re.compile(rf"\s*[-+]?\d{{1,3}}({self._group}\d{{3}})+({decimal}\d*)?\s*")


def signs_of(how: Any) -> Signs:
    """The signs in numbers of a table that is written so, or of what options of its kind say."""
    return Signs(getattr(how, "decimal", None) or ".", getattr(how, "thousands", None))


def numbers_in(written: list[str], signs: Signs) -> np.ndarray:
    """The numbers of texts: whole ones, floats, or objects where floats would lose digits.

    What is no number is NaN, among objects ``None``.
    """
    together = "".join(written)
    if signs == Signs() and _PLAIN.fullmatch(together):
        kind = int if _WHOLE.fullmatch(together) else float
        with suppress(ValueError, OverflowError):
            found = np.array([kind(text) for text in written], dtype=kind)
            if kind is int or np.abs(found).max(initial=0) <= EXACT_IN_FLOAT:
                return found
    read = [number_in(text, signs) for text in written]
    if any(isinstance(number, int) and abs(number) > EXACT_IN_FLOAT for number in read):
        return np.array(read, dtype=object)
    return np.array([math.nan if number is None else number for number in read], dtype=float)


def without_numbers(written: Sequence[str], words: Sequence[str], signs: Signs) -> list[str]:
    """The same texts, those empty that are the number that a word is, however it is written."""
    absent = {number for word in words if (number := number_in(word, Signs())) is not None}
    if not absent:
        return list(written)
    return ["" if number_in(text, signs) in absent else text for text in written]


def meaning(facts: Mapping, signs: Signs) -> Callable[[str], Any]:
    """The function that reads one text of a column of other than numbers."""
    sdtype, declared = facts.get("sdtype"), declared_values(facts)
    if sdtype == "boolean" and not declared:
        return _truth
    if sdtype not in ("categorical", "ordinal", "boolean"):
        return lambda text: text
    if has_codes(facts):
        return str.strip
    if declared:
        return lambda text: _declared(text, declared, signs)
    return _as_written


def repeated(values: list, codes: np.ndarray) -> pd.Series:
    """A value a code, none for -1: as categories, or as objects where two are equal (1, True)."""
    index = pd.Index(values, dtype=object)
    if index.is_unique and not index.hasnans:
        return pd.Series(pd.Categorical.from_codes(codes, index))
    return pd.Series(np.append(index.to_numpy(), np.nan)[codes], dtype=object)


def converted(column: pd.Series, dtype: Any) -> pd.Series:
    """The column in the dtype that the user names, or with the same values where some are no such.

    Privacy: each cell means the same either way, and nothing says which cells cannot be such. A fit
    counts them as not as declared.
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object)
    is_text, lost = column.dtype.kind == "O", np.array([], dtype=bool)
    if dtype.kind == "M" and is_text:
        return column  # dates are read one by one, as the metadata says
    if dtype.kind in "iuf" and is_text:
        read = [number_of(cell, None) for cell in column]
        if dtype.kind == "f":
            read = [None if number is None else real(number) for number in read]
        found = pd.Series(read, index=column.index, dtype=object)
        column, lost = found, unparsed(found, column)
    if pd.api.types.is_bool_dtype(dtype):
        column = column.map(_truth, na_action="ignore")
    is_of_text = isinstance(dtype, pd.StringDtype | pd.CategoricalDtype)
    with quiet(), suppress(Exception):  # any library's
        found, there = column.astype(dtype), column.notna()
        # 300 is no int8, 1.5 is no whole number, and a missing cell is neither true nor false.
        # As Python has them: to Arrow text is the same as its bytes, and to pandas as a period.
        taken, own = found[there].tolist(), column[there].tolist()
        is_same = is_of_text or dtype.kind == "f" or taken == own
        if is_same and (found.notna() == there).all():
            column = found
    return pd.Series(column, dtype=object).mask(lost, UNPARSED) if lost.any() else column


def _declared(text: str, declared: Sequence, signs: Signs) -> Any:
    """The declared value that a text stands for, or the text itself."""
    for written in (text, text.strip()):
        if written in [each for each in declared if isinstance(each, str)]:
            return written
    if _TRUTHS.get(text.strip().lower()) in [each for each in declared if isinstance(each, bool)]:
        return _truth(text)
    number = number_in(text, signs)
    found = (each for each in declared if isinstance(each, int | float) and each == number)
    return next(found, text)


def _as_written(text: str) -> Any:
    """A number if rows would have the same text for it; others, such as 01234 or 2.0, stay text."""
    number = canonical(number_in(text, Signs()))
    is_number = isinstance(number, int | float) and abs(number) < math.inf
    return number if is_number and repr(number) == text else text


def _truth(cell: Any) -> Any:
    """True or False for their words and for 1 and 0; anything else stays as it is."""
    return {**_TRUTHS, **_NUMBERED}.get(str(cell).strip().lower(), cell)


def number_in(cell: Any, signs: Signs) -> int | float | None:
    """The number of a cell, also of one of text."""
    if not isinstance(cell, str):
        return cell if isinstance(cell, int | float) and not isinstance(cell, bool) else None
    text = signs.plain(cell)
    if "_" in text:  # Python reads 1_000
        return None
    with suppress(ValueError):
        return int(text)
    with suppress(ValueError):
        return number if math.isfinite(number := float(text)) else None
    return None


def unparsed(found: Any, cells: Sequence[Any] | pd.Series) -> np.ndarray:
    """Which cells are there, and in none of them a number was ``found``."""
    absent = np.asarray(pd.isna(found))
    return absent & are_there(pd.Series(cells, dtype=object)) if absent.any() else absent
