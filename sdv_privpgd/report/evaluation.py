"""Compares synthetic rows with the real ones, by their values. Not private.

Nothing here is noisy. The results may tell about single people. No epsilon covers them, nor any
settings that were chosen by them.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from sdv_privpgd._lazy import need
from sdv_privpgd.base.domain import Clique
from sdv_privpgd.columns.facts import without_domain
from sdv_privpgd.columns.parsing import read_table
from sdv_privpgd.columns.recoding import Recoding, recoded
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.metrics import l1_by_pair, scores
from sdv_privpgd.metrics.values import (
    READ,
    CommonCells,
    Described,
    as_codes,
    common_cells,
    outside,
    read_numbers,
)
from sdv_privpgd.report.comparison import BANNER, Useful, comparison_page, useful_scores
from sdv_privpgd.report.page import Report, Text, as_text, checked_ending


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Evaluation(Report):
    """The distances between synthetic and real rows: a report, and its numbers. Not private.

    Columns are compared by their values: cells are made of both tables' values. A real value that
    was clipped, became missing or became another value counts as an error.

    Attributes:
        outside: For each column with a domain, the share of real rows whose value the domain does
            not hold: out of its range, of an undeclared category, not readable, or missing where
            nothing may be missing.
        columns: The total variation distance of each column's shares, 0 to 1.
        pairs: The total variation distance of each pair of columns, 0 to 1.
        w1: The W1 distance of the numbers or dates of each column, in units of the real ones' mean
            distance from their median. A column that is the median in all rows has 1.
        scores: ``sdv_privpgd.metrics.scores`` of the same cells, without a label; empty for a
            single column.
        quality: SDMetrics' quality score, 0 to 1, not a number where it has none.
        properties: The scores of its parts.
        usefulness: What models learn from the ``"synthetic"`` rows, whether they are told from real
            ones, three columns at a time and the ends of numbers, each beside what fresh
            ``"real"`` rows have. Empty for fewer than 50 rows.
        path: The path of the page, if it was written.
    """

    outside: Mapping[str, float]
    columns: Mapping[str, float]
    pairs: Mapping[Clique, float]
    w1: Mapping[str, float]
    scores: Mapping[str, float]
    quality: float
    properties: Mapping[str, float]
    usefulness: Useful
    path: Path | None = None


def evaluate(
    synthetic: Any,
    real: pd.DataFrame | Mapping[str, pd.DataFrame],
    metadata: Any = None,
    *,
    public_domain: Mapping[str, Mapping] | None = None,
    label: str | None = None,
    held_out: pd.DataFrame | Mapping[str, pd.DataFrame] | None = None,
    path: str | Path | None = None,
) -> Evaluation:
    """Compares synthetic rows with the real table. Not private.

    Args:
        synthetic: A fitted synthesizer of this package, or a table of rows of any origin.
        real: The real table. A table is a DataFrame, or a dictionary with one.
        metadata: SDV's metadata or its dictionary, if ``synthetic`` is a table. Ranges and
            categories, here or in ``public_domain``, only serve to find real values outside them.
        public_domain: The declared facts, as ``PrivPGDSynthesizer`` takes them.
        label: A column that models learn to predict. A synthesizer's target is taken if none is
            named.
        held_out: Real rows that were not fitted, to judge what models have learned. Without them
            a random fifth of the real table is set aside; the fit has seen it.
        path: The path that the page is written to. Nothing is written without one.

    Raises:
        ValueError: If a table comes without metadata, or does not match its metadata.
        ImportError: Where SDMetrics or scikit-learn is not installed.

    >>> import tempfile
    >>> real = pd.DataFrame({"age": [20, 30, 40, 50] * 25, "ward": ["A", "B"] * 50})
    >>> synthetic = real.assign(ward="A")
    >>> kinds = {"age": {"sdtype": "numerical"}, "ward": {"sdtype": "categorical"}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = evaluate(synthetic, real, {"columns": kinds}, path=f"{folder}/page.html")
    >>> found.columns["age"], found.columns["ward"]
    (0.0, 0.5)
    """
    if not isinstance(synthetic, pd.DataFrame | Mapping):
        if metadata is not None or public_domain is not None:
            raise ValueError(
                "A synthesizer has its own metadata and public_domain: leave both out."
            )
        return synthetic.evaluate(real, label=label, held_out=held_out, path=path)
    if metadata is None:
        raise ValueError("metadata is needed to compare tables; a synthesizer has its own.")
    described, keys = _described(metadata)
    known = read_table(described, keys, public_domain)
    lacking = without_domain(known)
    schema = Schema.of({name: facts for name, facts in known.items() if name not in lacking})
    columns = [
        Described(
            name=name,
            sdtype=described[name]["sdtype"],
            datetime_format=described[name].get("datetime_format"),
            number_format=getattr(known[name], "number_format", None),
        )
        for name in lacking
    ]
    names = [*(column.name for column in schema.columns), *lacking]
    rules = Recoding.of(known)
    return compare(
        schema,
        recoded(_columns(real, names), rules),
        _columns(synthetic, names),
        without_domain=columns,
        label=label,
        held_out=None if held_out is None else recoded(_columns(held_out, names), rules),
        path=path,
    )


def compare(
    schema: Schema,
    real: Mapping[str, pd.Series],
    synthetic: Mapping[str, pd.Series],
    *,
    without_domain: Sequence[Described] = (),
    label: str | None = None,
    held_out: Mapping[str, pd.Series] | None = None,
    path: str | Path | None = None,
) -> Evaluation:
    """Evaluates columns with and without a domain, and writes the page to a ``path``."""
    need("A comparison with real rows", "sdmetrics", "sklearn")
    columns = [*map(Described.of, schema.columns), *without_domain]
    if not columns:
        raise ValueError("There is nothing to compare: no column of the metadata is modelled.")
    if path is not None:
        checked_ending(path)
    cells = common_cells(columns, real, synthetic)
    lost = outside(schema, real)
    pairs, overall = _by_pairs(cells)
    quality, properties = _quality(columns, real, synthetic)
    useful = useful_scores(columns, real, synthetic, label=label, held_out=held_out)
    numbers = {
        "outside": {name: each.share for name, each in lost.items()},
        "columns": {name: each.distance for name, each in cells.items()},
        "pairs": pairs,
        "w1": {name: each.w1 for name, each in cells.items() if each.numbers is not None},
        "scores": overall,
        "quality": quality,
        "properties": properties,
        "usefulness": useful,
    }
    parts = {"Overall": quality, **properties}
    page = comparison_page(cells, lost, pairs, overall, parts, useful)
    listed = [{"columns": list(pair), "distance": distance} for pair, distance in pairs.items()]
    evaluation = Evaluation(
        **numbers,
        text=as_text([Text(BANNER), *page.lead, *page.sections]),
        page=page,
        facts={"report": "evaluation", "public": False, **numbers, "pairs": listed},
        path=None if path is None else Path(path),
    )
    if evaluation.path is not None:
        evaluation.save(evaluation.path)
    return evaluation


def _by_pairs(cells: Mapping[str, CommonCells]) -> tuple[dict[Clique, float], dict[str, float]]:
    """The distance of each pair of columns, and the papers' metrics; nothing for one column."""
    if len(cells) < 2:
        return {}, {}
    domain, *codes = as_codes(cells)
    nominal = [name for name, each in cells.items() if not each.column.is_ordered]
    pairs = {pair: distance / 2 for pair, distance in l1_by_pair(domain, *codes).items()}
    return pairs, scores(domain, *codes, nominal=nominal)


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


def _columns(table: pd.DataFrame | Mapping, names: Sequence[str]) -> dict[str, pd.Series]:
    """The columns of a table under the names that the metadata has for them."""
    frame = table if isinstance(table, pd.DataFrame) else next(iter(table.values()))
    columns = {str(name): frame.iloc[:, place] for place, name in enumerate(frame.columns)}
    absent = [name for name in names if name not in columns]
    if absent:
        raise ValueError(f"The columns {absent!r} of the metadata are missing in a table.")
    return {name: columns[name] for name in names}


def _plain(column: Described, series: pd.Series) -> pd.Series:
    """A column as SDMetrics reads it, which knows no format of numbers."""
    if column.number_format is None:
        return series.reset_index(drop=True)
    numbers, state = read_numbers(column, series)
    return pd.Series(numbers).where(state == READ)


def _quality(
    columns: Sequence[Described], real: Mapping[str, pd.Series], synthetic: Mapping[str, pd.Series]
) -> tuple[float, dict[str, float]]:
    """SDMetrics' quality score and its parts."""
    # Imported here because it takes a second and only this page needs it.
    from sdmetrics.reports import QualityReport

    described = {
        each.name: {"sdtype": each.sdtype}
        | ({"datetime_format": each.datetime_format} if each.datetime_format is not None else {})
        for each in columns
    }
    real_rows, synthetic_rows = (
        {"": pd.DataFrame({column.name: _plain(column, each[column.name]) for column in columns})}
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
