"""A curator that writes down what is asked and answered, and can give the answers of another run.

All that a fit does may depend on the noisy answers alone. So a run is recorded, and repeated on
other tables with its answers in place of their own: everything that leaves it must stay the same.
The exact answers, which the recording computes for itself, must differ between neighbors by no
more than was charged.

The real ``Curator`` does all the work, in recorded and in repeated runs: it charges, counts and
draws noise. What it gives out is exchanged afterwards. Only an ``AuditedTable`` gives such
curators, and it holds a made-up table: it refuses any other.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import repeat
from typing import Any

import numpy as np

from sdv_privpgd.audit.tables import MadeUp
from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.columns.readings import Rarer, Readable, Reading
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.curator import Curator, Trainer
from sdv_privpgd.privacy.ledger import Charge, FitLedger
from sdv_privpgd.privacy.noise import WordSource
from sdv_privpgd.privacy.queries import Measurement, ModelErrorQuery, Query, answers

_KEY = b"of no private table"
"""By which rows of people are chosen: neighbors are compared under the same key."""

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


@dataclass(eq=False)
class Event:
    """One call of a curator: what was asked, charged and given."""

    question: tuple  # the question, in a form that compares
    kind: str  # ``measure``, ``discover``, ``select`` or ``train``
    queries: Sequence[Any] = ()  # those that were measured or scored
    required: int = 0  # the squared sensitivity that the queries declare, for one person
    mu_squared: Fraction = Fraction(0)  # what it was to cost
    charges: tuple[Charge, ...] = ()  # what was charged for it
    # For each answer its true numbers by cell, or by value and type; for a choice its scores; for a
    # training nothing: ``training`` watches one.
    exact: list[dict] = field(default_factory=list)
    # For each answer the same of what was given out; for a choice the index.
    given: list[dict] = field(default_factory=list)
    stddevs: list[float] = field(default_factory=list)  # what the answers say of their noise
    units: int = 1  # of a count of one. All numbers are in them
    is_of_rarer: bool = False  # whether values were counted of a part of the rows
    steps: int = 0  # how many steps a training took
    noise: float = 0.0  # of each of these steps, as the trainer says, in clips
    # What was given out: of a measurement and a training each answer and its noise.
    result: Any = None
    dataset: Any = None  # the made-up rows that it was asked of, as codes

    def residuals(self) -> list[np.ndarray]:
        """The noise of each answer that was measured, by cell."""
        if self.kind != "measure":
            return []
        return [
            np.array([given[cell] - number for cell, number in exact.items()])
            for exact, given in zip(self.exact, self.given, strict=True)
        ]


@dataclass(eq=False)
class Tape:
    """All calls of the curators of one run, in order, and what it can be told to answer."""

    events: list[Event] = field(default_factory=list)  # what was asked and answered
    answers: "Tape | None" = None  # the tape whose answers are given in place of the own ones
    schema: Schema | None = None  # of the codes that were asked about last
    readings: Sequence[Reading | Readable] = ()  # of the first look

    def frozen(self, event: Event) -> Any:
        """What is to be given out: of the other tape if it was asked the same, else its own."""
        place = len(self.events) - 1
        if self.answers is None or place >= len(self.answers.events):
            return event.result
        other = self.answers.events[place]
        return other.result if other.question == event.question else event.result


class AuditedTable(PrivateTable):
    """A made-up table whose curators write down what they are asked."""

    __slots__ = ("_tape",)

    def __init__(self, opened: PrivateTable, made: Any, tape: Tape) -> None:
        """Takes an opened table and the made-up one, or ones, that it was opened from.

        Raises ``TypeError`` unless the columns are those of the made-up table themselves.
        """
        source, families = opened._source, getattr(opened._source, "_families", None)
        if families is not None:
            families.key, table = _KEY, source._table  # pyright: ignore[reportAttributeAccessIssue]
            source, made = families.sources[table], made.of(table)
        whole = getattr(source, "inner", source)  # without a bound on people
        if hasattr(opened._source, "_key"):
            vars(opened._source)["_key"] = _KEY  # of all tables that are compared
        columns = getattr(whole, "columns", None)
        if not isinstance(made, MadeUp) or columns is None or not made.holds(columns):
            raise TypeError("An audit's curators answer for tables alone that it has made up.")
        super().__init__(opened._source, bound=opened._bound)
        self._tape = tape

    def curator(self, schema: Schema, shared: FitLedger, **how: Any) -> Curator:
        self._tape.schema = schema
        return _Recorded(super().curator(schema, shared, **how), shared, self._tape)

    def first_queries(
        self,
        readings: Sequence[Reading | Readable],
        shared: FitLedger,
        progress: Progress = silent,
        rarer: Rarer | None = None,
    ) -> Curator:
        self._tape.readings = self._tape.readings if rarer else readings
        return _Recorded(
            super().first_queries(readings, shared, progress, rarer), shared, self._tape
        )


def watched(curator: Curator, shared: FitLedger, tape: Tape) -> Curator:
    """The same curator, who writes down what it is asked and gives the answers that it has.

    Raises ``TypeError`` for a tape that has other answers to give.
    """
    if tape.answers is not None:
        raise TypeError("Answers of another run are given for made-up tables alone.")
    return _Recorded(curator, shared, tape)


class _Recorded(Curator):
    """A curator that writes on a tape, and gives out what the tape says."""

    def __init__(self, real: Curator, shared: FitLedger, tape: Tape) -> None:
        super().__init__(real._dataset, shared, values=real._values, known=real.measurements)
        self._tape = tape

    @contextmanager
    def _event(
        self, kind: str, question: tuple, queries: Sequence[Any], squares: Sequence[int], mu: Any
    ) -> Iterator[Event]:
        """A call, on the tape, and afterwards with what was charged for it."""
        whole = (self.ledger.rows_counted * self.ledger.units) ** 2
        event = Event((kind, *question), kind, queries, whole * sum(squares), Fraction(mu))
        charges, event.units = len(self.ledger.charges), self.ledger.units
        event.dataset = self._dataset
        self._tape.events.append(event)
        yield event
        event.charges = self.ledger.charges[charges:]

    def _squares(self, queries: Iterable[Any]) -> list[int]:
        return [query.l2_sensitivity_squared(self.ledger.adjacency) for query in queries]

    def measure(
        self, queries: Sequence[Query], mu_squared: Fraction, *, what: str, **how: Any
    ) -> list[Measurement]:
        queries, known = tuple(queries), len(self.measurements)
        forms, squares = tuple(map(self._form, queries)), self._squares(queries)
        question = forms, Fraction(mu_squared), what
        with self._event("measure", question, queries, squares, mu_squared) as event:
            measured = super().measure(queries, mu_squared, what=what, **how)
            event.exact = [by_cell(answer) for answer in answers(queries, self._dataset)]
            event.given = [by_cell(in_units(each.answer, event.units)) for each in measured]
            event.stddevs = [each.stddev for each in measured]
        event.result = [(each.answer, each.stddev) for each in measured]
        given = [
            # What is public under the adjacency is given as it is.
            replace(each, answer=answer.copy()) if each.stddev and stddev else each
            for each, (answer, stddev) in zip(measured, self._tape.frozen(event), strict=True)
        ]
        self._measurements[known:] = given
        return given

    def discover(
        self,
        mu_squared: Fraction,
        delta: Fraction,
        *,
        what: str,
        names: Sequence[str] | None = None,
    ) -> dict:
        asked = self._values.names if names is None else tuple(names)
        question = asked, Fraction(mu_squared), Fraction(delta), what
        squares = [self.ledger.adjacency.cells] * len(asked[: self._values.most])
        with self._event("discover", question, asked, squares, mu_squared) as event:
            found = super().discover(mu_squared, delta, what=what, names=names)
            pairs, parts = [self._values.counts(name).pairs() for name in asked], self._values.parts
            event.exact = [_by_value([(key, n / parts) for key, n in own]) for own in pairs]
            event.is_of_rarer = self._values.most is not None
            ones = [found.get(name, []) for name in asked]
            event.given = [_by_value([(key, n * event.units) for key, n in own]) for own in ones]
        event.result = found
        return {name: list(values) for name, values in self._tape.frozen(event).items()}

    def select(self, scores: Sequence[ModelErrorQuery], mu_squared: Fraction, *, what: str) -> int:
        scores = tuple(scores)
        question = tuple(map(self._form, scores)), Fraction(mu_squared), what
        squares = [max(self._squares(scores), default=0)]
        with self._event("select", question, scores, squares, mu_squared) as event:
            event.result = super().select(scores, mu_squared, what=what)
            own = [score.in_units(event.units) for score in scores]
            event.exact = [dict(enumerate(int(each.answer(self._dataset)[0]) for each in own))]
        return self._tape.frozen(event)

    def train(
        self, trainer: Trainer, mu_squared: Fraction, delta: Fraction, **how: Any
    ) -> Measurement:
        query, known = trainer.query, len(self.measurements)
        question = self._form(query), Fraction(mu_squared), Fraction(delta), query.describe()
        queries, squares = (query,) * trainer.steps, self._squares([query])
        with self._event("train", question, queries, squares, mu_squared) as event:
            counted = _Counted(trainer, is_idle=self._tape.frozen(event) is not None)
            trained = super().train(counted, mu_squared, delta, **how)
        event.steps, event.noise = counted.taken, getattr(trainer, "noise", 0.0)
        event.stddevs, event.result = [trained.stddev], [(trained.answer, trained.stddev)]
        ((answer, stddev),) = self._tape.frozen(event)
        given = replace(trained, answer=answer.copy(), stddev=stddev)
        self._measurements[known:] = [given]
        return given

    def _form(self, query: Any) -> tuple:
        """A query in a form that compares: what it is and what it is about."""
        own = {name: _plain(value) for name, value in getattr(query, "__dict__", {}).items()}
        return type(query).__qualname__, query.describe(), tuple(sorted(own.items()))


class _Counted:
    """A trainer whose steps are counted; an idle one learns nothing, where others' weights come."""

    def __init__(self, trainer: Trainer, *, is_idle: bool) -> None:
        self.query, self.steps, self.taken = trainer.query, trainer.steps, 0
        self.prepare, self.weights = trainer.prepare, trainer.weights
        self._trainer, self._is_idle = trainer, is_idle

    def train(self, codes: np.ndarray, words: WordSource) -> Iterator[None]:
        idle = repeat(None, self.steps)
        for _ in idle if self._is_idle else self._trainer.train(codes, words):
            self.taken += 1
            yield


