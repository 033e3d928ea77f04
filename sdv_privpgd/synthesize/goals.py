"""What noisy tables ask of a model: the shares of their cells, each with its weight. Public."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sdv_privpgd.base.domain import Clique, Domain, Grouping
from sdv_privpgd.estimate.consistency import Possible, possible_cells
from sdv_privpgd.estimate.noisy_tables import (
    NoisyTable,
    estimate_total,
    grouped_tables,
    margin_estimates,
    noisy_tables,
)
from sdv_privpgd.estimate.support import supported_one_way
from sdv_privpgd.privacy.queries import Measurement


class View(NamedTuple):
    """An attribute through its codes, or through groups of them."""

    axis: int
    groups: tuple[int, ...]
    """The group of each code; its own number where codes are looked at themselves."""

    @property
    def size(self) -> int:
        """The number of groups."""
        return max(self.groups) + 1


@dataclass(frozen=True, kw_only=True, eq=False)
class Goals:
    """Tables that a model is to match.

    A model's loss is the sum over cells of weight * (share - wanted share)^2: the mean squared
    error in standard deviations of the noise. Where all tables are equally noisy, this is the sum
    of squares of the published engines but for a factor.

    Attributes:
        domain: The domain of the rows.
        views: The ways in which tables look at attributes.
        tables: For each table the indices of its views.
        shares: For each table the noisy counts, divided by the number of records; float64, one
            axis a view. Noise makes some of them negative.
        weights: For each table what a squared error of a share counts.
    """

    domain: Domain
    views: tuple[View, ...]
    tables: tuple[tuple[int, ...], ...]
    shares: tuple[np.ndarray, ...]
    weights: tuple[float, ...]

    @classmethod
    def of(
        cls,
        domain: Domain,
        measurements: Sequence[Measurement],
        possible: Possible | None = None,
        *,
        with_groups: bool = True,
    ) -> "Goals":
        """The tables over codes that were measured, and those over groups if these are of use.

        ``possible`` marks the cells of some cliques that can hold rows at all: the others are
        wanted empty.
        """
        total = estimate_total(domain, measurements).value
        found: list[tuple[Clique, Grouping | None, NoisyTable]] = []
        for clique, table in noisy_tables(domain, measurements).items():
            allowed = possible_cells(clique, table.counts.shape, possible or {})
            found.append((clique, None, NoisyTable(table.counts * allowed, table.variance)))
        grouped = grouped_tables(domain, measurements) if with_groups else {}
        for grouping, tables in grouped.items():
            found += [(clique, grouping, table) for clique, table in tables.items()]
        views: dict[View, int] = {}
        places = [
            tuple(views.setdefault(_view(domain, name, grouping), len(views)) for name in clique)
            for clique, grouping, _ in found
        ]
        cells = sum(table.counts.size for _, _, table in found)
        return cls(
            domain=domain,
            views=tuple(views),
            tables=tuple(places),
            shares=tuple(table.counts / total for _, _, table in found),
            weights=tuple(total**2 / table.weighed_variance / cells for _, _, table in found),
        )


def _view(domain: Domain, name: str, grouping: Grouping | None) -> View:
    (axis,) = domain.axes((name,))
    groups = range(domain.sizes[axis]) if grouping is None else grouping[name].tolist()
    return View(axis, tuple(groups))


def first_shares(domain: Domain, measurements: Sequence[Measurement]) -> list[np.ndarray]:
    """The shares of each attribute's codes by its noisy tables, where a fit may start.

    A code that surely holds no rows gets about 1e-5: all logarithms are finite.
    """
    total = estimate_total(domain, measurements).value
    margins = margin_estimates(noisy_tables(domain, measurements), 1)
    found = []
    for name, size in zip(domain.attributes, domain.sizes, strict=True):
        shares = supported_one_way(margins.get((name,)), size, total) / total + 1e-5
        found.append(shares / shares.sum())
    return found


def too_many_components(domain: Domain, components: int) -> str | None:
    """Why so many components of all codes cannot be held: they take more than 2 GiB of float64."""
    # MiB of the largest model of an engine that holds a number for each component and code.
    largest = 2048.0
    size = components * sum(domain.sizes) * 8 / 2**20
    if size <= largest:
        return None
    return (
        f"{components:,} rows of shares over all {sum(domain.sizes):,} codes take {size:.3g} MiB, "
        f"above {largest:g}. Ask for fewer components, or for fewer codes of the columns with "
        "most of them."
    )
