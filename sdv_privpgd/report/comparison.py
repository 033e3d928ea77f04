"""The page that compares synthetic rows with the real ones, worst columns first. Not private."""

from collections.abc import Mapping, Sequence

import numpy as np

from sdv_privpgd.domain import Clique
from sdv_privpgd.metrics.outside import Outside
from sdv_privpgd.metrics.values import CommonCells
from sdv_privpgd.report.compared_pairs import common_names, pairs_section
from sdv_privpgd.report.figures import Bars
from sdv_privpgd.report.page import (
    Facts,
    Figure,
    Fold,
    Items,
    Page,
    Part,
    Section,
    Table,
    Text,
    long_grid,
    long_table,
)
from sdv_privpgd.report.useful import Useful, useful_section
from sdv_privpgd.words import dates, listed, number, share

_MOST_SENTENCES = 12
"""Sentences on values outside the domain that are shown; the others are folded away."""

BANNER = "NOT PRIVATE: this page compares with the real table. Do not pass it on."

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
    useful: Useful,
) -> Page:
    """The page of columns in common cells. Not private.

    ``lost`` has the shares of each column's values that the domain does not hold. ``pairs`` has
    distances, ``scores`` the papers' metrics, ``quality`` SDMetrics' score and its parts, and
    ``useful`` what the rows are good for.
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
        sections.append(pairs_section(cells, pairs))
    return Page(
        title="Synthetic rows beside the real ones",
        banner=BANNER,
        lead=[
            Text(
                "Every number and figure here was computed from the real table without any noise. "
                "It may tell about single people; no privacy budget covers it. Settings that are "
                "chosen by what is seen here are not covered either."
            ),
            Facts(facts),
        ],
        sections=[*sections, useful_section(useful), _scores_section(scores, quality)],
    )


def said(name: str, lost: Outside) -> str:
    """One sentence on the values of a column that the domain does not hold."""
    parts = [
        (lost.below, "are below its range and became its lowest value"),
        (lost.above, "are above its range and became its highest value"),
        (lost.undeclared, f"are not among its categories and became {lost.fate}"),
        (lost.unreadable, f"could not be read and became {lost.fate}"),
        (lost.missing, f"are missing, where nothing may be, and became {lost.fate}"),
    ]
    words = [f"{share(part)} of the real values {what}" for part, what in parts if part > 0]
    return f"{name}: {'; '.join(words)}."


def _outside_section(lost: Mapping[str, Outside]) -> Section:
    worst = sorted(lost.items(), key=lambda item: -item[1].share)
    sentences = [said(name, each) for name, each in worst if each.share > 0]
    if sentences:
        shown: list[Part] = [
            Text(
                f"Real values of {len(sentences):,} of {len(lost):,} columns cannot come back: "
                "the fit has put them where the domain has a place. Declare a wider range, "
                "or more categories, from public knowledge and not from this list."
            ),
            Items(sentences[:_MOST_SENTENCES]),
        ]
        if rest := sentences[_MOST_SENTENCES:]:
            shown.append(Fold(f"The other {len(rest)} columns", [Items(rest)]))
    else:
        shown = [Text("None: every real value lies in the domain of its column.")]
    finer = sorted(lost.items(), key=lambda item: -item[1].finer)
    rounded = [f"{name} ({share(each.finer)})" for name, each in finer if each.finer > 0]
    if rounded:
        words = f"Rounded, as they are finer than the column's precision: {listed(rounded, 12)}."
        shown.append(Text(words, quiet=True))
    return Section("Real values outside the domain", shown)


def _columns_section(cells: Mapping[str, CommonCells]) -> Section:
    worst = sorted(cells.items(), key=lambda item: -item[1].distance)
    figures = []
    for name, each in worst:
        real, synthetic = each.shares
        picture = Bars(
            title=name,
            names=common_names(each),
            synthetic=synthetic,
            other=real,
            other_name="real",
        )
        summary = f"Distance {share(each.distance)}, {len(each)} cells."
        figures.append(Figure(name, summary, picture))
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


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))
