"""At most so many rows of a person, whatever the source has: the unit of protection is a person.

Which rows of a person stay depends on that person's own rows and on a secret key alone. So the rows
of one person are all that differs between the bounded tables of neighbors.
"""

import hashlib
import math
import re
import secrets
import unicodedata
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd.base import cached_property
from sdv_privpgd.columns.dtypes import is_whole
from sdv_privpgd.columns.scalars import Number, canonical, distinct, quiet, real
from sdv_privpgd.sources.source import Batch, Source, free_name

_Person = str | None
"""Whose a row is, as ``person_of`` spells it; ``None`` for nobody, who counts as one person."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")

_WORDS: dict[str, int | None] = {
    **dict.fromkeys(("", "nan", "none", "null", "nat", "na", "n/a", "#n/a", "<na>")),
    "true": 1,
    "false": 0,
}
"""What texts say that are no ids, in small letters."""


class PeopleSource:
    """A source of which at most ``most`` rows of each person are read.

    A person's rows are counted in a first reading. Of more than ``most`` rows as many in succession
    stay, from a place on that a keyed hash of the person draws; after the last row comes the first.
    So each row is as likely to stay as any other of the person. All rows without a person are taken
    for those of one. The key comes from the operating system, and each reading keeps the same rows.
    """

    def __init__(self, inner: Source, person: str, most: int, *, numbered: bool = False) -> None:
        """Takes a source, the name of the column that says whose a row is, and a number of rows.

        If rows are ``numbered``, one more column has how many rows of a row's person stay.
        """
        self.inner, self._person, self._most = inner, person, most
        self.names, self.dtypes = inner.names, inner.dtypes
        self.people = person, most, numbered
        self.numbered = free_name(inner.names) if numbered else None
        self._is_whole = is_whole(inner.dtypes.get(person))  # no cell can be a float then
        self._key = secrets.token_bytes(32)

    def num_rows(self) -> int:
        return int(np.minimum(self._known[1], self._most).sum())

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        people, numbers = self._known  # to the end: a database's connection has one reading a time
        read, kept = np.zeros_like(numbers), np.zeros_like(numbers)
        own = [name for name in names if name != self.numbered]
        for batch in self.inner.batches(list(dict.fromkeys([*own, self._person]))):
            whose = numbers_in(batch.columns[self._person], self._is_whole, people, grows=False)
            stays = self._stays(whose, read, kept)
            columns = {name: batch.columns[name][stays] for name in own}
            if self.numbered is not None and self.numbered in names:
                used = np.minimum(numbers, self._most)[whose]
                columns[self.numbered] = pd.Series(used[stays])
            yield Batch(batch.done, columns)

    @cached_property
    def _known(self) -> tuple[dict[_Person, int], np.ndarray]:
        """All people, and the number of rows of each; a last one, 0, is of who comes later."""
        people: dict[_Person, int] = {}
        numbers = np.zeros(0, np.int64)
        for batch in self.inner.batches([self._person]):
            whose = numbers_in(batch.columns[self._person], self._is_whole, people, grows=True)
            before, numbers = numbers, np.bincount(whose, minlength=len(people))
            numbers[: len(before)] += before
        return people, np.append(numbers, 0)

    @cached_property
    def _starts(self) -> np.ndarray:
        people, numbers = self._known
        return starts_of(list(people), numbers, self._most, self._key)

    def _stays(self, whose: np.ndarray, read: np.ndarray, kept: np.ndarray) -> np.ndarray:
        """Which rows of a batch stay, bool; what was read and kept before is updated."""
        numbers = self._known[1]
        stays = staying(whose, read[whose] + rank_of(whose), numbers, self._starts, self._most)
        # A table that grew while it was read could have more.
        there = whose[stays]
        stays[stays] = kept[there] + rank_of(there) < np.minimum(numbers, self._most)[there]
        np.add.at(read, whose, 1)
        np.add.at(kept, whose[stays], 1)
        return stays


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
    be, or makes nobody's rows more, they are ``exact`` and whole ones keep their digits. Text is
    NFKC, without what is not printed, and spaces around it or repeated. Bytes are UTF-8, truths 1
    and 0, and midnights days. Capitals and small letters are not one. Missing cells, their usual
    words and objects of other kinds are nobody.
    """
    value = canonical(cell)
    if value is None or isinstance(value, int | float | Decimal):
        return None if value is None else _numbered(value, exact)
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    return _person_in(text, exact)


def _person_in(text: str, exact: bool) -> _Person:
    if not (text.isascii() and text.isalnum()):
        held = "".join(each for each in text if each.isprintable() or each.isspace())
        text = " ".join(unicodedata.normalize("NFKC", held).split())
        text = text.removesuffix(" 00:00:00").removesuffix("T00:00:00")
    if _NUMBER.fullmatch(text):
        has_power = "e" in text.lower()
        if not has_power or math.isfinite(float(text)):  # 12e4567 is one of other such ids
            return _numbered(float(text) if has_power else Decimal(text), exact)
    word = _WORDS.get(text.lower(), text)
    return _numbered(word, exact) if isinstance(word, int) else word


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
