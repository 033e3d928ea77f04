"""What is audited: settings, a description, and all that a fit with them lets out or keeps.

Warnings and prints go through objects that all threads share. What other threads say meanwhile is
passed on to where it would have gone, and is not looked at.

An object is taken apart as ``pickle`` takes it apart, so that nothing a file holds is missed; how
often one part is shared, which makes two equal files differ, does not show.
"""

import io
import logging
import pickle
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from copy import deepcopy
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Protocol, TextIO

import numpy as np
import pandas as pd

from sdv_privpgd.audit.checks import Check, check_of, skipped
from sdv_privpgd.audit.recorder import comparable
from sdv_privpgd.audit.tables import MadeUp
from sdv_privpgd.base.progress import Item
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.door import running_fit
from sdv_privpgd.fitting.fit import Fit, Fitted
from sdv_privpgd.fitting.fitted_table import FittedTable
from sdv_privpgd.fitting.options import opened
from sdv_privpgd.fitting.resume import composed
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.methods.pipeline import Release
from sdv_privpgd.privacy.accounting import mu_squared_of
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.ledger_file import read_ledger
from sdv_privpgd.privacy.queries import CountQuery

_CLOCK = "TIMESTAMP"
"""What SDV's log records have that no two runs share."""


@dataclass(eq=False)
class Said:
    """What was said during a run, in order."""

    # Of each warning its kind and its text.
    warnings: list[tuple[str, str]] = field(default_factory=list)
    # Of each record its logger, level and text.
    log: list[tuple[str, str, str]] = field(default_factory=list)
    printed: io.StringIO = field(default_factory=io.StringIO)  # what went to stdout and stderr
    # The kind, text and notes of the error that ended the run.
    error: tuple[str, str, tuple[str, ...]] | None = None
    steps: "Steps" = field(default_factory=lambda: Steps())  # what a progress bar was told

    def messages(self) -> list[Any]:
        """All that is text for people."""
        return [self.warnings, self.log, self.printed.getvalue(), self.error]


class Steps:
    """A ``Progress`` that writes down what it is told: public facts alone, if all is right."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def __call__(self, items: Sequence[Item], stage: str) -> Iterable[Item]:
        self.told.append(f"{stage}: {len(items)} steps")
        done = 0
        try:
            for item in items:
                yield item
                done += 1
        finally:
            self.told.append(f"{stage}: {done} done")


@contextmanager
def listening() -> Iterator[Said]:
    """Collects what the calling thread says. An error ends the run and is collected, too."""
    said, me, root = Said(), threading.get_ident(), logging.getLogger()
    handler, level = _Handler(said, me), root.level
    numba = logging.getLogger("numba")  # tells of each function that it compiles, in a first fit
    compiling = numba.level
    out, err = _Ear(sys.stdout, said.printed, me), _Ear(sys.stderr, said.printed, me)
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    numba.setLevel(logging.INFO)
    try:
        with warnings.catch_warnings(), redirect_stdout(out), redirect_stderr(err):
            shown = warnings.showwarning
            warnings.simplefilter("always")
            warnings.showwarning = _warned(said, me, shown)
            yield said
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what the user would see
        notes = tuple(getattr(error, "__notes__", ()))
        said.error = type(error).__name__, str(error), notes
    finally:
        numba.setLevel(compiling)
        root.setLevel(level)
        root.removeHandler(handler)


def _warned(said: Said, me: int, shown: Callable[..., Any]) -> Callable[..., Any]:
    def show(message: Any, category: type, *rest: Any, **more: Any) -> None:
        if threading.get_ident() == me:
            said.warnings.append((category.__name__, str(message)))
        else:
            shown(message, category, *rest, **more)

    return show


class _Handler(logging.Handler):
    """Keeps one thread's log records."""

    def __init__(self, said: Said, me: int) -> None:
        super().__init__(logging.DEBUG)
        self._said, self._me = said, me

    def emit(self, record: logging.LogRecord) -> None:
        if threading.get_ident() != self._me:
            return
        text: Any = record.msg if isinstance(record.msg, dict) else record.getMessage()
        if isinstance(text, dict):
            text = {name: fact for name, fact in text.items() if name != _CLOCK}
        self._said.log.append((record.name, record.levelname, str(text)))


