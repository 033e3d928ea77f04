"""The warnings after a fit: a table of rules, and the sentences that are made of it.

A rule has a measure of ``measures``, a threshold, a text and a rank. The warnings stand by rank
behind a summary. Columns of one kind share a line, and each column stands on the line of the first
rule that applies to it alone.
"""

import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from sdv_privpgd.base.words import grouped, listed
from sdv_privpgd.report import measures
from sdv_privpgd.report.measures import (
    MANY,
    MOST,
    NEARLY_ALL,
    SOME,
    ColumnShares,
    Finding,
    PublicFacts,
)

OPENING = "Worth a look before the rows are used:"
"""The first words of the warning at the end of a fit, and of the warnings in a report."""

LARGE_DELTA = 1e-2
"""The delta that promises nothing whatever the table: fewer than 100 rows show nothing anyway."""


class Rank(IntEnum):
    """What a warning is about, the worst first."""

    LOST = 0
    DOUBTFUL = 1
    SETTINGS = 2
    NOISE = 3


class WarningRule(NamedTuple):
    """A kind of warning, on columns or on a whole fit.

    It is given where the value that its measure finds exceeds the threshold. In its text the list
    of what was found takes the place of ``{}``.
    """

    rank: Rank
    measure: Callable[[Any], Finding | None]
    threshold: float
    text: str

    def finding(self, seen: Any) -> Finding | None:
        """What its measure finds, if that is enough."""
        found = self.measure(seen)
        return found if found is not None and found.value > self.threshold else None


# fmt: off
COLUMN_RULES = (
    WarningRule(Rank.LOST, measures.missing, NEARLY_ALL, "Nearly all values are missing: {}."),
    WarningRule(Rank.LOST, measures.other, NEARLY_ALL,
         "Nearly all values are not among those that are declared or were found: {}."),
    # A wrong unit or year moves all values there; what is left is for a few codes and zeros.
    WarningRule(Rank.LOST, measures.at_one_end, 0.95,
         "Nearly all rows lie at one end of the declared range, as those beyond it are moved "
         "there: {}. Check the unit, or the year of dates, or declare a wider range."),
    WarningRule(Rank.DOUBTFUL, measures.of_discovery, 0, ""),
    WarningRule(Rank.DOUBTFUL, measures.code, SOME,
         "Values far from all others may be codes for missing: {}. If so, declare them as "
         "missing_codes, or with CsvFiles(na=...) where the table is text, and leave them out of a "
         "declared range."),
    WarningRule(Rank.DOUBTFUL, measures.clipped, SOME,
         "Rows pile up at an end of the declared range, as if values beyond it were clipped: {}. "
         "Declare a wider range, unless that is how the column is."),
    WarningRule(Rank.LOST, measures.one_wide_cell, NEARLY_ALL,
         "Nearly all rows have one of several values: {}. The range may be far too wide or "
         "elsewhere."),
    WarningRule(Rank.DOUBTFUL, measures.one_value, NEARLY_ALL,
         "Nearly all rows have one value of several: {}. If that is not so, the others are written "
         "otherwise than in the table, or the range is elsewhere."),
    WarningRule(Rank.DOUBTFUL, measures.missing, MOST, "Most values are missing: {}."),
    WarningRule(Rank.DOUBTFUL, measures.unparsed, MANY, "Many values are missing: {}."),
    WarningRule(Rank.DOUBTFUL, measures.other_unsaid, MANY,
         "Many values are not among those that are declared or were found: {}. Declare their "
         "categories, or that they are dates or numbers."),
    WarningRule(Rank.DOUBTFUL, measures.found_constant, 0,
         "One value was found in all rows: {}. If there are other values, declare the range."),
    WarningRule(Rank.DOUBTFUL, measures.unparsed, SOME, "Some values are missing: {}."),
    WarningRule(Rank.DOUBTFUL, measures.dates_as_numbers, NEARLY_ALL,
         "Numbers may be dates, as 20240131 or 202401: {}. Many that are sampled are no dates "
         "then: declare Datetime(datetime_format='%Y%m%d'), or '%Y%m'."),
    WarningRule(Rank.DOUBTFUL, measures.wide, 0,
         "Wide cells hide how rows are spread: {}. Means, sums and high quantiles may be far off. "
         "answer() gives intervals that hold for any spread."),
    WarningRule(Rank.DOUBTFUL, measures.drowned, MOST,
         "Noise moves most of the rows in the counts of a column: {}. Choose fewer columns or "
         "cells, or a larger epsilon."),
    WarningRule(Rank.NOISE, measures.rare, MOST,
         "Most categories have too few rows to be told from none: {}. They may vanish or be far "
         "too many: put rare ones together, or spend more."),
)
"""The rules on single columns, in the order in which they are tried."""

