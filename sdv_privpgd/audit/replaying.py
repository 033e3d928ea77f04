"""Layer 1: runs that are recorded, and repeated on other tables with the same noisy answers.

What is asked, charged, made of the answers and said may depend on the answers alone. Repeated on
any other table, a run must do the same to the byte. On a neighbor the true answers must differ by
no more than what was charged for. Both are deterministic: there are no false alarms.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property

from sdv_privpgd.audit.observing import listening
from sdv_privpgd.audit.people import (
    neighbors_of_people,
    of_people,
    others_of_people,
    rows_of_one,
)
from sdv_privpgd.audit.recording import AuditedTable, Tape
from sdv_privpgd.audit.subjects import Outcome, Subject
from sdv_privpgd.audit.tables import MadeUp, lowest, made_up, neighbors, others
from sdv_privpgd.fitting.fit import Fit
from sdv_privpgd.fitting.opening import opened
from sdv_privpgd.privacy.queries import Adjacency

_ROWS, _UNDECLARED_ROWS = 300, 1_500
"""Rows of the made-up tables; more where values have to be frequent to be found."""

_OTHER_NUMBERS = 0, 1, 37, 400, 299, 1_000
"""Of rows, where their number is private."""

_WHOLE_FITS = 2
"""Neighbors that are fitted whole; of the others only the questions are asked."""


@dataclass(eq=False)
class Replay:
    """A run on one table with the answers of the recorded one.

    Attributes:
        table: The table.
        tape: What was asked and would have been answered.
        outcome: All that the fit let out; ``None`` where only the questions were asked.
        is_neighbor: Whether the table differs from the recorded one in one person's rows.
        error: What ended the run.
        is_same: Whether the table is the recorded one.
    """

    table: MadeUp
    tape: Tape
    outcome: Outcome | None
    is_neighbor: bool = False
    error: tuple | None = None
    is_same: bool = False

    @property
    def has_known_people(self) -> bool:
        """Whether it is known how many rows each person has: no cell is of an odd kind."""
        return self.is_neighbor or self.is_same

    def asks_as(self, tape: Tape) -> bool:
        """Whether it was asked what was asked in another run, up to where an error has ended it."""
        own, other = ([event.asked for event in each.events] for each in (self.tape, tape))
        return own == (other if self.error is None else other[: len(own)])


@dataclass(eq=False)
class Recording:
    """A recorded run and its repetitions.

    Attributes:
        subject: What was audited.
        tape: What was asked and answered.
        outcome: All that the recorded fit let out.
        replays: The repetitions; the first is on the same table.
    """

    subject: Subject
    tape: Tape
    outcome: Outcome
    replays: list[Replay] = field(default_factory=list)

    @cached_property
    def adjacency(self) -> Adjacency:
        """That of the settings."""
        return self.subject.settings.adjacency


def recorded(subject: Subject, seed: int = 0) -> Recording:
    """Records a fit to a made-up table and repeats it on others.

    Raises ``ValueError`` where the configuration cannot be fitted at all.
    """
    settings, description = subject.settings, subject.description
    rows = rows_of_one(settings)
    columns = {
        name: facts for name, facts in description.words.items() if name != settings.people.column
    }
    removes = settings.adjacency is Adjacency.ADD_REMOVE
    number = (_UNDECLARED_ROWS if description.undeclared else _ROWS) + rows
    base = lowest(made_up(columns, number, seed), columns, rows)
    base = of_people(base, settings)
    tape = Tape()
    outcome = subject.fit(base, lambda opened: AuditedTable(opened, base, tape))
    if outcome.error is not None:
        kind, text, _ = outcome.error
        raise ValueError(f"The configuration cannot be fitted to a made-up table: {kind}: {text}")
    found = Recording(subject, tape, outcome)
    numbers = _OTHER_NUMBERS if removes else (number,)
    if settings.people.limit is None:
        close = neighbors(base, columns, rows, removes=removes)
        far = others(base, columns, numbers)
    else:
        close = neighbors_of_people(base, columns, settings)
        far = others_of_people(base, columns, numbers, settings)
    again = _fitted_again(subject, base, tape)
    again.is_same = True
    found.replays = [
        again,
        *(_fitted_again(subject, each, tape) for each in far),
        *(_fitted_again(subject, each, tape, is_neighbor=True) for each in close[:_WHOLE_FITS]),
        *(_asked_again(subject, each, tape) for each in close[_WHOLE_FITS:]),
    ]
    return found


def _fitted_again(
    subject: Subject, made: MadeUp, answers: Tape, *, is_neighbor: bool = False
) -> Replay:
    tape = Tape(answers=answers)
    outcome = subject.fit(made, lambda opened: AuditedTable(opened, made, tape))
    return Replay(made, tape, outcome, is_neighbor, outcome.error)


def _asked_again(subject: Subject, made: MadeUp, answers: Tape) -> Replay:
    """Only the questions of a fit, which are what neighbors are compared by."""
    tape, description = Tape(answers=answers), subject.description
    settings = replace(subject.settings, method=subject.settings.method.small())
    with listening() as said:
        private = opened(made.frame, description, settings.people.limit)
        dtypes = private.dtypes_kept(description.columns, description.modelled, description.keys)
        fit = Fit(settings, replace(description, dtypes=dtypes))
        table = AuditedTable(private, made, tape)
        fit.discover(table)
        fit.ask(table)
    return Replay(made, tape, None, True, said.error)
