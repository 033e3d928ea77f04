"""Private discovery of what nobody declared: ranges, precisions, categories, and shapes.

It is paid from the same budget. Where nothing is declared, numbers and dates are counted on a grid
of few cells that is fixed beforehand. A declared range says where values may lie, not where they
do. So both are looked at more closely where many rows share a cell, as long as that surely shows
more, and at last on a fine grid: its cells hold about equally many rows and are as many as the
noise can pay for, values that many rows share are on their own, and rows beyond a declared range
are counted. Of short declared ranges that are not looked into, a small question counts the rows
beyond. Categories are counted as they are and released above a threshold, then once more, with less
noise, where rows have others.
All of it is asked of the curator, so the ledger has it; what is made of the noisy answers is
post-processing. The table is passed on unseen.
"""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.cutting import can_write, column_of
from sdv_privpgd.columns.facts import CategoryFacts, ColumnFacts, DateFacts, NumberFacts
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.columns.wording import words_of
from sdv_privpgd.discovery.categories import Values, categories, frequencies
from sdv_privpgd.discovery.density import CLEAR, HINT, MANY
from sdv_privpgd.discovery.first_look import SIZES, Seen, first_look, least_rows
from sdv_privpgd.discovery.looks import LOOK_SHARE, SINGLE, Look, look_into
from sdv_privpgd.discovery.outside import Fenced, fenced, fenced_whole, part_for_short
from sdv_privpgd.discovery.ranges import Rough, looked_into
from sdv_privpgd.discovery.transcript import Asker, Transcript
from sdv_privpgd.estimate.noisy_tables import Total, estimate_total
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.ledger import Books, PrivacyLedger
from sdv_privpgd.privacy.queries import MarginalQuery, Measurement

_DELTA_SHARE = Fraction(1, 30)
"""Part of delta that is kept for each question with a threshold; three cost less than 1 % of
noise."""

FINE_GRIDS = "values of columns on fine grids"
"""What the ledger says of the last look at where numbers lie."""

CLOSER = "where rows lie, more closely"
"""And of those before it."""

BEYOND = "rows beyond short declared ranges"
"""And of the small question about those that are not looked into."""

_FIRST_SHARE = Fraction(1, 2)
"""Part of discovery's budget that the first look takes. A fifth to three fifths gave errors, over
3 seeds, within 4 % of each other on Adult and within 10 % on Bank."""


class Discovery(NamedTuple):
    """What was found. Public.

    Attributes:
        facts: What was found of each column; what was declared of it, but for its range, is not
            said again.
        doubts: For each column whose range did not stand out from the noise, or beyond whose
            declared range many rows lie, what is to be said of it.
        num_rows: The noisy number of rows, where fine grids were counted.
    """

    facts: dict[str, ColumnFacts]
    doubts: dict[str, str]
    num_rows: float | None = None


def reserved_delta(undeclared: Mapping[str, ColumnFacts], delta: float) -> Fraction:
    """The part of delta that discovery needs for the thresholds."""
    return Fraction(delta) * _DELTA_SHARE * _thresholds(_looks(undeclared))


