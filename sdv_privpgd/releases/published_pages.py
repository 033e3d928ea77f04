"""The page and the text of rows that were made of published tables: whose the guarantee is."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from textwrap import fill

from sdv_privpgd.domain import Clique
from sdv_privpgd.fitting.fit import Fitted
from sdv_privpgd.releases.pages import model_sections
from sdv_privpgd.releases.tidy_tables import TidyTable
from sdv_privpgd.report.advice import OPENING
from sdv_privpgd.report.assumed import About, facts_about, facts_in_words
from sdv_privpgd.report.page import Report
from sdv_privpgd.report.page import Facts, Items, Page, Section, Text, long_table
from sdv_privpgd.report.privacy import WIDTH
from sdv_privpgd.words import listed


@dataclass(frozen=True, kw_only=True)
class PublishedTable:
    """What was read of one table. Public.

    Attributes:
        clique: Its columns; none for the number of rows.
        num_cells: The number of its cells.
        least: The smallest standard deviation of the noise in a cell, as it was published.
        largest: The largest.
    """

    clique: Clique
    num_cells: int
    least: float
    largest: float

    @classmethod
    def of(cls, table: TidyTable) -> "PublishedTable":
        """What is said of a table."""
        stddevs = table.stddevs
        return cls(
            clique=table.clique,
            num_cells=len(stddevs),
            least=float(stddevs.min()),
            largest=float(stddevs.max()),
        )

    @property
    def name(self) -> str:
        """Its columns in words."""
        return " x ".join(self.clique) or "number of rows"

    @property
    def noise(self) -> str:
        """The standard deviations in words."""
        if not self.largest:
            return "none: exact"
        if math.isclose(self.least, self.largest, rel_tol=0.01):
            return f"{self.largest:,.4g}"
        return f"{self.least:,.4g} to {self.largest:,.4g}"


def whose_guarantee(publisher: str, tables: Sequence[PublishedTable]) -> list[str]:
    """What can be said of privacy, a sentence or two each."""
    exact = [table.name for table in tables if table.clique and not table.largest]
    said = [
        f"The rows were made of {len(tables):,} tables that {publisher} has published, and of "
        "nothing else. No row of people was read.",
        "Whether these tables protect people, by which method and how well, is for "
        f"{publisher} to say. This program has no ledger of it and adds no promise. Whatever "
        "guarantee of differential privacy the tables have, the rows have as well, because they "
        "are computed from the tables alone.",
        "The standard deviations are those that were given with the tables. They are taken as "
        "true, and noise as independent from cell to cell; intervals rest on that.",
    ]
    if exact:
        said.append(
            f"Exact, as far as is said: {listed(exact, 4)}. Nothing hides a person in a small "
            "count of an exact table, and rows that follow it do not either."
        )
    return said


def published_text(
    publisher: str, tables: Sequence[PublishedTable], *, notes: Sequence[str] = ()
) -> str:
    """Whose guarantee it is, and the tables, as text of at most 98 characters a line."""
    lines = [f"{table.name}: {table.num_cells:,} cells, noise sd {table.noise}" for table in tables]
    paragraphs = [
        f"Privacy report (sdv-privpgd {version('sdv-privpgd')}): published tables",
        *(fill(sentence, WIDTH) for sentence in whose_guarantee(publisher, tables)),
        "\n".join(fill(line, WIDTH, subsequent_indent="  ") for line in lines),
    ]
    if notes:
        said = [fill(f"- {note}", WIDTH, subsequent_indent="  ") for note in notes]
        paragraphs.append("\n".join([OPENING, *said]))
    return "\n\n".join(part for part in paragraphs if part)


def published_report(
    fitted: Fitted,
    publisher: str,
    tables: Sequence[PublishedTable],
    about: About,
    *,
    notes: Sequence[str] = (),
) -> Report:
    """Whose guarantee it is, and how well rows fit the published tables. Public."""
    shown, last = model_sections(fitted)
    rows = [
        (name, str(facts.get("sdtype")), facts_in_words({**facts, **about.declared.get(name, {})}))
        for name, facts in about.columns.items()
    ]
    page = Page(
        title=f"Synthetic rows of tables that {publisher} has published",
        lead=[
            Facts(
                [
                    ("published by", publisher),
                    ("tables", f"{len(tables):,}"),
                    ("rows", f"{fitted.num_rows or 0:,}"),
                    ("columns", f"{len(about.columns):,}"),
                    ("made on", about.date),
                    ("rows made by", type(about.engine).__name__),
                    ("program", f"sdv-privpgd {version('sdv-privpgd')}"),
                ]
            )
        ],
        sections=[
            *([Section("Read this first", [Items(notes)])] if notes else []),
            Section(
                "Whose guarantee it is",
                [
                    *map(Text, whose_guarantee(publisher, tables)),
                    *long_table(
                        "The published tables",
                        ("table", "cells", "noise sd per cell"),
                        [(each.name, f"{each.num_cells:,}", each.noise) for each in tables],
                    ),
                ],
            ),
            Section(
                "What was declared of the columns",
                long_table("Columns", ("column", "kind", "declared"), rows, texts=3),
            ),
            *shown,
            *last,
        ],
    )
    return Report(
        text=published_text(publisher, tables, notes=notes),
        page=page,
        facts={
            "report": "published",
            "public": True,
            **facts_about(about, fitted.release),
            "publisher": publisher,
            "tables": [
                {
                    "columns": list(each.clique),
                    "cells": each.num_cells,
                    "least_stddev": each.least,
                    "largest_stddev": each.largest,
                }
                for each in tables
            ],
            "warnings": list(notes),
        },
    )
