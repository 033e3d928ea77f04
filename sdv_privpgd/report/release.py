"""The public pages of a fit, of one table or of several: pictures, what is promised, all tables.

``officer_report`` is one page for those who decide on a release and read no code: an officer, a
board, an office. It says whose data are protected and how, what an attacker could gain, what is not
covered, and what others ask for in writing.

Nothing here is private: all of it follows from a release and the public description of the columns.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from importlib.metadata import version
from typing import Any

from scipy.special import ndtr

from sdv_privpgd.base.words import listed, number_of
from sdv_privpgd.columns.links import Tree
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.columns.visits import Visits
from sdv_privpgd.methods.pipeline import Release
from sdv_privpgd.privacy.ledger import TRAINED, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.report.about import (
    About,
    assumed_facts,
    assumed_section,
    facts_about,
    on_visits,
    prior_facts,
    subject,
)
from sdv_privpgd.report.fit import column_estimates, download_section, fit_sections, hidden_section
from sdv_privpgd.report.page import (
    Facts,
    Items,
    Page,
    Part,
    Report,
    Section,
    Table,
    Text,
    as_text,
    long_table,
)
from sdv_privpgd.report.privacy import (
    guarantee_facts,
    in_words,
    ledger_section,
    meaning_section,
    most_caught,
    not_covered,
    odds,
    own_delta,
    privacy_report,
    protected,
    what_counts,
)
from sdv_privpgd.report.registry import methods_section
from sdv_privpgd.report.warnings import OPENING


def release_report(
    release: Release | None,
    ledger: PrivacyLedger,
    schema: Schema,
    about: About,
    *,
    notes: Sequence[str] = (),
) -> Report:
    """What a fit is of, what was spent and how well its rows fit the noisy answers. Public.

    ``release`` is None where no column was modelled. ``notes`` are public sentences on what is
    worth a look.
    """
    shown, folded = model_sections(release, schema)
    if release is not None:
        folded.append(methods_section(about, release, ledger))
    line, worth = overview(schema, about, notes)
    facts = [*subject(about, release), *guarantee_facts(ledger)]
    page = Page(
        title=f"Synthetic rows of {about.table!r}",
        lead=[Text(line), Text(protected(ledger)), Facts(facts)],
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
    summary = {"report": "privacy", "public": True, **facts_about(about, release)}
    return _reported(page, ledger, notes, summary)


def _reported(
    page: Page, ledger: PrivacyLedger, notes: Sequence[str], facts: Mapping[str, Any]
) -> Report:
    """The page of a ledger's release beside its text, with what was spent among the facts."""
    spent = {"epsilon_spent": ledger.spent(), "ledger": ledger.to_dict(), "warnings": list(notes)}
    return Report(text=privacy_report(ledger, notes=notes), page=page, facts={**facts, **spent})


