"""Private discovery of ranges, precisions and categories that nobody declared.

It is paid from the same budget. Numbers and dates are counted on a grid that is fixed beforehand,
then on a finer one over the part of it that holds rows; values of categories are counted as they
are and released above a threshold, then once more, with less noise, where many rows have others.
All of it is asked of the curator, so the ledger has it; what is
made of the noisy answers is post-processing. The encoders read the table cell by cell, as ever.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pandas as pd

from sdv_privpgd.cells import Categories, SignedPowers
from sdv_privpgd.coercion import decimal_places, key_counts, quiet, real_numbers
from sdv_privpgd.columns import Column
from sdv_privpgd.dataset import Dataset
from sdv_privpgd.dates import has_zone, is_aware, precisions
from sdv_privpgd.declaring import describe
from sdv_privpgd.domain import Domain
from sdv_privpgd.findings import (
    MOST_PLACES,
    UNITS,
    YEARS,
    categories,
    frequencies,
    looked_into,
    roughly,
)
from sdv_privpgd.keys import Key, KeyColumns
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.progress import Progress, silent
from sdv_privpgd.queries import CountQuery, MarginalQuery
from sdv_privpgd.schema import Schema
from sdv_privpgd.transformers import encode_table, transformer_for

_DELTA_SHARE = Fraction(1, 10)
"""Part of delta that is kept for the thresholds; it costs less than 1 % of noise."""

_FIRST_SHARE = Fraction(2, 5)
"""Part of discovery's budget that the first look takes. A fifth to three fifths gave errors, over
3 seeds, within 4 % of each other on Adult and within 10 % on Bank."""

_OF_KEYS, _OF_GRIDS = 4, 2
"""Parts of the first look for each column of categories, and for each grid. A precision has one
part, and so has the number of rows where it is private: they are hard to miss."""

_FORMATTED = ("datetime_format", "range_min", "range_max")
"""What is no longer known of dates whose format is given up."""

_SURE = 2.0
"""So many standard deviations of rows must have other values for these to be asked for."""


def reserved_delta(undeclared: Mapping[str, Mapping], delta: float) -> Fraction:
    """The part of delta that discovery needs for the thresholds of categories."""
    return Fraction(delta) * _DELTA_SHARE if _with_keys(undeclared) else Fraction(0)


def without_domain(undeclared: Mapping[str, Mapping]) -> list[str]:
    """The columns of which not even the categories are declared."""
    return [name for name, facts in undeclared.items() if not _is_declared(facts)]


def discover(
    columns: Mapping[str, pd.Series],
    undeclared: Mapping[str, Mapping],
    curator: Curator,
    share: Fraction,
    *,
    progress: Progress = silent,
) -> dict[str, dict]:
    """What takes the place of a declaration of each column, in SDV's words. Public.

    Privacy: ``share`` of the ledger's budget at most, and ``reserved_delta``, which it must have
    kept.

    Args:
        columns: The private columns.
        undeclared: For each column to look into what is known of it, in SDV's words: its sdtype,
            and perhaps its ``decimal_places`` or ``datetime_format``; or its ``range_values``, if
            it is to find how frequent these are.
        curator: Who is asked. He holds other codes of the table afterwards.
        share: Of the budget, for all columns together. A first look at all of them finds what is
            frequent and how large numbers are; the second is at what that left open.
        progress: Told of the measurements.
    """
    if not undeclared:
        return {}
    measured = [name for name in undeclared if name not in _with_keys(undeclared)]
    budget = curator.ledger.budget * share
    first = _FirstLook.at(columns, undeclared, progress)
    curator.recode(first.dataset, keys=first.keys)
    found, open_keys = first.values(curator, budget * _FIRST_SHARE)
    rough = first.facts(curator, budget * _FIRST_SHARE, progress)
    left = budget * (1 - _FIRST_SHARE)
    if open_keys:
        part = left / 2 if measured else left
        left -= part
        more = curator.discover(
            part,
            curator.ledger.reserved / 2,
            what="rarer categories of undeclared columns",
            names=open_keys,
        )
        found |= {name: [*found[name], *values] for name, values in more.items()}
    facts = {name: categories(values) for name, values in found.items()}
    if not measured:
        return facts
    fine = {name: _fine(name, {**undeclared[name], **rough.get(name, {})}) for name in measured}
    schema = Schema(tuple(fine.values()))
    domain = schema.domain()
    curator.recode(Dataset(domain, encode_table(columns, schema, progress)))
    answers = curator.measure(
        [MarginalQuery(clique) for clique in domain.cliques(1)],
        left,
        what="ranges of undeclared columns",
        progress=progress,
    )
    for (name, column), answer in zip(fine.items(), answers, strict=True):
        known = undeclared[name]
        if isinstance(column.cells, Categories):
            facts[name] = {"frequencies": frequencies(answer, len(known["range_values"]))}
            continue
        if column.sdtype == "datetime":
            if column.datetime_format != known.get("datetime_format"):
                known = {key: fact for key, fact in known.items() if key not in _FORMATTED}
            precision = {"datetime_format": column.datetime_format}
        else:
            places = column.decimal_places
            found_out = places is not None and known.get("decimal_places") is None
            precision = {"decimal_places": places} if found_out else {}
        facts[name] = {**precision, **looked_into(column, answer, known)}
    return facts


def _fine(name: str, facts: Mapping) -> Column:
    """A column on the fine grid; without a format that cannot write all of its dates."""
    known = {**facts, "range_is_nullable": True}
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


def _with_keys(undeclared: Mapping[str, Mapping]) -> list[str]:
    """The columns of categories of which none is known."""
    kinds = ("categorical", "ordinal")
    return [
        name
        for name, facts in undeclared.items()
        if facts["sdtype"] in kinds and not _is_declared(facts)
    ]


def _on_grids(undeclared: Mapping[str, Mapping]) -> dict[str, Mapping]:
    """The columns of numbers and dates."""
    kinds = ("numerical", "datetime")
    return {name: facts for name, facts in undeclared.items() if facts["sdtype"] in kinds}


def _is_declared(facts: Mapping) -> bool:
    """Whether categories are known, and only their frequencies are not."""
    return facts.get("range_values") is not None and len(facts["range_values"]) > 0


@dataclass(frozen=True, kw_only=True)
class _FirstLook:
    """What is asked of all columns. Private.

    Attributes:
        known: What is known of each column.
        keys: The values of columns of categories.
        dataset: The codes of numbers and dates on the first grid, and of how precise they are
            where that is not known.
        aware: The columns whose dtype says that dates have a time zone. Public.
    """

    known: Mapping[str, Mapping]
    keys: KeyColumns
    dataset: Dataset
    aware: frozenset[str]

    @classmethod
    def at(
        cls, columns: Mapping[str, pd.Series], known: Mapping[str, Mapping], progress: Progress
    ) -> "_FirstLook":
        codes: list[np.ndarray] = []
        sizes: dict[str, int] = {}
        with quiet():
            counts, grids = {}, _on_grids(known)
            for name in progress([*_with_keys(known), *grids], "look"):
                if name not in grids:
                    counts[name] = list(key_counts(columns[name]))
                    continue
                facts, series = grids[name], columns[name]
                is_date = facts["sdtype"] == "datetime"
                sizes[_grid(name)] = len(YEARS if is_date else SignedPowers()) + 1
                grid = _years(name, facts, series) if is_date else _powers(series)
                codes.append(grid.astype(np.uint16))
                if not _has_precision(facts):
                    sizes[_precision(name)] = len(UNITS) + 1 if is_date else MOST_PLACES + 3
                    fine = precisions(series) if is_date else decimal_places(series, MOST_PLACES)
                    codes.append(fine.astype(np.uint16))
            keys = KeyColumns(counts)
        num_records = len(next(iter(columns.values())))
        table = np.column_stack(codes) if codes else np.empty((num_records, 0), np.uint16)
        dataset = Dataset(Domain(tuple(sizes), tuple(sizes.values())), table)
        aware = frozenset(name for name in known if is_aware(columns[name].dtype))
        return cls(known=known, keys=keys, dataset=dataset, aware=aware)

    def values(
        self, curator: Curator, mu_squared: Fraction
    ) -> tuple[dict[str, list[tuple[Key | None, int]]], list[str]]:
        """The frequent values of each column of categories, and the columns that have others.

        Public.
        """
        names = self.keys.names
        if not names:
            return {}, []
        part = mu_squared / self._parts(curator)
        (rows,) = curator.measure([CountQuery()], part, what="number of rows")
        found = curator.discover(
            part * _OF_KEYS * len(names),
            curator.ledger.reserved / 2,
            what="categories of undeclared columns",
        )
        stddev = curator.ledger.charges[-1].stddev
        others = []
        for name, values in found.items():
            rest = int(rows.answer[0]) - sum(number for _, number in values)
            if rest > _SURE * math.hypot(rows.stddev, stddev * math.sqrt(len(values))):
                others.append(name)
        return found, others

    def facts(self, curator: Curator, mu_squared: Fraction, progress: Progress) -> dict[str, dict]:
        """What is known of each number and date, its range only roughly. Public."""
        answer_of = {}
        for kind, parts, what in (
            (_grid, _OF_GRIDS, "sizes of undeclared columns"),
            (_precision, 1, "precisions of undeclared columns"),
        ):
            asked = [
                kind(name) for name in self.known if kind(name) in self.dataset.domain.attributes
            ]
            if not asked:
                continue
            queries = [MarginalQuery((attribute,)) for attribute in asked]
            part = mu_squared / self._parts(curator) * parts * len(asked)
            answers = curator.measure(queries, part, what=what, progress=progress)
            answer_of |= zip(asked, answers, strict=True)
        return {
            name: {
                **facts,
                **roughly(
                    facts,
                    answer_of[_grid(name)],
                    answer_of.get(_precision(name)),
                    utc=name in self.aware,
                ),
            }
            for name, facts in _on_grids(self.known).items()
        }

    def _parts(self, curator: Curator) -> int:
        """How many parts the look has."""
        names = self.keys.names
        rows = CountQuery().l2_sensitivity_squared(curator.ledger.adjacency) if names else 0
        numbers = (
            _OF_GRIDS if attribute.startswith("grid") else 1
            for attribute in self.dataset.domain.attributes
        )
        return _OF_KEYS * len(names) + rows + sum(numbers)


def _grid(name: str) -> str:
    return f"grid {name}"


def _precision(name: str) -> str:
    return f"precision {name}"


def _years(name: str, facts: Mapping, series: pd.Series) -> np.ndarray:
    """The codes of a private datetime column on the first grid; missing is the last."""
    written = facts.get("datetime_format")
    column = Column(name=name, sdtype="datetime", cells=YEARS, unit="D", datetime_format=written)
    return transformer_for(column).encode(series)[0]


def _powers(series: pd.Series) -> np.ndarray:
    """The codes of a private numerical column on the first grid; missing is the last."""
    numbers, missing = real_numbers(series)
    codes, _ = SignedPowers().locate(np.where(missing, 0.0, numbers))
    return np.where(missing, len(SignedPowers()), codes)


def _has_precision(facts: Mapping) -> bool:
    return facts.get("decimal_places") is not None or facts.get("datetime_format") is not None
