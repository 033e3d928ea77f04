"""Measures of what noisy answers say of a column or of a whole fit, which warnings are made of.

A measure sees noisy answers, the ledger and what was declared or found. It gives ``None`` where
there is nothing to measure. All of it is post-processing: public and free.
"""

import datetime
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri  # pyright: ignore[reportMissingTypeStubs]

from sdv_privpgd.base import cached_property
from sdv_privpgd.base.domain import Clique
from sdv_privpgd.base.words import listed, number_of, rounded_up, share
from sdv_privpgd.columns.bins import Categories, Ticks
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.facts import ColumnFacts, DateFacts, NumberFacts, TruthFacts
from sdv_privpgd.columns.labels import code_labels
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.columns.values import USUAL_DATES, USUAL_NUMBERS
from sdv_privpgd.columns.vocabulary import words_of
from sdv_privpgd.discovery.plan import rows_unseen
from sdv_privpgd.estimate import noisy_tables as estimates
from sdv_privpgd.inference.conditions import HEAVIEST, code_values
from sdv_privpgd.methods.pipeline import Answers, Release
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import CountQuery, GroupedMarginalQuery, TableQuery

SURE = 3.0
"""Standard deviations of the noise that a finding must exceed. One count in 740 does by chance."""

SOME, MANY, MOST, NEARLY_ALL = 0.01, 0.1, 0.5, 0.9
"""Shares of the rows. One row in a hundred in a long tail can make half of a mean. On samples of
Adult (15 declared columns, epsilon 1) noise moves a tenth of the rows in a column's counts at 3,000
rows; at 8,000 the pairs of columns are as far from the true ones as if columns were independent."""

SEVERAL = 5
"""Fewer values are few: one of them may well be the only one, or an end of a range. And clipped
values are so many times as dense as those beside them; with the right range few columns are."""

_OF_CODEBOOK = (
    "Check the codebook against how they are written (capitals, spaces, numbers or text)."
)


def rows_in(ledger: PrivacyLedger, number: float) -> str:
    """So many rows, as counts are of them: all rows of people, if these count as one. Public."""
    whose = "families" if ledger.family else "people"
    return f"the rows of {number:,} {whose}" if ledger.weighed else number_of(number)


def of_many(ledger: PrivacyLedger) -> str:
    """What a column may be of whose values none is shared by many rows. Public."""
    whose = "; if it says whose a row is, name it: people=People(column, max_rows=...)"
    return (
        "If each row has another value, it is an id: give it the sdtype id"
        f"{'' if ledger.says_whose else whose}. Dates and times need the sdtype datetime and a "
        "datetime_format, numbers such as '12 %' or '$5' the sdtype numerical and a number_format. "
        "Otherwise declare their range_values, or, of fine codes, their groups or a prefix."
    )


class Finding(NamedTuple):
    """What a measure found: a value, words for the list of its kind, and a remedy of its own."""

    value: float
    words: str = ""
    remedy: str = ""


@dataclass(frozen=True, kw_only=True)
class PublicFacts:
    """The public facts of a fit that measures may see; no release where no column was modelled."""

    schema: Schema
    release: Release | Answers | None
    ledger: PrivacyLedger  # of this fit
    declared: Mapping[str, ColumnFacts]
    diagnostics: Mapping[str, str] = field(default_factory=dict)  # what discovery says of a column
    counted: Collection[str] = ()  # columns beyond whose range it was counted how many rows lie
    added: Collection[str] = ()  # columns of an order of rows, of which there is nothing to mend
    handed: Collection[str] = ()  # those of added ones that may be in order with others
    rules: Sequence[Any] = ()  # what constraints say of the cells of some columns together
    settings: Sequence[str] = ()  # sentences that follow from declarations and settings alone

    @cached_property
    def noisy(self) -> dict[Clique, estimates.NoisyTable]:
        """The measured tables over codes, those of a clique averaged."""
        assert self.release is not None
        return estimates.noisy_tables(self.release.domain, self.release.measurements)

    @cached_property
    def total(self) -> estimates.Total:
        """The number of rows."""
        assert self.release is not None
        return estimates.estimate_total(self.release.domain, self.release.measurements)

    @property
    def modelled(self) -> list[str]:
        """The columns of the table that have codes."""
        return [each.name for each in self.schema.columns if each.name not in self.added]

    @property
    def unasked(self) -> list[str]:
        """The columns that no table is about, if tables are all that answers are."""
        assert self.release is not None
        queries = [each.query for each in (*self.release.measurements, *self.release.given)]
        tables = [each for each in queries if isinstance(each, TableQuery)]
        lines = [line.name for table in tables for cut in table.cuts for line in cut.lines]
        asked = {*lines, *(name for table in tables for name in table.clique)}
        is_other = any(not isinstance(each, TableQuery | CountQuery) for each in queries)
        return [] if is_other or not asked else [n for n in self.modelled if n not in asked]

    @cached_property
    def columns(self) -> dict[str, "ColumnShares"]:
        """The measured columns of the table, by name."""
        tables = estimates.margin_estimates(self.noisy, 1)
        return {
            column.name: ColumnShares(
                facts=self,
                column=column,
                declared=self.declared.get(column.name),
                shares=tables[column.name,].counts / self.total.value,
                error=SURE * math.sqrt(tables[column.name,].variance) / self.total.value,
            )
            for column in self.schema.columns
            if (column.name,) in tables and column.name not in self.added
        }


