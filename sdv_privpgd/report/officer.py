"""One page for those who decide on a release and read no code: an officer, a board, an office.

It says whose data are protected and how, what an attacker could gain, what is not covered, and what
others ask for in writing. All of it follows from the ledger and from what is public of the columns.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from importlib.metadata import version

from scipy.special import ndtr

from sdv_privpgd.base.words import listed
from sdv_privpgd.methods.pipeline import Release
from sdv_privpgd.privacy.ledger import TRAINED, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.report.about import About, assumed_facts
from sdv_privpgd.report.page import Facts, Items, Page, Part, Report, Section, Table, Text, as_text
from sdv_privpgd.report.privacy import (
    guarantee_facts,
    in_words,
    most_caught,
    not_covered,
    odds,
    protected,
    what_counts,
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
        Section("What an attacker can gain, at most", [_in_odds(ledger), _gained(gains)]),
        Section(
            "Not covered, spent so far, and seen by whom", [Items(_limits(release, ledger, about))]
        ),
        Section("For a privacy notice", [Text(privacy_notice(ledger))]),
        Section("What NIST SP 800-226 asks", [_pyramid(ledger, about, len(notes)), Text(made)]),
    ]
    told = {
        "report": "officer",
        "public": True,
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
    text = as_text([Text(title), *lead, *sections])
    return Report(text=text, page=Page(title=title, lead=lead, sections=sections), facts=told)


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


def _in_odds(ledger: PrivacyLedger) -> Text:
    return Text(
        f"The odds of whatever somebody believed about {ledger.unit} change by a factor of at most "
        f"{odds(ledger):.4g} (e to the epsilon), but for 1 in {1 / ledger.delta:,.0f} in "
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
    earlier = f"All of its {number:,} entries are of this release."
    if begun := number - len(own.charges):
        earlier = (
            f"{begun:,} of its {number:,} entries are of earlier releases; this one alone has "
            f"epsilon {own.spent():.4g} at delta {own.delta:g}."
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
    rows = [
        (
            "Epsilon and unit",
            f"epsilon {ledger.spent():.4g} at delta {ledger.delta:g} for {ledger.unit}, "
            f"{in_words(ledger.adjacency)}. "
            + (f"Hazards: {named}." if named else "None of the hazards named for it."),
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
