"""Where numbers lie on public lines, and half-spaces of them: the geometry of threshold queries.

Vietri et al. 2022 (RAP++) ask how many rows lie on one side of a hyperplane. A record's numbers are
codes of a fine public grid, so each of its places is a whole number that depends on its code alone,
and the side that it lies on is decided by integers, on every machine alike. All of it is public.
"""

from dataclasses import dataclass

import numpy as np

from sdv_privpgd.base import cached_property
from sdv_privpgd.base.domain import Domain, FieldsAlone


@dataclass(frozen=True)
class Line(FieldsAlone):
    """Where the codes of an attribute lie on a line."""

    name: str  # of the attribute
    places: tuple[int, ...]  # the place of each code of a value
    nullable: bool = False  # whether there is one more code, the last, for missing. It has no place

    def __post_init__(self) -> None:
        if not self.places or any(type(place) is not int for place in self.places):
            raise ValueError(f"The places of {self.name!r} must be integers: {self.places!r}.")

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:  # a line is long, and many questions share it
        return hash((self.name, self.places, self.nullable))

    @property
    def size(self) -> int:
        """The number of codes."""
        return len(self.places) + self.nullable

    @cached_property
    def largest(self) -> int:
        """The largest absolute place."""
        return max(map(abs, self.places))


@dataclass(frozen=True)
class Cut:
    """The intervals that thresholds cut a weighted sum of places into.

    A record is in interval i if its sum is above the first i thresholds and above no other. Where a
    line is nullable, records of which some place is missing are in one more interval, the last.

    Raises:
        ValueError: Unless lines have distinct names and integer weights, thresholds are ascending
            integers, and no sum is beyond 2^40.
    """

    lines: tuple[Line, ...]
    weights: tuple[int, ...]
    thresholds: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.lines or len({line.name for line in self.lines}) < len(self.lines):
            raise ValueError("A cut needs lines of one attribute or more, each named once.")
        if len(self.weights) != len(self.lines):
            raise ValueError(f"A cut of {len(self.lines)} lines needs as many weights.")
        steps = self.thresholds
        if not steps or tuple(sorted(set(steps))) != steps:
            raise ValueError(f"thresholds must be ascending, and one at least: {steps!r}.")
        if any(type(each) is not int for each in (*self.weights, *steps)):
            raise ValueError("Weights and thresholds must be integers.")
        if max(self._bound, *map(abs, steps)) > 2**40:
            # A sum that wrapped around would be on another side.
            raise ValueError("Weighted sums of places and thresholds must be at most 2^40.")

    @property
    def _bound(self) -> int:
        """The largest absolute sum of places."""
        pairs = zip(self.weights, self.lines, strict=True)
        return sum(abs(weight) * line.largest for weight, line in pairs)

    @property
    def nullable(self) -> bool:
        """Whether some place may be missing."""
        return any(line.nullable for line in self.lines)

    @property
    def size(self) -> int:
        """The number of intervals, and one for missing."""
        return len(self.thresholds) + 1 + self.nullable

    def steps(self) -> np.ndarray:
        """What a record's sum has to be above for each interval but the first, int64."""
        # Whatever else a missing place adds, the sum is above all sums of places.
        beyond = (max(self._bound, self.thresholds[-1]),) if self.nullable else ()
        return np.array([*self.thresholds, *beyond], dtype=np.int64)

    def contributions(self, domain: Domain) -> list[tuple[int, np.ndarray]]:
        """Each line's axis, and what its codes add to the sum, int64.

        Raises ``ValueError`` unless each line has a place for each code of the domain.
        """
        axes = domain.axes(line.name for line in self.lines)
        found: list[tuple[int, np.ndarray]] = []
        for axis, line, weight in zip(axes, self.lines, self.weights, strict=True):
            if domain.sizes[axis] != line.size:
                raise ValueError(
                    f"{line.name!r} has {domain.sizes[axis]} codes, and a line for {line.size}."
                )
            missing = self._bound + max(self._bound, self.thresholds[-1]) + 1
            own = [weight * place for place in line.places] + [missing] * line.nullable
            found.append((axis, np.array(own, dtype=np.int64)))
        return found
