"""Starts a command, and handles Ctrl-C and the signals of schedulers and closed terminals.

The first imports take seconds, and Ctrl-C may come before they end.
"""

import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NoReturn

_ENDING = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command line, shows its errors and warnings, and returns the exit status."""
    try:
        from sdv_privpgd.cli.arguments import parser
        from sdv_privpgd.cli.messages import CommandError, say, say_warning
    except KeyboardInterrupt:
        print("sdv-privpgd: Nothing was spent.\nsdv-privpgd: interrupted", file=sys.stderr)
        return 130
    parsed = parser().parse_args(arguments)
    with warnings.catch_warnings(), raised():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = say_warning
        try:
            parsed.run(parsed)
        except CommandError as error:
            say(str(error))
            return 1
        except BrokenPipeError:  # the reader has closed the pipe
            sys.stdout = None
        except KeyboardInterrupt as interrupt:
            getattr(parsed, "say_spent", lambda: say("Nothing was spent."))()
            say("interrupted")
            return 128 + int(interrupt.args[0] if interrupt.args else signal.SIGINT)
        except Exception as error:  # noqa: BLE001 - its text may hold a value of the table
            say(f"failed with {type(error).__name__}; its text is withheld.")
            return 1
    return 0


def raised() -> AbstractContextManager[None]:
    """Turns each signal into a ``KeyboardInterrupt``, so that files and ledgers are completed."""
    return _handled(_raise)


def undisturbed() -> AbstractContextManager[None]:
    """Holds all of them back for a moment."""
    return _handled(signal.SIG_IGN)


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
