"""Says in plain words what a ledger promises, and what was spent: lines, sections, a page. Public.

The page is that of a ledger's file, for one population over the years. The charges are the
ledger's, and they alone are counted. Beside them the file says of each release what it was; what no
release says it has cost is shown as such.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from importlib.metadata import version
from textwrap import fill
from typing import Any

from scipy.special import ndtr, ndtri

from sdv_privpgd.base.arguments import check_epsilon
from sdv_privpgd.base.files import digest_of
from sdv_privpgd.base.words import grouped
from sdv_privpgd.privacy.accounting import delta_of_rows, epsilon_of, mu_squared_of
from sdv_privpgd.privacy.ledger import TRAINED, Charge, PrivacyLedger
from sdv_privpgd.privacy.ledger_file import PLANNED, read_ledger
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.privacy.thresholding import thresholded_delta
from sdv_privpgd.report.page import (
    WIDTH,
    Details,
    Facts,
    Items,
    Part,
    Report,
    Section,
    Table,
    Text,
    as_text,
)
from sdv_privpgd.report.warnings import OPENING

_MEANING = {
    Adjacency.REPLACE_ONE: (
        "Two tables are neighbors if one is the other with {unit} replaced by any other values.\n"
        "The number of rows is public: it is used exactly and can be read off what is released."
    ),
    Adjacency.ADD_REMOVE: (
        "Two tables are neighbors if one is the other with {unit} added or removed.\n"
        "The number of rows is private: only a noisy count of it was used."
    ),
}

_NOT_COVERED = (
    "the names, types, formats and keys of columns (which SDV's detection may have read off the "
    "rows), dtypes such as category, Int64 or a time zone, which no cell chose, and declared "
    "ranges, categories and precisions, which were all taken as public",
    "anything computed by comparing with the real table",
    "timing and memory",
)

_LEGEND: tuple[str, ...] = (
    "values: the numbers that a question asks for; open: as many as there are.",
    "replaced, added: how far one person can move the answers of an entry together (their L2 "
    "sensitivity), where rows are replaced, and where they are added or removed.",
    "noise sd: the standard deviation of the noise in each of the numbers.",
    "share: of the budget, in mu², (sensitivity / noise sd) squared, which adds up over questions; "
    "all of it is the epsilon at this delta.",
)

_CHOICES: str = (
    "eps: a choice has no noise sd but a range epsilon: between neighbors the odds of any two "
    "outcomes change by a factor of at most exp(eps)."
)

_WEAKER: str = (
    "weaker than counts: noisy sums of clipped gradients over random samples of the rows (DP-SGD). "
    "They cost no more than one release with this noise sd, but for a part of delta that was kept "
    "for it, by opacus' accountant and not by the ledger's proofs. Gradients are clipped and "
    "summed in floating point, by opacus and torch, which see the rows. They are trusted to keep "
    "none, and to make the same gradient of the same row whoever else is in the sample. A step "
    "takes the longer the more rows are in it."
)


def whose_row(ledger: PrivacyLedger) -> str:
    """Says that a row is protected and no person, where nobody has said whose the rows are.

    It has what a person with several rows is promised. Empty where somebody has said it. Public.
    """
    if ledger.says_whose:
        return ""
    return (
        f"ONE ROW, NOT ONE PERSON, is protected: {of_several_rows(ledger)}. If each row is another "
        "person's, say people=People(rows_are_people=True); else name the column of people in "
        "people=People(column, max_rows=...)."
    )


def protected(ledger: PrivacyLedger) -> str:
    """Says who is protected: one row, or one person with at most so many rows. Public."""
    rows, whose = ledger.rows_per_person, "ONE FAMILY"
    unit = f", {ledger.unit}"
    if not ledger.family:
        if not ledger.says_whose:
            return whose_row(ledger)
        whose = f"ONE PERSON WITH AT MOST {rows} ROW{'S' * (rows != 1)}"
        unit = "" if ledger.people is None else f", told apart by the column {ledger.people!r}"
    return (
        f"{whose} is protected{unit}: epsilon is {ledger.spent():.3g} at delta {ledger.delta:g} "
        "for all of these together."
    )


def of_several_rows(ledger: PrivacyLedger) -> str:
    """What a row is promised, and a person with several, as a part of a sentence. Public."""
    first, *others = (of_rows(ledger, rows) for rows in (1, 2, 4, 12))
    # A delta is said where a threshold has made it another one.
    two, four, twelve = (
        f"{epsilon:.3g}" + (f" at delta {delta:.2g}" if delta > 1.01 * first[1] else "")
        for epsilon, delta in others
    )
    return (
        f"epsilon is {first[0]:.3g} for a row, and for a person with 2, 4 and 12 rows it is {two}, "
        f"{four} and {twelve}"
    )


def of_rows(ledger: PrivacyLedger, rows: int) -> tuple[float, float]:
    """What so many rows of one person are promised together, as epsilon and delta. Public.

    Groups of k rows of a mu-GDP release have k mu (Dong, Roth & Su 2022, Theorem 3). A threshold
    has for them what values have that k rows alone may hold, and a training the delta of k rows.
    Before anything is spent it is what the whole budget would be.
    """
    spent, left = ledger.mu_squared, float(Fraction(ledger.delta) - own_delta(ledger))
    if not ledger.charges:
        spent, left = ledger.budget, float(Fraction(ledger.delta) - ledger.reserved)
    if left <= 0:
        return math.inf, ledger.delta
    more = sum(_delta_of_rows(charge, rows, ledger) for charge in ledger.charges)
    return epsilon_of(spent * rows**2, left), min(left + more, 1.0)


def _delta_of_rows(charge: Charge, rows: int, ledger: PrivacyLedger) -> float:
    """What an event adds to delta on its own for so many rows of a ledger that is for one."""
    if charge.threshold is not None:
        of_rows = replace(ledger, rows_per_person=rows)
        number = charge.num_queries
        return float(thresholded_delta(charge.stddev, charge.threshold, number, of_rows))
    if charge.mechanism == TRAINED:
        return delta_of_rows(math.sqrt(charge.mu_squared), float(charge.delta), rows)
    return float(charge.delta)


def first_line(ledger: PrivacyLedger | None) -> list[Text]:
    """The first line of a page: whose row is protected, where nobody has said it."""
    return [] if ledger is None or ledger.says_whose else [Text(whose_row(ledger))]


def uncovered_rows(ledger: PrivacyLedger) -> str:
    """Which rows of people the promise does not cover, in words. Public."""
    if ledger.family:
        root = repr(ledger.family[0])
        return f"people who are in several rows of {root}, or in rows that lead to several of them"
    if ledger.people is not None:
        return f"people whom {ledger.people!r} calls by several names, as if they were several"
    rows = ledger.rows_per_person
    if ledger.rows_are_people:
        return "people with several rows, if any has them all the same"
    return f"rows of one person beyond {'one' if rows == 1 else rows}"


def neighbors_in_words(ledger: PrivacyLedger) -> str:
    """Which tables are neighbors, in two lines. Public."""
    return _MEANING[ledger.adjacency].format(unit=ledger.unit)


def not_covered(ledger: PrivacyLedger) -> str:
    """What the promise does not cover, and where it is weaker. Public."""
    is_trained = any(charge.mechanism == TRAINED for charge in ledger.charges)
    said = f"Not covered: {'; '.join((uncovered_rows(ledger), *_NOT_COVERED))}."
    return f"{said} Of the mechanism {_WEAKER}" if is_trained else said


def what_counts(ledger: PrivacyLedger) -> str:
    """Says what a count is a number of, if it is not one of rows; else nothing. Public."""
    whole = f"noise are whole numbers of 1/{ledger.units}."
    if ledger.weights is not None:
        column, low, high = ledger.weights
        return (
            f"Counts are of rows of weight {high:g}: a row counts as its weight ({column!r}), "
            f"clipped to {low:g} to {high:g}, / {high:g}. {high:g} times a count is a sum of "
            f"weights. Counts and {whole}"
        )
    if not ledger.weighed:
        return ""
    if ledger.family:
        return (
            f"Counts are of rows of {ledger.family[0]!r}: rows of other tables, and pairs of them, "
            "count as 1 / the number of those that lead to the same row, so that all of them count "
            f"as one. They and the {whole}"
        )
    return (
        "Counts are of people: each row counts as 1 / the number of rows of its person that are "
        f"used, so that all rows of a person count as one. They and the {whole}"
    )


def privacy_report(ledger: PrivacyLedger, *, notes: Sequence[str] = ()) -> str:
    """The ledger in readable form, for a data steward and for auditors.

    ``notes`` are public sentences that stand at its end.
    """
    covered = [
        *neighbors_in_words(ledger).splitlines(),
        "It covers every attribute, sample, file, message and log record of the synthesizer.",
        what_counts(ledger),
    ]
    paragraphs = [
        fill(whose_row(ledger), WIDTH),
        f"Privacy report (sdv-privpgd {version('sdv-privpgd')})",
        f"Guarantee   ({ledger.spent():.6g}, {ledger.delta:g})-differential privacy, "
        f"{in_words(ledger.adjacency)}, for {ledger.unit}\n"
        f"Asked for   epsilon {ledger.epsilon:g}, delta {ledger.delta:g}",
        "\n".join(fill(said, WIDTH) for said in covered),
        as_text([ledger_table(ledger), legend(ledger)]),
        f"Spent       {_share(ledger.mu_squared, ledger)} of mu² = {float(ledger.budget):.6g}\n"
        + fill(under_other(ledger), WIDTH),
        fill(not_covered(ledger), WIDTH),
        *worth_a_look(notes),
    ]
    return "\n\n".join(filter(None, map(str.strip, paragraphs)))


def worth_a_look(notes: Sequence[str]) -> list[str]:
    """The notes as one paragraph, if there are any."""
    return [f"{OPENING}\n{as_text([Items(notes)])}"] if notes else []


def in_words(adjacency: Adjacency) -> str:
    """The name of an adjacency as people write it. Public."""
    return adjacency.value.replace("_", "-")


def odds(ledger: PrivacyLedger) -> float:
    """The most that the odds of any guess change by: e to the epsilon. Public."""
    return math.exp(epsilon) if (epsilon := ledger.spent()) < 700 else math.inf


def under_other(ledger: PrivacyLedger) -> str:
    """What the same release spends by the adjacency that a fit does not have. Public."""
    (other,) = (member for member in Adjacency if member is not ledger.adjacency)
    exact = ", given the answers without noise, which that reading would count as private"
    return (
        f"If two tables count as neighbors by {in_words(other)} instead, the same release has "
        f"epsilon {ledger.spent(adjacency=other):.6g} at delta {ledger.delta:g}"
        f"{exact if ledger.exact_releases else ''}."
    )


def _share(mu_squared, ledger: PrivacyLedger) -> str:
    percent = float(100 * mu_squared / ledger.budget)
    return "<0.001 %" if 0 < percent < 0.001 else f"{percent:.4g} %"


def _entry(charge: Charge, adjacency: Adjacency, units: int) -> tuple[str, ...]:
    """A charge in words, without its share."""
    squared, stddev = dict(charge.sensitivity_squared), charge.stddev / units
    whole = f"{stddev:,.0f}" if stddev < 1e7 else f"{stddev:.3g}"
    scale = f"{stddev:,.4g}" if stddev < 1e4 else whole
    if charge.temperature is not None:
        scale = f"eps {float(charge.range_epsilon_under(adjacency)):.3g}"
    elif charge.is_exact:
        scale = "none"
    return (
        purpose(charge),
        charge.mechanism,
        "open" if charge.threshold is not None else f"{charge.num_values:,}",
        f"{math.sqrt(squared[Adjacency.REPLACE_ONE]) / units:.4g}",
        f"{math.sqrt(squared[Adjacency.ADD_REMOVE]) / units:.4g}",
        scale,
    )


def purpose(charge: Charge) -> str:
    """The purpose of a charge, and its number of questions."""
    if charge.num_queries == 1 or charge.temperature is not None:
        return charge.what
    return f"{charge.what} ({charge.num_queries:,} questions)"


def legend(*ledgers: PrivacyLedger) -> Items:
    """What the columns of ``ledger_table`` are."""
    charges = [charge for ledger in ledgers for charge in ledger.charges]
    chosen = any(charge.temperature is not None for charge in charges)
    trained = any(charge.mechanism == TRAINED for charge in charges)
    return Items([*_LEGEND, *[_CHOICES] * chosen, *[_WEAKER] * trained])


def ledger_table(ledger: PrivacyLedger) -> Table:
    """Each use of the budget: the question, how it was answered and what that cost."""
    header = ("question", "mechanism", "values", "replaced", "added", "noise sd", "share")
    return Table("The ledger", header, list(_entries(ledger)), texts=2)


def _entries(ledger: PrivacyLedger) -> Iterator[tuple[str, ...]]:
    """The charges in words, with their share of the budget; equal ones share an entry."""
    alike = grouped(
        (_entry(each, ledger.adjacency, ledger.units), each.mu_squared) for each in ledger.charges
    )
    for (what, *entry), spent in alike.items():
        said = what if len(spent) == 1 else f"{what}, {len(spent)} times"
        yield (said, *entry, _share(sum(spent), ledger))


def most_caught(false_alarms: float, mu: float) -> float:
    """The largest share of true findings at a share of false alarms, against a mu-GDP release.

    It is Phi(Phi^-1(alpha) + mu), the power of the best test of one table against a neighbor
    (Dong, Roth & Su 2022, Definition 2.6 and Eq. 6).
    """
    return float(ndtr(ndtri(false_alarms) + mu))


def guarantee_facts(ledger: PrivacyLedger) -> list[tuple[str, str]]:
    """The promise at a glance, each fact with its name."""
    return [
        ("epsilon spent", f"{ledger.spent():.4g}"),
        ("delta", f"{ledger.delta:g}"),
        ("protected", ledger.unit),
        ("neighboring tables", in_words(ledger.adjacency)),
        ("of the budget used", _share(ledger.mu_squared, ledger)),
    ]


def _promise(ledger: PrivacyLedger) -> list[Text]:
    """What the noise hides, and of whom."""
    was = "was" if ledger.rows_per_person == 1 else "were"
    secret, count = {
        Adjacency.REPLACE_ONE: (
            f"what the values of {ledger.unit} were",
            "The number of rows is public.",
        ),
        Adjacency.ADD_REMOVE: (
            f"whether {ledger.unit} {was} in it at all",
            "The number of rows is protected, too: only a noisy count of it was used.",
        ),
    }[ledger.adjacency]
    said = (
        "The synthetic rows, the saved model and everything on this page were computed from noisy "
        f"counts of a confidential table. The noise limits how well anybody can find out {secret}, "
        f"even somebody who knows every other row and all of this software. {count}"
    )
    return [*map(Text, filter(None, [said, what_counts(ledger)]))]


def meaning_section(ledger: PrivacyLedger) -> Section:
    """The promise, in odds and as the success of the best attacker, and what it does not cover."""
    epsilon, mu = ledger.spent(), math.sqrt(ledger.mu_squared)
    even = 1 / (1 + math.exp(-epsilon))
    return Section(
        "What is promised, and what an attacker can gain",
        [
            *_promise(ledger),
            Text(
                f"In odds. Whatever somebody believed about {ledger.unit} before, what was "
                f"released changes the odds by a factor of at most {odds(ledger):.4g}, which is e "
                f"to the epsilon, but for an allowance of delta, 1 in {1 / ledger.delta:,.0f}, in "
                "probability. Two possibilities that seemed equally likely may then seem "
                f"{even:.1%} and {1 - even:.1%} likely at the most."
            ),
            Text(
                "In mistakes. Let the best possible attacker decide between two tables that differ "
                f"in {ledger.unit}. The fewer false alarms are accepted, the less is found; "
                "without any release, as much would be found as is falsely raised. (This is "
                f"Gaussian differential privacy with mu = {mu:.4g}.)"
            ),
            Table(
                "The best attacker's successes, at most",
                ("false alarms accepted in", "truth found in at most", "without the release"),
                [
                    (f"{rate:.0%} of cases", f"{most_caught(rate, mu):.2%}", f"{rate:.0%}")
                    for rate in (0.01, 0.05, 0.1)
                ]
                + [("as many as misses: right guesses", f"{ndtr(mu / 2):.2%}", "50%")],
            ),
            Text(
                "Facts about people in general are not protected and are what the synthetic rows "
                "are for: if smoking harms, a private study may show it, and so say something "
                "about a smoker who never took part."
            ),
            Text("Not covered by the promise:"),
            Items([uncovered_rows(ledger), *_NOT_COVERED]),
        ],
    )


def ledger_section(ledger: PrivacyLedger) -> Section:
    """Each use of the budget, to be folded."""
    return Section(
        "What was asked of the table",
        [
            Text(
                "Every question that was put to the confidential table, in order. Nothing else "
                "about it left the fit, and no question was asked that the budget did not cover."
            ),
            ledger_table(ledger),
            legend(ledger),
            Text(under_other(ledger), quiet=True),
            Details("The report as plain text", privacy_report(ledger)),
            Details("The ledger as JSON, exact", ledger.to_json()),
            Text(f"Written by sdv-privpgd {version('sdv-privpgd')}.", quiet=True),
        ],
        folded=True,
    )


_SAID = ("name", "date", "release", "method", "unit", "program")
_NUMBERS = ("epsilon", "delta", "mu")
_ADDS_UP = (
    "Whoever is in several releases has the epsilon so far, which is less than the sum: the "
    "squares of mu add up, exactly. Whoever is in one alone has that one's."
)


@dataclass(frozen=True, kw_only=True)
class History:
    """The ledger of one population, and what its releases were. Public.

    Attributes:
        ledger: All charges.
        releases: A dictionary each, in order, as ``release_entry`` makes them.
        limit: The epsilon that all of them together may spend, if somebody has set one.
    """

    ledger: PrivacyLedger
    releases: Sequence[Mapping[str, Any]] = ()
    limit: float | None = None

    def to_json(self) -> str:
        """The text of the file: the ledger's own, with the releases and the limit beside it."""
        facts = self.ledger.to_dict()
        if self.limit is not None:
            facts["max_epsilon"] = self.limit
        if self.releases:
            facts["releases"] = list(self.releases)
        return json.dumps({**facts, "digest": digest_of(facts)}, indent=2)

    @property
    def left(self) -> float | None:
        """The epsilon that one more release may spend within the limit; ``None`` without one."""
        if self.limit is None:
            return None
        delta = Fraction(self.ledger.delta) - own_delta(self.ledger)
        if delta <= 0:
            return 0.0
        left = mu_squared_of(self.limit, float(delta)) - self.ledger.mu_squared
        return epsilon_of(left, float(delta)) if left > 0 else 0.0


