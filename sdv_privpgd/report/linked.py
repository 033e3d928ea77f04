"""The page of tables that belong together, and that of a plan for them. Public."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from sdv_privpgd.base.words import in_rows
from sdv_privpgd.columns.links import Tree
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.methods.pipeline import Release
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.report.page import Facts, Items, Page, Report, Section, Table, Text
from sdv_privpgd.report.privacy import (
    guarantee_facts,
    ledger_section,
    meaning_section,
    privacy_report,
    protected,
)
from sdv_privpgd.report.release import model_sections, noted


def on_links(tree: Tree) -> list[str]:
    """Sentences on how tables belong together, and on what rows do not say."""
    return [
        *(
            f"Rows of {each.child!r} lead to rows of {each.parent!r} ({each.key!r} is its "
            f"{each.parent_key!r}). Of more than {each.max_children} that lead to one row others "
            "were left out, by chance"
            + (
                "; how two of them go together was asked, each two columns over a few groups of "
                "values."
                if tree.most_siblings(each.child, 100)
                else "."
            )
            for each in tree.links
        ),
        "Rows that led nowhere were left out, and so were rows of "
        f"{tree.root!r} whose key was missing or several rows had. Nobody was told how many.",
        "Each table was counted with the columns of the table that it leads to. Those of tables "
        "further up are known through it alone. How three rows of one family go together is not "
        "in the synthetic rows beyond what pairs of them say.",
        "Keys are made up: which row is called what means nothing.",
    ]


def linked_report(
    tables: Mapping[str, tuple[Release | None, Schema]],
    tree: Tree,
    ledger: PrivacyLedger,
    num_rows: Mapping[str, int],
    *,
    date: str,
    notes: Sequence[str] = (),
) -> Report:
    """What was spent on tables that belong together, and how well the rows of each fit. Public."""
    sections, last = [], []
    for name, (release, schema) in tables.items():
        shown, end = model_sections(release, schema)
        for own, those in ((sections, shown), (last, end)):
            own += [replace(each, heading=f"{name}: {each.heading}") for each in those]
    rows = [[name, f"{number:,}"] for name, number in num_rows.items()]
    page = Page(
        title=f"Synthetic rows of {', '.join(map(repr, tables))}",
        lead=[
            Text(protected(ledger)),
            Facts([*guarantee_facts(ledger), ("fitted on", date)]),
        ],
        sections=[
            *sections,
            *noted(notes),
            Section(
                "How the tables belong together",
                [Items(on_links(tree)), Table("Rows, by noisy answers", ("table", "rows"), rows)],
            ),
            meaning_section(ledger),
            ledger_section(ledger),
            *last,
        ],
    )
    facts: dict[str, Any] = {
        "report": "privacy of tables",
        "public": True,
        "tables": {name: {"num_rows": num_rows[name]} for name in tables},
        "links": [
            {"parent": e.parent, "child": e.child, "key": e.key, "parent_key": e.parent_key,
             "max_children": e.max_children}
            for e in tree.links
        ],
        "date": date,
        "epsilon_spent": ledger.spent(),
        "ledger": ledger.to_dict(),
        "warnings": list(notes),
    }  # fmt: skip
    return Report(text=privacy_report(ledger, notes=notes), page=page, facts=facts)


def plans_report(
    plans: Mapping[str, Report],
    tree: Tree,
    ledger: PrivacyLedger,
    shares: Mapping[str, Fraction],
    num_rows: int,
) -> Report:
    """What would be asked of each of some tables, one plan after the other. Public."""
    rows = [[name, f"{float(share):.1%}"] for name, share in shares.items()]
    lines = [
        f"Plan for {in_rows(num_rows)} of {tree.root!r} with all that lead to them, at epsilon "
        f"{ledger.epsilon:g} and delta {ledger.delta:g}",
        *(f"{share:>8}  of the budget for {name}" for name, share in rows),
    ]
    text = ["\n".join(lines)]
    text += [f"{name}\n{'=' * len(name)}\n{plan.text}" for name, plan in plans.items()]
    sections = [Section("The budget", [Table("Shares", ("table", "share of the budget"), rows)])]
    for name, plan in plans.items():
        sections.append(Section(f"{name}: the plan", plan.page.lead))
        sections += [Section(f"{name}: {e.heading}", e.parts) for e in plan.page.sections]
    return Report(
        text="\n\n".join(text),
        page=Page(
            title=f"Plan for {', '.join(map(repr, plans))}",
            lead=[Text(lines[0]), Items(on_links(tree))],
            sections=sections,
        ),
        facts={
            "report": "plan of tables",
            "public": True,
            "shares": {name: float(share) for name, share in shares.items()},
            "tables": {name: plan.to_dict() for name, plan in plans.items()},
            "ledger": ledger.to_dict(),
        },
    )
