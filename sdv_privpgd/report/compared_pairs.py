"""The part of a page that shows synthetic and real pairs of columns side by side. Not private."""

from collections.abc import Mapping

import numpy as np

from sdv_privpgd.columns.labels import Names
from sdv_privpgd.domain import Clique, Domain
from sdv_privpgd.metrics.values import CommonCells
from sdv_privpgd.report.figures import Heat, pair_matrix
from sdv_privpgd.report.page import Figure, Grid, Section, Table, Text
from sdv_privpgd.words import dates, number, share, short_number

_MOST_PAIRS, _MOST_DRAWN = 4, 40
"""Numbers of pairs that are drawn cell by cell, and of a column's cells that are drawn."""


def pairs_section(cells: Mapping[str, CommonCells], pairs: Mapping[Clique, float]) -> Section:
    """The distances of all pairs, and the furthest ones cell by cell."""
    ranked = sorted(pairs.items(), key=lambda pair: -pair[1])
    maps = [
        figure
        for (first, second), distance in ranked[:_MOST_PAIRS]
        for figure in _maps(cells[first], cells[second], distance)
    ]
    distances = list(pairs.values())
    domain = Domain(tuple(cells), tuple(map(len, cells.values())))
    columns = Names.plain(domain.attributes)
    matrix = Heat(
        titles=("column", "column"),
        rows=columns,
        columns=columns,
        values=pair_matrix(domain, pairs),
        largest=max(distances),
        unit="distance",
    )
    return Section(
        "Columns in pairs",
        [
            Text(
                "The distance is the share of rows that would have to change cells to turn one "
                "table into the other."
            ),
            Grid(
                "wide",
                [
                    Figure(
                        "Distance of the synthetic rows from the real ones",
                        f"{len(distances):,} pairs, mean {share(float(np.mean(distances)))}, "
                        f"largest {share(max(distances))}.",
                        matrix,
                    )
                ],
            ),
            Table(
                f"The {len(ranked[:12])} pairs that lie furthest apart",
                ("pair", "distance"),
                [(" × ".join(pair), share(value)) for pair, value in ranked[:12]],
            ),
            Grid("triple", maps),
        ],
    )


def common_names(cells: CommonCells) -> Names:
    """The names of cells that are made of both tables' values. Not private."""
    lows, highs = ([ends[side] for ends in cells.ends] for side in (0, 1))
    if cells.column.sdtype == "datetime":
        first, last, ticks = dates(lows), dates(highs), dates(lows)
    elif cells.column.is_numeric:
        first, last = (list(map(number, side)) for side in (lows, highs))
        ticks = list(map(short_number, lows))
    else:
        first = last = ticks = list(map(str, lows))
    labels = [
        low if low == high else f"{low} – {high}" for low, high in zip(first, last, strict=True)
    ]
    return Names([*labels, *cells.others], [*ticks, *cells.others])


def _maps(first: CommonCells, second: CommonCells, distance: float) -> list[Figure]:
    """A pair's shares in both tables and their difference."""
    title = f"{first.column.name} × {second.column.name}"
    rows, columns = _few(first), _few(second)
    theirs, ours = (
        _shares(getattr(first, each), getattr(second, each), len(rows.labels), len(columns.labels))
        for each in ("real", "synthetic")
    )
    top, largest = float(max(ours.max(), theirs.max())), float(np.abs(theirs - ours).max())
    figures = []
    for what, table, limit, diverging in (
        ("real", theirs, top, False),
        ("synthetic", ours, top, False),
        ("difference", theirs - ours, largest, True),
    ):
        summary = (
            f"Real less synthetic, distance {share(distance)}"
            if diverging
            else f"Share of rows in each of {table.size:,} cells, at most {share(top)}"
        )
        heat = Heat(
            titles=(first.column.name, second.column.name),
            rows=rows,
            columns=columns,
            values=table,
            largest=limit,
            diverging=diverging,
        )
        figures.append(Figure(f"{title}: {what}", f"{summary}.", heat))
    return figures


def _few(cells: CommonCells) -> Names:
    """The names of a few cells, so that they can be told apart; the last ones share a name."""
    names = common_names(cells)
    if len(cells) <= _MOST_DRAWN:
        return names
    rest = f"{len(cells) - _MOST_DRAWN + 1} others"
    return Names(
        [*names.labels[: _MOST_DRAWN - 1], rest], [*names.ticks[: _MOST_DRAWN - 1], "others"]
    )


def _shares(first: np.ndarray, second: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """The shares of pairs of cells; those beyond the last count as the last."""
    places = np.minimum(first, rows - 1) * columns + np.minimum(second, columns - 1)
    counts = np.bincount(places, minlength=rows * columns)
    return counts.reshape(rows, columns) / len(first)
