"""The file of a model: a sealed archive of JSON and of arrays, without any code. Public.

``model.json`` has ``format``, ``version``, ``program`` (what wrote it), ``parts`` and ``whole``. A
node of it is text, a number, a truth, nothing or a list of nodes, which stand for themselves, or an
object with one name, which says what it is: ``tuple``, ``set``, ``frozenset``, ``dict`` (a list of
keys and values), ``float`` and others that are text, ``array`` and ``scalar`` (a member of the
archive), ``missing``, ``type`` (of plain values), ``dtype``, ``rows`` of pandas, ``part`` (place of
one of the ``parts``, all before it), or a class of this package with its attributes, such as
``columns.column.Column``.

Nothing that is read is run: a name of no class in ``_ROOMS`` is refused, and what is there is made
of attributes alone. What such a file cannot hold, such as a function of a user's, is refused before
anything is written.
"""

import json
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import cache
from importlib import import_module
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from sdv_privpgd.base import cached_property
from sdv_privpgd.base.files import MOST_TEXT, Members, array_bytes, read_archive, write_archive

_ROOMS = {
    *("base", "columns", "constraints", "discovery", "estimate", "fitting", "inference"),
    *("methods", "privacy", "releases", "sampling", "synthesize"),
}
"""The folders of this package whose classes a file may name: those that a model is made of."""

_TEXTS: dict[str, tuple[type, Callable[[Any], str], Callable[[str], Any]]] = {
    "float": (float, repr, float),  # of what is not finite
    "Fraction": (Fraction, str, Fraction),
    "Decimal": (Decimal, str, Decimal),
    "bytes": (bytes, bytes.hex, bytes.fromhex),
    "Timestamp": (pd.Timestamp, pd.Timestamp.isoformat, pd.Timestamp),
    **{
        each.__name__: (each, each.isoformat, each.fromisoformat) for each in (datetime, date, time)
    },
}
"""What is kept as text."""

_TYPES = {each.__name__: each for each in (int, float, str, bool, Decimal, datetime, date, time)}

_MISSING = {"NA": pd.NA, "NaT": pd.NaT}

_FORMAT, _VERSION, _FACTS = "sdv-privpgd model", 2, "model.json"


class NotKeptError(ValueError):
    """A model holds something that a file without code cannot hold."""


def write_model(path: Path, whole: Any) -> None:
    """Writes an object to a file. Equal objects give equal files.

    Raises ``NotKeptError``, before anything is written, for what is not of a class of this package.
    """
    writer = _Writer()
    node = writer.node(whole, type(whole).__name__)
    program = f"sdv-privpgd {version_of('sdv-privpgd')}"
    facts = {"format": _FORMAT, "version": _VERSION, "program": program}
    text = json.dumps({**facts, "parts": writer.parts, "whole": node}, allow_nan=False)
    write_archive(path, {_FACTS: text.encode(), **writer.arrays})


def on_unkept(options: Any) -> list[str]:
    """A sentence on what is asked of a fit, if no file of its model can hold that."""
    try:
        _ = node_of(options)
    except NotKeptError as error:
        return [f"The model cannot be saved: {str(error).replace(' Nothing was written.', '')}"]
    return []


def node_of(own: Any) -> Any:
    """The node of an object without arrays, such as a dtype, for other files of JSON.

    Raises ``NotKeptError`` as ``write_model``.
    """
    return _Writer().node(own, type(own).__name__)


def of_node(node: Any) -> Any:
    """The object that ``node_of`` has written."""
    return _Reader(None).value(node)


def read_model(path: Path, kind: str) -> Any:
    """The object in a file, of which no code is run.

    Raises ``DamagedFileError`` for a file that ``write_model`` has not written, or that has
    changed since.
    """
    return read_archive(path, kind, _read)


def _read(members: Members) -> Any:
    facts = json.loads(members.bytes(_FACTS, MOST_TEXT))
    if not isinstance(facts, Mapping) or facts.get("format") != _FORMAT:
        raise ValueError(f"its format is not {_FORMAT!r}.")
    if facts.get("version") != _VERSION:
        raise ValueError(
            f"it has version {facts.get('version')!r} of the format, and {_VERSION} can be read: "
            f"install what wrote it, {facts.get('program')}, or fit anew."
        )
    reader = _Reader(members)
    for node in facts["parts"]:
        reader.parts.append(reader.value(node))
    return reader.value(facts["whole"])


