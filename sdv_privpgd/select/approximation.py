"""What adaptive strategies know of a model: its counts, its size and the noise to beat. Public."""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from sdv_privpgd.domain import Clique, Domain
from sdv_privpgd.privacy.accounting import stddev_for
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.privacy.queries import MarginalQuery
from sdv_privpgd.synthesize.engine import Engine


def whole_counts(counts: np.ndarray) -> np.ndarray:
    """The nearest int64 counts: a score of integers can be chosen by exactly."""
    return np.rint(counts).astype(np.int64)


def expected_noise(
    ledger: PrivacyLedger, domain: Domain, clique: Clique, mu_squared: Fraction
) -> float:
    """The mean L1 norm of the noise that ``mu_squared`` buys for a clique's table.

    sqrt(2 / pi) sigma a cell: a model that is closer than this cannot gain by measuring.
    """
    squared = MarginalQuery(clique).l2_sensitivity_squared(ledger.adjacency)
    stddev = stddev_for(ledger.rows_per_person**2 * squared, mu_squared)
    return math.sqrt(2 / math.pi) * stddev * domain.size(clique)


def measured_cliques(measurements: Iterable[Measurement]) -> list[Clique]:
    """The cliques whose tables are known, also from before the strategy began."""
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

    A candidate inside a measured clique is always one of them. If there is none, the one that
    makes the smallest model is.
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
