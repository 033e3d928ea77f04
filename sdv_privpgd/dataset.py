"""A private table of integer codes."""

import numpy as np

from sdv_privpgd.domain import Clique, Domain


class Dataset:
    """Integer codes of a domain, one row a record. Private: only the curator may hold one.

    It has no public view of itself: ``repr`` names the domain alone and pickling is refused, so
    that no log, message or file can come to hold a record.
    """

    __slots__ = ("_codes", "domain")

    def __init__(self, domain: Domain, codes: np.ndarray) -> None:
        """Takes codes of shape (record, attribute).

        A code outside its attribute's domain goes to the nearest code inside: an error would
        depend on the private values.
        """
        if codes.ndim != 2 or codes.shape[1] != len(domain):
            raise ValueError(f"Codes need one column for each of the {len(domain)} attributes.")
        largest = np.asarray(domain.sizes, dtype=np.int64) - 1
        self.domain = domain
        # Column-major: every count reads whole columns.
        with np.errstate(invalid="ignore"):  # a warning would depend on the private values
            codes = codes.astype(np.int64, copy=False)
        self._codes = np.asfortranarray(np.clip(codes, 0, largest))

    def __repr__(self) -> str:
        return f"Dataset({self.domain!r})"

    def __reduce__(self):
        raise TypeError("A Dataset is private and cannot be pickled or copied.")

    def num_records(self) -> int:
        """The number of records. Private under add/remove."""
        return self._codes.shape[0]

    def counts(self, clique: Clique) -> np.ndarray:
        """The int64 table of a clique: records per cell, one axis an attribute. Private."""
        shape = self.domain.shape(clique)
        cell = np.zeros(self._codes.shape[0], dtype=np.int64)
        for axis, size in zip(self.domain.axes(clique), shape, strict=True):
            cell *= size
            cell += self._codes[:, axis]
        return np.bincount(cell, minlength=self.domain.size(clique)).astype(np.int64).reshape(shape)

    def lookup_sum(self, attributes: Clique, contributions: list[np.ndarray]) -> np.ndarray:
        """Each record's int64 sum of one table entry an attribute. Private, shape (record,)."""
        total = np.zeros(self._codes.shape[0], dtype=np.int64)
        for axis, table in zip(self.domain.axes(attributes), contributions, strict=True):
            total += table[self._codes[:, axis]]
        return total
