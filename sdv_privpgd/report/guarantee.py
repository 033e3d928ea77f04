"""Says in plain words what a ledger promises. Public."""

import math
from importlib.metadata import version

from scipy.special import ndtr, ndtri

from sdv_privpgd.privacy.ledger import Charge, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.report.page import Details, Facts, Items, Section, Table, Text
from sdv_privpgd.report.privacy import asked, privacy_report, uncovered_rows, what_counts

_FALSE_ALARMS = (0.01, 0.05, 0.1)


def most_caught(false_alarms: float, mu: float) -> float:
    """The largest share of true findings at a share of false alarms, against a mu-GDP release.

    It is Phi(Phi^-1(alpha) + mu), the power of the best test of one table against a neighbor
    (Dong, Roth & Su 2022, Definition 2.6 and Eq. 6).
    """
    return float(ndtr(ndtri(false_alarms) + mu))


def guarantee_parts(ledger: PrivacyLedger) -> list:
    """The promise at a glance, which stands above everything else."""
    unit = ledger.unit
    secret = (
        f"what the values of {unit} were"
        if ledger.adjacency is Adjacency.REPLACE_ONE
        else f"whether {unit} {'was' if unit == 'one row' else 'were'} in it at all"
    )
    count = (
        "The number of rows is public."
        if ledger.adjacency is Adjacency.REPLACE_ONE
        else "The number of rows is protected, too: only a noisy count of it was used."
    )
    return [
        Text(
            "The synthetic rows, the saved model and everything on this page were computed from "
            f"noisy counts of a confidential table. The noise limits how well anybody can find "
            f"out {secret}, even somebody who knows every other row and all of this software. "
            f"{count}"
        ),
        *([Text(what_counts(ledger))] if ledger.weighed else []),
        Facts(
            [
                ("epsilon spent", f"{ledger.spent():.4g}"),
                ("delta", f"{ledger.delta:g}"),
                ("protected", unit),
                ("neighboring tables", ledger.adjacency.value.replace("_", "-")),
                ("of the budget used", _share(ledger.mu_squared, ledger)),
            ]
        ),
    ]


def meaning_section(ledger: PrivacyLedger) -> Section:
    """Explains epsilon as odds, and the whole promise as the success of the best attacker."""
    epsilon, mu = ledger.spent(), math.sqrt(ledger.mu_squared)
    odds = math.exp(epsilon) if epsilon < 700 else math.inf
    even = 1 / (1 + math.exp(-epsilon))
    return Section(
        "What an attacker can gain",
        [
            Text(
                f"In odds. Whatever somebody believed about {ledger.unit} before, what was "
                f"released changes the odds by a factor of at most {odds:.4g}, which is e to the "
                f"epsilon, but for an allowance of delta, 1 in {1 / ledger.delta:,.0f}, in "
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
                    for rate in _FALSE_ALARMS
                ]
                + [("as many as misses: right guesses", f"{ndtr(mu / 2):.2%}", "50%")],
            ),
            Text(
                "Facts about people in general are not protected and are what the synthetic rows "
                "are for: if smoking harms, a private study may show it, and so say something "
                "about a smoker who never took part."
            ),
        ],
    )


def ledger_section(ledger: PrivacyLedger) -> Section:
    """Each use of the budget, and the limits of the promise."""
    other = next(member for member in Adjacency if member is not ledger.adjacency)
    condition = (
        " given the answers without noise, which that reading would count as private"
        if ledger.exact_releases
        else ""
    )
    return Section(
        "What was asked of the table",
        [
            Text(
                "Every question that was put to the confidential table, in order. Nothing else "
                "about it left the fit, and no question was asked that the budget did not cover."
            ),
            ledger_table(ledger),
            Text(
                f"If two tables count as neighbors by {other.value.replace('_', '-')} instead, the "
                f"same release has epsilon {ledger.spent(adjacency=other):.4g} at delta "
                f"{ledger.delta:g}{condition}.",
                quiet=True,
            ),
            Text("Not covered by the promise:"),
            Items(
                (
                    f"{uncovered_rows(ledger)};",
                    "names and kinds of columns (sdtypes, which SDV's detection may have read off "
                    "the rows, and dtypes such as category, Int64 or a time zone, which no cell "
                    "chose), declared ranges, categories and precisions, all "
                    "taken as public;",
                    "anything computed by comparing with the real table;",
                    "what the duration of a fit or its use of memory would tell.",
                )
            ),
            Details("The report as plain text", privacy_report(ledger)),
            Details("The ledger as JSON, exact", ledger.to_json()),
            Text(f"Written by sdv-privpgd {version('sdv-privpgd')}.", quiet=True),
        ],
    )


def ledger_table(ledger: PrivacyLedger) -> Table:
    """Each use of the budget: the question, how it was answered and what that cost."""
    rows = [
        (
            asked(charge),
            charge.mechanism,
            "open" if charge.threshold is not None else f"{charge.num_values:,}",
            f"{math.sqrt(dict(charge.sensitivity_squared)[ledger.adjacency]) / ledger.units:.4g}",
            _noise(charge, ledger),
            f"{float(charge.mu_squared):.4g}",
            _share(charge.mu_squared, ledger),
        )
        for charge in ledger.charges
    ]
    return Table(
        "The ledger",
        (
            "question",
            "mechanism",
            "values",
            "sensitivity, L2",
            "noise sd, per value",
            "mu²",
            "share of budget",
        ),
        rows,
        texts=2,
    )


def _noise(charge: Charge, ledger: PrivacyLedger) -> str:
    """The noise or the chance that hides an answer, or "none" for a public answer."""
    if charge.is_exact:
        return "none: public"
    if charge.temperature is not None:
        return f"choice, epsilon {float(charge.range_epsilon_under(ledger.adjacency)):.4g}"
    return f"{charge.stddev / ledger.units:.5g}"


def _share(mu_squared, ledger: PrivacyLedger) -> str:
    return f"{float(100 * mu_squared / ledger.budget):.4g} %"
