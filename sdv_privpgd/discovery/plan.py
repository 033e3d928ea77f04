"""Private discovery of what nobody declared: ranges, precisions, categories, and shapes.

It is paid from the same budget. Where nothing is declared, numbers and dates are counted on a grid
that is fixed beforehand, coarsely and finely, then on a finer one over the part of it that holds
rows. A declared range says where values may lie, not where they do: it gets the finer grid as well,
so that its cells hold about equally many rows and values that many rows share are on their own, and
rows beyond it are counted; where no first look was needed, a few even parts of it are counted too.
Categories are counted as they are and released above a threshold,
then once more, with less noise, where many rows have others. All of it is asked of the curator, so
the ledger has it; what is made of the noisy answers is post-processing. The table is passed on
unseen.
"""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.cutting import can_write, column_of
from sdv_privpgd.columns.facts import CategoryFacts, ColumnFacts, DateFacts, NumberFacts
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.columns.wording import words_of
from sdv_privpgd.discovery.even_parts import (
    PARTS_SHARE,
    Counted,
    EvenParts,
    has_even_parts,
)
from sdv_privpgd.discovery.first_look import FirstLook, has_others
from sdv_privpgd.discovery.looks import SINGLE, Look, look_into
from sdv_privpgd.discovery.outside import Beyond, fenced
from sdv_privpgd.discovery.ranges import Rough, categories, frequencies, looked_into
from sdv_privpgd.discovery.transcript import Asker, Transcript
from sdv_privpgd.estimate.noisy_tables import estimate_total
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.ledger import Books
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.privacy.queries import MarginalQuery
from sdv_privpgd.progress import Progress, silent

_DELTA_SHARE = Fraction(1, 30)
"""Part of delta that is kept for each question with a threshold; three cost less than 1 % of
noise."""

SIZES, FINE_GRIDS = "sizes of numbers and dates", "values of columns on fine grids"
"""What the ledger says of the measurements of where numbers lie: of the first and second look."""

