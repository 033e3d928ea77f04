"""What is audited: settings and a description, and a way to fit a made-up table with them."""

import pickle
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Protocol

import pandas as pd

from sdv_privpgd.audit.checks import Check, check_of, unseen
from sdv_privpgd.audit.outputs import Leaf, Said, leaves, listening, unlike
from sdv_privpgd.audit.recording import comparable
from sdv_privpgd.audit.tables import MadeUp
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.door import FittedTable, running_fit
from sdv_privpgd.fitting.fit import Fit
from sdv_privpgd.fitting.opening import opened
from sdv_privpgd.fitting.refining import composed
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.methods.pipeline import Release
from sdv_privpgd.privacy.accounting import mu_squared_of
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.ledger_file import read_ledger
from sdv_privpgd.privacy.queries import CountQuery

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
            rows = fitted.sample(ROWS)
            seen |= of_rows(rows)
            seen["answers"] = of_answers(fitted.fitted.release)
            seen["books"] = fitted.ledger.to_json()
            seen["discovered domain"] = repr(fitted.discovered_domain())
            seen["pages"] = repr(fitted.report().to_dict())
            own = fitted.fitted.description
            seen["plans"] = pickle.dumps((fitted.settings, own.declared))
        return finished(seen, said)


@dataclass(frozen=True)
class KeptTable:
    """What ``fit_table`` gave, as ``Kept`` says."""

    fitted: FittedTable

    @property
    def settings(self) -> Settings:
        return self.fitted.settings

    @property
    def ledger(self) -> PrivacyLedger:
        return self.fitted.ledger

    @property
    def release(self) -> Release | None:
        return self.fitted.fitted.release

    @property
    def num_rows(self) -> int | None:
        return self.fitted.num_rows

    @property
    def facts(self) -> dict[str, Any]:
        return {"fitted": self.fitted.date}

    def leaves(self) -> dict[str, Leaf]:
        """All that a pickle holds, but for where the rows go on."""
        return leaves(_restarted(self.fitted))

    def leaves_made_anew(self) -> dict[str, Leaf]:
        """The same of a model that is made anew, without a table."""
        kept = self.fitted.fitted
        assert kept.release is not None
        books = kept.release.ledger
        fit = Fit(self.settings, kept.description, doubts=kept.doubts, begun=books)
        with listening() as said:
            fit.ask(None, known=kept.release.measurements)
            own = fit.model(starts=kept.starts)
            # Earlier releases on the ledger are public: they were handed in.
            ledger = self.fitted.ledger
            ledger = ledger if ledger.charges[-len(books.charges) :] == books.charges else books
            anew = replace(self.fitted, fitted=own, ledger=ledger, warnings=composed(own, ledger))
        if said.error is not None:
            raise ValueError(f"No model can be made of the answers that are kept: {said.error[1]}")
        return leaves(_restarted(anew))


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


class Kept(Protocol):
    """A fitted object and how it would be made anew.

    Attributes:
        settings: Those that it has.
        ledger: Of all its fits.
        release: The noisy answers and the model; ``None`` where no column is modelled.
        num_rows: As far as it is known.
        facts: Versions and the like.
    """

    @property
    def settings(self) -> Settings: ...

    @property
    def ledger(self) -> PrivacyLedger: ...

    @property
    def release(self) -> Release | None: ...

    @property
    def num_rows(self) -> int | None: ...

    @property
    def facts(self) -> Mapping[str, Any]: ...

    def leaves(self) -> dict[str, Leaf]:
        """All that its file holds."""
        ...

    def leaves_made_anew(self) -> dict[str, Leaf]:
        """All that a file would hold that was made of the noisy answers and public facts alone."""
        ...


def file_checks(kept: Kept) -> list[Check]:
    """Whether all that is kept is public or noisy, and whether the books add up."""
    return [_contents(kept), _books(kept), _delta(kept)]


def _contents(kept: Kept) -> Check:
    name, looked_at = "kept contents", "all texts and numbers that the object holds"
    release = kept.release
    if release is None or all(isinstance(each.query, CountQuery) for each in release.measurements):
        return unseen(
            LAYER,
            name,
            "No noisy tables are kept, so that no model can be made of them anew.",
            looked_at,
        )
    own = kept.leaves()
    places = unlike(own, kept.leaves_made_anew())
    model = [place for place in places if ".model" in place]
    others = [place for place in places if ".model" not in place]
    if model and not others:
        return unseen(
            LAYER,
            name,
            "A model made anew of the same noisy answers is another one. That can be so on another "
            "machine or with other versions of NumPy and torch; all else is the same.",
            looked_at,
        )
    faults = [
        f"At {place} stands what neither the noisy answers nor the public facts give."
        for place in others
    ]
    return check_of(
        LAYER,
        name,
        f"{len(own):,} texts, numbers and arrays",
        faults,
        "Made anew of the noisy answers and of what is declared or was found, all are the same.",
        places=others,
    )


def _books(kept: Kept) -> Check:
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
    return check_of(
        LAYER,
        "kept ledger",
        f"{len(ledger.charges)} charges",
        faults,
        f"They add up to epsilon {ledger.spent():.4g} at delta {ledger.delta:g}, "
        f"{ledger.adjacency.value.replace('_', '-')}, for {ledger.unit}, and pay for every answer "
        "that is kept.",
        epsilon=ledger.spent(),
        **kept.facts,
    )


def _release_faults(release: Release, settings: Settings) -> list[str]:
    """What the last fit's books say against its answers and the settings."""
    books, faults = release.ledger, []
    if books.budget > mu_squared_of(books.epsilon, float(Fraction(books.delta) - books.reserved)):
        faults.append("The budget of the fit is larger than its epsilon and delta allow.")
    own = settings.ledger()
    said, kept = (
        (each.adjacency, each.rows_per_person, each.weighed, each.people, each.rows_are_people)
        + (each.weights, each.epsilon, each.delta)
        for each in (own, books)
    )
    if said != kept:
        faults.append("The settings are not those that the last fit was charged for.")
    for stddev in {each.stddev for each in release.measurements}:
        answers = [each for each in release.measurements if each.stddev == stddev]
        paid = sum(
            charge.num_queries for charge in books.charges if charge.stddev / books.units == stddev
        )
        if len(answers) > paid:
            faults.append(
                f"{len(answers)} answers have noise of {stddev:.4g}, and {paid} were paid for."
            )
        needed = sum(each.query.l2_sensitivity_squared(books.adjacency) for each in answers)
        if not stddev and needed:
            faults.append("An answer that is not public has no noise.")
    return faults


def _delta(kept: Kept) -> Check:
    rows, delta = kept.num_rows, kept.ledger.delta
    if rows is None:
        return unseen(
            LAYER, "kept delta", "No rows were counted.", "delta beside the number of rows"
        )
    faults = [f"Delta is {delta:g}, and not below 1 / {rows:,}, one by the number of rows."]
    return check_of(
        LAYER,
        "kept delta",
        "delta beside the number of rows",
        faults if rows > 0 and delta >= 1 / rows else [],
        f"Delta is {delta:g}, below 1 / {max(rows, 1):,}.",
    )
