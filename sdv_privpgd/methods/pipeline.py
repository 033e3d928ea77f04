"""The whole way from a private table to a public release, on one page."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from sdv_privpgd.base import one_blas_thread
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.estimate.support import clear_support
from sdv_privpgd.methods.method import Method
from sdv_privpgd.privacy.accounting import stddev_for
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.ledger import PrivacyBudgetError, PrivacyLedger
from sdv_privpgd.privacy.queries import CountQuery, Measurement, Query
from sdv_privpgd.synthesize.engine import Engine, Model

SMALL_SHARE = Fraction(1, 100)
"""Share of mu^2 for the number of rows where it is private, which makes the tables 0.5 % noisier,
and for each statistic that the engine asks for."""

QUESTIONS = 8
"""Each table of a listed question has as much of mu^2 as one of so many parts of the rest. Of
four that are listed, intervals of counts are then 3.6 to 4.4 times as wide as asked alone with all,
and the pairs of rows 7 % further from the table's (``tests/benchmarks listing``)."""

LISTED = "tables of listed questions"
"""What the ledger says of them."""


@dataclass(frozen=True, kw_only=True)
class Release:
    """Everything that leaves a fit. Public: it holds noisy answers and what was computed from them.

    Attributes:
        domain: The domain of the codes.
        ledger: The record of what was spent.
        measurements: The noisy answers.
        model: The model that was fitted to them.
        held: The codes of each attribute that surely hold rows, by ``surely_held``.
        given: Tables that nobody was asked for, as other models have them.
    """

    domain: Domain
    ledger: PrivacyLedger
    measurements: tuple[Measurement, ...]
    model: Model
    held: Mapping[str, np.ndarray] = field(default_factory=dict)
    given: tuple[Measurement, ...] = ()


def run(curator: Curator, method: Method, *, progress: Progress = silent) -> Release:
    """Selects, measures and synthesizes.

    Privacy: the ledger's budget. Only ``ask`` reaches the table, through the curator. The model is
    post-processing of the answers, so ``fit`` can be repeated from them at no cost.

    Raises ``MatchError`` before anything is spent where it cannot model what it would ask.
    """
    method.require(curator.domain)
    ask(curator, method, progress=progress)
    return fit(Answers.of(curator, method), method, progress=progress)


@dataclass(frozen=True, kw_only=True)
class Answers:
    """The noisy answers that were paid for, of which a model is made. Public.

    Attributes:
        domain: The domain of the codes.
        ledger: The record of what was spent.
        measurements: The noisy answers.
        statistics: The queries that the engine asked for.
        given: Tables that nobody was asked for, as other models have them.
    """

    domain: Domain
    ledger: PrivacyLedger
    measurements: tuple[Measurement, ...]
    statistics: tuple[Query, ...]
    given: tuple[Measurement, ...] = ()

    @classmethod
    def of(cls, curator: Curator, engine: Engine) -> "Answers":
        """All that the curator has answered so far."""
        return cls(
            domain=curator.domain,
            ledger=curator.ledger,
            measurements=curator.measurements,
            statistics=tuple(engine.statistics(curator.domain)),
        )


@one_blas_thread
def ask(
    curator: Curator, method: Method, *, again: bool = False, progress: Progress = silent
) -> None:
    """Asks for the number of rows, the engine's statistics, listed questions, and the method's own.

    This spends all that is left of the curator's budget. What it has already answered is not asked
    once more, unless all that was answered with noise is to be asked ``again``.
    """
    budget = curator.ledger.remaining
    known = [m.query for m in curator.measurements if not (again and m.stddev)]
    queries = method.statistics(curator.domain)  # refuses, if it does, before anything is spent
    require_room(queries)
    if CountQuery() not in known:
        curator.measure([CountQuery()], budget * SMALL_SHARE, what="number of rows")
    for query in queries:
        if query not in known:
            curator.measure([query], budget * SMALL_SHARE, what=query.describe())
    if listed := [each for each in getattr(method, "questions", ()) if each not in known]:
        part = curator.ledger.remaining * part_of_listed(len(listed))
        curator.measure(listed, part, what=LISTED, progress=progress)
    if curator.ledger.remaining:
        method.measure(curator, progress=progress)


def noise_of(ledger: PrivacyLedger, queries: Iterable[Query], mu_squared: Fraction) -> float:
    """The standard deviation of a cell's noise if these tables are asked for together."""
    squared = sum(each.l2_sensitivity_squared(ledger.adjacency) for each in queries)
    return stddev_for(ledger.rows_counted**2 * squared, mu_squared)


def part_of_listed(tables: int) -> Fraction:
    """The part of the budget that so many tables of listed questions have."""
    return Fraction(tables, QUESTIONS + tables)


def require_room(statistics: Sequence[Query]) -> None:
    """Raises ``PrivacyBudgetError`` if statistics leave no share of the budget to the tables."""
    if (1 + len(statistics)) * SMALL_SHARE >= 1:
        raise PrivacyBudgetError(
            f"{len(statistics)} statistics take {float(SMALL_SHARE):g} of the budget each, "
            "which leaves nothing for the tables. Ask for fewer."
        )


@one_blas_thread
def fit(
    answers: Answers,
    engine: Engine,
    *,
    warm_start: Model | None = None,
    progress: Progress = silent,
) -> Release:
    """Fits a model to noisy answers: post-processing, at no cost.

    ``warm_start`` is a model of earlier answers about the same rows.

    The engine asks for a statistic to keep it from being read off the synthetic rows (paper,
    section 4.4). So after the fit neither the statistic nor the tables, which would reveal it, are
    kept.
    """
    domain, own, given = answers.domain, answers.measurements, answers.given
    model = engine.fit(domain, (*own, *given), warm_start=warm_start, progress=progress)
    held = clear_support(domain, own)
    if any(measurement.query in answers.statistics for measurement in own):
        own = tuple(each for each in own if isinstance(each.query, CountQuery))
    ledger = answers.ledger
    return Release(
        domain=domain, ledger=ledger, measurements=own, model=model, held=held, given=given
    )
