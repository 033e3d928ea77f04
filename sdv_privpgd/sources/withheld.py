"""Hides what other programs say when they cannot read rows: they may quote cells."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from sdv_privpgd.sources.source import SourceError


@contextmanager
def withheld(called: str) -> Iterator[None]:
    """Turns every exception into a ``SourceError`` that names its kind alone; hides warnings.

    >>> with withheld("visits.parquet"):
    ...     int("a secret")
    Traceback (most recent call last):
    ...
    sdv_privpgd.sources.source.SourceError: visits.parquet cannot be read: ValueError.
    """
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
