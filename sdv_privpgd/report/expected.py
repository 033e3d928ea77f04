"""What a fit is to be expected to find out: numbers, before anything is spent. Public."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

import numpy as np

from sdv_privpgd.domain import Clique

_FEWER_THAN_NOISE = 1 / math.sqrt(2 * math.pi)
"""The displaced part of the rows where a pair's cells hold, on average, as many rows as their
noise has standard deviations: half the mean size of Gaussian noise, times the cells."""

_ROWS_POWER, _ROWS_LEAST, _ROWS_MOST = 0.65, 0.07, 0.18
"""Synthetic rows are between ``_ROWS_LEAST`` and ``_ROWS_MOST`` times this power of what noise
displaces from the table, on average over pairs. So it was in default fits at epsilon 0.2, 1 and 2.5
of four real tables (factors of 0.078 to 0.159, ``tests/benchmarks forecast --rows``) and at 1 of
twelve simulated ones of 1,000 to 50,000 rows (0.099 to 0.178)."""


@dataclass(frozen=True, kw_only=True)
class Errors:
    """The errors of a fit's answers. Public.

    Attributes:
        sizes: The number of codes of each attribute, missing included.
        columns: For each attribute the part of all rows that a share of a value is off by at most,
            in 95 of 100 cases.
        pairs: For each pair the part of the rows that noise puts into another cell of its table, on
            average. It may exceed 1. On a curve they are some of all pairs.
        pair: The mean over all pairs; ``None`` where none is asked for.
    """

    sizes: Mapping[str, int]
    columns: Mapping[str, float]
    pairs: Mapping[Clique, float]
    pair: float | None

    @property
    def column(self) -> float | None:
        """The mean over columns; ``None`` where none is asked for."""
        return fmean(self.columns.values()) if self.columns else None

    @property
    def most_values(self) -> int | None:
        """How many values each of two columns may have for the noise not to hide their pair.

        A cell of it then holds, on average, as many rows as its noise has standard deviations.
        """
        if not self.pairs:
            return None
        each_cell = median(
            error / math.prod(self.sizes[name] for name in pair)
            for pair, error in self.pairs.items()
        )
        return math.floor(math.sqrt(_FEWER_THAN_NOISE / each_cell)) if each_cell else None


def of_rows(noise: float) -> tuple[float, float]:
    """Returns the least and the most by which rows differ from the table in a pair, by noise."""
    power = noise**_ROWS_POWER
    return min(_ROWS_LEAST * power, noise), min(_ROWS_MOST * power, noise, 1.0)


@dataclass(frozen=True, kw_only=True)
class Curve:
    """The errors over epsilon, or over the number of rows. Public.

    Attributes:
        at: The epsilons or numbers of rows.
        columns: The errors of each column there, as in ``Errors``.
        pair: The mean over pairs there; empty where none is asked.
    """

    at: Sequence[float]
    columns: Mapping[str, Sequence[float]]
    pair: Sequence[float]

    @classmethod
    def of(cls, points: Mapping[float, Errors]) -> "Curve":
        """The curve through points."""
        found = list(points.values())
        names = [name for name in found[0].columns if all(name in each.columns for each in found)]
        means = [each.pair for each in found]
        return cls(
            at=tuple(points),
            columns={name: tuple(each.columns[name] for each in found) for name in names},
            pair=tuple(mean for mean in means if mean is not None) if None not in means else (),
        )

    @property
    def column(self) -> tuple[float, ...]:
        """The means over columns."""
        return tuple(fmean(errors) for errors in zip(*self.columns.values(), strict=True))

    def moved(self, at: Sequence[float], to: Mapping[float, float]) -> "Curve":
        """The same curve in another unit: ``at`` are its points there, rising.

        ``to`` maps the points of the new curve to that unit. Between points, and a little beyond,
        errors are taken to be powers of it.
        """

        def read(errors: Sequence[float]) -> tuple[float, ...]:
            places, known = np.log(list(to.values())), np.log(at)
            within = np.clip(places, known[0], known[-1])
            found = np.interp(within, known, np.log(errors)) - (places - within)
            return tuple(float(f"{error:.4g}") for error in np.exp(found))

        columns = {name: read(errors) for name, errors in self.columns.items()}
        return Curve(at=tuple(to), columns=columns, pair=read(self.pair) if self.pair else ())


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """What is to be expected of a fit. Public.

    Attributes:
        num_rows: The assumed number of rows.
        epsilon: That of the fit.
        are_chosen: Whether noisy answers choose the pairs that are asked for.
        listed: Columns whose number of values is declared, so that it can be changed.
        assumed: Columns whose number of values had to be assumed.
        here: The errors at this epsilon and number of rows.
        over_epsilon: The errors at other epsilons; ``None`` where the strategy takes too long.
        over_rows: The errors at other numbers of rows.
    """

    num_rows: int
    epsilon: float
    are_chosen: bool
    listed: Sequence[str]
    assumed: Sequence[str]
    here: Errors
    over_epsilon: Curve | None
    over_rows: Curve | None

    @property
    def too_fine(self) -> list[str]:
        """Columns of more values than the noise can pay for, the finest first."""
        most = self.here.most_values
        if most is None or most < 2:
            return []
        fine = [name for name in self.listed if self.here.sizes[name] > most]
        return sorted(fine, key=lambda name: -self.here.sizes[name])

    def to_dict(self) -> dict[str, Any]:
        """All numbers, by name. Parts of the rows, not percent."""
        here, noise = self.here, self.here.pair
        return {
            "columns": {
                name: {"values": here.sizes[name], "share_within": error}
                for name, error in here.columns.items()
            },
            "pairs": []
            if self.are_chosen
            else [
                {"columns": list(pair), "displaced_by_noise": error}
                for pair, error in here.pairs.items()
            ],
            "pairs_mean": {
                "displaced_by_noise": noise,
                "rows_usually_within": list(of_rows(noise))
                if noise and not self.are_chosen
                else None,
            },
            "over_epsilon": _curve(self.over_epsilon, "epsilon"),
            "over_rows": _curve(self.over_rows, "num_rows"),
            "too_fine": {"columns": self.too_fine, "most_values": here.most_values},
        }


def _curve(curve: Curve | None, name: str) -> dict[str, Any] | None:
    if curve is None:
        return None
    return {name: curve.at, "share_within": curve.columns, "pairs_mean": curve.pair}
