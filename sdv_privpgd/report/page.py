"""What people are shown: a text, a page for the browser and a dictionary, of the same facts.

A page is one HTML file with everything in it: text, tables and figures. Nothing in it is run. Names
of columns and categories come from the table's owner, so all texts are escaped here.
"""

import json
import math
import re
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from html import escape
from importlib import resources
from itertools import zip_longest
from pathlib import Path
from tempfile import mkdtemp
from textwrap import fill, wrap
from typing import Any, Protocol, TypeVar

import numpy as np
import pandas as pd

from sdv_privpgd.columns.scalars import plain
from sdv_privpgd.report.figures import Curves, Picture

WIDTH = 98
"""The most characters of a line of text."""

_IN_SIGHT = 12
"""Rows of a table, and figures, that are not folded behind a line."""

_FRAME = (
    '<iframe srcdoc="{}" sandbox="allow-downloads" '
    'style="width: 100%; height: 40rem; border: 0"></iframe>'
)


Own = TypeVar("Own", bound="Report")


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


@dataclass(frozen=True)
class Facts:
    """The few most important numbers, each with its name."""

    facts: Sequence[tuple[str, str]]

    def html(self) -> str:
        shown = "".join(
            f"<div><dt>{escape(name)}</dt><dd>"  # names of classes may be broken
            f"{re.sub('(?<=[a-z])(?=[A-Z])', '<wbr>', escape(fact))}</dd></div>"
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
        # HTML leaves out the ends of cells and rows; in tables of many numbers they are half of it.
        head = "".join(f"<th scope=col>{escape(name)}" for name in self.header)
        body = "".join(f"<tr><th scope=row>{'<td>'.join(map(escape, row))}" for row in self.rows)
        # A box that scrolls must be reachable by keyboard, and then it needs a name.
        return (
            f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(self.caption)}">'
            f'<table class="texts{self.texts}"><caption>{escape(self.caption)}</caption>'
            f"<thead><tr>{head}</thead><tbody>{body}</tbody></table></div>"
        )


@dataclass(frozen=True)
class Figure:
    """A picture with its title and its numbers; ``summary`` says in words what it shows.

    Without matplotlib the numbers stand in its place.
    """

    title: str
    summary: str
    picture: Picture

    def html(self) -> str:
        header, rows = self.picture.numbers
        numbers: Part = Table(f"{self.title}: in % of the rows", header, rows)
        if len(header) * len(rows) > 2_500:
            numbers = Text(f"{len(rows):,} rows of numbers are too many for a page.", quiet=True)
        try:
            shown = self.picture.svg(f"{self.title}. {self.summary}")
            numbers = Fold("The numbers", [numbers])
        except ImportError as error:
            shown = Text(str(error), quiet=True).html()
        return (
            f"<figure><h3>{escape(self.title)}</h3>{shown}"
            f"<figcaption>{escape(self.summary)}</figcaption>{numbers.html()}</figure>"
        )


@dataclass(frozen=True)
class FigureGrid:
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
    words = f": {caption[0].lower()}{caption[1:]}"
    return folded(rows, words, lambda some: Table(caption, header, some, texts))


def folded(things: Sequence, words: str, show: Callable[[Sequence], Part]) -> list[Part]:
    """The first dozen of things, as ``show`` has them; others are behind a line on ``words``."""
    if len(things) <= _IN_SIGHT + 3:
        return [show(things)]
    rest = things[_IN_SIGHT:]
    return [show(things[:_IN_SIGHT]), Fold(f"The other {len(rest):,}{words}", [show(rest)])]


