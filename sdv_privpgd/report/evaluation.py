"""The page that is not private: synthetic rows beside the real ones, worst columns first.

Nothing here is noisy. What it shows and returns may tell about single people, no epsilon covers
it, and settings that were chosen by it are not covered either.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd.domain import Clique, Domain
from sdv_privpgd.metrics import l1_by_pair, scores
from sdv_privpgd.report.figures import heat_figure, shares_figure
from sdv_privpgd.report.labels import code_labels
from sdv_privpgd.report.page import Facts, Figure, Grid, Items, Page, Section, Table, Text
from sdv_privpgd.report.release import MOST_PAIRS, pair_matrix
from sdv_privpgd.schema import Schema
from sdv_privpgd.transformers import encode_table

PATH = "report_not_private.html"

_BANNER = "NOT PRIVATE: this page compares with the real table. Do not pass it on."

_MEANINGS = {
    "half_l1": "total variation distance of pairs: share of rows in the wrong cell, 0 to 1",
    "l1": "half_l1 times two, as the PrivPGD paper counts it",
    "sw1": "sliced W1 distance of pairs: how far rows lie off, in widths of the range",
    "covariance": "error of the covariances, over the synthetic rows' norm",
    "covariance_to_real": "error of the covariances, over the real rows' norm",
    "counting": "relative error of random counting queries on three columns",
    "threshold": "relative error of random linear threshold queries",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation:
    """How far synthetic rows lie from real ones. Not private.

    Attributes:
        scores: ``sdv_privpgd.metrics.scores`` without a label; empty for a single column.
        columns: The total variation distance of each column's shares, 0 to 1.
        pairs: The same of each pair of columns.
        quality: SDMetrics' quality score, 0 to 1, not a number where it has none.
        properties: The scores of its parts.
        path: Where the page lies.
    """

    scores: Mapping[str, float]
    columns: Mapping[str, float]
    pairs: Mapping[Clique, float]
    quality: float
    properties: Mapping[str, float]
    path: Path


def evaluate(
    synthetic: Any,
    real: pd.DataFrame | Mapping[str, pd.DataFrame],
    metadata: Any = None,
    *,
    public_domain: Mapping[str, Mapping] | None = None,
    path: str | Path = PATH,
) -> Evaluation:
    """Compares synthetic rows with the real table, and writes a page of it. Not private.

    Args:
        synthetic: A fitted synthesizer of this package, or a table of rows of any origin.
        real: The real table. Tables are DataFrames, or dictionaries of one.
        metadata: For a table, SDV's metadata, or its dictionary. The cells that are compared
            follow from its ranges and categories and from ``public_domain``.
        public_domain: As ``PrivPGDSynthesizer`` takes it.
        path: Where the page is written.

    Raises:
        ValueError: For a table without metadata, or metadata and a table that do not match.
        PublicDomainError: If a modelled column has no range or no categories.
    """
    if not isinstance(synthetic, pd.DataFrame | Mapping):
        if metadata is not None or public_domain is not None:
            raise ValueError(
                "A synthesizer has its own metadata and public_domain: leave both out."
            )
        return synthetic.evaluate(real, path=path)
    if metadata is None:
        raise ValueError("metadata is needed to compare tables; a synthesizer has its own.")
    described, keys = _described(metadata)
    schema = Schema.from_sdv(described, keys=keys, public_domain=public_domain)
    tables = [_columns(table, schema) for table in (real, synthetic)]
    return compare(schema, *tables, path=path)


def compare(
    schema: Schema,
    real: Mapping[str, pd.Series],
    synthetic: Mapping[str, pd.Series],
    *,
    path: str | Path = PATH,
) -> Evaluation:
    """The evaluation of the schema's columns, its page written to ``path``. Not private."""
    if not schema.columns:
        raise ValueError("There is nothing to compare: no column of the metadata is modelled.")
    domain = schema.domain()
    codes = [np.asarray(encode_table(columns, schema)) for columns in (real, synthetic)]
    if not all(len(table) for table in codes):
        raise ValueError("Both tables need at least one row to be compared.")
    quality, properties = _quality(schema, real, synthetic)
    nominal = [column.name for column in schema.columns if not column.is_ordered]
    shares = [[_shares(domain, (name,), table) for table in codes] for name in domain.attributes]
    several = len(domain) > 1
    pairs = l1_by_pair(domain, *codes) if several else {}
    evaluation = Evaluation(
        scores=scores(domain, *codes, nominal=nominal) if several else {},
        columns={
            name: float(np.abs(ours - theirs).sum() / 2)
            for name, (ours, theirs) in zip(domain.attributes, shares, strict=True)
        },
        pairs={pair: distance / 2 for pair, distance in pairs.items()},
        quality=quality,
        properties=properties,
        path=Path(path),
    )
    _page(evaluation, schema, *codes).write(path)
    return evaluation


