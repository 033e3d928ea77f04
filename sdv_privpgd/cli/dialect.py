"""The user's options for reading a table, and what is kept of them beside a model."""

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd.cli.files import Kind, kind_read
from sdv_privpgd.cli.saying import spoken
from sdv_privpgd.columns.declared import Boolean, TimeOfDay
from sdv_privpgd.columns.number_formats import percent_of
from sdv_privpgd.sources.dialect import Reading

_WORDS = (
    "category, id, date:%d.%m.%Y, time:%H:%M, percent or percent:12 %, bool:J/N, number:1.234,5"
)
_OF_NUMBERS = {"decimal", "thousands"}
_OF_TEXT = ("sep", "decimal", "thousands", "encoding", "na", "skip_rows", "skip_footer")


@dataclass(frozen=True, kw_only=True)
class Typed:
    """What ``--dtype`` says of a column.

    Attributes:
        name: The column.
        dtype: What its cells are converted to; ``None`` leaves them as they are.
        words: What it is, in SDV's words; of a type of pandas nothing beyond that.
        percent: How its numbers are written, if they are percentages; blank where nobody says it.
    """

    name: str
    dtype: Any = None
    words: Mapping[str, Any] = field(default_factory=dict)
    percent: str | None = None

    @classmethod
    def of(cls, text: str) -> "Typed":
        """What ``COLUMN=TYPE`` says. Raises ``ValueError``, in words, for another text."""
        name, equals, said = text.rpartition("=")
        if not equals or not said:
            raise ValueError(f"{text!r} is not COLUMN=TYPE")
        word, _, form = said.partition(":")
        if word in ("date", "number") and form:
            key, sdtype = _FORMS[word]
            return cls(name=name, words={"sdtype": sdtype, key: form})
        if word == "time":
            last = "23:59:59" if "%S" in form or not form else "23:59"
            times = TimeOfDay("00:00", last, **({"datetime_format": form} if form else {}))
            return cls(name=name, words={"sdtype": "datetime", **times})
        if word == "bool" and form:
            true, slash, false = form.partition("/")
            if not (true and slash and false):
                raise ValueError(f"{said!r} is not bool:TRUE/FALSE, such as bool:J/N")
            return cls(name=name, words={"sdtype": "boolean", **Boolean(true, false)})
        if word == "percent":
            return cls(name=name, words={"sdtype": "numerical"}, percent=form)
        if said in ("number", "id"):
            return cls(name=name, words={"sdtype": "id" if said == "id" else "numerical"})
        dtype = _dtype("datetime64[ns]" if said == "date" else said)
        words = {"date": "datetime", "category": "categorical"}
        own = {"sdtype": words[said]} if said in words else {}
        return cls(name=name, dtype=dtype, words=own)

    def facts(self, decimal: str, places: int | None = None) -> dict[str, Any]:
        """What it is, in SDV's words, where this sign stands before so many decimals."""
        if self.percent is None:
            return dict(self.words)
        return {**self.words, "number_format": self.percent or percent_of(places, decimal)}


_FORMS = {"date": ("datetime_format", "datetime"), "number": ("number_format", "numerical")}


def _dtype(word: str) -> Any:
    try:
        dtype = pd.api.types.pandas_dtype(word)
    except TypeError:
        raise ValueError(f"{word!r} is neither a type of pandas nor {_WORDS}") from None
    if dtype.kind in "mcVS":
        raise ValueError(f"{word} is no type that SDV has a word for")
    return np.dtype(object) if dtype.kind == "U" else dtype


@spoken()
def reading(
    arguments: Namespace, path: Path, kept: Mapping[str, Any] = MappingProxyType({})
) -> Reading:
    """The options for reading a table, which may be written as the model's was."""
    of_text = told(arguments, kept, kind_read(path))
    return Reading(
        sep=of_text.get("sep"),
        decimal=of_text.get("decimal"),
        thousands=of_text.get("thousands"),
        encoding=of_text.get("encoding"),
        sheet=arguments.sheet,
        header=arguments.header,
        names=arguments.names,
        dtypes={each.name: each.dtype for each in arguments.dtype if each.dtype is not None},
        na=tuple(of_text.get("na", ())),
        skip_rows=of_text.get("skip_rows", 0),
        skip_footer=of_text.get("skip_footer", 0),
    )


def kept_of(arguments: Namespace) -> dict[str, Any]:
    """The options of text that a command was told, for the model's file. No cell decides them."""
    told = {name: getattr(arguments, name, None) for name in _OF_TEXT}
    return {name: value for name, value in told.items() if value or value == 0}


def told(arguments: Namespace, kept: Mapping[str, Any], kind: Kind) -> dict[str, Any]:
    """The options of text for a file of a kind: those of the command, and else those kept.

    An ending such as .tsv says what separates columns, whatever separated them in the table.
    """
    own, before = kept_of(arguments), dict(kept)
    if kind.sep != ",":
        before.pop("sep", None)
    if kind.form == "parquet":
        before = {name: value for name, value in before.items() if not name.startswith("skip_")}
    if own.keys() & _OF_NUMBERS:
        before = {name: value for name, value in before.items() if name not in _OF_NUMBERS}
    return {**before, **own}
