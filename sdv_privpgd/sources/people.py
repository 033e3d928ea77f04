"""At most so many rows of a person, whatever the source has: the unit of protection is a person.

Which rows of a person stay depends on that person's own rows and on a secret key alone. So the rows
of one person are all that differs between the bounded tables of neighbors.
"""

import abc
import hashlib
import math
import re
import secrets
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from sdv_privpgd.base import cached_property
from sdv_privpgd.columns.dtypes import is_whole
from sdv_privpgd.columns.scalars import Number, canonical, distinct, quiet, real
from sdv_privpgd.sources.source import Batch, Source, free_name

_Person = str | None
"""Whose a row is, as ``person_of`` spells it; ``None`` for nobody, who counts as one person."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")

_UUID = re.compile(r"\{?([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})\}?", re.IGNORECASE)

_WORDS: dict[str, int | None] = {
    **dict.fromkeys(("", "nan", "none", "null", "nat", "na", "n/a", "#n/a", "<na>")),
    "true": 1,
    "false": 0,
}
"""What texts say that are no ids, in small letters."""


class Plan(NamedTuple):
    """What a first reading says of the rows of one person after those of another. Private."""

    people: dict[_Person, int]  # a number for each person
    numbers: np.ndarray  # how many rows each has
    stays: np.ndarray  # which rows stay, bool
    added: Mapping[Any, pd.Series]  # what is added to each, by column, if there is one


class BoundedSource(abc.ABC):
    """A source of which at most so many rows of each person are read.

    A first reading plans what becomes of a person's first row, second row, and so on, by this
    person's own rows and a key from the operating system. So each reading keeps the same rows. All
    rows without a person are taken for those of one.
    """

    numbered: str | None = None

    def __init__(self, inner: Source, people: tuple[str, int, bool]) -> None:
        """Takes a source and what is done about people, as ``Bound`` has it."""
        self.inner, self.people = inner, people
        self.names, self.dtypes = inner.names, inner.dtypes
        self._is_whole = is_whole(inner.dtypes.get(people[0]))  # no cell can be a float then
        self._key = secrets.token_bytes(32)

    @cached_property
    def _plan(self) -> Plan:
        return self._planned({})

    @abc.abstractmethod
    def _planned(self, people: dict[_Person, int]) -> Plan:
        """Reads to the end: a database's connection has one reading at a time."""

    def _whose(self, batch: Batch, people: dict[_Person, int], *, grows: bool) -> np.ndarray:
        return numbers_in(batch.columns[self.people[0]], self._is_whole, people, grows=grows)

    def num_rows(self) -> int:
        return int(np.count_nonzero(self._plan.stays))

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        plan = self._plan
        numbers = np.append(plan.numbers, 0)  # the last one is of who comes later
        firsts, planned = np.cumsum(numbers) - numbers, np.append(plan.stays, False)
        read, own = np.zeros_like(numbers), [name for name in names if name not in plan.added]
        for batch in self.inner.batches(list(dict.fromkeys([*own, self.people[0]]))):
            whose = self._whose(batch, plan.people, grows=False)
            rank = read[whose] + rank_of(whose)
            np.add.at(read, whose, 1)
            # A table that grew while it was read could have more.
            places = np.where(rank < numbers[whose], firsts[whose] + rank, -1)
            stays = planned[places]
            rows = {name: batch.columns[name][stays] for name in own}
            rows |= {n: plan.added[n].iloc[places[stays]] for n in names if n in plan.added}
            yield Batch(batch.done, rows)


class PeopleSource(BoundedSource):
    """A source of which at most ``most`` rows of each person are read, as many in succession.

    They begin at a place that a keyed hash of the person draws; after the last row comes the first.
    So each row is as likely to stay as any other of the person.
    """

    def __init__(self, inner: Source, person: str, most: int, *, numbered: bool = False) -> None:
        """Takes a source, the name of the column that says whose a row is, and a number of rows.

        If rows are ``numbered``, one more column has how many rows of a row's person stay.
        """
        super().__init__(inner, (person, most, numbered))
        self.numbered = free_name(inner.names) if numbered else None

    def _planned(self, people: dict[_Person, int]) -> Plan:
        person, most, _ = self.people
        read = self.inner.batches([person])
        whose = [np.zeros(0, np.int64), *(self._whose(each, people, grows=True) for each in read)]
        owner = np.sort(np.concatenate(whose))
        numbers = np.bincount(owner, minlength=len(people))
        starts = starts_of(list(people), numbers, most, self._key)
        stays = staying(owner, rank_of(owner), numbers, starts, most)
        used = {self.numbered: pd.Series(np.minimum(numbers, most)[owner])}
        return Plan(people, numbers, stays, used if self.numbered else {})