@dataclass(frozen=True)
class Section:
    """Parts under a heading; behind it, if they are ``folded``."""

    heading: str
    parts: Sequence[Part]
    folded: bool = False

    def html(self) -> str:
        shown = "".join(part.html() for part in self.parts)
        head = f"<h2>{escape(self.heading)}</h2>"
        if self.folded:
            return f"<section><details><summary>{head}</summary>{shown}</details></section>"
        return f"<section>{head}{shown}</section>"


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page, with a ``banner`` that stays in sight while scrolling, if it has one."""

    title: str
    lead: Sequence[Part]
    sections: Sequence[Section]
    banner: str | None = None

    def html(self, name: str | None = None) -> str:
        """The whole document. It asks for nothing over a network and runs nothing.

        ``name`` is what a browser calls it, if not by its title.
        """
        banner = ""
        if self.banner is not None:
            banner = f'<div class="banner" role="note"><span>{escape(self.banner)}</span></div>'
        parts = "".join(part.html() for part in (*self.lead, *self.sections))
        style = (resources.files("sdv_privpgd.report") / "page.css").read_text(encoding="utf-8")
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
            "img-src data:; style-src 'unsafe-inline'\">"
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            '<meta name="referrer" content="no-referrer"><link rel="icon" href="data:,">'
            f"<title>{escape(name or self.title)}</title><style>{style}</style></head>\n"
            f"<body>{banner}<main><h1>{escape(self.title)}</h1>{parts}</main></body></html>\n"
        )

    def write(self, path: str | Path) -> Path:
        """Writes the document and returns where it lies."""
        path = Path(path)
        path.write_text(self.html(path.stem), encoding="utf-8")
        return path


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Report:
    """The same facts as a text, as a page and as a dictionary. Nothing is written before ``save``.

    ``print`` shows the text, a notebook the page by itself, and ``open`` a browser.

    Attributes:
        text: Lines of at most 100 characters.
        page: What the page shows.
        facts: What ``to_dict`` gives, by name.

    >>> page = Page(title="Report", lead=[], sections=[])
    >>> report = Report(text="Nothing was spent.", page=page, facts={"epsilon_spent": 0.0})
    >>> print(report)
    Nothing was spent.
    >>> report.to_dict()
    {'epsilon_spent': 0.0}
    """

    text: str
    page: Page
    facts: Mapping[str, Any]

    @classmethod
    def of(
        cls,
        title: str,
        lead: Sequence[Part],
        sections: Sequence[Section],
        facts: Mapping[str, Any],
        first: Sequence[Part] = (),
    ) -> "Report":
        """A public report whose text has all that stands on its page, and ``first`` before all."""
        page = Page(title=title, lead=[*first, *lead], sections=sections)
        text = as_text([*first, Text(title), *lead, *sections])
        return cls(text=text, page=page, facts={"public": True, **facts})

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def to_dict(self) -> dict[str, Any]:
        """The facts in dictionaries, lists, text, numbers, truths and ``None``, as JSON has them.

        Numbers that are not finite are ``None``.
        """
        return {str(name): _as_json(fact) for name, fact in self.facts.items()}

    def html(self) -> str:
        """The page: one document, of 1 MB at most for 30 columns, that asks for no network."""
        return self.page.html()

    def _repr_html_(self) -> str:
        """The page in a frame of its own, so that its style does not reach a notebook's."""
        return _FRAME.format(escape(self.html()))

    def to_markdown(self) -> str:
        """The page for a repository or an issue: pictures in words, and nothing to download."""
        parts = [*self.page.lead, *self.page.sections]
        banner = [] if self.page.banner is None else [f"**{_plain(self.page.banner)}**"]
        shown = [f"# {_plain(self.page.title)}", *banner, *map(_markdown, parts)]
        return "\n\n".join(filter(None, shown)) + "\n"

    def open(self) -> Path:
        """Shows the page in the browser, from a file of its own that only you can read."""
        path = self.save(Path(mkdtemp(prefix="sdv-privpgd-"), "report.html"))
        webbrowser.open(path.as_uri())
        return path

    def saved(self: Own, path: str | Path | None) -> Own:
        """The report itself, written to a file if there is a path."""
        if path is not None:
            self.save(path)
        return self

    def save(self, path: str | Path) -> Path:
        """Writes it to a file and returns where it lies.

        Args:
            path: A file that ends in ``.html`` is the page, and a browser calls it by its name. One
                in ``.md`` is the same as Markdown, one in ``.txt`` the text and one in ``.json``
                the dictionary.

        Raises:
            ValueError: For any other ending.
        """
        path = checked_ending(path)
        if (ending := path.suffix.lower()) == ".json":
            text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        elif ending == ".md":
            text = self.to_markdown()
        else:
            name = path.stem.removesuffix(".part")  # commands write a part that gets its name last
            text = f"{self.text}\n" if ending == ".txt" else self.page.html(name)
        path.write_text(text, encoding="utf-8")
        return path


