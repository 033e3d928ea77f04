"""How long work reports that it moves on, stage by stage."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

Item = TypeVar("Item")


@runtime_checkable
class Progress(Protocol):
    """Wraps the items of a loop and shows a stage's progress over them.

    Only loops whose length the domain and the settings fix are wrapped: a bar is public.
    """

    def __call__(self, items: Sequence[Item], stage: str) -> Iterable[Item]: ...


def silent(items: Sequence[Item], stage: str) -> Iterable[Item]:
    """Shows nothing."""
    del stage
    return items


class Stage(NamedTuple):
    """A part of the work and the seconds that public facts foretell for it."""

    name: str
    seconds: float


@runtime_checkable
class Planned(Protocol):
    """A ``Progress`` that shows the whole of the work, and so has to know what is to come."""

    def expect(self, stages: Sequence[Stage]) -> None:
        """Takes these stages, in this order, for all that is left."""
        ...


def expect(progress: Progress, foretold: Callable[[], Sequence[Stage]]) -> None:
    """Says what is left, to a ``Progress`` that wants to know. The stages must be public."""
    if isinstance(progress, Planned):
        progress.expect(foretold())


@contextmanager
def one_step(progress: Progress, stage: str) -> Iterator[None]:
    """A stage without a loop."""
    steps = iter(progress((stage,), stage))
    next(steps, None)
    yield
    for _ in steps:
        pass


_PARTS = 100


class Shares:
    """A stage whose steps are of different length: it is told which share of it is done."""

    def __init__(self, progress: Progress, stage: str) -> None:
        self._parts = iter(progress(range(_PARTS), stage))
        self._begun = -1
        self.reach(0.0)

    def reach(self, share: float) -> None:
        """Says that so much of the stage is done, from 0 to 1; shares never fall."""
        while self._begun < min(int(share * _PARTS), _PARTS):
            self._begun += 1
            next(self._parts, None)
