"""The pages and the texts of combined and of published tables: what is promised to whom. Public."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from textwrap import fill
from typing import Any

from sdv_privpgd.base.domain import Clique
from sdv_privpgd.base.words import listed
from sdv_privpgd.columns.vocabulary import words_of
from sdv_privpgd.fitting.fit import Fitted
from sdv_privpgd.privacy.ledger import PrivacyLedger, epsilon_in_all
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.releases.measured import Holder
from sdv_privpgd.releases.tidy_tables import TidyTable
from sdv_privpgd.report.about import (
    CONFIDENT,
    About,
    assumed_section,
    facts_about,
    facts_in_words,
)
from sdv_privpgd.report.page import (
    Details,
    Facts,
    Page,
    Part,
    Report,
    Section,
    Text,
    long_table,
)
from sdv_privpgd.report.privacy import (
    WIDTH,
    events,
    first_line,
    ledger_table,
    privacy_report,
    worth_a_look,
)
from sdv_privpgd.report.release import model_sections, opening, visits_sections

_NEIGHBORS = {
    Adjacency.REPLACE_ONE: "replaced by any other values; each holder's number of rows is public",
    Adjacency.ADD_REMOVE: "added or removed; each holder's number of rows is private",
}


def promises(holders: Sequence[Holder]) -> list[str]:
    """What is promised to people of one holder, of two and of all, a sentence each."""
    if not holders:
        return ["Nobody has measured anything."]
    ledgers = sorted(
        (holder.ledger for holder in holders), key=lambda ledger: ledger.mu_squared, reverse=True
    )
    adjacency, delta = ledgers[0].adjacency, max(ledger.delta for ledger in ledgers)
    said = [
        "Each holder has measured its own table and added the noise itself. Its rows were seen by "
        "nobody else, and the noisy tables were added up afterwards, which costs nothing.",
        "Whoever has rows at one holder alone is protected by that holder's epsilon, at most "
        f"{max(ledger.spent() for ledger in ledgers):.4g} at its delta: what the others have "
        "measured says nothing of them.",
    ]
    if len(ledgers) > 1:
        said.append(
            f"Whoever has rows at several holders is protected by all of these together: by "
            f"epsilon {epsilon_in_all(ledgers[:2], delta):.4g} at delta {delta:g} at most if at two"
            + (
                f", and {epsilon_in_all(ledgers):.4g} if at all {len(ledgers)}."
                if len(ledgers) > 2
                else "."
            )
            + " Nobody has checked who is at several."
        )
    said.append(
        "Two tables of a holder are neighbors if one is the other with what is protected "
        f"{_NEIGHBORS[adjacency]}. Somebody who moves from one holder to another is in the tables "
        "of both."
    )
    return said


def _least_protected(holders: Sequence[Holder]) -> PrivacyLedger | None:
    """The ledger that spent most, of those for which nobody has said whose the rows are."""
    unsaid = [holder.ledger for holder in holders if not holder.ledger.says_whose]
    return max(unsaid, key=lambda ledger: ledger.mu_squared, default=None)


def holders_text(holders: Sequence[Holder], *, notes: Sequence[str] = ()) -> str:
    """The promises, and each holder's ledger, as text of at most 98 characters a line."""
    program = f"Privacy report (sdv-privpgd {version('sdv-privpgd')}): {len(holders)} holders"
    paragraphs = [
        *(fill(part.text, WIDTH) for part in first_line(_least_protected(holders))),
        program,
        *(fill(sentence, WIDTH) for sentence in promises(holders)),
    ]
    for holder in holders:
        ledger = holder.ledger
        paragraphs.append(
            f"{holder.name}: {_rows(holder)} rows, measured on {holder.date}\n"
            f"({ledger.spent():.6g}, {ledger.delta:g})-differential privacy, "
            f"{ledger.adjacency.value.replace('_', '-')}, for {ledger.unit}"
        )
    if holders:
        paragraphs.append(
            f"What was asked of {holders[0].name}'s table; the page and the numbers have the "
            f"other holders' ledgers.\n\n{events(holders[0].ledger)}"
        )
    return "\n\n".join([*paragraphs, *worth_a_look(notes)])


