"""The privacy report: what was spent, on what and under which adjacency, in words. Public."""

import math
from collections.abc import Sequence
from fractions import Fraction
from importlib.metadata import version
from statistics import fmean

from sdv_privpgd.measure import Measurement
from sdv_privpgd.privacy.ledger import Charge, PrivacyLedger
from sdv_privpgd.queries import Adjacency

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

_NOT_COVERED = """\
Not covered: rows of one person beyond {rows}; column names, dtypes and types (which SDV's detection
may have read off the rows) and declared ranges and categories, which were taken as public; anything
computed by comparing with the real table; timing and memory."""

_CHOICES = """\
A choice has no sigma but a range epsilon: between neighbors the odds of any two outcomes change by
a factor of at most exp(range epsilon)."""


def privacy_report(ledger: PrivacyLedger) -> str:
    """The ledger in readable form, for a data steward and for whoever checks him."""
    rows = ledger.rows_per_person
    unit = "one row" if rows == 1 else f"up to {rows} rows of one person"
    own, other = ledger.adjacency, _other(ledger.adjacency)
    lines = [
        f"Privacy report (sdv-privpgd {version('sdv-privpgd')})",
        "",
        f"Guarantee   ({ledger.spent():.6g}, {ledger.delta:g})-differential privacy, "
        f"{own.value.replace('_', '-')}, for {unit}",
        f"Asked for   epsilon {ledger.epsilon:g}, delta {ledger.delta:g}",
        "",
        _MEANING[own].format(unit=unit),
        "It covers every attribute, sample, file, message and log record of the synthesizer.",
        "",
        *_events(ledger),
        *(
            ["", _CHOICES]
            if any(charge.temperature is not None for charge in ledger.charges)
            else []
        ),
        "",
        f"Spent       {_share(ledger.mu_squared, ledger)} of mu² = {float(ledger.budget):.6g}",
        f"Under {other.value.replace('_', '-')} the same release is "
        f"({ledger.spent(adjacency=other):.6g}, {ledger.delta:g})-differentially private"
        + (
            ",\ngiven the exact answers above, which that adjacency would count as private."
            if ledger.exact_releases
            else "."
        ),
        "",
        _NOT_COVERED.format(rows="one" if rows == 1 else rows),
    ]
    return "\n".join(lines)


def plan_report(ledger: PrivacyLedger, num_rows: int, tables: Sequence[Measurement]) -> str:
    """What a fit would ask and how loud the answers would be. Public: no table was read.

    Args:
        ledger: Of the questions.
        num_rows: The number of rows that was assumed.
        tables: The marginals that were asked for, over codes or groups of them.
    """
    # Half the mean L1 norm of the noise beside the rows, before anything takes noise out.
    shares: dict[int, list[float]] = {}
    for table in tables:
        noise = table.answer.size * table.stddev / math.sqrt(2 * math.pi)
        shares.setdefault(table.answer.ndim, []).append(noise / max(num_rows, 1))
    lines = [
        f"Plan for {num_rows:,} rows: nothing was read, nothing was spent",
        "",
        f"Epsilon {ledger.epsilon:g}, delta {ledger.delta:g}, "
        f"{ledger.adjacency.value.replace('_', '-')}, up to {ledger.rows_per_person} rows a person",
        "",
        *_events(ledger),
        "",
        "Rows that the noise of a measured table displaces, before the fit takes noise out:",
    ]
    for degree, found in sorted(shares.items()):
        mean, worst = (f"{100 * min(share, 1):.2g} %" for share in (fmean(found), max(found)))
        lines.append(f"  {degree}-way tables  {mean} on average, at most {worst}")
    return "\n".join(lines)


def _other(adjacency: Adjacency) -> Adjacency:
    return next(member for member in Adjacency if member is not adjacency)


def _share(mu_squared, ledger: PrivacyLedger) -> str:
    return f"{float(100 * mu_squared / ledger.budget):.4g} %"


def _entry(charge: Charge, adjacency: Adjacency) -> tuple[str, ...]:
    """A charge in words, without its share."""
    squared = dict(charge.sensitivity_squared)
    scale = f"{charge.stddev:.6g}"
    if charge.temperature is not None:
        scale = f"eps {float(charge.range_epsilon_under(adjacency)):.4g}"
    return (
        charge.what,
        charge.mechanism,
        "open" if charge.threshold is not None else f"{charge.num_values:,}",
        f"{math.sqrt(squared[Adjacency.REPLACE_ONE]):.4g}",
        f"{math.sqrt(squared[Adjacency.ADD_REMOVE]):.4g}",
        scale,
    )


def _events(ledger: PrivacyLedger) -> list[str]:
    """One line a charge; charges that differ in nothing share a line, with their number."""
    header = ("what", "mechanism", "values", "D replace", "D add/rem", "sigma", "share")
    rows: list[tuple[str, ...]] = [header]
    alike: dict[tuple[str, ...], list[Fraction]] = {}
    for charge in ledger.charges:
        alike.setdefault(_entry(charge, ledger.adjacency), []).append(charge.mu_squared)
    for entry, shares in alike.items():
        what = entry[0] if len(shares) == 1 else f"{entry[0]} ({len(shares)} times)"
        rows.append((what, *entry[1:], _share(sum(shares), ledger)))
    widths = [max(len(row[column]) for row in rows) for column in range(len(header))]
    lines = [
        "  ".join(
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    lines.insert(1, "-" * max(map(len, lines)))
    return lines
