"""Everything that a fit lets out: what it says while it runs, and what a file of it would hold.

Warnings and prints go through objects that all threads share. What other threads say meanwhile is
passed on to where it would have gone, and is not looked at.

An object is taken apart as ``pickle`` takes it apart, so that nothing a file holds is missed; how
often one part is shared, which makes two equal files differ, does not show.
"""

import io
import logging
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TextIO

import numpy as np
import pandas as pd

from sdv_privpgd.base.progress import Item

_CLOCK = "TIMESTAMP"
"""What SDV's log records have that no two runs share."""


@dataclass(eq=False)
class Said:
    """What was said during a run, in order."""

    # Of each warning its kind and its text.
    warnings: list[tuple[str, str]] = field(default_factory=list)
    # Of each record its logger, level and text.
    log: list[tuple[str, str, str]] = field(default_factory=list)
    printed: io.StringIO = field(default_factory=io.StringIO)  # what went to stdout and stderr
    # The kind, text and notes of the error that ended the run.
    error: tuple[str, str, tuple[str, ...]] | None = None
    steps: "Steps" = field(default_factory=lambda: Steps())  # what a progress bar was told

    def messages(self) -> list[Any]:
        """All that is text for people."""
        return [self.warnings, self.log, self.printed.getvalue(), self.error]


class Steps:
    """A ``Progress`` that writes down what it is told: public facts alone, if all is right."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def __call__(self, items: Sequence[Item], stage: str) -> Iterable[Item]:
        self.told.append(f"{stage}: {len(items)} steps")
        done = 0
        try:
            for item in items:
                yield item
                done += 1
        finally:
            self.told.append(f"{stage}: {done} done")


@contextmanager
def listening() -> Iterator[Said]:
    """Collects what the calling thread says. An error ends the run and is collected, too."""
    said, me = Said(), threading.get_ident()
    handler = _Handler(said, me)
    root = logging.getLogger()
    level = root.level
    out, err = sys.stdout, sys.stderr
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    sys.stdout, sys.stderr = _Ear(out, said.printed, me), _Ear(err, said.printed, me)
    try:
        with warnings.catch_warnings():
            shown = warnings.showwarning
            warnings.simplefilter("always")
            warnings.showwarning = _warned(said, me, shown)
            yield said
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what the user would see
        notes = tuple(getattr(error, "__notes__", ()))
        said.error = type(error).__name__, str(error), notes
    finally:
        sys.stdout, sys.stderr = out, err
        root.setLevel(level)
        root.removeHandler(handler)


def _warned(said: Said, me: int, shown: Callable[..., Any]) -> Callable[..., Any]:
    def show(message: Any, category: type, *rest: Any, **more: Any) -> None:
        if threading.get_ident() == me:
            said.warnings.append((category.__name__, str(message)))
        else:
            shown(message, category, *rest, **more)

    return show


class _Handler(logging.Handler):
    """Keeps one thread's log records."""

    def __init__(self, said: Said, me: int) -> None:
        super().__init__(logging.DEBUG)
        self._said, self._me = said, me

    def emit(self, record: logging.LogRecord) -> None:
        if threading.get_ident() != self._me:
            return
        text: Any = record.msg
        if isinstance(text, dict):
            text = {name: fact for name, fact in text.items() if name != _CLOCK}
        else:
            text = record.getMessage()
        self._said.log.append((record.name, record.levelname, str(text)))


class _Ear:
    """A stream that keeps what one thread writes and passes on the rest."""

    def __init__(self, stream: TextIO, kept: io.StringIO, me: int) -> None:
        self._stream, self._kept, self._me = stream, kept, me

    def write(self, text: str) -> int:
        own = threading.get_ident() == self._me
        return (self._kept if own else self._stream).write(text)

    def flush(self) -> None:
        self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


_PLAIN = str, bytes, int, float, complex, bool, type(None)

Leaf = tuple[str, str]
"""The kind of a leaf and its value."""


def leaves(whole: Any) -> dict[str, Leaf]:
    """Each text, number and array in an object, by its place."""
    return dict(_leaves(whole, "", set()))


def unlike(one: Mapping[str, Leaf], other: Mapping[str, Leaf]) -> list[str]:
    """The places where two objects have not the same leaf."""
    return [
        *(place for place, leaf in one.items() if other.get(place) != leaf),
        *(place for place in other if place not in one),
    ]


def _leaves(part: Any, place: str, above: set[int]) -> Iterator[tuple[str, Leaf]]:
    if isinstance(part, _PLAIN) and type(part) in _PLAIN:
        yield place, (type(part).__name__, repr(part))
        return
    if isinstance(part, type | types.FunctionType | types.BuiltinFunctionType | types.ModuleType):
        yield place, ("name", getattr(part, "__qualname__", part.__name__))
        return
    if id(part) in above:
        yield place, ("again", type(part).__qualname__)
        return
    above = above | {id(part)}
    if isinstance(part, Mapping) and isinstance(part, dict):
        for name, each in part.items():
            yield from _leaves(each, f"{place}[{_key(name)}]", above)
    elif isinstance(part, list | tuple):
        for at, each in enumerate(part):
            yield from _leaves(each, f"{place}[{at}]", above)
    elif isinstance(part, set | frozenset):
        yield place, ("set", repr(sorted(map(repr, part))))
    elif isinstance(part, np.ndarray) and part.dtype != object:
        yield place, ("array", f"{part.dtype} {part.shape} {hash(part.tobytes())}")
    elif isinstance(part, np.ndarray):
        for at, each in enumerate(part.ravel().tolist()):
            yield from _leaves(each, f"{place}[{at}]", above)
    elif isinstance(part, pd.Series | pd.Index):
        yield place, (type(part).__name__, str(part.dtype))
        yield from _leaves(list(part), place, above)
    elif isinstance(part, pd.DataFrame):
        for name in part:
            yield from _leaves(part[name], f"{place}[{name!r}]", above)
    else:
        yield from _reduced(part, place, above)


def _reduced(part: Any, place: str, above: set[int]) -> Iterator[tuple[str, Leaf]]:
    """What pickle would write of any other object."""
    yield place, ("object", type(part).__qualname__)
    try:
        reduced = part.__reduce_ex__(4)
    except Exception as error:  # noqa: BLE001 - what cannot be pickled is in no file
        yield place, ("unpicklable", type(error).__name__)
        return
    if isinstance(reduced, str):
        return
    _, arguments, *rest = reduced
    yield from _leaves(arguments, f"{place}()", above)
    state, items, pairs = (*rest, None, None, None)[:3]
    states = state if isinstance(state, tuple) else (state,)
    for each in states:
        if isinstance(each, dict):
            for name, value in each.items():
                yield from _leaves(value, f"{place}.{name}", above)
        elif each is not None:
            yield from _leaves(each, f"{place}.state", above)
    for at, each in enumerate(items or ()):
        yield from _leaves(each, f"{place}[{at}]", above)
    for name, each in pairs or ():
        yield from _leaves(each, f"{place}[{_key(name)}]", above)


def _key(name: Any) -> str:
    """A key as the place of what it leads to: text and the like as they are."""
    return repr(name) if isinstance(name, (*_PLAIN, tuple)) else type(name).__qualname__