EVEN_PARTS = "even parts of declared ranges"
"""And of those that go with the second look."""

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
        beyond: What lies beyond the declared ranges of columns.

    >>> from sdv_privpgd.columns.facts import NumberFacts
    >>> Discovery(facts={"age": NumberFacts(low=0, high=99)}, doubts={}).facts["age"].high
    99
    """

    facts: dict[str, ColumnFacts]
    doubts: dict[str, str]
    num_rows: float | None = None
    beyond: tuple[Beyond, ...] = ()


class _Others(NamedTuple):
    """Columns of which many rows have values that were not found, and who can be asked again."""

    asker: Asker
    names: list[str]


def reserved_delta(undeclared: Mapping[str, ColumnFacts], delta: float) -> Fraction:
    """The part of delta that discovery needs for the thresholds.

    >>> from sdv_privpgd.columns.facts import CategoryFacts
    >>> float(reserved_delta({"job": CategoryFacts()}, 1e-5)) < 1e-6
    True
    """
    return Fraction(delta) * _DELTA_SHARE * _thresholds(_looks(undeclared))


def discover(
    table: PrivateTable,
    undeclared: Mapping[str, ColumnFacts],
    books: Books,
    share: Fraction,
    *,
    transcript: Transcript | None = None,
    progress: Progress = silent,
) -> Discovery:
    """What takes the place of a declaration, or goes with it. Public.

    Privacy: ``share`` of the ledger's budget at most, and ``reserved_delta``, which it must have
    kept.

    Args:
        table: The private columns.
        undeclared: For each column to look into what is known of it: perhaps its precision or its
            format; or its range or its categories, if it is to find where in it rows lie.
        books: Of the fit.
        share: Of the budget, for all columns together. A first look at all of them finds what is
            frequent and how large numbers are; the second is at what that left open.
        transcript: Gets the answers, and has those of a discovery that ended early.
        progress: Told of the measurements.

    >>> import pandas as pd
    >>> from sdv_privpgd.columns.facts import CategoryFacts
    >>> from sdv_privpgd.privacy.ledger import PrivacyLedger
    >>> from sdv_privpgd.privacy.queries import Adjacency
    >>> jobs = {"job": CategoryFacts()}
    >>> table = PrivateTable({"job": pd.Series(["nurse", "clerk"] * 5_000)})
    >>> kept = reserved_delta(jobs, 1e-5)
    >>> books = Books(PrivacyLedger.open(1.0, 1e-5, Adjacency.REPLACE_ONE, reserved=kept))
    >>> found = discover(table, jobs, books, Fraction(1, 2))
    >>> "nurse" in found.facts["job"].values
    True
    """
    if not undeclared:
        return Discovery({}, {})
    looks, known = _looks(undeclared), Transcript() if transcript is None else transcript
    budget = books.ledger.budget * share
    # A strategy may have a part of what is reserved, which is not to be used up here.
    delta = books.ledger.reserved / max(_thresholds(looks), 1)
    delta = min(delta, Fraction(books.ledger.delta) * _DELTA_SHARE)
    rough, found, others, left = _first(table, looks, books, budget, delta, known, progress)
    measured = {name: look for name, look in looks.items() if "categories" not in look.asks}
    if others:
        part = left * len(others.names) / (len(others.names) + len(measured))
        left -= part
        what = "rarer categories of undeclared columns"
        more = others.asker.discover(part, delta, what=what, names=others.names)
        found |= {name: [*found[name], *values] for name, values in more.items()}
    facts: dict[str, ColumnFacts] = {
        name: categories(_categories(looks[name]), values) for name, values in found.items()
    }
    doubts = {name: _doubt(name, each.known) for name, each in rough.items() if not each.is_clear}
    if not measured:
        return Discovery(facts, doubts)
    rough = {name: rough.get(name, Rough(look.known)) for name, look in measured.items()}
    fine = {
        name: fenced(_fine(name, each.known), looks[name].known, each.known)
        for name, each in rough.items()
    }
    schema = Schema(tuple(each.column for each in fine.values()))
    asker = known.asking(lambda: table.curator(schema, books, progress=progress), books)
    domain = schema.domain()
    parts = {
        name: EvenParts.of(each)
        for name, each in fine.items()
        if rough[name].counts is None and has_even_parts(each)
    }
    answers, counted = _fine_answers(asker, list(fine), parts, left, progress)
    beyond = [each.beyond(answer) for each, answer in zip(fine.values(), answers, strict=True)]
    for (name, each), answer in zip(fine.items(), answers, strict=True):
        look = looks[name]
        facts[name] = (
            frequencies(look.known, answer)
            if isinstance(look.known, CategoryFacts)
            else looked_into(each.inner, each.counted(answer), look, rough[name], counted.get(name))
        )
        said = each.sentences(answer)
        if said:
            doubts[name] = " ".join([*([doubts[name]] if name in doubts else []), *said])
    return Discovery(
        facts,
        doubts,
        estimate_total(domain, answers).value,
        tuple(each for each in beyond if each is not None),
    )


def _looks(undeclared: Mapping[str, ColumnFacts]) -> dict[str, Look]:
    return {name: look_into(name, known) for name, known in undeclared.items()}


def _categories(look: Look) -> CategoryFacts:
    assert isinstance(look.known, CategoryFacts)
    return look.known


def _thresholds(looks: Mapping[str, Look]) -> int:
    """How many questions have a threshold, at most: categories are looked at twice."""
    asks = {ask for look in looks.values() for ask in look.asks}
    return ("numbers" in asks) + 2 * ("categories" in asks)


def _first(
    table: PrivateTable,
    looks: Mapping[str, Look],
    books: Books,
    budget: Fraction,
    delta: Fraction,
    known: Transcript,
    progress: Progress,
) -> tuple[dict[str, Rough], dict[str, list], _Others | None, Fraction]:
    """What the first look found of numbers and dates; frequent categories; columns with others.

    And what is left of the budget.
    """
    if not any(look.asks for look in looks.values()):
        return {}, {}, None, budget
    part = budget * _FIRST_SHARE
    look = FirstLook.at(table, looks)
    asker = known.asking(lambda: table.first_look(look.readings, books, progress), books)
    rows = look.rows(asker, part)
    found = look.values(asker, part, delta, "categories", "categories of undeclared columns")
    names = [name for name, each in found.items() if has_others(each, asker.stddev, rows)]
    numbers = look.values(asker, part, delta, "numbers", "numbers that many rows share")
    answers = {
        **look.measured(asker, part, ("coarse", "grid"), SIZES, progress),
        **look.measured(asker, part, ("precision",), "precisions of numbers and dates", progress),
    }
    others = _Others(asker, names) if names else None
    return look.rough(answers, rows, numbers), found, others, budget - part


def _fine_answers(
    asker: Asker,
    names: list[str],
    parts: Mapping[str, EvenParts],
    budget: Fraction,
    progress: Progress,
) -> tuple[list[Measurement], dict[str, Counted]]:
    """The counts of the columns' fine cells, and of the even parts of those that have any.

    Each column has the same part of the budget.
    """
    each = budget / len(names)
    plain = [name for name in names if name not in parts]
    answers: dict[str, Measurement] = {}
    for asked, share in ((plain, Fraction(1)), (list(parts), 1 - PARTS_SHARE)):
        if asked:
            queries = [MarginalQuery((name,)) for name in asked]
            paid = each * len(asked) * share
            found = asker.measure(queries, paid, what=FINE_GRIDS, progress=progress)
            answers |= zip(asked, found, strict=True)
    counted: dict[str, Counted] = {}
    if parts:
        queries = [part.query for part in parts.values()]
        paid = each * len(parts) * PARTS_SHARE
        found = asker.measure(queries, paid, what=EVEN_PARTS, progress=progress)
        for part, answer in zip(parts.values(), found, strict=True):
            counted[part.name] = part.within(answer)
    return [answers[name] for name in names], counted


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
