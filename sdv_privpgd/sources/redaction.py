"""Hides what an exception would show of rows: other programs' words, and our own frames' cells."""

import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

from sdv_privpgd.sources.source import SourceError

_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")


def sealed(method: Callable[_Given, _Found]) -> Callable[_Given, _Found]:
    """The same method, of whose exceptions no frame holds a cell or a count.

    Tools that log exceptions write out the variables of each frame. What the method ran in is
    cleared; an exception that was handled in there goes, and one that is named as the cause stays.
    """

    @wraps(method)
    def call(*given: _Given.args, **named: _Given.kwargs) -> _Found:
        before = sys.exc_info()[1]
        try:
            return method(*given, **named)
        except BaseException as error:
            del given, named  # the frame of this one is logged, too
            _clear(error, before)
            raise

    return call


def _clear(error: BaseException, before: BaseException | None) -> None:
    """Clears the frames of an exception and of its causes, down to one of ``before``."""
    traceback.clear_frames(error.__traceback__)
    cause = error.__cause__
    if error.__context__ not in (None, before, cause):
        error.__context__ = before
    if cause is not None and cause is not before:
        _clear(cause, before)


@contextmanager
def withheld(called: str) -> Iterator[None]:
    """Turns every exception into a ``SourceError`` that names its kind alone; hides warnings."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except (SourceError, MemoryError):
        raise
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise SourceError(f"{called} cannot be read: {reason}.") from None
    except Exception as error:  # noqa: BLE001 - any library's
        raise SourceError(f"{called} cannot be read: {type(error).__name__}.") from None
