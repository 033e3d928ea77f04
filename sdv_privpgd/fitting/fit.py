"""One fit: what is asked of a private table, and what is made of the answers.

The steps are those of ``Fit``, in order. ``discover`` and ``ask`` are handed the private table, as
an object that shows nothing and gives curators. All else is public.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.columns.facts import ColumnFacts, DateFacts, NumberFacts
from sdv_privpgd.columns.mismatch import on_ends
from sdv_privpgd.columns.naming import on_names, on_repeated_ids
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.discovery.first_look import reserved_delta
from sdv_privpgd.discovery.plan import (
    SPREAD,
    Discovery,
    discover,
    find_shapes,
    part_for_shapes,
    rows_unseen,
)
from sdv_privpgd.discovery.transcript import Answered, Transcript
from sdv_privpgd.estimate.noisy_tables import estimate_total
from sdv_privpgd.fitting.cells import codes_paid_for, with_codes
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.making import SamplerMaker, method_for
from sdv_privpgd.fitting.mismatch import ask_first, require_categories
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.inference.questions import Unseen
from sdv_privpgd.inference.refits import Refits
from sdv_privpgd.methods import pipeline
from sdv_privpgd.methods.method import Method
from sdv_privpgd.methods.pipeline import Release
from sdv_privpgd.privacy.boundary import EncodedTable, PrivateTable, without_table
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.ledger import Books, PrivacyLedger
from sdv_privpgd.privacy.queries import GroupedMarginalQuery, MarginalQuery, Measurement
from sdv_privpgd.report.warnings import PublicFacts, warnings_of
from sdv_privpgd.sampling.stream import KeyStream
from sdv_privpgd.sampling.visits import RowMaker
from sdv_privpgd.synthesize.engine import Model


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """What a fit leaves. Public.

    Attributes:
        description: Of the table, with what was found.
        schema: All that has codes.
        release: The answers and the model; ``None`` where no column is modelled.
        sampler: Makes rows, where there is a model.
        keys: Makes the keys of rows, where some are declared.
        doubts: For columns whose range did not stand out from the noise, or beyond whose declared
            range many rows lie, what is to be said of it.
        refusals: Sentences on constraints that the found columns cannot meet.
        settings: Those of the fit.
        told: What else the fit was told, by name, as far as a report is to say it.
        starts: Of a fit that was refined, how many of the answers each earlier model was made of,
            from which the next one started.
    """

    description: Description
    schema: Schema
    release: Release | None = None
    sampler: RowMaker | None = None
    keys: KeyStream = field(default_factory=KeyStream)
    doubts: Mapping[str, str] = field(default_factory=dict)
    refusals: Sequence[str] = ()
    settings: Settings | None = None
    told: Mapping[str, Any] | None = None
    starts: tuple[int, ...] = ()

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
        release = self.release
        return Refits(
            release=release,
            engine=method_for(self.settings, self.description),
            sampler_of=SamplerMaker.of(
                self.description, self.schema, release.held, release.measurements
            ),
        )

    @property
    def unseen(self) -> dict[str, Unseen]:
        """For each column whose range was found, the rows that may lie beyond it."""
        rows = 0.0 if self.release is None else SPREAD * rows_unseen(self.release.ledger)
        stated = self.description.declared.stated
        found = {
            name: Unseen(rows=rows, below=facts.low is None, above=facts.high is None)
            for name, facts in stated.items()
            if rows and isinstance(facts, NumberFacts | DateFacts) and facts.lacks_domain
        }
        for each in self.schema.differences:  # of columns in order: none is below 0
            lost = sum(found[end.name].rows for end in (each.low, each.high) if end.name in found)
            if lost:
                found[each.name] = Unseen(rows=lost, below=False, above=True)
        return found

    def warnings(self, ledger: PrivacyLedger) -> tuple[str, ...]:
        """What is worth a look, a sentence each."""
        description = self.description
        ids = [name for name in description.repeated_ids if name != ledger.people]
        facts = PublicFacts(
            schema=self.schema,
            release=self.release,
            ledger=ledger,
            declared=description.facts,
            doubts=self.doubts,
            counted=self.doubts.keys() | description.undeclared.keys(),
            added=() if description.visits is None else description.visits.added,
            settings=(
                *(f"Not enforced: {reason}" for reason in self.refusals),
                *description.on_days,
                *on_ends(description.declared.stated, description.known),
                *on_repeated_ids(ids, says_whose=ledger.says_whose),
            ),
        )
        return warnings_of(facts)


class Fit:
    """The steps of one fit. It holds the books, and what was found so far.

    Args:
        settings: What it may spend, and by which method.
        description: What is public of the table.
        doubts: Of a discovery that the description holds already. None is made then.
        begun: The books of a fit that failed, to go on with them.
        answered: What its discovery had been answered when it failed.
        given: Gives the tables of the columns that another fit has asked about, in codes of a
            schema.

    Raises ``ValueError`` if the books say that others are protected than the settings do.
    """

    def __init__(
        self,
        settings: Settings,
        description: Description,
        *,
        doubts: Mapping[str, str] | None = None,
        begun: PrivacyLedger | None = None,
        answered: Sequence[Answered] = (),
        given: Callable[[Schema], Sequence[Measurement]] | None = None,
    ) -> None:
        self.settings = settings
        self.description = description
        self.has_discovered = self._was_told = doubts is not None
        self.doubts: Mapping[str, str] = {} if doubts is None else doubts
        self.curator: Curator | None = None
        self._given = given
        if begun is None:
            undeclared = {} if self.has_discovered else description.undeclared
            begun = settings.ledger(reserved_delta(undeclared, settings.delta) + settings.own_delta)
        settings.require(begun)
        self.books = Books(begun)
        self.transcript = Transcript(answered)

    def discover(
        self,
        table: PrivateTable,
        progress: Progress = silent,
        *,
        stops_at: Collection[str] = (),
    ) -> None:
        """Finds privately what is not declared, and the shapes of differences.

        It raises ``DomainMismatchError`` where the columns that it ``stops_at`` have cells that
        are not as declared, or no categories.
        """
        description, budget = self.description, self.books.ledger.budget
        known, rows = self.transcript, table.known_rows(self.settings.adjacency)
        self.ask_first(table, stops_at=stops_at)
        apart = part_for_shapes(len(description.pairs), len(description.modelled))
        share = Fraction(self.settings.discovery_share)
        looked, more = self.shares
        found = discover(
            table,
            description.undeclared,
            self.books,
            looked,
            for_categories=more,
            short=description.short_ranges if share else {},
            transcript=known,
            require=lambda values, number: require_categories(
                values, number, stops_at, self.books.ledger
            ),
            progress=progress,
        )
        facts = self._with_codes(found, rows)
        description = replace(description, discovered=facts)
        fine, part = description.shapeless.differences, budget * share * apart
        shapes = find_shapes(table, fine, self.books, part, transcript=known, progress=progress)
        self.description = replace(description, shapes=shapes)
        self.doubts = found.doubts
        self.has_discovered = True
        self._method.require(self.description.attributes.domain())

    def ask_first(self, table: PrivateTable, *, stops_at: Collection[str] = ()) -> None:
        """Asks how many cells of each column are not as declared.

        It raises ``DomainMismatchError`` where those of a column that it ``stops_at`` are too many.
        """
        known = self.description.given
        declared = {n: each for n, each in self.description.facts.items() if n not in known}
        ask_first(table, declared, self.books, self.transcript, stops_at=stops_at)

    @property
    def shares(self) -> tuple[Fraction, Fraction]:
        """The parts of the budget for discovery, and beside that for categories. Public."""
        description = self.description
        apart = part_for_shapes(len(description.pairs), len(description.modelled))
        whole = Fraction(self.settings.discovery_share) * (1 - apart)
        return whole * description.share_looked_into, whole * description.more_for_categories

    @property
    def told_before(self) -> list[str]:
        """Sentences on what is worth a look by names and declarations alone."""
        description = self.description
        named = on_names(description.facts, says_whose=self.settings.people.is_said)
        return [*named, *description.on_days]

    @property
    def has_answers(self) -> bool:
        """Whether it has answers that a later fit can go on from.

        A discovery has them, unless it ended in the middle of a question with a threshold: delta
        is kept for each of them once.
        """
        if self.curator is not None:
            return True
        asked = sum(charge.threshold is not None for charge in self.books.ledger.charges)
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

        What is known is not asked once more, unless it is to be asked ``again``.
        """
        schema = self.description.attributes
        if not schema.columns:
            return
        if table is None:
            self.curator = without_table(schema, self.books, known)
        else:
            self.curator = table.curator(schema, self.books, known=known, progress=progress)
            pipeline.ask(self.curator, self._method, again=again, progress=progress)

    def model(
        self,
        progress: Progress = silent,
        *,
        warm_start: Model | None = None,
        starts: Sequence[int] = (),
    ) -> Fitted:
        """Makes a model of the answers, and rows of the model: post-processing.

        Args:
            progress: Told of the steps.
            warm_start: The model of earlier answers, if it is there.
            starts: How many answers each earlier model was made of; without a ``warm_start`` these
                models are made anew.
        """
        schema, limits = self.description.attributes, self.description.limits
        fitted = Fitted(
            description=self.description,
            schema=schema,
            keys=KeyStream(
                patterns=self.description.patterns,
                dtypes=self.description.dtypes,
                repeated=self.description.repeated_ids,
            ),
            doubts=self.doubts,
            refusals=limits.refusals,
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
        maker = SamplerMaker.of(self.description, schema, release.held, self.tables)
        sampler = maker(release.model, self.settings.seed)
        return replace(fitted, release=release, sampler=sampler)

    def _with_codes(self, found: Discovery, num_rows: int | None) -> dict[str, ColumnFacts]:
        """What was found, with the number of codes that the noise can pay for, if none is asked."""
        if self.description.num_bins is not None:
            return found.facts
        rows = found.num_rows if num_rows is None else num_rows
        if rows is None:
            return found.facts
        number = codes_paid_for(
            self.description.measured, rows, self.books.ledger, self.settings.method
        )
        return with_codes(found.facts, self.description.stated, number)

    @property
    def tables(self) -> list[Measurement]:
        """The answers that are tables of counts."""
        kinds = MarginalQuery | GroupedMarginalQuery
        answers = () if self.curator is None else self.curator.measurements
        return [answer for answer in answers if isinstance(answer.query, kinds)]

    @property
    def _method(self) -> Method:
        """The method, told what is public of the attributes."""
        return method_for(self.settings, self.description)
