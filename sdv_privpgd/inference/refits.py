"""Fits to simulated answers: what the same release would have been, had the rows been others.

Rows are drawn from the fitted model, independently and as many as there were. The questions of the
release are asked of them with the noise that they had, and the engine fits the answers again. How
these fits differ from the model shows how far the release may be from its population, by sampling
and by noise. This is the parametric bootstrap (Efron & Tibshirani 1993, section 6.5; for private
releases Ferrando, Wang & Sheldon 2022). Questions that were chosen by earlier answers are asked as
they were chosen, and so are groups.

All of it is post-processing: free, and public. That is why this noise may come from a seeded
generator. It is Gaussian and rounded to whole numbers, as the curator's is, and no private answer
ever gets it: nothing in ``privacy`` imports this module, which an import contract checks, and
nothing here knows a curator, its ledger or its noise.
"""

import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary, ref

import numpy as np
from joblib import Parallel, cpu_count, delayed, parallel_config

from sdv_privpgd.base.arguments import check_integer
from sdv_privpgd.base.domain import Domain, code_type
from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.estimate.features import EmbeddingQuery
from sdv_privpgd.estimate.noisy_tables import estimate_total
from sdv_privpgd.methods.dp_sgd import TrainingQuery
from sdv_privpgd.methods.pipeline import Release
from sdv_privpgd.privacy.queries import (
    CountQuery,
    CutMarginalQuery,
    GroupedMarginalQuery,
    MarginalQuery,
    Measurement,
    QuadrantQuery,
    exact_answers,
)
from sdv_privpgd.sampling.families import RowMaker
from sdv_privpgd.synthesize.engine import Engine, Model, Wrapped


def simulated_answers(
    measurements: Sequence[Measurement], domain: Domain, codes: np.ndarray, rng: np.random.Generator
) -> tuple[Measurement, ...]:
    """What the same questions, with the same noise, would have found in rows of a model. Public.

    What is not a table, an embedding or the number of rows is left out. Raises ``ValueError`` for
    weights that private gradients have trained.
    """
    if any(isinstance(each.query, TrainingQuery) for each in measurements):
        raise ValueError(
            "Intervals repeat the fit with other noise, and a training by private gradients is not "
            "repeated: it would take the time of as many fits. Choose another method, such as "
            "method='privpgd' does."
        )
    kinds = (
        CountQuery, MarginalQuery, GroupedMarginalQuery, CutMarginalQuery, QuadrantQuery,
        EmbeddingQuery,
    )  # fmt: skip
    known = [each for each in measurements if isinstance(each.query, kinds)]
    found = []
    counted = exact_answers([each.query for each in known], domain, codes)
    for measured, exact in zip(known, counted, strict=True):
        noise = measured.stddev * rng.standard_normal(exact.shape)
        answer, units = np.rint((exact + noise) * measured.units).astype(np.int64), measured.units
        found.append(replace(measured, answer=answer / units if units > 1 else answer))
    return tuple(found)


def independent_rows(model: Model, num_rows: int, rng: np.random.Generator) -> np.ndarray:
    """Codes of rows that are drawn one by one and independently, shape (row, attribute). Public.

    A model's own samples vary less than that, because each of its particles is dealt equally often.
    These vary as rows of a population do.
    """
    pool = model.sample(max(model.block, num_rows), int(rng.integers(2**31)))
    return pool[rng.integers(len(pool), size=num_rows)]


@dataclass(frozen=True, kw_only=True, eq=False)
class Population(Wrapped):
    """A model whose samples are independent rows. Public."""

    def sample(self, num_rows: int, seed: int) -> np.ndarray:
        return independent_rows(self.model, num_rows, np.random.default_rng(seed))


@dataclass(frozen=True, kw_only=True)
class Refit:
    """One fit to simulated answers: rows that were asked, and the model of the answers. Public."""

    codes: np.ndarray
    model: Model
    seed: int  # of rows of the model


