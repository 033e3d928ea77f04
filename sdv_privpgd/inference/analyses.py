"""The methods of a fitted object for analyses, each with how sure it is. Public."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal, overload

import pandas as pd

from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.inference.acceptance import Acceptance, Criterion, accepted
from sdv_privpgd.inference.answers import Answer, TableAnswer
from sdv_privpgd.inference.bootstrap import Bootstrap, bootstrap, imputations, with_bootstrap
from sdv_privpgd.inference.questions import Questions
from sdv_privpgd.inference.refits import Refits
from sdv_privpgd.inference.regression import Regression, regression
from sdv_privpgd.inference.tables import noisy_tables


class Concluding(ABC):
    """Answers questions, and repeats any analysis to say how sure it is.

    Public: it sees noisy answers of the table that was fitted alone.
    """

    @property
    @abstractmethod
    def _own_fit(self) -> Any:
        """The ``Fitted``, whose release is ``None`` where no column is modelled."""

    def _refits(self) -> Refits:
        """What repeats the fit. Raises ``ValueError`` where it cannot be repeated."""
        return self._own_fit.refits

    def _first(self, num_rows: int) -> pd.DataFrame:
        """The first rows of the sequence, wherever it stands."""
        sampler = self._own_fit.sampler
        return pd.DataFrame({} if sampler is None else sampler.first(num_rows))

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
        clipped: bool = False,
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
        clipped: bool = False,
        bootstrap: int | None = None,
    ) -> Answer | TableAnswer:
        """An answer about the real table, and how sure it is. Public, and free.

        What the measured tables determine is computed from all of them: an unbiased estimate whose
        noise is known exactly. Its intervals need no model. All else is the model's answer and says
        so: ``basis`` is ``"model"``, and no formula knows its interval. What pairs of columns say
        is always determined where all pairs are measured, which is the default up to 50 columns; so
        are three columns whose values are few. A number of the model's gets an interval by
        repetitions of the fit, and says so: of itself by 25 of the engine ``"particles"``, which
        take about 3 s for 5,000 rows and serve all further answers.

        ``one - other`` and ``one / other`` are answers as well: their intervals know what the noise
        and the rows of both have in common.

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
            clipped: Whether values beyond a range that was found, and not declared, count as its
                ends. Otherwise what such rows could move, a mean, a sum or an outer quantile, has
                intervals without an end on that side: infinite, or of dates the first or the last
                day of the calendar.
            bootstrap: Repetitions for the interval of an answer that is the model's: 0 for none,
                50 or more for a surer one, with any engine. Others keep their exact intervals.

        Returns:
            An ``Answer``: ``estimate``, ``stddev``, ``interval("table")``, ``interval("population",
            level=0.9)``, ``basis``, ``notes``, and as text a sentence. Of a table a
            ``TableAnswer``, with a pandas Series of estimates and frames of intervals.

        Raises:
            ValueError: For what cannot be asked, unknown columns and values outside the domain.
        """
        how = {"of": of, "where": where, "among": among, "q": q, "clipped": clipped}
        questions = self._own_questions()

        def ask(own: Questions) -> Any:
            return own.answer(what, **how)  # pyright: ignore[reportArgumentType]

        return self._with_bootstrap(
            ask(questions), questions, bootstrap, what, lambda own: ask(own).estimate
        )

    def _with_bootstrap(self, answer: Any, questions: Questions, *how: Any) -> Any:
        """The answer with intervals by repetitions, as ``with_bootstrap`` says it."""
        shown = partial(self._shown_repeating, None)
        return with_bootstrap(answer, questions, self._refits, shown, *how)

    def accept(
        self,
        criteria: Sequence[Criterion],
        rows: pd.DataFrame | None = None,
        *,
        level: float = 0.95,
    ) -> Acceptance:
        """Whether rows meet criteria that were fixed before the fit. Public, and free.

        Each is met, not met, or cannot be told at this level, from noisy answers alone: the real
        table is not looked at. The share of fits in which a criterion is falsely said to be met is
        0.05 at most for the usual level. That is for one criterion; of twenty, one may be.

        Args:
            criteria: A list of ``Criterion`` of ``sdv_privpgd.inference``. Write them down before
                the fit: who chooses them by its result gives the level away.
            rows: The rows that are to be handed on; by default the first of the sequence, as many
                as the table has.
            level: The confidence of each verdict.

        Raises:
            ValueError: For what is no criterion, and for questions that cannot be asked.
        """
        questions = self._own_questions()
        if rows is None:
            count = questions.linear.answers([{}]).values[0]
            rows = self._first(max(round(float(count)), 1))
        return accepted(questions, rows, criteria, level, questions.answer)

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
        questions = self._own_questions()
        return noisy_tables(questions.release, questions.schema, path)

    def _own_questions(self) -> Questions:
        own = self._own_fit
        if own.release is None:
            raise ValueError("No column is modelled, so nothing was measured.")
        return Questions(own.release, own.schema, undetected=own.undetected)

    def bootstrap(
        self,
        statistic: Callable[[pd.DataFrame], Any],
        num_repetitions: int = 50,
        *,
        kind: str = "population",
        seed: int = 0,
        num_processes: int | None = None,
        progress: Progress | None = None,
    ) -> Bootstrap:
        """Any statistic of the rows, and how sure it is. Public, and free.

        Each repetition draws as many rows as the table has from the fitted model, asks them the
        same questions with the same noise, fits the answers again and computes the statistic of
        rows of the new model. How the repetitions differ is the error, of sampling and of noise.
        The statistic sees tables as long as the real one, the modelled columns in them; where the
        table is short, its mean over several of them is taken.

        The error is model-based: what the fitted model did not learn, the repetitions cannot
        lack. Where ``answer`` or ``regression`` know an interval, prefer theirs.

        Args:
            statistic: A function of a DataFrame of rows that returns a number, an array that
                always has the same shape, or a Series, which is aligned by its index.
            num_repetitions: 50 give a standard error to within a tenth; pivot intervals need
                some hundreds.
            kind: ``"population"`` for what is true where the rows were drawn from, ``"table"`` for
                what the real table says: then the statistic is computed of each simulated table,
                too.
            seed: Of the simulated rows and noise. Nothing private depends on it.
            num_processes: How many may be used; by default as many as there are cores, if the work
                is long enough to be worth their start.
            progress: Told of the steps.

        Returns:
            A ``Bootstrap``: ``estimate``, ``stddev``, ``interval(level)``, ``bias``,
            ``replicates``, and as text a sentence.
        """
        with self._shown_repeating(progress) as shown:
            how = {"seed": seed, "num_processes": num_processes, "progress": shown}
            return bootstrap(self._refits(), statistic, num_repetitions, kind=kind, **how)

    def imputations(
        self,
        number: int = 50,
        num_rows: int | None = None,
        *,
        seed: int = 0,
        num_processes: int | None = None,
        progress: Progress | None = None,
    ) -> list[pd.DataFrame]:
        """Synthetic tables, to be analysed one by one and combined by ``rubin``. Public, and free.

        Each has independent rows of a model of its own: a repetition of the fit on simulated
        answers, as in ``bootstrap``. That is a draw of the parameters around the estimate with the
        estimate's error, which for large tables is also their posterior under flat priors, as
        Rubin's rules want it. Rows of one model would not do: their tables agree too well.

        Args:
            number: How many; 50 or more for ``rubin``.
            num_rows: Of each, by default as many as the real table has.
            seed: Of the simulated rows and noise.
            num_processes: As in ``bootstrap``.
            progress: Told of the steps.
        """
        with self._shown_repeating(progress) as shown:
            how = {"seed": seed, "num_processes": num_processes, "progress": shown}
            return imputations(self._refits(), number, num_rows, **how)

    def regression(
        self,
        outcome: str,
        on: str | Sequence[str | tuple[str, str]],
        *,
        kind: str = "linear",
        event: Any = None,
        reference: Mapping[str, Any] | None = None,
    ) -> Regression:
        """A linear or logistic regression of the population, and how sure it is. Public, and free.

        It is computed from the noisy tables of pairs and not from synthetic rows, so noise does not
        shrink it, and its standard errors know both sampling and noise. A linear one takes from
        the model only for which rows errors are larger, so that its standard errors are robust to
        that. A logistic one takes from it what three or more covariates have together.

        It is a regression of the rows that have all values, which holds for all rows where the
        outcome is missing by chance among rows with the same predictors. If pairs do not tell what
        predictors have together in these rows, and no triple was measured, the notes say so. They
        also say on which columns it depends that values are missing.

        Args:
            outcome: A column of numbers or booleans, or any with an ``event``.
            on: The columns that predict: numbers, taken by the mean of their cells, dates in
                days, and categories, of which each value is compared with one. Ordered categories
                that are numbers are taken as these, unless ``reference`` names them. A pair of
                columns stands for both and their interaction, whose table with the outcome must
                have been measured. Values that too few rows are known to have count with the
                reference, and the notes name them.
            kind: ``"linear"`` or ``"logistic"``.
            event: The values of the outcome that count as 1, as a condition: a value, a list of
                values or a ``Between``. The others are 0.
            reference: By category the value that others are compared with; by default the first
                that is known to hold rows.

        Returns:
            A ``Regression``: ``coefficients``, ``stddev``, ``covariance``, ``interval(level)``,
            ``summary()`` as statsmodels has it, and as text a table.

        Raises:
            ValueError: For columns that cannot be regressed, pairs that were not measured, and
                noise that hides the answer.
        """
        return regression(
            self._own_questions(), outcome, on, kind, event=event, reference=reference
        )
