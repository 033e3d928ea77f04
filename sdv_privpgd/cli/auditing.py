"""The command that audits settings on made-up tables. It reads no table."""

from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sdv_privpgd.cli.models import fitted
from sdv_privpgd.cli.questions import questions
from sdv_privpgd.cli.saying import CommandError, in_options, say
from sdv_privpgd.cli.writing import Outputs

if TYPE_CHECKING:
    from sdv_privpgd.report.page import Report


USUAL = {
    "adjacency": "replace_one",
    "rows_per_person": 1,
    "discovery_share": 0.2,
    "seed": 0,
    "method": "privpgd",
}
"""What the options of a fit are if nobody says otherwise."""

_OF_FIT = (
    "metadata", "domain", "columns", "drop", "make_up", "constraints", "epsilon", "delta", "target",
    "person_column", "rows_are_people", "weigh_people", "weight_column", "weight_range",
    "sequence_index", "num_bins", *USUAL,
)  # fmt: skip


def audit(arguments: Namespace) -> None:
    """Audits settings, and what a model holds. Raises ``CommandError`` for a fault."""
    if arguments.metadata is None and arguments.model is None:
        raise CommandError("An audit needs --metadata and --epsilon, or --model.")
    if arguments.metadata is not None and arguments.epsilon is None and arguments.model is None:
        raise CommandError("--epsilon is needed: it is what is claimed.")
    for name in (arguments.out, arguments.report):
        if name is not None and name.suffix.lower() not in (".json", ".html", ".txt"):
            raise CommandError(f"{name} must end in .json, .html or .txt.")
    inputs = (arguments.metadata, arguments.domain, arguments.constraints, arguments.model)
    with Outputs(inputs=inputs, force=arguments.force) as outputs:
        out = outputs.open("--out", arguments.out)
        page = outputs.open("--report", arguments.report)
        report = _report(arguments)
        outputs.write(out, partial(_saved, report))
        outputs.write(page, partial(_saved, report))
    print(report)
    wrong = report.to_dict()["failed"]
    if wrong:
        raise CommandError(f"The audit found faults: {', '.join(wrong)}.")


def _report(arguments: Namespace) -> "Report":
    """The audit of a model, or of what the options describe."""
    from sdv_privpgd.audit.door import audit_fit, audit_fitted

    runs = {"runs": arguments.runs}
    if arguments.model is None:
        for name, usual in USUAL.items():
            if getattr(arguments, name) is None:
                setattr(arguments, name, usual)
        audited = partial(audit_fit, **questions(arguments).told, **runs)
    else:
        for name in _OF_FIT:
            if getattr(arguments, name) not in (None, [], (), False):
                raise CommandError(
                    f"--{name.replace('_', '-')} is not needed: {arguments.model} has its own."
                )
        audited = partial(audit_fitted, fitted(arguments.model), **runs)
    say("Auditing made-up tables: no row is read.")
    try:
        return audited()
    except ValueError as error:  # ours, of made-up tables
        raise CommandError(in_options(error)) from None


def _saved(report: "Report", part: Path) -> None:
    report.save(part)
