"""Published tables as tidy rows, one a cell: read, checked and made answers. Public."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd.base import cached_property
from sdv_privpgd.base.arguments import check_integer, shown
from sdv_privpgd.base.domain import Clique, Grouping
from sdv_privpgd.base.words import grouped
from sdv_privpgd.columns.bins import Categories
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.labels import MISSING, code_labels
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.inference.tables import MEASURED
from sdv_privpgd.privacy.queries import (
    CountQuery,
    GroupedMarginalQuery,
    MarginalQuery,
    Measurement,
    Query,
)

_OR_MISSING = f" or {MISSING}"
_OTHERS = re.compile(r"(.+) and (\d+) others", re.DOTALL)
_RANGE = re.compile(r"(.+?)\s*(?:–|—|\sto\s)\s*(.+)", re.DOTALL)
_NUMBERS = re.compile(r"(-?[\d.,]+)\s*-\s*(-?[\d.,]+)")
"""A hyphen stands between two numbers alone: dates have hyphens of their own."""

Codes = tuple[int, ...]


class ColumnLabels:
    """The labels of a column, as ``noisy_tables`` and people write them.

    A category is named by its value, a cell of numbers or dates by both of its ends ("25 – 49",
    "25-49" or "25 to 49"), and missing by "(missing)" or nothing. A group of neighboring cells is
    named by its first and last end.
    """

    def __init__(self, column: Column) -> None:
        self.column, self.texts = column, code_labels(column)
        self._splits = not isinstance(column.cells, Categories)  # the two ends of a range

    def codes(self, label: Any) -> Codes:
        """The codes that a label names, in order. Raises ``ValueError`` if it names none."""
        if is_missing(label) and self.column.nullable:
            return (self.column.size - 1,)
        found = self._of_value(label) or self._of_text(str(label).strip())
        if found is None:
            raise ValueError(
                f"{self.column.name!r} has no cell {label!r}. Its cells are "
                f"{', '.join(self.texts[:20])}{', ...' if len(self.texts) > 20 else ''}: write "
                "labels as these, or declare the column with the cells of the tables "
                "(cut_points for numbers and dates)."
            )
        return found

    def _of_value(self, label: Any) -> Codes | None:
        """The code of a category by its value, or by another way to write a number."""
        if isinstance(label, str):
            if label.strip() in self.texts:
                return None
            try:
                label = float(label)
            except ValueError:
                return None
        return self._by_value.get(label)

    @cached_property
    def _by_value(self) -> Mapping[Any, Codes]:
        """The code of each category by its value, so that 22.0 in a table is 22."""
        cells = self.column.cells
        if not isinstance(cells, Categories) or self.column.merging is not None:
            return {}
        return {value: (code,) for code, value in enumerate(cells.values)}

    def _of_text(self, text: str) -> Codes | None:
        """The code of a text, or those of neighbors from one end to another, and of missing."""
        more: list[int] = []
        if self.column.nullable and text.endswith(_OR_MISSING):
            text, more = text.removesuffix(_OR_MISSING), [self.column.size - 1]
        low, high = self._ends_of(text)
        first, last = self._places[0].get(low, -1), self._places[1].get(high, -1)
        if first < 0 and not self._splits and (found := _OTHERS.fullmatch(text)):
            first = self._places[0].get(found[1], -1)
            last = first + int(found[2])
        is_known = 0 <= first <= last < self.column.num_values
        return (*range(first, last + 1), *more) if is_known else None

    @cached_property
    def _places(self) -> Sequence[Mapping[str, int]]:
        """The codes of values by the first and by the last end of their texts."""
        ends = list(map(self._ends_of, self.texts[: self.column.num_values]))
        return [{own[at]: code for code, own in enumerate(ends)} for at in (0, 1)]

    def _ends_of(self, text: str) -> tuple[str, str]:
        """The two ends of a range in one way of writing; of other text it is both."""
        if not self._splits:
            return text, text
        found = _RANGE.fullmatch(text) or _NUMBERS.fullmatch(text)
        low, high = (text, text) if found is None else (found[1], found[2])
        return _number(low), _number(high)


def is_missing(label: Any) -> bool:
    """Whether a label says that there is no value."""
    return (isinstance(label, str) and label.strip() == MISSING) or (
        not isinstance(label, str) and bool(pd.isna(label))
    )


def _number(text: str) -> str:
    """One way of writing a number, without separators of thousands; other text stays."""
    try:
        return repr(float(text.strip().replace(",", "")))
    except ValueError:
        return text.strip()


Source = pd.DataFrame | str | Path
"""Tidy rows, or the path of a file with them."""

_NAME = re.compile(r"column_(\d+)")


@dataclass(frozen=True, kw_only=True)
class HowPublished:
    """What publishers do to exact counts. ``None`` where they did not."""

    # Smaller counts are not told: they are empty, absent, ``"*"`` or ``"<10"``.
    suppressed_below: int | None = None
    rounded_to: int | None = None  # counts are rounded to multiples of it
    total: int | None = None  # the number of rows that per cents and shares are of

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None:
                check_integer(name, value, least=1)

    @property
    def is_said(self) -> bool:
        """Whether the noise of a count follows, so that none has to be given."""
        return any(value is not None for value in vars(self).values())

    @property
    def unknown(self) -> tuple[float, float] | None:
        """The mean and the variance of a suppressed count, if all that may be are as likely."""
        below = self.suppressed_below
        return None if below is None else ((below - 1) / 2, (below**2 - 1) / 12)

    def whole(self, estimates: np.ndarray, stddevs: np.ndarray | None) -> float | None:
        """What shares that are not marked add up to: 1, or 100 without noise; none for counts.

        Whole numbers are taken for counts, unless it was said what per cents are of.
        """
        is_whole, held = _is_whole(estimates), np.nansum(estimates)
        is_quiet = stddevs is None or stddevs.max(initial=0) < 1
        if is_quiet and not is_whole and 0 < held < 1.05:
            return 1.0
        adds_up = stddevs is None and abs(held - 100) < 1
        return 100.0 if adds_up and (self.total is not None or not is_whole) else None

    def counts(
        self, name: str, estimates: np.ndarray, stddevs: np.ndarray | None, *, whole: float | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The counts of a table and the standard deviations of their noise.

        What was ``estimates`` of a cell is not a number where it was suppressed. Noise that was
        published with it is in the same unit. Shares add up to ``whole``.
        """
        variances = np.zeros(len(estimates)) if stddevs is None else np.square(stddevs)
        if whole is not None:
            if self.total is None:
                raise ValueError(
                    f"The table of {name} is in {'shares' if whole == 1 else 'per cents'}. Say of "
                    "how many rows with total=..."
                )
            places = next((each for each in range(6) if _is_whole(estimates * 10**each)), 6)
            scale = self.total / whole
            step = scale / 10**places
            estimates, variances = estimates * scale, variances * scale**2 + step**2 / 12
        elif stddevs is None and not self.is_said:
            raise ValueError(
                "Tables need a column 'stddev', or 'variance', for the noise of each count: 0 if "
                "the counts are exact."
            )
        elif self.rounded_to is not None:
            if not _is_whole(estimates / self.rounded_to):
                raise ValueError(
                    f"The table of {name} has counts that are no multiples of {self.rounded_to}: "
                    "rounded_to says that all are."
                )
            variances = variances + self.rounded_to**2 / 12
        if self.unknown is not None:
            (mean, variance), hidden = self.unknown, np.isnan(estimates)
            estimates, variances = (
                np.where(hidden, mean, estimates),
                np.where(hidden, variance, variances),
            )
        return estimates, np.sqrt(variances)


