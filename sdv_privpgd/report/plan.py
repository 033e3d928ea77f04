"""What a fit would ask and how loud the answers would be. Public: no table is read for it."""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from textwrap import wrap

from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.report.document import Report
from sdv_privpgd.report.guarantee import ledger_table
from sdv_privpgd.report.page import Facts, Page, Section, Table, Text
from sdv_privpgd.report.privacy import WIDTH, events
from sdv_privpgd.words import share

_DISPLACED = "Rows that the noise of a measured table displaces, before the fit takes noise out"


def plan_report(
    ledger: PrivacyLedger,
    num_rows: int,
    tables: Sequence[Measurement],
    notes: Sequence[str] = (),
) -> Report:
    """What a fit would ask and how loud the answers would be. Public: no table was read.

    Args:
        ledger: Of the questions.
        num_rows: The number of rows that was assumed.
        tables: The marginals that were asked for, over codes or groups of them.
        notes: What is worth a look before a fit, a sentence each.

    >>> from sdv_privpgd.privacy.queries import Adjacency
    >>> report = plan_report(PrivacyLedger.open(1.0, 1e-5, Adjacency.REPLACE_ONE), 1_000, [])
    >>> report.to_dict()["num_rows"]
    1000
    """
    displaced = _displaced(num_rows, tables)
    return Report(
        text=_text(ledger, num_rows, displaced, notes),
        page=_page(ledger, num_rows, displaced, notes),
        facts={
            "report": "plan",
            "public": True,
            "num_rows": num_rows,
            "ledger": ledger.to_dict(),
            "displaced": {
                str(degree): {"mean": fmean(shares), "worst": max(shares)}
                for degree, shares in displaced.items()
            },
            "warnings": list(notes),
        },
    )


def _displaced(num_rows: int, tables: Sequence[Measurement]) -> dict[int, list[float]]:
    """The share of the rows that each table's noise displaces, by number of columns."""
    # Half the mean L1 norm of the noise beside the rows, before anything takes noise out.
    shares: dict[int, list[float]] = {}
    for table in tables:
        noise = table.answer.size * table.stddev / math.sqrt(2 * math.pi)
        shares.setdefault(table.answer.ndim, []).append(noise / max(num_rows, 1))
    return dict(sorted(shares.items()))


def _text(
    ledger: PrivacyLedger,
    num_rows: int,
    displaced: Mapping[int, Sequence[float]],
    notes: Sequence[str],
) -> str:
    lines = [
        f"Plan for {num_rows:,} rows: no table was asked, nothing was spent",
        "",
        _asked_for(ledger),
        "",
        events(ledger),
        "",
        f"{_DISPLACED}:",
    ]
    for degree, shares in displaced.items():
        mean, worst = share(fmean(shares)), share(max(shares))
        lines.append(f"  {_tables(degree)}: {mean} of the rows on average, {worst} at most")
    for sentence in notes:
        lines += ["", *wrap(sentence, WIDTH)]
    return "\n".join(lines)


def _page(
    ledger: PrivacyLedger,
    num_rows: int,
    displaced: Mapping[int, Sequence[float]],
    notes: Sequence[str],
) -> Page:
    rows = [
        (_tables(degree), share(fmean(shares)), share(max(shares)))
        for degree, shares in displaced.items()
    ]
    loud = Section(
        "How loud the noise would be",
        [Table(_DISPLACED, ("tables", "on average", "at most"), rows)],
    )
    return Page(
        title=f"Plan for {num_rows:,} rows",
        lead=[
            Facts([("rows assumed", f"{num_rows:,}"), ("epsilon", f"{ledger.epsilon:g}")]),
            Text("No table was asked, and nothing was spent."),
            Text(f"{_asked_for(ledger)}."),
            *map(Text, notes),
        ],
        sections=[
            Section("What would be asked of the table", [ledger_table(ledger)]),
            *([loud] if rows else []),
        ],
    )


def _asked_for(ledger: PrivacyLedger) -> str:
    people = "one row" if ledger.rows_per_person == 1 else f"up to {ledger.rows_per_person} rows"
    return (
        f"Epsilon {ledger.epsilon:g}, delta {ledger.delta:g}, "
        f"{ledger.adjacency.value.replace('_', '-')}, for {people} of a person"
    )


def _tables(degree: int) -> str:
    return f"tables of {degree} column{'s' * (degree > 1)}"
