"""Facts on a model for adaptive strategies: its counts, its size, and the noise it has to beat.

Public: it is computed from noisy answers.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

import numpy as np

from sdv_privpgd.base.domain import Clique, Domain
from sdv_privpgd.privacy.accounting import stddev_for
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.privacy.queries import CountQuery, MarginalQuery, ModelErrorQuery
from sdv_privpgd.synthesize.engine import Engine, Model

_COUNT_SHARE = Fraction(1, 100)
"""Share of mu^2 for the number of rows, if nothing that was measured tells it."""


def whole_counts(counts: np.ndarray) -> np.ndarray:
    """The nearest int64 counts. Scores must be integers for a choice to be exact."""
    return np.rint(counts).astype(np.int64)


def model_errors(
    domain: Domain,
    model: Model | None,
    total: float,
    biases: Mapping[Clique, int],
    weights: Mapping[Clique, int],
) -> list[ModelErrorQuery]:
    """The errors of a model on some cliques, each less its bias and times its weight, to choose by.

    No model is the uniform distribution.
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
            bias=bias,
            weight=weights[clique],
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
    share = curator.ledger.remaining * _COUNT_SHARE
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