def in_units(answer: np.ndarray, units: int) -> np.ndarray:
    """An answer in units: whole numbers, if it is made of them."""
    if units == 1:
        return answer
    nearest = np.rint(scaled := answer * units)
    are_whole = bool((np.abs(scaled - nearest) <= 1e-9 * np.maximum(np.abs(scaled), 1)).all())
    return nearest.astype(np.int64) if are_whole else scaled


def comparable(answer: np.ndarray) -> tuple:
    """The shape and the numbers of an answer, as one that compares."""
    return answer.shape, answer.astype(float).tobytes()


def by_cell(answer: np.ndarray) -> dict:
    """The numbers of an answer by cell."""
    return dict(zip(np.ndindex(answer.shape), answer.ravel().tolist(), strict=True))


def changed(here: Event, there: Event) -> int:
    """The squared L2 distance of two tables' true answers, or of the score that changes most."""
    differences = [
        [x.get(cell, 0) - y.get(cell, 0) for cell in x.keys() | y.keys()]
        for x, y in zip(here.exact, there.exact, strict=False)
    ]
    squares = [each**2 for answer in differences for each in answer]
    return max(squares, default=0) if here.kind == "select" else sum(squares)


def _by_value(counted: Sequence[tuple[Any, float]]) -> dict:
    return {(type(key), key): number for key, number in counted}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype.str, value.tobytes()
    if isinstance(value, Mapping):
        return tuple((name, _plain(each)) for name, each in value.items())
    return _ADDRESS.sub("", repr(value))