@dataclass(frozen=True, kw_only=True)
class ColumnShares:
    """What noisy answers say of a column: the share of each code, and its largest error.

    Missing values have the last share. The others are those of its values.
    """

    facts: PublicFacts
    column: Column
    declared: ColumnFacts | None
    shares: np.ndarray
    error: float

    @property
    def moved(self) -> float:
        """The part of the rows that noise moves in its counts."""
        return self.column.size * self.error / SURE / math.sqrt(2 * math.pi)

    @property
    def other(self) -> Any:
        """The category that stands for all that are not listed; ``None`` without one."""
        cells = self.column.cells
        return cells.values[-1] if isinstance(cells, Categories) and cells.has_other else None

    def surely(self, code: int, what: str = "", remedy: str = "") -> Finding:
        """A finding of the share of a code, less what noise may add to it."""
        part = float(self.shares[code])
        words = f"{what} in {share(part)}" if what else share(part)
        return Finding(part - self.error, words, remedy)

    def ends(self) -> Iterator[tuple[Finding, float, bool]]:
        """The declared ends of the range, but for those that many rows of good tables are at.

        Each has a finding of its share, what that would be if it were as dense as the next code,
        and whether it is one value of several. There are none where rows beyond were counted.
        """
        cells, merging, last = self.column.cells, self.column.merging, self.column.num_values - 1
        is_counted = self.column.name in self.facts.counted
        if isinstance(cells, Categories) or last < 2 or is_counted:
            return
        widths = cells.widths if isinstance(cells, Ticks) else np.diff(cells.edges)
        widths = np.maximum(np.asarray(widths, dtype=np.float64), np.finfo(np.float64).tiny)
        if merging is not None:
            widths = np.bincount(merging.codes, weights=widths)
        words = words_of(self.declared)
        for key, code, beside in (("range_min", 0, 1), ("range_max", last, last - 1)):
            # Nothing, the first of a count and a code hold many rows in many good tables.
            if words.get(key) is not None and words[key] not in (-1, 0, 1):
                found = self.surely(code, f"{key}={words[key]!r}")
                dense = (max(float(self.shares[beside]), 0.0) + self.error) / widths[beside]
                is_single = isinstance(cells, Ticks) and last >= SEVERAL - 1 and widths[code] == 1
                yield found, float(dense * widths[code]), bool(is_single)


def missing(seen: ColumnShares) -> Finding | None:
    """The share of missing values, and what else they may be."""
    if not seen.column.nullable:
        return None
    remedy = _on_parsing(seen)
    if remedy and not getattr(seen.declared, "nullable", None):
        remedy += " If they are missing indeed, declare range_is_nullable=True."
    return seen.surely(-1, remedy=remedy)


def unparsed(seen: ColumnShares) -> Finding | None:
    """As ``missing``, where nobody said that values may be missing, and some may be unread."""
    is_said = getattr(seen.declared, "nullable", None)
    return missing(seen) if _on_parsing(seen) and not is_said else None


