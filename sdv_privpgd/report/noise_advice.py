"""The warnings after a fit that are about its noise: too few rows, hidden tails, faint relations.

They are made of noisy answers, of the ledger and of what was declared or found. So they are
post-processing, public and free.
"""

import math
from collections.abc import Iterator
from statistics import fmean, median

import numpy as np

from sdv_privpgd.base.words import in_rows, listed, share
from sdv_privpgd.columns.facts import DateFacts, NumberFacts
from sdv_privpgd.discovery.plan import rows_unseen
from sdv_privpgd.privacy.queries import GroupedMarginalQuery
from sdv_privpgd.report.column_advice import on_wide_cells
from sdv_privpgd.report.known_facts import SURE, Facts

_LOUD, _FINE = 0.1, 0.05
"""Shares of rows that the noise moves in a column's counts: a share that is too large, and a small
enough one.

On samples of Adult (15 declared columns, epsilon 1) the share is 10 % at 3,000 rows. At about 8,000
rows the pairs of columns are as far from the true ones as those of independent columns."""

_MANY_HIDDEN, _MANY_IN_DECLARED = 0.003, 0.03
"""The shares of all rows, hidden by noise at the end of a range, from which on it is worth a word:
where a range was found, and where all are declared, so that nothing is cut. One row in a hundred in
a long tail can make half of a mean."""

_UNSEEN_MISSING = 0.03
"""The share of cells that may be missing without being seen from which on it is worth a word."""

LARGE_DELTA = 1e-2
"""The delta from which on it is too large for any table."""

_NAMED = 3

_MANY_COLUMNS = 30
"""Among 40 columns of 20,000 rows at epsilon 1, where noise moves a correlation by .12, those of .5
came out as .1 to .2; among 21 columns they did not suffer."""

_FAINT = 0.07
"""The standard deviation of the noise in a correlation from which on it is worth a word."""

_HOPELESS = 0.5
"""That from which on its size says nothing more: no correlation is above 1."""


def on_noise(fitted: Facts) -> list[str]:
    """Sentences on what the noise of a fit with a release hides or moves. Public."""
    return [
        *_of_rows(fitted),
        *_of_relations(fitted),
        *_of_chosen_pairs(fitted),
        *_of_tails(fitted),
        *on_wide_cells(fitted),
        *_of_missing(fitted),
        *on_delta(fitted.ledger.delta, fitted.total.value),
    ]


def _of_rows(fitted: Facts) -> Iterator[str]:
    """A sentence if the noise moves too many rows; it says how many rows would do."""
    tables, total = fitted.tables, fitted.total
    if not tables:
        return
    moved = fmean(
        table.counts.size * math.sqrt(table.variance / (2 * math.pi)) for table in tables.values()
    )
    if moved > _LOUD * total.value:
        yield (
            f"{in_rows(total.value)} {'is' if round(total.value) == 1 else 'are'} few for this "
            "epsilon and these columns: the noise moves "
            f"{share(moved / total.value)} of the rows in the counts of a column on "
            f"average. From about {_rounded_up(moved / _FINE):,} rows on it is "
            f"{share(_FINE)}. Choose fewer columns or cells, or a larger epsilon."
        )


def _of_tails(fitted: Facts) -> Iterator[str]:
    """A sentence if discovery cannot have seen the ends of columns of numbers."""
    total, hidden = fitted.total, rows_unseen(fitted.ledger)
    found = [
        column.name
        for column in fitted.columns
        if isinstance(facts := fitted.declared.get(column.name), NumberFacts | DateFacts)
        and facts.lacks_domain
    ]
    if hidden > (_MANY_HIDDEN if found else _MANY_IN_DECLARED) * total.value:
        looked = f"the ranges of {listed(found)} were found" if found else "ranges were looked into"
        remedy = "Declare the ranges that you know, look" if found else "Look"
        yield (
            f"What fewer than about {_rounded_up(hidden):,} rows "
            f"({share(hidden / total.value)}) have was hidden by noise when {looked}, and up to "
            "twice as many that are of very different sizes: long tails may be cut, or reach far "
            "beyond what any row has, the means of columns with one may be far off, and what so "
            f"few rows lack comes back complete. {remedy} into fewer columns, by leaving some "
            "out, or spend more."
        )


