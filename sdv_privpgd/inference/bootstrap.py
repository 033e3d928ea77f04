"""The bootstrap through a release: how sure any function of the rows is. Public."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.inference.answers import on_people
from sdv_privpgd.inference.intervals import KINDS
from sdv_privpgd.inference.refits import Refit, Refits, Rows, numbers_of
from sdv_privpgd.inference.repeating import repeated
from sdv_privpgd.inference.replicates import Bootstrap
from sdv_privpgd.synthesize.engine import Model

Statistic = Callable[[pd.DataFrame], Any]
"""A function of rows that returns a number, an array or a Series."""

_ROWS = 20_000
"""Rows of a model that a statistic sees at least, in tables as long as the real one. Where it has
few rows, chance in the choice of the model's rows would otherwise add to every error."""


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
        num_rows = self.refits.num_rows
        sampler = self.refits.sampler_of(model, seed)
        found = [
            self.statistic(pd.DataFrame(sampler.take(num_rows)))
            for _ in range(max(round(_ROWS / num_rows), 1))
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