def read_history(text: str) -> History:
    """What ``History.to_json`` wrote. Raises ``ValueError`` for any other text."""
    ledger, facts = read_ledger(text), json.loads(text)
    releases, limit = facts.get("releases", []), facts.get("max_epsilon")
    try:
        costs = [_cost(each) for each in releases]
        whole = all(isinstance(each[name], str) for each in releases for name in _SAID)
        whole &= all(isinstance(each[name], float) for each in releases for name in _NUMBERS)
        limit = None if limit is None else check_epsilon(limit)
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        costs, whole = [], False
    if not whole or sum(mu_squared for mu_squared, _ in costs) > ledger.mu_squared:
        raise ValueError("The releases in the ledger are not as they were written.")
    return History(ledger=ledger, releases=releases, limit=limit)


def release_entry(
    ledger: PrivacyLedger, *, name: str, release: str | None, method: str
) -> dict[str, Any]:
    """What the ledger's file says of a release.

    Args:
        ledger: With its own charges alone.
        name: The file of its rows or of its tables.
        release: Its digits, by ``release_id``; ``None`` for a run that paid and made none.
        method: What was measured, and how rows were made.
    """
    return {
        "name": name,
        "date": date.today().isoformat(),
        "release": release or "none was made",
        "method": method,
        "unit": ledger.unit,
        "program": f"sdv-privpgd {version('sdv-privpgd')}",
        "epsilon": ledger.spent(),
        "delta": ledger.delta,
        "mu": math.sqrt(ledger.mu_squared),
        "mu_squared": str(ledger.mu_squared),
        "own_delta": str(own_delta(ledger)),
    }


