"""The first look of discovery: what is asked of columns of which little is known. Private.

The encoders read the table cell by cell, as ever, and hand what they read to the curator.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pandas as pd

from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.dates import is_aware, precisions
from sdv_privpgd.columns.encoders import encoder_for
from sdv_privpgd.columns.scalars import decimal_places, key_counts, quiet, real_numbers
from sdv_privpgd.columns.values import Value
from sdv_privpgd.discovery.grids import POWERS, YEARS
from sdv_privpgd.discovery.looks import Look
from sdv_privpgd.discovery.ranges import Rough, roughly
from sdv_privpgd.discovery.rough_ranges import MOST_PLACES, UNITS
from sdv_privpgd.domain import Domain
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.privacy.queries import CountQuery, MarginalQuery
from sdv_privpgd.privacy.value_counts import ValueCounts
from sdv_privpgd.progress import Progress

_PARTS = {"categories": 4, "coarse": 2, "grid": 2, "numbers": 2, "precision": 1, "rows": 1}
"""How the look's budget is divided. A precision and the number of rows are hard to miss."""

_SURE = 2.0
"""So many standard deviations of rows must have other values for these to be asked for."""

Values = dict[str, list[tuple[Value | None, int]]]
"""Of some columns: values and their noisy counts."""


@dataclass(frozen=True, kw_only=True)
class FirstLook:
    """What is asked of all columns.

    Attributes:
        looks: What is known of each column, and what is to be found.
        values_held: The values of columns of categories, and of numbers.
        dataset: Codes of numbers and dates on the first grids, and of how precise they are.
        aware: The columns whose dtype says that dates have a time zone. Public.
    """

    looks: Mapping[str, Look]
    values_held: ValueCounts
    dataset: Dataset
    aware: frozenset[str]

    @classmethod
    def at(
        cls, columns: Mapping[str, pd.Series], looks: Mapping[str, Look], progress: Progress
    ) -> "FirstLook":
        codes: dict[tuple[str, str], np.ndarray] = {}
        sizes: dict[tuple[str, str], int] = {}
        with quiet():
            categories = {name: key_counts(columns[name]) for name in _asked(looks, "categories")}
            numbers = {name: _finite(columns[name]) for name in _asked(looks, "numbers")}
            for name in progress(list(looks), "look"):
                look = looks[name]
                is_date, series = look.sdtype == "datetime", columns[name]
                grid = YEARS if is_date else POWERS
                if look.asks & {"coarse", "grid"}:
                    fine = _years(name, look, series) if is_date else _powers(series)
                    sizes["grid", name], codes["grid", name] = len(grid.cells) + 1, fine
                if "coarse" in look.asks:
                    groups = np.append(grid.groups, len(grid.dearness))
                    sizes["coarse", name] = len(grid.dearness) + 1
                    codes["coarse", name] = groups[codes["grid", name]]
                if "precision" in look.asks:
                    sizes["precision", name] = len(UNITS) + 1 if is_date else MOST_PLACES + 3
                    codes["precision", name] = (
                        precisions(series) if is_date else decimal_places(series, MOST_PLACES)
                    )
        num_records = len(next(iter(columns.values())))
        table = np.empty((num_records, len(codes)), np.uint16, order="F")
        for axis, own in enumerate(codes.values()):
            table[:, axis] = own
        domain = Domain(tuple(map(_attribute, sizes)), tuple(sizes.values()))
        return cls(
            looks=looks,
            values_held=ValueCounts(categories, numbers),
            dataset=Dataset(domain, table),
            aware=frozenset(name for name in looks if is_aware(columns[name].dtype)),
        )

    def rows(self, curator: Curator, mu_squared: Fraction) -> Measurement | None:
        """The number of rows, where it says something. Public."""
        if not self._asks_rows:
            return None
        part = mu_squared / self._parts(curator) * _PARTS["rows"]
        (rows,) = curator.measure([CountQuery()], part, what="number of rows")
        return rows

    def values(
        self, curator: Curator, mu_squared: Fraction, delta: Fraction, kind: str, what: str
    ) -> Values:
        """The frequent values of the columns of a kind. Public."""
        names = _asked(self.looks, kind)
        part = mu_squared / self._parts(curator) * _PARTS[kind] * len(names)
        return curator.discover(part, delta, what=what, names=names) if names else {}

    def measured(
        self,
        curator: Curator,
        mu_squared: Fraction,
        kinds: tuple[str, ...],
        what: str,
        progress: Progress,
    ) -> dict[tuple[str, str], Measurement]:
        """The answers on grids of some kinds, of equal parts, by kind and column. Public."""
        asked = [(kind, name) for kind in kinds for name in _asked(self.looks, kind)]
        if not asked:
            return {}
        part = mu_squared / self._parts(curator) * _PARTS[kinds[0]] * len(asked)
        queries = [MarginalQuery((_attribute(each),)) for each in asked]
        answers = curator.measure(queries, part, what=what, progress=progress)
        return dict(zip(asked, answers, strict=True))

    def rough(
        self,
        answers: Mapping[tuple[str, str], Measurement],
        rows: Measurement | None,
        numbers: Values,
    ) -> dict[str, Rough]:
        """What the answers say of each number and date. Public."""
        return {
            name: roughly(
                look,
                {kind: answers[kind, name] for kind in look.asks if (kind, name) in answers},
                rows,
                _most_frequent(numbers.get(name, [])),
                utc=name in self.aware,
            )
            for name, look in self.looks.items()
            if look.sdtype in ("numerical", "datetime")
        }

    @property
    def _asks_rows(self) -> bool:
        return any(
            look.asks & {"categories", "coarse", "precision"} for look in self.looks.values()
        )

    def _parts(self, curator: Curator) -> int:
        """How many parts the look has."""
        rows = CountQuery().l2_sensitivity_squared(curator.ledger.adjacency) * self._asks_rows
        return rows + sum(_PARTS[kind] for look in self.looks.values() for kind in look.asks)