@dataclass(frozen=True, kw_only=True)
class Refits:
    """A release that can be simulated. Public: it holds what a release holds, and no table.

    ``engine`` has fitted the model, and ``sampler_of`` makes rows of one, by a seed, as the fitted
    object would.
    """

    release: Release
    engine: Engine
    sampler_of: Callable[[Model, int], RowMaker]

    def __post_init__(self) -> None:
        kinds = MarginalQuery | GroupedMarginalQuery
        if not any(isinstance(each.query, kinds) for each in self.release.measurements):
            raise ValueError(
                "The noisy tables of this fit were not kept, because its engine protects a "
                "statistic that they would show. So the fit cannot be repeated."
            )

    @property
    def are_quick(self) -> bool:
        """Whether so many cells are simulated, and the answers to them fitted, in a moment."""
        most = 5_000_000  # of the rows of a refit: 25 take 3 s of 35,000 cells, 15 s of 3,000,000
        return self.engine.repeats and self.num_rows * len(self.release.domain) <= most

    @property
    def num_rows(self) -> int:
        """The number of rows of the table, as far as it is known; at least 1."""
        return max(round(estimate_total(self.release.domain, self.release.measurements).value), 1)

    def refit(self, number: int, seed: int = 0) -> Refit:
        """The refit with this number. The same seed and number give the same refit."""
        own = np.random.default_rng((seed, number))
        domain, measured = self.release.domain, self.release.measurements
        alike = self.release.ledger.rows_counted  # as rows of a person may be: people are drawn
        codes = independent_rows(self.release.model, -(-self.num_rows // alike), own)
        codes = codes.repeat(alike, axis=0)[: self.num_rows]
        answers = simulated_answers(measured, domain, codes, own)
        engine = self.engine.warm(self.release.model, self.num_rows, int(own.integers(2**31)))
        known = (*answers, *self.release.given)
        model = engine.fit(domain, known, warm_start=self.release.model)
        return Refit(codes=codes, model=model, seed=int(own.integers(2**31)))


def numbers_of(num_repetitions: int) -> Sequence[int]:
    """The numbers of so many refits. Raises ``ValueError`` for fewer than 2."""
    return range(check_integer("num_repetitions", num_repetitions, least=2))


STAGE = "repeat the fit"


def repeated(
    refits: Refits,
    evaluate: Callable[[Refit], Any],
    numbers: Sequence[int],
    *,
    seed: int = 0,
    num_processes: int | None = None,
    progress: Progress = silent,
) -> list[Any]:
    """What is computed of each refit, in order. The result does not depend on the processes.

    The first two are computed here. The second tells how long the others will take, the first one
    may have had to compile. Short work stays in this process; so does a function that cannot be
    sent to others.
    """

    def task(number: int) -> Any:
        return evaluate(refits.refit(number, seed))

    found = [task(number) for number in numbers[:1]]
    begun = time.perf_counter()
    found += [task(number) for number in numbers[1:2]]
    seconds, left = time.perf_counter() - begun, numbers[2:]
    processes = _num_processes(num_processes, len(left), seconds)
    results = _in_processes(task, left, processes) if processes > 1 else map(task, left)
    for _ in progress(left, STAGE):
        found.append(next(results))
    return found


_KEPT: WeakKeyDictionary[Measurement, tuple[Engine, ref[Model], list[Refit]]] = WeakKeyDictionary()
"""The first refits of releases that are still there, by the last of their measurements."""


def kept(
    refits: Refits, number: int, shown: Callable[[], AbstractContextManager[Progress]]
) -> list[Refit]:
    """The first refits: made once for a release, however often they are asked for."""
    release, last = refits.release, refits.release.measurements[-1]
    engine, model, found = _KEPT.get(last, (None, None, []))
    if engine != refits.engine or model is None or model() is not release.model or not found:
        small = code_type(release.domain)

        def task(refit: Refit) -> Refit:
            return replace(refit, codes=refit.codes.astype(small))

        with shown() as progress:
            found = repeated(refits, task, range(number), progress=progress)
        _KEPT[last] = refits.engine, ref(release.model), found
    return found[:number]


def _num_processes(wanted: int | None, number: int, seconds: float) -> int:
    """How many processes are worth their start."""
    # Seconds of work from which on other processes are started: each takes a few seconds to start.
    worth_processes = 20.0
    if wanted is not None and (isinstance(wanted, bool) or wanted < 1):
        raise ValueError(f"num_processes must be at least 1, got {wanted!r}.")
    if wanted is None and seconds * number < worth_processes:
        return 1
    return max(min(cpu_count() if wanted is None else wanted, number), 1)


def _in_processes(
    task: Callable[[int], Any], numbers: Sequence[int], processes: int
) -> Iterator[Any]:
    """The results in order, as they come. Each process computes on one core.

    What cannot be sent to other processes is computed here.
    """
    with parallel_config("loky", n_jobs=processes, inner_max_num_threads=1):
        parallel = Parallel(return_as="generator")
    done = 0
    try:
        for result in parallel(map(delayed(task), numbers)):
            yield result
            done += 1
    except pickle.PicklingError:
        yield from map(task, numbers[done:])
