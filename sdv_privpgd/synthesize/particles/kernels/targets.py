"""The input of every kernel: the targets of all tables, end to end, and the visits of a descent."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True, kw_only=True, eq=False)
class PackedTargets:
    """The weighted cells of all tables in contiguous arrays.

    Attributes:
        axes: The attributes of each table, padded with -1 where tables differ in dimension.
        dims: How many attributes each table has.
        offsets: Where the cells of each table begin; the last entry is the number of cells.
        centers: Cell centers in the table's dimensions, padded with 0.
        weights: Their probabilities, which sum to 1 in each table.
    """

    axes: Int[Tensor, "table dim"]
    dims: Int[Tensor, " table"]
    offsets: Int[Tensor, " boundary"]
    centers: Float[Tensor, "cell dim"]
    weights: Float[Tensor, " cell"]

    @classmethod
    def of(
        cls,
        axes: Sequence[Sequence[int]],
        centers: Sequence[Float[Tensor, "_ _"]],
        weights: Sequence[Float[Tensor, " _"]],
    ) -> "PackedTargets":
        """The targets of at least one table; weights need no common scale."""
        dims = [len(those) for those in axes]
        sizes = [len(those) for those in weights]
        packed = torch.full((len(axes), max(dims)), -1)
        places = torch.zeros(sum(sizes), max(dims))
        for table, (dim, own, first) in enumerate(
            zip(dims, centers, torch.tensor([0, *sizes]).cumsum(0).tolist(), strict=False)
        ):
            packed[table, :dim] = torch.tensor(axes[table])
            places[first : first + len(own), :dim] = own
        return cls(
            axes=packed,
            dims=torch.tensor(dims),
            offsets=torch.tensor([0, *sizes]).cumsum(0),
            centers=places,
            weights=torch.cat([those.double() / those.double().sum() for those in weights]),
        )

    def to(self, device: torch.device | str) -> "PackedTargets":
        """The same targets on a device."""
        return PackedTargets(**{f.name: getattr(self, f.name).to(device) for f in fields(self)})


class Visit(NamedTuple):
    """One step of a descent with its random choices made.

    ``rates`` is the share of the summed displacement by which each attribute moves. A batch that
    is not full is padded with table -1, whose directions are 0.
    """

    tables: Int[Tensor, " batch"]
    directions: Float[Tensor, "batch slice dim"]
    rates: Float[Tensor, " attribute"]
