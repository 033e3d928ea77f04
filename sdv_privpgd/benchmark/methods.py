"""The methods of the comparison: their strategies, engines, and the epsilon that they spend.

"published" means the paper's configuration of the particles (Donhauser et al. 2024, section 4.1).
"PrivPGD" measures all pairs, coarse triples and, where the noise is loud, all columns. A name like
"PrivPGD-AIM" is another strategy with our particles. A strategy's name alone is that strategy with
its authors' engine: GUM for PrivSyn, Private-PGM for all others. "RAP" and "GEM" select adaptively,
each with its engine; "RAP-AllPairs", "GEM-AllPairs" and "Private-GSD" measure all pairs with equal
noise. "RAP++" is ``HalfSpaces`` with ``AnnealedProjection``, in
this comparison it has the cells of all others. "DP-MERF" is ``MeanEmbedding`` with
``GeneratorNetwork``; as published, both are told the column that classifiers are to predict, which
no other method is told. "DP-Diffusion" and "DP-CTGAN" are ``PrivateGradients`` with
``DiffusionNetwork`` and ``AdversarialNetwork``. "PrivPGD-without-x" is the default without one of
its parts (``ABLATIONS``).
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from sdv_privpgd.privacy.accounting import epsilon_of
from sdv_privpgd.select.strategy import Strategy
from sdv_privpgd.synthesize.engine import Engine

ABLATIONS: dict[str, dict] = {
    "PrivPGD-without-denoising": {"targets": "consistent"},
    "PrivPGD-without-consistency": {"targets": "raw"},
    "PrivPGD-without-descent": {"epochs": 0},
    "PrivPGD-with-100-epochs": {"epochs": 100},
    "PrivPGD-without-finish": {"finish": None},
    "PrivPGD-without-columns": {},
    "PrivPGD-without-second-round": {},
    "PrivPGD-without-triples": {},
}
"""The changes of the default's engine. "columns" (questions about one column alone), the second
round of pairs and the triples belong to the strategy."""

METHODS = (
    "PrivPGD", "PrivPGD-published", "PrivPGD-published-noise",
    "Independent", "MST", "AIM", "MWEM", "PrivSyn", "PrivMRF", "DP-MERF",
    "RAP++", "DP-Diffusion", "DP-CTGAN",
    "RAP", "GEM", "Private-GSD", "RAP-AllPairs", "GEM-AllPairs",
    "PrivPGD-Independent", "PrivPGD-MST", "PrivPGD-AIM", "PrivPGD-MWEM", "PrivPGD-PrivSyn",
    "PrivPGD-PrivMRF", *ABLATIONS,
)  # fmt: skip

_PARTICLES, _NOISE = "PrivPGD", "PrivPGD-published-noise"


@dataclass(frozen=True, kw_only=True)
class Method:
    """One of ``METHODS`` with its settings.

    Attributes:
        name: Its name.
        num_particles: The number of particles; ``None`` takes the configuration's own number.
        published_epochs: The epochs of the published configuration; ``None`` takes 1,000.
        max_megabytes: The largest size of AIM's model; the paper has 80.

    >>> method = Method(name="MST")
    >>> method.has_particles, type(method.strategy()).__name__
    (False, 'MST')
    """

    name: str
    num_particles: int | None = None
    published_epochs: int | None = None
    max_megabytes: float = 80.0

    def __post_init__(self) -> None:
        if self.name not in METHODS:
            raise ValueError(f"There is no method {self.name!r}: choose from {METHODS!r}.")

    @property
    def _is_published(self) -> bool:
        return self.name.startswith("PrivPGD-published")

    @property
    def has_particles(self) -> bool:
        """Whether its engine is the particles."""
        return self.name.startswith(_PARTICLES)

    def settings(self) -> dict[str, float]:
        """The settings that this method reads and that differ from its default."""
        read = {}
        if self.has_particles:
            read["num_particles"] = self.num_particles
        if self._is_published:
            read["published_epochs"] = self.published_epochs
        if self.name.endswith("AIM"):
            read["max_megabytes"] = self.max_megabytes
        return {key: value for key, value in read.items() if value is not None}

    def spends(self, epsilon: float, delta: float) -> float:
        """The epsilon that its noise spends where its authors would claim ``epsilon``."""
        return published_epsilon(epsilon, delta) if self.name == _NOISE else epsilon

    def strategy(self, nominal: tuple[str, ...] = (), label: str | None = None) -> Strategy:
        """The strategy that measures.

        Args:
            nominal: The attributes whose codes have no order.
            label: The class, of a method that was published for tables with one.
        """
        # Imported here, so that a method needs only what it uses.
        match self.name.removeprefix(f"{_PARTICLES}-"):
            case "Independent":
                from sdv_privpgd.select.independent import Independent

                return Independent()
            case "MST":
                from sdv_privpgd.select.mst import MST

                return MST()
            case "AIM":
                from sdv_privpgd.select.aim import AIM

                return AIM(max_megabytes=self.max_megabytes)
            case "DP-MERF":
                from sdv_privpgd.select.importance import importance_of
                from sdv_privpgd.select.mean_embedding import MeanEmbedding

                return MeanEmbedding(nominal=nominal, importance=importance_of(label, None))
            case "DP-Diffusion" | "DP-CTGAN":
                from sdv_privpgd.select.private_gradients import PrivateGradients

                return PrivateGradients()
            case "MWEM":
                from sdv_privpgd.select.mwem import MWEM

                return MWEM()
            case "PrivSyn":
                from sdv_privpgd.select.privsyn import PrivSyn

                return PrivSyn()
            case "PrivMRF":
                from sdv_privpgd.select.privmrf import PrivMRF

                return PrivMRF()
            case "RAP++":
                from sdv_privpgd.select.half_spaces import HalfSpaces
                from sdv_privpgd.select.importance import importance_of

                return HalfSpaces(nominal=nominal, importance=importance_of(label, None))
            case "RAP" | "GEM":
                from sdv_privpgd.select.adaptive import Adaptive

                return Adaptive()
            case "published" | "published-noise" | "Private-GSD" | "RAP-AllPairs" | "GEM-AllPairs":
                from sdv_privpgd.select.fixed import AllKWay

                return AllKWay(degree=2)
        from sdv_privpgd.select.all_pairs import AllPairs

        return AllPairs(
            columns=self.name != "PrivPGD-without-columns",
            first_share=Fraction(1 if self.name == "PrivPGD-without-second-round" else "2/3"),
            triples=Fraction(0 if self.name == "PrivPGD-without-triples" else "1/10"),
        )

    def engine(self, seed: int) -> Engine:
        """The engine that makes rows of the measurements."""
        if self.name == "DP-MERF":
            from sdv_privpgd.synthesize.generator import GeneratorNetwork

            return GeneratorNetwork(seed=seed)
        match self.name.removesuffix("-AllPairs"):
            case "DP-Diffusion":
                from sdv_privpgd.synthesize.diffusion import DiffusionNetwork

                return DiffusionNetwork(seed=seed)
            case "DP-CTGAN":
                from sdv_privpgd.synthesize.adversarial import AdversarialNetwork

                return AdversarialNetwork(seed=seed)
            case "PrivSyn":
                from sdv_privpgd.synthesize.gum import GUM

                return GUM(seed=seed)
            case "RAP":
                from sdv_privpgd.synthesize.rap import RelaxedProjection

                return RelaxedProjection(seed=seed)
            case "RAP++":
                from sdv_privpgd.synthesize.annealed import AnnealedProjection

                return AnnealedProjection(seed=seed)
            case "GEM":
                from sdv_privpgd.synthesize.gem import GenerativeNetwork

                return GenerativeNetwork(seed=seed)
            case "Private-GSD":
                from sdv_privpgd.synthesize.private_gsd import PrivateGSD

                return PrivateGSD(seed=seed)
        if not self.has_particles:
            from sdv_privpgd.synthesize.pgm import PrivatePGM

            return PrivatePGM()
        from sdv_privpgd import ParticleGradientDescent

        changes = {"seed": seed, **ABLATIONS.get(self.name, {})}
        if self.num_particles is not None:
            changes["num_particles"] = self.num_particles
        if not self._is_published:
            return ParticleGradientDescent(**changes)
        if self.published_epochs is not None:
            changes["epochs"] = self.published_epochs
        return ParticleGradientDescent.as_published(**changes)


def published_epsilon(epsilon: float, delta: float) -> float:
    """The epsilon that the paper's noise for ``epsilon`` spends, exactly.

    Its code calibrates through epsilon = rho + 2 sqrt(rho log(1/delta)) (Bun & Steinke 2016,
    Proposition 1.3), which asks for 1.24 to 1.48 times the noise that suffices at the paper's
    budgets. A Gaussian of rho-zCDP has mu^2 = 2 rho, whose epsilon is known exactly.

    >>> published_epsilon(1.0, 1e-5) < 1.0
    True
    """
    log = math.log(1 / delta)
    root = epsilon / (math.sqrt(log + epsilon) + math.sqrt(log))  # of rho, without cancelling
    return epsilon_of(2 * Fraction(root) ** 2, delta)
