"""The marginals of a workload that a model gets most wrong, one a round, with equal budgets."""

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from sdv_privpgd.domain import Clique
from sdv_privpgd.estimate.noisy_tables import estimate_total
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.privacy.queries import CountQuery, MarginalQuery, ModelErrorQuery
from sdv_privpgd.progress import Progress, silent
from sdv_privpgd.select.approximation import affordable, measured_cliques, whole_counts
from sdv_privpgd.select.importance import Importance, checked_importance, whole_weight
from sdv_privpgd.select.independent import Independent
from sdv_privpgd.select.workload import checked_workload
from sdv_privpgd.synthesize.engine import Engine

_SELECTING = Fraction(1, 10)
"""Share of a round's mu^2 for the choice."""

_COUNT_SHARE = Fraction(1, 100)
"""Share of mu^2 for the number of records where nothing that was measured tells it."""


@dataclass(frozen=True, kw_only=True)
class MWEM:
    """Starts from the uniform distribution and measures the worst fitted clique of each round.

    Hardt, Ligett & McSherry 2012, as MWEM+PGM (McKenna, Sheldon & Miklau 2019): a tenth
    of each round is for the choice, and a candidate's score is the L1 error of the model
    minus its number of cells. Where ours differs: budgets are mu^2, the last round takes exactly
    what is left, and the number of records, which the published code takes from the table, is
    a measurement where it is private.

    Attributes:
        workload: The cliques to choose from; all pairs if it is ``None``.
        rounds: How many; as many as attributes if it is ``None``, and never more than cliques.
        max_megabytes: The largest model, by ``engine.megabytes``; round t of T may use t / T of it.
        importance: How many times as much as others the cliques with an attribute count, rounded
            to a whole number.
    """

    workload: tuple[Clique, ...] | None = None
    rounds: int | None = None
    max_megabytes: float = 80.0
    importance: Importance = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "importance", checked_importance(self.importance))
        if self.rounds is not None and self.rounds < 1:
            raise ValueError(f"rounds must be at least 1, got {self.rounds!r}.")

    def run(
        self, curator: Curator, engine: Engine, *, progress: Progress = silent
    ) -> list[Measurement]:
        """One measurement a round, bought with all that is left of the budget."""
        domain = curator.domain
        if len(domain) < 2:
            return Independent().run(curator, engine, progress=progress)
        workload = checked_workload(domain, self.workload)
        rounds = min(len(workload), self.rounds or len(domain))
        measured: list[Measurement] = []
        tells = (CountQuery, MarginalQuery)
        if not any(isinstance(known.query, tells) for known in curator.measurements):
            share = curator.ledger.remaining * _COUNT_SHARE
            measured += curator.measure([CountQuery()], share, what="number of rows")
        cliques = measured_cliques(curator.measurements)
        model = None
        for index in progress(range(rounds), "select"):
            if cliques:
                model = engine.fit(domain, curator.measurements, warm_start=model)
            left = curator.ledger.remaining
            step = left / (rounds - index)
            candidates = affordable(
                engine, domain, cliques, workload, self.max_megabytes * (index + 1) / rounds
            )
            total = estimate_total(domain, curator.measurements).value
            scores = []
            for clique in candidates:
                uniform = np.full(domain.shape(clique), 1 / domain.size(clique))
                marginal = uniform if model is None else model.marginal(clique)
                scores.append(
                    ModelErrorQuery(
                        clique=clique,
                        expected=whole_counts(total * marginal),
                        bias=domain.size(clique),
                        weight=whole_weight(clique, self.importance),
                    )
                )
            chosen = candidates[
                curator.select(scores, _SELECTING * step, what="worst fitted clique")
            ]
            # All that the choice left of the round, also where it was free.
            measured += curator.measure(
                [MarginalQuery(chosen)],
                curator.ledger.remaining - (left - step),
                what=MarginalQuery(chosen).describe(),
            )
            cliques.append(chosen)
        return measured
