"""The marginals of a workload that a model gets most wrong, one a round, with growing budgets."""

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from sdv_privpgd.domain import Clique
from sdv_privpgd.estimate.noisy_tables import estimate_total
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.privacy.queries import MarginalQuery, ModelErrorQuery
from sdv_privpgd.progress import Progress, Shares, silent
from sdv_privpgd.select.approximation import (
    affordable,
    expected_noise,
    measured_cliques,
    whole_counts,
)
from sdv_privpgd.select.importance import Importance, checked_importance, whole_weight
from sdv_privpgd.select.independent import Independent
from sdv_privpgd.select.workload import checked_workload, downward_closure
from sdv_privpgd.synthesize.engine import Engine

_MEASURING = Fraction(9, 10)
"""Share of a round's mu^2 for the measurement; the rest is for the choice."""

_ANNEALING = 4
"""Growth of a round's mu^2 when a measurement told nothing: half the noise, twice the epsilon."""


@dataclass(frozen=True, kw_only=True)
class AIM:
    """1-way marginals, then in each round the clique that matters most and is fitted worst.

    McKenna, Mullins, Sheldon & Miklau 2022 (AIM). A candidate's score is its
    weight in the workload times (L1 error of the model - L1 norm of the noise of measuring it).
    Where ours differs:

    - Budgets are mu^2, and a round that anneals has 4 times as much. The last round takes exactly
      what is left.
    - Both kinds of neighbors are possible: under replace-one a score's sensitivity is twice as
      large, and the number of records is known.
    - Expected counts and noise are rounded to whole numbers, for which a choice is exact.

    Attributes:
        workload: The cliques to be accurate on; all pairs if it is ``None``.
        rounds_per_attribute: The largest number of rounds, and the share of the first ones.
        max_megabytes: The largest model, by ``engine.megabytes``. A round may use as much of it
            as was spent of the budget by its end.
        importance: How many times as much as others the cliques with an attribute count, rounded
            to a whole number.
    """

    workload: tuple[Clique, ...] | None = None
    rounds_per_attribute: int = 16
    max_megabytes: float = 80.0
    importance: Importance = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "importance", checked_importance(self.importance))
        if self.rounds_per_attribute < 1:
            raise ValueError(
                f"rounds_per_attribute must be at least 1, got {self.rounds_per_attribute!r}."
            )

    def run(
        self, curator: Curator, engine: Engine, *, progress: Progress = silent
    ) -> list[Measurement]:
        """The 1-way measurements and one a round, bought with all that is left of the budget."""
        domain, budget = curator.domain, curator.ledger.remaining
        if len(domain) < 2:
            return Independent().run(curator, engine, progress=progress)
        weights = downward_closure(checked_workload(domain, self.workload))
        rounds = self.rounds_per_attribute * len(domain)
        step = budget / rounds
        one_way = [MarginalQuery(clique) for clique in weights if len(clique) == 1]
        measured = curator.measure(
            one_way,
            len(one_way) * _MEASURING * step if len(weights) > 1 else budget,
            what="1-way marginals",
            progress=progress,
        )
        if len(weights) == 1:
            return measured
        cliques = measured_cliques(curator.measurements)
        model = engine.fit(domain, curator.measurements)
        # Each round takes at least 1 / rounds of the budget, so the last one comes in time: the
        # columns, already measured, are always candidates, so that no choice is single and free.
        shares = Shares(progress, "select")
        for _ in range(rounds):
            left = curator.ledger.remaining
            is_last = left < 2 * step
            step = left if is_last else step
            spent = float(1 - (left - step) / budget)
            candidates = affordable(
                engine, domain, cliques, tuple(weights), self.max_megabytes * spent
            )
            total = estimate_total(domain, curator.measurements).value
            noise = {
                clique: expected_noise(curator.ledger, domain, clique, _MEASURING * step)
                for clique in candidates
            }
            scores = [
                ModelErrorQuery(
                    clique=clique,
                    expected=whole_counts(total * model.marginal(clique)),
                    bias=round(noise[clique]),
                    weight=weights[clique] * whole_weight(clique, self.importance),
                )
                for clique in candidates
            ]
            chosen = candidates[
                curator.select(scores, (1 - _MEASURING) * step, what="worst fitted clique")
            ]
            measured += curator.measure(
                [MarginalQuery(chosen)],
                _MEASURING * step,
                what=MarginalQuery(chosen).describe(),
            )
            cliques.append(chosen)
            if is_last:
                break
            shares.reach(float(1 - curator.ledger.remaining / budget))
            before = model.marginal(chosen)
            model = engine.fit(domain, curator.measurements, warm_start=model)
            if total * np.abs(model.marginal(chosen) - before).sum() <= noise[chosen]:
                step *= _ANNEALING
        shares.reach(1.0)
        return measured