def _is_whole(numbers: np.ndarray) -> bool:
    """Whether all numbers that are there are whole ones."""
    return bool(np.allclose(numbers, np.rint(numbers), rtol=0, atol=1e-6, equal_nan=True))


@dataclass(frozen=True, kw_only=True, eq=False)
class TidyTable:
    """One published table: its columns, the labels of its cells, the counts and their noise."""

    clique: Clique  # its columns; none for the number of rows
    labels: tuple[np.ndarray, ...]  # one array a column, with the label of each cell
    counts: np.ndarray  # the published count of each cell
    stddevs: np.ndarray  # the standard deviation of the noise in each count, 0 where it is exact
    # The mean and the variance of the count of an absent cell, if there may be any.
    unknown: tuple[float, float] | None = None
    is_share: bool = False  # whether it was published in per cents, or in parts of 1

    @property
    def name(self) -> str:
        """The columns, for a message."""
        return " x ".join(self.clique) or "the number of rows"

    def answered(self, labels: Mapping[str, ColumnLabels]) -> "tuple[TidyTable, Measurement]":
        """The table with its absent cells, if there may be any, and as an answer, with mean noise.

        Raises ``ValueError`` for labels that name no cell, and for cells that are missing or there
        twice.
        """
        query, shape, places = self._query(labels)
        whole, number = self, math.prod(shape)
        times = np.bincount(places, minlength=number)
        if times.max() > 1:
            raise ValueError(
                f"The table of {self.name} has {int((times > 1).sum()):,} cells twice. If it was "
                "measured several times, number these with a column 'round'."
            )
        absent = np.flatnonzero(times == 0)
        if len(absent) and self.unknown is None:
            raise ValueError(
                f"The table of {self.name} lacks {len(absent):,} of {number:,} cells. "
                "Give all of them: an empty cell has estimate 0. If small counts were suppressed, "
                "say so with suppressed_below=..."
            )
        if len(absent) and self.unknown is not None:
            mean, variance = self.unknown
            lacking = {"counts": mean, "stddevs": variance**0.5}
            more = {
                name: np.append(getattr(self, name), np.full(len(absent), value))
                for name, value in lacking.items()
            }
            whole, places = replace(self, **more), np.append(places, absent)
        counts = np.empty(number)
        counts[places] = whole.counts
        stddev = float(np.sqrt(np.square(whole.stddevs).mean()))
        return whole, Measurement(query=query, answer=counts.reshape(shape), stddev=stddev)

    def _query(
        self, labels: Mapping[str, ColumnLabels]
    ) -> tuple[Query, tuple[int, ...], np.ndarray]:
        """The query that the table answers, its shape, and the place of each cell in it."""
        if not self.clique:
            return CountQuery(), (1,), np.zeros(1, dtype=np.intp)
        named = [
            [labels[name].codes(label) for label in own]
            for name, own in zip(self.clique, self.labels, strict=True)
        ]
        axes = [
            _groups(labels[name], own, fills=self.unknown is not None)
            for name, own in zip(self.clique, named, strict=True)
        ]
        shape = tuple(int(groups.max()) + 1 for groups in axes)
        places = np.ravel_multi_index(
            tuple(
                groups[[codes[0] for codes in own]] for groups, own in zip(axes, named, strict=True)
            ),
            shape,
        )
        if all(len(groups) == size for groups, size in zip(axes, shape, strict=True)):
            return MarginalQuery(self.clique), shape, places
        if len(self.clique) < 3:
            raise ValueError(
                f"The table of {self.name} is over coarser cells than are declared. Declare "
                "the columns with these cells (cut_points for numbers and dates, categories "
                "put together), or leave the table out."
            )
        grouping = Grouping.of(dict(zip(self.clique, axes, strict=True)))
        return GroupedMarginalQuery(self.clique, grouping), shape, places

    @property
    def is_even(self) -> bool:
        """Whether the noise of all cells is the same, to within a percent."""
        return bool(self.stddevs.max() <= 1.01 * self.stddevs.min())


