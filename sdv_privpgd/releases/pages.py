"""The page and the text of a combined table: what is promised to whom. Public."""

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from textwrap import fill
from typing import Any

from sdv_privpgd.fitting.fit import Fitted
from sdv_privpgd.privacy.composition import epsilon_in_all
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.releases.holders import Holder
from sdv_privpgd.report.advice import OPENING
from sdv_privpgd.report.assumed import CONFIDENT, About, assumed_section, facts_about
from sdv_privpgd.report.page import Report
from sdv_privpgd.report.download import download_section
from sdv_privpgd.report.fit import column_estimates, fit_sections
from sdv_privpgd.report.guarantee import ledger_table
from sdv_privpgd.report.hidden import hidden_section
from sdv_privpgd.report.page import Details, Facts, Items, Page, Part, Section, Text, long_table
from sdv_privpgd.report.privacy import WIDTH, events, privacy_report
from sdv_privpgd.report.visits import visits_sections

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


def holders_text(holders: Sequence[Holder], *, notes: Sequence[str] = ()) -> str:
    """The promises, and each holder's ledger, as text of at most 98 characters a line."""
    program = f"Privacy report (sdv-privpgd {version('sdv-privpgd')}): {len(holders)} holders"
    paragraphs = [program, *(fill(sentence, WIDTH) for sentence in promises(holders))]
    for holder in holders:
        ledger = holder.ledger
        paragraphs.append(
            f"{holder.name}: {_rows(holder)} rows, measured on {holder.date}\n"
            f"({ledger.spent():.6g}, {ledger.delta:g})-differential privacy, "
            f"{ledger.adjacency.value.replace('_', '-')}, for {holder.unit}"
        )
    if holders:
        paragraphs.append(
            f"What was asked of {holders[0].name}'s table; the page and the numbers have the "
            f"other holders' ledgers.\n\n{events(holders[0].ledger)}"
        )
    if notes:
        said = [fill(f"- {note}", WIDTH, subsequent_indent="  ") for note in notes]
        paragraphs.append("\n".join([OPENING, *said]))
    return "\n\n".join(paragraphs)


def holders_report(
    fitted: Fitted, holders: Sequence[Holder], about: About, *, notes: Sequence[str] = ()
) -> Report:
    """What is promised to whom, and how well rows fit the sums of the noisy tables. Public."""
    ledgers = [holder.ledger for holder in holders]
    return Report(
        text=holders_text(holders, notes=notes),
        page=_page(fitted, holders, about, notes),
        facts={
            "report": "combined",
            "public": True,
            **facts_about(about, fitted.release),
            "epsilon_at_one_holder": max(ledger.spent() for ledger in ledgers),
            "epsilon_at_all_holders": epsilon_in_all(ledgers),
            "holders": [_facts(holder) for holder in holders],
            "warnings": list(notes),
        },
    )


def model_sections(fitted: Fitted) -> tuple[list[Section], list[Section]]:
    """The sections on a model's fit to noisy tables, and those at the end of a page."""
    release, schema = fitted.release, fitted.schema
    assert release is not None
    estimates = column_estimates(release, schema)
    return (
        [hidden_section(release, schema, estimates), *fit_sections(release, schema, estimates)],
        [download_section(release, schema, estimates)],
    )


def _page(fitted: Fitted, holders: Sequence[Holder], about: About, notes: Sequence[str]) -> Page:
    ledgers = [holder.ledger for holder in holders]
    shown, last = model_sections(fitted)
    return Page(
        title=f"Synthetic rows of {len(holders)} holders' tables: privacy and fit",
        lead=[
            Facts(
                [
                    ("holders", f"{len(holders):,}"),
                    ("rows", f"{fitted.num_rows or 0:,}"),
                    ("columns", f"{len(about.columns):,}"),
                    ("epsilon, rows at one holder", f"{max(x.spent() for x in ledgers):.4g}"),
                    ("epsilon, rows at all", f"{epsilon_in_all(ledgers):.4g}"),
                    ("combined on", about.date),
                    ("rows made by", type(about.engine).__name__),
                ]
            )
        ],
        sections=[
            *([Section("Read this first", [Items(notes)])] if notes else []),
            _promised(holders),
            assumed_section(about, ledgers[0].adjacency),
            *visits_sections(about.visits),
            *shown,
            _asked(holders),
            *last,
        ],
    )


def _promised(holders: Sequence[Holder]) -> Section:
    rows = [
        (
            holder.name,
            holder.unit,
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
    return Section("What was asked of the tables", parts)


def _facts(holder: Holder) -> Mapping[str, Any]:
    return {
        "holder": holder.name,
        "num_rows": holder.rows.value,
        "epsilon_spent": holder.ledger.spent(),
        "date": holder.date,
        "strategy": holder.strategy,
        "ledger": holder.ledger.to_dict(),
    }


def _rows(holder: Holder) -> str:
    if not holder.rows.stddev:
        return f"{holder.rows.value:,.0f}"
    return f"about {holder.rows.value:,.0f} ± {CONFIDENT * holder.rows.stddev:,.0f}"
