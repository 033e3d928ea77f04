"""What a fit would ask and is to be expected to find out, before anything is spent. Public."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any

import numpy as np

from sdv_privpgd.base.domain import Clique
from sdv_privpgd.base.words import listed, number_of
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.report.figures import Curves
from sdv_privpgd.report.page import (
    Facts,
    Figure,
    FigureGrid,
    Page,
    Part,
    Report,
    Section,
    Text,
    as_text,
    long_table,
)
from sdv_privpgd.report.privacy import first_line, in_words, ledger_table, legend

_FEWER_THAN_NOISE = 1 / math.sqrt(2 * math.pi)
"""The displaced part of the rows where a pair's cells hold, on average, as many rows as their
noise has standard deviations: half the mean size of Gaussian noise, times the cells."""

_ROWS_POWER, _ROWS_LEAST, _ROWS_MOST = 0.65, 0.07, 0.18
"""Synthetic rows are between ``_ROWS_LEAST`` and ``_ROWS_MOST`` times this power of what noise
displaces from the table, on average over pairs. So it was in default fits at epsilon 0.2, 1 and 2.5
of four real tables (factors of 0.078 to 0.159, ``tests/benchmarks forecast --rows``) and at 1 of
twelve simulated ones of 1,000 to 50,000 rows (0.099 to 0.178)."""


@dataclass(frozen=True, kw_only=True)
class AnswerErrors:
    """The errors of a fit's answers. Public."""

    sizes: Mapping[str, int]  # the number of codes of each attribute, missing included
    # For each attribute the part of all rows that a share of a value is off by at most, in 95 of
    # 100 cases.
    columns: Mapping[str, float]
    # For each pair the part of the rows that noise puts into another cell of its table, on average.
    # It may exceed 1. On a curve they are some of all pairs.
    pairs: Mapping[Clique, float]
    pair: float | None  # the mean over all pairs; ``None`` where none is asked for
    lost: float = 0.0  # the part of the rows of a pair that discovery may lose, on average

    @property
    def column(self) -> float | None:
        """The mean over columns; ``None`` where none is asked for."""
        return fmean(self.columns.values()) if self.columns else None

    @property
    def most_values(self) -> int | None:
        """How many values each of two columns may have for the noise not to hide their pair.

        A cell of it then holds, on average, as many rows as its noise has standard deviations.
        """
        if not self.pairs:
            return None
        each_cell = median(
            error / math.prod(self.sizes[name] for name in pair)
            for pair, error in self.pairs.items()
        )
        return math.floor(math.sqrt(_FEWER_THAN_NOISE / each_cell)) if each_cell else None


def of_rows(noise: float, lost: float = 0.0) -> tuple[float, float]:
    """Returns the least and the most by which rows differ from the table in a pair.

    That is by noise, and by what discovery may lose: none of it at least.
    """
    power = noise**_ROWS_POWER
    most = min(_ROWS_MOST * power, noise) + lost
    return min(_ROWS_LEAST * power, noise, 1.0), min(most, 1.0)


@dataclass(frozen=True, kw_only=True)
class Curve:
    """The errors at some epsilons, or numbers of rows, as in ``Errors``. Public.

    ``pair``, the mean over pairs, is empty where none is asked.
    """

    at: Sequence[float]
    columns: Mapping[str, Sequence[float]]
    pair: Sequence[float]
    lost: Sequence[float] = ()

    @classmethod
    def of(cls, points: Mapping[float, AnswerErrors]) -> "Curve":
        """The curve through points."""
        found = list(points.values())
        names = [name for name in found[0].columns if all(name in each.columns for each in found)]
        means = [each.pair for each in found]
        return cls(
            at=tuple(points),
            columns={name: tuple(each.columns[name] for each in found) for name in names},
            pair=tuple(mean for mean in means if mean is not None) if None not in means else (),
            lost=tuple(each.lost for each in found),
        )

    @property
    def column(self) -> tuple[float, ...]:
        """The means over columns."""
        return tuple(fmean(errors) for errors in zip(*self.columns.values(), strict=True))

    def moved(self, at: Sequence[float], to: Mapping[float, float]) -> "Curve":
        """The same curve in another unit: ``at`` are its points there, rising.

        ``to`` maps the points of the new curve to that unit. Between points, and a little beyond,
        errors are taken to be powers of it.
        """

        def read(errors: Sequence[float]) -> tuple[float, ...]:
            places, known = np.log(list(to.values())), np.log(at)
            within = np.clip(places, known[0], known[-1])
            found = np.interp(within, known, np.log(errors)) - (places - within)
            return tuple(float(f"{error:.4g}") for error in np.exp(found))

        columns = {name: read(errors) for name, errors in self.columns.items()}
        return Curve(at=tuple(to), columns=columns, pair=read(self.pair) if self.pair else ())


