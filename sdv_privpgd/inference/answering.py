"""The two methods of a fitted object that say how sure it is. Public."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, overload

import pandas as pd

from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.inference.answers import Answer, TableAnswer
from sdv_privpgd.inference.model_answers import with_bootstrap
from sdv_privpgd.inference.questions import Questions
from sdv_privpgd.inference.refits import Refits
from sdv_privpgd.inference.tables import noisy_tables
from sdv_privpgd.pipeline import Release


class Answering(ABC):
    """Answers questions about the table that was fitted. Public: it sees noisy answers alone."""

    @abstractmethod
    def _released(self) -> tuple[Release | None, Schema]:
        """The release, ``None`` where no column is modelled, and the columns."""

    @abstractmethod
    def _unseen(self) -> Mapping[str, float]:
        """For each column whose range was found, how many rows may lie beyond it unseen."""

    @abstractmethod
    def _refits(self) -> Refits:
        """What repeats the fit. Raises ``ValueError`` where it cannot be repeated."""

    @contextmanager
    def _shown_repeating(self, progress: Progress | None) -> Iterator[Progress]:
        """What is told of repetitions: nothing, where nothing was asked for."""
        yield silent if progress is None else progress

    @overload
    def answer(
        self,
        what: Literal["table"],
        *,
        of: str | Sequence[str],
        where: Mapping[str, Any] | None = None,
    ) -> TableAnswer: ...

    @overload
    def answer(
        self,
        what: Literal["count", "share", "mean", "sum", "quantile"],
        *,
        of: str | None = None,
        where: Mapping[str, Any] | None = None,
        among: Mapping[str, Any] | None = None,
        q: float | None = None,
        bootstrap: int | None = None,
    ) -> Answer: ...

    def answer(
        self,
        what: str,
        *,
        of: str | Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
        among: Mapping[str, Any] | None = None,
        q: float | None = None,
        bootstrap: int | None = None,
    ) -> Answer | TableAnswer:
        """An answer about the real table, and how sure it is. Public, and free.

        What the measured tables determine is computed from all of them: an unbiased estimate whose
        noise is known exactly. Its intervals need no model. All else is the model's answer and says
        so: ``basis`` is ``"model"``, and no formula knows its interval. What pairs of columns say
        is always determined where all pairs are measured, which is the default up to 50 columns; so
        are three columns whose values are few. ``bootstrap=50`` gives a number of the model's an
        interval, by so many repetitions of the fit.

        Args:
            what: ``"count"`` or ``"share"`` of rows; ``"mean"``, ``"sum"`` or ``"quantile"`` of a
                column's values, missing ones aside; or ``"table"``, the count of each cell.
            of: The column that a mean, a sum or a quantile is of; the columns of a table.
            where: What rows must meet, by column: a value, a list of values, ``None`` for missing,
                or ``Between(30, 40)``. At most three columns in all. A range that cuts cells takes
                a part of their rows, and the answer says so; intervals of counts and shares hold
                for any part.
            among: The rows that a share is among, in the same way; all of them by default.
            q: The part of the values up to a quantile: 0.5 for the median.
            bootstrap: Repetitions for the interval of an answer that is the model's. Others keep
                their exact intervals.

        Returns:
            An ``Answer``: ``estimate``, ``stddev``, ``interval("table")``, ``interval("population",
            level=0.9)``, ``basis``, ``notes``, and as text a sentence. Of a table a
            ``TableAnswer``, with a pandas Series of estimates and frames of intervals.

        Raises:
            ValueError: For what cannot be asked, unknown columns and values outside the domain.
        """
        how = {"of": of, "where": where, "among": among, "q": q}
        questions = self._asked()
        answer = questions.answer(what, **how)  # pyright: ignore[reportArgumentType]
        if bootstrap is None:
            return answer
        if isinstance(answer, TableAnswer):
            raise ValueError("bootstrap= is for numbers: ask for the counts of a table one by one.")
        with self._shown_repeating(None) as progress:
            return with_bootstrap(
                answer, questions, self._refits(), bootstrap, what, how, progress=progress
            )

    def noisy_tables(self, path: str | Path | None = None) -> pd.DataFrame:
        """All noisy tables as tidy rows, one a cell. Public: everything else follows from them.

        ``kind`` is ``"measured"`` for what was asked of the real table, with independent noise of
        ``stddev`` in each row (``round`` counts how often the same was asked), and
        ``"consistent"`` for the best linear estimates from all of that, which agree with each other
        wherever tables overlap and whose noise is smaller and not independent. ``column_1`` and
        ``label_1``, and so on, name the cell: its values, its range, or its group of values. The
        first row, without labels, is the number of rows.

        Args:
            path: A file to write them to as well, ``.parquet`` or ``.csv``.
        """
        questions = self._asked()
        return noisy_tables(questions.release, questions.schema, path)

    def _asked(self) -> Questions:
        release, schema = self._released()
        if release is None:
            raise ValueError("No column is modelled, so nothing was measured.")
        return Questions(release, schema, unseen=self._unseen())
