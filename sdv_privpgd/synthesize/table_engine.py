"""What RAP's and GEM's engines have in common: they move a mixture of products."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sdv_privpgd.base.arguments import check_fields, check_integer, check_positive, check_share
from sdv_privpgd.base.domain import Clique, Domain
from sdv_privpgd.estimate.structural_zeros import Possible
from sdv_privpgd.synthesize.engine import Engine
from sdv_privpgd.synthesize.goals import too_many_components


@dataclass(frozen=True, kw_only=True)
class MixtureEngine(Engine):
    """The settings of engines that move a mixture of products by Adam: RAP's and GEM's.

    Attributes:
        num_components: Products of one distribution for each attribute.
        steps: The largest number of steps.
        learning_rate: Adam's.
        tolerance: The learning rate is halved when 25 steps lower the loss by less than this share
            of itself; after the third time the fit ends.
        possible: For some cliques, the cells that can hold rows at all; the others are wanted
            empty.
        seed: The seed of the start. No private noise depends on it.
        enable_gpu: Whether to use CUDA where there is a device.
    """

    num_components: int = 1_000
    steps: int = 1_000
    learning_rate: float = 0.1
    tolerance: float = 1e-2
    possible: Possible = field(default_factory=dict, compare=False)
    seed: int = 0
    enable_gpu: bool = False

    def __post_init__(self) -> None:
        check_fields(self, check_integer, "num_components", "steps")
        check_fields(self, check_positive, "learning_rate")
        check_fields(self, check_share, "tolerance")

    def refusal(self, domain: Domain, cliques: Sequence[Clique]) -> str | None:
        """Why the mixture cannot be held, ``None`` where it can. Any cliques can be fitted."""
        del cliques
        return too_many_components(domain, self.num_components)
