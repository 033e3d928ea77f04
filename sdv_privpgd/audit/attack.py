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
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pandas as pd
from scipy.special import ndtri
from scipy.stats import beta
from scipy.stats import t as student

from sdv_privpgd.audit.checks import Check
from sdv_privpgd.audit.recorder import Event, Tape, in_units, watched
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.methods import pipeline
from sdv_privpgd.methods.k_way import Independent
from sdv_privpgd.privacy.accounting import epsilon_of
from sdv_privpgd.privacy.boundary import EncodedTable
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.ledger import FitLedger, PrivacyLedger
from sdv_privpgd.privacy.queries import (
    Adjacency,
    CountQuery,
    GroupedMarginalQuery,
    MarginalQuery,
    Measurement,
    QuadrantQuery,
)

LAYER = "an attacker who knows all but one person"


_LINEAR = CountQuery, MarginalQuery, GroupedMarginalQuery, QuadrantQuery


@dataclass(frozen=True, kw_only=True, eq=False)
class Attack:
    """The attacker's scores in both worlds, in standard deviations that the ledger promises."""

    claim: float  # the mu of all answers that were measured, as the ledger has it
    # Scores where the people are not there, or are their other selves: of all people in the first
    # run, then in the second, and so on.
    without: np.ndarray
    within: np.ndarray  # the same where they are
    people: int = 1  # how many are attacked in each run
    # Draws, each in its own promised standard deviation.
    noise: np.ndarray = field(default_factory=lambda: np.empty(0))
    # For each draw the standard deviation that was promised.
    errors: np.ndarray = field(default_factory=lambda: np.empty(0))
    whole: bool = True  # whether all answers were whole numbers
    names: tuple[str, ...] = ()  # the columns that were asked about

    @property
    def comparisons(self) -> int:
        """The number of scores in each world."""
        return self.without.size

    @property
    def estimate(self) -> float:
        """How far the worlds are apart, in standard deviations of the scores themselves."""
        # Worlds that are so many standard deviations apart have no noise, but that of arithmetic.
        largest_ratio = 1e6
        # Of each person alone: noise that is the same in all runs may differ between people.
        worlds = [each.reshape(-1, self.people) for each in (self.without, self.within)]
        pooled = math.sqrt(np.mean([each.var(axis=0, ddof=1).mean() for each in worlds]))
        apart = float(self.within.mean() - self.without.mean())
        if apart > largest_ratio * pooled:
            return math.inf
        return apart / pooled if pooled else 0.0

    def lower_bound(self, level: float) -> float:
        """A lower bound of mu at this confidence, by normal theory; 0 or more.

        Student's quantile, for the deviation is estimated, too.
        """
        estimate = self.estimate
        if not math.isfinite(estimate):
            return estimate
        error = math.sqrt(2 / self.comparisons + estimate**2 / (4 * self.comparisons))
        quantile = float(student.ppf(level, 2 * (self.comparisons - self.people)))
        return max(estimate - quantile * error, 0.0)

    def counted_bound(self, level: float) -> float:
        """The same by Clopper and Pearson at one threshold fixed beforehand: no law is assumed."""
        threshold = self.claim / 2
        alarms = int((self.without > threshold).sum())
        misses = int((self.within <= threshold).sum())
        return _mu_of(alarms, misses, self.comparisons, level)

    def ceiling(self, level: float) -> float:
        """The largest ``counted_bound`` that so many comparisons could have given."""
        return _mu_of(0, 0, self.comparisons, level)