def ledger_report(history: History, name: str) -> Report:
    """A page of the ledger: its releases, what each cost, the sum so far, and what is left."""
    ledger, left = history.ledger, history.left
    rows, whats, so_far, deltas = [], [], Fraction(0), Fraction(0)
    for each in history.releases:
        mu_squared, own = _cost(each)
        so_far, deltas = so_far + mu_squared, deltas + own
        numbers = *map(each.get, _NUMBERS), _epsilon(so_far, ledger.delta, deltas)
        said = [each[fact] for fact in ("name", "date", "method")]
        rows.append([*said, *(f"{number:.4g}" for number in numbers)])
        whats.append(
            f"{each['name']} protects {each['unit']}. Release: {each['release']}. By "
            f"{each['program']}."
        )
    glance = [
        ("releases", f"{len(rows):,}"),
        ("epsilon spent in all", f"{ledger.spent():.4g}"),
        ("delta", f"{ledger.delta:g}"),
        ("limit of epsilon", "none is set" if history.limit is None else f"{history.limit:g}"),
        *([] if left is None else [("left for another release", f"{left:.4g}")]),
    ]
    whose = protected(ledger).split(" If each row")[0]
    notes = _notes(history, so_far, deltas)
    title = f"What was spent on the people of {name}"
    header = ["release", "date", "method", "epsilon", "delta", "mu", "epsilon so far"]
    lead: list[Part] = [Text(whose), Facts(glance)]
    sections = [
        Section("Releases", [Table("In order", header, rows, 3), Text(_ADDS_UP)]),
        Section("What each is", [Items(whats)]),
        *([Section("To be looked at", [Items(notes)])] if notes else []),
    ]
    facts = {
        "report": "ledger",
        "releases": list(history.releases),
        "epsilon_spent": ledger.spent(),
        "delta": ledger.delta,
        "limit": history.limit,
        "left": left,
        "notes": notes,
        "ledger": ledger.to_dict(),
    }
    return Report.of(title, lead, sections, facts)


