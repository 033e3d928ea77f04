"""Private records that are too many for memory: codes in a file, margins of one reading, clusters.

Each of them is asked as a ``Dataset`` is.
"""

import tempfile
import threading
import weakref
from collections.abc import Iterable, Sequence

import numpy as np

from sdv_privpgd.base.domain import Domain, code_type
from sdv_privpgd.privacy.counting import CliqueCounts, RecordNumber, Tables
from sdv_privpgd.privacy.dataset import BLOCK, Records
from sdv_privpgd.privacy.weighing import Encoding
from sdv_privpgd.sources.source import Cluster, Columns, SourceError, Tally

_IN_MEMORY = 1 << 25
"""Bytes of codes that stay in memory."""


class StoredRecords(Records):
    """Records in a file that no other process can open, which goes with them or with the process.

    Few records stay in memory.
    """

    def __init__(self, domain: Domain, parts: Iterable[np.ndarray]) -> None:
        """Takes codes of the domain, of its ``code_type``, in parts of shape (attribute, record).

        Raises ``SourceError`` if the folder for temporary files cannot hold them.
        """
        super().__init__(domain)
        self._lock = threading.Lock()  # threads may share a curator, and a file has one place
        self._sizes: list[int] = []
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        for part in parts:
            for start in range(0, part.shape[1], BLOCK):
                self._write(part[:, start : start + BLOCK])

    def total(self, tally: Tally[np.ndarray, Tables]) -> Tables:
        found, kind, width = tally.zero(), np.dtype(code_type(self.domain)), len(self.domain)
        with self._lock:
            self._file.seek(0)
            for size in self._sizes:
                held = self._file.read(size * width * kind.itemsize)
                tally.add(found, np.frombuffer(held, kind).reshape(width, size))
        return found

    def _write(self, block: np.ndarray) -> None:
        try:
            self._file.write(block.tobytes())
        except OSError as error:
            raise SourceError(
                "The folder for temporary files cannot hold the codes of the table "
                f"({error.strerror}): name another one with the environment variable TMPDIR."
            ) from None
        self._sizes.append(block.shape[1])


class MarginRecords(Records):
    """Records of which single attributes alone were counted, all in one reading."""

    def __init__(
        self, domain: Domain, tables: Sequence[np.ndarray], number: int, units: int
    ) -> None:
        """Takes an int64 table an attribute, in order, and the number of records.

        Both are in ``units``.
        """
        super().__init__(domain)
        self.units = units
        self._tables = dict(zip(domain.attributes, tables, strict=True))
        self._number = number

    def total(self, tally: Tally[np.ndarray, Tables]) -> Tables:
        if isinstance(tally, RecordNumber):
            return [np.array([self._number], dtype=np.int64)]
        if not isinstance(tally, CliqueCounts) or not tally.are_single:
            raise ValueError("Of these records tables of one attribute alone were counted.")
        return [self._tables[name].copy() for (name,) in tally.cliques]


class ClusterRecords(Records):
    """Records of a cluster: each question is a reading of all of them, where they are."""

    in_one_pass = True

    def __init__(self, source: Cluster, encoding: Encoding) -> None:
        super().__init__(encoding.domain)
        self._source, self._encoding = source, encoding

    def total(self, tally: Tally[np.ndarray, Tables]) -> Tables:
        return self._source.total(self._encoding.read, _Encoded(self._encoding, tally))


class _Encoded:
    """A tally of codes as one of the columns that are encoded to them."""

    def __init__(self, encoding: Encoding, tally: Tally[np.ndarray, Tables]) -> None:
        self._encoding, self._tally = encoding, tally

    def zero(self) -> Tables:
        return self._tally.zero()

    def add(self, total: Tables, item: Columns) -> None:
        codes = self._encoding.codes(item)
        for start in range(0, codes.shape[1], BLOCK):
            self._tally.add(total, codes[:, start : start + BLOCK])

    def merge(self, total: Tables, other: Tables) -> None:
        self._tally.merge(total, other)
