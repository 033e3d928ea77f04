"""Adaptive measurements: each round measures the marginals that the model fits worst.

RAP's and GEM's selection, MWEM's and AIM's.
"""

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import ClassVar

import numpy as np

from sdv_privpgd.base.arguments import check_fields, check_integer
from sdv_privpgd.base.domain import Clique, Domain
from sdv_privpgd.base.progress import Progress, Shares, silent
from sdv_privpgd.estimate.noisy_tables import estimate_total
from sdv_privpgd.methods.k_way import Independent
from sdv_privpgd.methods.method import (
    EngineMethod,
    Importance,
    checked_workload,
    downward_closure,
    measure_tables,
    whole_weight,
)
from sdv_privpgd.methods.pipeline import SMALL_SHARE, noise_of
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import CountQuery, MarginalQuery, Measurement, ModelErrorQuery
from sdv_privpgd.synthesize.engine import RAP, Engine, Model


def whole_counts(counts: np.ndarray) -> np.ndarray:
    """The nearest int64 counts. Scores must be integers for a choice to be exact."""
    return np.rint(counts).astype(np.int64)


def model_errors(
    domain: Domain,
    model: Model | None,
    total: float,
    biases: Mapping[Clique, float],
    importance: Importance,
) -> list[ModelErrorQuery]:
    """The errors of a model on some cliques, each less its bias and times its weight, to choose by.

    No model is the uniform distribution. Biases and weights are rounded to whole numbers.
    """
    found = []
    for clique, bias in biases.items():
        even = np.full(domain.shape(clique), 1 / domain.size(clique))
        expected = whole_counts(total * (even if model is None else model.marginal(clique)))
        weight = whole_weight(clique, importance)
        query = ModelErrorQuery(clique=clique, expected=expected, bias=round(bias), weight=weight)
        found.append(query)
    return found


def expected_noise(
    ledger: PrivacyLedger, domain: Domain, clique: Clique, mu_squared: Fraction
) -> float:
    """The mean L1 norm of the noise that ``mu_squared`` buys for a clique's table.

    It is sqrt(2 / pi) sigma for each cell. A model with a smaller error gains nothing by measuring.
    """
    stddev = noise_of(ledger, [MarginalQuery(clique)], mu_squared)
    return math.sqrt(2 / math.pi) * stddev * domain.size(clique)


def count_rows(curator: Curator) -> list[Measurement]:
    """Measures the number of rows, if nothing that was measured tells it: adaptive choices need it.

    Where the number is private it takes a hundredth of what is left of the budget.
    """
    tells = (CountQuery, MarginalQuery)
    if any(isinstance(known.query, tells) for known in curator.measurements):
        return []
    share = curator.ledger.remaining * SMALL_SHARE
    return curator.measure([CountQuery()], share, what="number of rows")


def measured_cliques(measurements: Iterable[Measurement]) -> list[Clique]:
    """The cliques whose tables were measured, by the strategy or before it began."""
    asked = (measurement.query for measurement in measurements)
    return [query.clique for query in asked if isinstance(query, MarginalQuery)]


def affordable(
    engine: Engine,
    domain: Domain,
    measured: Iterable[Clique],
    candidates: Sequence[Clique],
    megabytes: float,
) -> list[Clique]:
    """The candidates with which a model of the measured cliques stays within ``megabytes``.

    A candidate inside a measured clique always qualifies. If no other does either, the candidate
    that makes the smallest model is returned.
    """
    measured = tuple(dict.fromkeys(measured))
    sizes = dict.fromkeys(candidates, 0.0)
    for clique in candidates:
        if not any(set(clique) <= set(known) for known in measured):
            sizes[clique] = engine.megabytes(domain, [*measured, clique])
    limit = max(megabytes, min(sizes.values()))
    return [clique for clique, size in sizes.items() if size <= limit]


SELECTING = Fraction(1, 10)
"""Share of a round's mu^2 that pays for the choices. On Adult at epsilon 1 with ``PrivateGSD`` the
L1 error of pairs is 0.085 with a half, 0.081 with a quarter and 0.074 with a tenth."""