def tidy_tables(sources: Sequence[Source], how: HowPublished = HowPublished()) -> list[TidyTable]:
    """The tables in tidy rows, in the order in which they come.

    Raises ``ValueError`` for rows without counts or noise, for counts that are no numbers, and for
    what ``how`` does not say.
    """
    found = [table for source in sources for table in _of_frame(_frame(source), how)]
    if how.total is None:
        return found
    if not any(table.is_share for table in found):
        raise ValueError("total says what per cents are of, and no table is in per cents.")
    rows = np.array([float(how.total)])
    return [*found, TidyTable(clique=(), labels=(), counts=rows, stddevs=np.zeros(1))]


def without_missing(columns: Mapping[str, Mapping], tables: Sequence[TidyTable]) -> dict[str, dict]:
    """The same declarations; columns of which no table names missing values have none."""
    nullable = {
        name
        for table in tables
        for name, labels in zip(table.clique, table.labels, strict=True)
        for label in pd.unique(pd.Series(labels, dtype=object))
        if is_missing(label) or (isinstance(label, str) and label.strip().endswith(_OR_MISSING))
    }
    return {
        name: dict(facts)
        if name in nullable or facts.get("range_is_nullable") is not None
        else {**facts, "range_is_nullable": False}
        for name, facts in columns.items()
    }


