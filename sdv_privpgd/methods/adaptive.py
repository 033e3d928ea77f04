"""Adaptive measurements: each round measures the marginals that the model fits worst."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial

import numpy as np

from sdv_privpgd.base.domain import Clique, Domain
from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.estimate.noisy_tables import estimate_total
from sdv_privpgd.methods.fixed import Independent
from sdv_privpgd.methods.method import EngineMethod
from sdv_privpgd.methods.pipeline import COUNT_SHARE
from sdv_privpgd.methods.workload import Importance, checked_workload, whole_weight
from sdv_privpgd.privacy.accounting import stddev_for
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import CountQuery, MarginalQuery, Measurement, ModelErrorQuery
from sdv_privpgd.synthesize.engine import Engine, Model


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
    return [
        ModelErrorQuery(
            clique=clique,
            expected=whole_counts(
                total
                * (
                    np.full(domain.shape(clique), 1 / domain.size(clique))
                    if model is None
                    else model.marginal(clique)
                )
            ),
            bias=round(bias),
            weight=whole_weight(clique, importance),
        )
        for clique, bias in biases.items()
    ]


def expected_noise(
    ledger: PrivacyLedger, domain: Domain, clique: Clique, mu_squared: Fraction
) -> float:
    """The mean L1 norm of the noise that ``mu_squared`` buys for a clique's table.

    It is sqrt(2 / pi) sigma for each cell. A model with a smaller error gains nothing by measuring.
    """
    squared = MarginalQuery(clique).l2_sensitivity_squared(ledger.adjacency)
    stddev = stddev_for(ledger.rows_counted**2 * squared, mu_squared)
    return math.sqrt(2 / math.pi) * stddev * domain.size(clique)


def count_rows(curator: Curator) -> list[Measurement]:
    """Measures the number of rows, if nothing that was measured tells it: adaptive choices need it.

    Where the number is private it takes a hundredth of what is left of the budget.
    """
    tells = (CountQuery, MarginalQuery)
    if any(isinstance(known.query, tells) for known in curator.measurements):
        return []
    share = curator.ledger.remaining * COUNT_SHARE
    return curator.measure([CountQuery()], share, what="number of rows")


def measured_cliques(measurements: Iterable[Measurement]) -> list[Clique]:
    """The cliques whose tables were measured, by the strategy or before it began."""
    asked = (measurement.query for measurement in measurements)
    return [query.clique for query in asked if isinstance(query, MarginalQuery)]


def modelled_together(engine: Engine, domain: Domain, cliques: Sequence[Clique]) -> list[Clique]:
    """The cliques, in order, without those that the engine could not model beside those before."""
    if engine.refusal(domain, cliques) is None:
        return list(cliques)
    found: list[Clique] = []
    for clique in cliques:
        if engine.refusal(domain, [*found, clique]) is None:
            found.append(clique)
    return found


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
    sizes = {
        clique: 0.0
        if any(set(clique) <= set(known) for known in measured)
        else engine.megabytes(domain, [*measured, clique])
        for clique in candidates
    }
    limit = max(megabytes, min(sizes.values()))
    return [clique for clique, size in sizes.items() if size <= limit]


_SELECTING = Fraction(1, 10)
"""Share of a round's mu^2 that pays for the choices. On Adult at epsilon 1 with ``PrivateGSD`` the
L1 error of pairs is 0.085 with a half, 0.081 with a quarter and 0.074 with a tenth."""


@dataclass(frozen=True, kw_only=True)
class Adaptive(EngineMethod):
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
    - Budgets are in mu^2; the last round takes exactly what is left.

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

    >>> import pandas as pd
    >>> from sdv_privpgd import Boolean, fit_table
    >>> from sdv_privpgd.methods import PrivatePGM
    >>> table = pd.DataFrame({"smokes": [True, False] * 500, "coughs": [True, False] * 500})
    >>> columns = {"smokes": Boolean(), "coughs": Boolean()}
    >>> fitted = fit_table(table, columns, epsilon=1.0, method=Adaptive(engine="pgm"))
    >>> [charge.what for charge in fitted.ledger.charges][2:]
    ['number of rows', 'worst fitted marginals']
    """

    engine: Engine | str = "rap"
    workload: tuple[Clique, ...] | None = None
    rounds: int | None = None
    marginals: int = 3
    max_megabytes: float = 80.0
    importance: Importance = field(default_factory=dict)

    citation = (
        "Aydore, S., Brown, W., Kearns, M., Kenthapadi, K., Melis, L., Roth, A. & Siva, A. (2021). "
        "Differentially private query release through adaptive projection. ICML, PMLR 139, 457–467."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("rounds", "marginals"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value!r}.")

    def cliques(self, domain: Domain) -> Sequence[Clique]:
        rounds = self.rounds or len(domain)
        return domain.cliques(min(2, len(domain)))[: rounds * self.marginals]

    def counted(self, measurements: Sequence[Measurement]) -> str:
        del measurements
        return f"contingency tables that were chosen privately, {self.marginals:,} a round"

    def run(
        self, curator: Curator, engine: Engine, *, progress: Progress = silent
    ) -> list[Measurement]:
        """Returns the measurements of all rounds, bought with all that is left of the budget."""
        domain = curator.domain
        if len(domain) < 2:
            return Independent().run(curator, engine, progress=progress)
        workload = checked_workload(domain, self.workload)
        rounds = min(self.rounds or len(domain), math.ceil(len(workload) / self.marginals))
        measured = count_rows(curator)
        cliques = measured_cliques(curator.measurements)
        unmeasured, model = list(workload), None
        for index in progress(range(rounds), "select"):
            if cliques:
                model = engine.fit(domain, curator.measurements, warm_start=model)
            left = curator.ledger.remaining
            step = left / (rounds - index)
            total = estimate_total(domain, curator.measurements).value
            number = min(self.marginals, len(unmeasured))
            each = (1 - _SELECTING) * step / number
            chosen: list[Clique] = []
            for _ in range(number):
                candidates = affordable(
                    engine,
                    domain,
                    [*cliques, *chosen],
                    unmeasured,
                    self.max_megabytes * (index + 1) / rounds,
                )
                scores = model_errors(
                    domain,
                    model,
                    total,
                    {
                        clique: expected_noise(curator.ledger, domain, clique, each)
                        for clique in candidates
                    },
                    self.importance,
                )
                best = curator.select(
                    scores, _SELECTING * step / number, what="worst fitted clique"
                )
                chosen.append(candidates[best])
                unmeasured.remove(candidates[best])
            # The tables get all that the choices left of the round; a free choice leaves all.
            measured += curator.measure(
                [MarginalQuery(clique) for clique in chosen],
                curator.ledger.remaining - (left - step),
                what="worst fitted marginals",
            )
            cliques += chosen
        return measured


METHODS = {"rap": Adaptive, "gem": partial(Adaptive, engine="gem")}
