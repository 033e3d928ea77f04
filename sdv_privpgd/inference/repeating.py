"""Repeats refits on the cores of this machine, and says how long it takes."""

import os
import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from joblib import Parallel, delayed

from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.inference.refits import Refit, Refits

_WORTH_PROCESSES = 20.0
"""Seconds of work from which on other processes are started: each takes a few seconds to start."""

STAGE = "repeat the fit"


@dataclass(frozen=True)
class _Task:
    """What is done for each number."""

    refits: Refits
    evaluate: Callable[[Refit], Any]
    seed: int

    def __call__(self, number: int) -> Any:
        return self.evaluate(self.refits.refit(number, self.seed))


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

    Args:
        refits: The release.
        evaluate: What to compute of each.
        numbers: The numbers of the refits.
        seed: Of the simulated rows and noise.
        num_processes: How many processes may be used; ``None`` for as many as there are cores.
        progress: Told of the steps.
    """
    task = _Task(refits, evaluate, seed)
    found = [task(number) for number in numbers[:1]]
    begun = time.perf_counter()
    found += [task(number) for number in numbers[1:2]]
    seconds, left = time.perf_counter() - begun, numbers[2:]
    processes = _num_processes(num_processes, len(left), seconds)
    results = _in_processes(task, left, processes) if processes > 1 else map(task, left)
    for _ in progress(left, STAGE):
        found.append(next(results))
    return found


def _num_processes(wanted: int | None, number: int, seconds: float) -> int:
    """How many processes are worth their start."""
    if wanted is not None and (isinstance(wanted, bool) or wanted < 1):
        raise ValueError(f"num_processes must be at least 1, got {wanted!r}.")
    if wanted is None and seconds * number < _WORTH_PROCESSES:
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(min(cores or 1 if wanted is None else wanted, number), 1)


def _in_processes(task: _Task, numbers: Sequence[int], processes: int) -> Iterator[Any]:
    """The results in order, as they come. Each process computes on one core.

    What cannot be sent to other processes is computed here.
    """
    parallel = Parallel(n_jobs=processes, backend="loky", return_as="generator")
    told = 0
    try:
        for result in parallel(delayed(_alone)(task, number) for number in numbers):
            yield result
            told += 1
    except pickle.PicklingError:
        yield from map(task, numbers[told:])


def _alone(task: _Task, number: int) -> Any:
    """A task in a process of its own, which shares the cores with others."""
    import torch

    torch.set_num_threads(1)
    return task(number)