class _Writer:
    """Makes nodes of objects. What is frozen, and arrays, are written once however often met."""

    def __init__(self) -> None:
        self.parts: list[Any] = []
        self.arrays: dict[str, bytes] = {}
        self._places: dict[str, int] = {}
        self._names: dict[bytes, str] = {}

    def node(self, own: Any, where: str) -> Any:
        kind = type(own)
        if own is None or kind in (bool, int, str) or (kind is float and math.isfinite(own)):
            return own
        if kind is list:
            return self._nodes(own, where)
        if kind is tuple:
            return {"tuple": self._nodes(own, where)}
        if kind in (set, frozenset):
            return {kind.__name__: sorted(self._nodes(own, where), key=json.dumps)}
        if kind is dict:
            pairs = [
                [self.node(key, where), self.node(each, f"{where}[{key!r}]")]
                for key, each in own.items()
            ]
            return {"dict": pairs}
        for name, missing in _MISSING.items():
            if own is missing:
                return {"missing": name}
        for name, (of, write, _) in _TEXTS.items():
            if kind is of:
                return {name: write(own)}
        if kind is type and _TYPES.get(own.__name__) is own:
            return {"type": own.__name__}
        if kind is np.ndarray and own.dtype != object:
            return {"array": self._array(own)}
        if isinstance(own, np.generic):
            return {"scalar": self._array(np.asarray(own))}
        if isinstance(own, np.dtype | pd.api.extensions.ExtensionDtype):
            return {"dtype": self._dtype(own, where)}
        if kind is pd.DataFrame:
            columns = [
                [name, self._dtype(own[name].dtype, where), self._nodes(own[name].tolist(), where)]
                for name in own
            ]
            return {"rows": [len(own), columns]}
        if (name := _name_of(kind)) is not None:
            return self._of_class(own, name, where)
        called = f"a {kind.__module__}.{kind.__qualname__}"
        if callable(own) and hasattr(own, "__qualname__"):
            called = f"the function {own.__qualname__}"
        raise NotKeptError(
            f"{where} is {called}, which a file without code cannot hold. Nothing was "
            "written. Keep the object with pickle, or a lambda with cloudpickle, and load such a "
            "file only where you trust whoever wrote it: it can run any code."
        )

    def _nodes(self, many: Any, where: str) -> list[Any]:
        return [self.node(each, where) for each in many]

    def _of_class(self, own: Any, called: str, where: str) -> Any:
        kind = type(own)
        if isinstance(own, Enum):
            return {called: own.value}
        state = own.__reduce_ex__(4)[2] or {}
        if isinstance(own, tuple):  # with names, which are all that it has
            state = dict(zip(own._fields, own, strict=True))  # pyright: ignore
        # What was computed, and in which order, is no fact on the object.
        node = {
            called: {
                name: self.node(each, f"{where}.{name}")
                for name, each in state.items()
                if not isinstance(getattr(kind, name, None), cached_property)
            }
        }
        if not (is_dataclass(kind) and kind.__dataclass_params__.frozen):  # pyright: ignore
            return node
        place = self._places.setdefault(json.dumps(node), len(self.parts))
        if place == len(self.parts):
            self.parts.append(node)
        return {"part": place}

    def _array(self, numbers: np.ndarray) -> str:
        content = array_bytes(numbers)
        name = self._names.setdefault(content, f"arrays/{len(self._names):05}.npy")
        self.arrays[name] = content
        return name

    def _dtype(self, dtype: Any, where: str) -> Any:
        node = self._of_dtype(dtype, where)
        try:
            is_same = _Reader(None).dtype(node) == dtype
        except (TypeError, ValueError, NotImplementedError):
            is_same = False
        if not is_same:
            raise NotKeptError(f"{where} has the dtype {dtype}, which no file of a model can hold.")
        return node

    def _of_dtype(self, dtype: Any, where: str) -> Any:
        if isinstance(dtype, pd.CategoricalDtype):
            inner = dtype.categories
            if inner is None:
                return ["category", None, None, bool(dtype.ordered)]
            own, nodes = self._dtype(inner.dtype, where), self._nodes(inner.tolist(), where)
            return ["category", own, nodes, bool(dtype.ordered)]
        if isinstance(dtype, pd.StringDtype):
            return ["string", dtype.storage, dtype.na_value is pd.NA]
        if isinstance(dtype, pd.ArrowDtype):
            return ["arrow", _arrow_words(dtype.pyarrow_dtype)]
        return str(dtype)


