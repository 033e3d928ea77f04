"""The audit of tables that belong together: a root is attacked with everything below it.

A fit to made-up families is recorded, and repeated on others with the same noisy answers: on
tables of other rows and keys, and on neighbors, which have one family more or less. That family has
more rows of each table than are used, so that a bound that is not kept shows.

The attacker knows all other families, and weighs the answers about all tables and all pairs of
siblings by what the family adds to them. The fit that is attacked has few columns.
"""

import math
import pickle
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd.audit.attack import Attack, attack_checks, noisy_numbers
from sdv_privpgd.audit.checks import audit_report, right_chance
from sdv_privpgd.audit.noise import answer_checks, mechanism_checks
from sdv_privpgd.audit.recorder import Event
from sdv_privpgd.audit.replay import Recording, begun, fitted_again, replay_checks
from sdv_privpgd.audit.subjects import ROWS, Outcome, Through, finished, listening, of_answers
from sdv_privpgd.audit.tables import BEYOND, ODD, MadeUp, made_up, of_objects
from sdv_privpgd.audit.training import accountant_check
from sdv_privpgd.columns.links import Link, Tree
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.families import FittedTables
from sdv_privpgd.fitting.linked_tables import RunningTables
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.fitting.tables_settings import TablesSettings
from sdv_privpgd.methods.method import method_of
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.ledger import FitLedger
from sdv_privpgd.report.page import Report, check_path


def audit_tables(
    columns: Mapping[str, Mapping[str, Mapping]],
    relationships: Link | Iterable[Link],
    epsilon: float,
    delta: float,
    *,
    runs: int = 1_000,
    path: str | Path | None = None,
    false_alarms: float = 1e-4,
    **settings: Any,
) -> Report:
    """Audits what ``fit_tables`` does with these arguments, on families that it makes up itself.

    No row is read and nothing is spent.

    Args:
        columns: As ``fit_tables`` takes them.
        relationships: As ``fit_tables`` takes them.
        epsilon: What all tables together may spend.
        delta: At this delta.
        runs: How often a family is attacked in each of two worlds.
        path: Where to save the report as well, if anywhere.
        false_alarms: How likely all statistical checks together are to fail although all is right.
        settings: Other arguments of ``fit_tables``, such as ``method``.

    Returns:
        The report: ``to_dict()["passed"]`` says whether all is well.

    >>> from sdv_privpgd import Boolean, Link
    >>> from sdv_privpgd.audit import audit_tables
    >>> declared = {"homes": {"rents": Boolean()}, "people": {"ill": Boolean()}}
    >>> link = Link("homes", "people", "home", max_children=2)
    >>> audit_tables(declared, link, 1.0, 1e-6, method="independent", runs=50).to_dict()["passed"]
    True
    """
    linked = TablesSettings.of(
        columns, relationships, epsilon, delta, **{"method": "privpgd", **settings}
    )
    return audited_tables(linked, runs=runs, path=path, false_alarms=false_alarms)


def audited_tables(
    linked: TablesSettings, *, runs: int, path: str | Path | None = None, false_alarms: float = 1e-4
) -> Report:
    """The audit of what a fit of tables is told."""
    check_path(path)
    runs, chance = right_chance(runs, false_alarms)
    linked.require()
    recording, attack = _recorded(TablesFit(linked)), _attacked(_of_few(linked), runs)
    events, settings = recording.tape.events, recording.subject.settings
    checks = [
        *replay_checks(recording),
        *answer_checks(events, chance),
        *mechanism_checks(events),
        *attack_checks(attack, linked.ledger, chance),
        accountant_check(events, recording.outcome.seen.get("ledger"), settings),
    ]
    named = {
        f"{t}.{n}": own for t in linked.tree.tables for n, own in linked.alone(t).words.items()
    }
    return audit_report("fit_tables", linked.ledger, settings, named, checks, runs).saved(path)


@dataclass(frozen=True, eq=False)
class MadeUpTables:
    """Tables of nobody's families."""

    name: str  # what is special about them
    frames: Mapping[str, pd.DataFrame]

    def of(self, table: str) -> MadeUp:
        """One of the tables."""
        return MadeUp(self.name, self.frames[table])


