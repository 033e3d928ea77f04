"""Conditions and questions as options write them. Public."""

import re
from argparse import Namespace
from collections.abc import Mapping
from typing import Any

import pandas as pd

from sdv_privpgd.cli.saying import CommandError
from sdv_privpgd.columns.dialect import is_number
from sdv_privpgd.inference.listed import Question
from sdv_privpgd.sources.texts import Signs, meanings, number_in


def wanted(option: str, name: str, text: str, facts: Mapping, signs: Signs) -> Any:
    """The condition on a column: a value, ``None`` for missing, or a range."""
    from sdv_privpgd import Between

    if not text:
        return None
    if ".." in text and facts["sdtype"] in ("numerical", "datetime", "ordinal"):
        low, _, high = text.partition("..")
        ends = (_value(option, name, end, facts, signs) if end else None for end in (low, high))
        return Between(*ends)
    return _value(option, name, text, facts, signs)


def _value(option: str, name: str, text: str, facts: Mapping, signs: Signs) -> Any:
    if not is_number(facts):
        return meanings(pd.Series([text], dtype=object), facts, signs).iloc[0]
    if (number := number_in(text, signs)) is None:
        raise CommandError(
            f"{option} {name}={text}: the column holds numbers, and {signs.decimal!r} stands "
            "before their decimals; --decimal names another sign."
        )
    return number


def signs_of(arguments: Namespace) -> Signs:
    """How the options write numbers."""
    return Signs(getattr(arguments, "decimal", None) or ".", getattr(arguments, "thousands", None))


def question(text: str, facts: Mapping[str, Mapping], signs: Signs) -> Question:
    """The question that a sentence asks, such as "mean of cost where age=30..45 and ward=B".

    Raises ``CommandError`` for what is none.
    """
    head, *rest = re.split(r"\s+(of|where|among|minus|on)\s+", text.strip())
    parts = dict(zip(rest[::2], rest[1::2], strict=True))
    what, *q = head.split()
    told: dict[str, Any] = {"what": what}
    try:
        if q:
            told["q"] = float(q[0])
        if "of" in parts:
            named = re.split(r"\s*,\s*|\s+x\s+", parts["of"])
            told["of"] = named if what == "table" else parts["of"]
        if "on" in parts:
            told["on"] = re.split(r"\s*,\s*", parts["on"])
        for word in ("where", "among", "minus"):
            if word in parts:
                told[word] = dict(
                    _condition(each, facts, signs) for each in re.split(r"\s+and\s+", parts[word])
                )
        return Question(**told)
    except ValueError as error:
        raise CommandError(f"--question {text!r}: {error}") from None


def _condition(text: str, facts: Mapping[str, Mapping], signs: Signs) -> tuple[str, Any]:
    name, *said = (each.strip() for each in re.split(r"=|\sin\s", f"{text} ", maxsplit=1))
    if not said:
        raise ValueError(f"{text!r} is no condition: write COLUMN=VALUE, or LOW..HIGH.")
    if name not in facts:
        raise ValueError(f"{name!r} is no column: choose from {list(facts)!r}.")
    own, several = facts[name], said[0].split(" or ")
    values = [wanted("--question", name, each, own, signs) for each in several]
    return name, values[0] if len(values) == 1 else values
