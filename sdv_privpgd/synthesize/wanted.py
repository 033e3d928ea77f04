"""What noisy tables and tables of half-spaces want of relaxed rows of numbers and categories."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sdv_privpgd.base.domain import Clique, Domain
from sdv_privpgd.estimate.noisy_tables import noisy_tables
from sdv_privpgd.privacy.half_spaces import Cut, Line
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.privacy.queries import CutMarginalQuery


@dataclass(frozen=True, kw_only=True, eq=False)
class Wanted:
    """A noisy table: what it is over, its counts, and the variance of a cell. Public."""

    clique: Clique
    cuts: tuple[Cut, ...]
    counts: np.ndarray
    variance: float


def lines_of(measurements: Sequence[Measurement]) -> dict[str, Line]:
    """The line of each attribute that some question cuts.

    Raises ``ValueError`` for an attribute on several lines, and for places that do not ascend.
    """
    found: dict[str, Line] = {}
    for each in measurements:
        if isinstance(each.query, CutMarginalQuery):
            for line in (line for cut in each.query.cuts for line in cut.lines):
                if found.setdefault(line.name, line) != line:
                    raise ValueError(f"{line.name!r} lies on several lines: ask along one alone.")
    for name, line in found.items():
        if any(np.diff(line.places) <= 0):
            raise ValueError(f"The places of {name!r} do not ascend: number its codes in order.")
    return found


def wanted_of(
    domain: Domain, measurements: Sequence[Measurement], lines: Mapping[str, Line]
) -> list[Wanted]:
    """What tables and tables of half-spaces want of rows; other answers are left out.

    Codes of an attribute that lies on a line are told apart by thresholds between their places.
    """
    found: list[Wanted] = []
    for clique, table in noisy_tables(domain, measurements).items():
        found.append(_told_apart(clique, (), table.counts, table.variance, lines))
    for each in measurements:
        if isinstance(each.query, CutMarginalQuery):
            counts = each.answer.astype(np.float64)
            query, variance = each.query, each.stddev**2
            found.append(_told_apart(query.clique, query.cuts, counts, variance, lines))
    return found


def _told_apart(
    clique: Clique,
    cuts: tuple[Cut, ...],
    counts: np.ndarray,
    variance: float,
    lines: Mapping[str, Line],
) -> Wanted:
    """The table with cuts in place of the attributes of its clique that lie on lines."""
    numbers = [axis for axis, name in enumerate(clique) if _size(lines.get(clique[axis])) > 1]
    kept = [axis for axis in range(len(clique)) if axis not in numbers]
    own = [
        Cut((line,), (2,), tuple((np.array(line.places[1:]) + line.places[:-1]).tolist()))
        for line in (lines[clique[axis]] for axis in numbers)
    ]
    order = [*kept, *numbers, *range(len(clique), counts.ndim)]
    names = tuple(clique[axis] for axis in kept)
    return Wanted(
        clique=names, cuts=(*own, *cuts), counts=counts.transpose(order), variance=variance
    )


def _size(line: Line | None) -> int:
    return 0 if line is None else len(line.places)