def _on_parsing(seen: ColumnShares) -> str:
    """What may keep values from having a code; empty where all that are not missing have one."""
    column, cells = seen.column, seen.column.cells
    is_typed = isinstance(column.dtype, np.dtype | pd.api.extensions.ExtensionDtype) and (
        pd.api.types.is_numeric_dtype(column.dtype)
        or pd.api.types.is_bool_dtype(column.dtype)
        or pd.api.types.is_datetime64_any_dtype(column.dtype)
    )
    has_words = isinstance(cells, Categories) and column.sdtype != "boolean"
    if seen.other is not None or (is_typed and not has_words and column.dtype.kind != "f"):
        return ""
    if has_words and isinstance(cells, Categories) and not getattr(seen.declared, "values", None):
        has_dates = any(isinstance(value, datetime.date) for value in cells.values)
        mend = "give them the sdtype datetime" if has_dates else "declare their range_values"
        return f"Or they are values that too few rows share to be found: {mend}."
    dates = DateFacts(datetime_format=column.datetime_format)
    usual = {"numerical": NumberFacts(), "datetime": dates}.get(column.sdtype, TruthFacts())
    return f"Or they are {(seen.declared or usual).unparsed}"


def other(seen: ColumnShares) -> Finding | None:
    """The share of the category that stands for all that are not listed."""
    if seen.other is None:
        return None
    is_open = getattr(seen.declared, "lacks_domain", False)
    remedy = of_many(seen.facts.ledger) if is_open else _OF_CODEBOOK
    return seen.surely(seen.column.num_values - 1, repr(seen.other), remedy)


def other_unsaid(seen: ColumnShares) -> Finding | None:
    """As ``other``, less if somebody named a value for all others, who will have meant it."""
    found, is_said = other(seen), getattr(seen.declared, "other", None) is not None
    return found and found._replace(value=found.value - is_said * (MOST - MANY), remedy="")


def at_one_end(seen: ColumnShares) -> Finding | None:
    """The share of the values, and most of all rows, that are one end of the declared range."""
    missing = max(float(seen.shares[-1]) - seen.error, 0.0) if seen.column.nullable else 0.0
    # Where their number is private, the rows may be more than they seem.
    rows = 1 + SURE * seen.facts.total.stddev / seen.facts.total.value
    for found, _, is_single in seen.ends():
        if is_single and found.value > MOST * rows:
            return found._replace(value=found.value / max(rows - missing, MOST))
    return None


def clipped(seen: ColumnShares) -> Finding | None:
    """The share of rows that pile up at an end of a declared range, by their odds."""
    ends = [f for f, d, _ in seen.ends() if f.value * (1 - d) > SEVERAL * d * (1 - f.value)]
    return max(ends, default=None)


def one_value(seen: ColumnShares) -> Finding | None:
    """The share of one declared value, or cell, if it may be that of all rows."""
    code = int(seen.shares[: seen.column.num_values].argmax())
    is_found = getattr(seen.declared, "lacks_domain", False)
    if is_found or seen.column.num_values < SEVERAL or seen.shares[code] + seen.error < 1 - SOME:
        return None
    return seen.surely(code, code_labels(seen.column)[code])


def one_wide_cell(seen: ColumnShares) -> Finding | None:
    """As ``one_value``, of a cell of several values: nothing is known of where rows lie in it."""
    found, values = one_value(seen), code_values(seen.column)
    code = int(seen.shares[: seen.column.num_values].argmax())
    return found if values.lows[code] < values.highs[code] else None


def found_constant(seen: ColumnShares) -> Finding | None:
    """Whether no range was declared, and one was found that holds one value."""
    is_found = isinstance(seen.declared, NumberFacts | DateFacts) and seen.declared.lacks_domain
    values = code_values(seen.column)
    if not is_found or seen.column.num_values > 1 or values.lows[0] < values.highs[0]:
        return None
    rows = rows_unseen(seen.facts.ledger)
    return Finding(1.0, f"{code_labels(seen.column)[0]}; {rows:,.0f} others would not be seen")


def of_discovery(seen: ColumnShares) -> Finding | None:
    """Whether a discovery has said something of the column, and what."""
    diagnostic = seen.facts.diagnostics.get(seen.column.name)
    return None if diagnostic is None else Finding(1.0, remedy=diagnostic)


