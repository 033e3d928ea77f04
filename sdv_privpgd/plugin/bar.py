"""One bar for a whole fit, with the time left. What it shows is public but for the seconds."""

import warnings
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any

from sdv_privpgd.progress import Item, Stage

_TOLD = {
    "compile": "compiling, once, about 20 seconds",
    "look": "looking for ranges and categories",
    "encode": "reading cells",
    "measure": "counting and adding noise",
    "measure again": "counting and adding noise",
    "compare": "comparing pairs of columns",
    "select": "choosing what to count",
    "denoise": "taking noise out",
    "project": "making tables possible",
    "descend": "moving records",
    "finish": "settling records",
    "fit": "fitting the model",
}
"""What the stages are called before people."""

_TRUST = 0.15
"""The share of all foretold seconds as much as which the forecast itself is believed: early steps
say little of how fast the machine is."""

_END = 0.99
"""Where the last stage ends; the bar is full once all is done."""


class Bar:
    """A ``Progress`` that shows one bar over all stages, to be used as a context manager.

    A stage takes the part of the bar that is its share of the seconds foretold for what is left.
    Stages that nobody expected are named, and take no part; those that do not come leave theirs
    to the others. The time left is what is foretold, by how much slower or faster than foretold
    the work has been so far.

    >>> from sdv_privpgd.progress import Stage
    >>> with Bar("Fit") as bar:
    ...     bar.expect([Stage("measure", 1.0)])
    ...     done = list(bar(range(3), "measure"))
    >>> bar.position
    1.0
    """

    def __init__(self, title: str) -> None:
        self._title = title
        self._planned: list[Stage] = []
        self._seconds_done = 0.0
        self._now = Stage("", 0.0)
        self._share_done = 0.0
        self._begun_at = 0.0
        self._shown = _meter()(
            total=1.0,
            desc=title,
            bar_format="{desc} {percentage:3.0f}%|{bar}| {elapsed}<{remaining}",
            miniters=0,
            dynamic_ncols=True,
        )
        self._shown.seconds_left = self._seconds_left

    def __enter__(self) -> "Bar":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        del error, traceback
        if kind is None:
            self._planned, self._now = [], Stage("", 0.0)
            self._shown.set_description_str(f"{self._title}: done", refresh=False)
            self._shown.n = 1.0
            self._shown.refresh()
        self._shown.close()

    @property
    def position(self) -> float:
        """How much of the bar is filled, from 0 to 1."""
        return self._shown.n

    def expect(self, stages: Sequence[Stage]) -> None:
        """Takes these stages, in this order, for all that is left."""
        self._planned = list(stages)

    def __call__(self, items: Sequence[Item], stage: str) -> Iterator[Item]:
        """The items, while the bar moves over the stage."""
        self._begin(stage)
        for number, item in enumerate(items, start=1):
            yield item
            self._move(number / len(items))
        self._move(1.0)

    def _begin(self, name: str) -> None:
        self._seconds_done += self._now.seconds
        self._begun_at, self._share_done = self._shown.n, 0.0
        names = [planned.name for planned in self._planned]
        self._now = Stage(name, 0.0)
        if name in names:
            place = names.index(name)
            self._now, self._planned = self._planned[place], self._planned[place + 1 :]
        self._shown.set_description_str(f"{self._title}: {_TOLD.get(name, name)}")

    def _move(self, share: float) -> None:
        self._share_done = share
        to_come = sum(planned.seconds for planned in self._planned)
        if self._now.seconds:
            part = self._now.seconds / (self._now.seconds + to_come)
            self._shown.n = self._begun_at + (_END - self._begun_at) * part * share
        self._shown.update(0)

    def _seconds_left(self, elapsed: float) -> float:
        own = self._now.seconds
        done = self._seconds_done + own * self._share_done
        left = own * (1 - self._share_done) + sum(planned.seconds for planned in self._planned)
        trust = _TRUST * (done + left)
        return left * (trust + elapsed) / (trust + done) if left else 0.0


def _meter() -> Any:
    """Tqdm's class for where this runs, with a time left of our own."""
    with warnings.catch_warnings():
        # In a notebook without ipywidgets it asks for them, and shows text.
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm

    class Meter(tqdm):
        seconds_left: Any = None

        @property
        def format_dict(self) -> Any:
            known = super().format_dict
            if self.seconds_left is not None:
                left = self.seconds_left(known["elapsed"])
                known["rate"] = (1 - self.n) / left if left > 0 else 1.0
            return known

    return Meter
