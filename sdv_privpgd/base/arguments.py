"""Checks of what callers give: each returns the value in Python's own type, or says what is wrong.

Public: a setting is never private.
"""

import math
from collections.abc import Callable, Collection, Iterable
from numbers import Real
from typing import Any, TypeGuard

import numpy as np


class SourceError(ValueError):
    """Raised if rows cannot be read. Its text quotes no cell."""


def shown(value: object) -> str:
    """The value as Python writes it; only the type of a table, which is no setting but private."""
    return type(value).__name__ if getattr(value, "shape", ()) else repr(value)


def check_fields(settings: Any, check: Callable[..., Any], *names: str, **more: Any) -> None:
    """Puts what a check returns in the place of a frozen dataclass's fields.

    A field whose default is ``None`` may be ``None``.
    """
    for name in names:
        value = getattr(settings, name)
        if value is not None or getattr(type(settings), name, ...) is not None:
            object.__setattr__(settings, name, check(name, value, **more))


def check_integer(name: str, value: object, least: int = 1) -> int:
    """The same integer as an int. Raises ``ValueError`` unless it is ``least`` to 2**63 - 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {shown(value)}.")
    if value >= 2**63:  # torch takes no such seed, and NumPy no such size
        raise ValueError(f"{name} must be an integer below 2**63, got {shown(value)}.")
    return int(value)


def check_positive(name: str, value: object) -> Any:
    """The same number, not NumPy's. Raises ``ValueError`` unless it is above 0 and finite."""
    if not _is_number(value) or not 0 < value < math.inf:
        raise ValueError(f"{name} must be a positive number, got {shown(value)}.")
    return value.item() if isinstance(value, np.generic) else value


def check_share(name: str, value: object) -> Any:
    """The same number, not NumPy's. Raises ``ValueError`` unless it lies in [0, 1)."""
    if not _is_number(value) or not 0 <= value < 1:
        raise ValueError(f"{name} must be a number of at least 0 and below 1, got {shown(value)}.")
    return value.item() if isinstance(value, np.generic) else value


def check_flag(name: str, value: object) -> bool:
    """The same truth as a bool. Raises ``ValueError`` for anything else."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {shown(value)}.")
    return bool(value)


def check_names(name: str, names: object) -> tuple[str, ...]:
    """The names of columns as a tuple. Raises ``ValueError`` for anything else, and for doubles."""
    found = (names,) if isinstance(names, str) else names
    if not isinstance(found, list | tuple) or not all(isinstance(each, str) for each in found):
        raise ValueError(f"{name} must name columns, got {shown(names)}.")
    if len(set(found)) < len(found):
        raise ValueError(f"{name} names a column twice: {list(found)!r}.")
    return tuple(found)


def check_known(
    what: str, names: Iterable, known: Collection, kind: str = "modelled columns"
) -> None:
    """Raises ``ValueError`` for names that are none of the known ones."""
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(
            f"{what} names {unknown!r}, which are no {kind}: choose from {list(known)!r}."
        )


def check_choice(name: str, value: object, choices: Collection) -> None:
    """Raises ``ValueError`` for anything that is none of the choices."""
    if value not in choices:
        known = ", ".join(map(repr, choices))
        raise ValueError(f"{name} must be one of {known}, got {shown(value)}.")


def check_epsilon(epsilon: float) -> float:
    """The same epsilon as a float. Raises ``ValueError`` unless it is finite and positive."""
    if not _is_number(epsilon):
        raise ValueError(f"epsilon must be a positive number, got {shown(epsilon)}.")
    try:
        value = float(epsilon)
    except OverflowError:
        value = math.inf
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"epsilon must be positive and finite, got {shown(epsilon)}; try 1.0.")
    return value


def check_delta(delta: float) -> float:
    """The same delta as a float. Raises ``ValueError`` unless it is between 0 and 1."""
    if not _is_number(delta):
        raise ValueError(f"delta must be a number between 0 and 1, got {shown(delta)}.")
    if not (0 < delta < 1 and 0 < float(delta) < 1):  # a Fraction can round to 0 or 1
        raise ValueError(
            f"delta must lie strictly between 0 and 1, got {shown(delta)}; "
            "choose it well below 1 / (number of rows), for example 1e-5."
        )
    return float(delta)


def _is_number(value: object) -> TypeGuard[float]:
    # NumPy's numbers are registered as real; its truths are not, and nor are decimals.
    return isinstance(value, Real) and not isinstance(value, bool)
