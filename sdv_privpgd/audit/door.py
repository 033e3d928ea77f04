"""The audit as a whole: its layers in order, and the report."""

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sdv_privpgd.audit.attack import attack_checks, attacked
from sdv_privpgd.audit.checks import Check, audit_report, right_chance
from sdv_privpgd.audit.noise import (
    FreshProcesses,
    answer_checks,
    choice_check,
    fresh_check,
    law_checks,
    mechanism_checks,
)
from sdv_privpgd.audit.replay import recorded, replay_checks
from sdv_privpgd.audit.subjects import (
    Outcome,
    Subject,
    TableFit,
    Through,
    file_checks,
    finished,
    kept_table,
    listening,
    of_answers,
)
from sdv_privpgd.audit.tables import MadeUp
from sdv_privpgd.audit.thresholds import alone_checks, threshold_checks
from sdv_privpgd.audit.training import accountant_check, training_checks
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.fit import Fit
from sdv_privpgd.fitting.fitted_table import FittedTable
from sdv_privpgd.fitting.options import opened, parse_options
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.releases.site import Measuring, questions
from sdv_privpgd.releases.site_release import Measured
from sdv_privpgd.report.page import Report, check_path


def audit_fit(
    columns: Mapping[str, Mapping],
    epsilon: float,
    delta: float | None = None,
    *,
    runs: int = 10_000,
    path: str | Path | None = None,
    false_alarms: float = 1e-4,
    **settings: Any,
) -> Report:
    """Audits what ``fit_table`` does with these arguments, on tables that it makes up itself.

    No row is read and nothing is spent. Methods of your own run as in a fit.

    Args:
        columns: As ``fit_table`` takes them.
        epsilon: What a fit may spend.
        delta: At this delta.
        runs: How often a few people are attacked in each of two worlds. 10,000 take seconds.
        path: Where to save the report as well, as ``Report.save`` takes it.
        false_alarms: How likely all statistical checks together are to fail although all is right.
        settings: Other arguments of ``fit_table``, such as ``method``.

    Returns:
        The report: ``to_dict()["passed"]`` says whether all is well.

    Raises:
        ValueError: As ``fit_table``, and if no fit to such columns is possible at all.

    >>> from sdv_privpgd import Boolean
    >>> from sdv_privpgd.audit import audit_fit
    >>> report = audit_fit({"ill": Boolean()}, epsilon=1.0, method="mst", runs=200)
    >>> report.to_dict()["passed"]
    True
    """
    subject = TableFit(*parse_options(columns, epsilon, delta, **settings))
    return audited(subject, name="fit_table", runs=runs, false_alarms=false_alarms, path=path)


def audit_fitted(
    fitted: FittedTable,
    *,
    runs: int = 10_000,
    path: str | Path | None = None,
    false_alarms: float = 1e-4,
) -> Report:
    """Audits a fitted table: its settings as ``audit_fit`` does, and all that it holds.

    Of the real table it learns nothing: a model is made anew of the noisy answers that are kept,
    and must hold the same to the byte.

    Args:
        fitted: What ``fit_table`` gave.
        runs: As ``audit_fit`` takes it.
        path: The same.
        false_alarms: The same.

    >>> import pandas as pd
    >>> from sdv_privpgd import Boolean, fit_table
    >>> table = pd.DataFrame({"ill": [True, False] * 500})
    >>> fitted = fit_table(table, {"ill": Boolean()}, epsilon=1.0, method="mst")
    >>> audit_fitted(fitted, runs=200).to_dict()["passed"]
    True
    """
    return audited(
        TableFit(fitted.settings, fitted.fitted.description.declared),
        name="fit_table",
        runs=runs,
        false_alarms=false_alarms,
        more=file_checks(kept_table(fitted)),
        path=path,
    )


def audited(
    subject: Subject,
    *,
    name: str,
    runs: int,
    false_alarms: float = 1e-4,
    seed: int = 0,
    more: Sequence[Check] = (),
    path: str | Path | None = None,
) -> Report:
    """All layers of an audit of a subject, which the page calls by a name, and their report.

    The others are as ``audit_fit`` takes them; ``seed`` is that of the made-up rows, and ``more``
    are checks of a fitted object.
    """
    check_path(path)
    runs, chance = right_chance(runs, false_alarms)
    settings, description = subject.settings, subject.description
    checks = [*_checks(subject, runs, chance, seed), *more]
    report = audit_report(name, settings.ledger(), settings, description.columns, checks, runs)
    return report.saved(path)


def _checks(subject: Subject, runs: int, chance: float, seed: int) -> list[Check]:
    settings = subject.settings
    settings.method.small().prepare()
    with FreshProcesses() as processes:
        recording = recorded(subject, seed)
        events = recording.tape.events
        checks = [
            *replay_checks(recording),
            *alone_checks(recording.tape, subject.description, settings),
            *answer_checks(events, chance),
            *mechanism_checks(events),
        ]
        # Those of which a person can have one of two codes can be attacked.
        held = () if recording.tape.schema is None else recording.tape.schema.columns
        schema, attack = Schema(tuple(column for column in held if column.size > 1)), None
        ledger = settings.ledger()
        if schema.columns:
            if any(event.kind == "select" and event.charges for event in events):
                checks.append(choice_check(ledger, schema, chance))
            attack = attacked(settings, schema, runs)
            checks += law_checks(attack, chance)
        checks.append(fresh_check(ledger, processes))
    if attack is not None:
        checks += attack_checks(attack, ledger, chance)
    return [
        *checks,
        *threshold_checks(events, settings, runs, chance),
        *training_checks(events, settings, chance),
        accountant_check(events, recording.outcome.seen.get("ledger"), settings),
    ]


def audit_measure(
    columns: Mapping[str, Mapping],
    epsilon: float,
    delta: float | None = None,
    *,
    runs: int = 10_000,
    path: str | Path | None = None,
    false_alarms: float = 1e-4,
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
        settings: Other arguments of ``measure``, such as ``method``, but for ``site``.

    Raises:
        ValueError: As ``measure``.

    >>> from sdv_privpgd import Boolean
    >>> from sdv_privpgd.audit import audit_measure
    >>> audit_measure({"ill": Boolean()}, epsilon=1.0, runs=200).to_dict()["passed"]
    True
    """
    subject = ReleaseFit(*questions(columns, epsilon, delta, **settings))
    return audited(subject, name="measure", runs=runs, false_alarms=false_alarms, path=path)


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
                site="nobody",
                columns=self.words,
                fit=Fit(settings, description, diagnostics={}),
                private=through(private),
            )
            release = replace(measuring.run(said.steps, stops=False), date="")
            with TemporaryDirectory() as folder:
                path = release.save(Path(folder) / "release.zip")
                seen["file"] = path.read_bytes() + pickle.dumps(release)
                seen["answers"] = of_answers(Measured.load(path).answers)
            seen["ledger"] = release.ledger.to_json()
            seen["pages"] = "\n".join((repr(release), release.privacy_report(), *release.warnings))
        return finished(seen, said)
