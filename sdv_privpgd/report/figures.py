"""Figures of a page: pictures that matplotlib draws as SVG, each with the numbers that it shows.

Axes are numbered by code, and their ticks have names, because two codes may have one name.
"""

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np

from sdv_privpgd._lazy import need
from sdv_privpgd.base.domain import Clique, Domain
from sdv_privpgd.base.words import share
from sdv_privpgd.columns.labels import Names

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SYNTHETIC, _OTHER, _INK, _LINE = "#2f6fb3", "#d07a1f", "#5d646d", "#d9dde2"
_NAMED = {_SYNTHETIC: "synthetic", _OTHER: "other", _INK: "quiet", _LINE: "line"}
"""What a page's style calls the colors, which it has others for in the dark."""

_LONGEST_TICK, _LONGEST_TITLE = 14, 36
_FONT, _LETTER = 11, 6.6
"""The size of letters in pixels, and how wide one of them is."""

_STYLE: Any = {
    "font.family": "DejaVu Sans",  # comes with matplotlib; a page has its own letters
    "font.size": _FONT,
    "legend.frameon": False,
    "path.simplify": False,
    "svg.fonttype": "none",
    "text.color": _INK,
    "text.parse_math": False,
}

Numbers = tuple[Sequence[str], Sequence[Sequence[str]]]  # a table: its header and its rows


@dataclass(frozen=True, kw_only=True, eq=False)
class Bars:
    """A column's synthetic shares as bars, with another table's as points with error bars.

    ``margins`` are the lengths of the error bars, one a value. ``title`` names the values. Shares
    above 1, which are noise, are drawn at 1.
    """

    title: str
    names: Names
    synthetic: np.ndarray
    other: np.ndarray | None
    other_name: str
    margins: np.ndarray | None = None

    @property
    def numbers(self) -> Numbers:
        found = {"value": self.names.labels, "synthetic": map(_part, self.synthetic)}
        if self.other is not None:
            found[self.other_name] = map(_part, self.other)
        if self.margins is not None:
            found["±"] = map(_part, self.margins)
        return tuple(found), list(zip(*found.values(), strict=True))

    def svg(self, label: str) -> str:
        return _svg((330, 230), label, self._draw)

    def _draw(self, figure: "Figure") -> None:
        from matplotlib.ticker import MaxNLocator

        codes = np.arange(len(self.synthetic))
        bars = np.zeros(len(codes)) if self.margins is None else self.margins
        other = self.synthetic[:0] if self.other is None else np.clip(self.other, -1.0, 1.0)
        ends = (other - bars, other + bars) if len(other) else ()
        drawn = np.concatenate((np.zeros(1), self.synthetic, *ends))
        low, high = max(float(drawn.min()), -1.0), min(1.05 * float(drawn.max()), 1.0)
        axes = _axes(figure, (self.title, "share of rows"), _ticks(self.names, 7), left=58)
        axes.set(xlim=(-0.5, max(len(codes), 1) - 0.5), ylim=(low, high or 1.0))
        found = MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high or 1.0)
        marks = [round(mark, 9) for mark in found if low <= mark <= (high or 1.0)]
        _name_rows(axes, {mark: f"{_part(mark)} %".replace("-", "−") for mark in marks})
        across = [[(end, mark) for end in axes.get_xlim()] for mark in (*marks, 0.0)]
        _paths(axes, across, _LINE, width=0.8)
        _paths(axes, [_box(code, value) for code, value in enumerate(self.synthetic)], _SYNTHETIC)
        lines = [
            [(code, max(point - bar, low)), (code, min(point + bar, 1.0))]
            for code, (point, bar) in enumerate(zip(other, bars, strict=False))
            if bar > 0
        ]
        _paths(axes, lines, _OTHER, width=1.2)
        # A line without length that has round ends is a point.
        points = [[(code, value), (code, value)] for code, value in enumerate(other)]
        _paths(axes, points, _OTHER, width=5 if len(codes) < 40 else 3.5)


