"""Runs that are recorded, and repeated on other tables with the same noisy answers.

What is asked, charged and made of the answers may depend on the answers alone: repeated on any
other table, a run must ask the same, byte by byte. On a neighbor the exact answers, which the
recording sees as well, must differ by no more than what was charged for.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.stats import norm

from sdv_privpgd.privacy import curator as curating
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.ledger import Charge, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.privacy.value_counts import ValueCounts

_NEVER = -(10**12)
"""The noisy number of rows of a value that the recorded table has not: no threshold lets it by."""


KINDS = "measure", "discover", "select"
"""What a curator is asked."""

_MISSING = type(None), None
"""The one value that is given out whatever its number."""


@dataclass
class Release:
    """One charge and what it paid for."""

    charge: Charge
    exact: list[dict] = field(default_factory=list)
    """For each answer its numbers by cell, or by value and its type."""
    released: list[dict] = field(default_factory=list)
    """The same, with noise."""
    given: list[dict] = field(default_factory=list)
    """What the curator gave out of these."""
    stddevs: list[float] = field(default_factory=list)
    drawn: list[np.ndarray] = field(default_factory=list)
    """All noise that was drawn for it."""
    choices: list[tuple] = field(default_factory=list)
    """For each choice its scores, its temperature and what was chosen."""


@dataclass
class Tape:
    """What one run asked and was answered, in order."""

    asked: list[tuple] = field(default_factory=list)
    releases: list[Release] = field(default_factory=list)
    result: Any = None
    """What came out of the run. Public."""


def run(do: Callable[[], Any], monkeypatch, *, answers: Tape | None = None) -> Tape:
    """Records a run; with ``answers``, those of another run take the place of its own."""
    tape, keys = Tape(), []
    words = np.random.default_rng(0).bytes
    real = {name: getattr(Curator, name) for name in KINDS}
    record, counts = PrivacyLedger.record, ValueCounts.counts
    noisy, choose, gaussian = (
        getattr(curating, name) for name in ("_noisy", "exponential_choice", "rounded_gaussian")
    )

    def place() -> Release | None:
        """The release of the other run that this one is about."""
        return None if answers is None else answers.releases[len(tape.releases) - 1]

    def recorded(ledger, charge):
        after = record(ledger, charge)
        tape.releases.append(Release(charge))
        return after

    def counted(self, name):
        found = counts(self, name)
        keys[:] = [(type(key), key) for key, _ in found.pairs()]
        return found

    def drawn(stddev, size, words):
        noise = gaussian(stddev, size, words)
        tape.releases[-1].drawn.append(noise)
        return noise

    def noised(answer, stddev, own_words):
        now, other = tape.releases[-1], place()
        cells = keys[:] or list(np.ndindex(answer.shape))
        keys.clear()
        now.exact.append(dict(zip(cells, answer.ravel().tolist(), strict=True)))
        now.stddevs.append(stddev)
        result = noisy(answer, stddev, words)
        if other is not None and stddev:
            given = other.released[len(now.released)]
            result = np.array([given.get(cell, _NEVER) for cell in cells]).reshape(answer.shape)
        now.released.append(dict(zip(cells, result.ravel().tolist(), strict=True)))
        return result

    def chosen(values, temperature, own_words):
        now, other = tape.releases[-1], place()
        if other is None:
            choice = choose(values, temperature, words)
        else:
            choice = other.choices[len(now.choices)][2]
        now.choices.append((list(values), temperature, choice))
        return choice

    def measure(self, queries, mu_squared, *, what, **settings):
        queries = tuple(queries)
        tape.asked.append(("measure", tuple(map(repr, queries)), mu_squared, what))
        measured = real["measure"](self, queries, mu_squared, what=what, **settings)
        if queries:
            tape.releases[-1].given = [_by_cell(each.answer) for each in measured]
        return measured

    def discover(self, mu_squared, delta, **settings):
        found = real["discover"](self, mu_squared, delta, **settings)
        tape.asked.append(("discover", mu_squared, delta, repr(settings), repr(found)))
        if found:
            tape.releases[-1].given = [
                {(type(key), key): number for key, number in values} for values in found.values()
            ]
        return found

    def select(self, scores, mu_squared, *, what):
        known = [(s.clique, s.cuts, s.expected.tobytes(), s.bias, s.weight) for s in scores]
        tape.asked.append(("select", tuple(known), mu_squared, what))
        return real["select"](self, scores, mu_squared, what=what)

    with monkeypatch.context() as patch:
        patch.setattr(PrivacyLedger, "record", recorded)
        patch.setattr(ValueCounts, "counts", counted)
        for name, own in (
            ("_noisy", noised), ("exponential_choice", chosen), ("rounded_gaussian", drawn)
        ):  # fmt: skip
            patch.setattr(curating, name, own)
        for name, own in zip(KINDS, (measure, discover, select), strict=True):
            patch.setattr(Curator, name, own)
        tape.result = do()
    return tape


def _by_cell(answer: np.ndarray) -> dict:
    return dict(zip(np.ndindex(answer.shape), answer.ravel().tolist(), strict=True))


def in_units(tape: Tape, units: int) -> Tape:
    """The same answers, each number so many times as large."""

    def turned(release):
        counts = [{at: units * count for at, count in own.items()} for own in release.released]
        return replace(release, released=counts)

    return replace(tape, releases=[turned(release) for release in tape.releases])


def require_fresh_noise_as_charged(tape: Tape, ledger: PrivacyLedger) -> None:
    """Each answer has noise of its own, of the ledger's scale, which pays for what they say."""
    used: set[int] = set()
    adjacency, units = ledger.adjacency, ledger.units
    for release in tape.releases:
        charge = release.charge
        squared = dict(charge.sensitivity_squared)[adjacency]
        assert all(stddev == charge.stddev for stddev in release.stddevs), charge
        if charge.temperature is not None:
            ((scores, temperature, _),) = release.choices
            assert temperature == charge.temperature
            assert len(scores) == charge.num_queries
            assert not release.exact, "a choice reveals no number"
            continue
        assert len(release.exact) == len(release.given) == charge.num_queries, charge
        for noisy, given in zip(release.released, release.given, strict=True):
            assert given == {
                cell: number / units if charge.threshold is None else round(number / units)
                for cell, number in noisy.items()
                if charge.threshold is None or number >= charge.threshold or cell == _MISSING
            }
        if charge.is_exact:
            assert squared == 0
            assert not release.drawn
            continue
        assert charge.stddev**2 * float(charge.mu_squared) >= squared * (1 - 1e-12)
        assert len(release.drawn) == charge.num_queries, "not one draw an answer"
        for exact, noisy, noise in zip(release.exact, release.released, release.drawn, strict=True):
            added = [noisy[cell] - exact[cell] for cell in exact]
            assert added == noise.tolist(), "noise that was not drawn for this answer"
            assert id(noise) not in used
            used.add(id(noise))
        if charge.threshold is not None:
            _require_threshold(charge, ledger)


