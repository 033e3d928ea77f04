"""Compares synthetic rows with the real ones, by their values: numbers and a page. Not private.

Nothing here is noisy. The results may tell about single people. No epsilon covers them, nor any
settings that were chosen by them.

What synthetic rows are good for is said beside fresh real ones: a fifth of the real rows, or rows
that were held out, stand for what is to come. The synthetic rows and as many other real rows are
compared with them. The real ones show what a perfect synthesizer of a table of this size would
have.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd._lazy import need
from sdv_privpgd.base.domain import Clique, Domain
from sdv_privpgd.base.words import dates, listed, number, number_of, share, short_number
from sdv_privpgd.columns.facts import ColumnFacts, without_domain
from sdv_privpgd.columns.labels import Names
from sdv_privpgd.columns.links import Tree
from sdv_privpgd.columns.parser import read_table
from sdv_privpgd.columns.recoding import Recoding, recoded
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.metrics import l1_by_pair, scores
from sdv_privpgd.metrics.learning import usefulness
from sdv_privpgd.metrics.pairs import columns_of, facts_of, keys_of, of_families
from sdv_privpgd.metrics.values import (
    READ,
    CommonCells,
    Described,
    OutOfDomain,
    as_codes,
    common_cells,
    out_of_domain,
    read_numbers,
)
from sdv_privpgd.report.figures import Bars, Heat, pair_heat
from sdv_privpgd.report.page import (
    Facts,
    Figure,
    FigureGrid,
    Items,
    Page,
    Part,
    Report,
    Section,
    Table,
    Text,
    as_text,
    check_path,
    folded,
    long_table,
)
from sdv_privpgd.report.release import together

Columns = Mapping[str, pd.Series]

Useful = Mapping[str, Mapping[str, float]]
"""The scores of ``"synthetic"`` and of ``"real"`` rows; empty where there are too few rows."""

_FEWEST, _MOST = 50, 50_000
"""Rows of either table: with fewer nothing is said, and of more so many are drawn at random."""

_LEARNED = {
    "auroc": "area under the ROC curve of {}: 1 is best, 0.5 is chance",
    "f1": "macro F1 of {}: 1 is best",
    "accuracy": "accuracy of {}: 1 is best",
    "r2": "R² of {}: 1 is best, 0 is the mean",
}

_USEFUL = {
    **{name: meaning.format("gradient boosting") for name, meaning in _LEARNED.items()},
    **{f"linear_{name}": meaning.format("a linear model") for name, meaning in _LEARNED.items()},
    "pmse": "how well boosting tells these rows from real ones: 0 is not at all, 1 always",
    "tv2": "mean distance of the tables of two columns: 0 is best",
    "tv3": "mean distance of the tables of three columns: 0 is best",
    "tail": "how far the smallest and largest 1 % of the numbers lie off: 0 is best",
}


def useful_scores(
    columns: Sequence[Described],
    real: Columns,
    synthetic: Columns,
    *,
    label: str | None = None,
    held_out: Columns | None = None,
) -> Useful:
    """The scores of ``metrics.learning`` for the synthetic rows and for fresh real ones.

    Both are compared with the rows that were held out. Without them, a random fifth of ``real`` is
    taken, and the fresh real rows are the others. Raises ``ValueError`` if the label is no column.
    """
    names = [column.name for column in columns]
    if label is not None and label not in names:
        raise ValueError(f"label must be one of the columns {listed(names, 12)}, got {label!r}.")
    fresh, made = pd.DataFrame(dict(real)), pd.DataFrame(dict(synthetic))
    if held_out is None:
        order = np.random.default_rng(0).permutation(len(fresh))
        cut = round(len(order) / 5)
        fresh, judges = fresh.iloc[order[cut:]], fresh.iloc[order[:cut]]
    else:
        judges = pd.DataFrame(dict(held_out))
    size = min(len(fresh), len(made), _MOST)
    if min(size, 5 * len(judges)) < _FEWEST:
        return {}
    known: Any = dict(judges.sample(min(len(judges), _MOST), random_state=0))
    arms: Any = {"synthetic": made, "real": fresh}
    return {
        arm: usefulness(columns, dict(rows.sample(size, random_state=0)), known, label)
        for arm, rows in arms.items()
    }


def useful_section(found: Useful) -> Section:
    """The table of the scores."""
    if not found:
        return Section("What the rows are good for", [Text(f"Fewer than {_FEWEST} rows.")])
    ours, fresh = found["synthetic"], found["real"]
    more = "Models learn with their defaults."
    if not any(name.removeprefix("linear_") in _LEARNED for name in fresh):
        more = "Name a label to see what models learn."
    rows = [
        (name, _USEFUL[name], *(f"{each.get(name, np.nan):.3g}" for each in (ours, fresh)))
        for name in fresh
    ]
    said = (
        "Both kinds of rows are compared with real rows that were set aside. What fresh real rows "
        f"reach is the best that rows of a table of this size could. {more}"
    )
    header = ("score", "what it measures", "synthetic rows", "fresh real rows")
    table = Table("In the values that a user gets", header, rows, texts=2)
    return Section("What the rows are good for", [Text(said), table])


_MOST_DRAWN = 40
"""A column's cells that are drawn, of pairs cell by cell."""


