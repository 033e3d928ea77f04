"""Describes figures as plain values that plotly's script draws.

Axes are numbered by code, and their ticks have names, because two codes may have one name and a
name may look like a date. Names are escaped, because plotly reads markup in its texts.
"""

import math
from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from sdv_privpgd.columns.labels import Names
from sdv_privpgd.domain import Clique, Domain
from sdv_privpgd.words import share

_INK, _QUIET, _LINE = {"css": "--ink"}, {"css": "--quiet"}, {"css": "--line"}
_SYNTHETIC, _OTHER = {"css": "--synthetic"}, {"css": "--other"}
_LONGEST_TICK = 14
_LONGEST_TITLE = 36
_MOST_NAMES = 30
_CLEAR = "rgba(0,0,0,0)"
_BARE = {"showgrid": False, "zeroline": False}


def shares_figure(
    title: str,
    names: Names,
    synthetic: np.ndarray,
    other: np.ndarray | None,
    other_name: str,
    *,
    margins: np.ndarray | None = None,
) -> dict:
    """A column's synthetic shares as bars, with another table's as points with error bars.

    ``margins`` are the lengths of the error bars, one a value. ``title`` names the values. Shares
    above 1, which are noise, are drawn at 1.
    """
    texts = [escape(label) for label in names.labels]
    codes = list(range(len(texts)))
    data = [
        {
            "type": "bar",
            "name": "synthetic",
            "x": codes,
            "y": _short(synthetic),
            "text": texts,
            "textposition": "none",
            "hovertemplate": "%{text}<br>synthetic %{y:.2%}<extra></extra>",
            "marker": {"color": _SYNTHETIC},
        }
    ]
    top = float(synthetic.max(initial=0.0))
    bars = np.zeros(len(codes)) if margins is None else margins
    if other is not None:
        drawn = np.minimum(other, 1.0)
        top = max(top, float((drawn + bars).max(initial=0.0)))
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": other_name,
                "x": codes,
                "y": _short(drawn),
                "text": texts,
                "hovertemplate": f"%{{text}}<br>{other_name} %{{y:.2%}}<extra></extra>",
                "marker": {"color": _OTHER, "size": 6 if len(codes) < 40 else 4},
                "error_y": {
                    "type": "data",
                    "array": _short(bars),
                    "visible": bool((bars > 0).any()),
                    "width": 2,
                    "thickness": 1.2,
                    "color": _OTHER,
                },
            }
        )
    low = 0.0 if other is None else min(0.0, float((other - bars).min(initial=0.0)))
    y = {
        "tickformat": ".0%" if top > 0.04 else ".1%",
        "nticks": 5,
        "range": [max(low, -1.0), min(1.05 * top, 1.0) or 1.0],
        "title": _title("share of rows"),
    }
    x = {**_ticks(names.ticks, 7), "title": _title(title)}
    return {"data": data, "layout": {**_layout(x, y), "showlegend": False, "bargap": 0.15}}


def heat_figure(
    titles: tuple[str, str],
    rows: Names,
    columns: Names,
    values: np.ndarray,
    *,
    largest: float,
    unit: str = "share of rows",
    diverging: bool = False,
) -> dict:
    """A table as colors from 0 to ``largest``, the first row at the top.

    The colors follow the roots of the values, because shares of cells differ by orders of
    magnitude. Diverging colors begin at -``largest``. A value that is not a number stays blank.
    ``titles`` name the rows and the columns, ``unit`` the values.
    """
    top = max(largest, 1e-9)
    marks = np.linspace(-1 if diverging else 0, 1, 5)
    data = [
        {
            "type": "heatmap",
            "z": [_short(row) for row in _root(values)],
            "zmin": float(_root(top * marks[:1])[0]),
            "zmax": 1.001 * math.sqrt(top),  # the rounded last tick is inside
            "colorscale": "RdBu" if diverging else "Cividis",
            "hoverinfo": "text",
            "hoverongaps": False,
            "colorbar": {
                "thickness": 10,
                "outlinewidth": 0,
                "tickfont": _font(),
                "tickvals": _short(_root(top * marks)),
                "ticktext": [_signed_share(value) for value in top * marks],
                "title": {"text": unit, "font": _font(), "side": "right"},
            },
        }
    ]
    most = _MOST_NAMES if rows is columns else 10
    x, y = (
        {**_ticks(names.ticks, most), **_BARE, "title": _title(title)}
        for names, title in zip((columns, rows), reversed(titles), strict=True)
    )
    layout = _layout(x, {**y, "autorange": "reversed"})
    if any(len(tick) > 4 for tick in columns.ticks):
        layout["xaxis"]["tickangle"] = -45
    texts = {
        axis: [escape(label) for label in names.labels]
        for axis, names in (("x", columns), ("y", rows))
    }
    return {"data": data, "layout": layout, "names": texts}


