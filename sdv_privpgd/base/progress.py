"""Progress of long work, reported stage by stage."""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from inspect import signature
from typing import Any, Protocol, TypeVar, runtime_checkable

from sdv_privpgd._lazy import is_there
from sdv_privpgd.base.arguments import shown as as_text

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


def heard(progress: Any) -> Progress:
    """A ``Progress`` of any function that takes items and a stage, whatever it returns.

    Raises ``ValueError`` for anything else.
    """
    try:
        is_heard = callable(progress)
        with suppress(ValueError):  # of some functions nobody can say what they take
            signature(progress).bind((), "")
    except TypeError:
        is_heard = False
    if not is_heard:
        raise ValueError(
            f"progress must be a function of items and a stage, got {as_text(progress)}."
        )

    def checked(items: Sequence[Item], stage: str) -> Iterable[Item]:
        own = progress(items, stage)
        return own if isinstance(own, Iterable) else items

    return checked


@contextmanager
def one_step(progress: Progress, stage: str) -> Iterator[None]:
    """Shows a stage that has no loop."""
    steps = iter(progress((stage,), stage))
    next(steps, None)
    yield
    for _ in steps:
        pass


class Shares:
    """Shows a stage whose steps differ in length: it is told which share of the stage is done."""

    def __init__(self, progress: Progress, stage: str) -> None:
        self._whole, self._begun = 100, -1
        self._parts = iter(progress(range(self._whole), stage))
        self.reach(0.0)

    def reach(self, share: float) -> None:
        """Reports that this share of the stage, from 0 to 1, is done. Shares never fall."""
        while self._begun < min(int(share * self._whole), self._whole):
            self._begun += 1
            next(self._parts, None)


_TOLD = {
    "compile": "compiling, once, about 10 seconds",
    "look": "looking for ranges and categories",
    "encode": "reading cells",
    "measure": "counting and adding noise",
    "measure again": "counting and adding noise",
    "compare": "comparing pairs of columns",
    "select": "choosing what to count",
    "denoise": "taking noise out",
    "project": "making tables possible",
    "descend": "moving records",
    "local_search": "settling records",
    "fit": "fitting the model",
}
"""What the stages are called before people."""


@contextmanager
def shown(title: str, is_shown: bool) -> Iterator[Progress]:
    """Shows a bar, if it is to be seen and tqdm is installed."""
    if not is_shown or not is_there("tqdm"):
        yield silent
        return
    with Bar(title) as bar:
        yield bar


class Bar:
    """A ``Progress`` that shows one bar for the present stage, to be used as a context manager."""

    def __init__(self, title: str) -> None:
        with warnings.catch_warnings():
            # In a notebook without ipywidgets it asks for them, and shows text.
            warnings.simplefilter("ignore")
            from tqdm.auto import tqdm
        self._title = title
        self._shown = tqdm(
            total=1,
            desc=title,
            bar_format="{desc} {percentage:3.0f}%|{bar}| {elapsed}<{remaining}",
            dynamic_ncols=True,
        )

    def __enter__(self) -> "Bar":
        return self

    def __exit__(self, kind: type[BaseException] | None, *others: object) -> None:
        if kind is None:
            self._show("done", 1)
            self._shown.update()
        self._shown.close()

    def __call__(self, items: Sequence[Item], stage: str) -> Iterator[Item]:
        """The items, while the bar moves over the stage."""
        self._show(_TOLD.get(stage, stage), len(items))
        for item in items:
            yield item
            self._shown.update()

    def _show(self, what: str, steps: int) -> None:
        self._shown.set_description_str(f"{self._title}: {what}", refresh=False)
        self._shown.reset(steps)
