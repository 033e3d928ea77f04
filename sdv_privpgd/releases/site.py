"""The door of a site: a table and its declarations go in, a release that may leave comes out."""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np

from sdv_privpgd.base.arguments import shown
from sdv_privpgd.base.domain import Clique, Domain
from sdv_privpgd.base.progress import Progress, heard, silent
from sdv_privpgd.columns.bins import Categories
from sdv_privpgd.columns.cuts import USUAL_BINS, tick_of
from sdv_privpgd.columns.dates import to_ticks
from sdv_privpgd.columns.dtypes import inner_of
from sdv_privpgd.columns.facts import DateFacts, NumberFacts
from sdv_privpgd.columns.parser import read_facts
from sdv_privpgd.columns.schema import PublicDomainError, Schema
from sdv_privpgd.columns.units import zone_of
from sdv_privpgd.columns.vocabulary import words_of
from sdv_privpgd.discovery.density import Density
from sdv_privpgd.estimate.consistency import Possible
from sdv_privpgd.estimate.noisy_tables import margin_estimates, noisy_tables
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.door import on_labels
from sdv_privpgd.fitting.fit import Fit
from sdv_privpgd.fitting.fitted_table import RunningFit
from sdv_privpgd.fitting.mismatch import CAN_GO_ON, DomainMismatchError
from sdv_privpgd.fitting.model_file import on_unkept
from sdv_privpgd.fitting.options import opened, parse_options
from sdv_privpgd.fitting.resume import Unfinished, gone, note_on
from sdv_privpgd.fitting.settings import People, Settings, with_bins
from sdv_privpgd.methods.method import EngineMethod, Method, Target, method_of
from sdv_privpgd.methods.privpgd import PrivPGD
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import Measurement
from sdv_privpgd.releases.site_release import Measured, described, plain_words
from sdv_privpgd.report.warnings import warn_after
from sdv_privpgd.synthesize.engine import Engine, Model
from sdv_privpgd.synthesize.pgm import PrivatePGM

_BEYOND = 2
"""Codes beyond the last that seems to have rows which may still have some. Of three widely declared
amounts in 1,000 to 20,000 rows of 2 to 5 sites, means are off by a factor of 1.6, 1.5, 1.5 and 1.4
with 0 to 3 of them, and 2.8 without an end. Standard deviations of amounts of both signs are up to
1.6, 1.7, 2.4 and 5 times too large, and 228 times without (RESULTS.md)."""


@dataclass(frozen=True)
class Unchosen(Engine):
    """The engine of a measurement: whoever combines releases chooses the one that makes rows.

    A method that looks at a model of its earlier answers gets that of Private-PGM. What that
    engine could not take at the end is no reason to refuse it here.
    """

    takes_quadrants = True

    def megabytes(self, domain: Domain, cliques: Sequence[Clique]) -> float:
        return PrivatePGM().megabytes(domain, cliques)

    def fit(
        self,
        domain: Domain,
        measurements: Sequence[Measurement],
        *,
        warm_start: Model | None = None,
        progress: Progress = silent,
    ) -> Model:
        return PrivatePGM().fit(domain, measurements, warm_start=warm_start, progress=progress)


_WHY = (
    "Tables of several sites are added up cell by cell, so all sites must declare the same "
    "domain, such as one file: what each discovered for itself would be other cells."
)