@dataclass(frozen=True, kw_only=True)
class _ByRounds(EngineMethod):
    """Rounds of equal budgets: some cliques are chosen, one after another, and then measured."""

    workload: tuple[Clique, ...] | None = None
    rounds: int | None = None
    max_megabytes: float = 80.0
    importance: Importance = field(default_factory=dict)

    marginals = 1
    repeats_cliques: ClassVar[bool] = True
    """Whether a clique that was measured may be chosen again."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, check_integer, "rounds")

    @abstractmethod
    def bias(self, curator: Curator, clique: Clique, mu_squared: Fraction) -> float:
        """What is taken off the error of a clique that is to be measured with so much."""

    def num_fits(self, domain: Domain) -> int:
        """Returns how often the engine is fitted, which is the number of rounds."""
        number = len(checked_workload(domain, self.workload))
        return min(self.rounds or len(domain), math.ceil(number / self.marginals))

    def _left(self, workload: Sequence[Clique], chosen: Sequence[Clique]) -> list[Clique]:
        return [clique for clique in workload if self.repeats_cliques or clique not in chosen]

    def measure(self, curator: Curator, *, progress: Progress = silent) -> list[Measurement]:
        """Returns the measurements of all rounds, bought with all that is left of the budget."""
        domain = curator.domain
        if len(domain) < 2:
            return Independent().measure(curator, progress=progress)
        workload, rounds = checked_workload(domain, self.workload), self.num_fits(domain)
        measured = count_rows(curator)
        cliques = measured_cliques(self.modelled(domain, curator.measurements))
        every: list[Clique] = []
        model = None
        for index in progress(range(rounds), "select"):
            if cliques:
                model = self.fit(domain, curator.measurements, warm_start=model)
            left = curator.ledger.remaining
            step = left / (rounds - index)
            total = estimate_total(domain, curator.measurements).value
            number = min(self.marginals, len(self._left(workload, every)))
            each = (1 - SELECTING) * step / number
            megabytes = self.max_megabytes * (index + 1) / rounds
            chosen: list[Clique] = []
            for _ in range(number):
                unmeasured = self._left(workload, every)
                near = affordable(self, domain, [*cliques, *chosen], unmeasured, megabytes)
                biases = {clique: self.bias(curator, clique, each) for clique in near}
                scores = model_errors(domain, model, total, biases, self.importance)
                best = curator.select(scores, SELECTING * step / number, what="worst fitted clique")
                chosen.append(near[best])
                every.append(near[best])
            if index == rounds - 1:  # no column is left to be made up
                known = {name for clique in (*cliques, *chosen) for name in clique}
                chosen += [(name,) for name in domain.attributes if name not in known]
            # The tables get all that the choices left of the round; a free choice leaves all.
            share = curator.ledger.remaining - (left - step)
            what = "worst fitted marginals"
            measured += measure_tables(curator, chosen, what, share, are_chosen=True)
            cliques += chosen
        return measured


@dataclass(frozen=True, kw_only=True)
class Adaptive(_ByRounds):
    """Measures the worst fitted cliques of each round together, with equal budgets a round.

    The selection of RAP (Aydore et al. 2021, Algorithm 1: T rounds of K queries) and of GEM (Liu,
    Vietri & Wu 2021, Algorithm 1: one marginal a round). Between rounds the engine fits its model
    to all that was measured so far. Ours differs in five ways:

    - What is chosen is a whole marginal, as in GEM, not one cell, and none is chosen twice.
    - A candidate's score is its L1 error less that of the noise of measuring it, as in AIM, where
      GEM takes the largest error of a cell. L1 errors are larger and change by as little.
    - The K marginals of a round are chosen one after another by the exponential mechanism.
    - A tenth of a round's budget pays for its choices, as in AIM, and not half: scores of whole
      marginals are clear.
    - Budgets are in mu^2; the last round takes exactly what is left. It measures columns that have
      no table yet, too, each alone.

    When to use it: to compare RAP and GEM with others, each with its engine.

    Attributes:
        workload: The cliques to choose from; ``None`` means all pairs.
        rounds: The number of rounds T; ``None`` means one an attribute. The published codes tune it
            by the private table.
        marginals: The number of marginals of a round K. There are fewer rounds where the cliques
            run out.
        max_megabytes: The largest model, by ``engine.megabytes``. Round t of T may use t / T of it.
        importance: How many times as much as others the cliques with an attribute count, rounded
            to a whole number.
    """

    engine: Engine | str = "rap"
    marginals: int = 3

    repeats_cliques = False
    citation = RAP

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, check_integer, "marginals")

    def cliques(self, domain: Domain) -> Sequence[Clique]:
        rounds = self.rounds or len(domain)
        return domain.cliques(min(2, len(domain)))[: rounds * self.marginals]

    def counted(self, measurements: Sequence[Measurement]) -> str:
        del measurements
        return f"contingency tables that were chosen privately, {self.marginals:,} a round"

    def bias(self, curator: Curator, clique: Clique, mu_squared: Fraction) -> float:
        return expected_noise(curator.ledger, curator.domain, clique, mu_squared)


@dataclass(frozen=True, kw_only=True)
class MWEM(_ByRounds):
    """Starts from the uniform distribution and measures the worst fitted clique of each round.

    Hardt, Ligett & McSherry 2012, as MWEM+PGM (McKenna, Sheldon & Miklau 2019). A tenth of each
    round pays for the choice, and a candidate's score is the L1 error of the model minus its number
    of cells. Ours differs in four ways: budgets are in mu^2; the last round takes exactly what is
    left; it measures columns that have no table yet, too, each alone; and the number of records,
    which the published code takes from the table, is measured where it is private.

    When to use it: to compare with it, or where few pairs matter and you name them as the workload.
    Fits of 21,688 to 274,391 rows take 1 to 7 seconds at epsilon 1 on one core. The L1 error of
    pairs on Adult at epsilon 1 is 0.096, that of ``PrivPGD`` with particles 0.044.

    The settings are those of ``Adaptive``, but for ``marginals``.

    Attributes:
        rounds: The number of rounds, at most the number of cliques; ``None`` means one an
            attribute. More rounds measure more cliques with more noise each.
    """

    engine: Engine | str = "pgm"

    asks_pairs = True
    counts = "contingency tables that were chosen privately, one after another"
    citation = (
        "Hardt, M., Ligett, K. & McSherry, F. (2012). A simple and practical algorithm for "
        "differentially private data release. NeurIPS 25."
    )

    def bias(self, curator: Curator, clique: Clique, mu_squared: Fraction) -> float:
        del mu_squared
        return curator.domain.size(clique)


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
        workload: The cliques to be accurate on; ``None`` means all pairs. Columns of none of them
            are measured alone.
        rounds_per_attribute: There are at most this many rounds for each attribute, and the first
            rounds get equal shares of the budget by this number. 16 is the paper's.
        max_megabytes: The largest model, by ``engine.megabytes``. A round may use the same part of
            it as was spent of the budget by the round's end. The benchmarks ran with 8; a round's
            time grows with it.
        importance: How many times as much as others the cliques with an attribute count, rounded
            to a whole number.
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
        check_fields(self, check_integer, "rounds_per_attribute")

    def measure(self, curator: Curator, *, progress: Progress = silent) -> list[Measurement]:
        """Measures the 1-way marginals, then one a round, with all that is left of the budget."""
        # A round's mu^2 grows by this factor when a measurement told nothing: its noise halves.
        annealing = 4
        # Share of a round's mu^2 for the measurement; the rest pays for the choice.
        measuring = Fraction(9, 10)
        domain, budget = curator.domain, curator.ledger.remaining
        if len(domain) < 2:
            return Independent().measure(curator, progress=progress)
        weights = downward_closure(checked_workload(domain, self.workload))
        rounds = self.rounds_per_attribute * len(domain)
        step = budget / rounds
        one_way = domain.cliques(1)
        share = len(one_way) * measuring * step if len(weights) > 1 else None
        measured = measure_tables(curator, one_way, "1-way marginals", share, progress)
        if len(weights) == 1:
            return measured
        cliques = measured_cliques(self.modelled(domain, curator.measurements))
        model = self.fit(domain, curator.measurements)
        # Each round takes at least 1 / rounds of the budget, so the loop always reaches its last
        # round: the 1-way marginals stay candidates, so no choice has one option, which is free.
        shares = Shares(progress, "select")
        for _ in range(rounds):
            left = curator.ledger.remaining
            is_last = left < 2 * step
            step = left if is_last else step
            spent = float(1 - (left - step) / budget)
            candidates = affordable(
                self, domain, cliques, tuple(weights), self.max_megabytes * spent
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
            share = measuring * step
            measured += measure_tables(
                curator, [chosen], "worst fitted marginal", share, are_chosen=True
            )
            cliques.append(chosen)
            if is_last:
                break
            shares.reach(float(1 - curator.ledger.remaining / budget))
            before = model.marginal(chosen)
            model = self.fit(domain, curator.measurements, warm_start=model)
            if total * np.abs(model.marginal(chosen) - before).sum() <= noise[chosen]:
                step *= annealing
        shares.reach(1.0)
        return measured


METHODS = {"rap": Adaptive, "gem": partial(Adaptive, engine="gem"), "mwem": MWEM, "aim": AIM}
