"""The range and precision of a column, as noisy answers show them. Public."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.facts import ColumnFacts, DateFacts, NumberFacts
from sdv_privpgd.discovery.bounds import inside, numbers_at, range_of, starts_of, within
from sdv_privpgd.discovery.even_parts import Counted
from sdv_privpgd.discovery.grids import DAY, POWERS, YEARS
from sdv_privpgd.discovery.looks import Look
from sdv_privpgd.discovery.rough_ranges import Precision, rough_dates, rough_numbers
from sdv_privpgd.discovery.searching import Blocks, likeliest_end, searched, trimmed
from sdv_privpgd.discovery.tails import with_light_ends
from sdv_privpgd.estimate.noisy_tables import NoisyTable, Total
from sdv_privpgd.privacy.measurement import Measurement


class Rough(NamedTuple):
    """The findings of the first look on a column. Public.

    Attributes:
        known: What is known of the column now.
        is_clear: Whether its range was more than noise.
        counts: The counts of numbers between powers of two, or of dates in decades and longer
            times, if they were asked for.
        total: The number of rows that have a value, if it was asked for and no bound is declared:
            beyond one there may be rows.
    """

    known: ColumnFacts
    is_clear: bool = True
    counts: NoisyTable | None = None
    total: Total | None = None


def roughly(
    look: Look,
    answers: Mapping[str, Measurement],
    rows: Measurement | None,
    alone: Sequence[float],
    *,
    utc: bool = False,
) -> Rough:
    """The range of a number or date on the first grid, where to cut it, and its precision.

    Args:
        look: The column, and what was known of it.
        answers: The answers on the first grids, by kind, as far as they were asked for.
        rows: The number of rows; ``None`` if no answer needs it.
        alone: Numbers that many rows share, the most frequent first.
        utc: Whether dates without a format have a time zone.
    """
    tables = {kind: _of_values(answer) for kind, answer in answers.items()}
    precision, stretch = None, None
    if "precision" in answers:
        total = _total([answers["precision"]], rows)
        precision = Precision(*likeliest_end(tables["precision"], total.value))
    total = None
    if "coarse" in answers:
        total = _total([answers["coarse"], answers["grid"]], rows)
        grid = YEARS if isinstance(look.known, DateFacts) else POWERS
        stretch = searched(
            tables["coarse"],
            tables["grid"],
            total.value,
            groups=grid.groups,
            dearness=grid.dearness,
        )
    is_clear, counts = stretch is None or stretch.is_clear, tables.get("grid")
    assert isinstance(look.known, NumberFacts | DateFacts)
    is_open = look.known.low is None and look.known.high is None
    if isinstance(look.known, DateFacts):
        found = rough_dates(look.known, stretch, counts, precision, utc)
        return Rough(found, is_clear, tables.get("coarse") if is_open else None)
    known = rough_numbers(look.known, stretch, counts, precision, alone)
    return Rough(known, is_clear, counts, total if is_open else None)


def looked_into(
    column: Column,
    answer: Measurement,
    look: Look,
    rough: Rough,
    parts: Counted | None = None,
    total: Total | None = None,
) -> NumberFacts | DateFacts:
    """What the fine cells say of a column: its precision, its range and where to cut that.

    And whether values are missing. A precision that was declared is not found. ``parts`` are its
    even parts, if they were counted, and ``total`` is the number of rows in a declared range.
    """
    known, has_range = look.known, look.has_range
    assert isinstance(known, NumberFacts | DateFacts)
    table, missing = _of_values(answer), float(answer.answer[column.num_values])
    blocks = _blocks(column, table, rough, parts)
    if total is not None:
        blocks = blocks.summing_up_to(total)
    if isinstance(known, DateFacts) and column.datetime_format != known.datetime_format:
        # The bounds were given up with the format that they were written in.
        known, has_range = replace(known, low=None, high=None), False
        blocks = Blocks.alone(table)
    size = column.num_values
    ends = 0, size - 1  # all cells if there is only noise
    if rough.is_clear:
        # A decade at an end of which little is seen is kept: its dates would be clipped.
        searched_in = Blocks.alone(table) if isinstance(known, DateFacts) else blocks
        seen = float(table.counts.sum()) if rough.total is None else rough.total.value
        ends = trimmed(searched_in, max(seen, 1.0))
    first = 0 if known.low is not None else ends[0]
    last = size - 1 if known.high is not None else ends[1]
    held = within(known, *range_of(column, (first, last)))
    nullable = None
    if known.nullable is None and not has_range:
        nullable = missing > answer.stddev
    cuts = starts_of(column)[first + 1 : last + 1]
    shape: dict[str, Any] = {"nullable": nullable, "cuts": inside(cuts, held)}
    if cuts and len(shape["cuts"]) == len(cuts):
        often = with_light_ends(blocks, numbers_at(column))[first : last + 1]
        shape["frequencies"] = tuple(often.tolist())
    if isinstance(held, DateFacts):
        written, aware = column.datetime_format, column.datetime_format is None and column.utc
        return DateFacts(
            low=held.low, high=held.high, datetime_format=written, aware=aware, **shape
        )
    places = column.decimal_places if held.decimal_places is None else None
    return NumberFacts(low=held.low, high=held.high, decimal_places=places, **shape)


def _blocks(column: Column, table: NoisyTable, rough: Rough, parts: Counted | None) -> Blocks:
    """The fine cells, in blocks: even parts, or the first look's powers of two or decades."""
    if parts is not None:
        return Blocks.combined(table, parts.counts, parts.of_cell, is_even=True)
    if rough.counts is None:
        return Blocks.alone(table)
    starts = np.array(starts_of(column))
    if column.unit is None:
        own, _ = POWERS.cells.locate(starts.astype(np.float64))
    else:
        years, _ = YEARS.cells.locate(starts // DAY)
        own = np.array(YEARS.groups)[years]
    held, of_cell = np.unique(own, return_inverse=True)
    known = NoisyTable(rough.counts.counts[held], rough.counts.variance)
    blocks = Blocks.combined(table, known, of_cell)
    return blocks if rough.total is None else blocks.summing_up_to(rough.total)


def _of_values(answer: Measurement) -> NoisyTable:
    """The counts without the last one, that of missing."""
    return NoisyTable(answer.answer[:-1].astype(np.float64), answer.stddev**2)


def _total(answers: Sequence[Measurement], rows: Measurement | None) -> Total:
    """The approximate number of rows that have a value."""
    assert rows is not None  # asked for wherever a grid is
    missing = float(np.mean([answer.answer[-1] for answer in answers]))
    noise = math.hypot(*(answer.stddev for answer in answers)) / len(answers)
    number = max(float(rows.answer[0]) - max(missing, 0.0), 1.0)
    return Total(number, math.hypot(rows.stddev, noise))
