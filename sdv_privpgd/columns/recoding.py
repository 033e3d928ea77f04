"""What cells are taken for before they are read: missing for a code, a group for a fine code.

Privacy: the rule is declared, and public. It is applied cell by cell, silently, as in
``sdv_privpgd.columns.scalars``, where a private table comes in and nowhere else. What is sampled,
or asked for, has groups already.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd.base import cached_property
from sdv_privpgd.base.domain import FieldsAlone
from sdv_privpgd.columns.dates import instants
from sdv_privpgd.columns.facts import CategoryFacts, ColumnFacts, DateFacts, NumberFacts
from sdv_privpgd.columns.scalars import (
    LARGEST_WHOLE,
    canonical,
    category,
    dense,
    distinct,
    number_in,
    quiet,
)


@dataclass(frozen=True)
class Recoding(FieldsAlone):
    """The rule of a column: what its ``missing_codes``, ``groups`` and ``prefix`` say. Public.

    A missing code is found as the same number or text, however a number is written: -9, -9.0 and
    "-9" are one. Among dates it is also what the declared format, or without one ISO 8601, reads as
    the same date. The other cells of a column with groups become those.
    """

    facts: ColumnFacts

    @classmethod
    def of(cls, facts: Mapping[str, ColumnFacts]) -> dict[str, "Recoding"]:
        """The rules of the columns that have one."""
        return {
            name: cls(known)
            for name, known in facts.items()
            if known.missing_codes or (isinstance(known, CategoryFacts) and known.is_grouped)
        }

    def __call__(self, series: pd.Series) -> pd.Series:
        """A private column as it is to be read, with the same index."""
        with quiet():
            series = dense(series)
            if self.facts.missing_codes:
                series = _without(series, self._are_missing(series))
            if isinstance(self.facts, CategoryFacts) and self.facts.is_grouped:
                listed, places = distinct(series)
                found = pd.Series([self._group(cell) for cell in listed], dtype=object).to_numpy()
                series = pd.Series(found[places], series.index, object, series.name)
            return series

    def _are_missing(self, series: pd.Series) -> np.ndarray:
        found = np.zeros(len(series), dtype=bool)
        if series.dtype.kind != "M":
            listed, places = distinct(series)
            found |= np.array([self._is_code(cell) for cell in listed])[places]
        if isinstance(self.facts, DateFacts):
            moments, unparsed = instants(series, self.facts.datetime_format)
            found |= ~unparsed & np.isin(moments, self._moments)
        return found

    def _is_code(self, cell: Any) -> bool:
        if not isinstance(self.facts, NumberFacts):
            return category(cell) in self._codes
        number = number_in(cell, self.facts.number_format)
        return category(cell) in self._codes or number in self._numbers

    @cached_property
    def _codes(self) -> frozenset:
        """The codes, the texts of numbers, and the numbers that texts are when written again."""
        codes = self.facts.missing_codes or ()
        texts = {str(code) for code in codes}
        read = {number_in(text, None) for text in texts}
        return frozenset({*codes, *texts, *(each for each in read if str(each) in texts)} - {None})

    @cached_property
    def _numbers(self) -> frozenset:
        """The numbers that the codes are, as Python writes them or in the declared format."""
        assert isinstance(self.facts, NumberFacts)
        written = None, self.facts.number_format
        codes = self.facts.missing_codes or ()
        return frozenset(number_in(code, each) for code in codes for each in written) - {None}

    @cached_property
    def _moments(self) -> np.ndarray:
        assert isinstance(self.facts, DateFacts)
        codes = pd.Series(self.facts.missing_codes or (), dtype=object)
        moments, unparsed = instants(codes, self.facts.datetime_format)
        return moments[~unparsed]

    def _group(self, cell: Any) -> Any:
        """The group of a code; a cell that is none, or in no group, stays what it is."""
        facts, code = self.facts, code_of(cell)
        assert isinstance(facts, CategoryFacts)
        if code is None or code in self._group_of:
            return cell if code is None else self._group_of[code]
        if facts.prefix is None or code in self._names:
            return cell
        first = code[: facts.prefix]
        return self._group_of.get(first, cell) if self._group_of else first

    @cached_property
    def _group_of(self) -> dict[str, Any]:
        assert isinstance(self.facts, CategoryFacts)
        return dict(self.facts.groups or ())

    @cached_property
    def _names(self) -> frozenset:
        """The names of groups, which their first characters would make others of."""
        assert isinstance(self.facts, CategoryFacts)
        return frozenset({*(self.facts.values or ()), self.facts.other})


def code_of(cell: Any) -> str | None:
    """The text of a code; a whole number has that of its digits, because JSON has texts alone."""
    value = canonical(cell)
    if type(value) is float or (type(value) is int and abs(value) <= LARGEST_WHOLE):
        return repr(value)
    return value if isinstance(value, str) else None


def recoded(
    columns: Mapping[str, pd.Series], rules: Mapping[str, Recoding]
) -> dict[str, pd.Series]:
    """Private columns as they are to be read."""
    return {name: rules[name](own) if name in rules else own for name, own in columns.items()}


def _without(series: pd.Series, missing: np.ndarray) -> pd.Series:
    """The column without some cells, in a dtype that no cell chooses."""
    if series.dtype == object:
        cells = series.to_numpy(dtype=object, copy=True)
        cells[missing] = None
        return pd.Series(cells, index=series.index, name=series.name, dtype=object)
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "iub":  # floats lose digits
        series = series.astype({"i": "Int64", "u": "UInt64", "b": "boolean"}[series.dtype.kind])
    return series.mask(missing)
