"""AIM: each round measures the marginal that the model fits worst, with budgets that grow."""

from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from sdv_privpgd.base.domain import Clique
from sdv_privpgd.base.progress import Progress, Shares, silent
from sdv_privpgd.estimate.noisy_tables import estimate_total
from sdv_privpgd.methods.adaptive import affordable, expected_noise, measured_cliques, model_errors
from sdv_privpgd.methods.fixed import Independent
from sdv_privpgd.methods.method import EngineMethod
from sdv_privpgd.methods.workload import Importance, checked_workload, downward_closure
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.queries import MarginalQuery, Measurement
from sdv_privpgd.synthesize.engine import Engine


@dataclass(frozen=True, kw_only=True)
class AIM(EngineMethod):
    """1-way marginals, then in each round the clique that matters most and is fitted worst.

    McKenna, Mullins, Sheldon & Miklau 2022 (AIM). A candidate's score is its weight in the workload
    times (L1 error of the model - L1 norm of the noise of measuring it). Ours differs in three
    ways:

    - Budgets are in mu^2, and a round that anneals has 4 times as much. The last round takes
      exactly what is left.
    - Both kinds of neighbors are possible: under replace-one a score's sensitivity is twice as
      large, and the number of records is known.
    - Expected counts and noise are rounded to whole numbers, because a choice among integer scores
      is exact.

    When to use it: at a small epsilon on many columns, when the synthetic rows are to train a
    classifier. On flights at epsilon 0.2 its downstream error is 0.28, where ``PrivPGD`` with
    particles has 0.39. Elsewhere it is slower and mostly less accurate: fits of 21,688 to 274,391
    rows take 1 to 110 seconds at epsilon 1 with ``max_megabytes=8`` on one core
    (``benchmark show``).

    Attributes:
        workload: The cliques to be accurate on; ``None`` means all pairs.
        rounds_per_attribute: There are at most this many rounds for each attribute, and the first
            rounds get equal shares of the budget by this number. 16 is the paper's.
        max_megabytes: The largest model, by ``engine.megabytes``. A round may use the same part of
            it as was spent of the budget by the round's end. The benchmarks ran with 8; a round's
            time grows with it.
        importance: How many times as much as others the cliques with an attribute count, rounded
            to a whole number.

    >>> import pandas as pd
    >>> from sdv_privpgd import Boolean, fit_table
    >>> from sdv_privpgd.methods import PrivatePGM
    >>> table = pd.DataFrame({"smokes": [True, False] * 500, "coughs": [True, False] * 500})
    >>> columns = {"smokes": Boolean(), "coughs": Boolean()}
    >>> method = AIM(max_megabytes=8)
    >>> fitted = fit_table(table, columns, epsilon=1.0, method=method)
    >>> [charge.what for charge in fitted.ledger.charges][2:5]
    ['number of rows', '1-way marginals', 'worst fitted clique']
    """

    engine: Engine | str = "pgm"
    workload: tuple[Clique, ...] | None = None
    rounds_per_attribute: int = 16
    max_megabytes: float = 80.0
    importance: Importance = field(default_factory=dict)

    asks_pairs = True
    counts = "contingency tables that were chosen privately, one after another"
    citation = (
        "McKenna, R., Mullins, B., Sheldon, D. & Miklau, G. (2022). AIM: an adaptive and iterative "
        "mechanism for differentially private synthetic data. PVLDB 15(11), 2599–2612."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rounds_per_attribute < 1:
            raise ValueError(
                f"rounds_per_attribute must be at least 1, got {self.rounds_per_attribute!r}."
            )

    def run(
        self, curator: Curator, engine: Engine, *, progress: Progress = silent
    ) -> list[Measurement]:
        """Measures the 1-way marginals, then one a round, with all that is left of the budget."""
        # A round's mu^2 grows by this factor when a measurement told nothing: its noise halves.
        annealing = 4
        # Share of a round's mu^2 for the measurement; the rest pays for the choice.
        measuring = Fraction(9, 10)
        domain, budget = curator.domain, curator.ledger.remaining
        if len(domain) < 2:
            return Independent().run(curator, engine, progress=progress)
        weights = downward_closure(checked_workload(domain, self.workload))
        rounds = self.rounds_per_attribute * len(domain)
        step = budget / rounds
        one_way = [MarginalQuery(clique) for clique in weights if len(clique) == 1]
        measured = curator.measure(
            one_way,
            len(one_way) * measuring * step if len(weights) > 1 else budget,
            what="1-way marginals",
            progress=progress,
        )
        if len(weights) == 1:
            return measured
        cliques = measured_cliques(curator.measurements)
        model = engine.fit(domain, curator.measurements)
        # Each round takes at least 1 / rounds of the budget, so the loop always reaches its last
        # round: the 1-way marginals stay candidates, so no choice has one option, which is free.
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
                clique: expected_noise(curator.ledger, domain, clique, measuring * step)
                for clique in candidates
            }
            scores = [
                replace(score, weight=weights[score.clique] * score.weight)
                for score in model_errors(domain, model, total, noise, self.importance)
            ]
            chosen = candidates[
                curator.select(scores, (1 - measuring) * step, what="worst fitted clique")
            ]
            measured += curator.measure(
                [MarginalQuery(chosen)], measuring * step, what=MarginalQuery(chosen).describe()
            )
            cliques.append(chosen)
            if is_last:
                break
            shares.reach(float(1 - curator.ledger.remaining / budget))
            before = model.marginal(chosen)
            model = engine.fit(domain, curator.measurements, warm_start=model)
            if total * np.abs(model.marginal(chosen) - before).sum() <= noise[chosen]:
                step *= annealing
        shares.reach(1.0)
        return measured


METHODS = {"aim": AIM}
