"""One fit: what is asked of a private table, and what is made of the answers.

The steps are those of ``Fit``, in order. ``discover`` and ``ask`` are handed the private table, as
an object that shows nothing and gives curators. All else is public.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import compress
from typing import Any

import numpy as np

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.columns.cuts import USUAL_BINS
from sdv_privpgd.columns.facts import ColumnFacts, DateFacts, NumberFacts, WeightFacts
from sdv_privpgd.columns.mismatch import on_ends
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.columns.visits import Visits, since
from sdv_privpgd.constraints.rules import possible_of
from sdv_privpgd.discovery.first_queries import reserved_delta
from sdv_privpgd.discovery.plan import SPREAD, discover, find_shapes, part_for_shapes, rows_unseen
from sdv_privpgd.discovery.transcript import Answered, Inquiry, Transcript
from sdv_privpgd.estimate.noisy_tables import estimate_total, margin_estimates, noisy_tables
from sdv_privpgd.estimate.prior import PriorComparison, effective_rows
from sdv_privpgd.estimate.support import clear_support, last_held
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.mismatch import ask_first, require_categories
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.inference.question_list import queries_for
from sdv_privpgd.inference.questions import Undetected
from sdv_privpgd.inference.refits import Refits
from sdv_privpgd.methods import pipeline
from sdv_privpgd.methods.method import Method
from sdv_privpgd.methods.pipeline import Release
from sdv_privpgd.privacy.boundary import EncodedTable, PrivateTable, without_table
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.ledger import FitLedger, PrivacyLedger
from sdv_privpgd.privacy.queries import GroupedMarginalQuery, MarginalQuery, Measurement, Query
from sdv_privpgd.report.measures import PublicFacts
from sdv_privpgd.report.warnings import warnings_of
from sdv_privpgd.sampling.families import RowMaker, VisitSampler
from sdv_privpgd.sampling.sampler import KeyStream, Sampler
from sdv_privpgd.synthesize.engine import Engine, Model


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """What a fit leaves. Public.

    Attributes:
        description: Of the table, with what was found.
        schema: All that has codes.
        release: The answers and the model; ``None`` where no column is modelled.
        sampler: Makes rows, where there is a model.
        keys: Makes the keys of rows, where some are declared.
        diagnostics: For columns whose range did not stand out from the noise, or beyond whose
            declared range many rows lie, what is to be said of it.
        refusals: Sentences on constraints that the found columns cannot meet.
        settings: Those of the fit.
        options: What else the fit was told, by name, as far as a report is to say it.
        starts: Of a fit that got more budget, how many of the answers each earlier model was made
            of, from which the next one started.
        has_more: Whether more budget was added to it at any door, which another fit has.
    """

    description: Description
    schema: Schema
    release: Release | None = None
    sampler: RowMaker | None = None
    keys: KeyStream = field(default_factory=KeyStream)
    diagnostics: Mapping[str, str] = field(default_factory=dict)
    refusals: Sequence[str] = ()
    settings: Settings | None = None
    options: Mapping[str, Any] | None = None
    starts: tuple[int, ...] = ()
    has_more: bool = False

    @property
    def num_rows(self) -> int | None:
        """The number of rows, noisy where it is private; ``None`` where nothing was measured."""
        if self.release is None:
            return None
        return round(estimate_total(self.release.domain, self.release.measurements).value)

    @property
    def refits(self) -> Refits:
        """What repeats the fit on simulated answers.

        Raises:
            ValueError: Where nothing was measured, or the tables were not kept.
        """
        if self.release is None or self.settings is None:
            raise ValueError("Nothing that could be repeated is known of this fit.")
        return self.refits_by(method_for(self.settings, self.description))

    def refits_by(self, engine: Engine) -> Refits:
        """What repeats the fit of a model that this engine has made."""
        release: Any = self.release
        maker = maker_of(self.description, self.schema, release.held, release.measurements)
        return Refits(release=release, engine=engine, sampler_of=maker)

    @property
    def undetected(self) -> dict[str, Undetected]:
        """For each column whose range was found, the rows that may lie beyond it."""
        rows = 0.0 if self.release is None else SPREAD * rows_unseen(self.release.ledger)
        stated = self.description.declared.stated
        found = {
            name: Undetected(rows=rows, below=facts.low is None, above=facts.high is None)
            for name, facts in stated.items()
            if rows and isinstance(facts, NumberFacts | DateFacts) and facts.lacks_domain
        }
        for each in self.schema.differences:  # of columns in order: none is below 0
            lost = sum(found[end.name].rows for end in (each.low, each.high) if end.name in found)
            if lost:
                found[each.name] = Undetected(rows=lost, below=False, above=True)
        return found

    def warnings(self, ledger: PrivacyLedger) -> tuple[str, ...]:
        """What is worth a look, a sentence each."""
        description = self.description
        said = (
            *(f"Not enforced: {reason}" for reason in self.refusals),
            *(said for name, said in self.diagnostics.items() if name not in description.facts),
            *description.on_dates,
            *description.on_prior,
            *on_ends(description.declared.stated, description.known),
            *description.on_ids(ledger.people, says_whose=ledger.says_whose),
        )
        return warnings_of(
            PublicFacts(
                schema=self.schema,
                release=self.release,
                ledger=ledger,
                declared=description.facts,
                diagnostics=self.diagnostics,
                counted=self.diagnostics.keys() | description.undeclared.keys(),
                added=description.added,
                handed=[name for name in description.given if name not in description.clocks],
                rules=(*description.limits.rules, *description.said_by_links(self.schema)),
                settings=said,
            )
        )


class Fit:
    """The steps of one fit. It holds the ledger, and what was found so far.

    With ``diagnostics``, of a discovery that the description holds already, none is made. One that
    goes on has the ledger with which it had ``begun``, and what discovery was ``answered`` by then.
    ``given`` gives the tables of columns that another fit has asked about, in codes of a schema.

    Raises ``ValueError`` if the ledger says that others are protected than the settings do.
    """

    def __init__(
        self,
        settings: Settings,
        description: Description,
        *,
        diagnostics: Mapping[str, str] | None = None,
        begun: PrivacyLedger | None = None,
        answered: Sequence[Answered] = (),
        given: Callable[[Schema], Sequence[Measurement]] | None = None,
    ) -> None:
        self.settings = settings
        self.description = description
        self.has_discovered = self._was_told = diagnostics is not None
        self.diagnostics: Mapping[str, str] = {} if diagnostics is None else diagnostics
        self.curator: Curator | None = None
        self._given = given
        if begun is None:
            undeclared = {} if self.has_discovered else description.undeclared
            begun = settings.ledger(reserved_delta(undeclared, settings.delta) + settings.own_delta)
        settings.require(begun)
        self.shared = FitLedger(begun)
        self.transcript = Transcript(answered)

    def discover(
        self, table: PrivateTable, progress: Progress = silent, *, stops_at: Collection[str] = ()
    ) -> None:
        """Finds privately what is not declared, and the shapes of differences.

        It raises ``DomainMismatchError`` where the columns that it ``stops_at`` have cells that
        are not as declared, or no categories.
        """
        inquiry = self._inquiry(table, progress)
        self.ask_first(table, stops_at=stops_at)
        self._doubt_prior(inquiry)
        description, budget = self.description, self.shared.ledger.budget
        share, (looked, more) = Fraction(self.settings.discovery_share), self.shares
        found = discover(
            inquiry,
            description.undeclared,
            looked,
            for_categories=more,
            short=description.short_ranges if share else {},
            require=lambda values, number: require_categories(
                values, number, stops_at, self.shared.ledger
            ),
        )
        facts, rows = found.facts, found.num_rows if inquiry.rows is None else inquiry.rows
        if rows is not None and description.num_bins is None:
            listed = len(_listed(replace(description, discovered=facts)))
            asked, method = description.measured, self.settings.method
            number = codes_paid_for(asked, rows, self.shared.ledger, method, listed)
            facts = self._with_codes(facts, number)
        description = replace(description, discovered=facts)
        fine, part = description.shapeless.differences, budget * share * self._for_shapes
        shapes = find_shapes(inquiry, fine, part)
        self.description = replace(description, shapes=shapes)
        self.diagnostics, self.has_discovered = {**self.diagnostics, **found.diagnostics}, True
        self._method.require(self.description.attributes.domain())

    def _with_codes(self, found: Mapping[str, ColumnFacts], most: int) -> dict[str, ColumnFacts]:
        """What was found, with as many codes, up to ``most``, as the method can model."""
        method, stated = self.settings.method, self.description.stated
        for number in range(most, 4, -1):
            facts = with_codes(found, stated, number)
            domain = replace(self.description, discovered=facts).shapeless.domain()
            if method.refusal(domain, method.cliques(domain)) is None:
                return facts
        return with_codes(found, stated, 4)

    def ask_first(self, table: PrivateTable, *, stops_at: Collection[str] = ()) -> None:
        """Asks how many cells of each column are not as declared. It raises as ``discover``."""
        known, weights = self.description.given, self.settings.people.weights
        declared = {n: each for n, each in self.description.facts.items() if n not in known}
        if weights is not None:
            name, low, high = weights
            declared[name] = WeightFacts(low=low, high=high)
            stops_at = {*stops_at, name} if stops_at else ()
        public = self.description.public
        of_prior = () if public is None else public.declares
        inquiry = self._inquiry(table)
        self.diagnostics, self._outside = ask_first(
            inquiry, declared, stops_at=stops_at, of_prior=of_prior
        )

    def _inquiry(self, table: PrivateTable, progress: Progress = silent) -> Inquiry:
        known = self.transcript
        return Inquiry(table=table, shared=self.shared, transcript=known, progress=progress)

    def _doubt_prior(self, inquiry: Inquiry) -> None:
        """Forgets what public rows say of where rows lie in columns where answers know better.

        It asks how many rows are in each of the cells that the public rows suggest. A column whose
        rows surely lie elsewhere is looked into and fitted as if there were no prior, and so are
        all if the others are far together. One of which the public rows are too few to tell where
        rows lie, or beyond whose range many rows are, is only looked into.
        """
        description, public = self.description, self.description.public
        if public is None or not public.replaced:
            return
        own = {name: description.stated[name] for name in public.replaced}
        schema = Schema.of(own, description.most_bins)
        part, what = Fraction(3, 100), "where rows lie, in cells of public rows"
        counted = inquiry.about(schema).tables(own, self.shared.ledger.budget * part, what)
        answers, rows = [*counted.values()], inquiry.rows
        total = estimate_total(schema.domain(), answers).value if rows is None else max(rows, 1)
        number, prior = effective_rows(public.weights), replace(public, doubted=()).codes(schema)
        found = PriorComparison.of(prior, number, answers, total)
        wrong, vague = ({*compress(own, each)} for each in (found.is_wrong, found.is_rough))
        looked = wrong | vague | self._outside
        stated = {name: public.replaced[name] for name in own if name in looked}
        self.description = replace(
            description,
            facts={**description.facts, **stated},
            public=replace(public, doubted=tuple([name for name in own if name in wrong])),
        )

    @property
    def shares(self) -> tuple[Fraction, Fraction]:
        """The parts of the budget for discovery, and beside that for categories. Public."""
        whole = Fraction(self.settings.discovery_share) * (1 - self._for_shapes)
        looked, more = self.description.parts_looked_into
        return whole * looked, whole * more

    @property
    def _for_shapes(self) -> Fraction:
        return part_for_shapes(len(self.description.pairs), len(self.description.modelled))

    @property
    def has_answers(self) -> bool:
        """Whether it has answers that a later fit can go on from."""
        if self.curator is not None:
            return True
        # Delta is kept for each question with a threshold once: none can have ended in its middle.
        asked = sum(charge.threshold is not None for charge in self.shared.ledger.charges)
        answered = sum(each.has_threshold for each in self.transcript.answered)
        return not self._was_told and bool(self.transcript.answered) and asked == answered

    def ask(
        self,
        table: PrivateTable | EncodedTable | None,
        progress: Progress = silent,
        *,
        known: Sequence[Measurement] = (),
        again: bool = False,
    ) -> None:
        """Asks for all that is left of the budget; without a table nothing beyond what is known.

        What is known is not asked once more, unless ``again``.
        """
        schema = self.description.attributes
        if not schema.columns:
            return
        if table is None:
            self.curator = without_table(schema, self.shared, known)
        else:
            self.curator = table.curator(schema, self.shared, known=known, progress=progress)
            pipeline.ask(self.curator, self._method, again=again, progress=progress)

    def model(
        self,
        progress: Progress = silent,
        *,
        warm_start: Model | None = None,
        starts: Sequence[int] = (),
    ) -> Fitted:
        """Makes a model of the answers, and rows of the model: post-processing.

        ``starts`` say how many answers each earlier model was made of. The last of these is the
        ``warm_start``; without it they are made anew.
        """
        description, schema = self.description, self.description.attributes
        fitted = Fitted(
            description=description,
            schema=schema,
            keys=KeyStream(
                patterns=description.patterns,
                dtypes=description.dtypes,
                repeated=description.repeated_ids,
            ),
            diagnostics=self.diagnostics,
            refusals=description.limits.refusals,
            settings=self.settings,
            starts=tuple(starts),
        )
        if self.curator is None:
            return fitted
        method = self._method
        answers = pipeline.Answers.of(self.curator, method)
        if self._given is not None:
            answers = replace(answers, given=tuple(self._given(schema)))
        for number in () if warm_start is not None else starts:
            earlier = replace(answers, measurements=answers.measurements[:number])
            warm_start = pipeline.fit(earlier, method, warm_start=warm_start).model
        release = pipeline.fit(answers, method, warm_start=warm_start, progress=progress)
        make = maker_of(description, schema, release.held, self.tables)
        return replace(fitted, release=release, sampler=make(release.model, self.settings.seed))

    @property
    def tables(self) -> list[Measurement]:
        """The answers that are tables of counts."""
        return [] if self.curator is None else tables_of(self.curator.measurements)

    @property
    def _method(self) -> Method:
        """The method, told what is public of the attributes."""
        return method_for(self.settings, self.description)


def method_for(settings: Settings, description: Description) -> Method:
    """The method, told the public facts on the table that it needs."""
    schema, rules = description.attributes, description.limits.rules
    possible = possible_of([*rules, *schema.differences], schema.domain())
    method: Any = settings.method.for_table(schema.attributes, possible)
    asked = _listed(description)
    method = replace(method, questions=asked) if asked else method
    return method if description.public_rows is None else method.given(description.public_rows)


def _listed(description: Description) -> Sequence[Query]:
    """The tables of the questions that are listed."""
    columns = description.attributes.named
    return queries_for(description.questions, columns, description.counted_by)


def tables_of(answers: Iterable[Measurement]) -> list[Measurement]:
    """The answers that are tables of counts."""
    return [
        each for each in answers if isinstance(each.query, MarginalQuery | GroupedMarginalQuery)
    ]


_LIKELY = 2.0
"""Where values are declared to be missing at times, so many standard deviations of rows without one
are enough to have some. Elsewhere a single one would decide what dtype comes back."""


def maker_of(
    description: Description,
    schema: Schema,
    held: Mapping[str, np.ndarray],
    measured: Sequence[Measurement],
) -> Callable[[Model, int], RowMaker]:
    """Returns what makes the sampler of a model of a table, given a seed, from the first row on.

    It is given what was found of the table, all that has codes, the codes of each attribute that
    surely hold rows, and all that was measured.
    """
    limits, visits, domain = description.limits, description.visits, schema.domain()
    asked = {name for each in tables_of(measured) for name in each.query.clique}  # pyright: ignore
    likely = clear_support(domain, measured, _LIKELY)
    may_miss = {name for name, facts in description.stated.items() if facts.nullable}
    missing = {
        name: np.append(held[name][:-1], held[name][-1] | likely[name][-1])
        for name in held.keys() & may_miss
    }
    margins = margin_estimates(noisy_tables(domain, measured), 1) if description.orders else {}
    times = {since(name) for name in description.orders}
    lasts = {name: last_held(own) for (name,), own in margins.items() if name in times}
    # That a row has none before it is no value that only noise may have produced.
    added = {name: np.ones_like(held[name]) for name in description.added}
    make = partial(
        Sampler,
        schema,
        held={**held, **missing, **added},
        rules=limits.rules,
        predicates=limits.checks,
        # No model knows those of which nothing was asked.
        differences=tuple(each for each in schema.differences if each.name in asked),
        last={name: code for name, code in lasts.items() if code >= 0},
    )
    return make if visits is None else partial(_in_order, make, visits)


def _in_order(make: Callable[..., Sampler], visits: Visits, model: Model, seed: int) -> RowMaker:
    return VisitSampler(make(model, seed), visits)


_SHARPNESS = 1.2
"""The number of codes is this many times the square root of the rows beside one standard deviation
of a cell's noise. Beside the former 0.8 with at least 16 codes, SDMetrics' quality of eight tables
rises from .576 to .593 for 300 rows at epsilon 1 and from .852 to .859 for 5,000 (means over three
draws); of four of them from .771 to .786 for 5,000 at 0.2, where 1.6 has .791 and 2.4 .773
(``tests/benchmarks declaring --arms declared --rows 300 --seeds 3``)."""


def codes_paid_for(
    columns: Collection[str],
    num_rows: float,
    ledger: PrivacyLedger,
    method: Method,
    listed: int = 0,
) -> int:
    """The number of codes of a number or date: 4 to 32.

    A cell of a pair then has about as many rows, on average, as its noise has standard deviations,
    if all that is left on the ledger after discovery, and after so many ``listed`` tables, goes to
    the pairs that the method is likely to ask for. The number of rows is noisy where it is private.
    """
    cliques = method.cliques(Domain(tuple(columns), (2,) * len(columns)))
    pairs = [MarginalQuery(clique) for clique in cliques if len(clique) > 1]
    if not pairs or not ledger.remaining:
        return USUAL_BINS
    left = ledger.remaining * (1 - pipeline.part_of_listed(listed))
    stddev = pipeline.noise_of(ledger, pairs, left)
    codes = round(_SHARPNESS * math.sqrt(max(num_rows, 1.0) / stddev))
    return min(max(codes, 4), USUAL_BINS)


def with_codes(
    found: Mapping[str, ColumnFacts], stated: Mapping[str, ColumnFacts], number: int
) -> dict[str, ColumnFacts]:
    """What was found of columns. Numbers and dates of known shape get so many codes.

    Those of which it is ``stated`` how many they have keep theirs.
    """
    cut = {
        name: replace(facts, num_bins=number)
        for name, facts in found.items()
        if isinstance(facts, NumberFacts | DateFacts) and facts.frequencies is not None
        if getattr(stated[name], "num_bins", None) is None
    }
    return {**found, **cut}
