"""The audit of a synthesizer: its settings and its code on made-up tables. No row is read."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import cloudpickle
import pandas as pd

from sdv_privpgd.audit.subjects import (
    ROWS,
    Kept,
    Leaf,
    Outcome,
    Steps,
    Through,
    finished,
    leaves,
    listening,
    model_anew,
    of_answers,
    of_rows,
)
from sdv_privpgd.audit.tables import MadeUp
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.fitted_table import CombinedLedger, FittedTable
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.methods.method import method_of

if TYPE_CHECKING:
    from sdv_privpgd.plugin.synthesizers import PrivateSynthesizer

_FRESH = {"_fitted_table": None, "_fitted": False, "_random_state_set": False,
          "_fitted_date": None, "_gives_frames": False}  # fmt: skip
"""The state of a synthesizer that was never fitted."""

_DAY = "2000-01-01"
"""The date of all fits of an audit: midnight must not look like a leak."""

_UNDATED = {"_fitted_date": None, "_fitted_sdv_version": None,
            "_fitted_sdv_enterprise_version": None, "_random_state_set": False}  # fmt: skip
"""What a model that is made anew has of its own."""


@dataclass(frozen=True)
class SynthesizerFit:
    """What a synthesizer does with its settings, as ``audit.subjects.Subject`` says."""

    synthesizer: "PrivateSynthesizer"

    @property
    def settings(self) -> Settings:
        """How much may be spent, and by which method."""
        return self.synthesizer._settings()

    @property
    def description(self) -> Description:
        """What is declared of the columns, by the metadata, the domain and the constraints."""
        return unfitted(self.synthesizer)._description()

    def fit(self, table: MadeUp, through: Through) -> Outcome:
        """Fits a copy to a made-up table and collects all that the fit lets out."""
        own = unfitted(self.synthesizer)
        seen: dict[str, Any] = {}
        with listening() as said:
            with _listened_to(own, through, said.steps):
                own.fit(table.frame)
            own._fitted_date = _DAY
            seen["file"] = cloudpickle.dumps(own)
            rows = own.sample(ROWS)
            rows = rows if isinstance(rows, pd.DataFrame) else next(iter(rows.values()))
            seen |= of_rows(rows)
            own.reset_sampling()
            seen["file"] += cloudpickle.dumps(own)
            seen["answers"] = of_answers(own._release)
            seen["ledger"] = own.ledger.to_json()
            seen["discovered domain"] = repr(own.discovered_domain())
            seen["pages"] = repr((own.report().to_dict(), own.get_info(), own.warnings_))
            seen["plans"] = cloudpickle.dumps(own._questions())
        return finished(seen, said)


def kept_file(synthesizer: "PrivateSynthesizer") -> Kept:
    """A fitted synthesizer, with all that its file holds, but for where the rows go on."""
    fitted, settings = synthesizer._model_of_table, synthesizer._settings()
    if fitted is not None and fitted.release is not None and fitted.starts:
        settings = replace(settings, epsilon=fitted.release.ledger.epsilon)  # it got more budget
    info = synthesizer.get_info()

    def held() -> dict[str, Leaf]:
        own = deepcopy(synthesizer)
        with listening():
            _begin_again(own)
        return leaves({**own.__getstate__(), **_UNDATED})

    return Kept(
        settings=settings,
        ledger=synthesizer.ledger,
        release=synthesizer._release,
        num_rows=synthesizer.estimated_num_rows,
        facts={"class": info["class_name"], "fitted": str(info["last_fit_date"])},
        leaves=held,
        leaves_made_anew=lambda: _leaves_made_anew(synthesizer, settings),
    )


def _leaves_made_anew(kept: "PrivateSynthesizer", settings: Settings) -> dict[str, Leaf]:
    """All that a file would hold of a model that is made anew, without a table."""
    own = fresh(kept)
    for name in set(vars(own)) - _names_of(kept):
        delattr(own, name)
    fitted = kept._model_of_table
    assert fitted is not None
    own._ledgers, found = CombinedLedger(kept._ledgers.ledger), fitted.description
    known = {"dtypes": kept._dtypes, "discovered": found.discovered, "shapes": found.shapes}
    made = model_anew(fitted, settings, replace(own._questions()[1], **known))
    ledger = kept.ledger if made.release is None else made.release.ledger
    table = FittedTable(fitted=made, settings=settings, ledger=ledger, warnings=(), date="")
    with listening():
        own._take(table, (kept._gives_frames, kept._original_columns))
        _begin_again(own)
    return leaves({**own.__getstate__(), **_UNDATED})


def _names_of(synthesizer: "PrivateSynthesizer") -> set[str]:
    """The names of what a synthesizer of this class has before it is fitted."""
    new: Any = synthesizer  # for a class of a user that wants other arguments
    with listening():
        new = type(synthesizer)(synthesizer.get_metadata(), **synthesizer.get_parameters())
    return set(vars(new))


def _begin_again(synthesizer: "PrivateSynthesizer") -> None:
    """At the first row of the sequence, with all that is computed when rows are made."""
    synthesizer.sample(1)
    synthesizer.reset_sampling()


def fresh(synthesizer: "PrivateSynthesizer") -> "PrivateSynthesizer":
    """A copy with the same settings and constraints that was never fitted."""
    own = deepcopy(synthesizer)
    vars(own).update(_FRESH, _ledgers=CombinedLedger(), _original_columns=pd.Index([]), _dtypes={})
    return own


def unfitted(synthesizer: "PrivateSynthesizer") -> "PrivateSynthesizer":
    """A copy with the same settings and constraints, at a small size, that was never fitted."""
    own = fresh(synthesizer)
    own.method = method_of(own.method, seed=own.seed).small()
    return own


@contextmanager
def _listened_to(
    synthesizer: "PrivateSynthesizer", through: Through, steps: Steps
) -> Iterator[None]:
    """This one copy opens its table for the audit, and shows its bar to it."""
    opened, own = synthesizer._open, vars(synthesizer)
    own["_open"] = lambda data, description: through(opened(data, description))
    own["_shown"] = lambda: nullcontext(steps)
    try:
        yield
    finally:
        del own["_open"], own["_shown"]