def measure(
    table: Any,
    columns: Mapping[str, Mapping],
    epsilon: float,
    delta: float | None = None,
    *,
    site: str,
    adjacency: str = "replace_one",
    people: People | None = None,
    method: Method | str = "privpgd",
    target: Target = None,
    progress: Progress = silent,
) -> Measured:
    """Noisy tables of one site's private table, to be handed over and combined with others'.

    Privacy: what is returned, or raised, is (epsilon, delta)-differentially private for one row of
    this table, or for the rows of one of the ``people``. No row leaves, and what others
    do with the release costs nothing more.

    All sites must declare the same columns, in any order, and use the same
    ``adjacency`` and method: what one has measured and another has not cannot be added up.

    Args:
        table: The private table, as ``fit_table`` takes it.
        columns: What is public of each column, as ``fit_table`` takes it, without gaps: nothing is
            discovered.
        epsilon: What may be spent.
        delta: As ``fit_table`` takes it.
        site: Whose table it is: a public name that no other site has.
        adjacency: ``"replace_one"``, where the number of rows is public, or ``"add_remove"``.
        people: Whose the rows are, as ``fit_table`` takes it. An order of rows must be the same for
            all sites, and is part of the release.
        method: What is asked, as ``fit_table`` takes it. ``"privpgd"`` asks for no triples here:
            their groups would be each site's own. Those of its pairs are public.
        target: The column that the rows are to predict, or several, the same for all sites.
        progress: Told of the steps.

    Raises:
        PublicDomainError: Before a row is read, where a column's domain is not declared.
        ValueError: For settings and declarations that cannot be meant, for columns that are
            missing, and for a table without rows if their number is public, before a row is read.
        PrivacyBudgetError: Before a row is read, if the plan does not fit the budget.
        DomainMismatchError: After the first question, if more than a tenth of the cells of a column
            are there and no declared values, or if nearly all rows lie beyond its declared range.
            The error's ``resume(table)`` goes on all the same: some site may lack what others
            have.

    >>> import pandas as pd
    >>> from sdv_privpgd import Categorical, Numerical, combine, measure
    >>> columns = {"ward": Categorical(["A", "B"]), "age": Numerical(0, 99, decimal_places=0)}
    >>> north = pd.DataFrame({"ward": ["A", "B"] * 500, "age": [30, 60] * 500})
    >>> south = pd.DataFrame({"ward": ["A", "A"] * 400, "age": [20, 80] * 400})
    >>> releases = [
    ...     measure(table, columns, epsilon=2.0, site=name)
    ...     for name, table in {"North": north, "South": south}.items()
    ... ]
    >>> combine(releases, engine="pgm").num_rows
    1800
    """
    measuring = prepared(
        table,
        columns,
        epsilon,
        delta,
        site=site,
        adjacency=adjacency,
        people=people,
        method=method,
        target=target,
    )
    for sentence in (*measuring.told_before, *on_labels([columns])):
        warnings.warn(sentence, stacklevel=2)
    measured = measuring.run(progress)
    warn_after(measured.warnings, kept=measured)
    return measured


@dataclass(frozen=True, kw_only=True, eq=False)
class Measuring:
    """A measurement that is about to be made, or was: its fit holds the ledger, however it ends."""

    site: str
    columns: Mapping[str, Mapping]
    fit: Fit
    private: PrivateTable

    @property
    def told_before(self) -> list[str]:
        """Sentences on what is worth a look before anything is spent. Public."""
        return RunningFit(fit=self.fit, private=self.private).told_before

    @property
    def dtypes(self) -> Mapping[str, Any]:
        """The dtypes that rows come back in, those that a file can hold. Public."""
        own = self.fit.description
        kept = {**own.dtypes, **own.dtypes_kept(self.private.dtypes)}
        return {name: dtype for name, dtype in kept.items() if not on_unkept(dtype)}

    @property
    def ledger(self) -> PrivacyLedger:
        """What was spent so far. Public."""
        return self.fit.shared.ledger

    def run(
        self, progress: Progress = silent, *, known: Sequence[Measurement] = (), stops: bool = True
    ) -> Measured:
        """Asks the table for all that may be spent, but for what is known already.

        If it ``stops``, it raises ``DomainMismatchError``, as ``measure`` does.
        """
        progress = heard(progress)
        try:
            if not self.ledger.charges:  # else it goes on
                stops_at = self.fit.description.modelled if stops else ()
                self.fit.ask_first(self.private, stops_at=stops_at)
            self.fit.ask(self.private, progress, known=known)
        except DomainMismatchError as error:
            error.ledger = self.ledger
            kept = Unfinished.of(self.fit)
            # It holds no table: an error may be kept, and printed, by anybody.
            error.goes_on = partial(_gone_on, self.site, self.columns, self.fit.settings, kept)
            note_on(error, CAN_GO_ON)
            raise
        except BaseException as error:
            note_on(error, gone(self.ledger, self.fit.settings.epsilon))
            raise
        assert self.fit.curator is not None
        return Measured(
            site=self.site,
            columns=self.columns,
            num_bins=self.fit.description.num_bins,
            ledger=self.ledger,
            answers=self.fit.curator.measurements,
            strategy=repr(self.fit.settings.method),
            date=date.today().isoformat(),
            program=f"sdv-privpgd {version('sdv-privpgd')}",
            visits=self.fit.description.visits,
            dtypes=self.dtypes,
        )