@dataclass(frozen=True)
class TablesFit:
    """What ``fit_tables`` does with these arguments, as ``audit.subjects.Subject`` says."""

    linked: TablesSettings

    @property
    def settings(self) -> Settings:
        """Of all tables together."""
        own, _ = self.linked.options_of(self.linked.tree.root)
        return replace(own, epsilon=self.linked.epsilon)

    @property
    def description(self) -> Description:
        """That of the root."""
        return self.linked.options_of(self.linked.tree.root)[1]

    def fit(self, table: Any, through: Through) -> Outcome:
        """Fits made-up tables and collects all that the fit lets out."""
        more = self.linked.options
        small = method_of(more["method"], seed=more.get("seed", 0)).small()
        linked = replace(self.linked, options={**more, "method": small})
        tree = linked.tree
        lost = {name: [*linked.modelled(name), *tree.numbers(name)] for name in tree.tables}
        seen: dict[str, Any] = {}
        with listening() as said:
            running = RunningTables.of(linked, table.frames, lost)
            running.private = {name: through(own) for name, own in running.private.items()}
            running.pairs = {name: through(own) for name, own in running.pairs.items()}
            fitted: FittedTables = replace(running.run(said.steps), date="")
            seen["file"] = pickle.dumps(fitted)
            rows = fitted.sample(ROWS)
            seen["samples"] = [own.to_csv() for own in rows.values()]
            seen["dtypes"] = [own.dtypes.astype(str).to_dict() for own in rows.values()]
            kept = [*fitted.answers.values(), *(e.fitted.release for e in fitted.tables.values())]
            seen["answers"] = [each for own in kept for each in of_answers(own)]
            seen["ledger"] = fitted.ledger.to_json()
            seen["pages"] = repr(fitted.report().to_dict())
        return finished(seen, said)


def _recorded(subject: TablesFit) -> Recording:
    """Records a fit to made-up families and repeats it on others.

    Raises ``ValueError`` where these tables cannot be fitted at all.
    """
    linked = subject.linked
    subject.settings.method.small().prepare()
    number = 800 if any(linked.alone(t).undeclared for t in linked.tree.tables) else 200
    base = _families(linked, number, seed=0)
    found = begun(subject, base, "The tables cannot be fitted to made-up ones")
    keys = {str(name) for e in linked.tree.links for name in (e.key, e.parent_key)}
    odd = lambda row, at: ODD[(row + at) % len(ODD)]
    alike = lambda *_: "one"
    others = lambda own: [str(name) for name in own if name not in keys]
    of_keys = lambda own: [str(name) for name in own if name in keys]
    changed = {
        "other families": _families(linked, 90, seed=5).frames,
        "no families": {name: own.iloc[:0] for name, own in base.frames.items()},
        "keys of every kind": {n: _with(e, of_keys(e), odd) for n, e in base.frames.items()},
        "one key again and again": {n: _with(e, of_keys(e), alike) for n, e in base.frames.items()},
    }
    one = base.frames[linked.tree.root][linked.tree.root_key].iloc[0]
    came = _families(linked, 1, seed=9, named="odd").frames
    cells = {name: _with(own, others(own), odd) for name, own in came.items()}
    close = {
        "a family gone": _without(linked.tree, base.frames, one),
        "a family more, with odd cells": {n: _joined([base.frames[n], cells[n]]) for n in cells},
    }
    found.replays += [
        fitted_again(subject, MadeUpTables(name, own), found.tape, is_neighbor=tables is close)
        for tables in (changed, close)
        for name, own in tables.items()
    ]
    return found


