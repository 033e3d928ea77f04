"""Terms that a user adds to the loss, to push the particles towards something or away from it."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from sdv_privpgd.base.arguments import check_known
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.estimate.features import SigmoidSumQuery
from sdv_privpgd.estimate.noisy_tables import estimate_total
from sdv_privpgd.privacy.queries import Measurement, Query
from sdv_privpgd.synthesize.particles.kernels import Positions

Loss = Callable[[Tensor], Tensor]
"""Takes positions of shape (particle, attribute) in [0, 1] and returns a scalar. It should be a
mean over particles, or a function of means: then ``weight`` does not depend on their number."""


@runtime_checkable
class Penalty(Protocol):
    """A differentiable term of the loss: ``weight`` is lambda of Donhauser et al. 2024, Eq. 7."""

    @property
    def weight(self) -> float: ...

    def attributes(self, domain: Domain) -> tuple[str, ...]:
        """The attributes whose positions it reads."""
        ...

    def queries(self, domain: Domain) -> tuple[Query, ...]:
        """The queries that must be answered for it. Without any, it costs no budget.

        Raises ``ValueError`` if the penalty names columns that the domain does not have.
        """
        ...

    def loss(self, domain: Domain, measurements: Sequence[Measurement]) -> Loss:
        """The term without its weight, built from noisy answers only."""
        ...


def penalty_gradient(positions: Positions, losses: Sequence[tuple[float, Loss]]) -> Positions:
    """The gradient of the weighted penalties in units of 2 / particles (see ``steps.Pull``)."""
    free = positions.detach().T.requires_grad_()
    loss = sum((weight * penalty(free) for weight, penalty in losses), positions.new_zeros(()))
    (gradient,) = torch.autograd.grad(loss, free)
    return gradient.T * (positions.shape[1] / 2)


@dataclass(frozen=True)
class ProtectedThreshold:
    """Keeps the share of rows beyond a linear threshold from being read off the synthetic rows.

    The share is s-thr(Z) = mean of sigmoid(slope * (<theta, z> - b)) over positions z in [0, 1],
    and the term 0.01 / (1e-4 + (s-thr(Z) - estimate)^2) is large where the particles reproduce
    the estimate (Donhauser et al. 2024, section 4.4, Eq. 12 and appendix B).

    Choose the weight small: the term is 100 at its peak, and a table's SW2^2 lies near 1e-3. With
    three columns, a weight of 0.001 moved the share by 0.01 and the pairs by 0.05 in L1; a weight
    of 0.01 moved them by 0.12 and 0.4.

    Privacy: it needs one private answer, which is dropped after the fit, with all that reveals it.

    >>> protected = ProtectedThreshold({"age": 1.0, "pay": -0.5}, b=0.2)
    >>> protected.attributes(Domain(("age", "pay", "ward"), (9, 9, 3)))
    ('age', 'pay')
    """

    theta: Mapping[str, float]
    b: float
    slope: float = 5.0
    weight: float = 0.001

    def __post_init__(self) -> None:
        object.__setattr__(self, "theta", {a: float(c) for a, c in self.theta.items()})
        if not self.theta:
            raise ValueError("theta is empty: give at least one column and its coefficient.")
        for attribute, coefficient in self.theta.items():
            _require_finite(f"theta[{attribute!r}]", coefficient)
        _require_finite("b", self.b)
        _require_finite("slope", self.slope)
        _require_weight(self.weight)

    def attributes(self, domain: Domain) -> tuple[str, ...]:
        """The attributes that theta names."""
        del domain
        return tuple(self.theta)

    def query(self) -> SigmoidSumQuery:
        """The statistic as a query, to be measured on the private table."""
        return SigmoidSumQuery.of(self.theta, self.b, self.slope)

    def queries(self, domain: Domain) -> tuple[Query, ...]:
        """The statistic's query, once its columns are checked."""
        check_known("theta", self.theta, domain.attributes)
        return (self.query(),)

    def loss(self, domain: Domain, measurements: Sequence[Measurement]) -> Loss:
        """Eq. 12 around the noisy estimate found among the measurements."""
        self.queries(domain)
        answers = [found.answer for found in measurements if found.query == self.query()]
        if not answers:
            raise ValueError(
                f"measurements lack {self.query().describe()!r}: "
                "answer the queries of the penalties before the fit."
            )
        total = estimate_total(domain, measurements).value
        estimate = float(answers[-1][0]) / (SigmoidSumQuery.GRID * total)
        estimate = min(max(estimate, 0.0), 1.0)
        axes, coefficients = list(domain.axes(self.theta)), list(self.theta.values())

        def nearness(positions: Tensor) -> Tensor:
            scores = positions[:, axes] @ positions.new_tensor(coefficients) - self.b
            share = torch.sigmoid(self.slope * scores).mean()
            return 0.01 / (1e-4 + (share - estimate).square())

        return nearness


@dataclass(frozen=True)
class DifferentiablePenalty:
    """A user's own term: any differentiable function of the named positions.

    ``function`` receives a mapping from columns to positions in [0, 1] and returns a scalar tensor.
    The positions of a column are a tensor with one number for each particle; the center of cell c
    of k is (2 c + 1) / (2 k). It sees no private data and costs no budget. No file
    of a model can hold it; SDV's ``save`` can if it is a function of a module, and no lambda.

    >>> def young(positions):
    ...     return positions["age"].mean()
    >>> penalty = DifferentiablePenalty(young, weight=0.01)
    >>> penalty.queries(Domain(("age",), (9,)))
    ()
    """

    function: Callable[[Mapping[str, Tensor]], Tensor]
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ValueError(f"function must be callable, got {self.function!r}.")
        _require_weight(self.weight)

    def attributes(self, domain: Domain) -> tuple[str, ...]:
        """All attributes, because nobody knows which of them the function reads."""
        return domain.attributes

    def queries(self, domain: Domain) -> tuple[Query, ...]:
        """No queries: nothing is measured."""
        del domain
        return ()

    def loss(self, domain: Domain, measurements: Sequence[Measurement]) -> Loss:
        """The function, given the positions by the names of their columns."""
        del measurements

        def named(positions: Tensor) -> Tensor:
            value = self.function(dict(zip(domain.attributes, positions.unbind(1), strict=True)))
            if not isinstance(value, Tensor) or value.numel() != 1:
                raise ValueError(
                    f"function must return a tensor with one number, got {type(value).__name__}"
                    f"{f' of shape {tuple(value.shape)}' if isinstance(value, Tensor) else ''}: "
                    "take the mean over particles."
                )
            return value.reshape(())

        return named


def _require_finite(name: str, value: float) -> None:
    if not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, got {value!r}.")


def _require_weight(weight: float) -> None:
    if not (math.isfinite(weight) and weight >= 0):
        raise ValueError(f"weight must be a finite number of at least 0, got {weight!r}.")