def _of_relations(fitted: Facts) -> Iterator[str]:
    """A sentence if the noise hides how columns depend on each other."""
    noise = _noise_of_correlations(fitted)
    if noise > _FAINT:
        moved = f"about {noise:.2g}" if noise < _HOPELESS else f"more than {_HOPELESS:g}"
        many = (
            " Among so many columns even some of four times that size come out at a third of it."
            if len(fitted.tables) > _MANY_COLUMNS
            else ""
        )
        yield (
            f"The noise moves a correlation of two columns by {moved} (one standard "
            "deviation, where both are measured together): relations that are not far stronger "
            f"come out weaker than they are, or not at all.{many} Choose fewer columns, or a "
            "larger epsilon."
        )


def _of_chosen_pairs(fitted: Facts) -> Iterator[str]:
    """A sentence on pairs that were too many to be measured in full."""
    assert fitted.release is not None
    queries = [each.query for each in fitted.release.measurements]
    pairs = {
        each.clique
        for each in queries
        if isinstance(each, GroupedMarginalQuery) and len(each.clique) == 2
    }
    coarse = pairs - fitted.noisy.keys()
    if coarse:
        yield (
            f"{len(coarse):,} of {len(pairs):,} pairs of columns were measured over a few groups "
            "of values alone, because there are too many of them: the rows follow their relations "
            "coarsely, if at all. Name pairs that matter with PrivPGD(pairs=...), declare a "
            "target, or choose fewer columns."
        )


def _noise_of_correlations(fitted: Facts) -> float:
    """The median standard deviation of the noise in measured pairs' correlations; 0 without any.

    A correlation of codes, among rows that have both values, is linear in the pair's table, once
    both are in standard units.
    """
    sizes = {column.name: column.num_values for column in fitted.schema.attributes}
    squares = {}  # the sum over the codes of the squares of standard units
    for name, table in fitted.tables.items():
        shares = np.maximum(table.counts[: sizes[name]], 0.0)
        shares /= max(float(shares.sum()), 1e-9)
        codes = np.arange(len(shares)) - shares @ np.arange(len(shares))
        variance = float(shares @ np.square(codes))
        if variance > 0:
            squares[name] = float(np.square(codes).sum()) / variance
    found = [
        math.sqrt(table.variance * squares[clique[0]] * squares[clique[1]]) / fitted.total.value
        for clique, table in fitted.noisy.items()
        if len(clique) == 2 and squares.keys() >= set(clique)
    ]
    return median(found) if found else 0.0


def _of_missing(fitted: Facts) -> Iterator[str]:
    """A sentence on columns in which many cells may be missing without being seen."""
    found, most, tables, total = [], 0.0, fitted.tables, fitted.total
    for column in fitted.columns:
        declared = getattr(fitted.declared.get(column.name), "nullable", None)
        if not column.nullable or column.name not in tables or declared is not None:
            continue
        table = tables[column.name]
        hidden = SURE * math.sqrt(table.variance)
        if table.counts[-1] < hidden and hidden > _UNSEEN_MISSING * total.value:
            found.append(column.name)
            most = max(most, hidden / total.value)
    if found:
        yield (
            f"Up to about {share(most)} of the cells of {listed(found, _NAMED)} may be "
            "missing without being seen: the noise is as large, and the rows may have none. "
            "Declare range_is_nullable=False where nothing is missing, or spend more."
        )


def on_large_delta(delta: float) -> list[str]:
    """A sentence on a delta that promises nothing whatever the table. Public: no row is counted.

    Fewer rows than 1 / ``LARGE_DELTA`` have nothing to show through the noise of any fit, so that
    it is not below 1 / (number of rows) in any table that is worth one.
    """
    if delta < LARGE_DELTA:
        return []
    return [
        f"delta={delta:g} promises next to nothing in a table of any size: handing out the rows of "
        f"each person as they are with a chance of {delta:.2g} would be within it. Choose one far "
        "below 1 / (number of rows); 1e-5 is usual."
    ]


def on_delta(delta: float, num_rows: float) -> list[str]:
    """A sentence on a delta that promises nothing for so many rows. Public."""
    if delta * num_rows < 1:
        return []
    return [
        f"delta={delta:g} is not below 1 in {num_rows:,.0f} rows: a release of some person's whole "
        f"row would be within the promise. Choose a delta far below {1 / num_rows:.1g}."
    ]


def _rounded_up(number: float) -> int:
    """The number, rounded to two significant digits."""
    step = 10 ** max(math.floor(math.log10(number)) - 1, 0)
    return math.ceil(number / step) * step
