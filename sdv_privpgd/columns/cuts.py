"""The column that facts make: its cells, and which of them share a code. Public."""

import datetime
import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from sdv_privpgd.columns.bins import (
    HARDLY,
    Categories,
    Merging,
    Reals,
    Ticks,
    merged_neighbors,
    merged_rare,
)
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.date_formats import survive_writing
from sdv_privpgd.columns.dates import to_ticks
from sdv_privpgd.columns.facts import (
    CategoryFacts,
    ColumnFacts,
    DateFacts,
    NumberFacts,
    TruthFacts,
    exactly,
)
from sdv_privpgd.columns.scalars import LARGEST_WHOLE

MOST_CATEGORIES = 256
"""The largest number of codes of a column of categories; further categories share them."""

USUAL_BINS = 32
"""The number of codes of numbers and dates, unless someone says otherwise."""

EXACT_DIGITS = 15
"""Decimal digits that float64 always keeps."""

_MOST_PLACES = 300
"""10**-300 is above the smallest normal float64."""

_FEW = 2
"""Cells of known frequencies are merged if there are more than this many times ``num_bins``."""


def column_of(name: str, facts: ColumnFacts, num_bins: int = USUAL_BINS) -> Column:
    """The column of a name that has these facts, among them its domain.

    ``num_bins`` is the number of codes of numbers and dates whose facts do not name theirs.
    """
    nullable = facts.nullable is None or facts.nullable
    return Column(name=name, sdtype=facts.sdtype, nullable=nullable, **_made(facts, num_bins))


def tick_of(facts: NumberFacts) -> Fraction | None:
    """The distance between neighboring numbers; ``None`` if they have no precision."""
    if facts.increment is not None:
        return Fraction(facts.increment)
    places = _kept_places(facts)
    return None if places is None else Fraction(1, 10**places)


def can_write(column: Column) -> bool:
    """Whether the format of a column of dates, if it has one, writes all of them.

    Dates are tried out that begin and end its cells.
    """
    if column.datetime_format is None:
        return True
    cells, unit = column.cells, column.unit
    assert isinstance(cells, Ticks)
    assert unit is not None
    ends = np.concatenate((cells.starts, cells.starts + cells.widths - 1))
    return survive_writing(ends, unit, column.datetime_format)


def _made(facts: ColumnFacts, num_bins: int) -> dict[str, Any]:
    if isinstance(facts, TruthFacts):
        return {"cells": Categories(facts.values or (False, True))}
    if isinstance(facts, CategoryFacts):
        return _categories(facts)
    codes = num_bins if facts.num_bins is None else facts.num_bins
    return _numbers(facts, codes) if isinstance(facts, NumberFacts) else _dates(facts, codes)


def _categories(facts: CategoryFacts) -> dict[str, Any]:
    values = facts.values or ()
    merging = _merged_categories(facts, len(values))
    if facts.other is None:
        return {"cells": Categories(values), "merging": merging}
    if merging is not None:  # the other value has a code of its own
        codes, frequencies = (*merging.codes, len(merging)), (*merging.frequencies, 1.0)
        merging = Merging(codes, frequencies)
    return {"cells": Categories((*values, facts.other), has_other=True), "merging": merging}


def _merged_categories(facts: CategoryFacts, number: int) -> Merging | None:
    """The codes that categories share, if there are too many categories.

    Rare categories share one code; neighbors share codes if the order has a meaning or no
    frequencies are known.
    """
    if number <= MOST_CATEGORIES:
        return None
    if facts.frequencies is None:
        return merged_neighbors([1.0] * number, MOST_CATEGORIES)
    merged = merged_neighbors if facts.is_ordered else merged_rare
    return merged(facts.frequencies, MOST_CATEGORIES)


