"""The methods of a fitted object for analyses of one's own. Public."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from sdv_privpgd.base.progress import Progress
from sdv_privpgd.inference.answering import Answering
from sdv_privpgd.inference.bootstrap import bootstrap
from sdv_privpgd.inference.coefficients import Regression
from sdv_privpgd.inference.imputation import imputations
from sdv_privpgd.inference.regression import regression
from sdv_privpgd.inference.replicates import Bootstrap


class Concluding(Answering):
    """Answers questions, and repeats any analysis to say how sure it is. Public."""

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
            return bootstrap(
                self._refits(),
                statistic,
                num_repetitions,
                kind=kind,
                seed=seed,
                num_processes=num_processes,
                progress=shown,
            )

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
            return imputations(
                self._refits(),
                number,
                num_rows,
                seed=seed,
                num_processes=num_processes,
                progress=shown,
            )

    def regression(
        self,
        outcome: str,
        on: str | Sequence[str],
        *,
        kind: str = "linear",
        event: Any = None,
        reference: Mapping[str, Any] | None = None,
    ) -> Regression:
        """A linear or logistic regression of the population, and how sure it is. Public, and free.

        It is computed from the noisy tables of pairs and not from synthetic rows, so noise does not
        shrink it, and its standard errors know both sampling and noise. A linear one takes from
        the model only for which rows errors are larger, so that its standard errors are robust to
        that. A logistic one (main effects) takes from it what three or more covariates have
        together.

        Args:
            outcome: A column of numbers or booleans, or any with an ``event``.
            on: The columns that predict: numbers, taken by the mean of their cells, and
                categories, of which each value is compared with one. Ordered categories that are
                numbers are taken as these, unless ``reference`` names them. Not dates.
            kind: ``"linear"`` or ``"logistic"``.
            event: The values of the outcome that count as 1, as a condition: a value, a list of
                values or a ``Between``. The others are 0.
            reference: By category the value that others are compared with; the first by default.

        Returns:
            A ``Regression``: ``coefficients``, ``stddev``, ``covariance``, ``interval(level)``,
            ``summary()`` as statsmodels has it, and as text a table.

        Raises:
            ValueError: For columns that cannot be regressed, pairs that were not measured, and
                noise that hides the answer.
        """
        return regression(self._asked(), outcome, on, kind, event=event, reference=reference)
