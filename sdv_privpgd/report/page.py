"""One HTML file with everything in it: text, tables, figures and the script that draws them.

Names of columns and categories come from the table's owner, so all texts are escaped here.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from pathlib import Path
from typing import Protocol, runtime_checkable

_ROWS_IN_SIGHT, _FIGURES_IN_SIGHT = 12, 12


@runtime_checkable
class Part(Protocol):
    """A part of a page."""

    def html(self) -> str:
        """The part as HTML, escaped."""
        ...


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str
    quiet: bool = False

    def html(self) -> str:
        return f"<p{' class=quiet' * self.quiet}>{escape(self.text)}</p>"


@dataclass(frozen=True)
class Items:
    """A list of points."""

    items: Sequence[str]

    def html(self) -> str:
        return f"<ul>{''.join(f'<li>{escape(item)}</li>' for item in self.items)}</ul>"


_HUMPS = re.compile("(?<=[a-z])(?=[A-Z])")
"""Where names of classes may be broken."""


@dataclass(frozen=True)
class Facts:
    """The few most important numbers, each with its name."""

    facts: Sequence[tuple[str, str]]

    def html(self) -> str:
        shown = "".join(
            f"<div><dt>{escape(name)}</dt><dd>{_HUMPS.sub('<wbr>', escape(fact))}</dd></div>"
            for name, fact in self.facts
        )
        return f'<dl class="facts">{shown}</dl>'


@dataclass(frozen=True)
class Table:
    """A table in a box of its own; every column after the first ``texts`` holds numbers."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: int = 1

    def html(self) -> str:
        head = "".join(
            f'<th scope="col"{self._kind(place)}>{escape(name)}</th>'
            for place, name in enumerate(self.header)
        )
        body = "".join(
            f'<tr><th scope="row">{escape(row[0])}</th>'
            + "".join(
                f"<td{self._kind(place)}>{escape(cell)}</td>"
                for place, cell in enumerate(row[1:], start=1)
            )
            + "</tr>"
            for row in self.rows
        )
        # A box that scrolls must be reachable by keyboard, and then it needs a name.
        return (
            f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(self.caption)}">'
            f"<table><caption>{escape(self.caption)}</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )

    def _kind(self, place: int) -> str:
        return ' class="number"' * (place >= self.texts)


@dataclass(frozen=True)
class Figure:
    """A figure with its title; ``summary`` says in words what it shows.

    ``kind`` is its size: "small", "heat" or "matrix".
    """

    title: str
    summary: str
    kind: str
    description: dict

    def html(self) -> str:
        # In a script element only "<" could end it or open a comment.
        description = json.dumps(self.description, allow_nan=False, separators=(",", ":"))
        label = escape(f"{self.title}. {self.summary}")
        return (
            f"<figure><h3>{escape(self.title)}</h3>"
            f'<script type="application/json">{description.replace("<", chr(92) + "u003c")}'
            f'</script><div class="plot {self.kind}" role="img" aria-label="{label}"></div>'
            f"<figcaption>{escape(self.summary)}</figcaption></figure>"
        )


@dataclass(frozen=True)
class Grid:
    """Figures side by side, as many as fit; ``kind`` is "grid", "wide" or "triple"."""

    kind: str
    figures: Sequence[Figure]

    def html(self) -> str:
        return f'<div class="{self.kind}">{"".join(each.html() for each in self.figures)}</div>'


@dataclass(frozen=True)
class Fold:
    """Parts that are folded behind a line. On paper only the line is printed."""

    summary: str
    parts: Sequence[Part]

    def html(self) -> str:
        shown = "".join(part.html() for part in self.parts)
        return f"<details><summary>{escape(self.summary)}</summary>{shown}</details>"


@dataclass(frozen=True)
class Details:
    """Text in a fixed-width font, folded behind a line."""

    summary: str
    text: str

    def html(self) -> str:
        return (
            f"<details><summary>{escape(self.summary)}</summary>"
            f'<pre tabindex="0">{escape(self.text)}</pre></details>'
        )


def long_table(
    caption: str, header: Sequence[str], rows: Sequence[Sequence[str]], *, texts: int = 1
) -> list[Part]:
    """A table that shows its first rows; if it is long, the others are folded behind a line."""
    if len(rows) <= _ROWS_IN_SIGHT + 3:
        return [Table(caption, header, rows, texts)]
    rest = rows[_ROWS_IN_SIGHT:]
    words = f"The other {len(rest):,}: {caption[0].lower()}{caption[1:]}"
    return [
        Table(caption, header, rows[:_ROWS_IN_SIGHT], texts),
        Fold(words, [Table(words, header, rest, texts)]),
    ]


def long_grid(kind: str, figures: Sequence[Figure], words: str) -> list[Part]:
    """Figures side by side; those after the first dozen are folded behind a line on ``words``."""
    if len(figures) <= _FIGURES_IN_SIGHT + 3:
        return [Grid(kind, figures)]
    rest = figures[_FIGURES_IN_SIGHT:]
    return [
        Grid(kind, figures[:_FIGURES_IN_SIGHT]),
        Fold(f"The other {len(rest):,} {words}", [Grid(kind, rest)]),
    ]


@dataclass(frozen=True)
class Section:
    """Parts under a heading."""

    heading: str
    parts: Sequence[Part]

    def html(self) -> str:
        shown = "".join(part.html() for part in self.parts)
        return f"<section><h2>{escape(self.heading)}</h2>{shown}</section>"


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page, with a ``banner`` that stays in sight while scrolling, if it has one."""

    title: str
    lead: Sequence[Part]
    sections: Sequence[Section]
    banner: str | None = None

    def html(self) -> str:
        """The whole document. It asks for nothing over a network."""
        # Imported here because it takes a fraction of a second and only pages need it.
        from plotly.offline import get_plotlyjs

        banner = "" if self.banner is None else _banner(self.banner)
        parts = "".join(part.html() for part in (*self.lead, *self.sections))
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            '<meta name="referrer" content="no-referrer"><link rel="icon" href="data:,">'
            f"<title>{escape(self.title)}</title><style>{_own('page.css')}</style></head>\n"
            f"<body>{banner}<main><h1>{escape(self.title)}</h1>{parts}</main>\n"
            f"<script>{get_plotlyjs()}</script>\n<script>{_own('page.js')}</script></body></html>\n"
        )

    def write(self, path: str | Path) -> Path:
        """Writes the document and returns where it lies."""
        path = Path(path)
        path.write_text(self.html(), encoding="utf-8")
        return path


def _banner(text: str) -> str:
    return f'<div class="banner" role="note"><span>{escape(text)}</span></div>'


def _own(name: str) -> str:
    return (resources.files("sdv_privpgd.report") / name).read_text(encoding="utf-8")
