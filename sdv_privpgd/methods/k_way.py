"""All marginals of one degree, measured once and together."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from sdv_privpgd.base.domain import Clique, Domain
from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.methods.method import EngineMethod, measure_tables
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.queries import Measurement
from sdv_privpgd.synthesize.engine import Engine


@dataclass(frozen=True, kw_only=True)
class AllKWay(EngineMethod):
    """Measures every clique of ``degree`` attributes, in one joint Gaussian release of equal noise.

    Donhauser et al. 2024, Algorithm 1 and section 4.1 (degree 2). A domain with fewer attributes
    than ``degree`` is measured whole.

    When to use it: to reproduce the paper, or where every table must have the same noise. Otherwise
    ``PrivPGD`` is the better choice.

    Attributes:
        degree: 1, 2 or 3. Tables and their noise grow steeply with it: 14 attributes of 32 codes
            are 14 tables of 32 cells, 91 of 1,024 or 364 of 32,768.
    """

    engine: Engine | str = "particles"
    degree: int = 2

    chooses = False

    @property
    def is_quick(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.degree < 3

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.degree not in (1, 2, 3):
            raise ValueError(f"degree must be 1, 2 or 3, got {self.degree!r}.")

    def cliques(self, domain: Domain) -> Sequence[Clique]:
        return domain.cliques(min(self.degree, len(domain)))

    def counted(self, measurements: Sequence[Measurement]) -> str:
        del measurements
        return f"the contingency tables of all sets of {self.degree} columns"

    def measure(self, curator: Curator, *, progress: Progress = silent) -> list[Measurement]:
        """Returns one measurement a clique, bought with all that is left of the budget."""
        what = f"all {min(self.degree, len(curator.domain))}-way marginals"
        return measure_tables(curator, self.cliques(curator.domain), what, progress=progress)


@dataclass(frozen=True, kw_only=True)
class Independent(EngineMethod):
    """Measures all 1-way marginals, in one joint Gaussian release that takes the whole budget.

    When to use it: as the baseline that shows what dependencies add, or when only the columns one
    by one matter. It is the fastest: 274,391 rows of 11 columns take 0.3 seconds on one core.
    The rows know nothing of dependencies: the L1 error of pairs on Adult at epsilon 1 is 0.178,
    that of ``PrivPGD`` with particles 0.044.
    """

    chooses = False
    is_quick = True
    counts = "the frequencies of each column alone"

    def measure(self, curator: Curator, *, progress: Progress = silent) -> list[Measurement]:
        """Returns one measurement an attribute, bought with all that is left of the budget."""
        return AllKWay(degree=1).measure(curator, progress=progress)


METHODS = {"independent": Independent, "private_gsd": partial(AllKWay, engine="private_gsd")}
