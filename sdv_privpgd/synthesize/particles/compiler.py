"""Compiles by numba, keeps the code on disk where there is a place, and runs it in threads."""

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import numba
from numba import config


def njit(**settings: Any) -> Callable[[Callable], Any]:
    """A decorator that compiles a function at its first call and keeps it for later processes.

    The code releases the interpreter's lock, so that ``Threads`` can run it. It has no threads of
    numba's own: a forked process would wait for them, or be ended.
    Where neither the package's folder nor the user's cache can be written to, each process
    compiles anew, and one warning says how to change that.
    """

    def decorated(function: Callable) -> Any:
        try:
            compiled = numba.njit(cache=True, nogil=True, **settings)(function)
        except RuntimeError:  # numba finds no folder
            _warn_of_no_folder()
            return numba.njit(nogil=True, **settings)(function)
        _name_apart(compiled)
        return compiled

    return decorated


def _name_apart(compiled: Any) -> None:
    """Lets no two processes write code to one file.

    numba numbers its files, and writes the index before the code. Two processes that compile a
    function for two types at once would leave the index of one and the code of the other.
    """
    with suppress(AttributeError):  # numba has no public way to name its files
        kept = compiled._cache._cache_file  # noqa: SLF001
        stem = Path(kept._index_name).stem  # noqa: SLF001
        kept._data_name = lambda _: f"{stem}.{uuid4().hex}.nbc"  # noqa: SLF001


def num_threads() -> int:
    """The number of threads that compiled loops may use: all cores, or ``NUMBA_NUM_THREADS``."""
    return config.NUMBA_NUM_THREADS  # pyright: ignore[reportAttributeAccessIssue]: set late


class Threads(ThreadPoolExecutor):
    """Threads that run compiled loops, for as long as a ``with`` statement lasts.

    A process that is forked before or after has no threads that it would wait for.
    """

    def __init__(self) -> None:
        super().__init__(num_threads())

    def run(self, loop: Callable, num_parts: int, *arguments: Any) -> None:
        """Calls a loop for each of its parts, the first one in this thread."""
        others = [self.submit(loop, part, num_parts, *arguments) for part in range(1, num_parts)]
        loop(0, num_parts, *arguments)
        for other in others:
            other.result()


@cache
def _warn_of_no_folder() -> None:
    """Warns once a process."""
    warnings.warn(
        "There is no folder that numba may keep compiled code in, so that each process compiles "
        "for about 10 seconds. Set the environment variable NUMBA_CACHE_DIR to a folder that can "
        "be written to.",
        stacklevel=2,
    )


def is_compiled(function: Any) -> bool:
    """Whether a decorated function is compiled, in memory or on disk for this machine."""
    if function.signatures:
        return True
    try:  # numba has no public way to ask for its files
        kept = function._cache._cache_file._load_index()  # noqa: SLF001
    except AttributeError:  # nothing is kept
        return False
    machine = function.targetctx.codegen().magic_tuple()
    return any(own == machine for _, own, *_ in kept)
