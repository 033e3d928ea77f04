"""Where a private table enters the core: it is opened, encoded and given to curators, unseen.

A fit holds a ``PrivateTable`` and never what is in it. It says what is to be read, in public words
(a schema, or readings of a first look), and gets a curator, who charges for every answer.

The columns are the user's, of pandas' making. Nothing here looks into them: the encoders read
them, cell by cell. This is the one module of the core that reaches pandas, through those.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from sdv_privpgd.columns.dates import is_aware
from sdv_privpgd.columns.dtypes import chosen, key_dtype
from sdv_privpgd.columns.encoders import encode_table
from sdv_privpgd.columns.mismatch import mismatches
from sdv_privpgd.columns.readings import Reading, finite_numbers
from sdv_privpgd.columns.scalars import key_counts, quiet, without_sdtype
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.columns.vocabulary import MODELLED
from sdv_privpgd.domain import Domain
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.ledger import Books
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.privacy.value_counts import ValueCounts
from sdv_privpgd.progress import Progress, silent


class PrivateTable:
    """The columns of a private table. What it shows is public, but for ``codes``.

    Its ``repr`` says nothing and pickling is refused, so that no log, message or file can come to
    hold a cell.

    >>> import pandas as pd
    >>> table = PrivateTable({"age": pd.Series([34, 71, 25])})
    >>> table
    PrivateTable()
    >>> table.known_rows(Adjacency.REPLACE_ONE), table.known_rows(Adjacency.ADD_REMOVE)
    (3, None)
    """

    __slots__ = ("_columns",)

    def __init__(self, columns: Mapping[str, Any]) -> None:
        """Takes pandas' columns of one length, by name."""
        self._columns = dict(columns)

    @classmethod
    def opened(
        cls,
        table: Any,
        columns: Mapping[str, Mapping[str, Any]],
        facts: Mapping[str, Mapping[str, Any]],
    ) -> tuple["PrivateTable", list[str]]:
        """The columns in the described order, and sentences on what does not fit. Public.

        Names and dtypes are looked at, and no cell.

        Args:
            table: A pandas DataFrame.
            columns: What is known of each column that must be there, in SDV's words.
            facts: What is declared of the modelled ones.
        """
        names = list(table.columns.to_flat_index().astype(str))
        errors = [
            f"The columns {sorted(map(str, wrong))} are {what}."
            for what, wrong in (
                ("not present in the metadata", [n for n in names if n not in columns]),
                ("missing in the data", [n for n in columns if n not in names]),
                ("there more than once", {n for n in names if names.count(n) > 1}),
            )
            if wrong
        ]
        if errors:
            return cls({}), errors
        own = {name: table.iloc[:, names.index(name)] for name in columns}
        dtypes = {name: each.dtype for name, each in own.items()}
        errors = without_sdtype(
            {name: each for name, each in dtypes.items() if columns[name]["sdtype"] in MODELLED}
        )
        return (cls({}), errors) if errors else (cls(own), mismatches(dtypes, facts))

    def __repr__(self) -> str:
        return "PrivateTable()"

    def __reduce__(self):
        raise TypeError("A PrivateTable is private and cannot be pickled or copied.")

    def known_rows(self, adjacency: Adjacency) -> int | None:
        """The number of rows where the adjacency calls it public, else ``None``."""
        return _known(self._num_rows(), adjacency)

    def dtypes_kept(
        self, described: Mapping[str, Mapping[str, Any]], modelled: Collection[str]
    ) -> dict[str, Any]:
        """The dtypes that no cell chose, without any of the table's values. Public."""
        kept: dict[str, Any] = {}
        for name, column in self._columns.items():
            is_key = name not in modelled and described[name]["sdtype"] == "id"
            dtype = key_dtype(column.dtype) if is_key else chosen(column.dtype)
            if dtype is not None:
                kept[name] = dtype
        return kept

    def is_aware(self, name: str) -> bool:
        """Whether a column's dtype says that its dates have a time zone. Public."""
        return is_aware(self._columns[name].dtype)

    def codes(self, schema: Schema, progress: Progress = silent) -> np.ndarray:
        """The table as codes, for its owner, who asked SDV for them. Private as the table is."""
        return encode_table(self._columns, schema, progress)

    def curator(
        self,
        schema: Schema,
        books: Books,
        *,
        known: Sequence[Measurement] = (),
        progress: Progress = silent,
    ) -> Curator:
        """Who answers for the table as codes of a schema, and writes into the books.

        ``known`` are answers about these codes that were paid for earlier.
        """
        dataset = Dataset(schema.domain(), self.codes(schema, progress))
        return Curator(dataset, books, known=known)

    def first_look(
        self, readings: Sequence[Reading], books: Books, progress: Progress = silent
    ) -> Curator:
        """Who answers for what is read of columns of which little is known.

        His attributes are named by ``attribute_of``, and he may ``discover`` the values of the
        columns of which a reading asks for ``categories`` or ``numbers``.
        """
        sizes: dict[str, int] = {}
        codes: list[np.ndarray] = []
        with quiet():
            values = ValueCounts(
                {
                    each.name: key_counts(self._columns[each.name])
                    for each in _of(readings, "categories")
                },
                {
                    each.name: finite_numbers(self._columns[each.name])
                    for each in _of(readings, "numbers")
                },
            )
            for each in progress(readings, "look"):
                sizes |= {attribute_of(kind, each.name): size for kind, size in each.sizes.items()}
                codes.extend(each.codes(self._columns[each.name]))
        table = np.empty((self._num_rows(), len(codes)), np.uint16, order="F")
        for axis, own in enumerate(codes):
            table[:, axis] = own
        dataset = Dataset(Domain(tuple(sizes), tuple(sizes.values())), table)
        return Curator(dataset, books, values=values)

    def _num_rows(self) -> int:
        return len(next(iter(self._columns.values()), ()))


