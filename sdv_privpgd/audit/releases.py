"""The audit of release files: what ``measure`` does with made-up tables."""

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sdv_privpgd.audit.door import audited
from sdv_privpgd.audit.observing import listening
from sdv_privpgd.audit.subjects import Outcome, Through, finished, of_answers
from sdv_privpgd.audit.tables import MadeUp
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.fit import Fit
from sdv_privpgd.fitting.opening import opened
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.methods.method import Method
from sdv_privpgd.releases.measured import Measured
from sdv_privpgd.releases.measuring import Measuring, questions
from sdv_privpgd.report.page import Report


def audit_measure(
    columns: Mapping[str, Mapping],
    epsilon: float,
    delta: float | None = None,
    *,
    runs: int = 10_000,
    path: str | Path | None = None,
    false_alarms: float = 1e-4,
    method: Method | str = "privpgd",
    **settings: Any,
) -> Report:
    """Audits what ``measure`` does with these arguments, on tables that it makes up itself.

    No row is read and nothing is spent. The release's file must be the same to the byte for any two
    tables with the same noisy answers.

    Args:
        columns: As ``measure`` takes them.
        epsilon: What may be spent.
        delta: At this delta.
        runs: As ``audit_fit`` takes it.
        path: The same.
        false_alarms: The same.
        method: As ``measure`` takes it.
        settings: Other arguments of ``measure``, such as ``adjacency``, but for ``holder``.

    Raises:
        ValueError: As ``measure``.

    >>> from sdv_privpgd import Boolean
    >>> from sdv_privpgd.audit import audit_measure
    >>> audit_measure({"ill": Boolean()}, epsilon=1.0, runs=200).to_dict()["passed"]
    True
    """
    subject = ReleaseFit(*questions(columns, epsilon, delta, method=method, **settings))
    report = audited(subject, name="measure", runs=runs, false_alarms=false_alarms)
    if path is not None:
        report.save(path)
    return report


@dataclass(frozen=True)
class ReleaseFit:
    """What ``measure`` does with these settings, as ``audit.subjects.Subject`` says."""

    settings: Settings
    description: Description
    words: Mapping[str, Mapping]

    def fit(self, table: MadeUp, through: Through) -> Outcome:
        """Measures a made-up table and collects all that the release lets out."""
        seen: dict[str, Any] = {}
        description, settings = self.description, self.settings
        with listening() as said:
            private = opened(table.frame, description, settings.people.limit)
            measuring = Measuring(
                holder="nobody",
                columns=self.words,
                fit=Fit(settings, description, doubts={}),
                private=through(private),
            )
            release = replace(measuring.run(said.steps, stops=False), date="")
            with TemporaryDirectory() as folder:
                path = release.save(Path(folder) / "release.zip")
                seen["file"], seen["answers"] = (
                    path.read_bytes(),
                    of_answers(Measured.load(path).answers),
                )
            seen["file"] += pickle.dumps(release)
            seen["books"] = release.ledger.to_json()
            seen["pages"] = "\n".join((repr(release), release.privacy_report(), *release.warnings))
        return finished(seen, said)
