"""The protocol of optimizers, and the default one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from jaxtyping import Bool, Float
from torch import Tensor


class Pull(NamedTuple):
    """The gradient of a mini-batch on the coordinates it touches, in units of 2 / particles.

    In these units the gradient of one table's SW2 squared is minus the displacement, and its
    curvature in one coordinate is 1 / (dimension of the table).
    """

    columns: list[int]
    gradient: Float[Tensor, "column particle"]
    curvature: Float[Tensor, " column"]
    moving: Bool[Tensor, "column particle"] | None
    """True where the gradient is not masked; None if it is masked nowhere."""


Move = Callable[[Pull, float], Float[Tensor, "column particle"]]
"""Takes a pull and the share of the descent that is done; returns the change of positions."""


@runtime_checkable
class StepRule(Protocol):
    """A first-order optimizer of the particles."""

    def begin(self, positions: Float[Tensor, "attribute particle"]) -> Move:
        """A move for these positions, with a state of its own."""
        ...


@dataclass(frozen=True, kw_only=True)
class TransportStep:
    """Goes a fraction of the way to the targets: a Gauss-Newton step of SW2 squared.

    Dividing by the curvature turns the displacement along few slices into the displacement in
    space, because E[theta theta^T] = I / dim. There is no rate to tune and no state to keep.
    The fraction falls geometrically from ``first`` to ``last``: whole steps explore, and small
    steps average the pulls of tables that cannot all be satisfied.
    """

    first: float = 1.0
    last: float = 0.2

    def fraction(self, elapsed: float) -> float:
        """The fraction of the way after a share of the descent, both from 0 to 1."""
        return self.first * (self.last / self.first) ** elapsed

    def begin(self, positions: Float[Tensor, "attribute particle"]) -> Move:
        del positions

        def move(pull: Pull, elapsed: float) -> Tensor:
            change = pull.gradient * (-self.fraction(elapsed) / pull.curvature)[:, None]
            return change if pull.moving is None else change * pull.moving

        return move
