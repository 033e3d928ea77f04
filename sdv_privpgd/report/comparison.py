"""The page that is not private: synthetic rows beside the real ones, worst columns first."""

from collections.abc import Mapping, Sequence

import numpy as np

from sdv_privpgd.domain import Clique, Domain
from sdv_privpgd.metrics.outside import Outside
from sdv_privpgd.metrics.values import CommonCells, as_codes
from sdv_privpgd.report.figures import heat_figure, pair_matrix, shares_figure
from sdv_privpgd.report.labels import Names
from sdv_privpgd.report.page import (
    Facts,
    Figure,
    Grid,
    Items,
    Page,
    Part,
    Section,
    Table,
    Text,
    long_grid,
    long_table,
)
from sdv_privpgd.report.words import dates, number, share, short_number

_MOST_PAIRS = 4
"""Pairs that are drawn cell by cell."""

_BANNER = "NOT PRIVATE: this page compares with the real table. Do not pass it on."

_MEANINGS = {
    "half_l1": "total variation distance of pairs: share of rows in the wrong cell, 0 to 1",
    "l1": "half_l1 times two, as the PrivPGD paper counts it",
    "sw1": "sliced W1 distance of pairs: how far rows lie off, in parts of all cells in a row",
    "covariance": "error of the covariances, over the synthetic rows' norm",
    "covariance_to_real": "error of the covariances, over the real rows' norm",
    "counting": "relative error of random counting queries on three columns",
    "threshold": "relative error of random linear threshold queries",
}

_QUANTILES = (0.01, 0.5, 0.99, 0.999)


