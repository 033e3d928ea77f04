"""The whole way from a private table to a public release, on one page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from sdv_privpgd.domain import Domain
from sdv_privpgd.estimate.evidence import surely_held
from sdv_privpgd.estimate.noisy_tables import estimate_total
from sdv_privpgd.forecast import fitting
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.ledger import PrivacyBudgetError, PrivacyLedger
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.privacy.queries import CountQuery, MarginalQuery, Query
from sdv_privpgd.progress import Progress, Stage, expect, silent
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

    Privacy: the ledger's budget. The table is reached through the curator alone, by ``ask``; the
    model is post-processing of his answers, and ``fit`` can be repeated from them for nothing.
    """
    ask(curator, strategy, engine, progress=progress)
    return fit(Answers.of(curator, engine), engine, progress=progress)


@dataclass(frozen=True, kw_only=True)
class Answers:
    """What was paid for: the noisy answers that a model is made of. Public.

    ``statistics`` are the queries that the engine asked for.
    """

    domain: Domain
    ledger: PrivacyLedger
    measurements: tuple[Measurement, ...]
    statistics: tuple[Query, ...]

    @classmethod
    def of(cls, curator: Curator, engine: Engine) -> "Answers":
        """All that the curator has answered so far."""
        return cls(
            domain=curator.domain,
            ledger=curator.ledger,
            measurements=curator.measurements,
            statistics=tuple(engine.statistics(curator.domain)),
        )


def ask(
    curator: Curator, strategy: Strategy, engine: Engine, *, progress: Progress = silent
) -> None:
    """Asks the curator for the number of rows, what the engine asks for and the strategy's tables.

    For all that is left of his budget; what he has answered already is not asked for again.
    """
    budget, known = curator.ledger.remaining, [m.query for m in curator.measurements]
    queries = engine.statistics(curator.domain)  # may refuse: before anything is spent
    require_room(queries)
    if CountQuery() not in known:
        curator.measure([CountQuery()], budget * COUNT_SHARE, what="number of rows")
    for query in queries:
        if query not in known:
            curator.measure([query], budget * STATISTIC_SHARE, what=query.describe())
    if curator.ledger.remaining:
        strategy.run(curator, engine, progress=progress)


def require_room(statistics: Sequence[Query]) -> None:
    """Raises ``PrivacyBudgetError`` for more statistics than leave a share to the tables."""
    if COUNT_SHARE + len(statistics) * STATISTIC_SHARE >= 1:
        raise PrivacyBudgetError(
            f"{len(statistics)} statistics take {float(STATISTIC_SHARE):g} of the budget each, "
            "which leaves nothing for the tables. Ask for fewer."
        )


def fit(answers: Answers, engine: Engine, *, progress: Progress = silent) -> Release:
    """Makes a model of noisy answers: post-processing, at no cost.

    A statistic that the engine asked for is asked for in order to be kept from being read off
    the synthetic rows (paper, section 4.4), so after the fit neither it nor the tables, which
    would reveal it, are kept.
    """
    domain, measured = answers.domain, answers.measurements
    expect(progress, lambda: _left(domain, measured, engine))
    model, held = engine.fit(domain, measured, progress=progress), surely_held(domain, measured)
    if any(measurement.query in answers.statistics for measurement in measured):
        measured = tuple(each for each in measured if isinstance(each.query, CountQuery))
    return Release(
        domain=domain, ledger=answers.ledger, measurements=measured, model=model, held=held
    )


def _left(domain: Domain, answers: Sequence[Measurement], engine: Engine) -> list[Stage]:
    """What a fit to these answers is foretold to take."""
    cliques = [each.query.clique for each in answers if isinstance(each.query, MarginalQuery)]
    total = estimate_total(domain, answers).value
    return fitting(domain, total, list(dict.fromkeys(cliques)), engine)
