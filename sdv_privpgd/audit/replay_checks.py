"""Layer 1: what recorded runs and their repetitions show.

There are no false alarms: what is compared depends on no chance.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

from sdv_privpgd.audit.checks import Check, check_of
from sdv_privpgd.audit.people import people_check
from sdv_privpgd.audit.recording import Event, changed, comparable
from sdv_privpgd.audit.replaying import Recording, Replay
from sdv_privpgd.privacy.ledger import Charge
from sdv_privpgd.privacy.queries import Adjacency

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

_SOURCES = {"ledger": "books"}


def replay_checks(recording: Recording) -> list[Check]:
    """What the repetitions show."""
    again, *rest = recording.replays
    unsteady = set() if again.outcome is None else {*recording.outcome.differences(again.outcome)}
    return [
        _repeatable(unsteady),
        _questions(recording),
        _changes(recording),
        people_check(
            LAYER,
            [(each.table, each.tape.events) for each in [again, *rest] if each.has_known_people],
            recording.subject.settings,
        ),
        _books(recording.tape.events, recording.adjacency),
        _kept(recording),
        *(_the_same(recording, rest, name, unsteady) for name in COMPARED),
    ]


def _repeatable(unsteady: Iterable[str]) -> Check:
    named = ", ".join(sorted(unsteady))
    faults = [
        f"Two fits to one table with the same answers differ in {named}: an engine or a strategy "
        "draws randomness of its own that no seed fixes, so that tables cannot be compared."
    ]
    return check_of(
        LAYER,
        "repeatable",
        "two fits to the same table with the same answers",
        faults if unsteady else [],
        "They are the same to the byte.",
    )


def _questions(recording: Recording) -> Check:
    asked = [event.asked for event in recording.tape.events]
    faults = []
    for replay in recording.replays:
        if replay.asks_as(recording.tape):
            continue
        own = [event.asked for event in replay.tape.events]
        place = next(
            (at for at, (x, y) in enumerate(zip(asked, own, strict=False)) if x != y),
            min(len(asked), len(own)),
        )
        faults.append(
            f"With {replay.table.name}, question {place + 1} was another one, although all "
            "answers before it were the same."
        )
    return check_of(
        LAYER,
        "questions",
        f"what was asked of {len(recording.replays)} other tables",
        faults,
        f"All {len(asked)} questions follow from the answers before them.",
    )


def _changes(recording: Recording) -> Check:
    """No true answer changes between neighbors by more than its charge says."""
    adjacency, largest, faults, pairs = recording.adjacency, 0.0, [], 0
    for replay in recording.replays:
        if not replay.is_neighbor:
            continue
        pairs += 1
        for here, there in zip(recording.tape.events, replay.tape.events, strict=False):
            if here.asked != there.asked or not (here.charges and here.exact and there.exact):
                continue  # what was not charged is for the check of the books
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
    return check_of(
        LAYER,
        "changes",
        f"the true answers of {pairs} pairs of neighbors",
        faults,
        f"No answer changes by more than {100 * largest:.3g} % of what was charged for.",
        largest_share=largest,
        pairs=pairs,
    )


def _books(events: Sequence[Event], adjacency: Adjacency) -> Check:
    """Each answer was charged, once, at the sensitivity that its queries declare."""
    faults = [
        f"{_named(event)}: {fault}" for event in events for fault in _book_faults(event, adjacency)
    ]
    paid = sum(len(event.charges) for event in events)
    return check_of(
        LAYER,
        "books",
        f"the charges for {len(events)} questions",
        faults,
        f"{paid} charges, each for all that was asked, at the noise that was added.",
    )


def _kept(recording: Recording) -> Check:
    """Each number that is kept or written to a file is one of a noisy answer."""
    kept = recording.outcome.seen.get("answers", [])
    given = {
        comparable(answer)
        for event in recording.tape.events
        if event.kind in ("measure", "train")
        for answer, _ in event.result
    }
    faults = [
        f"Answer {place} is kept with other numbers than the noisy ones that were given out."
        for place, numbers in enumerate(kept, 1)
        if numbers not in given
    ]
    made = check_of(
        LAYER,
        "answers kept",
        f"the numbers of {len(kept)} answers that are kept, or written to a file",
        faults,
        "All are noisy answers that were given out, or public.",
    )
    return made if kept else replace(made, passed=None, found="No answer is kept.")


def _book_faults(event: Event, adjacency: Adjacency) -> list[str]:
    costs = len(event.queries) > 1 if event.kind == "select" else bool(event.queries)
    if len(event.charges) != costs:
        return [f"{len(event.charges)} charges were made for it, and {int(costs)} is right."]
    return [fault for charge in event.charges for fault in _charge_faults(event, charge, adjacency)]


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
    source, faults = _SOURCES.get(name, name), []
    first = recording.outcome.seen.get(source)
    # After another question other answers follow: what is made of them says nothing.
    replays = [replay for replay in replays if replay.asks_as(recording.tape)]
    whole = [replay for replay in replays if replay.outcome is not None]
    if first is None or source in unsteady or not whole:
        return replace(
            check_of(LAYER, name, COMPARED[name], [], "There was nothing to compare."), passed=None
        )
    for replay in replays:
        if replay.outcome is None:
            if name == "messages" and replay.error is not None:
                faults.append(f"With {replay.table.name} the fit ends with {replay.error[0]}.")
        elif replay.error is not None and name != "messages":
            continue  # what was not made cannot differ
        elif replay.outcome.seen.get(source) != first:
            faults.append(
                f"With {replay.table.name} it is another, although the noisy answers are the same"
                f"{_ending(replay)}."
            )
    return check_of(
        LAYER,
        name,
        f"{COMPARED[name]}, of {len(whole)} other tables",
        faults,
        "The same to the byte.",
    )


def _ending(replay: Replay) -> str:
    return "" if replay.error is None else f": the fit ends with {replay.error[0]}"


def _named(event: Event) -> str:
    return f"The question {event.asked[-1]!r}"
