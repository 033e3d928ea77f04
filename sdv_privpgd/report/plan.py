"""What a fit would ask and how large its errors would be. Public: no table is read for it."""

from collections.abc import Sequence
from textwrap import wrap

from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.report.expected import Outlook
from sdv_privpgd.report.guarantee import ledger_table
from sdv_privpgd.report.outlook import outlook_lines, outlook_section
from sdv_privpgd.report.page import Facts, Page, Report, Section, Text
from sdv_privpgd.report.privacy import WIDTH, events
from sdv_privpgd.words import in_rows


def plan_report(
    ledger: PrivacyLedger,
    num_rows: int,
    outlook: Outlook | None,
    notes: Sequence[str] = (),
) -> Report:
    """What a fit would ask and how large its errors would be. Public: no table was read.

    Args:
        ledger: Of the questions.
        num_rows: The number of rows that was assumed.
        outlook: What is to be expected; ``None`` where nothing is asked.
        notes: What is worth a look before a fit, a sentence each.
    """
    return Report(
        text=_text(ledger, num_rows, outlook, notes),
        page=_page(ledger, num_rows, outlook, notes),
        facts={
            "report": "plan",
            "public": True,
            "num_rows": num_rows,
            "ledger": ledger.to_dict(),
            "expected": None if outlook is None else outlook.to_dict(),
            "warnings": list(notes),
        },
    )


def _text(
    ledger: PrivacyLedger, num_rows: int, outlook: Outlook | None, notes: Sequence[str]
) -> str:
    lines = [
        f"Plan for {in_rows(num_rows)}: no table was asked, nothing was spent",
        "",
        _asked_for(ledger),
        "",
        events(ledger),
    ]
    if outlook is not None:
        lines += ["", *outlook_lines(outlook)]
    for sentence in notes:
        lines += ["", *wrap(sentence, WIDTH)]
    return "\n".join(lines)


def _page(
    ledger: PrivacyLedger, num_rows: int, outlook: Outlook | None, notes: Sequence[str]
) -> Page:
    return Page(
        title=f"Plan for {in_rows(num_rows)}",
        lead=[
            Facts([("rows assumed", f"{num_rows:,}"), ("epsilon", f"{ledger.epsilon:g}")]),
            Text("No table was asked, and nothing was spent."),
            Text(f"{_asked_for(ledger)}."),
            *map(Text, notes),
        ],
        sections=[
            *([] if outlook is None else [outlook_section(outlook)]),
            Section("What would be asked of the table", [ledger_table(ledger)]),
        ],
    )


def _asked_for(ledger: PrivacyLedger) -> str:
    return (
        f"Epsilon {ledger.epsilon:g}, delta {ledger.delta:g}, "
        f"{ledger.adjacency.value.replace('_', '-')}, for {ledger.unit}"
    )
