"""What is audited: settings and a description, and a way to fit a made-up table with them."""

import pickle
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import pandas as pd

from sdv_privpgd.audit.outputs import Leaf, Said, Steps, leaves, listening
from sdv_privpgd.audit.recording import comparable
from sdv_privpgd.audit.tables import MadeUp
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.door import running_fit
from sdv_privpgd.fitting.fit import Fit
from sdv_privpgd.fitting.fitted import FittedTable
from sdv_privpgd.fitting.options import opened
from sdv_privpgd.fitting.resume import composed
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.methods.pipeline import Release
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.ledger import PrivacyLedger

Through = Callable[[PrivateTable], PrivateTable]
"""Makes of a made-up table that was opened one whose curators write down what they are asked."""

"""Sizes of our own engines in an audit: what depends on the table does not depend on them."""

ROWS = 150
"""Synthetic rows that are compared."""


@dataclass(eq=False)
class Outcome:
    """Everything that a fit to a made-up table lets out.

    Attributes:
        seen: By name what can be compared byte by byte.
        error: What ended the fit, if something did.
    """

    seen: Mapping[str, Any] = field(default_factory=dict)
    error: tuple[str, str, tuple[str, ...]] | None = None

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
    """What ``fit_table`` gave, as ``kept_file.Kept`` says."""

    fitted: FittedTable

    @property
    def settings(self) -> Settings:
        """As of the fit."""
        return self.fitted.settings

    @property
    def ledger(self) -> PrivacyLedger:
        """Of the fit."""
        return self.fitted.ledger

    @property
    def release(self) -> Release | None:
        """The noisy answers and the model."""
        return self.fitted.fitted.release

    @property
    def num_rows(self) -> int | None:
        """As far as it is known."""
        return self.fitted.num_rows

    @property
    def facts(self) -> dict[str, Any]:
        """Dates."""
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
    steps: Steps = said.steps
    return Outcome({**seen, "messages": said.messages(), "progress": steps.told}, said.error)