def answers_of(
    tables: Sequence[TidyTable], schema: Schema
) -> tuple[list[TidyTable], list[Measurement]]:
    """All tables with their absent cells, and as answers, with their mean noise.

    Raises ``ValueError`` for columns that are not declared, for declared ones that no table has,
    and as ``TidyTable.answered``.
    """
    labels = {column.name: ColumnLabels(column) for column in schema.columns}
    named = dict.fromkeys(name for table in tables for name in table.clique)
    unknown = [name for name in named if name not in labels]
    if unknown:
        raise ValueError(
            f"Tables have the columns {unknown!r}, which are not declared. Declare them in "
            "columns, or leave these tables out."
        )
    lacking = [name for name in labels if name not in named]
    if lacking:
        raise ValueError(
            f"No table has the columns {lacking!r}. Nothing is known of them: leave them out."
        )
    answered = [table.answered(labels) for table in tables]
    return [whole for whole, _ in answered], _sharing([answer for _, answer in answered])


def _frame(source: Source) -> pd.DataFrame:
    if isinstance(source, pd.DataFrame):
        return source
    path = Path(source)
    if path.suffix.lower() == ".parquet":
        return pd.read_parquet(path)
    if path.suffix.lower() == ".csv":
        texts = {f"label_{place}": str for place in range(1, 10)}
        return pd.read_csv(path, dtype=texts, keep_default_na=False, na_values=[""])  # type: ignore[arg-type]
    raise ValueError(f"Tables are read from files that end in .parquet or .csv, got {str(path)!r}.")


def _of_frame(frame: pd.DataFrame, how: HowPublished) -> list[TidyTable]:
    """The tables of one frame; what only follows from others is left out."""
    if "estimate" not in frame:
        raise ValueError(
            "Tables need a column 'estimate' with the count of each cell, and column_1, label_1 "
            f"and so on that name it; the columns are {list(map(str, frame.columns))!r}."
        )
    rows: Any = frame[frame["kind"].astype(str) == MEASURED] if "kind" in frame else frame
    estimates, is_percent = _estimates(rows["estimate"], how)
    places = sorted(int(found[1]) for name in frame if (found := _NAME.fullmatch(str(name))))
    named = [rows[f"column_{place}"].astype(object).to_numpy() for place in places]
    for place in places:
        if f"label_{place}" not in rows:
            raise ValueError(f"Tables with a column_{place} need a label_{place}, too.")
    labels = [rows[f"label_{place}"].astype(object).to_numpy() for place in places]
    cliques = [
        tuple(str(name) for name in own if not pd.isna(name))
        for own in (zip(*named, strict=True) if named else [()] * len(rows))
    ]
    rounds = rows["round"].astype(str) if "round" in rows else [""] * len(rows)
    members = grouped((key, row) for row, key in enumerate(zip(cliques, rounds, strict=True)))
    found, noise = [], _stddevs(rows, np.isnan(estimates))
    for (clique, _), held in members.items():
        own, numbers = None if noise is None else noise[held], estimates[held]
        whole = 100.0 if is_percent[held].any() else how.whole(numbers, own)
        name = " x ".join(clique) or "the number of rows"
        counts, stddevs = how.counts(name, numbers, own, whole=whole)
        if ((counts < 0) & (stddevs == 0)).any():
            raise ValueError(f"The table of {name} has counts below 0 that are said to be exact.")
        found.append(
            TidyTable(
                clique=clique,
                labels=tuple(each[held] for each in labels[: len(clique)]),
                counts=counts,
                stddevs=stddevs,
                unknown=how.unknown,
                is_share=whole is not None,
            )
        )
    return found