@dataclass(frozen=True, eq=False)
class Heat:
    """A table as colors from 0 to ``largest``, the first row at the top.

    The colors follow the roots of the values, because shares of cells differ by orders of
    magnitude. Diverging colors begin at -``largest``. A value that is not a number stays blank.
    ``titles`` name the rows and the columns, ``unit`` the values.
    """

    titles: Sequence[str]
    rows: Names
    columns: Names
    values: np.ndarray
    largest: float
    unit: str = "share of rows"
    diverging: bool = False

    @property
    def numbers(self) -> Numbers:
        cells = (map(_part, row) for row in self.values)
        rows = [(name, *row) for name, row in zip(self.rows.labels, cells, strict=True)]
        return (" \\ ".join(self.titles), *self.columns.labels), rows

    def svg(self, label: str) -> str:
        return _svg((500, 460) if self.rows is self.columns else (400, 310), label, self._draw)

    def _draw(self, figure: "Figure") -> None:
        most = 30 if self.rows is self.columns else 10
        x, y = _ticks(self.columns, most), _ticks(self.rows, most)
        left = 32 + _LETTER * max(map(len, y.values()), default=0)
        axes = _axes(figure, self.titles[::-1], x, left=left, right=72, above=28)
        width, height = figure.get_size_inches() * figure.dpi
        place = axes.get_position()
        size = min(_FONT, 0.85 * height * place.height / max(len(y), 1))
        _name_rows(axes, y, size)
        top = max(self.largest, 1e-9)
        marks = top * np.linspace(-1 if self.diverging else 0, 1, 5)
        low, high = _root(marks[[0, -1]])
        colors = {
            "cmap": "RdBu" if self.diverging else "cividis",
            "aspect": "auto",
            "interpolation": "none",  # an image of one pixel a cell, that the browser enlarges
            "vmin": low,
            "vmax": high,
            "clip_on": False,
        }
        axes.imshow(_root(np.ma.masked_invalid(self.values)), **colors)
        bar = figure.add_axes((1 - 64 / width, place.y0, 10 / width, place.height))
        scale = np.linspace(low, high, 64)[:, None]
        bar.imshow(scale, origin="lower", extent=(0, 1, low, high), **colors)
        bar.set_axis_off()
        for spot, mark in zip(_root(marks).tolist(), marks.tolist(), strict=True):
            bar.text(1.4, spot, "−" * (mark < 0) + share(abs(mark)), va="center")
        figure.text(1 - 4 / width, 1 - 6 / height, self.unit, ha="right", va="top")


@dataclass(frozen=True, kw_only=True, eq=False)
class Curves:
    """Errors as parts of the rows over something, both in steps of factors; one line a name.

    ``title`` names what they are over. Parts above all rows are drawn at all rows.
    """

    title: str
    at: Sequence[float]
    lines: Mapping[str, Sequence[float]]

    @property
    def numbers(self) -> Numbers:
        rows = [
            (name, *(_part(error) if error <= 1 else "over 100" for error in errors))
            for name, errors in self.lines.items()
        ]
        return (self.title, *(f"{point:,.12g}" for point in self.at)), rows

    def svg(self, label: str) -> str:
        return _svg((400, 310), label, self._draw)

    def _draw(self, figure: "Figure") -> None:
        places = np.log10(self.at)
        ticks = {place: f"{point:,g}" for place, point in zip(places, self.at, strict=True)}
        axes = _axes(figure, (self.title, "of rows"), ticks, left=62, above=26)
        for number, (name, errors) in enumerate(self.lines.items()):
            drawn = np.minimum(errors, 1.0)
            axes.plot(
                places,
                np.log10(drawn, where=drawn > 0, out=np.full(len(drawn), np.nan)),
                color=_SYNTHETIC if number else _OTHER,
                linestyle=("-", "--", ":")[number % 3],
                marker="o",
                markersize=4,
                label=_cut(name),
                clip_on=False,
            )
        least, most = axes.get_ylim()
        marks = [digit * 10.0**power for power in range(-15, 1) for digit in (1, 2, 5)]
        marks = [mark for mark in marks if least <= np.log10(mark) <= most]
        _name_rows(axes, {np.log10(mark): f"{100 * mark:g} %" for mark in marks})
        lines = [[(end, np.log10(mark)) for end in axes.get_xlim()] for mark in marks]
        lines += [[(place, least), (place, most)] for place in places]
        _paths(axes, lines, _LINE, 0.7)
        figure.legend(loc="upper left", ncols=3, labelcolor=_INK, borderaxespad=0.2)


Picture = Bars | Heat | Curves
"""It has its ``numbers`` as a table, in percent of the rows, and is an element of SVG."""


def pair_heat(domain: Domain, values: Mapping[Clique, float], largest: float) -> Heat:
    """The pairs' values, which are distances, as colors; a pair without a value has none."""
    names, matrix = Names.plain(domain.attributes), np.full((len(domain), len(domain)), np.nan)
    for clique, value in values.items():
        first, second = domain.axes(clique)
        matrix[first, second] = matrix[second, first] = value
    return Heat(("column", "column"), names, names, matrix, largest, unit="distance")


def _svg(size: tuple[int, int], label: str, draw: "Callable[[Figure], None]") -> str:
    """A figure of so many pixels as an SVG element, without what a page does not need.

    Nothing of a user's style reaches it, nor a date, so that pages of the same answers are the
    same.
    """
    need("A picture", "matplotlib")
    import matplotlib as mpl
    from matplotlib import style
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    written = StringIO()
    with warnings.catch_warnings(), style.context("default"):
        warnings.simplefilter("ignore")  # of letters that its own fonts lack
        # Ids are made of this, so that those of two figures differ.
        with mpl.rc_context({**_STYLE, "svg.hashsalt": ascii(label)}):
            figure = Figure(figsize=(size[0] / 72, size[1] / 72), dpi=72, facecolor="none")
            FigureCanvasSVG(figure)
            figure.patch.set_visible(False)
            draw(figure)
            metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
            figure.savefig(written, format="svg", metadata=metadata)
    return _slim(written.getvalue(), label)


