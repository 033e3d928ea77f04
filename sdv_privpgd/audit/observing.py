"""Everything that a fit says while it runs: warnings, log records, prints, errors, progress.

Warnings and prints go through objects that all threads share. What other threads say meanwhile is
passed on to where it would have gone, and is not looked at.
"""

import io
import logging
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TextIO

from sdv_privpgd.base.progress import Item

_CLOCK = "TIMESTAMP"
"""What SDV's log records have that no two runs share."""


@dataclass(eq=False)
class Said:
    r"""What was said during a run, in order.

    Attributes:
        warnings: Of each warning its kind and its text.
        log: Of each record its logger, level and text.
        printed: What went to stdout and stderr.
        error: The kind, text and notes of the error that ended the run.
        steps: What a progress bar was told.
    """

    warnings: list[tuple[str, str]] = field(default_factory=list)
    log: list[tuple[str, str, str]] = field(default_factory=list)
    printed: io.StringIO = field(default_factory=io.StringIO)
    error: tuple[str, str, tuple[str, ...]] | None = None
    steps: "Steps" = field(default_factory=lambda: Steps())

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
