"""The mean embedding of a table: sums of random Fourier features over its records, as integers.

Rahimi & Recht 2007 write a Gaussian kernel as the mean of cos(phase - phase') over random
frequencies, a record's phase being its scalar product with a frequency. Harder, Adamczewski & Park
2021 (DP-MERF) release the mean of the cosines and sines of a table's records.
"""

import hashlib
import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import ndtri  # pyright: ignore[reportMissingTypeStubs]

from sdv_privpgd.base.arguments import check_fields, check_integer, check_positive
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.privacy.counting import LookupSums
from sdv_privpgd.privacy.dataset import Records
from sdv_privpgd.privacy.queries import Adjacency

Coordinates = tuple[float | None, ...]
"""Where each code of an attribute lies on a line. ``None`` is apart from all other codes."""


@dataclass(frozen=True, kw_only=True)
class EmbeddingQuery:
    """The sums over records of cosines and sines of their random phases, in units of 1 / ``GRID``.

    A code adds its part, a whole number of 2^-16 turns, to each phase of its record, modulo a turn.
    So a record's features depend on its codes alone, and on public integers; where another
    machine's sines differ in the last bit, so do public tables, and the bound holds for any tables.

    Attributes:
        coordinates: For each attribute that is embedded, those of its codes.
        bandwidth: Of the Gaussian kernel.
        num_features: The number of phases.
        seed: Of the frequencies. It is public, and no noise depends on it.
        label: The attribute by whose codes the sums are taken apart, if any.
    """

    coordinates: tuple[tuple[str, Coordinates], ...]
    bandwidth: float
    num_features: int
    seed: int
    label: str | None = None

    GRID = 1 << 14
    """Units of a feature; a sum over 2^40 records still fits int64."""
    TURN = 1 << 16
    """Units of a phase. They are kept as uint16, which wrap around at a turn."""

    def __post_init__(self) -> None:
        numbers = [x for _, own in self.coordinates for x in own if x is not None]
        if not self.coordinates or not all(map(math.isfinite, numbers)):
            raise ValueError(
                f"coordinates must be finite, of one attribute or more, got {self.coordinates!r}."
            )
        names = [self.label, *(name for name, _ in self.coordinates)]
        if len(set(names)) < len(names):
            raise ValueError(f"Each attribute must be named once, got {names!r}.")
        check_fields(self, check_positive, "bandwidth")
        check_fields(self, check_integer, "num_features")
        check_fields(self, check_integer, "seed", least=0)

    def describe(self) -> str:
        by = "" if self.label is None else f" by {self.label}"
        return f"mean embedding, {self.num_features:,} random features{by}"

    def l2_sensitivity_squared(self, adjacency: Adjacency) -> int:
        """F GRID^2 for F features when a record is added or removed; 4 F GRID^2 when it changes.

        A record adds to the sums of its own label alone, and there a pair (c, s) of ``waves`` to
        each feature, of which c^2 + s^2 <= GRID^2 in integers. So its vector has a squared norm of
        at most F GRID^2. The difference of two such vectors has at most twice the norm.
        """
        return (4 if adjacency is Adjacency.REPLACE_ONE else 1) * self.num_features * self.GRID**2

    def shape(self, domain: Domain) -> tuple[int, ...]:
        """(code of the label, cosine or sine, feature); one code where there is no label.

        Raises ``ValueError`` unless each coordinate is of a code of the domain.
        """
        for name, own in self.coordinates:
            if domain.shape((name,)) != (len(own),):
                raise ValueError(f"{name!r} has {domain.size((name,))} codes, not {len(own)}.")
        labels = 1 if self.label is None else domain.size((self.label,))
        return (labels, 2, self.num_features)

    def phases(self) -> list[np.ndarray]:
        """What each attribute's codes add to the phases, uint16 (code, feature). Public."""
        found: list[np.ndarray] = []
        for axis, (_, own) in enumerate(self.coordinates):
            # The first frequency is that of the line, each other one of a code that is apart.
            apart = [place for place, x in enumerate(own) if x is None]
            drawn = self._normal(axis, 1 + len(apart)) / (2 * np.pi * self.bandwidth)
            parts = np.array(own, dtype=np.float64)[:, None] * drawn[0]
            parts[apart] = drawn[1:]
            found.append((np.rint(parts * self.TURN) % self.TURN).astype(np.uint16))
        return found

    def _normal(self, stream: int, number: int) -> np.ndarray:
        """Standard normal numbers, shape (number, feature), the same in all versions of NumPy."""
        size = number * self.num_features
        words = hashlib.shake_256(f"{self.seed} {stream}".encode()).digest(8 * size)
        uniform = ((np.frombuffer(words, dtype="<u8") >> np.uint64(11)) + 0.5) * 2.0**-53
        return ndtri(uniform).reshape(number, self.num_features)

    def answer(self, dataset: Records) -> np.ndarray:
        (found,) = dataset.total(self._tally(dataset.domain))
        return found

    def of_codes(self, domain: Domain, codes: np.ndarray) -> np.ndarray:
        """The sums over rows of codes, shape (row, attribute). As private as these."""
        tally = self._tally(domain)
        found = tally.zero()
        tally.add(found, codes.T)
        return found[0]

    def _tally(self, domain: Domain) -> LookupSums:
        labels, _, _ = self.shape(domain)
        axes = domain.axes(name for name, _ in self.coordinates)
        label = None if self.label is None else domain.axes((self.label,))[0]
        return LookupSums(axes, self.phases(), waves(), label, labels)


@cache
def waves() -> np.ndarray:
    """The cosine and sine of each phase, int16 (2, phase), of norm at most ``GRID``. Public.

    The norm is that of whole numbers, and bounded whatever the machine's cosines were before.
    """
    grid, turn = EmbeddingQuery.GRID, EmbeddingQuery.TURN
    angles = 2 * np.pi * np.arange(turn) / turn
    exact = np.rint(grid * np.stack([np.cos(angles), np.sin(angles)]))
    found = bounded(exact, grid).astype(np.int16)
    found.setflags(write=False)
    return found


def bounded(pairs: np.ndarray, most: int) -> np.ndarray:
    """Pairs of whole numbers, shape (2, pair), none longer than ``most``.

    A pair that is longer is shortened by a unit, and is 0 where that is not enough.
    """
    found = pairs.copy()
    found[:, _are_long(found, most)] -= np.sign(found[:, _are_long(found, most)])
    found[:, _are_long(found, most)] = 0
    return found


def _are_long(pairs: np.ndarray, most: int) -> np.ndarray:
    return ~((pairs**2).sum(axis=0) <= most**2)  # also where a number is NaN