@dataclass(frozen=True, kw_only=True)
class ExpectedErrors:
    """What is to be expected of a fit. Public.

    Curves, over other epsilons and numbers of rows, are None where the method takes too long.
    """

    num_rows: int  # as assumed
    epsilon: float
    are_chosen: bool  # by noisy answers: the pairs that are asked for
    listed: Sequence[str]  # columns whose number of values is declared, so that it can be changed
    assumed: Sequence[str]  # those whose number of values had to be assumed
    here: AnswerErrors
    over_epsilon: Curve | None
    over_rows: Curve | None
    questions: Mapping[str, float] = field(default_factory=dict)  # listed ones: rows, within

    @property
    def too_fine(self) -> list[str]:
        """Columns of more values than the noise can pay for, the finest first."""
        most = self.here.most_values
        if most is None or most < 2:
            return []
        fine = [name for name in self.listed if self.here.sizes[name] > most]
        return sorted(fine, key=lambda name: -self.here.sizes[name])

    def to_dict(self) -> dict[str, Any]:
        """All numbers, by name. Parts of the rows, not percent."""
        here, noise = self.here, self.here.pair
        within = list(of_rows(noise, here.lost)) if noise and not self.are_chosen else None
        return {
            "columns": {
                name: {"values": here.sizes[name], "share_within": error}
                for name, error in here.columns.items()
            },
            "pairs": [
                {"columns": list(pair), "displaced_by_noise": error}
                for pair, error in ({} if self.are_chosen else here.pairs).items()
            ],
            "questions": dict(self.questions),
            "pairs_mean": {"displaced_by_noise": noise, "rows_usually_within": within},
            "lost_by_discovery": here.lost,
            "over_epsilon": _curve(self.over_epsilon, "epsilon"),
            "over_rows": _curve(self.over_rows, "num_rows"),
            "too_fine": {"columns": self.too_fine, "most_values": here.most_values},
        }


def _curve(curve: Curve | None, name: str) -> dict[str, Any] | None:
    if curve is None:
        return None
    return {name: curve.at, "share_within": curve.columns, "pairs_mean": curve.pair}


def expected_section(expected: ExpectedErrors) -> Section:
    """The expectation as a section of a page."""
    said = (
        "Shares, the parts of the rows that have a value, will be right to within so many "
        "percentage points in 95 of 100 cases, in the noisy tables and what is computed from them."
    )
    errors = sorted(expected.here.columns.items(), key=lambda each: -each[1])
    columns = [(name, _size(expected, [name]), _of_100(error)) for name, error in errors]
    header = ("column", "values", "points, within")
    parts: list[Part] = [
        Text(said),
        *long_table("Columns, the least precise first", header, columns),
        *map(Text, _sentences(expected)),
    ]
    if expected.questions:
        header = ("question", "rows, within", "points, within")
        shown = [
            (asked, f"{rows:,.3g}", _of_100(rows / max(expected.num_rows, 1)))
            for asked, rows in expected.questions.items()
        ]
        parts += long_table("Rows that listed questions are about", header, shown)
    if pairs := _pairs(expected):
        header = ("pair", "cells", "% of rows, put elsewhere by noise")
        parts += long_table("Pairs of columns, the loudest first", header, pairs)
    curves = {"epsilon": expected.over_epsilon, "rows": expected.over_rows}
    figures = [
        figure
        for name, curve in curves.items()
        if curve is not None and curve.columns
        for figure in _figures(name, curve, expected)
    ]
    parts += [FigureGrid("wide", figures)] if figures else []
    at = f"epsilon {expected.epsilon:g} and {number_of(expected.num_rows)}"
    return Section(f"What to expect at {at}", parts)


def _size(expected: ExpectedErrors, names: Sequence[str]) -> str:
    """The number of cells of some columns together, with a mark if it is assumed."""
    number = math.prod(expected.here.sizes[name] for name in names)
    return f"{'~' if set(names) & set(expected.assumed) else ''}{number:,}"


def _pairs(expected: ExpectedErrors) -> list[tuple[str, str, str]]:
    """Each pair, its number of cells and what noise displaces; the loudest first."""
    if expected.are_chosen:
        return []
    errors = sorted(expected.here.pairs.items(), key=lambda each: -each[1])
    return [(" × ".join(pair), _size(expected, pair), _of_100(error)) for pair, error in errors]


def _sentences(expected: ExpectedErrors) -> Iterator[str]:
    """On pairs, on columns that are too fine, and on what was assumed."""
    noise, fine, most = expected.here.pair, expected.too_fine, expected.here.most_values
    if noise is not None:
        yield _of_pairs(expected, noise)
    if most is not None and most < 2:
        yield (
            "The noise is louder than the rows in all pairs, even of two values each. Choose fewer "
            "columns, a larger epsilon, or pairs that matter (target)."
        )
    elif fine:
        named = listed([f"{name!r} ({expected.here.sizes[name]:,} values)" for name in fine])
        yield (
            f"Too fine for this budget: {named}. In a pair of two such columns a cell holds fewer "
            f"rows than its noise has standard deviations. About {most:,} values each would do: "
            "put values together (for numbers, num_bins)."
        )
    if expected.assumed:
        one = len(expected.assumed) == 1
        yield (
            f"How many values {listed([*map(repr, expected.assumed)])} "
            f"{'has' if one else 'have'} is not declared: {'a' if one else 'the'} usual "
            f"number{'' if one else 's'} of them (~) {'was' if one else 'were'} assumed."
        )


