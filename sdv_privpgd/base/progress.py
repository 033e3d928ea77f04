"""Progress of long work, reported stage by stage."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeVar, runtime_checkable

Item = TypeVar("Item")


@runtime_checkable
class Progress(Protocol):
    """Wraps the items of a loop and shows a stage's progress over them.

    Only loops whose length follows from the domain and the settings are wrapped, so a bar is
    public.
    """

    def __call__(self, items: Sequence[Item], stage: str) -> Iterable[Item]: ...


def silent(items: Sequence[Item], stage: str) -> Iterable[Item]:
    """Shows nothing, and returns the items."""
    del stage
    return items


@contextmanager
def one_step(progress: Progress, stage: str) -> Iterator[None]:
    """Shows a stage that has no loop."""
    steps = iter(progress((stage,), stage))
    next(steps, None)
    yield
    for _ in steps:
        pass


_PARTS = 100


class Shares:
    """Shows a stage whose steps differ in length: it is told which share of the stage is done."""

    def __init__(self, progress: Progress, stage: str) -> None:
        self._parts = iter(progress(range(_PARTS), stage))
        self._begun = -1
        self.reach(0.0)

    def reach(self, share: float) -> None:
        """Reports that this share of the stage, from 0 to 1, is done. Shares never fall."""
        while self._begun < min(int(share * _PARTS), _PARTS):
            self._begun += 1
            next(self._parts, None)