class _Reader:
    """Makes objects of nodes."""

    def __init__(self, members: Members | None) -> None:
        self.parts: list[Any] = []
        self._members = members

    def value(self, node: Any) -> Any:
        if isinstance(node, list):
            return self._values(node)
        if not isinstance(node, dict):
            return node
        ((name, content),) = node.items()
        if name in _TEXTS:
            return _TEXTS[name][2](content)
        if name in ("tuple", "set", "frozenset"):
            made: Any = {"tuple": tuple, "set": set, "frozenset": frozenset}[name]
            return made(self._values(content))
        if name == "dict":
            return {self.value(key): self.value(each) for key, each in content}
        if name == "type":
            return _TYPES[content]
        if name == "missing":
            return _MISSING[content]
        if name == "part":
            if type(content) is not int or content < 0:
                raise ValueError(f"a part has a place, got {content!r}.")
            return self.parts[content]
        if name == "array":
            return self._array(content)
        if name == "scalar":
            return self._array(content)[()]
        if name == "dtype":
            return self.dtype(content)
        if name == "rows":
            own = {
                name: pd.Series(self._values(values), dtype=self.dtype(dtype))
                for name, dtype, values in content[1]
            }
            return pd.DataFrame(own, index=range(content[0]))
        return self._of_class(name, content)

    def _values(self, nodes: list) -> list[Any]:
        return [self.value(each) for each in nodes]

    def _array(self, name: str) -> np.ndarray:
        assert self._members is not None
        return self._members.array(name, 2**33)

    def _of_class(self, name: str, content: Any) -> Any:
        kind: Any = _class_of(name)
        if issubclass(kind, Enum):
            return kind(content)
        state = {attribute: self.value(each) for attribute, each in content.items()}
        if issubclass(kind, tuple):
            return kind(**state)
        if is_dataclass(kind) and {each.name for each in fields(kind)} - state.keys():
            raise ValueError(f"its {name} lacks attributes: another version may have written it.")
        made = object.__new__(cast(type, kind))
        vars(made).update(state)
        return made

    def dtype(self, content: Any) -> Any:
        """The dtype that a node stands for."""
        if isinstance(content, str):
            return pd.api.types.pandas_dtype(content)
        if content[0] == "string":
            return pd.StringDtype(content[1], **({} if content[2] else {"na_value": np.nan}))
        if content[0] == "arrow":
            return pd.ArrowDtype(_arrow_type(content[1]))
        _, inner, nodes, is_ordered = content
        if inner is None:
            return pd.CategoricalDtype(ordered=is_ordered)
        values = pd.Index(self._values(nodes), dtype=self.dtype(inner))
        return pd.CategoricalDtype(values, ordered=is_ordered)


def _arrow_words(kind: Any) -> Any:
    """A type of Arrow in text and lists."""
    import pyarrow as pa

    if pa.types.is_decimal(kind):
        return ["decimal", kind.bit_width, kind.precision, kind.scale]
    if pa.types.is_dictionary(kind):
        inner = _arrow_words(kind.index_type), _arrow_words(kind.value_type)
        return ["dictionary", *inner, kind.ordered]
    return str(kind)


def _arrow_type(words: Any) -> Any:
    import pyarrow as pa

    if isinstance(words, str):
        found = pd.api.types.pandas_dtype(f"{words}[pyarrow]")
        return getattr(found, "pyarrow_dtype", pa.string())  # pandas has text of its own
    name, *content = words
    if name == "decimal":
        bits, *content = content
        return getattr(pa, f"decimal{int(bits)}")(*content)
    return pa.dictionary(_arrow_type(content[0]), _arrow_type(content[1]), content[2])


@cache
def _class_of(name: str) -> Any:
    """The class of that name. Raises ``ValueError`` for one that no file may name."""
    module, _, own = name.rpartition(".")
    if module.partition(".")[0] in _ROOMS:
        with suppress(ImportError):
            found = getattr(import_module(f"sdv_privpgd.{module}"), own, None)
            if isinstance(found, type) and _name_of(found) == name:
                return found
    raise ValueError(f"it names {name!r}, which no file of a model has.")


def _name_of(kind: type) -> str | None:
    """The name of a class in files; ``None`` for one that none may name."""
    package, _, module = kind.__module__.partition(".")
    is_kept = package == "sdv_privpgd" and module.partition(".")[0] in _ROOMS
    return f"{module}.{kind.__name__}" if is_kept else None