class EncodedTable:
    """The codes of a private table, as its owner got them from SDV's ``preprocess``.

    As opaque as a ``PrivateTable`` is.

    >>> import pandas as pd
    >>> EncodedTable(pd.DataFrame({"age": [3, 7, 2]})).known_rows(Adjacency.REPLACE_ONE)
    3
    """

    __slots__ = ("_table",)

    def __init__(self, table: Any) -> None:
        """Takes a pandas DataFrame with a column for each attribute, in any order."""
        self._table = table

    def __repr__(self) -> str:
        return "EncodedTable()"

    def __reduce__(self):
        raise TypeError("An EncodedTable is private and cannot be pickled or copied.")

    def known_rows(self, adjacency: Adjacency) -> int | None:
        """The number of rows where the adjacency calls it public, else ``None``."""
        return _known(len(self._table), adjacency)

    def curator(
        self,
        schema: Schema,
        books: Books,
        *,
        known: Sequence[Measurement] = (),
        progress: Progress = silent,
    ) -> Curator:
        """Who answers for the codes, which must be those of the schema."""
        del progress  # nothing is left to be read
        domain = schema.domain()
        names, table = list(domain.attributes), self._table
        in_order = table if list(table.columns) == names else table[names]
        return Curator(Dataset(domain, in_order.to_numpy()), books, known=known)


def without_table(schema: Schema, books: Books, known: Sequence[Measurement]) -> Curator:
    """Who knows what was answered earlier of a table that is not there any more.

    >>> from sdv_privpgd.privacy.ledger import PrivacyLedger
    >>> books = Books(PrivacyLedger.open(1.0, 1e-5, Adjacency.REPLACE_ONE))
    >>> without_table(Schema.from_sdv({"ill": {"sdtype": "boolean"}}), books, []).measurements
    ()
    """
    domain = schema.domain()
    return Curator(Dataset(domain, np.empty((0, len(domain)), np.uint8)), books, known=known)


def attribute_of(kind: str, name: str) -> str:
    """The attribute of one kind of codes of a column, in a first look. Public.

    >>> attribute_of("fine", "age")
    'fine age'
    """
    return f"{kind} {name}"


def _known(num_rows: int, adjacency: Adjacency) -> int | None:
    return num_rows if adjacency is Adjacency.REPLACE_ONE else None


def _of(readings: Sequence[Reading], kind: str) -> list[Reading]:
    return [each for each in readings if kind in each.asks]