def code(seen: ColumnShares) -> Finding | None:
    """The share of a usual code at one end, far from all other values."""
    column = seen.column
    if isinstance(column.cells, Categories):
        return None
    # A code lies so many times the width of all other values away from them, as -99 from ages of 0
    # to 120; and the cell that holds it is at most this part of that gap wide.
    far, narrow = 0.8, 0.1
    shares, values = seen.shares[: column.num_values], code_values(column)
    is_date = column.unit is not None
    clear = np.flatnonzero(shares > 2 * seen.error)  # some of many empty codes exceed it once
    for at, others in ((clear[:1], clear[1:]), (clear[-1:], clear[:-1])):
        if not len(others):
            return None
        at, first, last = int(at[0]), others[0], others[-1]
        low, high = values.lows[at], values.highs[at]
        gap = max(values.lows[first] - high, low - values.highs[last])
        spread = values.highs[last] - values.lows[first]
        step = 1 if is_date else 0 if column.decimal_places is None else float(column.tick)
        between = shares[at + 1 : first] if at < first else shares[last + 1 : at]
        if (
            max(step, far * spread) < gap
            and high - low <= narrow * gap
            and between.sum() - seen.error * math.sqrt(between.size) <= shares[at] / 2  # no tail
            and shares[others].sum() >= MOST * (shares.sum() - shares[at])
            and (is_date or {low, high} & USUAL_NUMBERS)
            and (not is_date or _is_usual_date(column, np.array([low, high]), values.lows[others]))
        ):
            return seen.surely(at, code_labels(column)[at])
    return None


def _is_usual_date(column: Column, *ends_and_others: np.ndarray) -> bool:
    """Whether an end is a date that forms use, or, as few others are, an end of a year."""
    days, beside = (each.astype("datetime64[D]") for each in _moments(column, *ends_and_others))
    ends, others = ([str(day)[5:] in ("01-01", "12-31") for day in each] for each in (days, beside))
    return any(day in USUAL_DATES for day in days) or (any(ends) and others.count(False) > 1)


def wide(seen: ColumnShares) -> Finding | None:
    """Whether the mean depends on how rows are spread in wide cells, or many rows are in one."""
    if seen.column.sdtype != "numerical":
        return None
    values, shares = code_values(seen.column), seen.shares[: seen.column.num_values]
    if values.are_single:
        return None
    top, present = int(shares.argmax()), 1 - float(seen.shares[-1]) * seen.column.nullable
    usual = float(shares[top]) * bool(values.lows[top] == values.highs[top])
    if usual + math.sqrt(2) * seen.error >= present:
        return None  # one value, as far as is known
    # That few rows could lie far out, unseen, is no reason: nearly all means are right then.
    is_far = values.moved_by_noise(shares, seen.error / SURE, HEAVIEST).any()
    # A quarter of the rows in one wide cell is worth a word: a cell of 32 has a thirtieth.
    is_crowded = not values.is_shaped and values.crowded(shares, seen.error, 0.25).any()
    is_heavy = values.heavy(shares, HEAVIEST).any()
    declared, name = words_of(seen.declared), seen.column.name
    first = 1 if seen.column.decimal_places == 0 else 0.01
    cuts = f"cut_points that double, such as {first}, {2 * first}, {4 * first}"
    named = {"range_max": "the range", "decimal_places": "decimal_places", "cut_points": cuts}
    lacks = [what for key, what in named.items() if declared.get(key) is None]
    # Rows have said where cells end: of 300 ages, cuts would make the mean ten times worse.
    if values.is_shaped and (lacks != [cuts] or usual < MOST):
        lacks = [what for what in lacks if what != cuts]
    remedy = f"Declare {' and '.join(lacks)}, or spend more." if lacks else "Spend more."
    could_look = isinstance(seen.facts.release, Release) and name not in seen.facts.counted
    if not values.is_shaped and could_look and cuts in lacks:
        remedy = f"Let a fit see where rows lie (discovery_share above 0), or d{remedy[1:]}"
    return Finding(float(is_far or is_crowded or is_heavy), remedy=remedy)


def dates_as_numbers(seen: ColumnShares) -> Finding | None:
    """The share of values that lie among the dates of two centuries, written as numbers."""
    column = seen.column
    if column.sdtype != "numerical" or column.decimal_places != 0 or column.increment is not None:
        return None
    values, shares = code_values(column), np.maximum(seen.shares[: seen.column.num_values], 0.0)
    # Hardly any other column lies between the days, or the months, of two centuries alone.
    are_dates = [
        (values.lows >= first) & (values.highs <= last)
        for first, last in ((1900_01_01, 2099_12_31), (1900_01, 2099_12))
    ]
    share = max(float(shares[each].sum()) for each in are_dates)
    return Finding(share / max(float(shares.sum()), seen.error, SOME))