class _Ear:
    """A stream that keeps what one thread writes and passes on the rest."""

    def __init__(self, stream: TextIO, kept: io.StringIO, me: int) -> None:
        self._stream, self._kept, self._me = stream, kept, me

    def write(self, text: str) -> int:
        own = threading.get_ident() == self._me
        return (self._kept if own else self._stream).write(text)

    def flush(self) -> None:
        self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


_PLAIN = str, bytes, int, float, complex, bool, type(None)

Leaf = tuple[str, str]
"""The kind of a leaf and its value."""


def leaves(whole: Any) -> dict[str, Leaf]:
    """Each text, number and array in an object, by its place."""
    return dict(_leaves(whole, "", set()))


def unlike(one: Mapping[str, Leaf], other: Mapping[str, Leaf]) -> list[str]:
    """The places where two objects have not the same leaf."""
    return [
        *(place for place, leaf in one.items() if other.get(place) != leaf),
        *(place for place in other if place not in one),
    ]


def _leaves(part: Any, place: str, above: set[int]) -> Iterator[tuple[str, Leaf]]:
    if type(part) in _PLAIN:
        yield place, (type(part).__name__, repr(part))
        return
    if isinstance(part, type | types.FunctionType | types.BuiltinFunctionType | types.ModuleType):
        yield place, ("name", getattr(part, "__qualname__", part.__name__))
        return
    if id(part) in above:
        yield place, ("again", type(part).__qualname__)
        return
    above = above | {id(part)}
    if isinstance(part, dict):
        for name, each in part.items():
            yield from _leaves(each, f"{place}[{_key(name)}]", above)
    elif isinstance(part, list | tuple):
        for at, each in enumerate(part):
            yield from _leaves(each, f"{place}[{at}]", above)
    elif isinstance(part, set | frozenset):
        yield place, ("set", repr(sorted(map(repr, part))))
    elif isinstance(part, np.ndarray) and part.dtype != object:
        yield place, ("array", f"{part.dtype} {part.shape} {hash(part.tobytes())}")
    elif isinstance(part, np.ndarray):
        yield from _leaves(part.ravel().tolist(), place, above)
    elif isinstance(part, pd.Series | pd.Index):
        yield place, (type(part).__name__, str(part.dtype))
        yield from _leaves(list(part), place, above)
    elif isinstance(part, pd.DataFrame):
        for name in part:
            yield from _leaves(part[name], f"{place}[{name!r}]", above)
    else:
        yield from _reduced(part, place, above)


def _reduced(part: Any, place: str, above: set[int]) -> Iterator[tuple[str, Leaf]]:
    """What pickle would write of any other object."""
    yield place, ("object", type(part).__qualname__)
    try:
        reduced = part.__reduce_ex__(4)
    except Exception as error:  # noqa: BLE001 - what cannot be pickled is in no file
        yield place, ("unpicklable", type(error).__name__)
        return
    if isinstance(reduced, str):
        return
    _, arguments, *rest = reduced
    yield from _leaves(arguments, f"{place}()", above)
    state, items, pairs = (*rest, None, None, None)[:3]
    states = state if isinstance(state, tuple) else (state,)
    for each in states:
        if isinstance(each, dict):
            for name, value in each.items():
                yield from _leaves(value, f"{place}.{name}", above)
        elif each is not None:
            yield from _leaves(each, f"{place}.state", above)
    for at, each in enumerate(items or ()):
        yield from _leaves(each, f"{place}[{at}]", above)
    for name, each in pairs or ():
        yield from _leaves(each, f"{place}[{_key(name)}]", above)


def _key(name: Any) -> str:
    """A key as the place of what it leads to: text and the like as they are."""
    return repr(name) if isinstance(name, (*_PLAIN, tuple)) else type(name).__qualname__


Through = Callable[[PrivateTable], PrivateTable]
"""Makes of a made-up table that was opened one whose curators write down what they are asked."""

ROWS = 150
"""Synthetic rows that are compared."""


@dataclass(eq=False)
class Outcome:
    """Everything that a fit to a made-up table lets out."""

    # By name what can be compared byte by byte.
    seen: Mapping[str, Any] = field(default_factory=dict)
    error: tuple[str, str, tuple[str, ...]] | None = None  # what ended the fit, if something did

    def differences(self, other: "Outcome") -> list[str]:
        """The names of what is not the same to the byte."""
        names = [*self.seen, *(name for name in other.seen if name not in self.seen)]
        return [name for name in names if self.seen.get(name) != other.seen.get(name)]