def _plain(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    return re.sub(r"([\\`*_\[\]<>|$&~#])", r"\\\1", " ".join(text.split()))


def _markdown(part: Part) -> str:
    """A part of a page as Markdown; empty for what only a browser has, such as files."""
    match part:
        case Text(text):
            return _plain(text)
        case Items(items):
            return "\n".join(f"- {_plain(item)}" for item in items)
        case Facts(facts):
            return "\n".join(f"- {_plain(name)}: **{_plain(fact)}**" for name, fact in facts)
        case Table(caption, header, rows):
            named, *cells = ([*map(_plain, row)] for row in (header, *rows))
            lines = [named, ["---"] * len(named), *cells]
            return "\n".join([f"{_plain(caption)}\n", *(f"| {' | '.join(row)} |" for row in lines)])
        case FigureGrid(_, figures):
            return "\n".join(
                f"- **{_plain(each.title)}**: {_plain(each.summary)}" for each in figures
            )
        case Fold(heading, parts) | Section(heading, parts):
            shown = "\n\n".join(filter(None, map(_markdown, parts)))
            if isinstance(part, Section) and not part.folded:
                return f"## {_plain(heading)}\n\n{shown}"
            return f"<details><summary>{escape(heading)}</summary>\n\n{shown}\n\n</details>"
    return ""


def as_text(parts: Sequence[Part]) -> str:
    """Parts of a page as lines of text: pictures in words, and of what is folded the line."""
    return "\n\n".join(filter(None, map(_text, parts)))


def _text(part: Part) -> str:
    match part:
        case Text(text):
            return fill(text, WIDTH)
        case Items(items):
            return "\n".join(fill(f"- {item}", WIDTH, subsequent_indent="  ") for item in items)
        case Facts(facts):
            return "\n".join(fill(": ".join(each), WIDTH, subsequent_indent="  ") for each in facts)
        case Table(caption):
            return f"{fill(caption, WIDTH)}\n{aligned(part)}"
        case FigureGrid(_, figures):
            drawn = [each for each in figures if isinstance(each.picture, Curves)]
            lines = [f"{each.title}: {each.summary}" for each in figures if each not in drawn]
            tables = [Table(f"{e.title}: in % of the rows", *e.picture.numbers) for e in drawn]
            return as_text([*([Items(lines)] if lines else []), *tables])
        case Section(heading, parts):
            return f"{heading}\n{'=' * len(heading)}\n\n{as_text(parts)}"
        case Fold(heading):
            return fill(f"{heading}: on the page.", WIDTH)
    return ""


def aligned(table: Table) -> str:
    """A table in lines of text: texts are broken first, and numbers stand below each other."""
    rows, count = [table.header, *table.rows], table.texts
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    while sum(widths) + 2 * len(widths) > WIDTH + 2 and max(widths) > 8:
        widest = max(widths[:count])
        widths[widths.index(widest if widest > 20 else max(widths))] -= 1
    lines = []
    for row in rows:
        cells = [wrap(cell, width) for cell, width in zip(row, widths, strict=True)]
        for places in zip_longest(*cells, fillvalue=""):
            texts, numbers = places[:count], places[count:]
            line = [*map(str.ljust, texts, widths), *map(str.rjust, numbers, widths[count:])]
            lines.append("  ".join(line).rstrip())
        if row is table.header:
            lines.append("-" * max(map(len, lines)))
    return "\n".join(lines)


def check_path(path: str | Path | None) -> None:
    """Raises ``ValueError`` for a path at which no report can be written; ``None`` is of none."""
    if path is not None:
        checked_ending(path)


def checked_ending(path: str | Path) -> Path:
    """The path of a report, which is to be written when it is made.

    Raises ``ValueError`` for an ending that no form of a report has, and for no folder.
    """
    if Path(path).suffix.lower() not in (".html", ".htm", ".md", ".txt", ".json"):
        raise ValueError(
            "A report is a page (.html), Markdown (.md), a text (.txt) or numbers (.json), "
            f"got {str(path)!r}."
        )
    if not Path(path).parent.is_dir():
        raise ValueError(f"There is no folder {Path(path).parent} for the report {path}.")
    return Path(path)


def _as_json(fact: Any) -> Any:
    """A fact as JSON can hold it; what has no such form is what Python writes of it."""
    if isinstance(fact, Mapping):
        return {str(name): _as_json(each) for name, each in fact.items()}
    if isinstance(fact, list | tuple | range | np.ndarray | pd.Index | pd.Series):
        return [_as_json(each) for each in fact]
    if fact is None or fact is pd.NA or fact is pd.NaT:
        return None
    read = plain(fact)
    if isinstance(read, str | bool | int):
        return read
    if isinstance(read, float | Decimal | Fraction):
        return float(read) if math.isfinite(read) else None
    return None if isinstance(fact, float | np.floating) else str(fact)