def _estimates(column: Any, how: HowPublished) -> tuple[np.ndarray, np.ndarray]:
    """What was published of each cell, not a number if nothing, and whether it is in per cents."""
    is_percent = np.zeros(len(column), dtype=bool)
    if not pd.api.types.is_numeric_dtype(column):
        texts = ["" if pd.isna(each) else str(each).strip() for each in column]
        is_percent = np.array([text.endswith("%") for text in texts])
        plain = (text.removesuffix("%").strip() for text in texts)
        hidden = ("*", "<")
        column = pd.Series(
            [None if not each or each.startswith(hidden) else each for each in plain]
        )
        below = how.suppressed_below
        others = {each.replace(" ", "") for each in texts if each[:1] == "<"} - {f"<{below}"}
        if others and below is not None:
            raise ValueError(
                f"Cells of tables are {min(others)!r}, and suppressed_below is {below}: say what "
                "all such cells are below, or write '*'."
            )
    estimates = _numbers(column, "estimate", may_lack=True)
    if np.isnan(estimates).any() and how.suppressed_below is None:
        raise ValueError(
            "Tables have cells without a count. If small counts were suppressed, say below what "
            "with suppressed_below=..."
        )
    return estimates, is_percent


def _stddevs(rows: Any, is_hidden: np.ndarray) -> np.ndarray | None:
    """The noise that was given, 0 for suppressed cells; ``None`` if there is none."""
    name = next((each for each in ("stddev", "variance") if each in rows), None)
    if name is None:
        return None
    found = np.zeros(len(rows))
    found[~is_hidden] = _numbers(rows[name][~is_hidden], name)
    if found.size and found.min() < 0:
        raise ValueError("The noise of a count cannot be negative.")
    return found if name == "stddev" else np.sqrt(found)


def _numbers(column: pd.Series, name: str, *, may_lack: bool = False) -> np.ndarray:
    try:
        found = column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        numbers: Any = pd.to_numeric(column, errors="coerce")
        wrong: Any = column[numbers.isna() & column.notna()]
        raise ValueError(
            f"The column {name!r} of tables must hold numbers, without separators of thousands, "
            f"got {shown(wrong.iloc[0])}. What was suppressed is '*', '<10' or empty."
        ) from None
    if not (np.isfinite(found) | (may_lack & np.isnan(found))).all():
        raise ValueError(f"The column {name!r} of tables has values that are missing or infinite.")
    return found


def _groups(labels: ColumnLabels, named: Sequence[Codes], *, fills: bool) -> np.ndarray:
    """The group of each code, by the order of their first codes.

    A code that nothing names is a group of its own if it ``fills`` them in.
    """
    name, held = labels.column.name, [code for codes in set(named) for code in codes]
    if len(set(held)) < len(held):
        raise ValueError(f"Cells of {name!r} overlap in one table.")
    lacking = [code for code in range(labels.column.size) if code not in set(held)]
    if lacking and not fills:
        raise ValueError(
            f"A table lacks the cells {[labels.texts[code] for code in lacking[:5]]!r} of "
            f"{name!r}. Give them with estimate 0, or declare the column without them "
            "(range_is_nullable=False if none is missing)."
        )
    groups = np.empty(labels.column.size, dtype=np.int64)
    for place, codes in enumerate(sorted({*named, *((code,) for code in lacking)})):
        groups[list(codes)] = place
    return groups


def _sharing(answers: Sequence[Measurement]) -> list[Measurement]:
    """The same answers, over one grouping wherever the groups of tables agree.

    What is known of groups is told by one grouping at a time, so tables should share theirs.
    """
    shared: list[dict[str, np.ndarray]] = []
    members: list[int | None] = []
    for each in answers:
        if not isinstance(each.query, GroupedMarginalQuery):
            members.append(None)
            continue
        own: dict[str, Any] = {name: each.query.grouping[name] for name in each.query.clique}
        for place, known in enumerate(shared):
            if all(np.array_equal(own[name], known[name]) for name in own.keys() & known.keys()):
                known.update(own)
                members.append(place)
                break
        else:
            members.append(len(shared))
            shared.append(own)
    groupings = [Grouping.of(known) for known in shared]
    pairs: Any = zip(answers, members, strict=True)
    return [
        each if at is None else replace(each, query=replace(each.query, grouping=groupings[at]))
        for each, at in pairs
    ]