def discover(
    table: PrivateTable,
    undeclared: Mapping[str, ColumnFacts],
    books: Books,
    share: Fraction,
    *,
    for_categories: Fraction = Fraction(0),
    short: Mapping[str, ColumnFacts] = MappingProxyType({}),
    transcript: Transcript | None = None,
    require: Callable[[Values, Measurement], None] | None = None,
    progress: Progress = silent,
) -> Discovery:
    """What takes the place of a declaration, or goes with it. Public.

    Privacy: these shares of the ledger's budget at most, ``part_for_short`` of it beside that, and
    ``reserved_delta``, which it must have kept.

    Args:
        table: The private columns.
        undeclared: For each column to look into what is known of it: perhaps its precision or its
            format; or its range or its categories, if it is to find where in it rows lie.
        books: Of the fit.
        share: Of the budget, for all columns together. A first look at all of them finds what is
            frequent and how large numbers are; the second is at what that left open.
        for_categories: Beside that, of the budget, for columns whose categories are not declared.
        short: What is declared of columns of numbers and dates that are not looked into. It is
            counted how many rows lie beyond their ranges.
        transcript: Gets the answers, and has those of a discovery that ended early.
        require: Is told of the categories that were found, and of the number of rows, once they
            are, and may raise.
        progress: Told of the measurements.
    """
    if not undeclared and not short:
        return Discovery({}, {})
    looks, known = _looks(undeclared), Transcript() if transcript is None else transcript
    budget = books.ledger.budget * share
    delta = _delta_each(looks, books.ledger)
    measured = {name: look for name, look in looks.items() if "categories" not in look.asks}
    first, spare = budget * _FIRST_SHARE, books.ledger.budget * for_categories
    rest = _rest_for_categories(looks, budget, spare)
    seen = Seen({}, {}, Fraction(0), Fraction(0))
    if any(look.asks for look in looks.values()):
        seen = first_look(
            table,
            looks,
            books,
            first,
            rest,
            delta,
            transcript=known,
            require=require,
            progress=progress,
        )
    # The tables have what is left of the spare part.
    left = budget - seen.cost - max(seen.for_categories - spare, 0)
    facts: dict[str, ColumnFacts] = {
        name: categories(_categories(looks[name]), values)
        for name, values in seen.categories.items()
    }
    doubts = {
        name: _doubt(name, each.known) for name, each in seen.rough.items() if not each.is_clear
    }
    rough = {name: seen.rough.get(name, Rough(look.known)) for name, look in measured.items()}
    rough, left = _closer(table, rough, measured, books, left, known, progress)
    stddev = _noise(left / max(len(measured), 1), books)
    fine = {
        name: fenced(_fine(name, each.cut(stddev)), measured[name].known, each.known)
        for name, each in rough.items()
    }
    whole = {name: fenced_whole(name, each) for name, each in short.items()}
    # One number without a precision has no room beyond it.
    apart = {name: each for name, each in whole.items() if each.declared}
    fences = {**fine, **apart}
    if not fences:
        return Discovery(facts, doubts)
    schema = Schema(tuple(each.column for each in fences.values()))
    asker = known.asking(lambda: table.curator(schema, books, progress=progress), books)
    paid = books.ledger.budget * part_for_short(len(apart))
    counted = _counted(asker, fine, left, FINE_GRIDS, progress)
    answers = {**counted, **_counted(asker, apart, paid, BEYOND, progress)}
    rows, domain = table.known_rows(books.ledger.adjacency), schema.domain()
    total = (
        estimate_total(domain, [*answers.values()]) if rows is None else Total(max(rows, 1.0), 0.0)
    )
    groups = {name: each.groups(answers[name]) for name, each in fences.items()}
    likely = {name: each.given(total) for name, each in groups.items()}
    clear = {name: each.clear for name, each in likely.items()}
    for name, each in fences.items():
        said = each.sentences(likely[name], total)
        if said:
            doubts[name] = " ".join([*([doubts[name]] if name in doubts else []), *said])
    for name, look in measured.items():
        answer, fence = answers[name], fences[name]
        facts[name] = (
            frequencies(look.known, answer)
            if isinstance(look.known, CategoryFacts)
            else looked_into(
                fence.inner,
                fence.counted(answer, clear[name]),
                look,
                rough[name],
                groups[name].held(total) if look.has_range else None,
            )
        )
    return Discovery(
        facts,
        doubts,
        estimate_total(domain, [*counted.values()]).value if counted else None,
    )


def rows_needed(
    undeclared: Mapping[str, ColumnFacts],
    ledger: PrivacyLedger,
    share: Fraction,
    for_categories: Fraction,
) -> dict[str, int]:
    """Returns how many rows must share a category, or lie in a range, for it to be found. Public.

    Args:
        undeclared: As ``discover`` takes it.
        ledger: The empty books of the fit.
        share: As ``discover`` takes it.
        for_categories: As ``discover`` takes it.
    """
    looks, budget = _looks(undeclared), ledger.budget * share
    if not any(look.known.lacks_domain for look in looks.values()):
        return {}
    rest = _rest_for_categories(looks, budget, ledger.budget * for_categories)
    return least_rows(looks, ledger, budget * _FIRST_SHARE, rest, _delta_each(looks, ledger))


def _delta_each(looks: Mapping[str, Look], ledger: PrivacyLedger) -> Fraction:
    """What each question with a threshold has of delta.

    A strategy may have a part of what is reserved, which is not to be used up here.
    """
    each = ledger.reserved / max(_thresholds(looks), 1)
    return min(each, Fraction(ledger.delta) * _DELTA_SHARE)


def _rest_for_categories(looks: Mapping[str, Look], budget: Fraction, spare: Fraction) -> Fraction:
    """What categories have of the budget beside their part of the first look."""
    share = Fraction(sum("categories" in look.asks for look in looks.values()), max(len(looks), 1))
    return budget * (1 - _FIRST_SHARE) * share + spare


def _looks(undeclared: Mapping[str, ColumnFacts]) -> dict[str, Look]:
    return {name: look_into(name, known) for name, known in undeclared.items()}