def curve_figure(
    title: str, at: Sequence[float], lines: Mapping[str, Sequence[float]], *, unit: str = "of rows"
) -> dict:
    """Errors as parts of the rows over something, both in steps of factors; one line a name.

    ``title`` names what they are over. Parts above all rows are drawn at all rows.
    """
    dashes = ("solid", "dash", "dot")
    data = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": escape(_cut(name)),
            "x": [float(f"{point:.6g}") for point in at],
            "y": _short(np.minimum(errors, 1.0)),
            "hovertemplate": f"{escape(name)}<br>%{{x:,}}: %{{y:.2%}}<extra></extra>",
            "line": {"color": _SYNTHETIC if place else _OTHER, "dash": dashes[place % 3]},
        }
        for place, (name, errors) in enumerate(lines.items())
    ]
    ticks = {"tickmode": "array", "tickvals": list(at), "ticktext": [f"{each:,g}" for each in at]}
    layout = _layout(
        {"type": "log", **ticks, "title": _title(title)},
        {"type": "log", "tickformat": ".2~%", "dtick": "D2", "title": _title(unit)},
    )
    legend = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "font": _font()}
    return {"data": data, "layout": {**layout, "showlegend": True, "legend": legend}}


def pair_matrix(domain: Domain, values: Mapping[Clique, float]) -> np.ndarray:
    """The symmetric matrix of the pairs' values, with NaN for pairs without a value."""
    matrix = np.full((len(domain), len(domain)), np.nan)
    for clique, value in values.items():
        first, second = domain.axes(clique)
        matrix[first, second] = matrix[second, first] = value
    return matrix


def _layout(x: dict, y: dict) -> dict:
    axis = {
        "automargin": True,
        "gridcolor": _LINE,
        "zerolinecolor": _LINE,
        "tickfont": _font(),
        "fixedrange": True,  # a finger that scrolls the page must not zoom a figure
    }
    return {
        # Invisible ticks keep the names away from the axis, and from the other axis' lowest one.
        "xaxis": {**axis, **_BARE, "ticks": "outside", "ticklen": 7, "tickcolor": _CLEAR, **x},
        "yaxis": {**axis, **y},
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
        "paper_bgcolor": _CLEAR,
        "plot_bgcolor": _CLEAR,
        "font": {"color": _INK, "size": 12, "family": "system-ui, sans-serif"},
        "hoverlabel": {"font": {"size": 12}},
        "dragmode": False,
    }


def _title(text: str) -> dict:
    """A title of an axis, cut where it would leave the figure."""
    cut = text if len(text) <= _LONGEST_TITLE else text[: _LONGEST_TITLE - 1] + "…"
    return {"text": escape(cut), "font": _font(), "standoff": 6}


def _signed_share(value: float) -> str:
    return f"−{share(-value)}" if value < 0 else share(value)


def _root(values: np.ndarray) -> np.ndarray:
    """The roots of the values, negative ones of negative values."""
    return np.sign(values) * np.sqrt(np.abs(values))


def _font() -> dict:
    return {"color": _QUIET, "size": 11}


def _ticks(labels: Sequence[str], most: int) -> dict:
    """Ticks with names, evenly spread from the first code on, at most ``most`` of them."""
    shown = range(0, len(labels), -(-len(labels) // most) or 1)
    return {
        "tickmode": "array",
        "tickvals": list(shown),
        "ticktext": [escape(_cut(labels[code])) for code in shown],
        "range": [-0.5, len(labels) - 0.5],
    }


def _cut(label: str) -> str:
    return label if len(label) <= _LONGEST_TICK else label[: _LONGEST_TICK - 1] + "…"


def _short(values: np.ndarray) -> list:
    """Four digits of each number, as many as a screen shows; None for what is not finite."""
    return [float(f"{value:.4g}") if np.isfinite(value) else None for value in values]