def holders_report(
    fitted: Fitted, holders: Sequence[Holder], about: About, *, notes: Sequence[str] = ()
) -> Report:
    """What is promised to whom, and how well rows fit the sums of the noisy tables. Public."""
    ledgers = [holder.ledger for holder in holders]
    at_one, at_all = max(each.spent() for each in ledgers), epsilon_in_all(ledgers)
    return _report(
        fitted,
        about,
        notes,
        title=f"Synthetic rows of {len(holders)} holders' tables",
        lead=first_line(_least_protected(holders)),
        numbers={
            "holders": f"{len(holders):,}",
            "rows": f"{fitted.num_rows or 0:,}",
            "columns": f"{len(about.columns):,}",
            "epsilon, rows at one holder": f"{at_one:.4g}",
            "epsilon, rows at all": f"{at_all:.4g}",
            "combined on": about.date,
            "rows made by": about.method.parts[-1],
        },
        sections=[
            _promised(holders),
            *visits_sections(about.visits),
            assumed_section(about, ledgers[0].adjacency),
            _asked(holders),
        ],
        text=holders_text(holders, notes=notes),
        facts={
            "report": "combined",
            "epsilon_at_one_holder": at_one,
            "epsilon_at_all_holders": at_all,
            "holders": [
                {
                    "holder": holder.name,
                    "num_rows": holder.rows.value,
                    "epsilon_spent": holder.ledger.spent(),
                    "date": holder.date,
                    "strategy": holder.strategy,
                    "ledger": holder.ledger.to_dict(),
                }
                for holder in holders
            ],
        },
    )


def _report(
    fitted: Fitted,
    about: About,
    notes: Sequence[str],
    *,
    title: str,
    lead: Sequence[Part],
    numbers: Mapping[str, str],
    sections: Sequence[Section],
    text: str,
    facts: Mapping[str, Any],
) -> Report:
    """A report whose page has its own sections between the pictures and what is folded away."""
    shown, folded = model_sections(fitted.release, fitted.schema)
    line, worth = opening(fitted.schema, about, notes)
    page = Page(
        title=title,
        lead=[Text(line), *lead, Facts([*numbers.items()])],
        sections=[*shown, *worth, *sections, *folded],
    )
    of_all = {"public": True, **facts_about(about, fitted.release), "warnings": list(notes)}
    return Report(text=text, page=page, facts={**of_all, **facts})


def _promised(holders: Sequence[Holder]) -> Section:
    rows = [
        (
            holder.name,
            holder.ledger.unit,
            _rows(holder),
            f"{holder.ledger.spent():.4g}",
            f"{holder.ledger.delta:g}",
            holder.date,
        )
        for holder in holders
    ]
    return Section(
        "Whose rows these are, and what is promised",
        [
            *map(Text, promises(holders)),
            *long_table(
                "The holders",
                ("holder", "protected", "rows", "epsilon", "delta", "measured on"),
                rows,
                texts=2,
            ),
        ],
    )


def _asked(holders: Sequence[Holder]) -> Section:
    parts: list[Part] = [
        Text(
            "Every question that was put to the confidential tables, in order, holder by holder. "
            "The program of each holder has kept these books."
        )
    ]
    for holder in holders:
        parts.append(Text(f"{holder.name}: {holder.strategy}", quiet=True))
        parts.append(ledger_table(holder.ledger))
        parts.append(Details(f"{holder.name}: as plain text", privacy_report(holder.ledger)))
        parts.append(Details(f"{holder.name}: as JSON, exact", holder.ledger.to_json()))
    return Section("What was asked of the tables", parts, folded=True)


def _rows(holder: Holder) -> str:
    if not holder.rows.stddev:
        return f"{holder.rows.value:,.0f}"
    return f"about {holder.rows.value:,.0f} ± {CONFIDENT * holder.rows.stddev:,.0f}"


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
        least, largest = float(table.stddevs.min()), float(table.stddevs.max())
        return cls(clique=table.clique, num_cells=len(table.stddevs), least=least, largest=largest)

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
    return "\n\n".join(part for part in (*paragraphs, *worth_a_look(notes)) if part)


def published_report(
    fitted: Fitted,
    publisher: str,
    tables: Sequence[PublishedTable],
    about: About,
    *,
    notes: Sequence[str] = (),
) -> Report:
    """Whose guarantee it is, and how well rows fit the published tables. Public."""
    declared = [
        (name, facts.sdtype, facts_in_words(words_of(facts)))
        for name, facts in about.declared.items()
    ]
    return _report(
        fitted,
        about,
        notes,
        title=f"Synthetic rows of tables that {publisher} has published",
        lead=[],
        numbers={
            "published by": publisher,
            "tables": f"{len(tables):,}",
            "rows": f"{fitted.num_rows or 0:,}",
            "columns": f"{len(about.columns):,}",
            "made on": about.date,
            "rows made by": about.method.parts[-1],
            "program": f"sdv-privpgd {version('sdv-privpgd')}",
        },
        sections=[
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
                long_table("Columns", ("column", "kind", "declared"), declared, texts=3),
                folded=True,
            ),
        ],
        text=published_text(publisher, tables, notes=notes),
        facts={
            "report": "published",
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
        },
    )
