"""The range, precision and categories of a column, as noisy answers show them. Public."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.parsing import MOST_CATEGORIES
from sdv_privpgd.columns.values import Value, in_order
from sdv_privpgd.discovery.grids import POWERS, YEARS
from sdv_privpgd.discovery.looks import SINGLE, Look
from sdv_privpgd.discovery.rough_ranges import Precision, rough_dates, rough_numbers
from sdv_privpgd.discovery.searching import Blocks, likeliest_end, searched, trimmed
from sdv_privpgd.discovery.tails import with_light_ends
from sdv_privpgd.discovery.wording import inside, numbers_at, range_of, starts_of, within
from sdv_privpgd.estimate.noisy_tables import NoisyTable
from sdv_privpgd.estimate.support import pooled
from sdv_privpgd.privacy.measurement import Measurement


class Rough(NamedTuple):
    """The findings of the first look on a column. Public.

    Attributes:
        facts: The facts found, in SDV's words.
        is_clear: Whether its range was more than noise.
        counts: The counts of numbers between powers of two, if they were asked for.

    >>> Rough({"range_min": 0, "range_max": 128}).is_clear
    True
    """

    facts: dict
    is_clear: bool = True
    counts: NoisyTable | None = None


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

    >>> from sdv_privpgd.discovery.looks import look_into
    >>> look = look_into("age", {"sdtype": "numerical", "range_min": 0, "range_max": 99})
    >>> found = roughly(look, {}, None, []).facts
    >>> found["range_min"], found["range_max"]
    (0, 99)
    """
    tables = {kind: _of_values(answer) for kind, answer in answers.items()}
    precision, stretch = None, None
    if "precision" in answers:
        total = _total([answers["precision"]], rows)
        precision = Precision(*likeliest_end(tables["precision"], total))
    if "coarse" in answers:
        grid = YEARS if look.sdtype == "datetime" else POWERS
        stretch = searched(
            tables["coarse"],
            tables["grid"],
            _total([answers["coarse"], answers["grid"]], rows),
            groups=grid.groups,
            dearness=grid.dearness,
        )
    found = (
        rough_dates(look, stretch, tables.get("grid"), precision, utc)
        if look.sdtype == "datetime"
        else rough_numbers(look, stretch, tables.get("grid"), precision, alone)
    )
    counts = tables.get("grid") if look.sdtype == "numerical" else None
    return Rough({**found, "num_bins": SINGLE}, stretch is None or stretch.is_clear, counts)


def looked_into(column: Column, answer: Measurement, look: Look, rough: Rough) -> dict:
    """The range of the fine cells that hold rows, where to cut it, and whether values are missing.

    >>> from sdv_privpgd.columns.parsing import describe
    >>> from sdv_privpgd.discovery.looks import look_into
    >>> from sdv_privpgd.privacy.queries import MarginalQuery
    >>> facts = {"sdtype": "numerical", "range_min": 0, "range_max": 3, "decimal_places": 0}
    >>> facts["num_bins"] = 4
    >>> column, query = describe("age", facts), MarginalQuery(("age",))
    >>> answer = Measurement(query=query, answer=np.array([80, 10, 9, 1, 0]), stddev=2.0)
    >>> found = looked_into(column, answer, look_into("age", facts), Rough({}))
    >>> found["cut_points"]
    [1.0, 2.0, 3.0]
    """
    size, facts = column.num_values, look.facts
    table, missing = _of_values(answer), float(answer.answer[size])
    blocks = _blocks(column, table, rough)
    ends = 0, size - 1  # all cells if there is only noise
    if rough.is_clear:
        ends = trimmed(blocks, max(float(table.counts.sum()), 1.0))
    first = 0 if facts.get("range_min") is not None else ends[0]
    last = size - 1 if facts.get("range_max") is not None else ends[1]
    found = within(facts, range_of(column, (first, last)))
    if facts.get("range_is_nullable") is None and not look.has_range:
        found["range_is_nullable"] = missing > answer.stddev
    cuts = starts_of(column)[first + 1 : last + 1]
    found["cut_points"] = inside({**facts, **found}, cuts)
    if cuts and found["cut_points"] == cuts:
        found["frequencies"] = with_light_ends(blocks, numbers_at(column))[
            first : last + 1
        ].tolist()
    return found


def _blocks(column: Column, table: NoisyTable, rough: Rough) -> Blocks:
    """The fine cells, in blocks where the first look has counted powers of two."""
    if rough.counts is None:
        return Blocks.alone(table)
    starts = np.array(starts_of(column)[: column.num_values], dtype=np.float64)
    powers, _ = POWERS.cells.locate(starts)
    held, of_cell = np.unique(powers, return_inverse=True)
    known = NoisyTable(rough.counts.counts[held], rough.counts.variance)
    return Blocks.combined(table, known, of_cell)


def _of_values(answer: Measurement) -> NoisyTable:
    """The counts without the last one, that of missing."""
    return NoisyTable(answer.answer[:-1].astype(np.float64), answer.stddev**2)


def _total(answers: Sequence[Measurement], rows: Measurement | None) -> float:
    """The approximate number of rows that have a value."""
    assert rows is not None  # asked for wherever a grid is
    missing = float(np.mean([answer.answer[-1] for answer in answers]))
    return max(float(rows.answer[0]) - max(missing, 0.0), 1.0)


def categories(found: list[tuple[Value | None, int]]) -> dict:
    """The distinct categories among the values found, and one more for all other values.

    Of two values that Python finds equal the more frequent one is kept. Booleans and bytes have no
    further category: there, other values are missing.

    >>> categories([("B", 40), ("A", 60), (None, 3)])
    {'range_values': ['A', 'B'], 'other_value': 'other'}
    """
    most: dict[Any, tuple[int, Value]] = {}
    for key, number in found:
        if key is not None and (key not in most or number > most[key][0]):
            most[key] = number, key
    values = in_order(key for _, key in most.values())
    if len(values) > MOST_CATEGORIES:
        number = {key: number for number, key in most.values()}
        return {**_named(values), "frequencies": [float(max(number[key], 0)) for key in values]}
    return _named(values)


def _named(values: list[Value]) -> dict:
    """The values, and one more for all others: a word, or nines among numbers, as in codebooks."""
    if not values or any(isinstance(value, str) for value in values):
        other = "other"
        while other in values:
            other = f"any {other}"
        return {"range_values": values, "other_value": other}
    numbers = [value for value in values if isinstance(value, int | float)]
    if len(numbers) < len(values) or any(isinstance(value, bool) for value in values):
        return {"range_values": values}
    nines = 9
    while nines <= max(numbers):
        nines = 10 * nines + 9
    return {"range_values": values, "other_value": nines}


def frequencies(answer: Measurement, size: int) -> list[float]:
    """The frequency of each of the first ``size`` codes, with little noise.

    >>> from sdv_privpgd.privacy.queries import MarginalQuery
    >>> query = MarginalQuery(("ward",))
    >>> frequencies(Measurement(query=query, answer=np.array([60, 40, 1]), stddev=2.0), size=2)
    [60.0, 40.0]
    """
    counts = answer.answer[:size].astype(np.float64)
    return pooled(NoisyTable(counts, answer.stddev**2)).tolist()
