"""The methods of the comparison: their strategies, engines, and the epsilon that they spend.

"published" means the paper's configuration of the particles (Donhauser et al. 2024, section 4.1).
"PrivPGD-AIM" and its like are another strategy with our particles. A strategy's name alone is that
strategy with its authors' engine. "RAP-AllPairs", "GEM-AllPairs" and "Private-GSD" measure all
pairs with equal noise. In this comparison "RAP++" has the cells of all others. "RAP++" and
"DP-MERF" are told the column that classifiers are to predict, as published; no other method is.
"PrivPGD-without-x" is the default without one of its parts (``ABLATIONS``).

An arm of the exchange is named by its parts, a preprocessing, a method that asks and an engine:
``equal_width+rare / mst / pgm``. Methods and engines are those of ``method="mst+pgm"`` elsewhere,
with their own settings.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any, cast

from sdv_privpgd.benchmark.preprocessing import PREPROCESSINGS, SHARE, Preprocessing
from sdv_privpgd.methods.method import (
    ENGINES,
    EngineMethod,
    Method,
    engine_of,
    method_of,
    named_methods,
)
from sdv_privpgd.methods.workload import importance_of
from sdv_privpgd.privacy.accounting import epsilon_of
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

_PAIRS = "private_gsd"
"""The method whose pairs all have equal noise."""

METHODS: Mapping[str, tuple[str, str]] = {
    "PrivPGD": ("privpgd", "particles"),
    "PrivPGD-published": (_PAIRS, "particles"),
    "PrivPGD-published-noise": (_PAIRS, "particles"),
    "Independent": ("independent", "pgm"),
    "MST": ("mst", "pgm"),
    "AIM": ("aim", "pgm"),
    "MWEM": ("mwem", "pgm"),
    "PrivSyn": ("privsyn", "gum"),
    "PrivMRF": ("privmrf", "pgm"),
    "DP-MERF": ("dp-merf", "generator"),
    "RAP++": ("rap++", "rap++"),
    "DP-Diffusion": ("dp-diffusion", ""),
    "DP-CTGAN": ("dp-ctgan", ""),
    "RAP": ("rap", "rap"),
    "GEM": ("gem", "gem"),
    "Private-GSD": (_PAIRS, "private_gsd"),
    "RAP-AllPairs": (_PAIRS, "rap"),
    "GEM-AllPairs": (_PAIRS, "gem"),
    "PrivPGD-Independent": ("independent", "particles"),
    "PrivPGD-MST": ("mst", "particles"),
    "PrivPGD-AIM": ("aim", "particles"),
    "PrivPGD-MWEM": ("mwem", "particles"),
    "PrivPGD-PrivSyn": ("privsyn", "particles"),
    "PrivPGD-PrivMRF": ("privmrf", "particles"),
    **dict.fromkeys(ABLATIONS, ("privpgd", "particles")),
}
"""The method that asks, and the engine that makes rows of the answers, if it has one."""

SELECTS = tuple(name for name, make in named_methods().items() if isinstance(make(), EngineMethod))
"""The methods that go with several engines."""


_BETWEEN = " / "

USUAL = ("equal_width+rare", "aim", "pgm")
"""The parts of an arm that are not named: the benchmark paper's preprocessing, and the engine that
it holds fast while it exchanges strategies, with the best of them."""


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One of ``METHODS``, or an arm of the exchange, with its settings.

    Attributes:
        name: Its name.
        share: Part of the budget for an arm's preprocessing, if that asks.
        num_particles: The number of particles; ``None`` takes the configuration's own number.
        published_epochs: The epochs of the published configuration; ``None`` takes 1,000.
        max_megabytes: The largest size of AIM's model, and of any in an arm; the paper has 80.
    """

    name: str
    share: Fraction = SHARE
    num_particles: int | None = None
    published_epochs: int | None = None
    max_megabytes: float = 80.0

    def __post_init__(self) -> None:
        if is_arm(self.name):
            choices = (PREPROCESSINGS, SELECTS, tuple(ENGINES))
            for named, choice in zip(parts_of(self.name), choices, strict=True):
                if named not in choice:
                    raise ValueError(f"There is no {named!r}: choose from {choice!r}.")
        elif self.name not in METHODS:
            raise ValueError(f"There is no method {self.name!r}: choose from {tuple(METHODS)!r}.")

    @property
    def _parts(self) -> tuple[str, str]:
        """The names of the method that asks, and of the engine."""
        if not is_arm(self.name):
            return METHODS[self.name]
        _, select, synthesize = parts_of(self.name)
        return select, synthesize

    @property
    def _is_published(self) -> bool:
        return self.name.startswith("PrivPGD-published")

    @property
    def has_particles(self) -> bool:
        """Whether its engine is the particles."""
        return self._parts[1] == "particles"

    @property
    def preprocessing(self) -> Preprocessing | None:
        """What makes an arm's codes of the table. Others have those of the table itself."""
        if not is_arm(self.name):
            return None
        return Preprocessing(name=parts_of(self.name)[0], share=self.share)

    def settings(self) -> dict[str, float]:
        """The settings that this method reads and that differ from its default."""
        read: dict[str, float | None] = {}
        if self.preprocessing is not None and self.preprocessing.name != "equal_width":
            read["share"] = float(self.share)
        if self.has_particles:
            read["num_particles"] = self.num_particles
        if self._is_published:
            read["published_epochs"] = self.published_epochs
        if self._is_capped:
            read["max_megabytes"] = self.max_megabytes
        return {key: value for key, value in read.items() if value is not None}

    @property
    def _is_capped(self) -> bool:
        """Whether ``max_megabytes`` is told to its strategy. Other methods keep their own limit."""
        name = self._parts[0]
        has_limit = is_arm(self.name) and hasattr(named_methods()[name](), "max_megabytes")
        return has_limit or name == "aim"

    def spends(self, epsilon: float, delta: float) -> float:
        """The epsilon that its noise spends where its authors would claim ``epsilon``."""
        is_noisier = self.name == "PrivPGD-published-noise"
        return published_epsilon(epsilon, delta) if is_noisier else epsilon

    def made(self, seed: int, nominal: tuple[str, ...] = (), label: str | None = None) -> Method:
        """Returns the method.

        Args:
            seed: Of the engine.
            nominal: The attributes whose codes have no order.
            label: The class, of a method that was published for tables with one.
        """
        name, engine = self._parts
        if not engine:
            return method_of(name, seed=seed)
        method: Any = replace(cast(Any, method_of(name)), engine=self._engine(engine).seeded(seed))
        if self._is_capped:
            method = replace(method, max_megabytes=self.max_megabytes)
        if name in ("rap++", "dp-merf"):
            return replace(method, nominal=nominal, importance=importance_of(label))
        changes, _ = ABLATIONS.get(self.name, ({}, {}))
        return replace(method, **changes)

    def _engine(self, name: str) -> Engine:
        """Returns the engine that makes rows of the measurements."""
        if not self.has_particles:
            return engine_of(name)
        from sdv_privpgd.synthesize.particles.descent import ParticleGradientDescent

        _, changes = ABLATIONS.get(self.name, ({}, {}))
        if self.num_particles is not None:
            changes = {**changes, "num_particles": self.num_particles}
        if not self._is_published:
            return ParticleGradientDescent(**changes)
        if self.published_epochs is not None:
            changes = {**changes, "epochs": self.published_epochs}
        return ParticleGradientDescent.as_published(**changes)


