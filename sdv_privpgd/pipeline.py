"""The whole way from a private table to a public release, on one page."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from sdv_privpgd.domain import Domain
from sdv_privpgd.evidence import surely_held
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
    """All that leaves a fit. Public: it holds noisy answers and what was made of them.

    Attributes:
        domain: Of the codes.
        ledger: What was spent.
        measurements: The noisy answers.
        model: What was made of them.
        held: Which codes of an attribute hold rows for sure, as ``surely_held`` says.
    """

    domain: Domain
    ledger: PrivacyLedger
    measurements: tuple[Measurement, ...]
    model: Model
    held: Mapping[str, np.ndarray] = field(default_factory=dict)


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
    domain = curator.domain
    asked = ask(curator, strategy, engine, progress=progress)
    model = engine.fit(domain, [*asked.count, *asked.statistics, *asked.tables], progress=progress)
    return Release(
        domain=domain,
        ledger=curator.ledger,
        measurements=tuple(asked.count) if asked.statistics else (*asked.count, *asked.tables),
        model=model,
        held=surely_held(domain, asked.tables),
    )


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The answers that a release is made of. Public.

    Attributes:
        count: The number of rows.
        statistics: What the engine asked for.
        tables: What the strategy selected.
    """

    count: list[Measurement]
    statistics: list[Measurement]
    tables: list[Measurement]


def ask(
    curator: Curator, strategy: Strategy, engine: Engine, *, progress: Progress = silent
) -> Asked:
    """All that is asked of the curator, for all that is left of his budget."""
    budget = curator.ledger.remaining
    queries = engine.statistics(curator.domain)  # may refuse: before anything is spent
    count = curator.measure([CountQuery()], budget * COUNT_SHARE, what="number of rows")
    statistics = [
        measurement
        for query in queries
        for measurement in curator.measure([query], budget * STATISTIC_SHARE, what=query.describe())
    ]
    tables = strategy.run(curator, engine, progress=progress)
    return Asked(count=count, statistics=statistics, tables=tables)