def _require_threshold(charge: Charge, ledger: PrivacyLedger) -> None:
    """A value that one neighbor alone has is released as rarely as delta says."""
    beyond = charge.threshold - ledger.rows_counted * ledger.units - 0.5
    chance = charge.num_queries * ledger.rows_per_person * norm.sf(beyond / charge.stddev)
    sides = 2 if ledger.adjacency is Adjacency.REPLACE_ONE else 1
    assert float(charge.delta) >= sides * chance * (1 - 1e-9)


def require_the_same(one: Tape, other: Tape) -> None:
    """Nothing that was asked, charged or made depends on the table."""
    for here, there in zip(one.asked, other.asked, strict=False):
        assert here == there
    assert len(one.asked) == len(other.asked)
    charges = [[release.charge for release in tape.releases] for tape in (one, other)]
    assert charges[0] == charges[1]
    assert one.result == other.result


def require_no_more_than_charged(one: Tape, other: Tape, adjacency: Adjacency) -> None:
    """Between neighbors no exact answer changes by more than was charged for."""
    for here, there in zip(one.releases, other.releases, strict=True):
        assert changed(here, there) <= dict(here.charge.sensitivity_squared)[adjacency], here.charge


def changed(here: Release, there: Release) -> int:
    """The squared L2 distance of two tables' answers, or of the score that changes most."""
    if here.charge.temperature is not None:
        pairs = zip(here.choices, there.choices, strict=True)
        return max((x - y) ** 2 for one, two in pairs for x, y in zip(one[0], two[0], strict=True))
    return sum(
        (x.get(cell, 0) - y.get(cell, 0)) ** 2
        for x, y in zip(here.exact, there.exact, strict=True)
        for cell in x.keys() | y.keys()
    )
