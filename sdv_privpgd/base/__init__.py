"""What every other package may use: domains, checks, progress, words, and damaged files."""

import functools
from collections.abc import Callable
from contextlib import ContextDecorator, nullcontext
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


class _OneBlasThread(ContextDecorator):
    """Linear algebra computes on one core meanwhile, in all threads of the process.

    Its matrices have a few hundred rows here. For these more cores are no faster where they are
    idle, and wait for each other where they are busy or fewer than the machine seems to have.
    """

    def __init__(self) -> None:
        # No lock: a process that was forked meanwhile would wait for it for ever.
        self._inside: list[None] = []
        self._before: Any = None

    def __enter__(self) -> None:
        from threadpoolctl import threadpool_limits  # the privacy core is numpy and scipy alone

        self._inside.append(None)
        if len(self._inside) == 1:
            self._before = threadpool_limits(1, user_api="blas")

    def __exit__(self, *_: object) -> None:
        self._inside.pop()
        if not self._inside and self._before is not None:
            self._before.restore_original_limits()


one_blas_thread = _OneBlasThread()

__all__ = ["cached_property", "one_blas_thread"]