class Subject(Protocol):
    """A configuration that can fit made-up tables."""

    @property
    def settings(self) -> Settings:
        """How much may be spent, and by which method."""
        ...

    @property
    def description(self) -> Description:
        """What is declared of the columns."""
        ...

    def fit(self, table: MadeUp, through: Through) -> Outcome:
        """Fits a made-up table and collects all that the fit lets out."""
        ...


@dataclass(frozen=True)
class TableFit:
    """What ``fit_table`` does with these settings."""

    settings: Settings
    description: Description

    def fit(self, table: MadeUp, through: Through) -> Outcome:
        settings = replace(self.settings, method=self.settings.method.small())
        description = self.description
        seen: dict[str, Any] = {}
        with listening() as said:
            private = opened(table.frame, description, settings.people.limit)
            fitted = running_fit(settings, description, through(private)).run(said.steps)
            fitted = replace(fitted, date="")
            seen["file"] = pickle.dumps(fitted)
            seen |= of_rows(fitted.sample(ROWS))
            seen["answers"] = of_answers(fitted.fitted.release)
            seen["ledger"] = fitted.ledger.to_json()
            seen["discovered domain"] = repr(fitted.discovered_domain())
            seen["pages"] = repr(fitted.report().to_dict())
            own = fitted.fitted.description
            seen["plans"] = pickle.dumps((fitted.settings, own.declared))
        return finished(seen, said)


@dataclass(frozen=True, kw_only=True)
class Kept:
    """A fitted object and how it would be made anew."""

    settings: Settings  # those that it has
    ledger: PrivacyLedger  # of all its fits
    release: Release | None  # the noisy answers and the model; None where no column is modelled
    num_rows: int | None  # as far as it is known
    facts: Mapping[str, Any]  # versions and the like
    leaves: Callable[[], dict[str, Leaf]]  # all that its file holds
    # All that a file would hold that was made of the noisy answers and public facts alone.
    leaves_made_anew: Callable[[], dict[str, Leaf]]


def kept_table(fitted: FittedTable) -> Kept:
    """What ``fit_table`` gave, with all that a pickle holds, but for where the rows go on."""
    return Kept(
        settings=fitted.settings,
        ledger=fitted.ledger,
        release=fitted.fitted.release,
        num_rows=fitted.num_rows,
        facts={"fitted": fitted.date},
        leaves=lambda: leaves(_restarted(fitted)),
        leaves_made_anew=lambda: leaves(_restarted(_made_anew(fitted))),
    )


def _made_anew(fitted: FittedTable) -> FittedTable:
    """The same with a model that is made anew, without a table."""
    kept, ledger = fitted.fitted, fitted.ledger
    own = model_anew(kept, fitted.settings, kept.description)
    assert own.release is not None
    spent = own.release.ledger
    # Earlier releases on the ledger are public: they were handed in.
    ledger = ledger if ledger.charges[-len(spent.charges) :] == spent.charges else spent
    return replace(fitted, fitted=own, ledger=ledger, warnings=composed(own, ledger))


def model_anew(kept: Fitted, settings: Settings, description: Description) -> Fitted:
    """A model that is made anew of the noisy answers that are kept, without a table."""
    assert kept.release is not None
    fit = Fit(settings, description, diagnostics=kept.diagnostics, begun=kept.release.ledger)
    with listening() as said:
        fit.ask(None, known=kept.release.measurements)
        return replace(fit.model(starts=kept.starts), has_more=kept.has_more)
    raise ValueError(
        f"No model can be made of the answers that are kept: {said.error and said.error[1]}"
    )


def _restarted(fitted: FittedTable) -> FittedTable:
    """At the first row of the sequence, with all that is computed when rows are made."""
    own = deepcopy(fitted)
    own.sample(1)
    own.reset_sampling()
    return own


def of_answers(release: Any) -> list[Any]:
    """What can be compared of the numbers of all answers that are kept."""
    answers = () if release is None else getattr(release, "measurements", release)
    return [comparable(each.answer) for each in answers]


def of_rows(rows: pd.DataFrame) -> dict[str, Any]:
    """What can be compared of synthetic rows."""
    return {
        "samples": rows.to_csv(),
        "dtypes": {str(name): str(dtype) for name, dtype in rows.dtypes.items()},
    }