def _notes(history: History, mu_squared: Fraction, deltas: Fraction) -> list[str]:
    """Sentences on what was spent beside the releases, which cost so much together."""
    ledger = history.ledger
    planned = [charge for charge in ledger.charges if charge.mechanism == PLANNED]
    notes = [f"{charge.what} has not ended: all of that counts as spent." for charge in planned]
    rest = ledger.mu_squared - mu_squared - sum(charge.mu_squared for charge in planned)
    if rest > 0:
        own = own_delta(ledger) - deltas - sum(charge.delta for charge in planned)
        notes.append(
            f"Epsilon {_epsilon(rest, ledger.delta, own):.4g} was spent by what is no release of "
            "this list: the ledger is older than such lists, or learned later of a model."
        )
    if len({each["unit"] for each in history.releases}) > 1:
        notes.append("The releases do not protect the same: each protects what its line says.")
    return notes


def _cost(release: Mapping[str, Any]) -> tuple[Fraction, Fraction]:
    """The mu^2 of a release, and what its events add to delta. Raises for what is neither."""
    cost = Fraction(release["mu_squared"]), Fraction(release["own_delta"])
    if min(cost) < 0:
        raise ValueError("A cost is not negative.")
    return cost


def own_delta(ledger: PrivacyLedger) -> Fraction:
    """What the events of a ledger add to delta on their own. Public."""
    return sum((charge.delta for charge in ledger.charges), Fraction(0))


def _epsilon(mu_squared: Fraction, delta: float, own: Fraction) -> float:
    """The epsilon of a sum of mu^2 at ``delta``, of which the events take their own part."""
    left = float(Fraction(delta) - own)
    return epsilon_of(mu_squared, left) if left > 0 else math.inf
