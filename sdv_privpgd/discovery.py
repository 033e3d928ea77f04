"""Private discovery of ranges, precisions and categories that nobody declared.

It is paid from the same budget. Numbers and dates are counted on a grid that is fixed beforehand,
then on a finer one over the part of it that holds rows; values of categories are counted as they
are and released above a threshold. All of it is asked of the curator, so the ledger has it; what is
made of the noisy answers is post-processing. The encoders read the table cell by cell, as ever.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from sdv_privpgd.cells import Interval, SignedPowers, Ticks
from sdv_privpgd.coercion import (
    LARGEST_WHOLE,
    canonical,
    cells,
    decimal_places,
    quiet,
    real_numbers,
)
from sdv_privpgd.columns import Column, describe
from sdv_privpgd.dataset import Dataset
from sdv_privpgd.dates import EARLIEST, LATEST, precisions, write_dates
from sdv_privpgd.domain import Domain
from sdv_privpgd.keys import Key, KeyColumns
from sdv_privpgd.measure import Measurement, NoisyTable
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.progress import Progress, silent
from sdv_privpgd.queries import MarginalQuery
from sdv_privpgd.support import supported_one_way
from sdv_privpgd.transformers import transformer_for

_DELTA_SHARE = Fraction(1, 10)
"""Part of delta that is kept for the thresholds; it costs less than 1 % of noise."""

_FALSE_ALARMS = 1e-3
"""Chance that some empty cell of a column's grid seems to hold rows."""

_FINE_CELLS = 256
"""Cells of the second grid: a range is found to within 1 / 256 of the first one's."""

_MOST_PLACES = 6
"""Decimal places that are told apart; numbers with more have no precision."""

