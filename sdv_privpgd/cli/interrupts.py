"""Handles Ctrl-C and the signals of schedulers and closed terminals, which end a command."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

_ENDING = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


def exit_status(interrupt: KeyboardInterrupt) -> int:
    """The exit status that a shell expects after a signal: 130 after Ctrl-C."""
    return 128 + int(interrupt.args[0] if interrupt.args else signal.SIGINT)


@contextmanager
def raised() -> Iterator[None]:
    """Turns each of them into a ``KeyboardInterrupt``, so that files and ledgers are completed."""
    with _handled(_raise):
        yield


@contextmanager
def undisturbed() -> Iterator[None]:
    """Holds all of them back for a moment."""
    with _handled(signal.SIG_IGN):
        yield


@contextmanager
def _handled(handler: Callable | signal.Handlers) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # nohup has closed terminals ignored. Shells ignore Ctrl-C for all that runs in the background.
    before = {
        number: signal.signal(number, handler)
        for number in _ENDING
        if number == signal.SIGINT or signal.getsignal(number) != signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, former in before.items():
            # None means that it was not set from Python and cannot be set again.
            signal.signal(number, signal.SIG_DFL if former is None else former)


def _raise(number: int, frame: Any) -> NoReturn:
    del frame
    raise KeyboardInterrupt(number)