def starts_of(
    names: Sequence[Any], numbers: np.ndarray, most: int, key: bytes, *, in_order: bool = False
) -> np.ndarray:
    """The place of the first row that stays of each owner of rows, drawn by a hash of it alone.

    ``most`` rows of each may stay. ``in_order`` no first row comes after the last one.
    """
    starts = np.zeros(len(numbers), dtype=np.int64)
    for each in np.flatnonzero(numbers > most).tolist():
        digest = hashlib.blake2b(repr(names[each]).encode(), key=key, digest_size=16).digest()
        places = int(numbers[each]) - (most - 1) * in_order
        starts[each] = int.from_bytes(digest, "big") % places
    return starts


def staying(
    owner: np.ndarray, rank: np.ndarray, numbers: np.ndarray, starts: np.ndarray, most: int
) -> np.ndarray:
    """Which rows stay, bool: of each owner so many in succession, from its start on.

    After the last row comes the first. Rows of the owner -1, of whom all arrays say the last, go.
    """
    return (owner >= 0) & ((rank - starts[owner]) % np.maximum(numbers, 1)[owner] < most)


def numbers_in(
    cells: pd.Series, exact: bool, known: dict[_Person, int], *, grows: bool
) -> np.ndarray:
    """The number of each cell's person among those who are known, who may become more; else -1."""
    with quiet():
        listed, places = distinct(cells)
        people = [person_of(cell, exact) for cell in listed]
    numbers = [known.setdefault(p, len(known)) if grows else known.get(p, -1) for p in people]
    return np.array(numbers, dtype=np.int64)[places]


def person_of(cell: Any, exact: bool = False) -> _Person:
    """Whose row it is by the cell that says so, in one spelling for all kinds of cells and files.

    The rule is public, and by the cell alone. It has to make one of all spellings of a person, or
    the person would have so many times the rows that are promised. Where it makes one of several
    people, fewer of their rows are read, and the promise is kept.

    A number is what it equals, as text, too: 1, 1.0, "01", "+1" and "1e0" are one. Numbers that are
    one as floats are one, for somebody's other rows may have gone through floats; where that cannot
    be, or makes nobody's rows more, they are ``exact``: whole ones keep their digits, and bytes
    that are no text are all others. Text is NFKC, without what is not printed, and spaces around it
    or repeated. Bytes are UTF-8, truths 1 and 0, and midnights days. Capitals and small letters are
    one in UUIDs alone, which may stand in braces. Missing cells, their usual words and objects of
    other kinds are nobody.
    """
    value = canonical(cell)
    if value is None or isinstance(value, int | float | Decimal):
        return None if value is None else _numbered(value, exact)
    text = _decoded(value, exact) if isinstance(value, bytes) else str(value)
    if not (text.isascii() and text.isalnum()):
        held = "".join(each for each in text if each.isprintable() or each.isspace())
        text = " ".join(unicodedata.normalize("NFKC", held).split())
        text = text.removesuffix(" 00:00:00").removesuffix("T00:00:00")
        text = uuid[1].lower() if (uuid := _UUID.fullmatch(text)) else text
    if _NUMBER.fullmatch(text):
        has_power = "e" in text.lower()
        if not has_power or math.isfinite(float(text)):  # 12e4567 is one of other such ids
            return _numbered(float(text) if has_power else Decimal(text), exact)
    word = _WORDS.get(text.lower(), text)
    return _numbered(word, exact) if isinstance(word, int) else word


def _decoded(value: bytes, exact: bool) -> str:
    """The text of bytes; or what Python writes for them, if they are exact and no text."""
    text = value.decode(errors="replace")
    is_text = "\ufffd" not in text and text.rstrip("\0").isprintable()
    return text if is_text or not exact else str(value)


def _numbered(number: Number, exact: bool) -> str:
    """The text of the nearest float, and of 0.0 for -0.0; or the digits of a whole number."""
    nearest = real(number) + 0.0
    return str(int(number)) if exact and nearest.is_integer() else repr(nearest)


def rank_of(owner: np.ndarray, *keys: np.ndarray) -> np.ndarray:
    """How many rows of the same owner come before each, by the last key first, then in order."""
    order = np.lexsort((*keys, owner))  # it is stable
    firsts = np.flatnonzero(np.r_[True, np.diff(owner[order]) != 0])
    ranks = np.empty(len(owner), np.int64)
    ranks[order] = np.arange(len(owner)) - np.repeat(firsts, np.diff(np.r_[firsts, len(owner)]))
    return ranks
