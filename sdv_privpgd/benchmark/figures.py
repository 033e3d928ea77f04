"""The figures of the comparison: errors over a baseline's, and of exchanged parts."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.lines import Line2D

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
    tables, methods = sorted(ratios["table"].unique()), sorted(ratios["method"].unique())
    methods.sort(key=lambda name: name != baseline)
    width = max(4.5, 1.2 * len(tables) + 1.5)
    figure, panels = plt.subplots(
        1, len(panels_of), figsize=(width * len(panels_of), 4), layout="constrained", squeeze=False
    )
    colors = plt.get_cmap("tab20" if len(methods) > 10 else "tab10")
    for panel, metric in zip(panels[0], panels_of, strict=True):
        found: Any = ratios[ratios["metric"] == metric].groupby(["table", "method"])["ratio"]
        mean, deviation = found.mean(), found.std().fillna(0.0)
        for place, table in enumerate(tables):
            for number, method in enumerate(methods):
                if (table, method) not in mean.index or mean[table, method] > CUT:
                    continue
                panel.errorbar(
                    place + 0.7 * ((number + 0.5) / len(methods) - 0.5),
                    mean[table, method],
                    yerr=deviation[table, method],
                    fmt="o",
                    markersize=4,
                    capsize=2,
                    color=colors(number),
                )
            above = mean.get(table, pd.Series(dtype=float)).sort_values()
            names = [str(name) for name in above.index[above > CUT]]
            panel.text(place, CUT + 0.1, "\n".join(names[::-1]), ha="center", va="bottom", size=7)
        panel.axhline(CUT, color="gray", linestyle="--", linewidth=0.8)
        panel.axhline(0, color="gray", linewidth=0.8)
        panel.set(title=metric, xlim=(-0.6, len(tables) - 0.4), ylim=(None, CUT + 1.2))
        panel.set_xticks(range(len(tables)), tables, rotation=20, ha="right")
    panels[0][0].set_ylabel(f"log2 of error / {baseline}'s mean error")
    handles = [
        Line2D([], [], marker="o", linestyle="", color=colors(number), label=method)
        for number, method in enumerate(methods)
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(len(methods), 6))
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return True


def draw_parts(
    means: Mapping[str, pd.DataFrame],
    real: Mapping[str, float],
    labels: Mapping[str, str],
    title: str,
    path: Path,
) -> bool:
    """Draws exchanged parts (the benchmark paper's Figures 3 and 4): a row of panels for a metric.

    Each panel has a bar for each part of a kind. Returns whether there was anything to draw.

    Args:
        means: For each kind the parts' means, parts by metrics; ``attrs["others"]`` is over how
            many combinations of the other parts.
        real: Of each metric the value of real rows, which becomes a line.
        labels: The metrics to draw, and what their rows are called.
        title: Of the figure.
        path: Of the PNG file.
    """
    drawn = [metric for metric in labels if any(metric in found for found in means.values())]
    if not drawn:
        return False
    most = max(len(found) for found in means.values())
    figure, panels = plt.subplots(
        len(drawn),
        len(means),
        figsize=(4.4 * len(means), (0.9 + 0.3 * most) * len(drawn) + 0.5),
        layout="constrained",
        squeeze=False,
    )
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
    told = " (dashed: real rows)" if any(real.get(metric) for metric in drawn) else ""
    figure.suptitle(f"{title}: lower is better{told}")
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return True