def finished(seen: dict[str, Any], said: Said) -> Outcome:
    """An outcome with what was said."""
    return Outcome({**seen, "messages": said.messages(), "progress": said.steps.told}, said.error)


LAYER = "the fitted object"


def file_checks(kept: Kept) -> list[Check]:
    """Whether all that is kept is public or noisy, and whether the ledger adds up."""
    return [_contents(kept), _ledger_check(kept), _delta(kept)]


def _contents(kept: Kept) -> Check:
    name, looked_at = "kept contents", "all texts and numbers that the object holds"
    release = kept.release
    if release is None or all(isinstance(each.query, CountQuery) for each in release.measurements):
        why = "No noisy tables are kept, so that no model can be made of them anew."
        return skipped(LAYER, name, why, looked_at)
    own = kept.leaves()
    places = unlike(own, kept.leaves_made_anew())
    model = [place for place in places if ".model" in place]
    others = [place for place in places if ".model" not in place]
    if model and not others:
        why = (
            "A model made anew of the same noisy answers is another one. That can be so on another "
            "machine or with other versions of NumPy and torch; all else is the same."
        )
        return skipped(LAYER, name, why, looked_at)
    unknown = "stands what neither the noisy answers nor the public facts give."
    faults = [f"At {at} {unknown}" for at in others]
    looked_at = f"{len(own):,} texts, numbers and arrays"
    right = "Made anew of the noisy answers and of what is declared or was found, all are the same."
    return check_of(LAYER, name, looked_at, faults, right, places=others)


def _ledger_check(kept: Kept) -> Check:
    rounding = 1 + 1e-9
    ledger, release, settings = kept.ledger, kept.release, kept.settings
    faults = []
    try:
        if read_ledger(ledger.to_json()) != ledger:
            faults.append("The ledger cannot be read back as it is.")
    except ValueError as error:
        faults.append(str(error))
    if ledger.mu_squared > ledger.budget:
        faults.append("More was spent than the budget allows.")
    if ledger.spent() > ledger.epsilon * rounding:
        faults.append(f"Epsilon {ledger.spent():.4g} was spent of {ledger.epsilon:.4g}.")
    if release is not None:
        faults += _release_faults(release, settings)
    looked_at, facts = f"{len(ledger.charges)} charges", {"epsilon": ledger.spent(), **kept.facts}
    right = (
        f"They add up to epsilon {ledger.spent():.4g} at delta {ledger.delta:g}, "
        f"{ledger.adjacency.value.replace('_', '-')}, for {ledger.unit}, and pay for every answer "
        "that is kept."
    )
    return check_of(LAYER, "kept ledger", looked_at, faults, right, **facts)


def _release_faults(release: Release, settings: Settings) -> list[str]:
    """What the last fit's ledger says against its answers and the settings."""
    spent, faults = release.ledger, []
    if spent.budget > mu_squared_of(spent.epsilon, float(Fraction(spent.delta) - spent.reserved)):
        faults.append("The budget of the fit is larger than its epsilon and delta allow.")
    own = settings.ledger()
    said, kept = (
        (each.adjacency, each.rows_per_person, each.weighed, each.people, each.rows_are_people)
        + (each.weights, each.epsilon, each.delta)
        for each in (own, spent)
    )
    if said != kept:
        faults.append("The settings are not those that the last fit was charged for.")
    for stddev in {each.stddev for each in release.measurements}:
        answers = [each for each in release.measurements if each.stddev == stddev]
        paid = sum(e.num_queries for e in spent.charges if e.stddev / spent.units == stddev)
        if len(answers) > paid:
            said = f"{len(answers)} answers have noise of {stddev:.4g}, and {paid} were paid for."
            faults.append(said)
        needed = sum(each.query.l2_sensitivity_squared(spent.adjacency) for each in answers)
        if not stddev and needed:
            faults.append("An answer that is not public has no noise.")
    return faults


def _delta(kept: Kept) -> Check:
    rows, delta, looked_at = kept.num_rows, kept.ledger.delta, "delta beside the number of rows"
    if rows is None:
        return skipped(LAYER, "kept delta", "No rows were counted.", looked_at)
    faults = [f"Delta is {delta:g}, and not below 1 / {rows:,}, one by the number of rows."]
    faults *= rows > 0 and delta >= 1 / rows
    right = f"Delta is {delta:g}, below 1 / {max(rows, 1):,}."
    return check_of(LAYER, "kept delta", looked_at, faults, right)
