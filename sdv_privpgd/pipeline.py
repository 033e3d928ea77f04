"""The whole way from a private table to a public release, on one page."""

from dataclasses import dataclass
from fractions import Fraction

from sdv_privpgd.domain import Domain
from sdv_privpgd.measure import Measurement
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.progress import Progress, silent
from sdv_privpgd.queries import CountQuery
from sdv_privpgd.select.strategy import Strategy
from sdv_privpgd.synthesize.engine import Engine, Model

COUNT_SHARE = Fraction(1, 100)
"""Share of mu^2 for the number of rows where it is private; costs the tables 0.5 % of noise."""

STATISTIC_SHARE = Fraction(1, 100)
"""Share of mu^2 for each statistic that the engine asks for."""


@dataclass(frozen=True, kw_only=True)
class Release:
    """All that leaves a fit. Public: it holds noisy answers and what was made of them."""

    domain: Domain
    ledger: PrivacyLedger
    measurements: tuple[Measurement, ...]
    model: Model


def run(
    curator: Curator, strategy: Strategy, engine: Engine, *, progress: Progress = silent
) -> Release:
    """Selects, measures and synthesizes.

    Privacy: the ledger's budget. The table is reached through the curator alone; the model is
    post-processing of its answers.

    A statistic that the engine asked for is asked for in order to be kept from being read off
    the synthetic rows (paper, section 4.4), so after the fit neither it nor the tables, which
    would reveal it, are kept.
    """
    domain, budget = curator.domain, curator.ledger.remaining
    statistics = engine.statistics(domain)  # may refuse: before anything is spent
    count = curator.measure([CountQuery()], budget * COUNT_SHARE, what="number of rows")
    measured = [
        measurement
        for query in statistics
        for measurement in curator.measure([query], budget * STATISTIC_SHARE, what=query.describe())
    ]
    tables = strategy.run(curator, engine, progress=progress)
    model = engine.fit(domain, [*count, *measured, *tables], progress=progress)
    return Release(
        domain=domain,
        ledger=curator.ledger,
        measurements=tuple(count) if statistics else (*count, *tables),
        model=model,
    )
