"""Compiles by numba, keeps the code on disk where there is a place, and runs it in threads."""

import hashlib
import pickle
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, no_type_check

import numpy as np

try:
    import numba as _numba
    from numba.core import caching as _caching
except ImportError:  # a bare machine with a device, whose work is done in torch
    _numba = _caching = None

# Untyped: numba's overloads know few of its options, and its settings come late.
numba: Any = _numba
_KeptFile: Any = getattr(_caching, "IndexDataCacheFile", object)
HAS_NUMBA = numba is not None


def _njit(**settings: Any) -> Callable[[Callable], Any]:
    return numba.njit(**settings) if HAS_NUMBA else lambda _: _needs_numba


def _needs_numba(*_: Any) -> None:
    raise ModuleNotFoundError("This is compiled by numba, which is not installed.")


def inner(**settings: Any) -> Callable[[Callable], Any]:
    """A decorator of functions that compiled code alone calls: nothing else can call them.

    Without what Python and C would call, and without a file, compiling takes a tenth less. A
    function that is called in one place has ``inline="always"``, which takes another tenth.
    """
    return _njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **settings)


def njit() -> Callable[[Callable], Any]:
    """A decorator that compiles a function at its first call and keeps it for later processes.

    The code releases the interpreter's lock, so that ``Threads`` can run it. It has no threads of
    numba's own: a forked process would wait for them, or be ended.
    Where neither the package's folder nor the user's cache can be written to, each process
    compiles anew, and one warning says how to change that.
    """

    def decorated(function: Callable) -> Any:
        try:
            compiled: Any = _njit(cache=True, nogil=True, no_cfunc_wrapper=True)(function)
        except RuntimeError:  # numba finds no folder
            _warn_of_no_folder()
            return _njit(nogil=True, no_cfunc_wrapper=True)(function)
        file: Any = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
        if type(file) is _KeptFile:  # numba has no public way to name another kind
            file.__class__ = _CheckedFile
        return compiled

    return decorated


@inner(inline="always")
@no_type_check
def mixed(word):
    """64 random bits of a counter: SplitMix64's finalizer (Steele, Lea & Flood 2014)."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


class _CheckedFile(_KeptFile):
    """Numba's files of compiled code, which are compiled anew where they are not as written.

    Numba itself runs what a damaged file holds, or what another process has written at the same
    time under the name that the index gives. Each part ends in its digest, and code says whose it
    is.
    """

    def save(self, key: Any, data: Any) -> None:
        super().save(key, (key, data))

    def load(self, key: Any) -> Any:
        found = super().load(key)
        return found[1] if found is not None and found[0] == key else None

    def _dump(self, obj: Any) -> bytes:
        content = super()._dump(obj)
        return content + hashlib.sha256(content).digest()

    def _load_index(self) -> dict:
        # As numba writes it: another version's index is as good as none.
        head = pickle.dumps(self._version, protocol=-1)
        if _is_whole(Path(self._index_path), head):
            return super()._load_index()
        return {}

    def _load_data(self, name: str) -> Any:
        if _is_whole(Path(self._data_path(name))):
            return super()._load_data(name)
        raise OSError  # by which numba knows that there is none


def _is_whole(path: Path, head: bytes = b"") -> bool:
    """Whether a file is there, begins so, and then ends in the digest of what is between."""
    content = path.read_bytes() if path.is_file() else b""
    size = hashlib.sha256().digest_size
    content, digest = content[:-size], content[-size:]
    return content.startswith(head) and hashlib.sha256(content[len(head) :]).digest() == digest


def num_threads() -> int:
    """The number of threads that compiled loops may use: all cores, or ``NUMBA_NUM_THREADS``."""
    return numba.config.NUMBA_NUM_THREADS


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