def _gone_on(
    site: str, columns: Mapping[str, Mapping], settings: Settings, kept: Unfinished, table: Any
) -> Callable[[], Measured]:
    """What goes on where a measurement stopped, and spends the rest. The table is checked first."""
    private = kept.opened(table, settings)
    fit = Fit(settings, kept.description, diagnostics={}, begun=kept.ledger)
    rest = Measuring(site=site, columns=columns, fit=fit, private=private)
    return lambda: rest.run(known=kept.answers, stops=False)


def prepared(
    table: Any,
    columns: Mapping[str, Mapping],
    epsilon: float,
    delta: float | None = None,
    *,
    site: str,
    method: Method | str = "privpgd",
    **settings: Any,
) -> Measuring:
    """What ``measure`` does before a row is read: all is checked, and nothing is spent."""
    if not isinstance(site, str) or not site.strip():
        raise ValueError(f"site must name whose table it is, got {shown(site)}.")
    plan, description, words = questions(columns, epsilon, delta, method=method, **settings)
    private = opened(table, description, plan.people.limit, plan.objections)
    plan = plan.for_rows(private.known_rows(plan.adjacency))
    kept = description.dtypes_kept(private.dtypes)
    zoned = {name: own for name, own in kept.items() if zone_of(inner_of(own)) is not None}
    description = replace(description.dated(private.dtypes), dtypes={**description.dtypes, **zoned})
    fit = Fit(plan, description, diagnostics={})
    return Measuring(site=site.strip(), columns=words, fit=fit, private=private)


def with_cells(words: Mapping[str, Mapping], num_bins: int | None) -> dict[str, dict[str, Any]]:
    """The same declarations, with ``cut_points`` of numbers whose equal cells would say nothing.

    They follow from what is declared alone, so that all sites have the same cells: one for 0 and
    for each end, where rows are capped, and cells that grow with the numbers in them for a range
    that covers more than three powers of ten, with negative numbers if it reaches beyond a
    thousand. A range without a cell of several numbers has none. Dates have equal cells and one
    for each end.
    """
    found = {name: dict(own) for name, own in words.items()}
    for name, own in words.items():
        facts = read_facts(name, own)
        if not isinstance(facts, NumberFacts | DateFacts) or facts.lacks_domain:
            continue
        if facts.cuts is not None:
            continue
        number = facts.num_bins or num_bins or USUAL_BINS
        is_number = isinstance(facts, NumberFacts)
        cuts = _number_cuts(facts, number) if is_number else _date_cuts(facts, number)
        if cuts:
            found[name]["cut_points"] = words_of(replace(facts, cuts=cuts))["cut_points"]
    return found


def _date_cuts(facts: DateFacts, number: int) -> tuple[int, ...]:
    """Where cells begin, in nanoseconds: ``number`` equal ones and both ends; or none."""
    first, last = to_ticks(np.array(facts.ends), facts.unit).tolist()
    if last - first < number:
        return ()
    equal = np.linspace(first, last, number + 1)[1:-1].round().astype(np.int64)
    ticks = np.unique([first + 1, *equal, last]).astype(f"M8[{facts.unit}]")
    return tuple(ticks.astype("M8[ns]").astype(np.int64).tolist())


