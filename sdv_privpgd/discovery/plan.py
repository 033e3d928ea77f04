"""Private discovery of what nobody declared: ranges, precisions, categories, and shapes.

It is paid from the same budget. Where nothing is declared, numbers and dates are counted on a grid
that is fixed beforehand, coarsely and finely, then on a finer one over the part of it that holds
rows. A declared range says where values may lie, not where they do: it gets the finer grid as well,
so that its cells hold about equally many rows and values that many rows share are on their own.
Categories are counted as they are and released above a threshold, then once more, with less noise,
where many rows have others. All of it is asked of the curator, so the ledger has it; what is
made of the noisy answers is post-processing. The table is passed on unseen.
"""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import pandas as pd

from sdv_privpgd.columns.bins import Categories
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.dates import has_zone
from sdv_privpgd.columns.parsing import describe
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.discovery.first_look import FirstLook, has_others
from sdv_privpgd.discovery.looks import SINGLE, Look, look_into
from sdv_privpgd.discovery.ranges import Rough, categories, frequencies, looked_into
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.ledger import Books
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.privacy.queries import MarginalQuery
from sdv_privpgd.progress import Progress, silent

_DELTA_SHARE = Fraction(1, 30)
"""Part of delta that is kept for each question with a threshold; three cost less than 1 % of
noise."""

_FIRST_SHARE = Fraction(1, 2)
"""Part of discovery's budget that the first look takes. A fifth to three fifths gave errors, over
3 seeds, within 4 % of each other on Adult and within 10 % on Bank."""

_NOT_LOOKED = Rough({})
"""Of a column that the first look left out."""

_FORMATTED = ("datetime_format", "range_min", "range_max")
"""What is no longer known of dates whose format is given up."""


class Discovery(NamedTuple):
    """What was found. Public.

    Attributes:
        facts: What takes the place of a declaration of each column, in SDV's words.
        doubts: For each column whose range did not stand out from the noise a sentence on it.

    >>> Discovery(facts={"age": {"range_min": 0, "range_max": 99}}, doubts={}).facts
    {'age': {'range_min': 0, 'range_max': 99}}
    """

    facts: dict[str, dict]
    doubts: dict[str, str]


class _Others(NamedTuple):
    """Columns of which many rows have values that were not found, and who can be asked again."""

    curator: Curator
    names: list[str]


def reserved_delta(undeclared: Mapping[str, Mapping], delta: float) -> Fraction:
    """The part of delta that discovery needs for the thresholds.

    >>> float(reserved_delta({"job": {"sdtype": "categorical"}}, 1e-5)) < 1e-6
    True
    """
    return Fraction(delta) * _DELTA_SHARE * _thresholds(_looks(undeclared))


def without_domain(undeclared: Mapping[str, Mapping]) -> list[str]:
    """The columns of which neither a range nor the categories are declared.

    >>> without_domain({"job": {"sdtype": "categorical"}, "age": {"sdtype": "numerical"}})
    ['job', 'age']
    """
    return [name for name, look in _looks(undeclared).items() if not look.has_domain]


