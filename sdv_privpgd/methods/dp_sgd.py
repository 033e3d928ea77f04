"""Private gradients of an engine's network, step by step: DP-SGD."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, cast

from sdv_privpgd.estimate.noisy_tables import estimate_total
from sdv_privpgd.methods.method import EngineMethod
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.gradients import TrainingQuery
from sdv_privpgd.privacy.ledger import PrivacyBudgetError, PrivacyLedger
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.privacy.queries import Adjacency, MarginalQuery
from sdv_privpgd.privacy.sampled import LEAST_DELTA, for_one
from sdv_privpgd.progress import Progress, silent
from sdv_privpgd.synthesize.engine import Engine

TABLES = Fraction(1, 10)
"""Share of the budget for the tables of single columns."""

OWN_DELTA = Fraction(1, 10)
"""Share of delta that is kept for samples: between 0.02 and 0.3 the noise is the same to 2 %."""

_GRAIN = 1 << 32


@dataclass(frozen=True, kw_only=True)
class PrivateGradients(EngineMethod):
    """Trains the engine's network by DP-SGD, after a look at each column's table.

    Abadi et al. 2016: each step draws a Poisson sample of the rows, and releases the noisy sum of
    their clipped gradients. The curator does so in integers (``Curator.train``), with a noise that
    the whole rest of the budget pays for. Ours differs in that the tables, of a tenth of the
    budget, are known when training starts.

    When to use it: to compare networks that are trained with DP-SGD (``DiffusionNetwork``,
    ``AdversarialNetwork``) with methods that count. No other engine has gradients.

    Attributes:
        steps: The number of samples.
        batch: The number of rows of a sample, on average. A row takes about 0.2 milliseconds.

    >>> import pandas as pd
    >>> from sdv_privpgd import Boolean, fit_table
    >>> from sdv_privpgd.synthesize.diffusion import DiffusionNetwork
    >>> table = pd.DataFrame({"smokes": [True, False] * 500, "coughs": [True, False] * 500})
    >>> columns = {"smokes": Boolean(), "coughs": Boolean()}
    >>> method = PrivateGradients(steps=5, batch=50, engine=DiffusionNetwork(width=8))
    >>> fitted = fit_table(table, columns, epsilon=1.0, method=method)
    >>> [charge.mechanism for charge in fitted.ledger.charges]
    ['exact (public)', 'Gaussian, rounded', 'Gaussian, rounded, of samples']
    """

    engine: Engine | str = "diffusion"
    steps: int = 100
    batch: int = 1_500

    asks = "private gradients"
    needs_table = "its answer is a network, and no table"
    own_delta = OWN_DELTA
    weighs_rows = False

    citation = "Abadi, M. et al. (2016). Deep learning with differential privacy. ACM CCS, 308–318."

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("steps", "batch"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise ValueError(f"{name} must be an integer of at least 1, got {value!r}.")

    def counted(self, measurements: Sequence[Measurement]) -> str:
        del measurements
        return (
            "the frequencies of each column, and gradients of a network's loss, clipped and summed "
            f"over {self.steps:,} random samples of {self.batch:,} rows on average"
        )

    def run(
        self, curator: Curator, engine: Engine, *, progress: Progress = silent
    ) -> list[Measurement]:
        """Returns the tables and the trained weights, bought with all that is left."""
        domain, budget = curator.domain, curator.ledger.remaining
        _require_delta(curator.ledger)
        asked = [MarginalQuery(clique) for clique in domain.cliques(1)]
        found = curator.measure(
            asked, budget * TABLES, what="all 1-way marginals", progress=progress
        )
        total = estimate_total(domain, curator.measurements).value
        learner = cast(Any, engine).learner(
            domain, curator.measurements, self.steps, min(self.batch, math.ceil(max(total, 1.0)))
        )
        rate = min(Fraction(math.ceil(self.batch / max(total, 1.0) * _GRAIN), _GRAIN), Fraction(1))
        query = TrainingQuery(
            network=cast(Any, engine).network,
            num_weights=learner.num_weights,
            num_public=len(learner.weights()) - learner.num_weights,
            clip=float(cast(Any, engine).clip),
            rate=rate,
            steps=self.steps,
        )
        ledger = curator.ledger
        weights = curator.train(query, learner, ledger.remaining, _kept(ledger), progress=progress)
        return [*found, weights]


def _kept(ledger: PrivacyLedger) -> Fraction:
    """What is left of the reserved part of delta."""
    return ledger.reserved - sum((charge.delta for charge in ledger.charges), Fraction(0))


def _require_delta(ledger: PrivacyLedger) -> None:
    """Raises ``PrivacyBudgetError`` where a training would be refused after the tables."""
    rows = ledger.rows_counted * (2 if ledger.adjacency is Adjacency.REPLACE_ONE else 1)
    mu = math.sqrt(ledger.remaining * (1 - TABLES)) / rows
    kept = _kept(ledger)
    if kept <= 0 or for_one(mu, float(kept), rows) < 2 * LEAST_DELTA:
        raise PrivacyBudgetError(
            "PrivateGradients needs a part of delta of its own, which fits reserve, and too little "
            "is left of it. A training that is done has used it up, and cannot be refined: fit "
            "anew, or allow a larger delta."
        )


METHODS = {
    "dp-diffusion": PrivateGradients,
    "dp-ctgan": partial(PrivateGradients, engine="gan"),
}
