"""Compiles by numba and keeps the compiled code on disk, where there is a place for it."""

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numba


def njit(**settings: Any) -> Callable[[Callable], Any]:
    """A decorator that compiles a function at its first call and keeps it for later processes.

    Where neither the package's folder nor the user's cache can be written to, each process
    compiles anew, and one warning says how to change that.
    """

    def decorated(function: Callable) -> Any:
        try:
            return numba.njit(cache=True, **settings)(function)
        except RuntimeError:  # numba finds no folder
            _warn_of_no_folder()
            return numba.njit(**settings)(function)

    return decorated


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
