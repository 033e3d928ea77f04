"""What people are shown: one object that is a text, a page for the browser and a dictionary."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd.columns.scalars import plain
from sdv_privpgd.report.page import Page

_FRAME = (
    '<iframe srcdoc="{}" sandbox="allow-scripts allow-downloads" '
    'style="width: 100%; height: 40rem; border: 0"></iframe>'
)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Report:
    """The same facts as a text, as a page and as a dictionary. Nothing is written before ``save``.

    ``print`` shows the text, and a notebook the page.

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

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def to_dict(self) -> dict[str, Any]:
        """The facts in dictionaries, lists, text, numbers, truths and ``None``, as JSON has them.

        Numbers that are not finite are ``None``.
        """
        return {str(name): _as_json(fact) for name, fact in self.facts.items()}

    def html(self) -> str:
        """The page: one document of 5 to 8 MB that asks for nothing over a network."""
        return self.page.html()

    def _repr_html_(self) -> str:
        """The page in a frame of its own, so that its style does not reach a notebook's."""
        return _FRAME.format(escape(self.html()))

    def save(self, path: str | Path) -> Path:
        """Writes it to a file and returns where it lies.

        Args:
            path: A file that ends in ``.html`` is the page, one in ``.txt`` the text and one in
                ``.json`` the dictionary.

        Raises:
            ValueError: For any other ending.
        """
        path = checked_ending(path)
        if path.suffix.lower() == ".txt":
            path.write_text(self.text + "\n", encoding="utf-8")
        elif path.suffix.lower() == ".json":
            text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)
            path.write_text(text + "\n", encoding="utf-8")
        else:
            self.page.write(path)
        return path


def checked_ending(path: str | Path) -> Path:
    """The path of a report. Raises ``ValueError`` for an ending that no form of a report has."""
    if Path(path).suffix.lower() not in (".html", ".htm", ".txt", ".json"):
        raise ValueError(
            f"A report is a page (.html), a text (.txt) or numbers (.json), got {str(path)!r}."
        )
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