def pairs_section(cells: Mapping[str, CommonCells], pairs: Mapping[Clique, float]) -> Section:
    """The distances of all pairs, and the furthest ones cell by cell."""
    ranked = sorted(pairs.items(), key=lambda pair: -pair[1])
    maps = [
        figure
        for (first, second), distance in ranked[:4]
        for figure in _maps(cells[first], cells[second], distance)
    ]
    domain, largest = Domain(tuple(cells), tuple(map(len, cells.values()))), max(pairs.values())
    said = (
        "The distance is the share of rows that would have to change cells to turn one table into "
        "the other."
    )
    matrix = Figure(
        "Distance of the synthetic rows from the real ones",
        f"{number_of(len(pairs), 'pair')}, mean {share(fmean(pairs.values()))}, "
        f"largest {share(largest)}.",
        pair_heat(domain, pairs, largest),
    )
    furthest = [(" × ".join(pair), share(value)) for pair, value in ranked[:12]]
    table = Table("What lies furthest apart", ("pair", "distance"), furthest)
    parts: list[Part] = [
        Text(said),
        FigureGrid("wide", [matrix]),
        table,
        FigureGrid("triple", maps),
    ]
    return Section("Columns in pairs", parts)


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
    names = first.column.name, second.column.name
    title = " × ".join(names)
    rows, columns = _few(first), _few(second)
    theirs, ours = (
        _shares(getattr(first, each), getattr(second, each), len(rows.labels), len(columns.labels))
        for each in ("real", "synthetic")
    )
    top, largest = float(max(ours.max(), theirs.max())), float(np.abs(theirs - ours).max())
    summary = f"Share of rows in each of {ours.size:,} cells, at most {share(top)}."
    less = f"Real less synthetic, distance {share(distance)}."
    drawn = partial(Heat, names, rows, columns)
    return [
        Figure(f"{title}: real", summary, drawn(theirs, top)),
        Figure(f"{title}: synthetic", summary, drawn(ours, top)),
        Figure(f"{title}: difference", less, drawn(theirs - ours, largest, diverging=True)),
    ]


def _few(cells: CommonCells) -> Names:
    """The names of a few cells, so that they can be told apart; the last ones share a name."""
    names = common_names(cells)
    if len(cells) <= _MOST_DRAWN:
        return names
    kept = _MOST_DRAWN - 1
    labels, ticks = [*names.labels[:kept], f"{len(cells) - kept} others"], names.ticks[:kept]
    return Names(labels, [*ticks, "others"])


def _shares(first: np.ndarray, second: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """The shares of pairs of cells; those beyond the last count as the last."""
    places = np.minimum(first, rows - 1) * columns + np.minimum(second, columns - 1)
    counts = np.bincount(places, minlength=rows * columns)
    return counts.reshape(rows, columns) / len(first)


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


_SAID = (
    "Every number and figure here was computed from the real table without any noise. It may tell "
    "about single people; no privacy budget covers it. Settings that are chosen by what is seen "
    "here are not covered either."
)


def said(name: str, lost: OutOfDomain) -> str:
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


def _outside_section(lost: Mapping[str, OutOfDomain]) -> Section:
    worst = sorted(lost.items(), key=lambda item: -item[1].share)
    sentences = [said(name, each) for name, each in worst if each.share > 0]
    shown: list[Part] = [Text("None: every real value lies in the domain of its column.")]
    if sentences:
        headline = (
            f"Real values of {len(sentences):,} of {len(lost):,} columns cannot come back: the fit "
            "has put them where the domain has a place. Declare a wider range, or more categories, "
            "from public knowledge and not from this list."
        )
        shown = [Text(headline), *folded(sentences, " columns", Items)]
    finer = sorted(lost.items(), key=lambda item: -item[1].finer)
    if rounded := [f"{name} ({share(each.finer)})" for name, each in finer if each.finer > 0]:
        words = f"Rounded, as they are finer than the column's precision: {listed(rounded, 12)}."
        shown.append(Text(words, quiet=True))
    return Section("Real values outside the domain", shown)


def _columns_section(cells: Mapping[str, CommonCells]) -> Section:
    worst = sorted(cells.items(), key=lambda item: -item[1].distance)
    figures = []
    for name, each in worst:
        real, synthetic = each.shares
        picture = Bars(
            title=name, names=common_names(each), synthetic=synthetic, other=real, other_name="real"
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
            *folded(figures, " columns", partial(FigureGrid, "grid")),
            *([] if not numeric else _numbers_table(numeric)),
        ],
    )


