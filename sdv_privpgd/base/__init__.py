"""What every other package may use: domains, checks, progress, words, and damaged files."""

import functools
from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property
else:

    class cached_property(functools.cached_property):
        """As from Python 3.12 on: without a lock that all instances share while one computes.

        A process that was forked meanwhile would wait for that lock for ever.
        """

        def __init__(self, func: Callable[[Any], Any]) -> None:
            super().__init__(func)
            self.lock = nullcontext()


__all__ = ["cached_property"]