def _number_cuts(facts: NumberFacts, number: int) -> tuple[float, ...]:
    """Where cells begin, at most ``number`` and four more; none where each number has a cell."""
    # The cells of a range without negative numbers grow if its end is so many times its begin,
    # which is at least this part of the end.
    wide, finest = 1e3, 1e6
    low, high = map(float, facts.ends)
    tick = tick_of(facts)
    if tick is not None and high - low < number * tick:
        return ()
    alone = [end for end in (facts.ends[0], 0) if low <= end <= high]
    after = [math.nextafter(end, math.inf) if tick is None else float(end + tick) for end in alone]
    least = max(low, high / finest, 0.0 if tick is None else float(tick))
    if low >= 0 and high > wide * least:
        cuts = np.geomspace(least, high, number)[low > 0 : -1].tolist()
    elif low < 0 < high and max(-low, high) > wide * max(tick or 0, 1):
        least = max(float(tick or 0), max(-low, high) / finest)
        ends = [end for end in (low, high) if abs(end) > least]
        grown = [np.geomspace(math.copysign(least, end), end, number // len(ends)) for end in ends]
        cuts = np.concatenate([each[:-1] for each in grown]).tolist()
    else:
        cuts = np.linspace(low, high, number + 1)[1:-1].tolist()
    starts = sorted({*cuts, *map(float, alone), *after, high})
    return tuple(cut for cut in starts if low < cut <= high)


def seen(schema: Schema, measurements: Sequence[Measurement]) -> Possible:
    """Which codes of numbers and dates may have rows: up to ``_BEYOND`` more at both ends.

    Sites cut ranges before anybody looks, so that most codes of a wide one have no rows. Those of
    their noise would lie far out.
    """
    found: dict[Clique, np.ndarray] = {}
    alone = margin_estimates(noisy_tables(schema.domain(), measurements), 1)
    for column in schema.columns:
        table = alone.get((column.name,))
        if table is None or isinstance(column.cells, Categories):
            continue
        codes = np.arange(column.num_values)
        edges = np.append(column.at(codes, np.zeros(codes.size)), column.cells.ends[1])
        density = Density.of(edges, replace(table, counts=table.counts[codes]))
        first, last = codes.size - density.backwards.reach - _BEYOND, density.reach + _BEYOND
        found[(column.name,)] = np.ones(column.size, dtype=bool)
        found[(column.name,)][codes] = (first <= codes) & (codes < last)
    return found


def questions(
    columns: Mapping[str, Mapping],
    epsilon: float,
    delta: float | None = None,
    *,
    method: Method | str = "privpgd",
    num_bins: int | None = None,
    **settings: Any,
) -> tuple[Settings, Description, Mapping[str, Mapping]]:
    """Returns what ``measure`` would ask, and the columns in words that files can hold. Public."""
    plain = PrivPGD(triples=Fraction(0)) if method == "privpgd" else method
    own = method_of(with_bins(plain, num_bins))
    if own.needs_table:
        raise ValueError(
            f"{own.called} is for a table of its own: {own.needs_table}, and a release holds "
            "tables that all engines can use. Choose another method."
        )
    if isinstance(own, EngineMethod):
        own = replace(own, engine=Unchosen())
    if isinstance(own, PrivPGD):
        own = replace(own, public_groups=True)
    asks: dict[str, Any] = {"method": own, **settings}
    plan, whole = parse_options(columns, epsilon, delta, **asks)
    words = with_cells(plain_words(columns), whole.num_bins)
    try:
        description = described(words, whole.num_bins, whole.visits)
    except PublicDomainError as error:
        raise PublicDomainError(f"{error} {_WHY}") from None
    # In the words of a file a ``date`` is text, which does not say that it has no time.
    days = {name for name, each in whole.facts.items() if getattr(each, "of_days", None)}
    decimals = {each.name: Decimal for each in whole.schema.columns if each.dtype is Decimal}
    description = replace(description, timeless=frozenset(days), dtypes=decimals)
    if not description.modelled:
        raise ValueError("columns names no column: there is nothing to measure.")
    return plan, description, words