FIT_RULES = (
    WarningRule(Rank.LOST, measures.unasked, 0,
         "Values are made up, as the method asked nothing of these columns: {}. Choose another "
         "method, or leave them out."),
    WarningRule(Rank.DOUBTFUL, measures.order, 0,
         "Dates seem to be in order, and rows may have them the other way round, because nothing "
         "says so: declare the constraint {}."),
    WarningRule(Rank.DOUBTFUL, measures.contradicted, SOME,
         "The table contradicts a constraint or link, or nearly all rows are at its limit: {}. "
         "Sampled rows meet it: check the order of its columns, or its list of combinations, or "
         "leave it out."),
    WarningRule(Rank.NOISE, measures.few_rows, MANY,
         "The rows are few for this epsilon and these columns: {}. Choose fewer columns or cells, "
         "or a larger epsilon."),
    WarningRule(Rank.NOISE, measures.correlations, 0.15,
         "Correlations of two columns come out weaker than they are, by {} on average. "
         "Choose fewer columns, or a larger epsilon."),
    WarningRule(Rank.NOISE, measures.coarse_pairs, 0,
         "{} of columns were measured over a few groups of values alone, because there are too "
         "many of them: noise may hide strong relations there, too. Name pairs that matter with "
         "PrivPGD(pairs=...), declare a target, or choose fewer columns."),
    WarningRule(Rank.NOISE, measures.hidden, SOME,
         "Noise hid what fewer than {} were found: long tails may be cut, and columns that so few "
         "rows lack may never be missing. Declare the ranges that you know, or spend more."),
)
# fmt: on
"""The rules on a whole fit."""


def warnings_of(facts: PublicFacts, *, but: Collection[Rank] = ()) -> tuple[str, ...]:
    """Returns the warnings about a fit, by rank behind a summary, but for some ranks. Public."""
    if facts.release is None:
        return tuple(facts.settings)
    found = _of_columns(facts.columns)
    ranks, number = [rule.rank for rule, _ in found], len(facts.modelled)
    lost, doubtful = ranks.count(Rank.LOST) + len(facts.unasked), ranks.count(Rank.DOUBTFUL)
    found += [(rule, finding) for rule in FIT_RULES if (finding := rule.finding(facts))]
    said = {rank: _sentences([each for each in found if each[0].rank is rank]) for rank in Rank}
    said[Rank.SETTINGS] = [*facts.settings, *on_delta(facts.ledger.delta, facts.total.value)]
    summary = (
        f"{number - lost - doubtful} of {number} column{'s' * (number != 1)} usable, "
        f"{doubtful} doubtful, {lost} lost."
    )
    lines = [line for rank in Rank if rank not in but for line in said[rank]]
    return (*([summary] if lost or doubtful else []), *lines)


def _of_columns(columns: Mapping[str, ColumnShares]) -> list[tuple[WarningRule, Finding]]:
    """Returns what the first rule that applies to a column found of it, in the rules' order."""
    found, left = [], dict(columns)
    for rule in COLUMN_RULES:
        for name, seen in list(left.items()):
            if finding := rule.finding(seen):
                words = f" ({finding.words})" if finding.words else ""
                found.append((rule, finding._replace(words=f"{name!r}{words}")))
                del left[name]
    return found


def _sentences(found: Iterable[tuple[WarningRule, Finding]]) -> list[str]:
    """Returns a line for each kind of finding and each remedy, with all that it was found of."""
    kinds = grouped(((rule.text, finding.remedy), finding.words) for rule, finding in found)
    return [
        f"{text.format(listed(words))} {remedy}".strip() for (text, remedy), words in kinds.items()
    ]


def warn_after(
    said: Sequence[str], *, but: Collection[str] = (), kept: Any = None, stacklevel: int = 2
) -> None:
    """Warns in one of what is to be said after a fit, but for what was said before.

    Where warnings are errors, the error has what would be lost, as ``kept``.
    """
    left = [sentence for sentence in said if sentence not in but]
    if not left:
        return
    try:
        warnings.warn("\n- ".join((OPENING, *left)), stacklevel=stacklevel + 1)
    except UserWarning as error:
        if kept is not None:
            error.args = (f"{error}\n- What was paid for is kept in this error, as error.kept.",)
            vars(error)["kept"] = kept
        raise


def on_delta(delta: float, num_rows: float | None = None) -> list[str]:
    """Returns a sentence on a delta that promises nothing for so many rows, or for any. Public."""
    is_large = delta >= LARGE_DELTA
    if not is_large and (num_rows is None or delta * num_rows < 1):
        return []
    table = "any size" if is_large else f"{num_rows:,.0f} rows"
    return [
        f"delta={delta:g} promises next to nothing in a table of {table}: handing out the rows of "
        f"each person as they are with a chance of {delta:.2g} would be within it. Choose one far "
        "below 1 / (number of rows); 1e-5 is usual."
    ]
