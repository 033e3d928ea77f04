"""An exact accountant for opacus: importing this module registers it as ``gdp-exact``.

The only module of the privacy core that imports torch (through opacus); nothing here imports it.
"""

import math
from fractions import Fraction
from typing import Any

from opacus.accountants import IAccountant  # pyright: ignore[reportMissingTypeStubs]
from opacus.accountants.registry import (  # pyright: ignore[reportMissingTypeStubs]
    register_accountant,
)

from sdv_privpgd.privacy.accounting import epsilon_of
from sdv_privpgd.privacy.ledger import PrivacyLedger


class ExactGDPAccountant(IAccountant):
    """Counts full-batch Gaussian steps in mu^2 and converts them exactly.

    ``history`` holds (noise multiplier, sample rate, number of steps), as opacus has it. Without
    subsampling a step of noise multiplier z is 1/z-GDP and steps compose by adding 1/z^2 (Dong,
    Roth & Su 2022, Corollary 2), so nothing is lost, where opacus' own ``gdp`` accountant uses
    the central limit approximation of subsampled steps.
    """

    def __init__(self) -> None:
        super().__init__()
        self.history: list[tuple[float, float, int]] = []

    @classmethod
    def of(cls, ledger: PrivacyLedger) -> "ExactGDPAccountant":
        """The accountant of a ledger's charges, under the ledger's adjacency.

        A choice is the step that dominates it: 1/mu is its noise multiplier.
        """
        accountant = cls()
        for charge in ledger.charges:
            if charge.stddev:
                sensitivity = math.sqrt(dict(charge.sensitivity_squared)[ledger.adjacency])
                accountant.step(noise_multiplier=charge.stddev / sensitivity, sample_rate=1.0)
            elif charge.temperature is not None:
                accountant.step(noise_multiplier=1 / math.sqrt(charge.mu_squared), sample_rate=1.0)
        return accountant

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Records one step. Raises ``ValueError`` for a sample rate other than 1."""
        if sample_rate != 1:
            raise ValueError(
                f"gdp-exact has no amplification by subsampling: sample_rate must be 1, got "
                f"{sample_rate!r}. Use opacus' 'prv' accountant for sampled batches."
            )
        if not noise_multiplier > 0:
            raise ValueError(f"noise_multiplier must be positive, got {noise_multiplier!r}.")
        if self.history and self.history[-1][0] == noise_multiplier:
            self.history[-1] = (noise_multiplier, 1.0, self.history[-1][2] + 1)
        else:
            self.history.append((noise_multiplier, 1.0, 1))

    def get_epsilon(self, delta: float, **kwargs: Any) -> float:
        """The smallest epsilon of all steps together at this delta."""
        del kwargs  # other accountants take precision settings; this one is exact
        mu_squared = sum(
            (steps / Fraction(multiplier) ** 2 for multiplier, _, steps in self.history),
            Fraction(0),
        )
        return epsilon_of(mu_squared, delta)

    def __len__(self) -> int:
        return sum(steps for _, _, steps in self.history)

    @classmethod
    def mechanism(cls) -> str:
        """The name under which opacus finds the accountant."""
        return "gdp-exact"


register_accountant(ExactGDPAccountant.mechanism(), ExactGDPAccountant)
