"""Published tables as tidy rows, one a cell: read, checked and made answers. Public."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd.base.domain import Clique, Grouping
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
        self.column = column
        self.texts = code_labels(column)

    def codes(self, label: Any) -> Codes:
        """The codes that a label names, in order. Raises ``ValueError`` if it names none."""
        if is_missing(label) and self.column.nullable:
            return (self.column.size - 1,)
        found, key = self._of_value(label), _plain(label, splits=not self._is_category)
        for known in (self._singles, self._runs):
            found = known.get(key) if found is None else found
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

    @property
    def _is_category(self) -> bool:
        return isinstance(self.column.cells, Categories)

    @cached_property
    def _by_value(self) -> Mapping[Any, Codes]:
        """The code of each category by its value, so that 22.0 in a table is 22."""
        cells = self.column.cells
        if not isinstance(cells, Categories) or self.column.merging is not None:
            return {}
        return {value: (code,) for code, value in enumerate(cells.values)}

    @cached_property
    def _singles(self) -> Mapping[Any, Codes]:
        splits = not self._is_category
        return {_plain(text, splits=splits): (code,) for code, text in enumerate(self.texts)}

    @cached_property
    def _runs(self) -> Mapping[Any, Codes]:
        """Groups of neighboring codes, and of these with missing."""
        values, found = self.texts[: self.column.num_values], {}
        for first in range(len(values)):
            for last in range(first, len(values)):
                codes = tuple(range(first, last + 1))
                for key in self._names_of_run(values, first, last):
                    found.setdefault(key, codes)
                    if self.column.nullable:
                        with_missing = (*codes, self.column.size - 1)
                        found.setdefault(_with_missing(key), with_missing)
        return found

    def _names_of_run(self, values: list[str], first: int, last: int) -> list[Any]:
        if self._is_category:
            if first == last:
                return [_plain(values[first], splits=False)]
            return [_plain(f"{values[first]} and {last - first} others", splits=False)]
        low, high = (_ends(_plain(values[at], splits=True)) for at in (first, last))
        return [(low[0], high[1])]


def is_missing(label: Any) -> bool:
    """Whether a label says that there is no value."""
    return (isinstance(label, str) and label.strip() == MISSING) or (
        not isinstance(label, str) and bool(pd.isna(label))
    )


def names_missing(label: Any) -> bool:
    """Whether a label names missing, alone or in a group."""
    return is_missing(label) or (isinstance(label, str) and label.strip().endswith(_OR_MISSING))


def _plain(label: Any, *, splits: bool) -> Any:
    """A label as it is compared: text without spaces around it, or the two ends of a range."""
    text = str(label).strip()
    if not splits or text == MISSING:
        return text
    has_missing, text = text.endswith(_OR_MISSING), text.removesuffix(_OR_MISSING)
    matched = _RANGE.fullmatch(text) or _NUMBERS.fullmatch(text)
    low, high = (text, text) if matched is None else (matched[1], matched[2])
    ends = (_number(low), _number(high))
    return _with_missing(ends) if has_missing else ends


def _ends(plain: Any) -> tuple[str, str]:
    return plain[:2]


def _with_missing(key: Any) -> Any:
    return (*key, MISSING) if isinstance(key, tuple) else f"{key}{_OR_MISSING}"


def _number(text: str) -> str:
    """One way of writing a number, without separators of thousands; other text stays."""
    try:
        return repr(float(text.strip().replace(",", "")))
    except ValueError:
        return text.strip()


Source = pd.DataFrame | str | Path
"""Tidy rows, or the path of a file with them."""

_NAME = re.compile(r"column_(\d+)")


@dataclass(frozen=True, kw_only=True, eq=False)
class TidyTable:
    """One published table: its columns, the labels of its cells, the counts and their noise.

    Attributes:
        clique: Its columns; none for the number of rows.
        labels: One array a column, with the label of each cell.
        counts: The published count of each cell.
        stddevs: The standard deviation of the noise in each count, 0 where it is exact.
    """

    clique: Clique
    labels: tuple[np.ndarray, ...]
    counts: np.ndarray
    stddevs: np.ndarray

    @property
    def name(self) -> str:
        """The columns, for a message."""
        return " x ".join(self.clique) or "the number of rows"

    def answers(self, labels: Mapping[str, ColumnLabels]) -> tuple[Measurement, Measurement]:
        """The table as an answer, with its mean noise, and with its largest noise.

        Raises:
            ValueError: For labels that name no cell, and for cells that are missing or there twice.
        """
        if not self.clique:
            return self._measured(CountQuery(), np.zeros(1, dtype=np.intp), (1,))
        named = [
            [labels[name].codes(label) for label in own]
            for name, own in zip(self.clique, self.labels, strict=True)
        ]
        axes = [
            _groups(name, own, labels[name]) for name, own in zip(self.clique, named, strict=True)
        ]
        shape = tuple(int(groups.max()) + 1 for groups in axes)
        places = np.ravel_multi_index(
            tuple(
                groups[[codes[0] for codes in own]] for groups, own in zip(axes, named, strict=True)
            ),
            shape,
        )
        query: Query = MarginalQuery(self.clique)
        if any(len(groups) != size for groups, size in zip(axes, shape, strict=True)):
            if len(self.clique) < 3:
                raise ValueError(
                    f"The table of {self.name} is over coarser cells than are declared. Declare "
                    "the columns with these cells (cut_points for numbers and dates, categories "
                    "put together), or leave the table out."
                )
            grouping = Grouping.of(dict(zip(self.clique, axes, strict=True)))
            query = GroupedMarginalQuery(self.clique, grouping)
        return self._measured(query, places, shape)

    def _measured(
        self, query: Query, places: np.ndarray, shape: tuple[int, ...]
    ) -> tuple[Measurement, Measurement]:
        number = int(np.prod(shape))
        times = np.bincount(places, minlength=number)
        if times.max() > 1:
            raise ValueError(
                f"The table of {self.name} has {int((times > 1).sum()):,} cells twice. If it was "
                "measured several times, number these with a column 'round'."
            )
        if times.min() == 0:
            raise ValueError(
                f"The table of {self.name} lacks {int((times == 0).sum()):,} of {number:,} cells. "
                "Give all of them: an empty cell has estimate 0, and one that was suppressed a "
                "large stddev."
            )
        counts = np.empty(number)
        counts[places] = self.counts
        mean = float(np.sqrt(np.square(self.stddevs).mean()))
        mean_one, largest = (
            Measurement(query=query, answer=counts.reshape(shape).copy(), stddev=stddev)
            for stddev in (mean, float(self.stddevs.max()))
        )
        return mean_one, largest

    @property
    def is_even(self) -> bool:
        """Whether the noise of all cells is the same, to within a percent."""
        return bool(self.stddevs.max() <= 1.01 * self.stddevs.min())


def tidy_tables(sources: Sequence[Source]) -> list[TidyTable]:
    """The tables in tidy rows, in the order in which they come.

    Raises:
        ValueError: For rows without counts or noise, and for counts that are not numbers.
        OSError: If a file cannot be read.
    """
    return [table for source in sources for table in _of_frame(_frame(source))]


def without_missing(columns: Mapping[str, Mapping], tables: Sequence[TidyTable]) -> dict[str, dict]:
    """The same declarations; columns of which no table names missing values have none."""
    nullable = {
        name
        for table in tables
        for name, labels in zip(table.clique, table.labels, strict=True)
        if any(names_missing(label) for label in pd.unique(pd.Series(labels, dtype=object)))
    }
    return {
        name: dict(facts)
        if name in nullable or facts.get("range_is_nullable") is not None
        else {**facts, "range_is_nullable": False}
        for name, facts in columns.items()
    }


def answers_of(
    tables: Sequence[TidyTable], schema: Schema
) -> tuple[list[Measurement], list[Measurement]]:
    """All tables as answers, with their mean noise, and with their largest noise.

    Raises:
        ValueError: For tables of columns that are not declared, for declared columns that no table
            has, and as ``TidyTable.answers``.
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
    found = [table.answers(labels) for table in tables]
    return _sharing([mean for mean, _ in found]), _sharing([largest for _, largest in found])


