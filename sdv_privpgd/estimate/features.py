"""Questions for sums of features: the mean embedding of a table, and smoothed thresholds.

Rahimi & Recht 2007 write a Gaussian kernel as the mean of cos(phase - phase') over random
frequencies, a record's phase being its scalar product with a frequency. Harder, Adamczewski & Park
2021 (DP-MERF) release the mean of the cosines and sines of a table's records.
"""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import ndtri  # pyright: ignore[reportMissingTypeStubs]

from sdv_privpgd.base.arguments import check_fields, check_integer, check_positive
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.privacy.queries import FeatureSumQuery, Lookup

Coordinates = tuple[float | None, ...]
"""Where each code of an attribute lies on a line. ``None`` is apart from all other codes."""


@dataclass(frozen=True, kw_only=True)
class EmbeddingQuery(FeatureSumQuery):
    """The sums over records of cosines and sines of their random phases, in units of 1 / ``GRID``.

    A code adds its part, a whole number of 2^-16 turns, to each phase of its record, modulo a turn.
    So a record's features depend on its codes alone, and on public integers; where another
    machine's sines differ in the last bit, so do public tables, and the bound holds for any tables.
    """

    # For each attribute that is embedded, those of its codes.
    coordinates: tuple[tuple[str, Coordinates], ...]
    bandwidth: float  # of the Gaussian kernel
    num_features: int  # the number of phases
    seed: int  # of the frequencies. It is public, and no noise depends on it
    label: str | None = None  # the attribute by whose codes the sums are taken apart, if any

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

    @property
    def size(self) -> tuple[int, int]:
        return 2, self.num_features

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

    def lookup(self, domain: Domain) -> Lookup:
        self.shape(domain)  # refuses coordinates of other codes
        names = [name for name, _ in self.coordinates]
        return Lookup(names, self.phases(), waves(), self.label)


@cache
def waves() -> np.ndarray:
    """The cosine and sine of each phase, int16 (2, phase). Public."""
    angles = 2 * np.pi * np.arange(EmbeddingQuery.TURN) / EmbeddingQuery.TURN
    both = np.stack([np.cos(angles), np.sin(angles)])
    found = np.rint(EmbeddingQuery.GRID * both).astype(np.int16)
    found.setflags(write=False)
    return found


@dataclass(frozen=True)
class SigmoidSumQuery(FeatureSumQuery):
    """The sum over records of sigmoid(slope * (<theta, Emb(x)> - b)), in units of 1 / ``GRID``.

    Emb(x) are the cell centers (2 x + 1) / (2 k) of codes x = 0, ..., k - 1 (Donhauser et al.
    2024, Eq. 4 and appendix B). A record's value depends on that record alone, to the last bit:
    the scores are sums of integers, and the sigmoid is read from a public table over a grid of
    scores. Each value is an integer from 0 to ``GRID``, which bounds the sensitivity.
    """

    theta: tuple[tuple[str, float], ...]
    b: float
    slope: float

    GRID = 1 << 20
    """Units of a record's value; a sum of 2^40 records still fits int64."""
    _SCORES = 1 << 16
    """Points of the table of the sigmoid over the range of the scores."""

    def __post_init__(self) -> None:
        # An infinity or NaN here would become a value outside [0, GRID].
        numbers = (*(weight for _, weight in self.theta), self.b, self.slope)
        if not all(math.isfinite(number) and abs(number) <= 1e100 for number in numbers):
            raise ValueError(
                f"theta, b and slope must be finite and at most 1e100, got {numbers!r}."
            )

    @classmethod
    def of(cls, theta: Mapping[str, float], b: float, slope: float) -> "SigmoidSumQuery":
        """The query of a mapping from attribute to coefficient."""
        return cls(tuple((name, float(value)) for name, value in theta.items()), b, slope)

    def describe(self) -> str:
        return "smoothed threshold over " + ", ".join(name for name, _ in self.theta)

    @property
    def size(self) -> tuple[int, int]:
        return 1, 1

    def shape(self, domain: Domain) -> tuple[int, ...]:
        del domain
        return (1,)

    def lookup(self, domain: Domain) -> Lookup:
        """Integer contributions of each attribute's codes, and the sigmoid at each score."""
        names = [name for name, _ in self.theta]
        sizes = domain.shape(names)
        exact = [
            weight * (2 * np.arange(size) + 1) / (2 * size)
            for (_, weight), size in zip(self.theta, sizes, strict=True)
        ]
        low = math.fsum(float(part.min()) for part in exact)
        # The parts' own ranges: high - low could cancel, and an index then leave the table.
        span = math.fsum(float(part.max() - part.min()) for part in exact)
        unit = max(span, 1e-12) / self._SCORES
        steps = [np.rint((part - part.min()) / unit).astype(np.int64)[:, None] for part in exact]
        # Rounding moves a score by at most half a unit an attribute.
        scores = low + unit * np.arange(self._SCORES + len(exact) + 1)
        values = 0.5 * (1 + np.tanh(0.5 * self.slope * (scores - self.b)))
        return Lookup(names, steps, np.rint(self.GRID * values).astype(np.int64)[None])
