"""The privacy report says in words what was spent, on what, and under which adjacency. Public."""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from importlib.metadata import version
from itertools import zip_longest
from textwrap import fill, wrap

from sdv_privpgd.privacy.ledger import TRAINED, Charge, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.report.advice import OPENING

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
    "Not covered: {people}; the names, types, formats and keys of columns "
    "(which SDV's detection may have read off the rows), and declared ranges and categories, which "
    "were all taken as public; anything computed by comparing with the real table; timing and "
    "memory."
)

_LEGEND: tuple[str, ...] = (
    "values: the numbers that a question asks for; open: as many as there are.",
    "replaced, added: how far one person can move the answers of an entry together (their L2 "
    "sensitivity), where rows are replaced, and where they are added or removed.",
    "noise sd: the standard deviation of the noise in each of the numbers.",
    "share: of the budget. Its unit is mu², (sensitivity / noise sd) squared, which adds up over "
    "questions; all of it is the epsilon at this delta.",
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

WIDTH = 98
_QUESTION, _MECHANISM = 34, 17
"""Widths in characters: of a line, of a question and of a mechanism."""


def uncovered_rows(ledger: PrivacyLedger) -> str:
    """Which rows of people the promise does not cover, in words. Public."""
    if ledger.people is not None:
        return f"people whom {ledger.people!r} calls by several names, as if they were several"
    rows = ledger.rows_per_person
    return f"rows of one person beyond {'one' if rows == 1 else rows}"


def what_counts(ledger: PrivacyLedger) -> str:
    """Says what a count is a number of, if it is not one of rows; else nothing. Public."""
    if not ledger.weighed:
        return ""
    return _filled(
        "Counts are of people: each row counts as 1 / the number of rows of its person that are "
        "used, so that all rows of a person count as one. They and the noise are whole numbers of "
        f"1/{ledger.units}."
    )


def privacy_report(ledger: PrivacyLedger, *, notes: Sequence[str] = ()) -> str:
    """The ledger in readable form, for a data steward and for auditors.

    ``notes`` are public sentences that stand at its end.
    """
    unit = ledger.unit
    own, other = ledger.adjacency, _other(ledger.adjacency)
    paragraphs = [
        f"Privacy report (sdv-privpgd {version('sdv-privpgd')})",
        f"Guarantee   ({ledger.spent():.6g}, {ledger.delta:g})-differential privacy, "
        f"{own.value.replace('_', '-')}, for {unit}\n"
        f"Asked for   epsilon {ledger.epsilon:g}, delta {ledger.delta:g}",
        _MEANING[own].format(unit=unit)
        + "\nIt covers every attribute, sample, file, message and log record of the synthesizer."
        + (f"\n{what_counts(ledger)}" if ledger.weighed else ""),
        events(ledger),
        f"Spent       {_share(ledger.mu_squared, ledger)} of mu² = {float(ledger.budget):.6g}\n"
        + _filled(
            f"Under {other.value.replace('_', '-')} the same release is "
            f"({ledger.spent(adjacency=other):.6g}, {ledger.delta:g})-differentially private"
            + (
                ", given the exact answers above, which that adjacency would count as private."
                if ledger.exact_releases
                else "."
            )
        ),
        _filled(_NOT_COVERED.format(people=uncovered_rows(ledger))),
    ]
    if notes:
        said = [fill(f"- {note}", WIDTH, subsequent_indent="  ") for note in notes]
        paragraphs.append("\n".join([OPENING, *said]))
    return "\n\n".join(paragraphs)


def _other(adjacency: Adjacency) -> Adjacency:
    return next(member for member in Adjacency if member is not adjacency)


def _share(mu_squared, ledger: PrivacyLedger) -> str:
    return f"{float(100 * mu_squared / ledger.budget):.4g} %"


def _entry(charge: Charge, adjacency: Adjacency, units: int) -> tuple[str, ...]:
    """A charge in words, without its share."""
    squared, stddev = dict(charge.sensitivity_squared), charge.stddev / units
    scale = f"{stddev:,.4g}" if stddev < 1e5 else f"{stddev:.3g}"
    if charge.temperature is not None:
        scale = f"eps {float(charge.range_epsilon_under(adjacency)):.3g}"
    elif charge.is_exact:
        scale = "none"
    return (
        asked(charge),
        charge.mechanism,
        "open" if charge.threshold is not None else f"{charge.num_values:,}",
        f"{math.sqrt(squared[Adjacency.REPLACE_ONE]) / units:.4g}",
        f"{math.sqrt(squared[Adjacency.ADD_REMOVE]) / units:.4g}",
        scale,
    )


def asked(charge: Charge) -> str:
    """The purpose of a charge, and its number of questions."""
    if charge.num_queries == 1 or charge.temperature is not None:
        return charge.what
    return f"{charge.what} ({charge.num_queries:,} questions)"


def events(ledger: PrivacyLedger) -> str:
    """A table of the charges with its legend; equal charges share an entry."""
    alike: dict[tuple[str, ...], list[Fraction]] = {}
    for charge in ledger.charges:
        own = _entry(charge, ledger.adjacency, ledger.units)
        alike.setdefault(own, []).append(charge.mu_squared)
    entries: list[tuple[str, ...]] = [_HEADER]
    for entry, shares in alike.items():
        what = entry[0] if len(shares) == 1 else f"{entry[0]}, {len(shares)} times"
        entries.append((what, *entry[1:], _share(sum(shares), ledger)))
    wrapped = [
        (wrap(what, _QUESTION), wrap(mechanism, _MECHANISM), numbers)
        for what, mechanism, *numbers in entries
    ]
    widths = [max(len(row[2][place]) for row in wrapped) for place in range(len(_HEADER) - 2)]
    lines = [line for row in wrapped for line in _lines(*row, widths)]
    lines.insert(1, "-" * max(map(len, lines)))
    legend = [*_LEGEND]
    if any(charge.temperature is not None for charge in ledger.charges):
        legend.append(_CHOICES)
    if any(charge.mechanism == TRAINED for charge in ledger.charges):
        legend.append(_WEAKER)
    return "\n".join([*lines, "", *map(_filled, legend)])


_HEADER = ("question", "mechanism", "values", "replaced", "added", "noise sd", "share")


def _lines(
    what: Sequence[str], mechanism: Sequence[str], numbers: Sequence[str], widths: Sequence[int]
) -> Iterator[str]:
    """The lines of an entry; its numbers stand in the first line."""
    cells = "  ".join(cell.rjust(width) for cell, width in zip(numbers, widths, strict=True))
    for place, (left, right) in enumerate(zip_longest(what, mechanism, fillvalue="")):
        line = f"{left:<{_QUESTION}}  {right:<{_MECHANISM}}"
        yield (f"{line}  {cells}" if place == 0 else line).rstrip()


def _filled(text: str) -> str:
    return fill(text, WIDTH)
