"""What is known of a column: declared, found privately, or not known yet. Public.

A fact that is ``None`` is not known. ``parser`` reads facts from SDV's words, ``vocabulary``
writes them in these words, and ``cuts`` makes a column of them.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, TypeVar

import numpy as np

from sdv_privpgd.columns.number_formats import NumberFormat
from sdv_privpgd.columns.scalars import Number
from sdv_privpgd.columns.units import (
    COARSE,
    UNITS,
    has_days,
    has_zone,
    unit_of_bounds,
    unit_of_format,
)

Kind = TypeVar("Kind", bound="_Facts")


@dataclass(frozen=True, kw_only=True)
class _Facts:
    """What is known of a column: whether values may be missing, and what stands for missing."""

    nullable: bool | None = None
    missing_codes: tuple | None = None

    @property
    def lacks_domain(self) -> bool:
        """Whether it is not known which values it has."""
        return False

    @property
    def is_blank(self) -> bool:
        """Whether nothing is known of that."""
        return self.lacks_domain

    def and_found(self: Kind, found: Any) -> Kind:
        """The same facts, with those that were found of the column in their place.

        What is the same stays written as it was: 0 does not become 0.0.
        """
        held = {each.name: getattr(found, each.name) for each in fields(found)}
        new = {name: fact for name, fact in held.items() if fact not in (None, getattr(self, name))}
        return replace(self, **new)


@dataclass(frozen=True, kw_only=True)
class _RangedFacts(_Facts):
    """What is known of a column of numbers or dates: its range, its cells and its number of codes.

    At ``cuts``, which ascend, new cells begin; without any they have equal widths. ``frequencies``
    are how often each cell occurs.
    """

    low: Any = None
    high: Any = None
    cuts: tuple | None = None
    frequencies: tuple[float, ...] | None = None
    num_bins: int | None = None

    @property
    def lacks_domain(self) -> bool:
        """Whether an end of the range is not known."""
        return self.low is None or self.high is None

    @property
    def ends(self) -> tuple[Any, Any]:
        """Both ends of the range, exactly."""
        return self.low, self.high

    @property
    def is_blank(self) -> bool:
        """Whether neither end of the range is known."""
        return self.low is self.high is None


@dataclass(frozen=True, kw_only=True)
class NumberFacts(_RangedFacts):
    """What is known of a column of numbers, as they are written: 0.1 is a tenth.

    If both bounds are Python's ``Decimal``, so are the column's numbers. All are multiples of an
    ``increment``. They have no ``number_format`` if they are no text, or as Python writes them.
    ``rounding`` has steps, and the share of the numbers that someone rounded to multiples of each.
    """

    low: Number | None = None
    high: Number | None = None
    cuts: tuple[Number, ...] | None = None
    decimal_places: int | None = None
    increment: int | None = None
    rounding: tuple[tuple[Number, float], ...] | None = None
    number_format: NumberFormat | None = None

    sdtype: ClassVar[str] = "numerical"

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        low, high = super().ends
        return exactly(low), exactly(high)

    @property
    def unparsed(self) -> str:
        """Why values that are there may not be read, and what mends it, after "they are"."""
        is_percent = "%" in getattr(self.number_format, "example", "")
        more = " A workbook keeps 12 % as the number 0.12, which is no percentage in text."
        return (
            "not read as numbers: text with a decimal comma, separators of thousands or units is "
            "read in a declared number_format alone, and infinite numbers count as missing."
            f"{more * is_percent}"
        )


@dataclass(frozen=True, kw_only=True)
class WeightFacts(NumberFacts):
    """What is known of a column that says how much rows count. It is read as plain numbers."""

    @property
    def unparsed(self) -> str:
        return "no plain numbers such as 1234.5. Weights are read as such alone: convert them."


@dataclass(frozen=True, kw_only=True)
class DateFacts(_RangedFacts):
    """What is known of a column of dates or moments, in nanoseconds since 1970 in UTC.

    Attributes:
        datetime_format: How dates are written; ``None`` if they are no text, or in ISO 8601.
        aware: Whether dates without a format carry a time zone.
        offset: How both ends write their offset from UTC in the format, such as "+02:00" or "Z".
        of_days: True if both ends were declared as Python's ``date``, which has no time.
        of_times: True if both were declared as times of the day and no format was: dates are
            Python's ``time`` then.
        of_numbers: True if both were declared as whole numbers, of the digits that the format
            writes: dates are such numbers then.
        whole: The unit of which all of them are whole, if it was found to be a coarser one.
    """

    low: int | None = None
    high: int | None = None
    cuts: tuple[int, ...] | None = None
    datetime_format: str | None = None
    aware: bool = False
    offset: str | None = None
    of_days: bool | None = None
    of_times: bool | None = None
    of_numbers: bool | None = None
    whole: str | None = None

    sdtype: ClassVar[str] = "datetime"

    @property
    def finest(self) -> str:
        """The unit that the format or the ends have."""
        written = self.datetime_format
        return unit_of_bounds(*self.ends) if written is None else unit_of_format(written)

    @property
    def unit(self) -> str:
        """The unit in which the dates are counted."""
        return max(self.finest, self.whole or self.finest, key=UNITS.index)

    @property
    def coarser(self) -> list[str]:
        """The units, the coarsest first, of which all dates may be found to be whole."""
        written, low = self.datetime_format, 0 if self.of_times else self.low or 0
        if self.whole is not None:
            return []
        unit = "ns" if written is None and self.lacks_domain else self.unit
        are_days = written is None or has_days(written)
        units, first = COARSE[0 if are_days else 3 :], np.datetime64(low, "ns")
        finer = UNITS[UNITS.index(unit) + 1 :]
        return [each for each in units if each in finer and first == first.astype(f"M8[{each}]")]

    @property
    def utc(self) -> bool:
        """Whether dates carry a time zone, which is UTC."""
        return self.aware if self.datetime_format is None else has_zone(self.datetime_format)

    def and_found(self, found: Any) -> "DateFacts":
        """The same facts, with those that were found. A format that was given up is gone."""
        return replace(super().and_found(found), datetime_format=found.datetime_format)

    @property
    def unparsed(self) -> str:
        """Why values that are there may not be read, and what mends it, after "they are"."""
        written = "declare their datetime_format; without one only text like '2024-01-31' is read"
        if self.datetime_format is not None:
            written = f"check whether they are written as {self.datetime_format!r}"
        return f"dates as text: {written}; times of the day are TimeOfDay()."


@dataclass(frozen=True, kw_only=True)
class CategoryFacts(_Facts):
    """What is known of a column of categories, and of the value that stands for all ``other`` ones.

    Their order may have a meaning. ``groups`` are codes, and the category that each belongs to; so
    many first characters of a code as ``prefix`` says are its category, or its code there.
    """

    values: tuple | None = None
    other: Any = None
    is_ordered: bool = False
    frequencies: tuple[float, ...] | None = None
    groups: tuple[tuple[str, Any], ...] | None = None
    prefix: int | None = None

    @property
    def is_grouped(self) -> bool:
        """Whether cells hold codes, and the categories are groups of them."""
        return self.groups is not None or self.prefix is not None

    @property
    def sdtype(self) -> str:
        return "ordinal" if self.is_ordered else "categorical"

    @property
    def lacks_domain(self) -> bool:
        """Whether no category is known, and none for all others."""
        return not self.values and self.other is None

    @property
    def unparsed(self) -> str:
        """Why values that are there may not be read, and what mends it, after "they are"."""
        if self.lacks_domain:
            return (
                "neither text nor numbers nor dates: give each part of a list a column of its own."
            )
        return (
            "not in the codebook: check capitals, spaces, and numbers against text; other_value "
            "takes in all that is not declared."
        )


@dataclass(frozen=True, kw_only=True)
class TruthFacts(_Facts):
    """What is known of a column of true and false.

    ``values`` stand for false and for true, if it is not these themselves.
    """

    values: tuple | None = None

    sdtype: ClassVar[str] = "boolean"

    @property
    def unparsed(self) -> str:
        """Why values that are there may not be read, and what mends it, after "they are"."""
        read = " and ".join(map(str, self.values or ("true", "false, 1", "0")))
        others = "true_value and false_value say others, such as '1' and '0' of text"
        return f"written otherwise: only {read} are read, unless {others}."


Ranged = TypeVar("Ranged", bound=NumberFacts | DateFacts)
ColumnFacts = NumberFacts | DateFacts | CategoryFacts | TruthFacts


def without_domain(known: Mapping[str, ColumnFacts]) -> list[str]:
    """The columns of which neither a range nor the categories are known."""
    return [name for name, facts in known.items() if facts.lacks_domain]


def single(facts: Ranged, end: str) -> Ranged:
    """The facts on a column that holds one of its declared ends, and nothing else.

    An end between two numbers of the declared decimal places is the next one inside the range.
    """
    bound = getattr(facts, end)
    if isinstance(facts, NumberFacts) and facts.decimal_places is not None:
        scale, inwards = 10**facts.decimal_places, math.ceil if end == "low" else math.floor
        tick = Fraction(inwards(exactly(bound) * scale), scale)
        if tick != exactly(bound):
            bound = int(tick) if tick.denominator == 1 else float(tick)
    return replace(facts, low=bound, high=bound)


def exactly(number: Number) -> Fraction:
    """A number exactly as it is written."""
    is_written = isinstance(number, float) and not number.is_integer()
    return Fraction(Decimal(repr(number)) if is_written else number)