def attack_checks(attack: Attack, ledger: PrivacyLedger, false_alarms: float) -> list[Check]:
    """Whether the attacker gains more than the ledger says."""
    level = 0.95  # confidence of the bounds that are shown
    delta = ledger.delta
    bounds: list[tuple[str, str, Callable[[float], float]]] = [
        ("attack", "normal theory", attack.lower_bound),
        ("attack, counted", "Clopper and Pearson", attack.counted_bound),
    ]
    checks, claim = [], attack.claim
    for name, how, bound in bounds:
        shown, sure, ceiling = bound(level), bound(1 - false_alarms), attack.ceiling(level)
        in_mu = {"claimed": claim, "lower_bound": shown, "ceiling": ceiling}
        epsilon = {of: _epsilon(mu, delta) for of, mu in in_mu.items()}
        passed = sure <= claim * (1 + 1e-9)  # rounding of the ledger's own numbers
        found = (
            f"mu is at least {shown:.4g} with 95 % confidence, and {claim:.4g} is claimed: epsilon "
            f"{epsilon['lower_bound']:.3g} of {epsilon['claimed']:.3g}. So many comparisons could "
            f"have shown up to mu {ceiling:.3g}, epsilon {epsilon['ceiling']:.3g}."
        )
        found += "" if passed else f" It is above {sure:.4g} almost surely."
        facts = {
            **{f"mu_{of}": mu for of, mu in in_mu.items()},
            **{f"epsilon_{of}": own for of, own in epsilon.items()},
            "mu_estimate": attack.estimate,
            "mu_lower_bound_of_the_verdict": sure,
            "delta": delta,
            "comparisons": attack.comparisons,
            "people": attack.people,
            "columns": list(attack.names),
        }
        looked_at = f"{attack.comparisons:,} scores in each of two worlds, by {how}"
        checks.append(Check(LAYER, name, looked_at, passed, found, false_alarms, facts))
    return checks


def _mu_of(alarms: int, misses: int, number: int, level: float) -> float:
    """A lower bound of mu from counts of both errors, each at half of what may go wrong."""
    wrong = (1 - level) / 2
    first, second = (
        1.0 if errors >= number else float(beta.ppf(1 - wrong, errors + 1, number - errors))
        for errors in (alarms, misses)
    )
    return max(float(-ndtri(first) - ndtri(second)), 0.0) if max(first, second) < 1 else 0.0


def _epsilon(mu: float, delta: float) -> float:
    largest = 30.0  # A mu whose epsilon, beyond 600, is as good as none
    if mu > largest:
        return math.inf
    return epsilon_of(Fraction(mu) ** 2, delta)