def drowned(seen: ColumnShares) -> Finding | None:
    """The part of the rows that noise moves, unless most rows surely have frequent values."""
    frequent = float(seen.shares[seen.shares > seen.error].sum())
    return None if frequent > MOST else Finding(seen.moved, share(seen.moved))


def rare(seen: ColumnShares) -> Finding | None:
    """The part of the categories that noise hides."""
    if not isinstance(seen.column.cells, Categories):
        return None
    size, labels = seen.column.num_values - (seen.other is not None), code_labels(seen.column)
    rare = np.flatnonzero(seen.shares[:size] < seen.error)
    named = listed([labels[code] for code in rare], 3)
    return Finding(len(rare) / max(size, 1), f"{len(rare)} of {size}: {named}")


def order(facts: PublicFacts) -> Finding | None:
    """Pairs of dates that are in order as far as their noisy table shows.

    Within a cell the rows know of no order: stays would end before they begin.
    """
    known = {frozenset((each.low.name, each.high.name)) for each in facts.schema.differences}
    own = [*facts.columns, *facts.handed]
    dates = {
        each.name: each
        for each in facts.schema.columns
        if each.name in own and each.sdtype == "datetime"
    }
    found = []
    for pair, table in facts.noisy.items():
        if len(pair) != 2 or not dates.keys() >= set(pair) or frozenset(pair) in known:
            continue
        one, other = (dates[name] for name in pair)
        shares = table.counts[: one.num_values, : other.num_values]
        both = max(float(shares.sum()), 1.0)
        shares, error = shares / both, SURE * math.sqrt(table.variance) / both
        margins = [np.maximum(shares.sum(axis=axis), 0.0) for axis in (1, 0)]
        by_chance = np.outer(*(each / max(float(each.sum()), 1.0) for each in margins))
        values = [(each, code_values(each)) for each in (one, other)]
        (low, high), (other_low, other_high) = [_moments(c, v.lows, v.highs) for c, v in values]
        # Where the one surely is earlier, or the other.
        first = np.stack([high[:, None] < other_low, other_high < low[:, None]])
        held, chance = (shares * first).sum(axis=(1, 2)), (by_chance * first).sum(axis=(1, 2))
        errors = error * np.sqrt(first.sum(axis=(1, 2)))
        is_rare = (held < MANY * chance) & (held + errors < MOST * chance) & (chance > MANY)
        if is_rare.any() and abs(held[0] - held[1]) > errors.sum():
            found.append("Inequality({!r}, {!r})".format(*pair[:: 1 if held[0] > held[1] else -1]))
        elif is_rare.any():
            found.append("Inequality(earlier, later) of {!r} and {!r}".format(*pair))
    return Finding(float(len(found)), listed(found))


def contradicted(facts: PublicFacts) -> Finding | None:
    """The part of the rows that surely is in cells where a constraint lets none be, at most.

    Where nearly all have the least difference, its columns may be the other way round, too.
    """
    found, order, lacking = [Finding(0.0)], facts.schema.domain().attributes.index, []
    margins = estimates.margin_estimates(facts.noisy, 1)
    for each in facts.schema.differences:
        table = margins.get((each.name,))
        if table and not {each.low.name, each.high.name} & {*facts.added}:
            both = max(float(table.counts[: each.column.num_values].sum()), 1.0)
            part, error = float(table.counts[0]) / both, SURE * math.sqrt(table.variance) / both
            words = f"{each.low.name!r}, {each.high.name!r} in {share(part)} of the rows"
            found.append(Finding(part - error - (NEARLY_ALL - SOME), words))
    for clique, allowed in (each for rule in facts.rules for each in rule.possible().items()):
        axes = sorted(range(len(clique)), key=lambda axis: order(clique[axis]))
        if table := facts.noisy.get(tuple(clique[axis] for axis in axes)):
            outside = ~allowed.transpose(axes)
            lacking.append((clique, table.counts[outside].sum(), table.variance * outside.sum()))
        if len(clique) == 2 and margins.keys() >= {(name,) for name in clique}:
            # So many rows more have some values of one column than any that go with these.
            (one, other), column = (margins[e,] for e in clique), facts.schema.named[clique[0]]
            last = column.num_values
            for code in range(last):
                own, theirs = one.counts[code:last], other.counts[allowed[code:last].any(axis=0)]
                noise = one.variance * own.size + other.variance * theirs.size
                lacking.append((clique, own.sum() - theirs.sum(), noise))
    # One of all of them is found by chance as seldom as one alone.
    sure = -ndtri(ndtr(-SURE) / max(len(lacking), 1))
    for clique, more, noise in lacking:
        part, error = (float(each) / facts.total.value for each in (more, math.sqrt(noise)))
        words = f"{listed([*map(repr, clique)])} in {share(part)} of the rows"
        found.append(Finding(part - sure * error, words))
    return max(found, key=lambda each: each.value)


