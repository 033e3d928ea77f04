"""Private-GSD: rows evolve, one code at a time, until their tables are the noisy ones."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from sdv_privpgd.base.arguments import check_fields, check_integer, check_share
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.base.progress import Progress, Shares, silent
from sdv_privpgd.estimate.consistency import Possible
from sdv_privpgd.privacy.queries import Measurement
from sdv_privpgd.synthesize.engine import Engine, Model
from sdv_privpgd.synthesize.generations import Asked, PackedGoals, evolve, evolve_by_recounts
from sdv_privpgd.synthesize.goals import Goals
from sdv_privpgd.synthesize.particles.particles import Particles


@dataclass(frozen=True, kw_only=True)
class PrivateGSD(Engine):
    """Lets rows evolve by mutation and crossover to match the measured tables.

    Liu, Tang, Vietri & Wu 2023 (Private-GSD), Algorithm 1: each generation makes children of the
    best table of rows, each with one code changed, and keeps the best of them and of the elite. No
    gradient is needed, so any measured query with integer answers is matched, if need be by asking
    it anew of each child. Of a table, only the cells that a changed code leaves and enters are
    counted. It sees noisy answers only, so all it does is post-processing. Ours differs in two
    ways: an error counts by the noise of its table, and answers are not cut at 0 and 1 before.

    All pairs of Adult take about 2 seconds of one core. The loops are compiled at the first fit on
    a machine, which takes some 10 seconds more.

    Attributes:
        num_rows: Rows that evolve. More of them follow the tables more finely, and need more
            generations.
        generations: The largest number of generations.
        mutations: Children of a generation with any code of the attribute.
        crossovers: Children of a generation with the code of another row of the elite.
        elite: Tables of rows that live on.
        tolerance: The evolution ends when ``num_rows`` generations lower the loss by less than this
            share of itself.
        recounts: Generations for measured queries that are no tables. Whatever they are, they are
            asked anew of each of their 20 children.
        possible: For some cliques, the cells that can hold rows at all; the others are wanted
            empty.
        seed: The seed of all random choices here. No private noise depends on it.

    >>> import numpy as np
    >>> from sdv_privpgd.base.domain import Domain
    >>> from sdv_privpgd.privacy.queries import Measurement
    >>> from sdv_privpgd.privacy.queries import MarginalQuery
    >>> noisy = Measurement(
    ...     query=MarginalQuery(("a", "b")), answer=np.array([[41, -1], [2, 58]]), stddev=2.0
    ... )
    >>> model = PrivateGSD(num_rows=100).fit(Domain(("a", "b"), (2, 2)), [noisy])
    >>> model.marginal(("a", "b")).round(1).tolist()
    [[0.4, 0.0], [0.0, 0.6]]
    >>> model.sample(3, seed=0).shape
    (3, 2)
    """

    num_rows: int = 2_000
    generations: int = 200_000
    mutations: int = 50
    crossovers: int = 50
    elite: int = 2
    tolerance: float = 1e-3
    possible: Possible = field(default_factory=dict, compare=False)
    recounts: int = 1_000
    seed: int = 0

    title = "The rows were fitted to the noisy counts by a genetic algorithm"
    citation = (
        "Liu, T., Tang, J., Vietri, G. & Wu, Z. S. (2023). Generating private synthetic data with "
        "genetic algorithms. ICML, PMLR 202, 22009–22027."
    )
    quick = {"num_rows": 50, "generations": 50}  # noqa: RUF012

    def __post_init__(self) -> None:
        check_fields(self, check_integer, "num_rows", "generations", "mutations", "elite")
        check_fields(self, check_integer, "crossovers", "recounts", least=0)
        check_fields(self, check_share, "tolerance")

    def fit(
        self,
        domain: Domain,
        measurements: Sequence[Measurement],
        *,
        warm_start: Model | None = None,
        progress: Progress = silent,
    ) -> Particles:
        """The best table of rows, all equally likely.

        ``warm_start`` is a model from which the first elite is drawn; without one it is uniform.
        """
        recounted = 20  # children of a generation of which queries that are no tables are asked
        rng = np.random.default_rng(self.seed)
        goals = PackedGoals.of(Goals.of(domain, measurements, self.possible), self.num_rows)
        shape = (self.elite, self.num_rows, len(domain))
        if warm_start is None:
            elite = rng.integers(0, domain.sizes, shape)
        else:
            seeds = rng.integers(2**32, size=self.elite).tolist()
            elite = np.stack([warm_start.sample(self.num_rows, seed) for seed in seeds])
        elite = np.ascontiguousarray(elite, dtype=np.int64)
        shares = Shares(progress, "fit")
        if len(goals.first) and len(domain):
            losses = np.array([goals.loss(goals.errors(codes)) for codes in elite])
            best = int(losses.argmin())
            errors = goals.errors(elite[best])
            state = rng.integers(2**64, size=1, dtype=np.uint64)
            sizes = np.array(domain.sizes, dtype=np.int64)
            left = self.generations
            while left:
                lot, before = min(self.num_rows, left), losses[best]
                best = evolve(
                    elite,
                    losses,
                    best,
                    errors,
                    sizes,
                    goals,
                    lot,
                    self.mutations,
                    self.crossovers,
                    state,
                )
                left -= lot
                if before - losses[best] <= self.tolerance * before:
                    break
                shares.reach(1 - left / self.generations)
            elite = elite[[best]]
        asked = Asked.of(domain, measurements)
        if asked.measurements:
            evolve_by_recounts(
                elite[0], goals, asked, rng,
                generations=self.recounts, children=recounted, shares=shares,
            )  # fmt: skip
        shares.reach(1.0)
        return Particles(domain=domain, codes=elite[0])
