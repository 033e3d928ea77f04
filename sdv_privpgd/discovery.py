"""Private discovery of ranges, precisions and categories that nobody declared.

It is paid from the same budget. Numbers and dates are counted on a grid that is fixed beforehand,
then on a finer one over the part of it that holds rows; values of categories are counted as they
are and released above a threshold. All of it is asked of the curator, so the ledger has it; what is
made of the noisy answers is post-processing. The encoders read the table cell by cell, as ever.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pandas as pd

from sdv_privpgd.cells import SignedPowers
from sdv_privpgd.coercion import canonical, cells, decimal_places, quiet, real_numbers
from sdv_privpgd.columns import Column, describe
from sdv_privpgd.dataset import Dataset
from sdv_privpgd.dates import precisions
from sdv_privpgd.domain import Domain
from sdv_privpgd.findings import MOST_PLACES, UNITS, YEARS, categories, looked_into, roughly
from sdv_privpgd.keys import KeyColumns
from sdv_privpgd.measure import Measurement
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.progress import Progress, silent
from sdv_privpgd.queries import MarginalQuery
from sdv_privpgd.schema import Schema
from sdv_privpgd.transformers import encode_table, transformer_for

_DELTA_SHARE = Fraction(1, 10)
"""Part of delta that is kept for the thresholds; it costs less than 1 % of noise."""

_FINE_CELLS = 256
"""Cells of the second grid: a range is found to within 1 / 256 of the first one's."""


def reserved_delta(undeclared: Mapping[str, Mapping], delta: float) -> Fraction:
    """The part of delta that discovery needs for the thresholds of categories."""
    return Fraction(delta) * _DELTA_SHARE if _with_keys(undeclared) else Fraction(0)


def discover(
    columns: Mapping[str, pd.Series],
    undeclared: Mapping[str, Mapping],
    curator: Curator,
    share: Fraction,
    *,
    progress: Progress = silent,
) -> dict[str, dict]:
    """What takes the place of a declaration of each column, in SDV's words. Public.

    Privacy: ``share`` of the ledger's budget, and ``reserved_delta``, which it must have kept.

    Args:
        columns: The private columns.
        undeclared: For each column to look into what is known of it, in SDV's words: its sdtype,
            and perhaps its ``decimal_places`` or ``datetime_format``.
        curator: Who is asked. He holds other codes of the table afterwards.
        share: Of the budget, for all columns together: each gets the same part.
        progress: Told of the measurements.
    """
    if not undeclared:
        return {}
    keyed, measured = _with_keys(undeclared), _measured(undeclared)
    part = curator.ledger.budget * share / len(undeclared)
    facts: dict[str, dict] = {}
    first = _FirstLook.at({name: columns[name] for name in measured}, measured)
    with quiet():
        keys = KeyColumns({name: map(canonical, cells(columns[name])) for name in keyed})
    curator.recode(first.dataset, keys=keys)
    for name, found in curator.discover(
        part * len(keyed), curator.ledger.reserved, what="categories of undeclared columns"
    ).items():
        facts[name] = categories(found)
    if not measured:
        return facts
    answers = curator.measure(
        [MarginalQuery(clique) for clique in first.dataset.domain.cliques(1)],
        part * len(measured) / 2,
        what="sizes and precisions of undeclared columns",
        progress=progress,
    )
    rough = first.facts(answers)
    fine = {name: _fine(name, rough[name]) for name in measured}
    schema = Schema(tuple(fine.values()))
    domain = schema.domain()
    curator.recode(Dataset(domain, encode_table(columns, schema)))
    queries = [MarginalQuery(clique) for clique in domain.cliques(1)]
    answers = curator.measure(
        queries,
        part * len(measured) / 2,
        what="ranges of undeclared columns",
        progress=progress,
    )
    for (name, column), answer in zip(fine.items(), answers, strict=True):
        known = undeclared[name]
        if column.sdtype == "datetime":
            if column.datetime_format != known.get("datetime_format"):
                known = {"sdtype": "datetime"}  # a bound in the format that was given up
            precision = {"datetime_format": column.datetime_format}
        else:
            places = column.decimal_places
            precision = {} if places is None else {"decimal_places": places}
        facts[name] = {**precision, **looked_into(column, answer, known)}
    return facts


def _fine(name: str, facts: Mapping) -> Column:
    """A column on the fine grid; without a format that cannot write all of its dates."""
    known = {
        **facts, "num_bins": _FINE_CELLS, "range_is_nullable": True, "cut_points": None
    }  # fmt: skip
    try:
        return describe(name, known)
    except ValueError:
        written = facts.get("datetime_format")
        if written is None:
            raise
        ends = {
            key: str(pd.to_datetime(facts[key], format=written, utc=True).tz_localize(None))
            for key in ("range_min", "range_max")
        }
        return describe(name, {**known, **ends, "datetime_format": None})


def _with_keys(undeclared: Mapping[str, Mapping]) -> list[str]:
    return [name for name, facts in undeclared.items() if "ordinal" in _kind(facts)]


def _measured(undeclared: Mapping[str, Mapping]) -> dict[str, Mapping]:
    return {name: facts for name, facts in undeclared.items() if "ordinal" not in _kind(facts)}


def _kind(facts: Mapping) -> tuple[str, ...]:
    """The sdtypes that are looked into in the same way."""
    kinds = ("categorical", "ordinal"), ("numerical",), ("datetime",)
    return next(kind for kind in kinds if facts["sdtype"] in kind)


@dataclass(frozen=True, kw_only=True)
class _FirstLook:
    """The codes of numbers and dates on the first grid, and of how precise they are. Private.

    Attributes:
        known: What is known of each column.
        dataset: Two attributes a column, one for a column of known precision.
    """

    known: Mapping[str, Mapping]
    dataset: Dataset

    @classmethod
    def at(cls, columns: Mapping[str, pd.Series], known: Mapping[str, Mapping]) -> "_FirstLook":
        codes: list[np.ndarray] = []
        sizes: dict[str, int] = {}
        for at, (name, facts) in enumerate(known.items()):
            is_date, series = facts["sdtype"] == "datetime", columns[name]
            with quiet():
                sizes[f"grid {at}"] = len(YEARS if is_date else SignedPowers()) + 1
                grid = _years(name, facts, series) if is_date else _powers(series)
                codes.append(grid.astype(np.uint16))
                if not _has_precision(facts):
                    sizes[f"precision {at}"] = len(UNITS) + 1 if is_date else MOST_PLACES + 3
                    fine = precisions(series) if is_date else decimal_places(series, MOST_PLACES)
                    codes.append(fine.astype(np.uint16))
        table = np.column_stack(codes) if codes else np.empty((0, 0), np.uint16)
        return cls(known=known, dataset=Dataset(Domain(tuple(sizes), tuple(sizes.values())), table))

    def facts(self, answers: list[Measurement]) -> dict[str, dict]:
        """What the noisy answers say of each column, its range only roughly. Public."""
        answer_of = dict(zip(self.dataset.domain.attributes, answers, strict=True))
        return {
            name: {
                **facts,
                **roughly(facts, answer_of[f"grid {at}"], answer_of.get(f"precision {at}")),
            }
            for at, (name, facts) in enumerate(self.known.items())
        }


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
