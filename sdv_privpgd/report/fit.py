"""The sections of a page on a model: its pictures, the noise, what it hides, and files. Public."""

import gzip
import math
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from statistics import fmean
from typing import NamedTuple

import numpy as np
import pandas as pd

from sdv_privpgd.base.domain import Clique, Domain
from sdv_privpgd.base.words import number_of, share
from sdv_privpgd.columns.bins import Categories
from sdv_privpgd.columns.labels import Names, code_labels, code_names
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.estimate.noisy_tables import (
    NoisyTable,
    Total,
    estimate_total,
    grouped_tables,
    margin_estimates,
    noisy_tables,
)
from sdv_privpgd.inference import intervals, tables
from sdv_privpgd.inference.questions import Questions
from sdv_privpgd.methods.pipeline import Release
from sdv_privpgd.privacy.queries import GroupedMarginalQuery, MarginalQuery
from sdv_privpgd.report.about import CONFIDENT
from sdv_privpgd.report.figures import Bars, Heat, pair_heat
from sdv_privpgd.report.page import (
    Figure,
    FigureGrid,
    Part,
    Section,
    Table,
    Text,
    folded,
    long_table,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class PairFit:
    """A pair's synthetic shares beside its noisy ones. Public.

    ``distance`` is half their L1 distance. ``expected`` is the distance between the noisy table and
    the true one that the noise alone would cause.
    """

    clique: Clique
    synthetic: np.ndarray
    noisy: np.ndarray
    expected: float

    @property
    def distance(self) -> float:
        return float(np.abs(self.synthetic - self.noisy).sum() / 2)

    @property
    def strength(self) -> float:
        """The distance of the synthetic shares from those of two columns that are unrelated."""
        unrelated = np.outer(self.synthetic.sum(axis=1), self.synthetic.sum(axis=0))
        return float(np.abs(self.synthetic - unrelated).sum() / 2)

    @property
    def ratio(self) -> float:
        """The distance in units of the expected one; infinite without noise."""
        return self.distance / self.expected if self.expected else math.inf


class ColumnEstimate(NamedTuple):
    """The best linear estimates of how many rows have each code, with their variances."""

    counts: np.ndarray
    variances: np.ndarray


def column_estimates(release: Release, schema: Schema) -> dict[str, ColumnEstimate]:
    """Of each column that was measured, alone or with others, the estimates from all tables."""
    linear = Questions(release, schema).linear
    found = {name: linear.table((name,)) for name in release.domain.attributes}
    return {name: ColumnEstimate(*table) for name, table in found.items() if table is not None}


def pair_fits(release: Release) -> list[PairFit]:
    """All pairs in measured tables, those with the largest excess over the noise first."""
    noisy = noisy_tables(release.domain, release.measurements)
    estimates = margin_estimates(noisy, 2)
    total = estimate_total(release.domain, release.measurements).value if noisy else 1.0
    fits = [
        PairFit(
            clique=clique,
            synthetic=release.model.marginal(clique),
            noisy=table.counts / total,
            expected=table.counts.size * math.sqrt(table.variance / (2 * math.pi)) / total,
        )
        for clique, table in estimates.items()
    ]
    return sorted(fits, key=lambda fit: fit.distance - fit.expected, reverse=True)


def fit_sections(
    release: Release, schema: Schema, estimates: Mapping[str, ColumnEstimate]
) -> tuple[list[Section], list[Section]]:
    """The sections with pictures of columns and of pairs, and those to be folded, on the noise.

    ``estimates`` are the ``column_estimates`` of the release.
    """
    names = {column.name: code_names(column) for column in schema.attributes}
    noisy = noisy_tables(release.domain, release.measurements)
    if not noisy:
        explanation = Text(
            "The noisy tables were not kept: a statistic is protected, and they would reveal it. "
            "The synthetic rows are shown alone."
        )
        return [_columns_section(release, names, {}, Total(1.0, 0.0), explanation)], []
    total = estimate_total(release.domain, release.measurements)
    shown = [_columns_section(release, names, estimates, total, _HOW_TO_READ)]
    folded = [_noise_section(release, noisy, total)]
    if fits := pair_fits(release):
        shown.append(_pairs_section(fits, names))
        folded.insert(0, _distances_section(release.domain, fits))
    return shown, folded


_HOW_TO_READ = Text(
    "Bars are the synthetic rows. Points are the best estimates from all noisy tables that hold "
    "the column, with the range that holds the true share in 95 of 100 cases, whatever the "
    "synthetic rows say. A point below zero is noise on a value that hardly occurs. The column "
    "that the noise explains least is first."
)


def _noise_section(release: Release, noisy: Mapping[Clique, NoisyTable], total: Total) -> Section:
    shown = 300
    named = [(" × ".join(clique), table) for clique, table in noisy.items()]
    for each in grouped_tables(release.domain, release.measurements).values():
        named += [(f"{' × '.join(clique)}, in groups", table) for clique, table in each.items()]
    rows = []
    for name, table in named:
        cells, stddev = table.counts.size, math.sqrt(table.variance)
        strength = float(np.square(table.counts).mean() / table.variance) if stddev else math.inf
        numbers = f"{total.value / cells:,.3g}", f"{stddev:,.3g}", f"{strength:,.3g}"
        rows.append((strength, (name, f"{cells:,}", *numbers)))
    rows.sort(key=lambda row: row[0])
    left_out = "" if len(rows) <= shown else f" (the first {shown} of {len(rows):,})"
    count = number_of(total.value) + (
        f", give or take {CONFIDENT * total.stddev:,.0f}" if total.stddev else ""
    )
    return Section(
        "How loud the noise is",
        [
            Text(
                f"The table has {count}. A measured table counts them in cells, and each count has "
                "noise of the same strength. Where a cell holds fewer rows on average than the "
                "noise's standard deviation (sd), single cells say little. Power / noise is the "
                "measured sum of squares over that of noise alone: near 1, the whole table "
                "could be nothing but noise. Tables in groups are over a few groups of each "
                "column's values."
            ),
            *long_table(
                f"Measured tables, the noisiest first{left_out}",
                ("table", "cells", "rows per cell, mean", "noise sd per cell, rows")
                + ("power / noise",),
                [row for _, row in rows[:shown]],
            ),
        ],
        folded=True,
    )


def _columns_section(
    release: Release,
    names: Mapping[str, Names],
    estimates: Mapping[str, ColumnEstimate],
    total: Total,
    explanation: Text,
) -> Section:
    drawn = [
        _column_figure(name, names[name], release, estimates.get(name), total)
        for name in release.domain.attributes
    ]
    figures = [figure for _, figure in sorted(drawn, key=lambda pair: -pair[0])]
    return Section(
        "Columns one by one",
        [explanation, *folded(figures, " columns", partial(FigureGrid, "grid"))],
    )


def _column_figure(
    name: str, names: Names, release: Release, table: ColumnEstimate | None, total: Total
) -> tuple[float, Figure]:
    """The excess of a column's distance from the answers over the noise, and its figure."""
    synthetic = release.model.marginal((name,))
    size = "One value" if len(synthetic) == 1 else f"{len(synthetic)} values"
    summary = f"{size}, largest share {share(float(synthetic.max()))}"
    known = {"title": name, "names": names, "synthetic": synthetic, "other_name": "measured"}
    if table is None:
        return 0.0, Figure(name, f"{summary}.", Bars(**known, other=None))
    noisy, stddevs = table.counts / total.value, np.sqrt(table.variances) / total.value
    distance = float(np.abs(synthetic - noisy).sum() / 2)
    expected = float(stddevs.sum()) / math.sqrt(2 * math.pi)
    margins = CONFIDENT * stddevs
    summary += (
        f", {share(distance)} from the noisy answers; a true share is within "
        f"{100 * float(margins.max()):.2g} points of its point in 95 of 100 cases"
    )
    picture = Bars(**known, other=noisy, margins=margins)
    return distance - expected, Figure(name, f"{summary}.", picture)


def _pairs_section(fits: Sequence[PairFit], names: Mapping[str, Names]) -> Section:
    strongest = sorted(fits, key=lambda fit: fit.strength, reverse=True)[:3]
    said = (
        "The columns that tell most of each other in the synthetic rows, cell by cell, beside "
        "what was measured, with its noise."
    )
    maps = [figure for fit in strongest for figure in _maps(fit, names)]
    return Section("The strongest pairs", [Text(said), FigureGrid("wide", maps)])


def _distances_section(domain: Domain, fits: Sequence[PairFit]) -> Section:
    # Noise alone may displace more rows than there are.
    distances = {fit.clique: min(fit.distance, 1.0) for fit in fits}
    expected = {fit.clique: min(fit.expected, 1.0) for fit in fits}
    largest = max(*distances.values(), *expected.values())
    matrices = [
        Figure(
            title,
            f"{number_of(len(fits), 'pair')}, mean {share(fmean(values.values()))}.",
            pair_heat(domain, values, largest),
        )
        for title, values in (
            ("Distance of the synthetic rows from the noisy answers", distances),
            ("Distance that the noise alone explains", expected),
        )
    ]
    rows = [
        (" × ".join(fit.clique), share(fit.distance), share(fit.expected), f"{fit.ratio:.2f}")
        for fit in fits[:12]
    ]
    parts: list[Part] = [
        Text(
            "The distance is the share of rows that would have to change cells to turn one "
            "table into the other. Between the synthetic rows and the noisy answers it should "
            "be about what the noise alone explains. Less means that the rows follow the "
            "noise, much more that they do not follow the table."
        ),
        FigureGrid("wide", matrices),
        Table(
            "What the noise explains least",
            ("pair", "distance", "from noise alone", "ratio"),
            rows,
        ),
    ]
    return Section("How near the rows are to the noisy answers", parts, folded=True)


def _maps(fit: PairFit, names: Mapping[str, Names]) -> list[Figure]:
    """A pair's synthetic and noisy shares, in the same colors."""
    first, second = fit.clique
    top = min(float(max(fit.synthetic.max(), fit.noisy.max())), 1.0)
    return [
        Figure(
            f"{first} × {second}: {title}",
            f"Share of rows in each of {shares.size:,} cells, at most {share(float(shares.max()))}",
            Heat(fit.clique, names[first], names[second], shares, top),
        )
        for title, shares in (("synthetic", fit.synthetic), ("measured", fit.noisy))
    ]


class HiddenValue(NamedTuple):
    """A value that noise hides, or that the synthetic rows have far too rarely. Public."""

    column: str
    label: str
    synthetic: float  # rows that have it among as many synthetic rows as there are rows
    estimate: float  # of how many rows have it, unbiased
    low: float  # of the interval that holds that number in 95 of 100 cases
    high: float

    @property
    def is_lost(self) -> bool:
        """Whether rows surely have it, and the synthetic rows less than half of these."""
        return self.low > 0 and self.synthetic < self.low / 2


def hidden_values(
    release: Release, schema: Schema, estimates: Mapping[str, ColumnEstimate]
) -> list[HiddenValue]:
    """Those of all categories, lost ones first, then those that most rows may have."""
    total = estimate_total(release.domain, release.measurements).value
    most, found = max(total, 0.0), []
    for column in schema.columns:
        if not isinstance(column.cells, Categories) or column.name not in estimates:
            continue
        synthetic, own = release.model.marginal((column.name,)) * total, estimates[column.name]
        counts = zip(own.counts.tolist(), own.variances.tolist(), strict=True)
        labels = code_labels(column)[: column.num_values]
        for label, has, count in zip(labels, synthetic, counts, strict=False):
            held = intervals.Sum(*count, num_rows=total, low=0.0, high=most)
            ends = held.interval("table", 0.95)
            value = HiddenValue(column.name, label, float(has), count[0], *ends)
            if value.low <= 0 or value.is_lost:
                found.append(value)
    return sorted(found, key=lambda value: (not value.is_lost, -value.high))


def hidden_section(
    release: Release, schema: Schema, estimates: Mapping[str, ColumnEstimate]
) -> Section:
    """The values that noise hides, with the intervals of how many rows have them."""
    values, heading = hidden_values(release, schema, estimates), "Values that the noise hides"
    if not values:
        said = "There are none: all values of all categories stand out from the noise."
        return Section(heading, [Text(said)], folded=True)
    columns, lost = len({each.column for each in values}), sum(each.is_lost for each in values)
    sentences = (
        f"{number_of(len(values), 'value')} of {number_of(columns, 'column')} cannot be told from "
        "values that no row has, or the synthetic rows have lost them. That the synthetic rows "
        "have none or few of a value does not say that nobody has it. Each interval holds the true "
        "number of rows in 95 of 100 cases; up to so many rows may have the value."
    )
    if lost:
        sentences += (
            f" {number_of(lost, 'value')}, listed first, surely {'has' if lost == 1 else 'have'} "
            "rows, but the synthetic rows have too few: use the interval."
        )
    rows = [
        (
            each.label,
            each.column,
            f"{each.synthetic:,.0f}",
            f"{each.estimate:,.0f}".replace("-", "−"),
            f"{each.low:,.0f} to {each.high:,.0f}",
        )
        for each in values
    ]
    header = ("value", "column", "synthetic rows", "estimate, rows", "interval, rows")
    caption = "Values, those that most rows may have first"
    return Section(
        heading, [Text(sentences), *long_table(caption, header, rows, texts=2)], folded=True
    )


@dataclass(frozen=True)
class Download:
    """A link to a file that lies in the page. It is made when the page is written."""

    words: str
    name: str
    kind: str
    make: Callable[[], bytes]

    def html(self) -> str:
        """The link, with the size of the file."""
        content = self.make()
        kilobytes, name = len(content) / 1e3, escape(self.name)
        size = f"{kilobytes:,.0f} kB" if kilobytes < 1e3 else f"{kilobytes / 1e3:.1f} MB"
        return (
            f'<p class=download><a download="{name}" href="data:{self.kind};base64,'
            f'{b64encode(content).decode()}">{escape(self.words)}</a> '
            f"<span class=quiet>{name}, {size}</span></p>"
        )


def download_section(
    release: Release, schema: Schema, estimates: Mapping[str, ColumnEstimate]
) -> Section:
    """The estimates of all columns, and the noisy tables of columns and pairs, as files."""
    kinds = _kinds(release)
    lacking = [kind for kind in (tables.MEASURED, tables.CONSISTENT) if kind not in kinds]
    said = (
        f"the {' and '.join(lacking)} tables of pairs, which are too large, and " if lacking else ""
    )
    # Without a time of packing: pages of the same answers are the same.
    packed = Download(
        f"The {' and the '.join(kinds)} tables of columns and pairs, packed with gzip",
        "noisy_tables.csv.gz",
        "application/gzip",
        lambda: gzip.compress(
            _csv(tables.noisy_tables(release, schema, kinds=kinds, most=2)), mtime=0
        ),
    )
    parts: list[Part] = [
        Text(
            "The noisy tables are what was measured; all else on this page follows from them. They "
            "are as public as the synthetic rows."
        ),
        Download(
            "How many rows have each value of each column, with 95 % intervals",
            "columns.csv",
            "text/csv",
            lambda: _columns_csv(schema, estimates),
        ),
        *([packed] if kinds else []),
        Text(
            f"Left out are {said}tables of three columns: the program's "
            'noisy_tables("tables.csv") writes everything.',
            quiet=True,
        ),
    ]
    return Section("Download the noisy tables", parts, folded=True)


def _columns_csv(schema: Schema, estimates: Mapping[str, ColumnEstimate]) -> bytes:
    """One line for each value: the estimated rows, the noise's standard deviation, the interval."""
    parts = []
    for column in schema.attributes:
        if column.name in estimates:
            counts, stddev = estimates[column.name].counts, estimates[column.name].variances ** 0.5
            low, high = (counts + side * CONFIDENT * stddev for side in (-1, 1))
            rows = {"column": column.name, "label": code_labels(column), "estimate": counts}
            ends = {"low": low.clip(min=0), "high": high.clip(min=0)}
            parts.append(pd.DataFrame({**rows, "stddev": stddev, **ends}))
    return _csv(pd.concat(parts, ignore_index=True))


def _csv(frame: pd.DataFrame) -> bytes:
    rounded = frame.round({"estimate": 2, "stddev": 4, "low": 2, "high": 2})
    return rounded.to_csv(index=False, float_format="%.12g", lineterminator="\n").encode()


_MOST_CELLS = 40_000
"""Cells in a file of pairs: at most half a megabyte in a page, which has one at most."""


def _kinds(release: Release) -> list[str]:
    """The kinds of tables whose cells are few enough together, those that were measured first."""
    measured = [
        each
        for each in release.measurements
        if isinstance(each.query, MarginalQuery | GroupedMarginalQuery)
        and len(each.query.clique) <= 2
    ]
    asked = {
        frozenset(each.query.clique): release.domain.size(each.query.clique)
        for each in measured
        if isinstance(each.query, MarginalQuery)
    }
    number, more = sum(each.answer.size for each in measured), sum(asked.values())
    first = [tables.MEASURED] if asked and number <= _MOST_CELLS else []
    left = _MOST_CELLS - number if first else _MOST_CELLS
    return [*first, tables.CONSISTENT] if asked and more <= left else first
