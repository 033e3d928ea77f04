"""Shows a file of results as tables of means and as the paper's figures. Not private.

    python -m sdv_privpgd.benchmark show results.parquet --out figures

Prints each metric's mean over seeds ± its standard error, and what failed. With ``--out`` it
writes Figures 1 and 2 of Donhauser et al. 2024 for each epsilon, and one page with all of it.

With ``--exchange`` it writes for each table and epsilon a figure of the exchanged parts instead (as
Figures 3 and 4 of the benchmark paper): each part's mean error over the arms in which it stands,
for every metric. A kind of part is compared over those of the other parts alone that all of its
kind went with. One page has the figures, the tables of all arms (as its Tables 16 to 18; a dash is
a pair of parts that does not go together, with the reason below), what the arms cost, and the
settings of all parts (as its Tables 3 to 10). All metrics of a table and epsilon are in one CSV
file as well.
"""

import argparse
import base64
import html
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd.benchmark.methods import KINDS, is_arm, parts_of
from sdv_privpgd.methods.method import engine_of, method_of
from sdv_privpgd.report.page import Page, Section, Table

FIGURE = {
    "downstream": "downstream error",
    "counting": "error of counts",
    "l1": "L1 error of pairs",
    "fit_seconds": "seconds of the fit",
}
"""What the figure shows: that paper's three measures and the seconds. All are better if lower."""

_COSTS = ("fit_seconds", "peak_mebibytes")


