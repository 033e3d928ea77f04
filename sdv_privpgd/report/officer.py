"""One page for those who decide on a release and read no code: an officer, a board, an office.

It says whose data are protected and how, what an attacker could gain, what is not covered, and what
others ask for in writing. All of it follows from the ledger and from what is public of the columns.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from importlib.metadata import version
from textwrap import fill
from typing import Any

from scipy.special import ndtr

from sdv_privpgd.base.words import listed
from sdv_privpgd.methods.pipeline import Release
from sdv_privpgd.privacy.ledger import TRAINED, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.report.assumed import About, assumed_facts
from sdv_privpgd.report.page import Facts, Items, Page, Part, Report, Section, Table, Text
from sdv_privpgd.report.privacy import (
    WIDTH,
    most_caught,
    not_covered,
    protected,
    what_counts,
)

YOURS = "yours to answer"
"""What stands where a fit cannot know the answer."""


def officer_report(
    release: Release | None, ledger: PrivacyLedger, about: About, own: str, notes: Sequence[str]
) -> Report:
    """The page, the same as text, and its facts.

    Args:
        release: The fit's own answers; ``None`` where no column was modelled.
        ledger: All that was spent on these people, with earlier releases.
        about: What was fitted.
        own: The release's digits, by ``release_id``.
        notes: What is worth a look, a sentence each.
    """
    gains, program = attackers_gains(ledger), f"sdv-privpgd {version('sdv-privpgd')}"
    made = f"Release {own} (a hash of its noisy answers), by {program} on {about.date}."
    title = f"Synthetic rows of {about.table!r}: what an officer needs to know"
    whose = protected(ledger).split(" If each row")[0]
    lead: list[Part] = [Text(whose), Facts(_at_a_glance(ledger, about))]
    sections = [
        Section("What an attacker can gain, at most", [_in_odds(ledger), _gained(gains)]),
        Section(
            "Not covered, spent so far, and seen by whom", [Items(_limits(release, ledger, about))]
        ),
        Section("For a privacy notice", [Text(privacy_notice(ledger))]),
        Section("What NIST SP 800-226 asks", [_pyramid(ledger, about, len(notes)), Text(made)]),
    ]
    facts = {
        "report": "officer",
        "public": True,
        "table": about.table,
        "date": about.date,
        "program": program,
        "release": own,
        "protected": whose,
        "epsilon_spent": ledger.spent(),
        "delta": ledger.delta,
        "odds": _odds(ledger),
        "gains": [
            {"attack": name, "without": without, "with_it": with_it}
            for name, without, with_it in gains
        ],
        "privacy_notice": privacy_notice(ledger),
        "ledger": ledger.to_dict(),
    }
    text = "\n\n".join([title, *_lines(lead), *(line for each in sections for line in _told(each))])
    return Report(text=text, page=Page(title=title, lead=lead, sections=sections), facts=facts)


def attackers_gains(ledger: PrivacyLedger) -> list[tuple[str, float, float]]:
    """What the best attacker does to one of the protected, and the chances: without, and with.

    Whoever is right with chance p where another's data are there, or none, is right with at most
    Phi(Phi^-1(p) + mu) where the person's are: a guess is a test of a table against its neighbor.
    For several guesses of one chance the bound holds on average, since it is concave in p. What
    thresholds add to delta is added.
    """
    mu = math.sqrt(ledger.mu_squared)
    own = float(sum((charge.delta for charge in ledger.charges), Fraction(0)))
    who = "the person" if ledger.says_whose else "the row"
    one_of_two = {
        Adjacency.REPLACE_ONE: f"which of two equally likely sets of data is that of {who}",
        Adjacency.ADD_REMOVE: f"whether {who} is in the table, which is as likely as not",
    }[ledger.adjacency]
    return [
        (
            f"singling out: a description that fits 1 of 1,000 by chance fits {who}",
            0.001,
            min(most_caught(0.001, mu) + own, 1.0),
        ),
        (f"linking: {one_of_two}", 0.5, min(float(ndtr(mu / 2)) + own / 2, 1.0)),
        (
            f"inferring: a value of {who}, of which ten are equally likely",
            0.1,
            min(most_caught(0.1, mu) + own, 1.0),
        ),
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
        f"about it change by a factor of at most {_odds(ledger):.3g}. What the records tell about "
        "people in general may still be used about you. Questions go to [contact]."
    )


def _odds(ledger: PrivacyLedger) -> float:
    epsilon = ledger.spent()
    return math.exp(epsilon) if epsilon < 700 else math.inf


def _at_a_glance(ledger: PrivacyLedger, about: About) -> list[tuple[str, str]]:
    return [
        ("epsilon spent", f"{ledger.spent():.4g}"),
        ("delta", f"{ledger.delta:g}"),
        ("odds change at most by", f"{_odds(ledger):.4g} times"),
        ("date of the fit", about.date),
    ]


def _in_odds(ledger: PrivacyLedger) -> Text:
    return Text(
        f"The odds of whatever somebody believed about {ledger.unit} change by a factor of at most "
        f"{_odds(ledger):.4g} (e to the epsilon), but for 1 in {1 / ledger.delta:,.0f} in "
        "probability. The attacker below knows all other rows and this program, and makes the best "
        "of everything that was released."
    )


def _gained(gains: Sequence[tuple[str, float, float]]) -> Table:
    rows = [
        (name, f"{100 * without:g} %", f"{math.ceil(1e4 * with_it) / 1e2:.2f} %")
        for name, without, with_it in gains
    ]
    header = ("the attacker is right on", "without the release", "with it, at most")
    return Table("The three questions of European data protection", header, rows)


def _limits(release: Release | None, ledger: PrivacyLedger, about: About) -> list[str]:
    """What is not covered, what was public, what was spent, and who could see what."""
    counts = [" ".join(said.split())] if (said := what_counts(ledger)) else []
    public = " ".join(assumed_facts(ledger.adjacency, about.prior))
    return [
        not_covered(ledger),
        *counts,
        f"Taken to be public: {public}",
        _spent(release, ledger),
        "The confidential table is seen by whoever could read it before, and by the machine of the "
        "fit. The program codes and counts its cells and keeps no row (of a table on a Spark "
        "cluster, the workers count). All that it gives (rows, the model's file, ledger, reports, "
        "answers) follows from noisy counts, and handing it on costs no more. Who has had access "
        f"to the table, to that machine and to comparisons with the table: {YOURS}.",
    ]


def _spent(release: Release | None, ledger: PrivacyLedger) -> str:
    own = ledger if release is None else release.ledger
    begun = len(ledger.charges) - len(own.charges)
    earlier = (
        f"{begun:,} of its {len(ledger.charges):,} entries are of earlier releases; this one alone "
        f"has epsilon {own.spent():.4g} at delta {own.delta:g}."
        if begun > 0
        else f"All of its {len(ledger.charges):,} entries are of this release."
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
    hazards = [
        f"{name} ({fact})"
        for name, fact, is_one in (
            ("epsilon above 20", f"{ledger.spent():.3g}", ledger.spent() > 20),
            ("delta above 1e-5", f"{ledger.delta:g}", ledger.delta > 1e-5),
            ("the unit is no person", ledger.unit, not ledger.says_whose),
        )
        if is_one
    ]
    rows = [
        (
            "Epsilon and unit",
            f"epsilon {ledger.spent():.4g} at delta {ledger.delta:g} for {ledger.unit}, "
            f"{ledger.adjacency.value.replace('_', '-')}. "
            + (f"Hazards: {listed(hazards)}." if hazards else "None of the hazards named for it."),
        ),
        (
            "Mechanism",
            f"{mechanisms or 'none'}. Whole numbers and noise of the operating system, charged "
            "before the table is read; "
            + ("training is trusted to opacus and torch." if is_trained else "exact accounting."),
        ),
        (
            "Utility",
            f"the report has each column's error and {noted:,} warning{'s' * (noted != 1)}. "
            f"Whether that is good enough for the use: {YOURS}",
        ),
        (
            "Bias",
            "small groups lose most: the report lists what noise hides. Whether that wrongs "
            f"people: {YOURS}",
        ),
        (
            "Security",
            "side channels (timing, memory) and attackers on the machine are not covered. How they "
            f"are guarded: {YOURS}",
        ),
        ("Access control", f"who may run fits and see the table: {YOURS}"),
        (
            "Data collection",
            f"columns were declared, and {found:,} of {len(about.columns):,} looked into with "
            f"noise. Collection and consent: {YOURS}",
        ),
    ]
    return Table("Level by level, from the top of its pyramid", ("level", "answer"), rows, texts=2)


def _told(section: Section) -> list[str]:
    return [section.heading.upper(), *_lines(section.parts)]


def _lines(parts: Sequence[Any]) -> list[str]:
    """The parts of a page as text."""
    found = []
    for part in parts:
        if isinstance(part, Text):
            found.append(fill(part.text, WIDTH))
        elif isinstance(part, Items):
            found += [fill(f"- {each}", WIDTH, subsequent_indent="  ") for each in part.items]
        else:
            rows = part.facts if isinstance(part, Facts) else part.rows
            heads = part.header[1:] if isinstance(part, Table) and len(part.header) > 2 else ("",)
            found.append("\n".join(_row(heads, *row) for row in rows))
    return found


def _row(heads: Sequence[str], name: str, *cells: str) -> str:
    told = ", ".join(f"{each} {head}".rstrip() for each, head in zip(cells, heads, strict=True))
    return fill(f"{name}: {told}", WIDTH, subsequent_indent="  ")