def overview(schema: Schema, about: About, notes: Sequence[str]) -> tuple[str, list[Section]]:
    """The first line of a page, on how many columns are usable, and the list of what is noted.

    The line says how many notes there are, since the list stands below the pictures.
    """
    number = sum(column.name in about.columns for column in schema.columns)
    said = {0: "No column was modelled.", 1: "The only column is usable."}
    line, rest = said.get(number, f"All {number} columns usable."), notes
    if notes and re.match(r"\d+ of \d+ columns? usable, ", notes[0]):
        line, *rest = notes
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
        asked = [each.query for each in release.measurements] if release else []
        why = "no two columns were measured together"
        if any(len(getattr(each, "clique", ())) > 1 for each in asked):
            why = "by the noisy answers, rows lie elsewhere in most columns"
        said = f"They say what the columns' values are. Their relations were left out: {why}."
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
    asked = (
        "; how two of them {}go together was asked, each two columns over a few groups of values"
    )
    siblings = {
        each.child: asked.format("" if each.order is None else "that follow each other ")
        for each in tree.links
        if tree.most_siblings(each.child, 100)
    }
    return [
        *(
            f"Rows of {each.child!r} lead to rows of {each.parent!r} ({each.key!r} is its "
            f"{each.parent_key!r}). Of more than {each.max_children} that lead to one row others "
            f"were left out, by chance{siblings.get(each.child, '')}."
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
    tables: Mapping[str, tuple[Release | None, Schema, About]],
    tree: Tree,
    ledger: PrivacyLedger,
    num_rows: Mapping[str, int],
    *,
    date: str,
    notes: Sequence[str] = (),
) -> Report:
    """What was spent on tables that belong together, and how well the rows of each fit. Public."""
    sections, last = [], []
    for name, (release, schema, about) in tables.items():
        shown, end = model_sections(release, schema)
        shown = [*shown, *prior_sections(about, release)]
        for own, those in ((sections, shown), (last, end)):
            own += [replace(each, heading=f"{name}: {each.heading}") for each in those]
    rows = [[name, f"{number:,}"] for name, number in num_rows.items()]
    page = Page(
        title=f"Synthetic rows of {', '.join(map(repr, tables))}",
        lead=[Text(protected(ledger)), Facts([*guarantee_facts(ledger), ("fitted on", date)])],
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
    fields = ("parent", "child", "key", "parent_key", "max_children")
    facts = {
        "report": "privacy of tables",
        "public": True,
        "tables": {name: {"num_rows": num_rows[name]} for name in tables},
        "links": [{name: getattr(each, name) for name in fields} for each in tree.links],
        "date": date,
    }
    return _reported(page, ledger, notes, facts)


def plans_report(
    plans: Mapping[str, Report],
    tree: Tree,
    ledger: PrivacyLedger,
    shares: Mapping[str, Fraction],
    num_rows: int,
    notes: Sequence[str],
) -> Report:
    """What would be asked of each of some tables, one plan after the other. Public."""
    rows = [[name, f"{float(share):.1%}"] for name, share in shares.items()]
    what = (
        f"Plan for {number_of(num_rows)} of {tree.root!r} with all that lead to them, at epsilon "
        f"{ledger.epsilon:g} and delta {ledger.delta:g}"
    )
    budget = Section("The budget", [Table("Shares", ("table", "share of the budget"), rows)])
    return together(
        plans,
        "plan of tables",
        f"Plan for {', '.join(map(repr, plans))}",
        [Text(what), *map(Text, notes), Items(on_links(tree)), budget],
        warnings=list(notes),
        shares={name: float(share) for name, share in shares.items()},
        ledger=ledger.to_dict(),
    )


def together(
    reports: Mapping[str, Report], kind: str, title: str, lead: Sequence[Part], **facts: Any
) -> Report:
    """Reports of one kind on tables that belong together, one after the other. Public."""
    texts = [f"{name}\n{'=' * len(name)}\n{each.text}" for name, each in reports.items()]
    sections = []
    for name, each in reports.items():
        sections.append(Section(name, each.page.lead))
        sections += [Section(f"{name}: {e.heading}", e.parts) for e in each.page.sections]
    tables = {name: each.to_dict() for name, each in reports.items()}
    return Report(
        text="\n\n".join([as_text([Text(title), *lead]), *texts]),
        page=Page(title=title, lead=lead, sections=sections),
        facts={"report": kind, "public": True, **facts, "tables": tables},
    )


YOURS = "yours to answer"
"""What stands where a fit cannot know the answer."""


def officer_report(
    release: Release | None, ledger: PrivacyLedger, about: About, own: str, notes: Sequence[str]
) -> Report:
    """The page, the same as text, and its facts.

    ``release`` is None where no column was modelled. The ledger is of all that was spent on these
    people, with earlier releases; ``own`` are the release's digits, by ``release_id``.
    """
    gains, program = attackers_gains(ledger), f"sdv-privpgd {version('sdv-privpgd')}"
    in_odds = (
        f"The odds of whatever somebody believed about {ledger.unit} change by a factor of at most "
        f"{odds(ledger):.4g} (e to the epsilon), but for 1 in {1 / ledger.delta:,.0f} in "
        "probability. The attacker below knows all other rows and this program, and makes the best "
        "of everything that was released."
    )
    rows = [
        (name, f"{100 * without:g} %", f"{math.ceil(1e4 * with_it) / 1e2:.2f} %")
        for name, without, with_it in gains
    ]
    header = ("the attacker is right on", "without the release", "with it, at most")
    gained = Table("The three questions of European data protection", header, rows)
    made = f"Release {own} (a hash of its noisy answers), by {program} on {about.date}."
    title = f"Synthetic rows of {about.table!r}: what an officer needs to know"
    whose = protected(ledger).split(" If each row")[0]
    facts = [
        *guarantee_facts(ledger)[:2],
        ("odds change at most by", f"{odds(ledger):.4g} times"),
        ("date of the fit", about.date),
    ]
    lead: list[Part] = [Text(whose), Facts(facts)]
    sections = [
        Section("What an attacker can gain, at most", [Text(in_odds), gained]),
        Section(
            "Not covered, spent so far, and seen by whom", [Items(_limits(release, ledger, about))]
        ),
        Section("For a privacy notice", [Text(privacy_notice(ledger))]),
        Section("What NIST SP 800-226 asks", [_pyramid(ledger, about, len(notes)), Text(made)]),
    ]
    summary = {
        "report": "officer",
        "table": about.table,
        "date": about.date,
        "program": program,
        "release": own,
        "protected": whose,
        "epsilon_spent": ledger.spent(),
        "delta": ledger.delta,
        "odds": odds(ledger),
        "gains": [dict(zip(("attack", "without", "with_it"), each, strict=True)) for each in gains],
        "privacy_notice": privacy_notice(ledger),
        "ledger": ledger.to_dict(),
    }
    return Report.of(title, lead, sections, summary)


def attackers_gains(ledger: PrivacyLedger) -> list[tuple[str, float, float]]:
    """What the best attacker does to one of the protected, and the chances: without, and with.

    Whoever is right with chance p where another's data are there, or none, is right with at most
    Phi(Phi^-1(p) + mu) where the person's are: a guess is a test of a table against its neighbor.
    For several guesses of one chance the bound holds on average, since it is concave in p. What
    thresholds add to delta is added.
    """
    mu = math.sqrt(ledger.mu_squared)
    own = float(own_delta(ledger))
    who = "the person" if ledger.says_whose else "the row"
    one_of_two = {
        Adjacency.REPLACE_ONE: f"which of two equally likely sets of data is that of {who}",
        Adjacency.ADD_REMOVE: f"whether {who} is in the table, which is as likely as not",
    }[ledger.adjacency]
    single = f"singling out: a description that fits 1 of 1,000 by chance fits {who}"
    value = f"inferring: a value of {who}, of which ten are equally likely"
    return [
        (single, 0.001, min(most_caught(0.001, mu) + own, 1.0)),
        (f"linking: {one_of_two}", 0.5, min(float(ndtr(mu / 2)) + own / 2, 1.0)),
        (value, 0.1, min(most_caught(0.1, mu) + own, 1.0)),
    ]


def privacy_notice(ledger: PrivacyLedger) -> str:
    """What those may be told whose data they are. Blanks are in brackets."""
    rows = ledger.rows_per_person
    whose = {
        ledger.people is not None: f"all your records (at most {rows} of them were used)",
        ledger.rows_are_people: "your record",
    }.get(True, "a record of yours" if rows == 1 else f"up to {rows} records of yours")
    return (
        "From data that hold records on you, [whose data, collected for what], we made artificial "
        "records for [purpose], on [legal basis]. None is copied from a real person; one may look "
        "like somebody by chance. They were computed from counts with random noise (differential "
        "privacy), so that "
        f"whatever anybody learns from them would be nearly the same had {whose} been others"
        f"{' or none' if ledger.adjacency is Adjacency.ADD_REMOVE else ''}: the odds of any guess "
        f"about it change by a factor of at most {odds(ledger):.3g}. What the records tell about "
        "people in general may still be used about you. Questions go to [contact]."
    )


def _limits(release: Release | None, ledger: PrivacyLedger, about: About) -> list[str]:
    """What is not covered, what was public, what was spent, and who could see what."""
    public = " ".join(assumed_facts(ledger.adjacency, about.prior))
    return [
        not_covered(ledger),
        *filter(None, [what_counts(ledger)]),
        f"Taken to be public: {public}",
        _spent(release, ledger),
        "The confidential table is seen by whoever could read it before, and by the machine of the "
        "fit. The program codes and counts its cells and keeps no row (of a table on a Spark "
        "cluster, the workers count). All that it gives (rows, the model's file, ledger, reports, "
        "answers) follows from noisy counts, and handing it on costs no more. Who has had access "
        f"to the table, to that machine and to comparisons with the table: {YOURS}.",
    ]


def _spent(release: Release | None, ledger: PrivacyLedger) -> str:
    own, number = ledger if release is None else release.ledger, len(ledger.charges)
    others = "other tables, or of earlier releases" if ledger.family else "earlier releases"
    earlier = f"All of its {number:,} entries are of this release."
    if begun := number - len(own.charges):
        earlier = (
            f"{begun:,} of its {number:,} entries are of {others}; this one alone has epsilon "
            f"{own.spent():.4g} at delta {own.delta:g}."
        )
    return (
        f"Spent on these people so far, by the ledger: epsilon {ledger.spent():.4g} at delta "
        f"{ledger.delta:g}. {earlier} What stands in no ledger, or in another, is not counted: "
        f"{YOURS}."
    )


def _pyramid(ledger: PrivacyLedger, about: About, noted: int) -> Table:
    mechanisms = "; ".join(dict.fromkeys(charge.mechanism for charge in ledger.charges))
    found = sum(bool(facts) for facts in about.discovered.values())
    is_trained = any(charge.mechanism == TRAINED for charge in ledger.charges)
    hazards = {
        f"epsilon above 20 ({ledger.spent():.3g})": ledger.spent() > 20,
        f"delta above 1e-5 ({ledger.delta:g})": ledger.delta > 1e-5,
        f"the unit is no person ({ledger.unit})": not ledger.says_whose,
    }
    named = listed([hazard for hazard, is_one in hazards.items() if is_one])
    answers = {
        "Epsilon and unit": (
            f"epsilon {ledger.spent():.4g} at delta {ledger.delta:g} for {ledger.unit}, "
            f"{in_words(ledger.adjacency)}. "
            + (f"Hazards: {named}." if named else "None of the hazards named for it.")
        ),
        "Mechanism": (
            f"{mechanisms or 'none'}. Whole numbers and noise of the operating system, charged "
            "before the table is read; "
            + ("training is trusted to opacus and torch." if is_trained else "exact accounting.")
        ),
        "Utility": (
            f"the report has each column's error and {noted:,} warning{'s' * (noted != 1)}. "
            f"Whether that is good enough for the use: {YOURS}"
        ),
        "Bias": (
            "small groups lose most: the report lists what noise hides. Whether that wrongs "
            f"people: {YOURS}"
        ),
        "Security": (
            "side channels (timing, memory) and attackers on the machine are not covered. How they "
            f"are guarded: {YOURS}"
        ),
        "Access control": f"who may run fits and see the table: {YOURS}",
        "Data collection": (
            f"columns were declared, and {found:,} of {len(about.columns):,} looked into with "
            f"noise. Collection and consent: {YOURS}"
        ),
    }
    rows = list(answers.items())
    return Table("Level by level, from the top of its pyramid", ("level", "answer"), rows, texts=2)