_DAY = 86_400 * 10**9
_YEARS = Ticks(EARLIEST // _DAY, LATEST // _DAY, 584)
"""The first grid of dates: about a year each, in days since 1970."""

_UNITS = ("D", "s", "ns")
"""Of ``dates.precisions``."""


def reserved_delta(undeclared: Mapping[str, Mapping], delta: float) -> Fraction:
    """The part of delta that discovery needs for the thresholds of categories."""
    return Fraction(delta) * _DELTA_SHARE if _with_keys(undeclared) else Fraction(0)


def discover(
    columns: Mapping[str, pd.Series],
    undeclared: Mapping[str, Mapping],
    curator: Curator,
    share: Fraction,
    *,
    progress: Progress = silent,
) -> dict[str, dict]:
    """What takes the place of a declaration of each column, in SDV's words. Public.

    Privacy: ``share`` of the ledger's budget, and ``reserved_delta``, which it must have kept.

    Args:
        columns: The private columns.
        undeclared: For each column to look into what is known of it, in SDV's words: its sdtype,
            and perhaps its ``decimal_places`` or ``datetime_format``.
        curator: Who is asked. He holds other codes of the table afterwards.
        share: Of the budget, for all columns together: each gets the same part.
        progress: Told of the measurements.
    """
    if not undeclared:
        return {}
    keyed, measured = _with_keys(undeclared), _measured(undeclared)
    part = curator.ledger.budget * share / len(undeclared)
    facts: dict[str, dict] = {}
    first = _FirstLook.at({name: columns[name] for name in measured}, measured)
    keys = KeyColumns({name: map(canonical, cells(columns[name])) for name in keyed})
    curator.recode(first.dataset, keys=keys)
    for name, found in curator.discover(
        part * len(keyed), curator.ledger.reserved, what="categories of undeclared columns"
    ).items():
        facts[name] = _categories(found)
    if not measured:
        return facts
    answers = curator.measure(
        [MarginalQuery(clique) for clique in first.dataset.domain.cliques(1)],
        part * len(measured) / 2,
        what="sizes and precisions of undeclared columns",
        progress=progress,
    )
    rough = first.facts(answers)
    fine = {
        name: describe(
            name,
            {
                **rough[name],
                "num_bins": _FINE_CELLS,
                "range_is_nullable": True,
                "cut_points": None,
            },
        )
        for name in measured
    }
    codes = [transformer_for(column).encode(columns[name])[0] for name, column in fine.items()]
    domain = Domain(tuple(fine), tuple(column.size for column in fine.values()))
    curator.recode(Dataset(domain, np.column_stack(codes)))
    queries = [MarginalQuery(clique) for clique in domain.cliques(1)]
    answers = curator.measure(
        queries,
        part * len(measured) / 2,
        what="ranges of undeclared columns",
        progress=progress,
    )
    for (name, column), answer in zip(fine.items(), answers, strict=True):
        found = _looked_into(column, answer, undeclared[name])
        facts[name] = {**_kept(rough[name]), **found}
    return facts


def _kept(facts: Mapping) -> dict:
    """What a public domain may say: not the sdtype, and nothing that is not known."""
    words = ("decimal_places", "datetime_format")
    return {key: facts[key] for key in words if facts.get(key) is not None}


def _with_keys(undeclared: Mapping[str, Mapping]) -> list[str]:
    return [name for name, facts in undeclared.items() if "ordinal" in _kind(facts)]


def _measured(undeclared: Mapping[str, Mapping]) -> dict[str, Mapping]:
    return {name: facts for name, facts in undeclared.items() if "ordinal" not in _kind(facts)}


def _kind(facts: Mapping) -> tuple[str, ...]:
    """The sdtypes that are looked into in the same way."""
    kinds = ("categorical", "ordinal"), ("numerical",), ("datetime",)
    return next(kind for kind in kinds if facts["sdtype"] in kind)


@dataclass(frozen=True, kw_only=True)
class _FirstLook:
    """The codes of numbers and dates on the first grid, and of how precise they are. Private.

    Attributes:
        known: What is known of each column.
        dataset: Two attributes a column, one for a column of known precision.
    """

    known: Mapping[str, Mapping]
    dataset: Dataset

    @classmethod
    def at(cls, columns: Mapping[str, pd.Series], known: Mapping[str, Mapping]) -> "_FirstLook":
        codes: dict[str, np.ndarray] = {}
        sizes: dict[str, int] = {}
        for at, (name, facts) in enumerate(known.items()):
            is_date, series = facts["sdtype"] == "datetime", columns[name]
            if is_date:
                codes[f"grid {at}"], _ = transformer_for(_grid(name, facts)).encode(series)
            else:
                codes[f"grid {at}"] = _powers(series)
            sizes[f"grid {at}"] = len(_YEARS if is_date else SignedPowers()) + 1
            if not _has_precision(facts):
                with quiet():
                    precise = (
                        precisions(series) if is_date else decimal_places(series, _MOST_PLACES)
                    )
                codes[f"precision {at}"] = precise
                sizes[f"precision {at}"] = len(_UNITS) + 1 if is_date else _MOST_PLACES + 3
        table = np.column_stack(list(codes.values())) if codes else np.empty((0, 0), np.int64)
        return cls(known=known, dataset=Dataset(Domain(tuple(sizes), tuple(sizes.values())), table))

    def facts(self, answers: list[Measurement]) -> dict[str, dict]:
        """What the noisy answers say of each column, its range only roughly. Public."""
        names = self.dataset.domain.attributes
        answer_of = dict(zip(names, answers, strict=True))
        found = {}
        for at, (name, facts) in enumerate(self.known.items()):
            grid = answer_of[f"grid {at}"]
            inside = _significant(grid, grid.answer.size - 1)
            ends = int(inside[0]), int(inside[-1])
            precision = None
            if f"precision {at}" in answer_of:
                precise = answer_of[f"precision {at}"]
                precision = int(_significant(precise, precise.answer.size - 1)[-1])
            read = _rough_dates if facts["sdtype"] == "datetime" else _rough_numbers
            found[name] = {**facts, **_within(facts, read(facts, ends, precision))}
        return found


def _grid(name: str, facts: Mapping) -> Column:
    """A datetime column on the first grid."""
    written = facts.get("datetime_format")
    return Column(name=name, sdtype="datetime", cells=_YEARS, unit="D", datetime_format=written)


def _powers(series: pd.Series) -> np.ndarray:
    """The codes of a private numerical column on the first grid; missing is the last."""
    with quiet():
        numbers, missing = real_numbers(series)
        codes, _ = SignedPowers().locate(np.where(missing, 0.0, numbers))
    return np.where(missing, len(SignedPowers()), codes)


def _has_precision(facts: Mapping) -> bool:
    return facts.get("decimal_places") is not None or facts.get("datetime_format") is not None


def _significant(measurement: Measurement, size: int) -> np.ndarray:
    """The first codes that hold rows, ascending: at least that of the largest count."""
    counts = measurement.answer[:size]
    least = norm.isf(_FALSE_ALARMS / size) * measurement.stddev
    return np.flatnonzero(counts >= min(least, counts.max()))


def _rough_numbers(facts: Mapping, ends: tuple[int, int], precision: int | None) -> dict:
    """The range of cells of ``SignedPowers``, and the decimal places."""
    edges = SignedPowers().edges
    zero = len(edges) // 2 - 1
    # The cell about zero is taken as zero where it ends the range.
    low = 0 if ends[0] == zero else _exactly(edges[ends[0]])
    high = 0 if ends[1] == zero else _exactly(edges[ends[1] + 1])
    places = facts.get("decimal_places") if precision is None else precision
    if places is None or places > _MOST_PLACES:
        return {"range_min": low, "range_max": high, "decimal_places": None}
    # Outwards to whole ticks: a range between two of them has no number.
    if isinstance(low, float):
        low = math.floor(low * 10**places) / 10**places
    if isinstance(high, float):
        high = math.ceil(high * 10**places) / 10**places
    return {"range_min": low, "range_max": high, "decimal_places": places}


def _exactly(edge: float) -> float | int:
    """A power of two as a number that whole numbers are read up to."""
    return max(int(edge), 1 - LARGEST_WHOLE) if edge == int(edge) else float(edge)


def _rough_dates(facts: Mapping, ends: tuple[int, int], precision: int | None) -> dict:
    """The range of years of the first grid."""
    first = int(_YEARS.starts[ends[0]])
    last = int(_YEARS.starts[ends[1]] + _YEARS.widths[ends[1]]) - 1
    unit = "D" if precision is None else _UNITS[min(precision, len(_UNITS) - 1)]
    return _dated(first * _DAY, last * _DAY, unit, facts.get("datetime_format"))


def _dated(first: int, last: int, unit: str, datetime_format: str | None) -> dict:
    """A range in SDV's words of days, or of moments, in nanoseconds since 1970."""
    if datetime_format is not None:
        ends = write_dates(np.array([first, last]), "ns", datetime_format, utc=False)
        return {"range_min": str(ends[0]), "range_max": str(ends[1])}
    # Bounds that are whole days would be read as a column of days.
    beyond = {"D": 0, "s": _DAY - 10**9, "ns": _DAY - 1}[unit]
    low = max(first, EARLIEST)
    high = min(last + (beyond if last % _DAY == 0 else 0), LATEST)
    return {
        "range_min": str(np.datetime64(low, "ns")),
        "range_max": str(np.datetime64(high, "ns")),
    }


def _within(facts: Mapping, found: dict) -> dict:
    """What was found, with a bound that was declared in its place, and the other not beyond it."""
    declared = {key: facts[key] for key in ("range_min", "range_max") if facts.get(key) is not None}
    merged = {**found, **declared}

    def place(key: str) -> Any:
        value = merged[key]
        if facts["sdtype"] == "numerical":
            return value
        return pd.to_datetime(value, format=facts.get("datetime_format"))

    if declared and place("range_min") > place("range_max"):
        (bound,) = declared.values()
        merged |= {"range_min": bound, "range_max": bound}
    return merged


def _looked_into(column: Column, answer: Measurement, facts: Mapping) -> dict:
    """The range of the fine cells that have support, whether missing has, and where to cut."""
    counts = answer.answer.astype(np.float64)
    table = NoisyTable(counts, answer.stddev**2)
    supported = supported_one_way(table, counts.size, max(float(counts.sum()), 1.0))
    inside = np.flatnonzero(supported[: column.num_values])
    first, last = (int(inside[0]), int(inside[-1])) if inside.size else (0, column.num_values - 1)
    found = _within(facts, _range(column, (first, last)))
    found["range_is_nullable"] = bool(supported[column.num_values] > 0)
    if column.sdtype == "numerical" and facts.get("cut_points") is None:
        starts = _starts(column)[first : last + 1]
        low, high = found["range_min"], found["range_max"]
        cuts = _cuts(supported[first : last + 1], int(facts["num_bins"]))
        found["cut_points"] = [float(starts[cut]) for cut in cuts if low < starts[cut] <= high]
    return found


def _starts(column: Column) -> np.ndarray:
    """The smallest number of each cell of a numerical column."""
    if isinstance(column.cells, Interval):
        return column.cells.edges
    assert isinstance(column.cells, Ticks)
    return column.cells.starts / 10 ** (column.decimal_places or 0)


def _cuts(counts: np.ndarray, num_cells: int) -> list[int]:
    """Where to cut a row of counts into cells; nowhere if equal widths are as good or better.

    A cell spreads its mass evenly, so it is cut where its counts differ most, by the squares that
    this saves, as long as any do; then the cells with the most mass are halved.
    """
    if counts.size <= num_cells or not counts.any():
        return []
    sums = np.concatenate(([0.0], np.cumsum(counts)))
    edges = [0, counts.size]
    while len(edges) <= num_cells:
        found = [_best_cut(sums, start, end) for start, end in pairwise(edges)]
        saved, cut = max(found)
        if saved <= 1e-9 * float(counts.sum()) ** 2:
            wide = [(sums[end] - sums[start], start, end) for start, end in pairwise(edges)]
            _, start, end = max(cell for cell in wide if cell[2] - cell[1] > 1)
            cut = (start + end) // 2
        edges = sorted([*edges, cut])
    cuts = edges[1:-1]
    widths = [at * counts.size // num_cells for at in range(1, num_cells)]
    return cuts if _misplaced(counts, cuts) < _misplaced(counts, widths) else []


def _best_cut(sums: np.ndarray, start: int, end: int) -> tuple[float, int]:
    """The sum of squares about the mean that the best cut of a cell saves, and where it is."""
    if end - start < 2:
        return 0.0, start
    at = np.arange(start + 1, end)
    left, right = sums[at] - sums[start], sums[end] - sums[at]
    whole = (sums[end] - sums[start]) ** 2 / (end - start)
    saved = left**2 / (at - start) + right**2 / (end - at) - whole
    best = int(saved.argmax())
    return float(saved[best]), int(at[best])


def _misplaced(counts: np.ndarray, cuts: list[int]) -> float:
    """How much mass is elsewhere if each cell spreads its own evenly."""
    return float(sum(np.abs(cell - cell.mean()).sum() for cell in np.split(counts, cuts)))


def _range(column: Column, ends: tuple[int, int]) -> dict:
    """The range from one cell to another in SDV's words."""
    first, last = ends
    if isinstance(column.cells, Interval):
        edges = column.cells.edges
        return {
            "range_min": float(edges[first]),
            "range_max": float(edges[min(last + 1, len(edges) - 1)]),
        }
    assert isinstance(column.cells, Ticks)
    low = int(column.cells.starts[first])
    high = int(column.cells.starts[last] + column.cells.widths[last]) - 1
    if column.sdtype == "datetime":
        unit = column.unit or "D"
        low, high = np.array([low, high]).astype(f"M8[{unit}]").astype("M8[ns]").astype(int)
        return _dated(int(low), int(high), unit, column.datetime_format)
    scale = 10 ** (column.decimal_places or 0)
    if scale == 1:
        return {"range_min": low, "range_max": high}
    return {"range_min": low / scale, "range_max": high / scale}


def _categories(found: list[tuple[Key, int]]) -> dict:
    """Values that differ, the more frequent of two that Python finds equal, and one for the rest.

    Numbers have no word for the rest: there it is missing.
    """
    most: dict[Any, tuple[int, Key]] = {}
    for key, number in found:
        if key not in most or number > most[key][0]:
            most[key] = number, key
    values = [key for _, key in most.values()]
    if values and not any(isinstance(value, str) for value in values):
        return {"range_values": values}
    other = "other"
    while other in values:
        other = f"any {other}"
    return {"range_values": values, "other_value": other}
