"""Private records that are too many for memory: codes in a file, margins of one reading, clusters.

Each of them is asked as a ``Dataset`` is.
"""

import tempfile
import threading
import weakref
from collections.abc import Iterable, Sequence

import numpy as np

from sdv_privpgd.base.domain import Domain, code_type
from sdv_privpgd.privacy.counting import TableCounts, Tables
from sdv_privpgd.privacy.dataset import Records
from sdv_privpgd.privacy.weighing import Encoding
from sdv_privpgd.sources.source import Cluster, MappedTally, SourceError, Tally

_IN_MEMORY = 1 << 25
"""Bytes of codes that stay in memory."""


class StoredRecords(Records):
    """Records in a file that no other process can open, which goes with them or with the process.

    Few records stay in memory.
    """

    def __init__(self, domain: Domain, parts: Iterable[np.ndarray]) -> None:
        """Takes codes of the domain, of its ``code_type``, in blocks of shape (attribute, record).

        Raises ``SourceError`` if the folder for temporary files cannot hold them.
        """
        super().__init__(domain)
        self._lock = threading.Lock()  # threads may share a curator, and a file has one place
        self._sizes: list[int] = []
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        for part in parts:
            try:
                self._file.write(part.tobytes())
            except OSError as error:
                raise SourceError(
                    "The folder for temporary files cannot hold the codes of the table "
                    f"({error.strerror}): name another with the environment variable TMPDIR."
                ) from None
            self._sizes.append(part.shape[1])

    def total(self, tally: Tally[np.ndarray, Tables]) -> Tables:
        found, kind, width = tally.zero(), np.dtype(code_type(self.domain)), len(self.domain)
        with self._lock:
            self._file.seek(0)
            for size in self._sizes:
                held = self._file.read(size * width * kind.itemsize)
                tally.add(found, np.frombuffer(held, kind).reshape(width, size))
        return found


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
        self._tables = {(name,): own for name, own in zip(domain.attributes, tables, strict=True)}
        self._tables[()] = np.array([number], dtype=np.int64)

    def total(self, tally: Tally[np.ndarray, Tables]) -> Tables:
        if not isinstance(tally, TableCounts) or not tally.are_single:
            raise ValueError("Of these records tables of one attribute alone were counted.")
        return [self._tables[clique].copy() for clique in tally.cliques]


class ClusterRecords(Records):
    """Records of a cluster: each question is a reading of all of them, where they are."""

    in_one_pass = True

    def __init__(self, source: Cluster, encoding: Encoding) -> None:
        super().__init__(encoding.domain)
        self._source, self._encoding = source, encoding

    def total(self, tally: Tally[np.ndarray, Tables]) -> Tables:
        return self._source.total(self._encoding.read, MappedTally(tally, self._encoding.blocks))