def is_arm(method: str) -> bool:
    """Whether the name of a method is that of an arm."""
    return len(parts_of(method)) == 3


def parts_of(method: str) -> list[str]:
    """The names of an arm's parts, in the order in which they work."""
    return method.split(_BETWEEN)


def names_of(
    preprocess: Sequence[str] | None, select: Sequence[str] | None, synthesize: Sequence[str] | None
) -> list[str]:
    """The names of all arms of these parts; none if no part is named."""
    named = (preprocess, select, synthesize)
    if not any(named):
        return []
    parts = [each or [usual] for each, usual in zip(named, USUAL, strict=True)]
    return [_BETWEEN.join(each) for each in product(*parts)]


def published_epsilon(epsilon: float, delta: float) -> float:
    """The epsilon that the paper's noise for ``epsilon`` spends, exactly.

    Its code calibrates through epsilon = rho + 2 sqrt(rho log(1/delta)) (Bun & Steinke 2016,
    Proposition 1.3), which asks for 1.24 to 1.48 times the noise that suffices at the paper's
    budgets. A Gaussian of rho-zCDP has mu^2 = 2 rho, whose epsilon is known exactly.
    """
    log = math.log(1 / delta)
    root = epsilon / (math.sqrt(log + epsilon) + math.sqrt(log))  # of rho, without cancelling
    return epsilon_of(2 * Fraction(root) ** 2, delta)