def _attacked(linked: TablesSettings, runs: int) -> Attack:
    """Attacks a family whose rows are as many of each table as may be, and more."""
    base = _families(linked, 40, seed=0)
    one = base.frames[linked.tree.root][linked.tree.root_key].iloc[0]
    tape = fitted_again(TablesFit(linked), base, None).tape
    without = MadeUpTables("", _without(linked.tree, base.frames, one))
    other = fitted_again(TablesFit(linked), without, tape).tape
    events = [[e for e in t.events if e.kind == "measure" and e.queries] for t in (other, tape)]
    truths = [_exact(own) for own in events]
    told_of = [(e.units, *own) for e in events[0] for own in zip(e.exact, e.stddevs, strict=True)]
    sigmas = np.concatenate([np.full(len(own), sd * units) for units, own, sd in told_of])
    weights = np.divide(truths[1] - truths[0], sigmas, out=0 * sigmas, where=sigmas > 0)
    filtered = weights / max(float(np.linalg.norm(weights)), 1e-12)
    filtered = np.divide(filtered, sigmas, out=0 * sigmas, where=sigmas > 0)
    scores, claim = np.zeros((2, runs)), 0.0
    for run in range(runs):
        for world, asked in enumerate(events):
            shared = FitLedger(linked.ledger)
            answers = [noisy_numbers(Curator(event.dataset, shared), [event]) for event in asked]
            scores[world, run] = filtered @ (np.concatenate(answers) - truths[0])
            claim = math.sqrt(shared.ledger.mu_squared)
    names = tuple(f"{t}.{n}" for t in linked.tree.tables for n in linked.modelled(t))
    return Attack(claim=claim, without=scores[0], within=scores[1], names=names)


def _exact(events: Iterable[Event]) -> np.ndarray:
    """The true numbers, in units as all others."""
    return np.array([n for e in events for own in e.exact for n in own.values()], dtype=float)


def _of_few(linked: TablesSettings) -> TablesSettings:
    """What is told of two columns of each table at most, without their order."""
    tree = Tree(tuple(replace(e, order=None, start=None, count=None) for e in linked.tree.links))
    columns = {
        table: dict([*linked.columns[table].items()][: 2 + (tree.key_of(table) is not None)])
        for table in tree.tables
    }
    return replace(linked, tree=tree, columns=columns, constraints={}, questions={})


def _families(linked: TablesSettings, number: int, seed: int, named: str = "row") -> MadeUpTables:
    """So many families; of the first one each row has more children than are used."""
    frames: dict[str, pd.DataFrame] = {}
    rng = np.random.default_rng((seed, 3))
    firsts: dict[str, np.ndarray] = {}
    for table in linked.tree.tables:
        link, key = linked.tree.above(table), linked.tree.key_of(table)
        if link is None:
            whose = np.arange(number)
            firsts[table] = whose == 0
        else:
            times = rng.integers(0, link.max_children + 1, len(firsts[link.parent]))
            times[firsts[link.parent]] = link.max_children + BEYOND
            whose = np.repeat(np.arange(len(times)), times)
            firsts[table] = firsts[link.parent][whose]
        words = linked.alone(table).words
        own = made_up({n: e for n, e in words.items() if e["sdtype"] != "id"}, len(whose), seed)
        cells: dict[str, Any] = {name: own.frame[name] for name in own.frame}
        if link is not None:
            above = frames[link.parent][link.parent_key].to_numpy()
            cells[link.key] = pd.Series(above[whose], dtype=object)
        if key is not None:
            cells[key] = pd.Series([f"{named} {at}" for at in range(len(whose))], dtype=object)
        cells |= {n: pd.Series(range(len(whose)), dtype=object) for n in words if n not in cells}
        frames[table] = pd.DataFrame(cells, index=range(len(whose)))
    return MadeUpTables("usual families", frames)


def _without(tree: Tree, frames: Mapping[str, pd.DataFrame], key: Any) -> dict[str, pd.DataFrame]:
    """The tables without a row of the root, and all that leads to it."""
    root: Any = frames[tree.root]
    found = {tree.root: _joined([root[root[tree.root_key] != key]])}
    for link in map(tree.above, tree.tables[1:]):
        assert link is not None
        own: Any = frames[link.child]
        found[link.child] = _joined([own[own[link.key].isin(found[link.parent][link.parent_key])]])
    return found


def _joined(parts: list[pd.DataFrame]) -> pd.DataFrame:
    return pd.concat(parts, ignore_index=True).astype(object)


def _with(own: pd.DataFrame, names: Iterable[str], cell: Callable[[int, int], Any]) -> pd.DataFrame:
    """A table with other cells, of a row and a column each, in some columns."""
    changed = {
        name: of_objects([cell(row, at) for row in range(len(own))]).set_axis(own.index)
        for at, name in enumerate(map(str, own))
        if name in names
    }
    return own.assign(**changed)