def attacked(settings: Settings, schema: Schema, runs: int) -> Attack:
    """Attacks a few people ``runs`` times in each of two worlds."""
    most_draws = 1 << 20  # draws of noise that are kept for the tests of its law
    ledger = settings.ledger()
    few, events = _questions(settings, schema, ledger)
    people = _people(few, settings)
    effects, kept = _effects(people, events, few, ledger)
    worlds = [_answering(few, ledger, people.world(index, kept)) for index in (0, 1)]
    curator = worlds[0]()
    sigmas = _sigmas(curator, events)
    noisy = sigmas > 0
    sigmas = sigmas[noisy]
    weights = effects[:, noisy] / sigmas
    lengths = np.linalg.norm(weights, axis=1, keepdims=True)
    filters = np.divide(weights, lengths, out=np.zeros_like(weights), where=lengths > 0)
    scores = np.zeros((2, runs, len(kept)))
    keep = min(runs, max(most_draws // max(2 * sigmas.size, 1), 1))
    draws = np.zeros((2, keep, sigmas.size))
    whole = True
    truths = [_exact(world, events)[noisy] for world in worlds]
    for run in range(runs):
        for index, world in enumerate(worlds):
            answers = noisy_numbers(world(), events)
            whole &= answers.dtype.kind == "i"
            values = answers[noisy]
            scores[index, run] = filters @ ((values - truths[0]) / sigmas)
            if run < keep:
                draws[index, run] = values - truths[index]
    return Attack(
        claim=math.sqrt(curator.ledger.mu_squared),
        without=scores[0].ravel(),
        within=scores[1].ravel(),
        people=len(kept),
        noise=draws.reshape(-1, draws.shape[-1]),
        errors=sigmas,
        whole=whole,
        names=few.domain().attributes,
    )


def fewer_columns(schema: Schema, number: int) -> Schema:
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
        few, shared, tape = fewer_columns(schema, number), FitLedger(ledger), Tape()
        table = _table(few, _people(few, settings).world(1), ledger)
        curator = watched(table.curator(few, shared), shared, tape)
        try:
            pipeline.ask(curator, method)
        except (ValueError, KeyError):  # a workload of other columns, or too few of them
            if method is simple:
                raise
            continue
        return few, [event for event in tape.events if event.kind == "measure" and event.queries]
    raise AssertionError("Independent() takes any columns.")


def _effects(
    people: _People, events: Sequence[Event], schema: Schema, ledger: PrivacyLedger
) -> tuple[np.ndarray, list[int]]:
    """What each of some people adds to the answers, and who they are.

    No two share a cell. What all of them change, such as the number of rows, is left out, if little
    is lost by that; else one person is attacked alone.
    """
    # Share of mu^2 that may be left out, so that several people can be attacked at once.
    lost = 0.03

    def counted(person: int, index: int) -> np.ndarray:
        return _exact(_answering(schema, ledger, people.world(index, [person])), events)

    each = [(counted(person, 0), counted(person, 1)) for person in range(len(people.here))]
    effects = np.array([there - here for here, there in each])
    if not all(isinstance(query, _LINEAR) for event in events for query in event.queries):
        return effects[:1], [0]
    touched = np.array([(here != 0) | (there != 0) for here, there in each])
    shared = touched.all(axis=0)
    kept: list[int] = []
    for person, own in enumerate(touched & ~shared):
        if not (touched[kept] & own).any():
            kept.append(person)
    sigmas = _sigmas(_answering(schema, ledger, people.world(1, kept))(), events)
    strength = np.divide(effects[0], sigmas, out=np.zeros_like(sigmas), where=sigmas > 0) ** 2
    if len(kept) == 1 or strength[shared].sum() > lost * strength.sum():
        return effects[:1], [0]
    return np.where(shared, 0.0, effects[kept]), kept


def _table(schema: Schema, codes: np.ndarray, ledger: PrivacyLedger) -> EncodedTable:
    """The codes of people who have as many rows each as they may have."""
    frame = pd.DataFrame(codes, columns=pd.Index(schema.domain().attributes))
    return EncodedTable(frame, bound=ledger.bound, rows=ledger.rows_per_person)


def _answering(schema: Schema, ledger: PrivacyLedger, codes: np.ndarray) -> Callable[[], Curator]:
    """Makes real curators for a world, each with an empty ledger."""
    table = _table(schema, codes, ledger)
    dataset = table.curator(schema, FitLedger(ledger))._dataset
    return lambda: Curator(dataset, FitLedger(ledger))


def _measured(curator: Curator, events: Sequence[Event]) -> list[Measurement]:
    return [
        measurement
        for event in events
        for measurement in curator.measure(event.queries, event.mu_squared, what=event.question[-1])
    ]


def noisy_numbers(curator: Curator, events: Sequence[Event]) -> np.ndarray:
    """The noisy numbers of questions, asked of a curator once more, in units."""
    units = curator.ledger.units
    return np.concatenate([in_units(e.answer.ravel(), units) for e in _measured(curator, events)])


def _sigmas(curator: Curator, events: Sequence[Event]) -> np.ndarray:
    """The standard deviation that is promised for each number."""
    own = [(each.answer.size, each.stddev) for each in _measured(curator, events)]
    return np.concatenate([np.full(size, stddev * curator.ledger.units) for size, stddev in own])


def _exact(world: Callable[[], Curator], events: Sequence[Event]) -> np.ndarray:
    """The true numbers, in units as all others."""
    dataset = world()._dataset
    queries = [query for event in events for query in event.queries]
    return np.concatenate([query.answer(dataset).ravel().astype(float) for query in queries])
