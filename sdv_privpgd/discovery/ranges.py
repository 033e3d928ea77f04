"""The range and precision of a column, as noisy answers show them. Public."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from sdv_privpgd.columns.bins import Ticks
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.facts import ColumnFacts, DateFacts, NumberFacts
from sdv_privpgd.discovery.bounds import inside, numbers_at, range_of, starts_of, within
from sdv_privpgd.discovery.grids import DAY, POWERS, YEARS
from sdv_privpgd.discovery.looks import Look
from sdv_privpgd.discovery.rough_ranges import (
    Precision,
    finely_cut,
    first_picture,
    rough_dates,
    rough_numbers,
)
from sdv_privpgd.discovery.searching import Blocks, likeliest_end, searched, trimmed
from sdv_privpgd.discovery.tails import with_light_ends, without_tails_of_caps
from sdv_privpgd.discovery.zoom import Picture
from sdv_privpgd.estimate.noisy_tables import NoisyTable, Total
from sdv_privpgd.privacy.queries import Measurement


class Rough(NamedTuple):
    """The findings of the first look on a column. Public.

    Attributes:
        known: What is known of the column now.
        is_clear: Whether its range was more than noise.
        picture: The counts of the cells of the first grid in the range, and of later looks.
        blocks: The cells whose counts are known better than those of fine cells.
        total: The number of rows that have a value, if it was asked for and no bound is declared:
            beyond one there may be rows.
        alone: Numbers that many rows share, the most frequent first, and their noisy counts.
    """

    known: ColumnFacts
    is_clear: bool = True
    picture: Picture | None = None
    blocks: Picture | None = None
    total: Total | None = None
    alone: Mapping[float, float] = MappingProxyType({})

    def cut(self) -> ColumnFacts:
        """What is known of the column, in fine cells."""
        if self.picture is None or not isinstance(self.known, NumberFacts | DateFacts):
            return self.known
        return finely_cut(self.known, self.picture, self.alone)

    def seen(self, picture: Picture) -> "Rough":
        """The same after another look."""
        whole = picture if self.picture is None else self.picture.averaged(picture)
        return self._replace(picture=whole, blocks=whole)


def roughly(
    look: Look,
    answers: Mapping[str, Measurement],
    rows: Measurement | None,
    alone: Mapping[float, float],
    *,
    utc: bool = False,
) -> Rough:
    """The range of a number or date on the first grid, where to cut it, and its precision.

    Args:
        look: The column, and what was known of it.
        answers: The answers on the first grids, by kind, as far as they were asked for.
        rows: The number of rows; ``None`` if no answer needs it.
        alone: Numbers that many rows share, the most frequent first, and their noisy counts.
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
        known: NumberFacts | DateFacts = rough_dates(look.known, stretch, precision, utc)
    else:
        known = rough_numbers(look.known, stretch, counts, precision)
    picture = None if counts is None else first_picture(known, counts)
    blocks = picture
    if isinstance(known, DateFacts):
        blocks = _decades(tables["coarse"]) if is_open and "coarse" in tables else None
    return Rough(known, is_clear, picture, blocks, total if is_open else None, alone)


def _decades(coarse: NoisyTable) -> Picture:
    """The groups of the grid of dates, of which single years are hardly known."""
    begins = np.flatnonzero(np.diff(YEARS.groups, prepend=-1))
    edges = np.append(YEARS.cells.starts[begins], YEARS.cells.last + 1) * float(DAY)
    return Picture.of(edges, coarse)


def looked_into(
    column: Column,
    answer: Measurement,
    look: Look,
    rough: Rough,
    total: Total | None = None,
) -> NumberFacts | DateFacts:
    """What the fine cells say of a column: its precision, its range and where to cut that.

    And whether values are missing. A precision that was declared is not found. ``total`` is the
    number of rows in a declared range.
    """
    known, has_range = look.known, look.has_range
    assert isinstance(known, NumberFacts | DateFacts)
    table, missing = _of_values(answer), float(answer.answer[column.num_values])
    blocks = _blocks(column, table, rough)
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
        if isinstance(column.cells, Ticks):  # no range of reals ends at a single one
            ends = without_tails_of_caps(blocks, numbers_at(column), ends)
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


def _blocks(column: Column, table: NoisyTable, rough: Rough) -> Blocks:
    """The fine cells in the blocks of which more is known."""
    if rough.blocks is None:
        return Blocks.alone(table)
    starts = np.array(starts_of(column), dtype=np.float64)
    own = np.searchsorted(rough.blocks.edges, starts, side="right") - 1
    held, of_cell = np.unique(np.clip(own, 0, rough.blocks.counts.size - 1), return_inverse=True)
    blocks = Blocks.combined(
        table, rough.blocks.counts[held], rough.blocks.variances[held], of_cell
    )
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