def _described(metadata: Any) -> tuple[Mapping[str, Mapping], set[str]]:
    """SDV's description of the columns of one table, and the names of its keys."""
    facts = metadata if isinstance(metadata, Mapping) else metadata.to_dict()
    tables = list(facts["tables"].values()) if "tables" in facts else [facts]
    if len(tables) != 1:
        raise ValueError(f"metadata must describe one table, got {len(tables)}.")
    (table,) = tables
    keys: set[str] = set()
    for key in (table.get("primary_key"), *table.get("alternate_keys", ())):
        keys.update([key] if isinstance(key, str) else key or ())
    return table["columns"], keys


def _columns(table: pd.DataFrame | Mapping, schema: Schema) -> dict[str, pd.Series]:
    """The modelled columns of a table under the names that the metadata has for them."""
    frame = table if isinstance(table, pd.DataFrame) else next(iter(table.values()))
    columns = {str(name): frame.iloc[:, place] for place, name in enumerate(frame.columns)}
    absent = [column.name for column in schema.columns if column.name not in columns]
    if absent:
        raise ValueError(f"The columns {absent!r} of the metadata are missing in a table.")
    return {column.name: columns[column.name] for column in schema.columns}


def _shares(domain: Domain, clique: Clique, codes: np.ndarray) -> np.ndarray:
    shape = domain.shape(clique)
    columns = codes[:, domain.axes(clique)].T.astype(np.int64)
    cells = np.ravel_multi_index(tuple(columns), shape)
    return np.bincount(cells, minlength=domain.size(clique)).reshape(shape) / len(codes)


def _quality(
    schema: Schema, real: Mapping[str, pd.Series], synthetic: Mapping[str, pd.Series]
) -> tuple[float, dict[str, float]]:
    """SDMetrics' quality score and its parts."""
    # Imported here: it takes a second, and only this page asks for it.
    from sdmetrics.reports import QualityReport

    described = {}
    for column in schema.columns:
        described[column.name] = {"sdtype": column.sdtype}
        if column.datetime_format is not None:
            described[column.name]["datetime_format"] = column.datetime_format
    real_rows, synthetic_rows = (
        {"": pd.DataFrame({name: series.reset_index(drop=True) for name, series in each.items()})}
        for each in (real, synthetic)
    )
    report = QualityReport()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about constant columns and the like
        metadata = {"tables": {"": {"columns": described}}}
        report.generate(real_rows, synthetic_rows, metadata, verbose=False)
        properties = report.get_properties()
        parts = dict(zip(properties["Property"], properties["Score"].astype(float), strict=True))
        score = report.get_score()
    return float("nan") if score is None else float(score), parts


