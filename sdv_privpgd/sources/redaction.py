"""Hides what the frames of an exception would show of rows."""

import sys
import traceback
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

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
