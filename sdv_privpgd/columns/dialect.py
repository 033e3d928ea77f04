"""How a table is written in text: what separates, what numbers look like, where names are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd.base.arguments import SourceError
from sdv_privpgd.base.words import listed

Facts = Mapping[str, Mapping]
"""The public facts on each column, in SDV's words, from the metadata and the domain."""

_BLANK = "", " "

MISSING = (
    *_BLANK, "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
)  # fmt: skip
"""Texts that stand for a missing cell, but where ``_has_words`` is true."""

SAY = (
    "If it holds the names of the columns, which become public, say CsvFiles(header=True), with "
    "CsvFiles(names=...) as well for better ones; if it is a row, give the names with "
    "CsvFiles(names=...), or say CsvFiles(header=False)."
)

RENAME = "Give a name for each column with CsvFiles(names=...), beside CsvFiles(header=True)."


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """The options for reading a table.

    Attributes:
        sep: The separator of columns in text; ``None`` takes the one of the file's ending.
        decimal: The sign before decimals; ``None`` takes a point, but asks where ``;`` separates.
        thousands: The sign between groups of three digits; ``None`` allows none.
        encoding: The encoding of text; ``None`` takes the one of the file's first bytes, or UTF-8.
            Bytes of cells that are not in it are read as Windows-1252.
        sheet: The sheet of a workbook; ``None`` takes its only one.
        header: Whether the first record holds names; ``None`` asks where nobody declares any.
        names: The names of the columns.
        declared: Names that are known of columns of which no facts are.
        dtypes: The pandas dtypes of columns, by name.
        na: Words that mean a missing cell, besides those of ``missing_words``, in all columns that
            do not declare them as categories; ``missing_codes`` of a column are for that alone.
        skip_rows: Lines above the first record, such as a title, of each file or sheet.
        skip_footer: Lines below the last row, such as a sum, of each; blank ones do not count.
        unquoted: Whether quotes in text are a cell's own, as in what databases unload. Else those
            that begin a cell hold what separates columns and rows: one that is not closed hides
            the rows of others.
    """

    sep: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    header: bool | None = None
    names: tuple[str, ...] | None = None
    declared: tuple[str, ...] = ()
    dtypes: Mapping[str, Any] = field(default_factory=dict)
    na: tuple[str, ...] = ()
    skip_rows: int = 0
    skip_footer: int = 0
    unquoted: bool = False

    def __post_init__(self) -> None:
        for name, what in (("skip_rows", "a title"), ("skip_footer", "a line of sums")):
            lines = getattr(self, name)
            if not isinstance(lines, Integral) or isinstance(lines, bool) or lines < 0:
                raise SourceError(
                    f"CsvFiles({name}=...) must be a number of lines, 0 or more, such as 1 for "
                    f"{what}: got {lines!r}."
                )
        if self.thousands is not None and self.thousands == (self.decimal or "."):
            raise SourceError(
                f"Thousands and decimals are both marked by {self.thousands!r}. Name the sign with "
                "CsvFiles(decimal=...), such as a comma."
            )

    @property
    def has_header(self) -> bool:
        """Whether the first record is a header and not a row."""
        return self.names is None if self.header is None else self.header

    def check_header(self, facts: Facts | None) -> None:
        """Raises ``SourceError`` where nobody says whether the first record holds names.

        Nothing about a record itself can tell: a row of words looks like names, and they would be
        published.
        """
        if self.header is None and self.names is None and not (facts or self.all_declared):
            raise SourceError(
                f"Nobody says whether the first record holds names. {SAY} Nothing was spent."
            )

    @property
    def all_declared(self) -> list[str]:
        """The names of columns of which something is declared."""
        return list(dict.fromkeys([*self.declared, *self.dtypes]))

    def is_number(self, name: str, facts: Facts) -> bool:
        """Whether a column holds numbers."""
        if name not in self.dtypes:
            return is_number(facts.get(name, {}))
        return self.dtypes[name].kind in "iuf"

    def stays_text(self, name: str) -> bool:
        """Whether the user declared a column as text, or as dates, which are parsed later."""
        dtype = self.dtypes.get(name)
        return dtype is not None and (
            dtype in (np.dtype(object), pd.StringDtype()) or dtype.kind == "M"
        )

    def check_dtypes(self, names: list[str]) -> None:
        """Raises ``SourceError`` if the user names the dtype of a column that is not there."""
        if unknown := [name for name in self.dtypes if name not in names]:
            raise SourceError(
                f"CsvFiles(dtypes=...) names {unknown!r}, which the table does not have."
            )

    def check_dates(self, facts: Facts) -> None:
        """Raises ``SourceError`` for a column whose dtype says dates, and its sdtype does not.

        Its texts would be read as categories: most dates are written too differently to be found.
        """
        for name, dtype in self.dtypes.items():
            sdtype = facts.get(name, {}).get("sdtype", "datetime")
            if dtype.kind == "M" and sdtype != "datetime":
                raise SourceError(
                    f"CsvFiles(dtypes={{{name!r}: '{dtype}'}}) says that {name!r} holds dates, and "
                    f"otherwise it is known as {sdtype}. Say how they are written, with a "
                    "datetime_format such as '%d.%m.%Y' in public_domain, and in the metadata, if "
                    "there is any, that its sdtype is datetime. Nothing was spent."
                )

    def check_decimal(self, sep: str, names: Sequence[str], facts: Facts | None) -> None:
        """Raises ``SourceError`` where nobody says what stands before decimals, and it matters.

        Where commas stand there, ``;`` separates columns; with a point in its place all such
        numbers would be missing. ``facts`` are ``None`` where types are yet to be detected.
        """
        if sep != ";" or self.decimal is not None:
            return
        if asked := [name for name in names if self._may_have_decimals(name, facts)]:
            raise SourceError(
                f"';' separates columns, and nobody says what stands before the decimals of "
                f"{listed([*map(repr, asked)], 3)}: CsvFiles(decimal=',') or "
                "CsvFiles(decimal='.') says it. Nothing was spent."
            )

    def _may_have_decimals(self, name: str, facts: Facts | None) -> bool:
        if name in self.dtypes:
            return self.dtypes[name].kind == "f"
        if facts is None:
            return True
        known = facts.get(name, {})
        if is_number(known):
            return known.get("decimal_places") != 0
        return any(isinstance(each, float) and each % 1 for each in declared_values(known))