def _page(evaluation: Evaluation, schema: Schema, real: np.ndarray, synthetic: np.ndarray) -> Page:
    facts = [("real rows", f"{len(real):,}"), ("synthetic rows", f"{len(synthetic):,}")]
    if evaluation.pairs:
        mean = float(np.mean(list(evaluation.pairs.values())))
        facts.append(("mean distance of pairs", f"{mean:.4f}"))
    facts.append(("SDMetrics' quality", _percent(evaluation.quality)))
    sections = [_scores_section(evaluation), _columns_section(evaluation, schema, real, synthetic)]
    if evaluation.pairs:
        sections.append(_pairs_section(evaluation, schema, real, synthetic))
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
        sections=sections,
    )


def _scores_section(evaluation: Evaluation) -> Section:
    parts: list = []
    if evaluation.scores:
        rows = [
            (name, _MEANINGS.get(name, ""), f"{value:.5g}")
            for name, value in evaluation.scores.items()
        ]
        caption = "The papers' metrics: 0 is best"
        parts.append(Table(caption, ("metric", "what it measures", "value"), rows, texts=2))
    shown = {"Overall": evaluation.quality, **evaluation.properties}
    return Section(
        "Scores",
        [
            *parts,
            Table(
                "SDMetrics' quality report: 100 % is best",
                ("part", "score"),
                [(name, _percent(score)) for name, score in shown.items()],
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


def _percent(score: float) -> str:
    return "none" if np.isnan(score) else f"{score:.2%}"


def _columns_section(
    evaluation: Evaluation, schema: Schema, real: np.ndarray, synthetic: np.ndarray
) -> Section:
    domain = schema.domain()
    columns = sorted(schema.columns, key=lambda column: -evaluation.columns[column.name])
    figures = []
    for column in columns:
        ours, theirs = (_shares(domain, (column.name,), codes) for codes in (synthetic, real))
        summary = f"{len(ours)} values, distance {evaluation.columns[column.name]:.4f}"
        description = shares_figure(code_labels(column), ours, theirs, "real")
        figures.append(Figure(column.name, summary, "small", description))
    explanation = (
        "Bars are the synthetic rows, points are the real ones; the worst column is first."
    )
    return Section("Columns one by one", [Text(explanation), Grid("grid", figures)])


def _pairs_section(
    evaluation: Evaluation, schema: Schema, real: np.ndarray, synthetic: np.ndarray
) -> Section:
    domain, names = schema.domain(), schema.domain().attributes
    labels = {column.name: code_labels(column) for column in schema.columns}
    ranked = sorted(evaluation.pairs.items(), key=lambda pair: -pair[1])
    maps = []
    for (first, second), distance in ranked[:MOST_PAIRS]:
        theirs, ours = (_shares(domain, (first, second), codes) for codes in (real, synthetic))
        top = float(max(ours.max(), theirs.max()))
        largest = float(np.abs(theirs - ours).max())
        for title, table, limit, diverging in (
            ("real", theirs, top, False),
            ("synthetic", ours, top, False),
            ("difference", theirs - ours, largest, True),
        ):
            summary = f"{table.size} cells, " + (
                f"real less synthetic, distance {distance:.4f}"
                if diverging
                else f"the fullest has {table.max():.2%}"
            )
            heat = heat_figure(
                labels[first], labels[second], table, largest=limit, diverging=diverging
            )
            maps.append(Figure(f"{first} × {second}: {title}", summary, "heat", heat))
    distances = list(evaluation.pairs.values())
    matrix = heat_figure(
        names, names, pair_matrix(domain, evaluation.pairs), largest=max(distances)
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
                        f"{len(distances)} pairs, mean {np.mean(distances):.4f}, "
                        f"largest {max(distances):.4f}.",
                        "matrix",
                        matrix,
                    )
                ],
            ),
            Table(
                f"The {len(ranked[:MOST_PAIRS])} pairs that lie furthest apart",
                ("pair", "distance"),
                [(" × ".join(pair), f"{value:.4f}") for pair, value in ranked[:MOST_PAIRS]],
            ),
            Grid("triple", maps),
        ],
    )