def discover(
    table: PrivateTable,
    undeclared: Mapping[str, Mapping],
    books: Books,
    share: Fraction,
    *,
    progress: Progress = silent,
) -> Discovery:
    """What takes the place of a declaration, or goes with it. Public.

    Privacy: ``share`` of the ledger's budget at most, and ``reserved_delta``, which it must have
    kept.

    Args:
        table: The private columns.
        undeclared: For each column to look into what is known of it, in SDV's words: its sdtype,
            and perhaps its ``decimal_places`` or ``datetime_format``; or its range or
            ``range_values``, if it is to find where in it rows lie.
        books: Of the fit.
        share: Of the budget, for all columns together. A first look at all of them finds what is
            frequent and how large numbers are; the second is at what that left open.
        progress: Told of the measurements.

    >>> import pandas as pd
    >>> from sdv_privpgd.privacy.ledger import PrivacyLedger
    >>> from sdv_privpgd.privacy.queries import Adjacency
    >>> jobs = {"job": {"sdtype": "categorical"}}
    >>> table = PrivateTable({"job": pd.Series(["nurse", "clerk"] * 5_000)})
    >>> kept = reserved_delta(jobs, 1e-5)
    >>> books = Books(PrivacyLedger.open(1.0, 1e-5, Adjacency.REPLACE_ONE, reserved=kept))
    >>> found = discover(table, jobs, books, Fraction(1, 2))
    >>> "nurse" in found.facts["job"]["range_values"]
    True
    """
    if not undeclared:
        return Discovery({}, {})
    looks = _looks(undeclared)
    budget = books.ledger.budget * share
    delta = books.ledger.reserved / max(_thresholds(looks), 1)
    rough, found, others, left = _first(table, looks, books, budget, delta, progress)
    measured = {name: look for name, look in looks.items() if "categories" not in look.asks}
    if others:
        part = left * len(others.names) / (len(others.names) + len(measured))
        left -= part
        what = "rarer categories of undeclared columns"
        more = others.curator.discover(part, delta, what=what, names=others.names)
        found |= {name: [*found[name], *values] for name, values in more.items()}
    facts = {name: categories(values) for name, values in found.items()}
    doubts = {name: _doubt(name, each.facts) for name, each in rough.items() if not each.is_clear}
    if not measured:
        return Discovery(facts, doubts)
    fine = {
        name: _fine(name, {**look.facts, **rough.get(name, _NOT_LOOKED).facts})
        for name, look in measured.items()
    }
    schema = Schema(tuple(fine.values()))
    curator = table.curator(schema, books, progress=progress)
    answers = curator.measure(
        [MarginalQuery(clique) for clique in curator.domain.cliques(1)],
        left,
        what="values of columns on fine grids",
        progress=progress,
    )
    for (name, column), answer in zip(fine.items(), answers, strict=True):
        facts[name] = _second(column, answer, looks[name], rough.get(name, _NOT_LOOKED))
    return Discovery(facts, doubts)


def _looks(undeclared: Mapping[str, Mapping]) -> dict[str, Look]:
    return {name: look_into(name, facts) for name, facts in undeclared.items()}


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
    progress: Progress,
) -> tuple[dict[str, Rough], dict[str, list], _Others | None, Fraction]:
    """What the first look found of numbers and dates; frequent categories; columns with others.

    And what is left of the budget.
    """
    if not any(look.asks for look in looks.values()):
        return {}, {}, None, budget
    part = budget * _FIRST_SHARE
    look = FirstLook.at(table, looks)
    curator = table.first_look(look.readings, books, progress)
    rows = look.rows(curator, part)
    found = look.values(curator, part, delta, "categories", "categories of undeclared columns")
    names = [name for name, each in found.items() if has_others(each, curator, rows)]
    numbers = look.values(curator, part, delta, "numbers", "numbers that many rows share")
    answers = {
        **look.measured(curator, part, ("coarse", "grid"), "sizes of numbers and dates", progress),
        **look.measured(curator, part, ("precision",), "precisions of numbers and dates", progress),
    }
    others = _Others(curator, names) if names else None
    return look.rough(answers, rows, numbers), found, others, budget - part


def _second(column: Column, answer: Measurement, look: Look, rough: Rough) -> dict:
    """What the fine grid said of a column, with the precision that the first look found."""
    known = look.facts
    if isinstance(column.cells, Categories):
        return {"frequencies": frequencies(answer, len(known["range_values"]))}
    if column.sdtype == "datetime":
        if column.datetime_format != known.get("datetime_format"):
            known = {key: fact for key, fact in known.items() if key not in _FORMATTED}
        precision = {"datetime_format": column.datetime_format}
    else:
        places = column.decimal_places
        found_out = places is not None and known.get("decimal_places") is None
        precision = {"decimal_places": places} if found_out else {}
    return {**precision, **looked_into(column, answer, replace(look, facts=known), rough)}


def _doubt(name: str, facts: Mapping) -> str:
    return (
        f"No range of {name!r} stood out from the noise: it was taken to be at most "
        f"{facts['range_min']} to {facts['range_max']}. Declare it, or allow a larger epsilon."
    )


def _fine(name: str, facts: Mapping) -> Column:
    """A column on the fine grid; without a format that cannot write all of its dates."""
    known = {**facts, "num_bins": SINGLE, "range_is_nullable": True}
    try:
        return replace(describe(name, known), merging=None)
    except ValueError:
        written = facts.get("datetime_format")
        if written is None:
            raise
        zone = "UTC" if has_zone(written) else None
        ends = {
            key: str(pd.to_datetime(facts[key], format=written, utc=True).tz_convert(zone))
            for key in ("range_min", "range_max")
        }
        return describe(name, {**known, **ends, "datetime_format": None})