def _slim(text: str, label: str) -> str:
    """The SVG element of matplotlib's document, of which most is left out."""
    ElementTree.register_namespace("", "http://www.w3.org/2000/svg")
    ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")
    root = ElementTree.fromstring(text)
    for each in reversed(list(root.iter())):
        for child in list(each):
            kind = child.tag.rpartition("}")[2]
            if kind in ("metadata", "style") or (kind in ("g", "defs") and not len(child)):
                each.remove(child)
        each.text, each.tail = (each.text or "").strip("\n ") or None, None
        if f"#{each.get('id')}" not in text:
            each.attrib.pop("id", None)
        if each.get("transform", "").startswith("rotate(-0 "):
            del each.attrib["transform"]
        for name, found in each.attrib.items():
            if name in ("d", "style"):
                # Two decimal places are less than any screen shows, and a page has its own letters.
                shorter = re.sub(r"(\.\d\d)\d+", r"\1", found.replace("\n", ""))
                shorter = shorter.replace(" font-family: 'DejaVu Sans';", "")
                in_style = lambda color: f"var(--{_NAMED[color[0]]}, {color[0]})"
                each.set(name, re.sub("|".join(_NAMED), in_style, shorter))
    known = {"role": "img", "aria-label": label, "class": "picture"}
    root.attrib = {"viewBox": root.attrib["viewBox"], **known}
    return ElementTree.tostring(root, encoding="unicode")


def _axes(
    figure: "Figure",
    titles: Sequence[str],
    x: Mapping[float, str],
    *,
    left: float,
    right: float = 8,
    above: float = 8,
) -> "Axes":
    """Axes in a frame that is as wide as their ticks need; letters of its titles fit."""
    width, height = figure.get_size_inches() * figure.dpi
    longest = _LETTER * max(map(len, x.values()), default=0)
    room = (width - left - right) / max(len(x), 1)
    turn = 0 if longest < room - 4 else 45 if room > 1.4 * _FONT else 90
    size = min(_FONT, 0.85 * room) if turn else _FONT
    below = 42 + {0: 0, 45: 0.7, 90: 1}[turn] * longest * size / _FONT
    wide, high = width - left - right, height - below - above
    axes = figure.add_axes((left / width, below / height, wide / width, high / height))
    axes.set_axis_off()
    known = {"transform": axes.get_xaxis_transform(), "fontsize": size, "rotation": turn}
    known |= {"ha": "right", "rotation_mode": "anchor"} if turn else {"ha": "center"}
    known["va"] = "center" if turn == 90 else "top"
    for code, name in x.items():
        axes.text(code, -6 / high, name, **known)
    across, up = (_cut(title, _LONGEST_TITLE) for title in titles)
    figure.text((left + wide / 2) / width, 6 / height, across, ha="center", va="bottom")
    middle = (below + high / 2) / height
    figure.text(14 / width, middle, up, ha="center", va="center", rotation=90)
    return axes


def _name_rows(axes: "Axes", names: Mapping[float, str], size: float = _FONT) -> None:
    """Names places at the left of axes."""
    known = {"transform": axes.get_yaxis_transform(), "ha": "right", "va": "center"}
    for place, name in names.items():
        axes.text(-6 / axes.bbox.width, place, name, fontsize=size, **known)


def _paths(axes: "Axes", shapes: Sequence, color: str, width: float = 0) -> None:
    """Many shapes as one path: lines with round ends of a width, or else filled boxes."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    if shapes:
        path = Path.make_compound_path(*(Path(shape) for shape in shapes))
        line = {"edgecolor": color, "linewidth": width, "fill": False, "capstyle": "round"}
        filled = {"facecolor": color, "linewidth": 0}
        axes.add_patch(
            PathPatch(
                path,
                clip_on=False,
                zorder=1 if color == _LINE else 3,
                **(line if width else filled),
            )
        )


def _box(code: int, value: float) -> list[tuple[float, float]]:
    low, high = code - 0.425, code + 0.425
    return [(low, 0), (low, value), (high, value), (high, 0)]


def _ticks(names: Names, most: int) -> dict[float, str]:
    """Ticks with names, evenly spread from the first code on, at most ``most`` of them."""
    shown = range(0, len(names.ticks), -(-len(names.ticks) // most) or 1)
    return {code: _cut(names.ticks[code]) for code in shown}


def _cut(text: str, most: int = _LONGEST_TICK) -> str:
    """A text of one line that is short enough, of letters that a picture can have."""
    plain = "".join(letter if letter.isprintable() else "�" for letter in text)
    return plain if len(plain) <= most else plain[: most - 1] + "…"


def _part(value: float) -> str:
    """A part of the rows in percent."""
    return f"{100 * value:.3g}" if np.isfinite(value) else "–"


def _root(values: np.ndarray) -> np.ndarray:
    """The roots of the values, negative ones of negative values."""
    return np.sign(values) * np.sqrt(np.abs(values))
