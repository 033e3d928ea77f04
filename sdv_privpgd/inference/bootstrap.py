"""The bootstrap through a release: how sure any function of the rows is. Public."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.inference.answers import TABLES, Answer, on_people
from sdv_privpgd.inference.intervals import KINDS, Interval, Open, deviations
from sdv_privpgd.inference.questions import Questions
from sdv_privpgd.inference.refits import Refit, Refits, Rows, numbers_of, repeated
from sdv_privpgd.inference.replicates import MODEL_BASED, Bootstrap, Replicates
from sdv_privpgd.synthesize.engine import Model

Statistic = Callable[[pd.DataFrame], Any]
"""A function of rows that returns a number, an array or a Series."""


@dataclass(frozen=True)
class _OfRows:
    """The statistic of a refit's rows, and of the simulated table if its truth is asked for."""

    refits: Refits
    statistic: Statistic
    kind: str

    def __call__(self, refit: Refit) -> tuple[Any, Any]:
        value = self.mean(refit.model, refit.seed)
        if self.kind == "population":
            return value, None
        table = Rows(domain=self.refits.release.domain, codes=refit.codes)
        sampler = self.refits.sampler_of(table, refit.seed)
        return value, self.statistic(pd.DataFrame(sampler.take(self.refits.num_rows)))

    def mean(self, model: Model, seed: int) -> Any:
        """The mean of the statistic over tables of rows of a model, as long as the real one."""
        # Rows of a model that a statistic sees at least, in tables as long as the real one. Where
        # it has few rows, chance in the choice of the model's rows would otherwise add to every
        # error.
        rows = 20_000
        num_rows = self.refits.num_rows
        sampler = self.refits.sampler_of(model, seed)
        found = [
            self.statistic(pd.DataFrame(sampler.take(num_rows)))
            for _ in range(max(round(rows / num_rows), 1))
        ]
        return _mean(found)


def bootstrap(
    refits: Refits,
    statistic: Statistic,
    num_repetitions: int = 50,
    *,
    kind: str = "population",
    seed: int = 0,
    num_processes: int | None = None,
    progress: Progress = silent,
) -> Bootstrap:
    """A statistic and its error, as ``FittedTable.bootstrap`` describes it.

    Raises:
        ValueError: For fewer than two repetitions, an unknown kind, and a statistic that is no
            number.
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {KINDS}, got {kind!r}.")
    numbers = numbers_of(num_repetitions)
    evaluate = _OfRows(refits, statistic, kind)
    estimate = evaluate.mean(refits.release.model, seed)
    Bootstrap.of(estimate, [estimate] * 2, kind=kind)  # refuses before the work what is no number
    found = repeated(
        refits, evaluate, numbers, seed=seed, num_processes=num_processes, progress=progress
    )
    truths = None if kind == "population" else [truth for _, truth in found]
    notes = on_people(refits.release)
    return Bootstrap.of(estimate, [value for value, _ in found], truths, kind=kind, notes=notes)


def _mean(values: Sequence[Any]) -> Any:
    """The mean of statistics, aligned by the first one's index if they are Series."""
    first = values[0]
    if len(values) == 1 or isinstance(first, pd.DataFrame):
        return first  # a frame is refused where errors are computed
    if isinstance(first, pd.Series):
        return sum(each.reindex(first.index) for each in values[1:]) / len(values) + first / len(
            values
        )
    try:
        return np.mean([np.asarray(each, dtype=np.float64) for each in values], axis=0)
    except (TypeError, ValueError):
        raise ValueError(
            "The statistic must return a number, or an array of numbers that always has the same "
            f"shape, or a Series, got {first!r}."
        ) from None


@dataclass(frozen=True)
class OfModel:
    """The intervals of a model's answer: errors of repetitions from both truths."""

    found: Mapping[str, Replicates]

    def interval(self, kind: str, level: float) -> Interval:
        """The interval of one of ``KINDS`` at a level such as 0.95."""
        deviations(kind, level)
        low, high = self.found[kind].ends(level, "normal")
        return Interval(float(low[0]), float(high[0]))


@dataclass(frozen=True)
class _Asked:
    """The answer of a refit's model, and of the simulated rows that it was fitted to."""

    refits: Refits
    questions: Questions
    what: str
    how: Mapping[str, Any]

    def __call__(self, refit: Refit) -> tuple[float, float]:
        rows = Rows(domain=self.refits.release.domain, codes=refit.codes)
        return self.of(refit.model), self.of(rows)

    def of(self, model: Model) -> float:
        questions = replace(self.questions, model=model)
        return questions.answer(self.what, **self.how).estimate  # pyright: ignore


def with_bootstrap(
    answer: Answer,
    questions: Questions,
    refits: Refits,
    num_repetitions: int,
    what: str,
    how: Mapping[str, Any],
    *,
    num_processes: int | None = None,
    progress: Progress = silent,
) -> Answer:
    """The answer with intervals by repetitions of the fit, if it is the model's.

    What the tables determine stays as it is: its interval is exact, and needs no model.

    Raises:
        ValueError: For an answer that is no number.
    """
    numbers = numbers_of(num_repetitions)
    if answer.basis == TABLES:
        return answer
    if isinstance(answer.estimate, bool) or not isinstance(answer.estimate, int | float):
        raise ValueError(
            f"bootstrap= knows the error of numbers, and this answer is {answer.estimate!r}."
        )
    evaluate = _Asked(refits, questions, what, how)
    found = repeated(refits, evaluate, numbers, num_processes=num_processes, progress=progress)
    values, of_rows = np.array(found, dtype=np.float64).T
    estimate = np.array([answer.estimate], dtype=np.float64)
    truths = {"population": estimate, "table": of_rows}
    errors = {
        kind: Replicates(estimate=estimate, errors=(values - truth)[:, None])
        for kind, truth in truths.items()
    }
    notes = (
        f"The measured tables do not determine this answer: its intervals are from "
        f"{len(numbers)} repetitions of the fit.",
        MODEL_BASED,
    )
    own, ends = OfModel(errors), answer.origin.ends
    statistic = Open(own, *ends) if any(ends) else own
    return replace(answer, statistic=statistic, notes=(*answer.notes, *notes))
