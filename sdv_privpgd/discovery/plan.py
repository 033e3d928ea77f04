"""Private discovery of what nobody declared: ranges, precisions, categories, and shapes.

Where nothing is declared, numbers and dates are counted on a grid of few cells that is fixed
beforehand. A declared range says where values may lie, not where they do. So both are looked at
more closely where many rows share a cell, as long as that surely shows more, and at last on a fine
grid: its cells hold about equally many rows and are as many as the noise can pay for, values that
many rows share are on their own, and rows beyond a declared range are counted. Of short ranges a
small question counts the rows beyond. Categories are counted as they are and released above a
threshold, then once more, with less noise, where rows have others.
All of it is asked of the curator, so the ledger has it; what is made of the noisy answers is
post-processing. The table is passed on unseen.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from sdv_privpgd.columns.bins import Reals, Ticks
from sdv_privpgd.columns.cuts import MOST_CATEGORIES, USUAL_BINS, column_of
from sdv_privpgd.columns.differences import Difference
from sdv_privpgd.columns.facts import CategoryFacts, ColumnFacts, DateFacts, NumberFacts, TruthFacts
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.columns.vocabulary import words_of
from sdv_privpgd.discovery.density import CLEAR, HINT, LIGHT, MANY, Density
from sdv_privpgd.discovery.first_queries import (
    LOOK_SHARE,
    SIZES,
    FirstQueries,
    Values,
    categories,
    frequencies,
    square_of,
)
from sdv_privpgd.discovery.out_of_range import (
    OutOfRange,
    out_of_range,
    part_for_short,
    whole_out_of_range,
)
from sdv_privpgd.discovery.ranges import SINGLE, Rough, edges_of, looked_into
from sdv_privpgd.discovery.transcript import Inquiry
from sdv_privpgd.estimate.noisy_tables import NoisyTable, Total, estimate_total
from sdv_privpgd.estimate.support import FINE_GRIDS
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import Measurement

CLOSER = "where rows lie, more closely"
"""What the ledger says of the looks after the first one."""

BEYOND = "rows beyond short declared ranges"
"""And of the small question about those that are not looked into."""

SPREAD = 2.0
"""About so many times as many rows may be missed if they are of very different sizes: they are
counted in several cells, each with its own noise."""


class Discovery(NamedTuple):
    """What was found of each column, but for what was declared besides its range. Public.

    ``diagnostics`` are to be said of columns whose range did not stand out from the noise, or
    beyond whose declared range many rows lie. The number of rows is that of fine grids, and noisy.
    """

    facts: dict[str, ColumnFacts]
    diagnostics: dict[str, str]
    num_rows: float | None = None


def worth_a_look(
    known: Mapping[str, ColumnFacts], num_bins: int = USUAL_BINS
) -> dict[str, ColumnFacts]:
    """The facts on each column that discovery should look into, without increments.

    These are columns without a domain, and those whose domain is so large that it matters where in
    it rows lie: many categories, or a range of more values than cells.
    """
    return {
        name: replace(facts, increment=None) if isinstance(facts, NumberFacts) else facts
        for name, facts in known.items()
        if facts.lacks_domain or _is_shapeless(name, facts, num_bins)
    }


def discover(
    inquiry: Inquiry,
    undeclared: Mapping[str, ColumnFacts],
    share: Fraction,
    *,
    for_categories: Fraction = Fraction(0),
    short: Mapping[str, ColumnFacts] = MappingProxyType({}),
    require: Callable[[Values, Measurement], None] | None = None,
) -> Discovery:
    """What takes the place of a declaration, or goes with it. Public.

    Privacy: these shares of the ledger's budget at most, ``part_for_short`` of it beside that, and
    ``reserved_delta``, which it must have kept.

    Args:
        inquiry: Into the private columns. Answers of a discovery that ended early are used again.
        undeclared: For each column to look into what is known of it.
        share: Of the budget, for all columns together.
        for_categories: Beside that, of the budget, for columns whose categories are not declared.
        short: What is declared of other columns of numbers and dates, beyond whose ranges rows
            are counted.
        require: Is told of the categories and the number of rows once they are found; may raise.
    """
    if not undeclared and not short:
        return Discovery({}, {})
    ledger = inquiry.shared.ledger
    first = FirstQueries(undeclared, ledger, share, for_categories)
    seen = first.ask(inquiry, require)
    others = [name for name in undeclared if name not in first.asks["categories"]]
    rough = {name: seen.rough.get(name, Rough(undeclared[name])) for name in others}
    rough, left = _closer(inquiry, rough, undeclared, seen.left)
    facts: dict[str, ColumnFacts] = {
        name: categories(undeclared[name], each) for name, each in seen.categories.items()
    }
    diagnostics = {
        name: _diagnostic(name, each.known)
        for name, each in seen.rough.items()
        if not each.is_clear
    }
    stddev = _noise(left / max(len(rough), 1), ledger)
    fine = {
        name: out_of_range(name, each.cut(stddev, undeclared[name]), undeclared[name], at_last=True)
        for name, each in rough.items()
    }
    whole = {name: whole_out_of_range(name, each) for name, each in short.items()}
    # One number without a precision has no room beyond it.
    apart = {name: each for name, each in whole.items() if each.declared}
    fences = {**fine, **apart}
    if not fences:
        return Discovery(facts, diagnostics)
    schema = Schema(tuple(each.column for each in fences.values()))
    asker, paid = inquiry.about(schema, inquiry.progress), part_for_short(len(apart))
    counted = asker.tables(fine, left, FINE_GRIDS)
    answers = {**counted, **asker.tables(apart, ledger.budget * paid, BEYOND)}
    rows, domain = inquiry.rows, schema.domain()
    known_total = Total(max(rows or 0.0, 1.0), 0.0)
    total = estimate_total(domain, [*answers.values()]) if rows is None else known_total
    for name, fence in fences.items():
        answer, likely = answers[name], fence.groups(answers[name], total)
        if said := fence.sentences(likely, total):
            diagnostics[name] = " ".join([*filter(None, [diagnostics.get(name)]), *said])
        fence = fence.opened(likely.clear)
        own = undeclared.get(name) if name in rough else None
        if isinstance(own, CategoryFacts):
            facts[name] = frequencies(own, answer)
        elif isinstance(own, NumberFacts | DateFacts):
            held = None if own.lacks_domain else fence.groups(answer).held(total)
            counts = fence.counted(answer, likely.clear)
            facts[name] = looked_into(fence.inner, counts, own, rough[name], held)
    return Discovery(
        facts, diagnostics, estimate_total(domain, [*counted.values()]).value if counted else None
    )


def rows_unseen(ledger: PrivacyLedger) -> float:
    """The number of rows beyond found ranges that would not be clear; 0 where none was found."""
    asked = (each.stddev for each in ledger.charges if each.what in (SIZES, FINE_GRIDS))
    return CLEAR * max(asked, default=0.0) / ledger.units


def part_for_shapes(number: int, others: int) -> Fraction:
    """The part of discovery's budget for so many differences, beside other columns.

    One has twice that of a column: a tail is thin.
    """
    return Fraction(2 * number, max(2 * number + others, 1))


def find_shapes(
    inquiry: Inquiry, differences: Sequence[Difference], mu_squared: Fraction
) -> dict[str, tuple[float, ...]]:
    """How frequent each cell of differences is, of those that are not lost in noise. Public.

    Privacy: sqrt(mu_squared)-GDP, for all ``differences`` together. A difference follows from a
    row's own cells, so a neighbor changes one cell of each table of counts by one, or two, as for
    any other column.
    """
    if not differences or not mu_squared:
        return {}
    asker, found = inquiry.about(Schema((), tuple(differences))), {}
    names = [difference.name for difference in differences]
    answers = asker.tables(names, mu_squared, f"sizes of {', '.join(map(repr, names))}")
    for name, column in ((each.name, each.column) for each in differences):
        counts = answers[name].answer[: column.num_values].astype(np.float64)
        noisy = NoisyTable(counts, answers[name].stddev ** 2)
        if (often := _frequencies(Density.of(edges_of(column), noisy))) is not None:
            found[name] = tuple(often.tolist())
    return found


def _frequencies(density: Density) -> np.ndarray | None:
    """The rows of each cell, none where too few can be; None if noise is all there is.

    The large end goes as far as half a row may lie: all means would show the noise of a code of
    very large differences.
    """
    if not density.clear:
        return None
    frequent = density.rows()
    beyond = np.cumsum(frequent[::-1])[::-1]
    return np.where(beyond > 0.5, np.maximum(frequent, frequent.max() * LIGHT), 0.0)


def _is_shapeless(name: str, facts: ColumnFacts, num_bins: int) -> bool:
    """Whether a domain has more values than cells, and nothing says where in it rows lie."""
    if isinstance(facts, CategoryFacts):
        return facts.frequencies is None and len(facts.values or ()) > MOST_CATEGORIES
    if isinstance(facts, TruthFacts) or facts.cuts is not None:
        return False
    cells = column_of(name, facts, num_bins).cells
    if isinstance(cells, Ticks):
        return cells.last - cells.first >= len(cells)
    return isinstance(cells, Reals) and cells.low < cells.high


def _closer(
    inquiry: Inquiry,
    rough: dict[str, Rough],
    declared: Mapping[str, ColumnFacts],
    budget: Fraction,
) -> tuple[dict[str, Rough], Fraction]:
    """What is known of where rows lie after closer looks, and what is left of the budget.

    A column is looked at again as long as some of its cells surely have many rows. It costs no more
    than it takes to see a hint of the rows of one part, of which ``MANY`` squared hold all. The
    last cells follow from what was seen. ``shapes`` at 20,000 rows had KS 0.015 for five kinds of
    narrow columns with noise of a 32nd of all rows, 0.008 with a 128th and 0.011 with a 256th.
    """
    most_looks = 12  # so many find days among all nanoseconds
    rough, rows, ledger = dict(rough), inquiry.rows, inquiry.shared.ledger
    enough = 1 if rows is None else max(int(rows / (MANY**2 * HINT)), 1)
    for _ in range(most_looks):
        part = budget * LOOK_SHARE / max(len(rough), 1)
        noise = max(_noise(part, ledger), enough)
        looks = {name: _next_look(name, rough[name], declared[name], rows, noise) for name in rough}
        asked = {name: column for name, column in looks.items() if column is not None}
        if not asked:
            break
        asker = inquiry.about(Schema(tuple(each.column for each in asked.values())))
        part = min(part, Fraction(square_of(ledger), enough**2)) * len(asked)
        budget -= part
        for name, answer in asker.tables(asked, part, CLOSER).items():
            density = Density.of(*asked[name].seen(answer), rough[name].density)
            rough[name] = rough[name]._replace(density=density)
    return {name: each.thinned for name, each in rough.items()}, budget


def _noise(part: Fraction, ledger: PrivacyLedger) -> float:
    """The standard deviation of the counts of a column's cells, in rows."""
    return math.sqrt(square_of(ledger) / part) if part else math.inf


def _next_look(
    name: str, rough: Rough, known: ColumnFacts, rows: int | None, stddev: float
) -> OutOfRange | None:
    """The column in the cells of its next closer look; ``None`` if it needs none."""
    facts = rough.closer(rows, stddev)
    if facts is None:
        return None
    found = out_of_range(name, facts, known)
    before = 1 if rough.density is None else len(rough.density.counts)
    return found if before < found.inner.num_values <= SINGLE else None


def _diagnostic(name: str, known: ColumnFacts) -> str:
    words = words_of(known)
    return (
        f"No range of {name!r} stood out from the noise: it was taken to be at most "
        f"{words['range_min']} to {words['range_max']}. Declare it, or allow a larger epsilon."
    )