def is_number(facts: Mapping) -> bool:
    """Whether a column holds numbers, so that a parser may read it at once."""
    return facts.get("sdtype") == "numerical" and facts.get("number_format") is None


def missing_words(facts: Mapping | None, more: Sequence[str] = ()) -> list[str]:
    """The texts that stand for a missing cell of a column, without its declared categories.

    ``more`` are those that the user names, besides the usual ones. ``facts`` are ``None`` where
    types are yet to be detected.
    """
    usual = _BLANK if facts is not None and _has_words(facts) else MISSING
    declared = [*declared_values(facts or {}), *((facts or {}).get("groups") or ())]
    return [text for text in (*usual, *more) if text not in declared]


def on_words(facts: Facts) -> list[str]:
    """A sentence on columns of text in which a usual word for missing is a category."""
    kinds = "categorical", "ordinal"
    names = [n for n, own in facts.items() if own.get("sdtype") in kinds and _has_words(own)]
    said = (
        f"In {listed([*map(repr, names)])} only a blank is missing, and words such as NA, None and "
        "NULL are categories, as none are declared: name those that mean missing with "
        "CsvFiles(na=...)."
    )
    return [said] if names else []


def _has_words(facts: Mapping) -> bool:
    """Whether any word may be a value of a column: NA, which is missing in R, is Namibia.

    So it is in text of which no categories are declared, and in ids.
    """
    is_read = facts.get("sdtype") in ("numerical", "datetime", "boolean")
    return not (is_read or declared_values(facts) or facts.get("groups"))


def has_codes(facts: Mapping) -> bool:
    """Whether cells are codes, whose digits and zeros matter."""
    return facts.get("groups") is not None or facts.get("prefix") is not None


def declared_values(facts: Mapping) -> list:
    """The declared categories of a column: with the one for all others, or of true and false."""
    values = facts.get("range_values")
    listed = list(values) if isinstance(values, list | tuple | range) else []
    named = map(facts.get, ("other_value", "true_value", "false_value"))
    return listed + [value for value in named if value is not None]


def percent_of(places: int | None, decimal: str = ".") -> str:
    """The example of percentages of so many decimal places, which is one if nobody says it."""
    places = 1 if places is None else places
    return f"1234{decimal}{'5'.ljust(places, '0')}%" if places else "1234%"