def _categories(look: Look) -> CategoryFacts:
    assert isinstance(look.known, CategoryFacts)
    return look.known


def _thresholds(looks: Mapping[str, Look]) -> int:
    """How many questions have a threshold, at most: categories are looked at twice."""
    asks = {ask for look in looks.values() for ask in look.asks}
    return ("numbers" in asks) + 2 * ("categories" in asks)


def _closer(
    table: PrivateTable,
    rough: dict[str, Rough],
    looks: Mapping[str, Look],
    books: Books,
    budget: Fraction,
    known: Transcript,
    progress: Progress,
) -> tuple[dict[str, Rough], Fraction]:
    """What is known of where rows lie after closer looks, and what is left of the budget.

    A column is looked at again as long as some of its cells surely have many rows. It costs no more
    than it takes to see a hint of the rows of one part, of which ``MANY`` squared hold all. The
    last cells follow from what was seen. ``shapes`` at 20,000 rows had KS 0.015 for five kinds of
    narrow columns with noise of a 32nd of all rows, 0.008 with a 128th and 0.011 with a 256th.
    """
    most_looks = 12  # so many find days among all nanoseconds
    rough, rows = dict(rough), table.known_rows(books.ledger.adjacency)
    enough = 1 if rows is None else max(int(rows / (MANY**2 * HINT)), 1)
    for _ in range(most_looks):
        part = budget * LOOK_SHARE / max(len(looks), 1)
        noise = max(_noise(part, books), enough)
        asked = {
            name: column
            for name, each in rough.items()
            if isinstance(each.known, NumberFacts | DateFacts)
            and (column := _next_look(name, each, looks[name].known, rows, noise)) is not None
        }
        if not asked:
            break
        schema = Schema(tuple(each.column for each in asked.values()))
        asker = known.asking(partial(table.curator, schema, books), books)
        part = min(part, Fraction(_squared(books), enough**2)) * len(asked)
        budget -= part
        for name, answer in _counted(asker, asked, part, CLOSER, progress).items():
            rough[name] = rough[name].seen(*asked[name].seen(answer))
    return rough, budget


def _squared(books: Books) -> int:
    """The square of what a row, or a person, changes the counts of a column's cells by."""
    ledger = books.ledger
    return ledger.rows_counted**2 * MarginalQuery(("",)).l2_sensitivity_squared(ledger.adjacency)


def _noise(part: Fraction, books: Books) -> float:
    """The standard deviation of the counts of a column's cells, in rows."""
    return math.sqrt(_squared(books) / part) if part else math.inf


def _next_look(
    name: str, rough: Rough, known: ColumnFacts, rows: int | None, stddev: float
) -> Fenced | None:
    """The column in the cells of its next closer look; ``None`` if it needs none."""
    facts = rough.closer(rows, stddev)
    if facts is None or not getattr(facts, "cuts", None):
        return None
    found = fenced(_fine(name, facts), known, facts)
    before = 1 if rough.density is None else len(rough.density.counts)
    return found if before < found.inner.num_values <= SINGLE else None


def _counted(
    asker: Asker, names: Collection[str], mu_squared: Fraction, what: str, progress: Progress
) -> dict[str, Measurement]:
    """The counts of the cells of some columns, of equal parts of the budget."""
    if not names:
        return {}
    queries = [MarginalQuery((name,)) for name in names]
    found = asker.measure(queries, mu_squared, what=what, progress=progress)
    return dict(zip(names, found, strict=True))


def _doubt(name: str, known: ColumnFacts) -> str:
    words = words_of(known)
    return (
        f"No range of {name!r} stood out from the noise: it was taken to be at most "
        f"{words['range_min']} to {words['range_max']}. Declare it, or allow a larger epsilon."
    )


def _fine(name: str, known: ColumnFacts) -> Column:
    """A column on the fine grid; without a format that cannot write all of its dates."""
    if isinstance(known, NumberFacts | DateFacts):
        known = replace(known, num_bins=SINGLE)
    known = replace(known, nullable=True)
    column = column_of(name, known)
    if isinstance(known, DateFacts) and not can_write(column):
        column = column_of(name, replace(known, datetime_format=None, aware=known.utc))
    return replace(column, merging=None)


SPREAD = 2.0
"""About so many times as many rows may be missed if they are of very different sizes: they are
counted in several cells, each with its own noise."""


def rows_unseen(ledger: PrivacyLedger) -> float:
    """The number of rows beyond found ranges that would not be clear; 0 where none was found."""
    asked = (each.stddev for each in ledger.charges if each.what in (SIZES, FINE_GRIDS))
    return CLEAR * max(asked, default=0.0) / ledger.units
