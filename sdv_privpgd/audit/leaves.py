"""All texts and numbers that a file of an object would hold, each with its place. Public objects.

An object is taken apart as ``pickle`` takes it apart, so that nothing a file holds is missed; how
often one part is shared, which makes two equal files differ, does not show.
"""

import types
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

_PLAIN = str, bytes, int, float, complex, bool, type(None)

Leaf = tuple[str, str]
"""The kind of a leaf and its value."""


def leaves(whole: Any) -> dict[str, Leaf]:
    """Each text, number and array in an object, by its place."""
    return dict(_leaves(whole, "", set()))


def unlike(one: Mapping[str, Leaf], other: Mapping[str, Leaf]) -> list[str]:
    """The places where two objects have not the same leaf."""
    return [
        *(place for place, leaf in one.items() if other.get(place) != leaf),
        *(place for place in other if place not in one),
    ]


def _leaves(part: Any, place: str, above: set[int]) -> Iterator[tuple[str, Leaf]]:
    if isinstance(part, _PLAIN) and type(part) in _PLAIN:
        yield place, (type(part).__name__, repr(part))
        return
    if isinstance(part, type | types.FunctionType | types.BuiltinFunctionType | types.ModuleType):
        yield place, ("name", getattr(part, "__qualname__", part.__name__))
        return
    if id(part) in above:
        yield place, ("again", type(part).__qualname__)
        return
    above = above | {id(part)}
    if isinstance(part, Mapping) and isinstance(part, dict):
        for name, each in part.items():
            yield from _leaves(each, f"{place}[{_key(name)}]", above)
    elif isinstance(part, list | tuple):
        for at, each in enumerate(part):
            yield from _leaves(each, f"{place}[{at}]", above)
    elif isinstance(part, set | frozenset):
        yield place, ("set", repr(sorted(map(repr, part))))
    elif isinstance(part, np.ndarray) and part.dtype != object:
        yield place, ("array", f"{part.dtype} {part.shape} {hash(part.tobytes())}")
    elif isinstance(part, np.ndarray):
        for at, each in enumerate(part.ravel().tolist()):
            yield from _leaves(each, f"{place}[{at}]", above)
    elif isinstance(part, pd.Series | pd.Index):
        yield place, (type(part).__name__, str(part.dtype))
        yield from _leaves(list(part), place, above)
    elif isinstance(part, pd.DataFrame):
        for name in part:
            yield from _leaves(part[name], f"{place}[{name!r}]", above)
    else:
        yield from _reduced(part, place, above)


def _reduced(part: Any, place: str, above: set[int]) -> Iterator[tuple[str, Leaf]]:
    """What pickle would write of any other object."""
    yield place, ("object", type(part).__qualname__)
    try:
        reduced = part.__reduce_ex__(4)
    except Exception as error:  # noqa: BLE001 - what cannot be pickled is in no file
        yield place, ("unpicklable", type(error).__name__)
        return
    if isinstance(reduced, str):
        return
    _, arguments, *rest = reduced
    yield from _leaves(arguments, f"{place}()", above)
    state, items, pairs = (*rest, None, None, None)[:3]
    states = state if isinstance(state, tuple) else (state,)
    for each in states:
        if isinstance(each, dict):
            for name, value in each.items():
                yield from _leaves(value, f"{place}.{name}", above)
        elif each is not None:
            yield from _leaves(each, f"{place}.state", above)
    for at, each in enumerate(items or ()):
        yield from _leaves(each, f"{place}[{at}]", above)
    for name, each in pairs or ():
        yield from _leaves(each, f"{place}[{_key(name)}]", above)


def _key(name: Any) -> str:
    """A key as the place of what it leads to: text and the like as they are."""
    return repr(name) if isinstance(name, (*_PLAIN, tuple)) else type(name).__qualname__
