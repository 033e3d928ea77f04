"""Says what is to be expected of a fit, before anything is spent. Public."""

import math
from collections.abc import Iterator, Sequence
from textwrap import wrap

from sdv_privpgd.report.expected import Curve, Outlook, of_rows
from sdv_privpgd.report.figures import Curves
from sdv_privpgd.report.page import Figure, Grid, Part, Section, Table, Text, long_table
from sdv_privpgd.report.privacy import WIDTH
from sdv_privpgd.words import in_rows, listed

_MOST_LINES = 12
"""Columns that the text lists."""

_NAME = 40
"""Width of a name in the text, in characters."""

_MOST_NAMED = 6

_SHARES = (
    "Shares, the parts of the rows that have a value, will be right to within so many percentage "
    "points in 95 of 100 cases, in the noisy tables and what is computed from them"
)


def outlook_lines(outlook: Outlook) -> list[str]:
    r"""The expectation as lines of text."""
    lines = [*_wrapped(f"{heading(outlook)}.", f"{_SHARES}:")]
    rows = _columns(outlook)
    shown = rows if len(rows) <= _MOST_LINES + 3 else rows[:_MOST_LINES]
    lines.append(_line("column", "values", "points"))
    lines += [_line(*row) for row in shown]
    if len(shown) < len(rows):
        rest = rows[len(shown) :]
        lines.append(_line(f"the other {len(rest)}", "", f"{rest[-1][2]} to {rest[0][2]}"))
    for sentences in _sentences(outlook):
        lines += ["", *wrap(sentences, WIDTH)]
    for name, curve in _curves(outlook):
        header, *body = _points(name, curve, outlook)
        widths = [max(map(len, cells)) for cells in zip(header, *body, strict=True)]
        lines.append("")
        for row in (header, *body):
            first, *others = (
                cell.ljust(width) if not place else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            lines.append("  ".join([first, *others]))
    return lines


def outlook_section(outlook: Outlook) -> Section:
    """The expectation as a section of a page."""
    parts: list[Part] = [
        Text(f"{_SHARES}."),
        *long_table(
            "Columns, the least precise first",
            ("column", "values", "points, within"),
            _columns(outlook),
        ),
        *map(Text, _sentences(outlook)),
    ]
    pairs = _pairs(outlook)
    if pairs:
        parts += long_table(
            "Pairs of columns, the loudest first",
            ("pair", "cells", "% of rows, put elsewhere by noise"),
            pairs,
        )
    curves = _curves(outlook)
    figures = [figure for name, curve in curves for figure in _figures(name, curve, outlook)]
    parts += [Grid("wide", figures)] if figures else []
    for name, curve in curves:
        header, *body = _points(name, curve, outlook)
        parts.append(Table(f"Errors over {name}", header, body))
    return Section(heading(outlook), parts)


def heading(outlook: Outlook) -> str:
    """What the numbers are of."""
    return f"What to expect at epsilon {outlook.epsilon:g} and {in_rows(outlook.num_rows)}"


def _columns(outlook: Outlook) -> list[tuple[str, str, str]]:
    """Each column, its number of values and the error of its shares; the largest first."""
    errors = sorted(outlook.here.columns.items(), key=lambda each: -each[1])
    return [(name, _size(outlook, [name]), _of_100(error)) for name, error in errors]


def _size(outlook: Outlook, names: Sequence[str]) -> str:
    """The number of cells of some columns together, with a mark if it is assumed."""
    number = math.prod(outlook.here.sizes[name] for name in names)
    return f"{'~' if set(names) & set(outlook.assumed) else ''}{number:,}"


def _pairs(outlook: Outlook) -> list[tuple[str, str, str]]:
    """Each pair, its number of cells and what noise displaces; the loudest first."""
    if outlook.are_chosen:
        return []
    errors = sorted(outlook.here.pairs.items(), key=lambda each: -each[1])
    return [(" × ".join(pair), _size(outlook, pair), _of_100(error)) for pair, error in errors]


def _sentences(outlook: Outlook) -> Iterator[str]:
    """On pairs, on columns that are too fine, and on what was assumed."""
    noise = outlook.here.pair
    if noise is not None:
        yield _of_pairs(outlook, noise)
    yield from _of_fine(outlook)
    if outlook.assumed:
        one = len(outlook.assumed) == 1
        yield (
            f"How many values {listed([*map(repr, outlook.assumed)], _MOST_NAMED)} "
            f"{'has' if one else 'have'} is not declared: {'a' if one else 'the'} usual "
            f"number{'' if one else 's'} of them (~) {'was' if one else 'were'} assumed."
        )


def _of_pairs(outlook: Outlook, noise: float) -> str:
    what = (
        f"in a pair's table noise puts {_of_100(noise)} % of the rows into another cell on average"
    )
    if outlook.are_chosen:
        return f"Pairs: {what}. Noisy answers choose the pairs that are asked for."
    ranked = [each for each in _pairs(outlook) if not each[1].startswith("~")]
    if len(ranked) > 2:
        (loudest, _, most_noise), (quietest, _, least_noise) = ranked[0], ranked[-1]
        what += f", from {least_noise} % ({quietest}) to {most_noise} % ({loudest})"
    least, most = map(_of_100, of_rows(noise))
    return (
        f"Pairs: {what}. The synthetic rows of the default method are closer, because what is only "
        f"noise is taken out: in fits with as much noise {least} to {most} % of them were in "
        "another cell than in the table; the less columns depend on each other, the fewer."
    )


def _of_fine(outlook: Outlook) -> Iterator[str]:
    fine, most = outlook.too_fine, outlook.here.most_values
    if most is not None and most < 2:
        yield (
            "The noise is louder than the rows in all pairs, even of two values each. Choose fewer "
            "columns, a larger epsilon, or pairs that matter (target)."
        )
    elif fine:
        named = listed(
            [f"{name!r} ({outlook.here.sizes[name]:,} values)" for name in fine], _MOST_NAMED
        )
        yield (
            f"Too fine for this budget: {named}. In a pair of two such columns a cell holds fewer "
            f"rows than its noise has standard deviations. About {most:,} values each would do: "
            "put values together (for numbers, num_bins)."
        )


def _curves(outlook: Outlook) -> list[tuple[str, Curve]]:
    named = [("epsilon", outlook.over_epsilon), ("rows", outlook.over_rows)]
    return [(name, curve) for name, curve in named if curve is not None and curve.columns]


def _points(name: str, curve: Curve, outlook: Outlook) -> list[Sequence[str]]:
    """The rows of a table: the points, the mean column, the mean pair, and the synthetic rows."""
    found: list[Sequence[str]] = [
        (name, *(f"{point:,.12g}" for point in curve.at)),
        ("share in a column, points", *map(_of_100, curve.column)),
    ]
    if curve.pair:
        found.append(("noise in a pair, % of rows", *map(_of_100, curve.pair)))
    if curve.pair and not outlook.are_chosen:
        least, most = zip(*map(of_rows, curve.pair), strict=True)
        found.append(("synthetic rows, % least", *map(_of_100, least)))
        found.append(("synthetic rows, % most", *map(_of_100, most)))
    return found


def _figures(name: str, curve: Curve, outlook: Outlook) -> list[Figure]:
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
        if not outlook.are_chosen:
            least, most = zip(*map(of_rows, curve.pair), strict=True)
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
    return (
        f"{number:.0f}"
        if number >= 9.95
        else f"{number:.1f}"
        if number >= 0.995
        else f"{number:.2f}"
    )


def _line(name: str, values: str, error: str) -> str:
    first, *rest = wrap(name, _NAME) or [""]
    lines = [f"{first:<{_NAME}}  {values:>6}  {error:>11}", *rest]
    return "\n".join(line.rstrip() for line in lines)


def _wrapped(*paragraphs: str) -> Iterator[str]:
    for paragraph in paragraphs:
        yield from wrap(paragraph, WIDTH)
        yield ""