def comparison_page(
    cells: Mapping[str, CommonCells],
    lost: Mapping[str, Outside],
    pairs: Mapping[Clique, float],
    scores: Mapping[str, float],
    quality: Mapping[str, float],
) -> Page:
    """The page of columns in common cells. Not private.

    ``lost`` is what the domain does not hold of each column, ``pairs`` are distances, ``scores``
    the papers' metrics, and ``quality`` SDMetrics' score, first as a whole and then its parts.
    """
    first = next(iter(cells.values()))
    facts = [
        ("real rows", f"{len(first.real):,}"),
        ("synthetic rows", f"{len(first.synthetic):,}"),
        ("columns", f"{len(cells):,}"),
        ("mean distance of columns", share(_mean([each.distance for each in cells.values()]))),
    ]
    if pairs:
        facts.append(("mean distance of pairs", share(_mean(list(pairs.values())))))
    facts.append(("SDMetrics' quality", share(quality["Overall"])))
    sections = [_outside_section(lost), _columns_section(cells)]
    if pairs:
        sections.append(_pairs_section(cells, pairs))
    return Page(
        title="Synthetic rows beside the real ones",
        banner=_BANNER,
        lead=[
            Text(
                "Every number and figure here was computed from the real table without any noise. "
                "It may tell about single people; no privacy budget covers it. Settings that are "
                "chosen by what is seen here are not covered either."
            ),
            Facts(facts),
        ],
        sections=[*sections, _scores_section(scores, quality)],
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


def said(name: str, lost: Outside) -> str:
    """What a domain does not hold of a column, in one sentence."""
    parts = [
        (lost.below, "below its range, which became its lowest value"),
        (lost.above, "above its range, which became its highest value"),
        (lost.undeclared, f"values that are not among its categories, which became {lost.fate}"),
        (lost.unreadable, f"values that could not be read, which became {lost.fate}"),
        (lost.missing, f"missing, where nothing may be, which became {lost.fate}"),
    ]
    words = [f"{share(part)} {what}" for part, what in parts if part > 0]
    return (
        f"{name}: {share(lost.share)} of the real rows are outside its domain ({'; '.join(words)})."
    )


def _outside_section(lost: Mapping[str, Outside]) -> Section:
    worst = sorted(lost.items(), key=lambda item: -item[1].share)
    sentences = [said(name, each) for name, each in worst if each.share > 0]
    rounded = [
        (name, each.finer)
        for name, each in sorted(lost.items(), key=lambda item: -item[1].finer)
        if each.finer > 0
    ]
    shown: list[Part] = [
        Text(
            "These values cannot come back: the fit has put them where the domain has a place. "
            "Declare a wider range, or the categories that are missing here, from public "
            "knowledge and not from this list."
        )
        if sentences
        else Text("None: every real value lies in the domain of its column.")
    ]
    shown += [Items(sentences)] * bool(sentences)
    if rounded:
        words = ", ".join(f"{name} ({share(part)} of the rows)" for name, part in rounded[:12])
        others = f" and {len(rounded) - 12} others" * (len(rounded) > 12)
        shown.append(
            Text(
                f"Rounded, as they are finer than the column's precision: {words}{others}.",
                quiet=True,
            )
        )
    return Section("Real values outside the domain", shown)


def _columns_section(cells: Mapping[str, CommonCells]) -> Section:
    worst = sorted(cells.items(), key=lambda item: -item[1].distance)
    figures = []
    for name, each in worst:
        real, synthetic = each.shares
        description = shares_figure(name, common_names(each), synthetic, real, "real")
        summary = f"Distance {share(each.distance)}, {len(each)} cells."
        figures.append(Figure(name, summary, "small", description))
    numeric = [
        each for _, each in worst if each.numbers is not None and all(map(len, each.numbers))
    ]
    return Section(
        "Columns one by one",
        [
            Text(
                "Bars are the synthetic rows, points are the real ones; the worst column is first. "
                "Numbers and dates are cut where the real ones have their quantiles, and values "
                "that many rows share stand alone. The distance is the share of rows whose value "
                "would have to change cells: a value that was clipped, or became missing or "
                "another, counts."
            ),
            *long_grid("grid", figures, "columns"),
            *([] if not numeric else _numbers_table(numeric)),
        ],
    )


def _numbers_table(numeric: Sequence[CommonCells]) -> list[Part]:
    header = (
        "column",
        "mean",
        *(f"{100 * level:g} % quantile" for level in _QUANTILES),
        "how far off",
    )
    return [
        *long_table(
            "Numbers and dates: real → synthetic",
            header,
            [(each.column.name, *_facts_of(each), f"{each.w1:.3g}") for each in numeric],
        ),
        Text(
            "How far off is the mean way from the real values to the synthetic ones, in units of "
            "the real values' mean distance from their median: 1 for a column that is the median "
            "in all rows.",
            quiet=True,
        ),
    ]


def _facts_of(cells: CommonCells) -> list[str]:
    """The mean and quantiles of both tables."""
    assert cells.numbers is not None
    write = dates if cells.column.sdtype == "datetime" else lambda values: list(map(number, values))
    real, synthetic = (
        write([values.mean(), *np.quantile(values, _QUANTILES, method="inverted_cdf")])
        for values in cells.numbers
    )
    return [
        ours if ours == theirs else f"{ours} → {theirs}"
        for ours, theirs in zip(real, synthetic, strict=True)
    ]


def _pairs_section(cells: Mapping[str, CommonCells], pairs: Mapping[Clique, float]) -> Section:
    domain, real, synthetic = as_codes(cells)
    names = {name: common_names(each) for name, each in cells.items()}
    ranked = sorted(pairs.items(), key=lambda pair: -pair[1])
    maps = []
    for (first, second), distance in ranked[:_MOST_PAIRS]:
        theirs, ours = (_shares(domain, (first, second), codes) for codes in (real, synthetic))
        top = float(max(ours.max(), theirs.max()))
        largest = float(np.abs(theirs - ours).max())
        for title, table, limit, diverging in (
            ("real", theirs, top, False),
            ("synthetic", ours, top, False),
            ("difference", theirs - ours, largest, True),
        ):
            summary = f"{table.size:,} cells, " + (
                f"real less synthetic, distance {share(distance)}"
                if diverging
                else f"the fullest has {share(float(table.max()))} of the rows"
            )
            heat = heat_figure(
                (first, second),
                names[first],
                names[second],
                table,
                largest=limit,
                diverging=diverging,
            )
            maps.append(Figure(f"{first} × {second}: {title}", f"{summary}.", "heat", heat))
    distances = list(pairs.values())
    columns = Names.plain(domain.attributes)
    matrix = heat_figure(
        ("column", "column"),
        columns,
        columns,
        pair_matrix(domain, pairs),
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
                        f"{len(distances):,} pairs, mean {share(_mean(distances))}, "
                        f"largest {share(max(distances))}.",
                        "matrix",
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


def _scores_section(scores: Mapping[str, float], quality: Mapping[str, float]) -> Section:
    parts: list[Part] = []
    if scores:
        rows = [(name, _MEANINGS.get(name, ""), f"{value:.3g}") for name, value in scores.items()]
        caption = "The papers' metrics, on the cells above: 0 is best"
        parts.append(Table(caption, ("metric", "what it measures", "value"), rows, texts=2))
    return Section(
        "Scores",
        [
            *parts,
            Table(
                "SDMetrics' quality report: 100 % is best",
                ("part", "score"),
                [(name, share(score)) for name, score in quality.items()],
            ),
            Text("Read SDMetrics' score with care:"),
            Items(
                (
                    "for pairs with a numerical or datetime column it cuts the real and the "
                    "synthetic column into ten bins each over its own range, so that a single "
                    "outlier in one of them shifts all bins of that one;",
                    "it looks inside the cells, where synthetic values are spread evenly, so that "
                    "a number that many real rows share counts as missed;",
                    "it compares a random part of large tables, so it varies from run to run.",
                )
            ),
        ],
    )


def _shares(domain: Domain, clique: Clique, codes: np.ndarray) -> np.ndarray:
    shape = domain.shape(clique)
    columns = codes[:, domain.axes(clique)].T.astype(np.int64)
    cells = np.ravel_multi_index(tuple(columns), shape)
    return np.bincount(cells, minlength=domain.size(clique)).reshape(shape) / len(codes)


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))
