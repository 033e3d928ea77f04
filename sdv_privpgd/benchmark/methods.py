"""The methods of the comparison: their strategies, engines, and the epsilon that they spend.

"published" means the paper's configuration of the particles (Donhauser et al. 2024, section 4.1).
"PrivPGD-AIM" and its like are another strategy with our particles. A strategy's name alone is that
strategy with its authors' engine. "RAP-AllPairs", "GEM-AllPairs" and "Private-GSD" measure all
pairs with equal noise. In this comparison "RAP++" has the cells of all others. "RAP++" and
"DP-MERF" are told the column that classifiers are to predict, as published; no other method is.
"PrivPGD-without-x" is the default without one of its parts (``ABLATIONS``).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sdv_privpgd.fitting.methods import engine_of, strategy_of
from sdv_privpgd.privacy.accounting import epsilon_of
from sdv_privpgd.select.fixed import AllKWay
from sdv_privpgd.select.importance import importance_of
from sdv_privpgd.select.strategy import Strategy
from sdv_privpgd.synthesize.engine import Engine

ABLATIONS: Mapping[str, tuple[dict, dict]] = {
    "PrivPGD-without-denoising": ({}, {"targets": "consistent"}),
    "PrivPGD-without-consistency": ({}, {"targets": "raw"}),
    "PrivPGD-without-descent": ({}, {"epochs": 0}),
    "PrivPGD-with-100-epochs": ({}, {"epochs": 100}),
    "PrivPGD-without-finish": ({}, {"finish": None}),
    "PrivPGD-without-columns": ({"columns": False}, {}),
    "PrivPGD-without-second-round": ({"first_share": Fraction(1)}, {}),
    "PrivPGD-without-triples": ({"triples": Fraction(0)}, {}),
}
"""What is changed in the default's strategy, and in its engine."""

_PAIRS = "pairs with equal noise"

METHODS: Mapping[str, tuple[str, str]] = {
    "PrivPGD": ("all_pairs", "particles"),
    "PrivPGD-published": (_PAIRS, "particles"),
    "PrivPGD-published-noise": (_PAIRS, "particles"),
    "Independent": ("independent", "pgm"),
    "MST": ("mst", "pgm"),
    "AIM": ("aim", "pgm"),
    "MWEM": ("mwem", "pgm"),
    "PrivSyn": ("privsyn", "gum"),
    "PrivMRF": ("privmrf", "pgm"),
    "DP-MERF": ("mean_embedding", "generator"),
    "RAP++": ("half_spaces", "rap++"),
    "DP-Diffusion": ("private_gradients", "diffusion"),
    "DP-CTGAN": ("private_gradients", "gan"),
    "RAP": ("adaptive", "rap"),
    "GEM": ("adaptive", "gem"),
    "Private-GSD": (_PAIRS, "private_gsd"),
    "RAP-AllPairs": (_PAIRS, "rap"),
    "GEM-AllPairs": (_PAIRS, "gem"),
    "PrivPGD-Independent": ("independent", "particles"),
    "PrivPGD-MST": ("mst", "particles"),
    "PrivPGD-AIM": ("aim", "particles"),
    "PrivPGD-MWEM": ("mwem", "particles"),
    "PrivPGD-PrivSyn": ("privsyn", "particles"),
    "PrivPGD-PrivMRF": ("privmrf", "particles"),
    **dict.fromkeys(ABLATIONS, ("all_pairs", "particles")),
}
"""The strategy and the engine of each."""


@dataclass(frozen=True, kw_only=True)
class Method:
    """One of ``METHODS`` with its settings.

    Attributes:
        name: Its name.
        num_particles: The number of particles; ``None`` takes the configuration's own number.
        published_epochs: The epochs of the published configuration; ``None`` takes 1,000.
        max_megabytes: The largest size of AIM's model; the paper has 80.
    """

    name: str
    num_particles: int | None = None
    published_epochs: int | None = None
    max_megabytes: float = 80.0

    def __post_init__(self) -> None:
        if self.name not in METHODS:
            raise ValueError(f"There is no method {self.name!r}: choose from {tuple(METHODS)!r}.")

    @property
    def _is_published(self) -> bool:
        return self.name.startswith("PrivPGD-published")

    @property
    def has_particles(self) -> bool:
        """Whether its engine is the particles."""
        return METHODS[self.name][1] == "particles"

    def settings(self) -> dict[str, float]:
        """The settings that this method reads and that differ from its default."""
        read = {}
        if self.has_particles:
            read["num_particles"] = self.num_particles
        if self._is_published:
            read["published_epochs"] = self.published_epochs
        if METHODS[self.name][0] == "aim":
            read["max_megabytes"] = self.max_megabytes
        return {key: value for key, value in read.items() if value is not None}

    def spends(self, epsilon: float, delta: float) -> float:
        """The epsilon that its noise spends where its authors would claim ``epsilon``."""
        is_noisier = self.name == "PrivPGD-published-noise"
        return published_epsilon(epsilon, delta) if is_noisier else epsilon

    def strategy(self, nominal: tuple[str, ...] = (), label: str | None = None) -> Strategy:
        """The strategy that measures.

        Args:
            nominal: The attributes whose codes have no order.
            label: The class, of a method that was published for tables with one.
        """
        name = METHODS[self.name][0]
        if name == _PAIRS:
            return AllKWay(degree=2)
        strategy: Any = strategy_of(
            name, max_megabytes=self.max_megabytes if name == "aim" else None
        )
        if name in ("half_spaces", "mean_embedding"):
            return replace(strategy, nominal=nominal, importance=importance_of(label, None))
        changes, _ = ABLATIONS.get(self.name, ({}, {}))
        return replace(strategy, **changes) if changes else strategy

    def engine(self, seed: int) -> Engine:
        """The engine that makes rows of the measurements."""
        if not self.has_particles:
            return engine_of(METHODS[self.name][1], seed=seed)
        _, changes = ABLATIONS.get(self.name, ({}, {}))
        if self.num_particles is not None:
            changes = {**changes, "num_particles": self.num_particles}
        if not self._is_published:
            return engine_of("particles", seed=seed, **changes)
        from sdv_privpgd import ParticleGradientDescent

        if self.published_epochs is not None:
            changes = {**changes, "epochs": self.published_epochs}
        return ParticleGradientDescent.as_published(seed=seed, **changes)


def published_epsilon(epsilon: float, delta: float) -> float:
    """The epsilon that the paper's noise for ``epsilon`` spends, exactly.

    Its code calibrates through epsilon = rho + 2 sqrt(rho log(1/delta)) (Bun & Steinke 2016,
    Proposition 1.3), which asks for 1.24 to 1.48 times the noise that suffices at the paper's
    budgets. A Gaussian of rho-zCDP has mu^2 = 2 rho, whose epsilon is known exactly.
    """
    log = math.log(1 / delta)
    root = epsilon / (math.sqrt(log + epsilon) + math.sqrt(log))  # of rho, without cancelling
    return epsilon_of(2 * Fraction(root) ** 2, delta)
