"""Layer 3: what an attacker gains who knows the whole table but for one person.

The strongest test of a Gaussian release is the matched filter: the answers' deviations from what
they are without the person, weighed by what the person adds. Over many runs its values in the two
worlds differ by mu of their own standard deviations, and mu must not exceed what the ledger was
charged (Dong, Roth & Su 2022, Theorem 2). Several people who share no cell are attacked at once:
that makes as many comparisons of one run.

The curator is the real one with its real noise, the questions are those that the strategy asks,
over a few columns of the schema. Nothing is repeated and nothing frozen here.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from sdv_privpgd.audit.bounds import Attack
from sdv_privpgd.audit.recording import Event, Tape, in_units, watched
from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.methods import pipeline
from sdv_privpgd.methods.fixed import Independent
from sdv_privpgd.privacy.boundary import EncodedTable
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.ledger import Books, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency, CountQuery, GroupedMarginalQuery, MarginalQuery

_LINEAR = CountQuery, MarginalQuery, GroupedMarginalQuery


def attacked(settings: Settings, schema: Schema, runs: int, progress: Progress = silent) -> Attack:
    """Attacks a few people ``runs`` times in each of two worlds."""
    most_draws = 1 << 20  # draws of noise that are kept for the tests of its law
    ledger = settings.ledger()
    few, asked = _questions(settings, schema, ledger)
    people = _people(few, settings)
    effects, kept = _effects(people, asked, few, ledger)
    worlds = [_answering(few, ledger, people.world(index, kept)) for index in (0, 1)]
    base, sigmas = _exact(worlds[0], asked), _sigmas(worlds[0](), asked)
    noisy = sigmas > 0
    weights = effects[:, noisy] / sigmas[noisy]
    lengths = np.linalg.norm(weights, axis=1, keepdims=True)
    filters = np.divide(weights, lengths, out=np.zeros_like(weights), where=lengths > 0)
    scores = np.zeros((2, runs, len(kept)))
    keep = min(runs, max(most_draws // max(2 * int(noisy.sum()), 1), 1))
    draws = np.zeros((2, keep, int(noisy.sum())))
    whole = True
    truths = [_exact(world, asked)[noisy] for world in worlds]
    for run in progress(range(runs), "attack"):
        for index, world in enumerate(worlds):
            answers = _noisy(world(), asked)
            whole &= answers.dtype.kind == "i"
            values = answers[noisy]
            scores[index, run] = filters @ ((values - base[noisy]) / sigmas[noisy])
            if run < keep:
                draws[index, run] = values - truths[index]
    claim = math.sqrt(_charged(worlds[0](), asked))
    return Attack(
        claim=claim,
        without=scores[0].ravel(),
        within=scores[1].ravel(),
        people=len(kept),
        noise=draws.reshape(-1, draws.shape[-1]),
        errors=sigmas[noisy],
        whole=whole,
        names=few.domain().attributes,
    )


def fewer_columns(schema: Schema, number: int = 2) -> Schema:
    """So many columns, of the sizes that are quickest to attack."""
    usual_size = 12  # codes of a column that leave room for several people and are quick to count
    near = sorted(schema.columns, key=lambda column: abs(math.log(column.size / usual_size)))
    names = {column.name for column in near[:number]}
    return Schema(tuple(column for column in schema.columns if column.name in names))


@dataclass(frozen=True)
class _People:
    """Codes of people in two worlds: of shape (person, attribute)."""

    here: np.ndarray
    there: np.ndarray
    rows: int
    removes: bool

    def world(self, index: int, kept: Sequence[int] | None = None) -> np.ndarray:
        """The codes of a world, all rows of its people."""
        codes = (self.here, self.there)[index]
        codes = codes if kept is None else codes[list(kept)]
        codes = codes[:0] if self.removes and not index else codes
        return np.repeat(codes, self.rows, axis=0)


def _people(schema: Schema, settings: Settings) -> _People:
    """People who share no code of any column, in neither world."""
    sizes = np.array(schema.domain().sizes)
    removes = settings.adjacency is Adjacency.ADD_REMOVE
    most = int(sizes.min()) if removes else max(int(sizes.min()) // 2, 1)
    places = np.arange(most)[:, None]
    # Ends first: codes far apart are in different groups.
    low, high = np.broadcast_to(places, (most, len(sizes))), np.maximum(sizes - 1 - places, 0)
    return _People(low, high, settings.people.max_rows, removes)


def _questions(
    settings: Settings, schema: Schema, ledger: PrivacyLedger
) -> tuple[Schema, list[Event]]:
    """What the method asks about a few columns; if it refuses them, what any method could."""
    own, simple = settings.method.small(), Independent()
    for method, number in ((own, 2), (own, 3), (simple, 2)):
        few, books, tape = fewer_columns(schema, number), Books(ledger), Tape()
        codes = _people(few, settings).world(1)
        table = _table(few, codes, ledger)
        curator = watched(table.curator(few, books), books, tape)
        try:
            pipeline.ask(curator, method)
        except (ValueError, KeyError):  # a workload of other columns, or too few of them
            if method is simple:
                raise
            continue
        return few, [event for event in tape.events if event.kind == "measure" and event.queries]
    raise AssertionError("Independent() takes any columns.")


def _effects(
    people: _People, asked: Sequence[Event], schema: Schema, ledger: PrivacyLedger
) -> tuple[np.ndarray, list[int]]:
    """What each of some people adds to the answers, and who they are.

    No two share a cell. What all of them change, such as the number of rows, is left out, if little
    is lost by that; else one person is attacked alone.
    """
    # Share of mu^2 that may be left out, so that several people can be attacked at once.
    lost = 0.03

    def counted(person: int, index: int) -> np.ndarray:
        return _exact(_answering(schema, ledger, people.world(index, [person])), asked)

    each = [(counted(person, 0), counted(person, 1)) for person in range(len(people.here))]
    effects = np.array([there - here for here, there in each])
    if not all(isinstance(query, _LINEAR) for event in asked for query in event.queries):
        return effects[:1], [0]
    touched = np.array([(here != 0) | (there != 0) for here, there in each])
    shared = touched.all(axis=0)
    kept: list[int] = []
    for person, own in enumerate(touched & ~shared):
        if not (touched[kept] & own).any():
            kept.append(person)
    sigmas = _sigmas(_answering(schema, ledger, people.world(1, kept))(), asked)
    strength = np.divide(effects[0], sigmas, out=np.zeros_like(sigmas), where=sigmas > 0) ** 2
    if len(kept) == 1 or strength[shared].sum() > lost * strength.sum():
        return effects[:1], [0]
    return np.where(shared, 0.0, effects[kept]), kept


def _table(schema: Schema, codes: np.ndarray, ledger: PrivacyLedger) -> EncodedTable:
    """The codes of people who have as many rows each as they may have."""
    names = pd.Index(schema.domain().attributes)
    frame = pd.DataFrame(codes, columns=names)
    return EncodedTable(frame, bound=ledger.bound, rows=ledger.rows_per_person)


def _answering(schema: Schema, ledger: PrivacyLedger, codes: np.ndarray) -> Callable[[], Curator]:
    """Makes real curators for a world, each with empty books."""
    table = _table(schema, codes, ledger)
    dataset = table.curator(schema, Books(ledger))._dataset
    return lambda: Curator(dataset, Books(ledger))


def _noisy(curator: Curator, asked: Sequence[Event]) -> np.ndarray:
    answers = [
        in_units(measurement.answer.ravel(), curator.ledger.units)
        for event in asked
        for measurement in curator.measure(event.queries, event.mu_squared, what=event.asked[-1])
    ]
    return np.concatenate(answers)


def _sigmas(curator: Curator, asked: Sequence[Event]) -> np.ndarray:
    """The standard deviation that is promised for each number."""
    return np.concatenate(
        [
            np.full(measurement.answer.size, measurement.stddev * curator.ledger.units)
            for event in asked
            for measurement in curator.measure(
                event.queries, event.mu_squared, what=event.asked[-1]
            )
        ]
    )


def _exact(world: Callable[[], Curator], asked: Sequence[Event]) -> np.ndarray:
    """The true numbers, in units as all others."""
    dataset = world()._dataset
    queries = [query for event in asked for query in event.queries]
    return np.concatenate([query.answer(dataset).ravel().astype(float) for query in queries])


def _charged(curator: Curator, asked: Sequence[Event]) -> float:
    """The mu^2 that the books have for all questions."""
    _noisy(curator, asked)
    return float(curator.ledger.mu_squared)