def _numbers_table(numeric: Sequence[CommonCells]) -> list[Part]:
    levels = 0.01, 0.5, 0.99, 0.999
    header = ("column", "mean", *(f"{100 * level:g} % quantile" for level in levels), "how far off")
    rows = [(each.column.name, *_facts_of(each, levels), f"{each.w1:.3g}") for each in numeric]
    return [
        *long_table("Numbers and dates: real → synthetic", header, rows),
        Text(
            "How far off is the mean way from the real values to the synthetic ones, in units of "
            "the real values' mean distance from their median: 1 for a column that is the median "
            "in all rows.",
            quiet=True,
        ),
    ]


def _facts_of(cells: CommonCells, levels: Sequence[float]) -> list[str]:
    """The mean and quantiles of both tables."""
    assert cells.numbers is not None
    write = dates if cells.column.sdtype == "datetime" else lambda values: list(map(number, values))
    real, synthetic = (
        write([values.mean(), *np.quantile(values, levels, method="inverted_cdf")])
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
                    "it leaves out pairs of columns that hardly depend on each other in the real "
                    "rows, and where all pairs are such, it is of single columns alone;",
                    "it compares a random part of large tables, so it varies from run to run.",
                )
            ),
        ],
    )


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
        options = {"label": label, "held_out": held_out}
        given = {name: each for name, each in options.items() if each is not None}
        return synthetic.evaluate(real, path=path, **given)
    if metadata is None:
        raise ValueError("metadata is needed to compare tables; a synthesizer has its own.")
    facts = facts_of(metadata)
    described = facts["columns"]
    known = read_table(described, keys_of(facts), public_domain)
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
        recoded(columns_of(real, names), rules),
        columns_of(synthetic, names),
        without_domain=columns,
        label=label,
        held_out=None if held_out is None else recoded(columns_of(held_out, names), rules),
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
    check_path(path)
    cells = common_cells(columns, real, synthetic)
    lost = out_of_domain(schema, real)
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
    first, parts = next(iter(cells.values())), {"Overall": quality, **properties}
    glance = {
        "real rows": f"{len(first.real):,}",
        "synthetic rows": f"{len(first.synthetic):,}",
        "columns": f"{len(cells):,}",
        "mean distance of columns": share(fmean(numbers["columns"].values())),
        **({"mean distance of pairs": share(fmean(pairs.values()))} if pairs else {}),
        "SDMetrics' quality": share(quality),
    }
    page = Page(
        title="Synthetic rows beside the real ones",
        banner=BANNER,
        lead=[Text(_SAID), Facts([*glance.items()])],
        sections=[
            _outside_section(lost),
            _columns_section(cells),
            *([pairs_section(cells, pairs)] if pairs else []),
            useful_section(useful),
            _scores_section(overall, parts),
        ],
    )
    listed = [{"columns": list(pair), "distance": distance} for pair, distance in pairs.items()]
    return Evaluation(
        **numbers,
        text=as_text([Text(BANNER), *page.lead, *page.sections]),
        page=page,
        facts={"report": "evaluation", "public": False, **numbers, "pairs": listed},
        path=None if path is None else Path(path),
    ).saved(path)


def compare_tables(
    tables: Mapping[str, tuple[Schema, Mapping[str, ColumnFacts]]],
    tree: Tree,
    real: Mapping[str, pd.DataFrame],
    synthetic: Mapping[str, pd.DataFrame],
) -> Report:
    """Compares tables that belong together, each with what its rows lead to. Not private.

    Of ``tables`` there are the schema and the facts. Synthetic rows have what links add to them.
    """
    used, found, lead = of_families(real, tree), {}, [Text(BANNER), Text(_SAID)]
    for name, (schema, facts) in tables.items():
        own, made = used[name], synthetic[name]
        columns = tuple(each for each in schema.columns if each.name in own and each.name in made)
        if columns:
            read = recoded({e.name: pd.Series(own[e.name]) for e in columns}, Recoding.of(facts))
            of_both = {each.name: pd.Series(made[each.name]) for each in columns}
            each = compare(replace(schema, columns=columns), read, of_both)
            page = replace(each.page, lead=each.page.lead[1:])  # the first part is said above
            found[name] = replace(each, page=page, text=as_text([*page.lead, *page.sections]))
        if gone := len(real[name]) - len(own):
            said = f"{name}: {gone:,} of {len(real[name]):,} real rows are not used in a fit."
            lead.append(Text(f"{said} They lead nowhere, or are more than max_children."))
    title = "Synthetic tables beside the real ones"
    report = together(found, "evaluation of tables", title, lead, public=False)
    return replace(report, page=replace(report.page, banner=BANNER))


def _by_pairs(cells: Mapping[str, CommonCells]) -> tuple[dict[Clique, float], dict[str, float]]:
    """The distance of each pair of columns, and the papers' metrics; nothing for one column."""
    if len(cells) < 2:
        return {}, {}
    domain, *codes = as_codes(cells)
    nominal = [name for name, each in cells.items() if not each.column.is_ordered]
    pairs = {pair: distance / 2 for pair, distance in l1_by_pair(domain, *codes).items()}
    return pairs, scores(domain, *codes, nominal=nominal)


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

    kept = ("sdtype", "datetime_format")
    described = {
        each.name: {key: said for key in kept if (said := getattr(each, key)) is not None}
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
