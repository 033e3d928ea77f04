"""The public page of a fit, of one table or of several: pictures, what is promised, all tables.

Nothing here is private: all of it follows from a release and the public description of the columns.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from sdv_privpgd.base.words import in_rows
from sdv_privpgd.columns.links import Tree
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.columns.visits import Visits
from sdv_privpgd.methods.pipeline import Release
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.report.about import (
    About,
    assumed_section,
    facts_about,
    on_visits,
    prior_facts,
    subject,
)
from sdv_privpgd.report.fit import (
    column_estimates,
    download_section,
    fit_sections,
    hidden_section,
)
from sdv_privpgd.report.page import (
    Facts,
    Items,
    Page,
    Report,
    Section,
    Table,
    Text,
    long_table,
)
from sdv_privpgd.report.privacy import (
    guarantee_facts,
    ledger_section,
    meaning_section,
    privacy_report,
    protected,
)
from sdv_privpgd.report.registry import methods_section
from sdv_privpgd.report.warnings import OPENING, usable


def release_page(
    release: Release | None,
    ledger: PrivacyLedger,
    schema: Schema,
    about: About,
    *,
    notes: Sequence[str] = (),
) -> Page:
    """The page of a fit; ``release`` is None where no column was modelled.

    ``notes`` are public sentences on what is worth a look. Users call ``FittedTable.report`` or a
    synthesizer's ``report``, which write the page.
    """
    shown, folded = model_sections(release, schema)
    if release is not None:
        folded.append(methods_section(about, release, ledger))
    line, worth = opening(schema, about, notes)
    facts = subject(about, release, ledger.adjacency).facts
    return Page(
        title=f"Synthetic rows of {about.table!r}",
        lead=[
            Text(line),
            Text(protected(ledger)),
            Facts([*facts, *guarantee_facts(ledger)]),
        ],
        sections=[
            *shown,
            *worth,
            *visits_sections(about.visits),
            *prior_sections(about, release),
            meaning_section(ledger),
            assumed_section(about, ledger.adjacency),
            ledger_section(ledger),
            *folded,
        ],
    )


def opening(schema: Schema, about: About, notes: Sequence[str]) -> tuple[str, list[Section]]:
    """The first line of a page, on how many columns are usable, and the list of what is noted.

    The line says how many notes there are, since the list stands below the pictures.
    """
    line, rest = usable(notes, sum(column.name in about.columns for column in schema.columns))
    if not rest:
        return line, []
    are = "is 1 note" if len(rest) == 1 else f"are {len(rest):,} notes"
    return f"{line} There {are} below the pictures.", noted(rest)


def noted(notes: Sequence[str]) -> list[Section]:
    """The list of what is worth a look, if there is something."""
    return [Section(OPENING.rstrip(":"), [Items(notes)])] if notes else []


def model_sections(release: Release | None, schema: Schema) -> tuple[list[Section], list[Section]]:
    """The sections with a model's pictures, and those that are folded at the end of a page."""
    if release is None:
        return [], []
    estimates = column_estimates(release, schema)
    shown, folded = fit_sections(release, schema, estimates)
    if estimates:
        hidden = hidden_section(release, schema, estimates)
        folded = [hidden, *folded, download_section(release, schema, estimates)]
    return shown, folded


def release_report(
    release: Release | None,
    ledger: PrivacyLedger,
    schema: Schema,
    about: About,
    *,
    notes: Sequence[str] = (),
) -> Report:
    """What a fit is of, what was spent and how well its rows fit the noisy answers. Public."""
    return Report(
        text=privacy_report(ledger, notes=notes),
        page=release_page(release, ledger, schema, about, notes=notes),
        facts={
            "report": "privacy",
            "public": True,
            **facts_about(about, release),
            "epsilon_spent": ledger.spent(),
            "ledger": ledger.to_dict(),
            "warnings": list(notes),
        },
    )


def visits_sections(visits: Visits | None) -> list[Section]:
    """The section on rows in order, if they are."""
    if visits is None:
        return []
    first, *rest = on_visits(visits)
    return [Section("Rows of a person in order", [Text(first), Items(rest)])]


def prior_sections(about: About, release: Release | None) -> list[Section]:
    """The section on the public rows that a fit leaned on, if there are any."""
    if not about.prior:
        return []
    facts, whose = prior_facts(about, release), [*about.prior]
    if about.doubted:
        whose.append(f"Rows lie elsewhere in {', '.join(about.doubted)}: as if that was lacking.")
    if not facts.get("is_used"):
        said = (
            "They say what the columns' values are. Their relations were left out: without them "
            "the rows come nearer to the noisy answers."
        )
        return [Section("Public rows", [Items(whose), Text(said)])]
    moved = {each: [m for m in facts["moved"] if len(m["columns"]) == each] for each in (1, 2)}
    said = (
        f"The rows start from these, weighted until they fit the noisy answers: the weighted ones "
        f"tell as much as {facts['effective_rows']:,.0f} of the {facts['num_rows']:,}. Where noise "
        f"hides more, what they say is believed; an answer of the private table counted as "
        f"{1 / facts['trust']:,.3g} rows for each row of it. Noisy answers alone decided that, and "
        "it cost nothing. Intervals of answers do not use the public rows."
    )
    rows = [
        [" x ".join(each["columns"]), f"{100 * each['share']:.3g} %"]
        for number in moved
        for each in moved[number][:10]
    ]
    caption = "Where the believed tables are farthest from the public rows"
    table = long_table(caption, ["columns", "rows that would have to move"], rows)
    return [Section("Public rows", [Items(whose), Text(said), *table])]


def on_links(tree: Tree) -> list[str]:
    """Sentences on how tables belong together, and on what rows do not say."""
    siblings = (
        "; how two of them go together was asked, each two columns over a few groups of values"
    )
    return [
        *(
            f"Rows of {each.child!r} lead to rows of {each.parent!r} ({each.key!r} is its "
            f"{each.parent_key!r}). Of more than {each.max_children} that lead to one row others "
            f"were left out, by chance{siblings if tree.most_siblings(each.child, 100) else ''}."
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
    told = ("parent", "child", "key", "parent_key", "max_children")
    facts = {
        "report": "privacy of tables",
        "public": True,
        "tables": {name: {"num_rows": num_rows[name]} for name in tables},
        "links": [{name: getattr(each, name) for name in told} for each in tree.links],
        "date": date,
        "epsilon_spent": ledger.spent(),
        "ledger": ledger.to_dict(),
        "warnings": list(notes),
    }
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
    budget = Section("The budget", [Table("Shares", ("table", "share of the budget"), rows)])
    return together(
        plans,
        "plan of tables",
        f"Plan for {', '.join(map(repr, plans))}",
        "\n".join(lines),
        [Text(lines[0]), Items(on_links(tree)), budget],
        shares={name: float(share) for name, share in shares.items()},
        ledger=ledger.to_dict(),
    )


def together(
    reports: Mapping[str, Report], kind: str, title: str, text: str, lead: Sequence, **facts: Any
) -> Report:
    """Reports of one kind on tables that belong together, one after the other. Public."""
    texts = [f"{name}\n{'=' * len(name)}\n{each.text}" for name, each in reports.items()]
    sections = []
    for name, each in reports.items():
        sections.append(Section(name, each.page.lead))
        sections += [Section(f"{name}: {e.heading}", e.parts) for e in each.page.sections]
    tables = {name: each.to_dict() for name, each in reports.items()}
    return Report(
        text="\n\n".join([text, *texts]),
        page=Page(title=title, lead=lead, sections=sections),
        facts={"report": kind, "public": True, **facts, "tables": tables},
    )