def _moments(column: Column, *ticks: np.ndarray) -> list[np.ndarray]:
    return [each.astype(np.int64).astype(f"datetime64[{column.unit}]") for each in ticks]


def unasked(facts: PublicFacts) -> Finding | None:
    """The number of columns of which no answer tells anything."""
    return Finding(len(facts.unasked), listed([*map(repr, facts.unasked)]))


def few_rows(facts: PublicFacts) -> Finding | None:
    """The part of the rows that noise moves in a column's counts, and how many rows would do."""
    columns, rows = facts.columns.values(), facts.total.value
    if not columns:
        return None
    hidden, moved = fmean(seen.error for seen in columns), fmean(seen.moved for seen in columns)
    return Finding(
        moved,
        f"on average noise moves {share(moved)} of {rows:,.0f} in the counts of a column, and "
        f"{share(hidden)} of its values may be missing unseen. From about "
        f"{rounded_up(2 * moved * rows / MANY):,} rows on it moves {share(MANY / 2)}",
    )


def correlations(facts: PublicFacts) -> Finding | None:
    """The part of a correlation that is lost on the way to the rows, on average.

    It is s / (1 + s) if s is the median standard deviation of the noise in the correlations of
    measured tables. A correlation of codes, among rows that have both values, is linear in the
    pair's table, once both are in standard units. In fits of 260 public tables where this is about
    0.23, 0.39 and 0.59, rows lost 0.18, 0.34 and 0.53 (``tests/benchmarks many_tables``).
    """
    squares = {}  # the sum over the codes of the squares of standard units
    for name, seen in facts.columns.items():
        shares = np.maximum(seen.shares[: seen.column.num_values], 0.0)
        top, present = float(shares.max()), 1 - float(seen.shares[-1]) * seen.column.nullable
        if NEARLY_ALL * present < top - seen.error and present < top + math.sqrt(2) * seen.error:
            continue  # one value, as far as is known, has no correlation
        shares, codes = shares / max(float(shares.sum()), 1e-9), np.arange(shares.size)
        codes = np.square(codes - shares @ codes)
        if shares @ codes > 0:
            squares[name] = float(codes.sum() / (shares @ codes))
    found = [
        math.sqrt(table.variance * math.prod(squares[name] for name in clique)) / facts.total.value
        for clique, table in facts.noisy.items()
        if len(clique) == 2 and squares.keys() >= set(clique)
    ]
    noise = median(found) if found else 0.0
    return Finding(noise / (1 + noise), share(noise / (1 + noise)))


def coarse_pairs(facts: PublicFacts) -> Finding | None:
    """The number of pairs that were too many to be measured in full.

    Their groups are of all columns, and those of a listed question of its own.
    """
    assert facts.release is not None
    queries = [each.query for each in facts.release.measurements]
    grouped = [each for each in queries if isinstance(each, GroupedMarginalQuery)]
    of_all = [each.clique for each in grouped if each.grouping.attributes != each.clique]
    pairs = {clique for clique in of_all if len(clique) == 2}
    coarse = pairs - facts.noisy.keys()
    return Finding(float(len(coarse)), f"{len(coarse):,} of {number_of(len(pairs), 'pair')}")


def hidden(facts: PublicFacts) -> Finding | None:
    """The part of the rows that a discovery of ranges cannot have seen."""
    ranged = [
        repr(name)
        for name, seen in facts.columns.items()
        if isinstance(seen.declared, NumberFacts | DateFacts) and seen.declared.lacks_domain
    ]
    rows, names = rows_unseen(facts.ledger), listed(ranged)
    part = rows / facts.total.value if names else 0.0
    few = rows_in(facts.ledger, rounded_up(rows))
    words = f"about {few} ({share(part)}) have when the ranges of {names}"
    return Finding(part, words)