def has_others(
    found: list[tuple[Value | None, int]], curator: Curator, rows: Measurement | None
) -> bool:
    """Whether many rows, surely, have none of the values that were found last. Public."""
    assert rows is not None  # asked for wherever categories are
    stddev = curator.ledger.charges[-1].stddev
    rest = int(rows.answer[0]) - sum(number for _, number in found)
    return rest > _SURE * math.hypot(rows.stddev, stddev * math.sqrt(len(found)))


def _most_frequent(found: list[tuple[Value | None, int]]) -> list[float]:
    """The numbers, those with the largest noisy counts first."""
    numbers = [(number, float(key)) for key, number in found if isinstance(key, int | float)]
    return [key for _, key in sorted(numbers, reverse=True)]


def _asked(looks: Mapping[str, Look], kind: str) -> list[str]:
    return [name for name, look in looks.items() if kind in look.asks]


def _attribute(asked: tuple[str, str]) -> str:
    return " ".join(asked)


def _years(name: str, look: Look, series: pd.Series) -> np.ndarray:
    """The codes of a private datetime column on the first grid; missing is the last."""
    written = look.facts.get("datetime_format")
    column = Column(
        name=name, sdtype="datetime", cells=YEARS.cells, unit="D", datetime_format=written
    )
    return encoder_for(column).encode(series)[0]


def _powers(series: pd.Series) -> np.ndarray:
    """The codes of a private numerical column on the first grid; missing is the last."""
    numbers, missing = real_numbers(series)
    codes, _ = POWERS.cells.locate(np.where(missing, 0.0, numbers))
    return np.where(missing, len(POWERS.cells), codes)


def _finite(series: pd.Series) -> np.ndarray:
    """The numbers of a private column, NaN where there is none."""
    numbers, missing = real_numbers(series)
    return np.where(missing | ~np.isfinite(numbers), np.nan, numbers)