def _frame(source: Source) -> pd.DataFrame:
    if isinstance(source, pd.DataFrame):
        return source
    path = Path(source)
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    if path.suffix == ".csv":
        texts = {f"label_{place}": str for place in range(1, 10)}
        return pd.read_csv(path, dtype=texts, keep_default_na=False, na_values=[""])  # type: ignore[arg-type]
    raise ValueError(f"Tables are read from files that end in .parquet or .csv, got {str(path)!r}.")


def _of_frame(frame: pd.DataFrame) -> list[TidyTable]:
    """The tables of one frame; what only follows from others is left out."""
    if "estimate" not in frame:
        raise ValueError(
            "Tables need a column 'estimate' with the count of each cell, and column_1, label_1 "
            f"and so on that name it; the columns are {list(map(str, frame.columns))!r}."
        )
    rows: Any = frame[frame["kind"].astype(str) == MEASURED] if "kind" in frame else frame
    counts, stddevs = _numbers(rows["estimate"], "estimate"), _stddevs(rows)
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
    members: dict[tuple[Clique, str], list[int]] = {}
    for row, key in enumerate(zip(cliques, rounds, strict=True)):
        members.setdefault(key, []).append(row)
    return [
        TidyTable(
            clique=clique,
            labels=tuple(own[held] for own in labels[: len(clique)]),
            counts=counts[held],
            stddevs=stddevs[held],
        )
        for (clique, _), held in members.items()
    ]


def _stddevs(rows: Any) -> np.ndarray:
    if "stddev" in rows:
        found = _numbers(rows["stddev"], "stddev")
    elif "variance" in rows:
        found = _numbers(rows["variance"], "variance")
    else:
        raise ValueError(
            "Tables need a column 'stddev', or 'variance', for the noise of each count: 0 if the "
            "counts are exact."
        )
    if found.size and found.min() < 0:
        raise ValueError("The noise of a count cannot be negative.")
    return found if "stddev" in rows else np.sqrt(found)


def _numbers(column: pd.Series, name: str) -> np.ndarray:
    try:
        found = column.to_numpy(dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"The column {name!r} of tables must hold numbers.") from None
    if not np.isfinite(found).all():
        raise ValueError(f"The column {name!r} of tables has values that are missing or infinite.")
    return found


def _groups(name: str, named: Sequence[Codes], labels: ColumnLabels) -> np.ndarray:
    """The group of each code, by the order of their first codes."""
    distinct = sorted(set(named))
    held = [code for codes in distinct for code in codes]
    if len(set(held)) < len(held):
        raise ValueError(f"Cells of {name!r} overlap in one table.")
    lacking = [labels.texts[code] for code in range(labels.column.size) if code not in set(held)]
    if lacking:
        raise ValueError(
            f"A table lacks the cells {lacking[:5]!r} of {name!r}. Give them with estimate 0, or "
            "declare the column without them (range_is_nullable=False if none is missing)."
        )
    groups = np.empty(labels.column.size, dtype=np.int64)
    for place, codes in enumerate(distinct):
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
    return [
        each
        if place is None
        else Measurement(
            query=GroupedMarginalQuery(each.query.clique, groupings[place]),  # pyright: ignore
            answer=each.answer,
            stddev=each.stddev,
        )
        for each, place in zip(answers, members, strict=True)
    ]
