"""Shows a file of results as tables of means and as the paper's figures. Not private.

    python -m sdv_privpgd.benchmark show results.parquet --out figures

Prints each metric's mean over seeds ± its standard error, and what failed. With ``--out`` it
writes Figures 1 and 2 of Donhauser et al. 2024 for each epsilon, and one page with all of it; with
``--exchange`` instead the figures and tables of exchanged parts (see ``exchanged``).
"""

import argparse
import base64
import html
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sdv_privpgd.report.page import Page, Section, Table

if TYPE_CHECKING:
    import pandas as pd

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


def labeled(rows: "pd.DataFrame") -> "pd.DataFrame":
    """The rows, with settings in the method's name where a table has scores of several settings."""
    rows = rows.copy()
    for _, same in rows.dropna(subset=["metric"]).groupby(["table", "method"]):
        several = {text: json.loads(text) for text in same["settings"].unique()}
        keys = sorted({key for each in several.values() for key in each})
        differing = [
            key for key in keys if len({str(each.get(key)) for each in several.values()}) > 1
        ]
        for text, each in several.items():
            said = ", ".join(f"{key} {each[key]}" for key in differing if key in each)
            if said:
                here = same.index[same["settings"] == text]
                rows.loc[here, "method"] += f" ({said})"
    return rows


def summarize(rows: "pd.DataFrame") -> "pd.DataFrame":
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
    from sdv_privpgd.benchmark.records import read

    if not arguments.results.exists():
        raise SystemExit(f"There is no file {arguments.results}.")
    if arguments.exchange:
        _show_exchange(arguments)
        return
    rows = labeled(read(arguments.results))
    tables = _printed(summarize(rows), _costs(rows))
    why = [name for name in ("error", "reason") if name in rows]
    failed = rows.loc[rows["error"].notna(), ["method", "table", "epsilon", "seed", *why]].fillna(
        ""
    )
    for title, table in tables.items():
        print(f"{title}\n{table.to_string()}\n")
    if len(failed):
        print(f"Failed:\n{failed.to_string(index=False)}")
    if arguments.out is not None:
        _write(arguments, rows, tables, failed)


def _costs(rows: "pd.DataFrame") -> "pd.DataFrame":
    """The mean seconds and memory of each method's runs."""
    runs = rows.drop_duplicates(["table", "epsilon", "method", "seed"])
    costs = ["fit_seconds", "peak_mebibytes", "spent_epsilon"]
    means: Any = runs.groupby(["table", "epsilon", "method"])[costs].mean()
    return means


def _printed(summary: "pd.DataFrame", costs: "pd.DataFrame") -> "dict[str, pd.DataFrame]":
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
    rows: "pd.DataFrame",
    tables: "dict[str, pd.DataFrame]",
    failed: "pd.DataFrame",
) -> None:
    from sdv_privpgd.benchmark.figures import draw_ratios  # imports matplotlib

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
    page(sections).write(arguments.out / "results.html")


@dataclass(frozen=True)
class Drawn:
    """A PNG file as a part of a page."""

    title: str
    path: Path

    def html(self) -> str:
        """The picture, in the page itself."""
        image = base64.b64encode(self.path.read_bytes()).decode()
        return f'<img alt="{html.escape(self.title)}" src="data:image/png;base64,{image}">'


def as_table(title: str, frame: "pd.DataFrame") -> Table:
    """A table of texts as a part of a page, with what names its rows first."""
    named = any(name is not None for name in frame.index.names)
    shown = (frame.reset_index() if named else frame).astype(str)
    return Table(title, list(map(str, shown)), shown.to_numpy().tolist())


def page(sections: "Sequence[Section]") -> Page:
    """A page of a comparison."""
    return Page(
        title="Comparison with real tables: not private",
        banner="NOT PRIVATE: this page compares with real tables.",
        lead=[],
        sections=sections,
    )


def _show_exchange(arguments: argparse.Namespace) -> None:
    from sdv_privpgd.benchmark.exchanged import write_exchange
    from sdv_privpgd.benchmark.records import read

    if arguments.out is None:
        raise SystemExit("Name a folder for the figures and tables: --out FOLDER.")
    try:
        written = write_exchange(read(arguments.results), arguments.out)
    except ValueError as error:
        raise SystemExit(str(error)) from None
    print("\n".join(map(str, written)))