def _numbers(facts: NumberFacts, num_bins: int) -> dict[str, Any]:
    (low, high), tick = facts.ends, tick_of(facts)
    written: dict[str, Any] = {"number_format": facts.number_format}
    are_decimals = isinstance(facts.low, Decimal) and isinstance(facts.high, Decimal)
    if are_decimals and facts.number_format is None:
        written["dtype"] = Decimal
    exact = [exactly(cut) for cut in facts.cuts or ()]
    if tick is None:
        cuts = [float(cut) for cut in exact]
        inner = tuple(cut for cut in cuts if cut <= float(high))
        cells = Reals(float(low), float(high), num_bins, inner)
        merging = _merging(cells, cuts, facts.frequencies, num_bins)
        return {**written, "cells": cells, "merging": merging}
    first, last = math.ceil(low / tick), math.floor(high / tick)
    if facts.decimal_places == 0:  # as which larger numbers are read
        first, last = (min(max(end, 1 - LARGEST_WHOLE), LARGEST_WHOLE) for end in (first, last))
    # A cell holds the numbers from its cut on, so cuts are rounded up to ticks.
    cut_ticks = [math.ceil(cut / tick) for cut in exact]
    kept = facts.decimal_places if facts.increment is not None else _kept_places(facts)
    steps = [(exactly(step) / tick, share) for step, share in facts.rounding or ()]
    whole = [each for each in steps if each[0].denominator == 1 < each[0] <= last - first]
    rest = max(1 - sum(share for _, share in whole), HARDLY)  # are rounded to ticks alone
    rounding = tuple((int(step), float(step) * share / rest) for step, share in whole)
    return {
        **_ticks(first, last, cut_ticks, facts.frequencies, num_bins, rounding),
        **written,
        "decimal_places": kept,
        "increment": facts.increment,
    }


def _kept_places(facts: NumberFacts) -> int | None:
    """The decimal places that float64 keeps in all numbers of the range.

    ``None`` if none are known, or if it cannot keep even one: then the numbers have no precision.
    """
    if not facts.decimal_places:
        return facts.decimal_places
    largest = max(map(abs, facts.ends))
    places = min(facts.decimal_places, _MOST_PLACES)
    while places and largest * 10**places > 10**EXACT_DIGITS:
        places -= 1
    return places or None


def _dates(facts: DateFacts, num_bins: int) -> dict[str, Any]:
    unit = facts.unit
    first, last = to_ticks(np.array(facts.ends), unit).tolist()
    moments = np.array(facts.cuts or (), dtype=np.int64)
    cuts = (to_ticks(moments - 1, unit) + 1).tolist()  # rounded up, as those of numbers
    return {
        **_ticks(first, last, cuts, facts.frequencies, num_bins),
        "unit": unit,
        "datetime_format": facts.datetime_format,
        "offset": facts.offset,
        "utc": facts.utc,
        "dtype": datetime.time if facts.of_times else int if facts.of_numbers else None,
    }


def _ticks(
    first: int,
    last: int,
    cuts: list[int],
    frequencies: Sequence[float] | None,
    num_bins: int,
    rounding: tuple[tuple[int, float], ...] = (),
) -> dict[str, Any]:
    """The cells of whole numbers that begin with the cuts, and which of them share a code."""
    inner = tuple(sorted({cut for cut in cuts if first < cut <= last}))
    cells = Ticks(first, last, num_bins, inner, rounding)
    return {"cells": cells, "merging": _merging(cells, cuts, frequencies, num_bins)}


def _merging(
    cells: Ticks | Reals,
    cuts: Sequence[float],
    frequencies: Sequence[float] | None,
    num_bins: int,
) -> Merging | None:
    """The codes that neighbors share, if it is known how frequent the cells of the cuts are."""
    if frequencies is None:
        return None
    # Cuts that are equal after rounding begin one cell.
    places = np.searchsorted(np.asarray(cells.cuts), cuts, side="right")
    merged = np.bincount([0, *places], weights=frequencies, minlength=len(cells))
    size = len(cells)
    # A few more cells keep their codes, but for those that hardly ever occur.
    merging = merged_neighbors(merged.tolist(), num_bins if size > _FEW * num_bins else size)
    return merging if len(merging) < size else None