def _of_pairs(expected: ExpectedErrors, noise: float) -> str:
    what = (
        f"in a pair's table noise puts {_of_100(noise)} % of the rows into another cell on average"
    )
    if expected.are_chosen:
        return f"Pairs: {what}. Noisy answers choose the pairs that are asked for."
    ranked = [each for each in _pairs(expected) if not each[1].startswith("~")]
    if len(ranked) > 2:
        (loudest, _, most_noise), (quietest, _, least_noise) = ranked[0], ranked[-1]
        what += f", from {least_noise} % ({quietest}) to {most_noise} % ({loudest})"
    lost, more = expected.here.lost, ""
    if lost >= 0.005:  # what discovery has to do with that, if it is worth a word
        more = (
            f" That counts what nobody declared: noise may hide {_of_100(lost)} % of the rows of a "
            "pair from the search for categories and ranges. Declare them to keep these rows."
        )
    least, most = map(_of_100, of_rows(noise, lost))
    return (
        f"Pairs: {what}. The synthetic rows of the default method are closer, because what is only "
        f"noise is taken out: in fits with as much noise {least} to {most} % of them were in "
        f"another cell than in the table; the less columns depend on each other, the fewer.{more}"
    )


def _figures(name: str, curve: Curve, expected: ExpectedErrors) -> list[Figure]:
    """The errors of columns, and of pairs, over epsilon or rows."""
    last = {column: errors[-1] for column, errors in curve.columns.items()}
    ends = sorted(last, key=lambda column: last[column])
    chosen = {"mean": curve.column}
    if len(ends) > 1:
        chosen |= {ends[-1]: curve.columns[ends[-1]], ends[0]: curve.columns[ends[0]]}
    axis = "epsilon" if name == "epsilon" else "number of rows"
    found = [
        Figure(
            f"Shares of a column, over {axis}",
            f"95 of 100 shares are within: on average {_of_100(curve.column[0])} points at "
            f"{_at(name, curve.at[0])}, {_of_100(curve.column[-1])} at {_at(name, curve.at[-1])}.",
            Curves(title=axis, at=curve.at, lines=chosen),
        )
    ]
    if curve.pair:
        lines = {"noise": curve.pair}
        if not expected.are_chosen:
            least, most = zip(*map(of_rows, curve.pair, curve.lost), strict=True)
            lines |= {"rows, at most": most, "rows, at least": least}
        found.append(
            Figure(
                f"Pairs of columns, over {axis}",
                f"Noise puts elsewhere, on average over pairs: {_of_100(curve.pair[0])} % of the "
                f"rows at {_at(name, curve.at[0])}, {_of_100(curve.pair[-1])} % at "
                f"{_at(name, curve.at[-1])}.",
                Curves(title=axis, at=curve.at, lines=lines),
            )
        )
    return found


def _at(name: str, point: float) -> str:
    """A point of a curve in words."""
    return f"epsilon {point:g}" if name == "epsilon" else f"{point:,.12g} rows"


def _of_100(part: float) -> str:
    """A part of the rows as a number of 100, with two digits; no more than all."""
    number = 100 * part
    if number > 100:
        return "over 100"
    if number < 0.01:
        return "below 0.01"
    return f"{number:.{(number < 9.95) + (number < 0.995)}f}"


def plan_report(
    ledger: PrivacyLedger, num_rows: int, expected: ExpectedErrors | None, notes: Sequence[str] = ()
) -> Report:
    """What a fit would ask and how large its errors would be, if anything is asked. Public."""
    title = f"Plan for {number_of(num_rows)}"
    budget = f"Epsilon {ledger.epsilon:g}, delta {ledger.delta:g}"
    asked = f"{budget}, {in_words(ledger.adjacency)}, for {ledger.unit}"
    shown = [] if expected is None else [expected_section(expected)]
    said = [*map(Text, notes)]
    opening = [Text(f"{title}: no table was asked, nothing was spent"), Text(asked)]
    known = Facts([("rows assumed", f"{num_rows:,}"), ("epsilon", f"{ledger.epsilon:g}")])
    asked_of: list[Part] = [ledger_table(ledger), legend(ledger)]
    return Report(
        text=as_text([*first_line(ledger), *opening, *asked_of, *shown, *said]),
        page=Page(
            title=title,
            lead=[*first_line(ledger), known, *opening, *said],
            sections=[*shown, Section("What would be asked of the table", asked_of)],
        ),
        facts={
            "report": "plan",
            "public": True,
            "num_rows": num_rows,
            "ledger": ledger.to_dict(),
            "expected": None if expected is None else expected.to_dict(),
            "warnings": list(notes),
        },
    )
