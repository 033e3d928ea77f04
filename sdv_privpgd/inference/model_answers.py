"""The error of an answer that comes from the model, by repetitions of the fit. Public."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.inference.answers import TABLES, Answer
from sdv_privpgd.inference.intervals import Interval, deviations
from sdv_privpgd.inference.questions import Questions
from sdv_privpgd.inference.refits import Refit, Refits, Rows, numbers_of
from sdv_privpgd.inference.repeating import repeated
from sdv_privpgd.inference.replicates import MODEL_BASED, Replicates
from sdv_privpgd.synthesize.engine import Model


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
    return replace(answer, statistic=OfModel(errors), notes=(*answer.notes, *notes))