def arms_of(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of arms, with a column for each of ``KINDS``, and their costs among the metrics."""
    own: Any = rows[rows["method"].map(is_arm)]
    runs = own.dropna(subset=["metric"])
    runs = runs.drop_duplicates(["table", "epsilon", "method", "seed"])
    costs = [runs.assign(metric=name, value=runs[name]).dropna(subset=["value"]) for name in _COSTS]
    found: Any = pd.concat([own, *costs], ignore_index=True)
    parts = [parts_of(method) for method in found["method"]]
    for place, kind in enumerate(KINDS):
        found[kind] = [each[place] for each in parts]
    return found


def of_parts(arms: pd.DataFrame, kind: str) -> pd.DataFrame:
    """The mean of each metric over the arms of each part of a kind: parts by metrics.

    Only arms count whose other two parts went with all parts of the kind, so that no part is better
    for the company that it keeps. If there are no such arms, all count. ``attrs["others"]`` is the
    number of combinations of other parts that count.
    """
    others = [each for each in KINDS if each != kind]
    scored = arms.dropna(subset=["metric"])
    together: Any = scored.groupby(others)[kind].transform("nunique")
    shared = scored[together == scored[kind].nunique()]
    chosen: Any = shared if len(shared) else scored
    means: Any = chosen.groupby([kind, *others, "metric"])["value"].mean()
    found = means.groupby(level=[kind, "metric"]).mean().unstack("metric")
    found.attrs["others"] = len(chosen.drop_duplicates(others))
    return found


def table_of_arms(arms: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The mean and standard error of a metric: preprocessings and strategies by engines.

    A dash stands for parts that do not go together or did not finish, nothing for no run.
    """
    keys = list(KINDS)
    found: Any = arms[arms["metric"] == metric].groupby(keys)["value"].agg(["mean", "sem"])
    texts = found.apply(lambda row: said(row["mean"], row["sem"]), axis=1)
    failed: Any = arms[arms["error"].notna()]
    failed = failed.drop_duplicates(keys).set_index(keys)["error"]
    dashes = pd.Series("–", index=failed.index.difference(texts.index), dtype=object)
    return pd.concat([texts.astype(object), dashes]).unstack("synthesize").sort_index().fillna("")


def settings_of_parts() -> pd.DataFrame:
    """The settings of all methods and engines: their defaults, which are those of an arm."""
    makers = {"select": method_of, "synthesize": engine_of}
    found = [
        (kind, name, each.name, f"{getattr(part, each.name)!r:.60}")
        for kind, make in makers.items()
        for name, part in ((name, make(name)) for name in KINDS[kind])
        if is_dataclass(part)
        for each in fields(part)
        if each.init and (each.default is not MISSING or each.default_factory is not MISSING)
    ]
    return pd.DataFrame(found, columns=pd.Index(["kind", "part", "setting", "value"]))


def write_exchange(rows: pd.DataFrame, folder: Path) -> list[Path]:
    """Writes the figures, the CSV files and the page ``exchange.html``, and returns their paths.

    Raises ``ValueError`` if the rows have no arm.
    """
    arms = arms_of(rows)
    if not len(arms):
        raise ValueError("There are no arms: compare with --preprocess, --select or --synthesize.")
    folder.mkdir(parents=True, exist_ok=True)
    written, sections = [], []
    groups: Any = arms.groupby(["table", "epsilon"])
    for (table, epsilon), group in groups:
        title, name = f"{table}, epsilon {epsilon:g}", f"{table}_epsilon_{epsilon:g}"
        means = {kind: of_parts(group, kind) for kind in KINDS}
        means = {kind: each.loc[in_rank(kind, list(each.index))] for kind, each in means.items()}
        path = folder / f"exchange_{name}.png"
        if draw_parts(means, _real(rows, str(table)), FIGURE, title, path):
            sections.append(Section(title, [Drawn(title, path)]))
            written.append(path)
        metrics = in_order(list(group["metric"].dropna().unique()))
        tables = {metric: table_of_arms(group, metric) for metric in metrics}
        shown = [
            as_table(f"{title}: {label}", tables[metric])
            for metric, label in FIGURE.items()
            if metric in tables
        ]
        sections.append(Section(f"{title}: numbers", shown))
        written.append(folder / f"exchange_{name}.csv")
        pd.concat(tables, names=["metric"]).to_csv(written[-1])
    refused = arms.loc[arms["error"].notna(), ["method", "table", "error", "reason"]]
    for title, found in (
        ("Not run", refused.drop_duplicates().fillna("")),
        ("Settings of the parts", settings_of_parts()),
    ):
        written.append(folder / f"exchange_{title.lower().replace(' ', '_')}.csv")
        found.to_csv(written[-1], index=False)
        sections.append(Section(title, [as_table(title, found)]))
    written.append(folder / "exchange.html")
    _page(sections).write(written[-1])
    return written


def in_rank(kind: str, names: Sequence[str]) -> list[str]:
    """The names of parts of a kind, in the order of the registries."""
    known = KINDS[kind]
    return sorted(names, key=lambda name: known.index(name) if name in known else len(known))


def _real(rows: pd.DataFrame, table: str) -> Mapping[str, float]:
    """The mean of each metric of real rows, if the file has them."""
    own: Any = rows[(rows["method"] == "Real") & (rows["table"] == table)]
    found: Any = summarize(own)
    return {} if found.empty else found["mean"].groupby(level="metric").mean().to_dict()


ORDER = ("downstream", "covariance", "counting", "threshold", "sw1", "l1")
"""The paper's metrics in the paper's order; others follow by name."""

FIGURES = {"figure1": ORDER[:4], "figure2": ORDER[4:]}


def add_command(commands) -> None:
    """Adds ``show`` to the command line."""
    show = commands.add_parser("show", help="tables and figures of a file of results")
    show.add_argument("results", type=Path, help="what compare and score wrote")
    show.add_argument("--baseline", default="PrivPGD", help="the method that others are over")
    show.add_argument("--out", type=Path, help="folder for figures and a page")
    show.add_argument("--exchange", action="store_true", help="what arms of exchanged parts show")
    show.set_defaults(run=_show)


def labeled(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows, with settings in the method's name where a table has scores of several settings."""
    rows = rows.copy()
    for _, same in rows.dropna(subset=["metric"]).groupby(["table", "method"]):
        several = {text: json.loads(text) for text in same["settings"].unique()}
        keys = sorted({key for each in several.values() for key in each})
        differing = [
            key for key in keys if len({str(each.get(key)) for each in several.values()}) > 1
        ]
        for text, each in several.items():
            if said := ", ".join(f"{key} {each[key]}" for key in differing if key in each):
                here = same.index[same["settings"] == text]
                rows.loc[here, "method"] += f" ({said})"
    return rows


def summarize(rows: pd.DataFrame) -> pd.DataFrame:
    """The mean, standard deviation, standard error and number of runs of each metric.

    Indexed by table, epsilon, method and metric; the error of one run's mean is not a number.
    """
    groups = rows.dropna(subset=["metric"]).groupby(["table", "epsilon", "method", "metric"])
    found: Any = groups["value"].agg(["mean", "std", "sem", "count"])
    return found.rename(columns={"std": "deviation", "sem": "error", "count": "runs"})


def said(mean: float, error: float) -> str:
    """A mean with its standard error, to the digits that the error leaves."""
    if math.isnan(mean):
        return ""
    return f"{mean:.3g}" if math.isnan(error) else f"{mean:.3g} ± {error:.1g}"


def in_order(metrics: Sequence[str]) -> list[str]:
    """The paper's metrics first, then others by name."""
    return sorted(metrics, key=lambda name: (ORDER.index(name) if name in ORDER else 99, name))


def _show(arguments: argparse.Namespace) -> None:
    if not arguments.results.exists():
        raise SystemExit(f"There is no file {arguments.results}.")
    if arguments.exchange:
        if arguments.out is None:
            raise SystemExit("Name a folder for the figures and tables: --out FOLDER.")
        try:
            written = write_exchange(pd.read_parquet(arguments.results), arguments.out)
        except ValueError as error:
            raise SystemExit(str(error)) from None
        print("\n".join(map(str, written)))
        return
    rows = labeled(pd.read_parquet(arguments.results))
    runs = rows.drop_duplicates(["table", "epsilon", "method", "seed"])
    costs: Any = runs.groupby(["table", "epsilon", "method"])[[*_COSTS, "spent_epsilon"]].mean()
    tables = _printed(summarize(rows), costs)
    why = [name for name in ("error", "reason") if name in rows]
    failed = rows.loc[rows["error"].notna(), ["method", "table", "epsilon", "seed", *why]]
    failed = failed.fillna("")
    for title, table in tables.items():
        print(f"{title}\n{table.to_string()}\n")
    if len(failed):
        print(f"Failed:\n{failed.to_string(index=False)}")
    if arguments.out is not None:
        _write(arguments, rows, tables, failed)


def _printed(summary: pd.DataFrame, costs: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """A table of texts, methods by metrics, for each table and epsilon."""
    each: Any = summary.apply(lambda row: said(row["mean"], row["error"]), axis=1)
    texts = each.unstack("metric")
    texts = texts[in_order(list(texts.columns))].fillna("")
    texts["runs"] = summary["runs"].groupby(level=["table", "epsilon", "method"]).max()
    for name in costs.columns:
        texts[name] = costs[name].map(lambda value: said(value, math.nan))
    return {
        f"{table}, epsilon {epsilon:g}: mean ± standard error": group.droplevel([0, 1])
        for (table, epsilon), group in texts.groupby(level=["table", "epsilon"])
    }


def _write(
    arguments: argparse.Namespace,
    rows: pd.DataFrame,
    tables: dict[str, pd.DataFrame],
    failed: pd.DataFrame,
) -> None:
    methods = sorted(rows["method"].unique())
    if arguments.baseline not in methods:
        print(f"No figures over {arguments.baseline!r}: choose --baseline from {methods!r}.")
    arguments.out.mkdir(parents=True, exist_ok=True)
    sections = []
    for epsilon in sorted(rows["epsilon"].unique(), reverse=True):
        for name, metrics in FIGURES.items():
            path = arguments.out / f"{name}_epsilon_{epsilon:g}.png"
            own: Any = rows[(rows["epsilon"] == epsilon) & rows["metric"].isin(metrics)]
            if draw_ratios(own, metrics, arguments.baseline, path):
                title = f"Errors over {arguments.baseline}'s, epsilon {epsilon:g}"
                sections.append(Section(title, [Drawn(title, path)]))
    sections += [Section(title, [as_table(title, table)]) for title, table in tables.items()]
    if len(failed):
        sections.append(Section("Failed", [as_table("Failed", failed)]))
    _page(sections).write(arguments.out / "results.html")


@dataclass(frozen=True)
class Drawn:
    """A PNG file as a part of a page."""

    title: str
    path: Path

    def html(self) -> str:
        """The picture, in the page itself."""
        image = base64.b64encode(self.path.read_bytes()).decode()
        return f'<img alt="{html.escape(self.title)}" src="data:image/png;base64,{image}">'


def as_table(title: str, frame: pd.DataFrame) -> Table:
    """A table of texts as a part of a page, with what names its rows first."""
    named = any(name is not None for name in frame.index.names)
    shown = (frame.reset_index() if named else frame).astype(str)
    return Table(title, list(map(str, shown)), shown.to_numpy().tolist())


def _page(sections: "Sequence[Section]") -> Page:
    return Page(
        title="Comparison with real tables: not private",
        banner="NOT PRIVATE: this page compares with real tables.",
        lead=[],
        sections=sections,
    )


CUT = 3.0
"""The log2 ratio at which the paper's figures end."""


def log_ratios(rows: pd.DataFrame, baseline: str) -> pd.DataFrame:
    """log2 of each run's error over the baseline's mean error, in a column ``ratio``.

    The mean is that of the same table, epsilon and metric. Rows without such a mean, and errors
    of 0, are left out.
    """
    keys = ["table", "epsilon", "metric"]
    means: Any = rows[rows["method"] == baseline].groupby(keys)["value"].mean()
    found = rows.join(means.rename("mean"), on=keys)
    found = found[(found["value"] > 0) & (found["mean"] > 0)]
    return found.assign(ratio=np.log2(found["value"] / found["mean"]))


def draw_ratios(rows: pd.DataFrame, metrics: Sequence[str], baseline: str, path: Path) -> bool:
    """Draws Figures 1 and 2 of Donhauser et al. 2024. Returns whether there was anything to draw.

    Each metric has a panel with the mean and standard deviation of the log2 ratio over runs.
    Methods beyond the cut are named above it, the smallest ratio first.
    """
    ratios = log_ratios(rows, baseline)
    panels_of = [name for name in metrics if (ratios["metric"] == name).any()]
    if not panels_of:
        return False
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    tables, methods = sorted(ratios["table"].unique()), sorted(ratios["method"].unique())
    methods.sort(key=lambda name: name != baseline)
    width = max(4.5, 1.2 * len(tables) + 1.5)
    figure = Figure(figsize=(width * len(panels_of), 4), layout="constrained")
    panels = figure.subplots(1, len(panels_of), squeeze=False)
    colors = colormaps["tab20" if len(methods) > 10 else "tab10"]
    for panel, metric in zip(panels[0], panels_of, strict=True):
        found: Any = ratios[ratios["metric"] == metric].groupby(["table", "method"])["ratio"]
        drawn, far = (
            each.unstack("method").reindex(index=tables, columns=methods)
            for each in (found.mean(), found.std().fillna(0.0))
        )
        for number, method in enumerate(methods):
            panel.errorbar(
                np.arange(len(tables)) + 0.7 * ((number + 0.5) / len(methods) - 0.5),
                drawn[method].where(drawn[method] <= CUT),
                yerr=far[method],
                fmt="o",
                markersize=4,
                capsize=2,
                color=colors(number),
                label=method,
            )
        for place, table in enumerate(tables):
            far_off = drawn.loc[table][drawn.loc[table] > CUT].sort_values(ascending=False)
            names = "\n".join(map(str, far_off.index))
            panel.text(place, CUT + 0.1, names, ha="center", va="bottom", size=7)
        panel.axhline(CUT, color="gray", linestyle="--", linewidth=0.8)
        panel.axhline(0, color="gray", linewidth=0.8)
        panel.set(title=metric, xlim=(-0.6, len(tables) - 0.4), ylim=(None, CUT + 1.2))
        panel.set_xticks(range(len(tables)), tables, rotation=20, ha="right")
    panels[0][0].set_ylabel(f"log2 of error / {baseline}'s mean error")
    known = panels[0][0].get_legend_handles_labels()
    figure.legend(*known, loc="outside lower center", ncols=min(len(methods), 6))
    figure.savefig(path, dpi=150)
    return True


def draw_parts(
    means: Mapping[str, pd.DataFrame],
    real: Mapping[str, float],
    labels: Mapping[str, str],
    title: str,
    path: Path,
) -> bool:
    """Draws exchanged parts (the benchmark paper's Figures 3 and 4): a row of panels for a metric.

    Each panel has a bar for each part of a kind, whose ``means`` are parts by metrics, and a line
    at the value of ``real`` rows. ``labels`` are the metrics to draw, and what their rows are
    called. Returns whether there was anything to draw.
    """
    drawn = [metric for metric in labels if any(metric in found for found in means.values())]
    if not drawn:
        return False
    from matplotlib.figure import Figure

    height = 0.9 + 0.3 * max(len(found) for found in means.values())
    size = (4.4 * len(means), height * len(drawn) + 0.5)
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(len(drawn), len(means), squeeze=False)
    for panel, (kind, found) in zip(panels[0], means.items(), strict=True):
        number = found.attrs.get("others")
        panel.set_title(kind if number is None else f"{kind} (mean over {number} combinations)")
    for row, metric in zip(panels, drawn, strict=True):
        for panel, found in zip(row, means.values(), strict=True):
            values = found[metric] if metric in found else pd.Series(np.nan, index=found.index)
            bars = panel.barh(range(len(values)), values, color="#4878a8")
            panel.bar_label(bars, [f"{value:.3g}" for value in values], padding=3, size=8)
            panel.set_yticks(range(len(values)), [str(name) for name in values.index])
            panel.invert_yaxis()
            panel.margins(x=0.18)
            panel.spines[["top", "right"]].set_visible(False)
            if real.get(metric):
                panel.axvline(real[metric], color="gray", linestyle="--", linewidth=0.9)
        row[0].set_ylabel(labels[metric].replace(" of ", "\nof "))
    legend = " (dashed: real rows)" if any(real.get(metric) for metric in drawn) else ""
    figure.suptitle(f"{title}: lower is better{legend}")
    figure.savefig(path, dpi=150)
    return True
