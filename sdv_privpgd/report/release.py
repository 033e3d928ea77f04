"""The public page: what was spent, how loud the noise is and how well the rows fit the answers.

Everything on it is computed from a release and the public description of the columns.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sdv_privpgd.domain import Clique, Domain
from sdv_privpgd.measure import (
    NoisyTable,
    Total,
    estimate_total,
    margin_estimates,
    noisy_tables,
)
from sdv_privpgd.pipeline import Release
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.report.figures import heat_figure, shares_figure
from sdv_privpgd.report.guarantee import guarantee_parts, ledger_section, meaning_section
from sdv_privpgd.report.labels import code_labels
from sdv_privpgd.report.page import Figure, Grid, Items, Page, Section, Table, Text
from sdv_privpgd.schema import Schema

MOST_PAIRS = 12
"""Pairs that are drawn cell by cell."""

_MOST_ROWS = 300
_CONFIDENT = 1.96


def release_page(
    release: Release | None,
    ledger: PrivacyLedger,
    schema: Schema,
    *,
    worth_a_look: Sequence[str] = (),
) -> Page:
    """The page of a fit; ``release`` is None where no column was modelled.

    ``worth_a_look`` are public sentences on what may be wrong with it.
    """
    looks = [Section("Worth a look first", [Items(worth_a_look)])] if worth_a_look else []
    sections = [*looks, meaning_section(ledger)]
    if release is not None:
        sections += fit_sections(release, schema)
    return Page(
        title="Privacy and fit of synthetic data",
        lead=guarantee_parts(ledger),
        sections=[*sections, ledger_section(ledger)],
    )


def write_release_page(
    release: Release | None,
    ledger: PrivacyLedger,
    schema: Schema,
    path: str | Path,
    *,
    worth_a_look: Sequence[str] = (),
) -> Path:
    """Writes the public page to ``path`` and returns where it lies."""
    return release_page(release, ledger, schema, worth_a_look=worth_a_look).write(path)


@dataclass(frozen=True, kw_only=True, eq=False)
class PairFit:
    """A pair's synthetic shares beside its noisy ones. Public.

    ``distance`` is half their L1 distance; ``expected`` is what the noise alone would put between
    the noisy table and the true one.
    """

    clique: Clique
    synthetic: np.ndarray
    noisy: np.ndarray
    expected: float

    @property
    def distance(self) -> float:
        return float(np.abs(self.synthetic - self.noisy).sum() / 2)

    @property
    def ratio(self) -> float:
        """The distance in units of what the noise explains; infinite without noise."""
        return self.distance / self.expected if self.expected else math.inf


def pair_fits(release: Release) -> list[PairFit]:
    """All pairs that some measured table holds, the worst explained by noise first."""
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
    return sorted(fits, key=lambda fit: (fit.ratio, fit.distance), reverse=True)


def fit_sections(release: Release, schema: Schema) -> list[Section]:
    """The noise against the signal, each column, and the pairs."""
    labels = {column.name: code_labels(column) for column in schema.attributes}
    noisy = noisy_tables(release.domain, release.measurements)
    if not noisy:
        explanation = Text(
            "The noisy tables were not kept: a statistic is protected, and they would reveal it. "
            "The synthetic rows are shown alone."
        )
        return [_columns_section(release, labels, {}, Total(1.0, 0.0), explanation)]
    total = estimate_total(release.domain, release.measurements)
    sections = [
        _noise_section(noisy, total),
        _columns_section(release, labels, margin_estimates(noisy, 1), total, _HOW_TO_READ),
    ]
    fits = pair_fits(release)
    return [*sections, _pairs_section(release.domain, fits, labels)] if fits else sections


_HOW_TO_READ = Text(
    "Bars are the synthetic rows, points are the noisy answers with the range that holds the true "
    "share in 95 of 100 cases. A point below zero is noise on a value that hardly occurs."
)


def _noise_section(noisy: Mapping[Clique, NoisyTable], total: Total) -> Section:
    rows = []
    for clique, table in noisy.items():
        cells, stddev = table.counts.size, math.sqrt(table.variance)
        strength = float(np.square(table.counts).mean() / table.variance) if stddev else math.inf
        mean = total.value / cells
        rows.append((strength, clique, cells, mean, stddev))
    rows.sort(key=lambda row: row[0])
    left_out = "" if len(rows) <= _MOST_ROWS else f" The first {_MOST_ROWS} of {len(rows)} tables."
    count = f"{total.value:,.0f} rows" + (
        f", give or take {_CONFIDENT * total.stddev:,.0f}" if total.stddev else ""
    )
    return Section(
        "How loud the noise is",
        [
            Text(
                f"The table has {count}. A measured table counts them in cells, and each count has "
                "noise of the same strength. Where a cell holds fewer rows on average than the "
                "noise's standard deviation, single cells say little. The last column compares "
                "the measured sum of squares with that of noise alone: near 1, the whole table "
                "could be nothing but noise."
            ),
            Table(
                f"Measured tables, the noisiest first.{left_out}",
                ("table", "cells", "mean rows per cell", "noise sd per cell", "power / noise"),
                [
                    (
                        " × ".join(clique),
                        f"{cells:,}",
                        f"{mean:,.4g}",
                        f"{stddev:,.4g}",
                        f"{strength:,.4g}",
                    )
                    for strength, clique, cells, mean, stddev in rows[:_MOST_ROWS]
                ],
            ),
        ],
    )


def _columns_section(
    release: Release,
    labels: Mapping[str, Sequence[str]],
    estimates: Mapping[Clique, NoisyTable],
    total: Total,
    explanation: Text,
) -> Section:
    figures = []
    for name in release.domain.attributes:
        synthetic, table = release.model.marginal((name,)), estimates.get((name,))
        noisy = None if table is None else table.counts / total.value
        margin = 0.0 if table is None else _CONFIDENT * math.sqrt(table.variance) / total.value
        summary = f"{len(synthetic)} values, largest share {synthetic.max():.1%}"
        if noisy is not None:
            summary += f", {np.abs(synthetic - noisy).sum() / 2:.2%} from the noisy answers"
        description = shares_figure(labels[name], synthetic, noisy, "measured", margin=margin)
        figures.append(Figure(name, summary, "small", description))
    return Section("Columns one by one", [explanation, Grid("grid", figures)])


def _pairs_section(
    domain: Domain, fits: Sequence[PairFit], labels: Mapping[str, Sequence[str]]
) -> Section:
    worst = fits[:MOST_PAIRS]
    largest = max(max(fit.distance, fit.expected) for fit in fits)
    distances = pair_matrix(domain, {fit.clique: fit.distance for fit in fits})
    expected = pair_matrix(domain, {fit.clique: fit.expected for fit in fits})
    names = domain.attributes
    maps = []
    for fit in worst:
        first, second = fit.clique
        top = float(max(fit.synthetic.max(), fit.noisy.max()))
        for title, shares in (("synthetic", fit.synthetic), ("measured", fit.noisy)):
            maps.append(
                Figure(
                    f"{first} × {second}: {title}",
                    f"Share of rows in each of {shares.size} cells, at most {shares.max():.2%}.",
                    "heat",
                    heat_figure(labels[first], labels[second], shares, largest=top),
                )
            )
    return Section(
        "Columns in pairs",
        [
            Text(
                "The distance is the share of rows that would have to change cells to turn one "
                "table into the other. Between the synthetic rows and the noisy answers it should "
                "be about what the noise alone explains. Less means that the rows follow the "
                "noise, much more that they do not follow the table."
            ),
            Grid(
                "wide",
                [
                    Figure(
                        "Distance of the synthetic rows from the noisy answers",
                        f"{len(fits)} pairs, mean {np.mean([f.distance for f in fits]):.3f}.",
                        "matrix",
                        heat_figure(names, names, distances, largest=largest),
                    ),
                    Figure(
                        "Distance that the noise alone explains",
                        f"{len(fits)} pairs, mean {np.mean([f.expected for f in fits]):.3f}.",
                        "matrix",
                        heat_figure(names, names, expected, largest=largest),
                    ),
                ],
            ),
            Table(
                f"The {len(worst)} pairs that the noise explains least",
                ("pair", "distance", "from noise alone", "ratio"),
                [
                    (
                        " × ".join(fit.clique),
                        f"{fit.distance:.4f}",
                        f"{fit.expected:.4f}",
                        f"{fit.ratio:.2f}",
                    )
                    for fit in worst
                ],
            ),
            Text("The same pairs, cell by cell.", quiet=True),
            Grid("wide", maps),
        ],
    )


def pair_matrix(domain: Domain, values: Mapping[Clique, float]) -> np.ndarray:
    """A symmetric matrix of pairs' values, not a number where there is none."""
    matrix = np.full((len(domain), len(domain)), np.nan)
    for clique, value in values.items():
        first, second = domain.axes(clique)
        matrix[first, second] = matrix[second, first] = value
    return matrix
