"""Layer 1: runs that are recorded, and repeated on other tables with the same noisy answers.

What is asked, charged, made of the answers and said may depend on the answers alone. Repeated on
any other table, a run must do the same to the byte. On a neighbor the true answers must differ by
no more than what was charged for. Both are deterministic: there are no false alarms.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from sdv_privpgd.audit.checks import Check, check_of, skipped
from sdv_privpgd.audit.recorder import AuditedTable, Event, Tape, changed, comparable
from sdv_privpgd.audit.subjects import Outcome, Subject, listening
from sdv_privpgd.audit.tables import (
    MadeUp,
    lowest,
    made_up,
    neighbors,
    neighbors_of_people,
    numbers_of_people,
    of_people,
    others,
    others_of_people,
    rows_of_one,
)
from sdv_privpgd.base import cached_property
from sdv_privpgd.columns.readings import attribute_of
from sdv_privpgd.fitting.fit import Fit
from sdv_privpgd.fitting.options import opened
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.privacy.counting import Weights
from sdv_privpgd.privacy.ledger import Charge
from sdv_privpgd.privacy.queries import Adjacency, CountQuery, GroupedMarginalQuery, MarginalQuery


@dataclass(eq=False)
class Replay:
    """A run on one table with the answers of the recorded one."""

    table: MadeUp  # the table
    tape: Tape  # what was asked and would have been answered
    # All that the fit let out; ``None`` where only the questions were asked.
    outcome: Outcome | None
    # Whether the table differs from the recorded one in one person's rows.
    is_neighbor: bool = False
    error: tuple | None = None  # what ended the run
    is_same: bool = False  # whether the table is the recorded one

    def asks_as(self, tape: Tape) -> bool:
        """Whether it was asked what was asked in another run, up to where an error has ended it."""
        own, other = ([event.question for event in each.events] for each in (self.tape, tape))
        return own == (other if self.error is None else other[: len(own)])


@dataclass(eq=False)
class Recording:
    """A recorded run and its repetitions."""

    subject: Subject  # what was audited
    tape: Tape  # what was asked and answered
    outcome: Outcome  # all that the recorded fit let out
    # The repetitions; the first is on the same table.
    replays: list[Replay] = field(default_factory=list)

    @cached_property
    def adjacency(self) -> Adjacency:
        """That of the settings."""
        return self.subject.settings.adjacency


def recorded(subject: Subject, seed: int = 0) -> Recording:
    """Records a fit to a made-up table and repeats it on others.

    Raises ``ValueError`` where the configuration cannot be fitted at all.
    """
    whole_fits = 2  # neighbors that are fitted whole; of the others only the questions are asked
    other_numbers = 0, 1, 37, 400, 299, 1_000  # of rows, where their number is private
    # Rows of the made-up tables; more where values have to be frequent to be found.
    num_rows, num_undeclared = 300, 1_500
    settings, description = subject.settings, subject.description
    rows = rows_of_one(settings)
    columns = {
        name: facts for name, facts in description.words.items() if name != settings.people.column
    }
    if (weights := settings.people.weights) is not None:
        facts = dict(zip(("range_min", "range_max"), weights[1:], strict=True))
        columns[weights.column] = {"sdtype": "numerical", **facts, "decimal_places": 6}
    removes = settings.adjacency is Adjacency.ADD_REMOVE
    number = (num_undeclared if description.undeclared else num_rows) + rows
    base = lowest(made_up(columns, number, seed), columns, rows)
    base = of_people(base, settings)
    found = begun(subject, base, "The configuration cannot be fitted to a made-up table")
    tape, numbers = found.tape, other_numbers if removes else (number,)
    if settings.people.column is None:
        close = neighbors(base, columns, rows, removes=removes)
        far = others(base, columns, numbers)
    else:
        close = neighbors_of_people(base, columns, settings)
        is_key = settings.people.column in description.words  # its dtype is that of new keys
        far = others_of_people(base, columns, numbers, settings, as_read=not is_key)
    found.replays += [
        *(fitted_again(subject, each, tape) for each in far),
        *(fitted_again(subject, each, tape, is_neighbor=True) for each in close[:whole_fits]),
        *(_asked_again(subject, each, tape) for each in close[whole_fits:]),
    ]
    return found


def begun(subject: Any, made: Any, refusal: str) -> Recording:
    """A recorded fit of a made-up table, or of several, and its repetition on the same.

    Raises ``ValueError``, which begins with the refusal, where it cannot be fitted at all.
    """
    tape = Tape()
    outcome = subject.fit(made, lambda opened: AuditedTable(opened, made, tape))
    if outcome.error is not None:
        kind, text, _ = outcome.error
        raise ValueError(f"{refusal}: {kind}: {text}")
    again = fitted_again(subject, made, tape)
    again.is_same = True
    return Recording(subject, tape, outcome, [again])


def fitted_again(
    subject: Any, made: Any, answers: Tape | None, *, is_neighbor: bool = False
) -> Replay:
    """A fit of another made-up table, or of several, with the answers of a recorded one."""
    tape = Tape(answers=answers)
    outcome = subject.fit(made, lambda opened: AuditedTable(opened, made, tape))
    return Replay(made, tape, outcome, is_neighbor, outcome.error)


def _asked_again(subject: Subject, made: MadeUp, answers: Tape) -> Replay:
    """Only the questions of a fit, which are what neighbors are compared by."""
    tape, description = Tape(answers=answers), subject.description
    settings = replace(subject.settings, method=subject.settings.method.small())
    with listening() as said:
        private = opened(made.frame, description, settings.people.limit)
        fit = Fit(settings, description.of_dtypes(private.dtypes))
        table = AuditedTable(private, made, tape)
        fit.discover(table)
        fit.ask(table)
    return Replay(made, tape, None, True, said.error)


LAYER = "the same answers, other tables"

COMPARED = {
    "file": "the pickle of what was fitted",
    "samples": "synthetic rows",
    "dtypes": "the dtypes of synthetic rows",
    "messages": "warnings, errors, log records and prints",
    "progress": "the stages and steps that a progress bar is told",
    "pages": "the page of the fit",
    "plans": "what a plan after the fit is made of: settings and declarations",
    "ledger": "the ledger",
    "discovered domain": "what was found privately",
}
"""What is compared to the byte, by the name of its check."""


def replay_checks(recording: Recording) -> list[Check]:
    """What the repetitions show."""
    again, *rest = recording.replays
    unsteady = set() if again.outcome is None else {*recording.outcome.differences(again.outcome)}
    return [
        _repeatable(unsteady),
        _questions(recording),
        _changes(recording),
        _people(recording),
        _charges(recording.tape.events, recording.adjacency),
        _kept(recording),
        *(_the_same(recording, rest, name, unsteady) for name in COMPARED),
    ]


def _repeatable(unsteady: Iterable[str]) -> Check:
    named = ", ".join(sorted(unsteady))
    fault = (
        f"Two fits to one table with the same answers differ in {named}: an engine or a strategy "
        "draws randomness of its own that no seed fixes, so that tables cannot be compared."
    )
    looked_at, right = "two fits to the same table with the same answers", "The same to the byte."
    return check_of(LAYER, "repeatable", looked_at, [fault] * bool(named), right)


def _questions(recording: Recording) -> Check:
    asked = [event.question for event in recording.tape.events]
    faults = []
    for replay in recording.replays:
        if replay.asks_as(recording.tape):
            continue
        own = [event.question for event in replay.tape.events]
        unlike = (at for at, (x, y) in enumerate(zip(asked, own, strict=False)) if x != y)
        place = next(unlike, min(len(asked), len(own)))
        faults.append(
            f"With {replay.table.name}, question {place + 1} was another one, although all "
            "answers before it were the same."
        )
    looked_at = f"what was asked of {len(recording.replays)} other tables"
    right = f"All {len(asked)} questions follow from the answers before them."
    return check_of(LAYER, "questions", looked_at, faults, right)


def _changes(recording: Recording) -> Check:
    """No true answer changes between neighbors by more than its charge says."""
    adjacency, largest, faults, pairs = recording.adjacency, 0.0, [], 0
    for replay in recording.replays:
        if not replay.is_neighbor:
            continue
        pairs += 1
        for here, there in zip(recording.tape.events, replay.tape.events, strict=False):
            if here.question != there.question or not (here.charges and here.exact and there.exact):
                continue  # what was not charged is for the check of the ledger
            declared = sum(dict(charge.sensitivity_squared)[adjacency] for charge in here.charges)
            found = changed(here, there)
            if found > declared:
                faults.append(
                    f"{_named(here)} changes by {found**0.5 / here.units:.4g} with "
                    f"{replay.table.name}, and the sensitivity that was charged for is "
                    f"{declared**0.5 / here.units:.4g}."
                )
            elif declared:
                largest = max(largest, (found / declared) ** 0.5)
    looked_at = f"the true answers of {pairs} pairs of neighbors"
    right = f"No answer changes by more than {100 * largest:.3g} % of what was charged for."
    facts = {"largest_share": largest, "pairs": pairs}
    return check_of(LAYER, "changes", looked_at, faults, right, **facts)


def _people(recording: Recording) -> Check:
    """Whether of each person as many rows were counted as may be, or all of them as one.

    Looks at tables without cells of an odd kind: there it is known how many rows each person has.
    """
    settings, name = recording.subject.settings, "people"
    plain = (each for each in recording.replays if each.is_neighbor or each.is_same)
    whose, known = settings.people, [each for each in plain if isinstance(each.table, MadeUp)]
    if not known:
        return skipped(LAYER, name, "The changes between neighbors say it of families.")
    if whose.column is None and whose.weights is None:
        return skipped(LAYER, name, "No column says whose a row is.")
    faults, looked = [], 0
    # Where weights are read rows count alike.
    of_weights = whose.weights and (attribute_of("read", whose.weights.column),)
    for made, tape in ((each.table, each.tape) for each in known):
        for event in tape.events:
            right = _right_numbers(made, settings, event.units)
            for clique, number in _numbers_of_rows(event):
                looked += 1
                counted = number / event.units
                least, most = (len(made.frame),) * 2 if clique == of_weights else right
                if not least <= counted <= most:
                    said = f"With {made.name}, {event.question[-1]!r} counted {counted:,.6g}, and"
                    faults.append(f"{said} {(least + most) / 2:,.6g} is right.")
    if whose.weights is not None:
        rows, right = "rows with weights", f"as its weight / {whose.weights.high:g}"
        otherwise = f"Each row is counted {right}."
    else:
        beyond = rows_of_one(settings) - whose.max_rows
        rows = f"people of whom some have {beyond} rows too many"
        otherwise = "All rows of a person count as one."
        if not whose.weighed:
            otherwise = f"Of each person {whose.max_rows} rows are counted, or all that there are."
    return check_of(LAYER, name, f"{looked:,} true answers about {rows}", faults, otherwise)


def _right_numbers(made: MadeUp, settings: Settings, units: int) -> tuple[float, float]:
    """How much all rows of a table may count as, at least and at most, by another reading of it."""
    nearly = 1 - 1 / 2_500  # of what a person counts as, at least, where weights are rounded down
    whose = settings.people
    if whose.weights is not None:
        read = [_weight(cell, whose.weights) for cell in made.frame[whose.weights.column]]
        right, rounding = sum(read) / whose.weights.high, len(read) / 2 / units
        return right - rounding, right + rounding
    assert whose.column is not None
    numbers = numbers_of_people(made, whose.column)
    if whose.weighed:
        return nearly * len(numbers), len(numbers)
    right = int(numbers.clip(upper=whose.max_rows).sum())
    return right, right


def _weight(cell: Any, weights: Weights) -> float:
    """What a row weighs by its cell, within the range."""
    try:
        weight = float(cell) if isinstance(cell, int | float | str) else math.nan
    except OverflowError:  # a whole number beyond any float
        return weights.high if isinstance(cell, int) and cell > 0 else weights.low
    except ValueError:
        weight = math.nan
    return min(max(weight, weights.low), weights.high) if math.isfinite(weight) else weights.low


def _numbers_of_rows(event: Event) -> list[tuple[Any, int]]:
    """How many rows there are, by each true answer that says it, and what it is about."""
    tables = CountQuery, MarginalQuery, GroupedMarginalQuery
    if event.kind not in ("discover", "measure") or event.is_of_rarer:
        return []
    return [
        (getattr(query, "clique", ()), sum(exact.values()))
        for query, exact in zip(event.queries, event.exact, strict=False)
        if event.kind == "discover" or isinstance(query, tables)
    ]


def _charges(events: Sequence[Event], adjacency: Adjacency) -> Check:
    """Each answer was charged, once, at the sensitivity that its queries declare."""
    faults = []
    for event in events:
        costs = len(event.queries) > 1 if event.kind == "select" else bool(event.queries)
        own = [
            each for charge in event.charges for each in _charge_faults(event, charge, adjacency)
        ]
        if len(event.charges) != costs:
            own = [f"{len(event.charges)} charges were made for it, and {int(costs)} is right."]
        faults += [f"{_named(event)}: {fault}" for fault in own]
    paid = sum(len(event.charges) for event in events)
    right = f"{paid} charges, each for all that was asked, at the noise that was added."
    return check_of(LAYER, "charges", f"the charges for {len(events)} questions", faults, right)


def _kept(recording: Recording) -> Check:
    """Each number that is kept or written to a file is one of a noisy answer."""
    kept = recording.outcome.seen.get("answers", [])
    answered = [event for event in recording.tape.events if event.kind in ("measure", "train")]
    given = {comparable(answer) for event in answered for answer, _ in event.result}
    otherwise = "is kept with other numbers than the noisy ones that were given out."
    faults = [f"Answer {at} {otherwise}" for at, own in enumerate(kept, 1) if own not in given]
    looked_at = f"the numbers of {len(kept)} answers that are kept, or written to a file"
    if not kept:
        return skipped(LAYER, "answers kept", "No answer is kept.", looked_at)
    right = "All are noisy answers that were given out, or public."
    return check_of(LAYER, "answers kept", looked_at, faults, right)


def _charge_faults(event: Event, charge: Charge, adjacency: Adjacency) -> list[str]:
    squared = dict(charge.sensitivity_squared)[adjacency]
    faults = []
    if charge.num_queries != len(event.queries):
        faults.append(f"{charge.num_queries} of {len(event.queries)} queries were charged.")
    if squared < event.required:
        faults.append("less was charged than the sensitivity that its queries declare.")
    if event.required and charge.mu_squared < event.mu_squared:
        faults.append("less was charged than it was to cost.")
    if charge.mu_squared < charge.mu_squared_under(adjacency) * (1 - Fraction(1, 10**9)):
        faults.append("the charge is less than its noise costs.")
    if any(stddev != charge.stddev / event.units for stddev in event.stddevs):
        faults.append("its answers name another noise than the charge.")
    if charge.is_exact and event.required:
        faults.append("it was answered without noise.")
    return faults


def _the_same(
    recording: Recording, replays: Sequence[Replay], name: str, unsteady: Iterable[str]
) -> Check:
    """One thing that is let out is the same to the byte for all tables."""
    faults, first = [], recording.outcome.seen.get(name)
    # After another question other answers follow: what is made of them says nothing.
    replays = [replay for replay in replays if replay.asks_as(recording.tape)]
    whole = [replay for replay in replays if replay.outcome is not None]
    if first is None or name in unsteady or not whole:
        return skipped(LAYER, name, "There was nothing to compare.", COMPARED[name])
    for replay in replays:
        if replay.outcome is None:
            if name == "messages" and replay.error is not None:
                faults.append(f"With {replay.table.name} the fit ends with {replay.error[0]}.")
        elif replay.error is not None and name != "messages":
            continue  # what was not made cannot differ
        elif replay.outcome.seen.get(name) != first:
            faults.append(
                f"With {replay.table.name} it is another, although the noisy answers are the same"
                + (f": the fit ends with {replay.error[0]}." if replay.error else ".")
            )
    looked_at = f"{COMPARED[name]}, of {len(whole)} other tables"
    return check_of(LAYER, name, looked_at, faults, "The same to the byte.")


def _named(event: Event) -> str:
    return f"The question {event.question[-1]!r}"
