"""What a source of private rows is, and how something is added up over them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

from sdv_privpgd.base.arguments import SourceError as SourceError
from sdv_privpgd.base.progress import Progress, Shares, silent

Columns: TypeAlias = Mapping[str, Any]
"""Private columns of the same rows, by name: Series of pandas."""

BLOCK = 1 << 18
"""Rows of a batch, at most."""

Item = TypeVar("Item", contravariant=True)
Total = TypeVar("Total")


class Opaque:
    """Something private: it shows no cell, and cannot be copied.

    Its ``repr`` says nothing and pickling is refused, so that no log, message or file can come to
    hold a cell.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __reduce__(self):
        raise TypeError(f"A {type(self).__name__} is private and cannot be pickled or copied.")


class Batch(NamedTuple):
    """Some rows of a source. Private."""

    done: float
    """The share of the source, from 0 to 1, that is read after them."""
    columns: Columns


def free_name(names: Sequence[str]) -> str:
    """A name that none of these columns has, for how many rows of a row's person are used."""
    name = "number"
    while name in names:
        name += "_"
    return name


@runtime_checkable
class Source(Protocol):
    """Private rows that can be read more than once, in batches."""

    @property
    def names(self) -> Sequence[str]:
        """The names of the columns, in order, those that are there twice also. Public."""
        ...

    @property
    def dtypes(self) -> Mapping[str, Any]:
        """The dtype of each column, as pandas' frame of all rows would have it. Public.

        No cell is read for it. Whether it is to be kept is for ``columns.dtypes`` to say.
        """
        ...

    def num_rows(self) -> int:
        """The number of rows. Private under add/remove."""
        ...

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        """All rows, with the columns of these names. Private.

        Raises ``SourceError`` where they cannot be read.
        """
        ...


class Tally(Protocol[Item, Total]):
    """Something that is added up over parts of the rows, however they are divided.

    A cluster sends it to its workers: it can be pickled, and holds public facts alone.
    """

    def zero(self) -> Total:
        """The total of no rows."""
        ...

    def add(self, total: Total, item: Item) -> None:
        """Adds some rows to a total, in place."""
        ...

    def merge(self, total: Total, other: Total) -> None:
        """Adds a total of other rows to a total, in place."""
        ...


@dataclass(frozen=True)
class MappedTally:
    """A tally of what items are mapped to, part by part. It is pickled with its mapping."""

    tally: Tally[Any, Any]
    parts: Callable[[Any], Iterable[Any]]

    def zero(self) -> Any:
        return self.tally.zero()

    def add(self, total: Any, item: Any) -> None:
        for part in self.parts(item):
            self.tally.add(total, part)

    def merge(self, total: Any, other: Any) -> None:
        self.tally.merge(total, other)


@runtime_checkable
class Cluster(Protocol):
    """A source whose rows stay where they are, unless they are put in order: tallies go to them."""

    def total(self, names: Sequence[str], tally: Tally[Columns, Total]) -> Total:
        """A tally of all rows, with the columns of these names. Private.

        Each row is counted once, also where a worker fails and its part is repeated.
        """
        ...

    def of_people(self, person: str, most: int, *, numbered: bool = False) -> "Source":
        """The same source without the rows of a person beyond so many.

        Which of them stay depends on the person's own rows alone. If they are to be ``numbered``,
        its ``numbered`` names one more column: how many rows of a row's person are used.
        """
        ...


@runtime_checkable
class Orderable(Protocol):
    """A source that can give its rows in an order that follows from what they say."""

    def ordered(self, by: Sequence[str]) -> "Source":
        """The same rows in an order that follows from these columns, or that the source has.

        Raises ``SourceError`` if they cannot be sorted by.
        """
        ...


def in_batches(
    source: Source, names: Sequence[str], stage: str, progress: Progress = silent
) -> Iterator[Columns]:
    """The batches of a source, while a stage shows how much of it is read.

    The stage has as many steps for any number of rows.
    """
    shares = Shares(progress, stage)
    for batch in source.batches(names):
        yield batch.columns
        shares.reach(batch.done)
    shares.reach(1.0)


def total_of(
    source: Source, names: Sequence[str], tally: Tally[Columns, Total], progress: Progress = silent
) -> Total:
    """A tally of all rows of a source, from one reading. Private."""
    if isinstance(source, Cluster):
        shares = Shares(progress, "look")
        found = source.total(names, tally)
        shares.reach(1.0)
        return found
    total = tally.zero()
    for columns in in_batches(source, names, "look", progress):
        tally.add(total, columns)
    return total
