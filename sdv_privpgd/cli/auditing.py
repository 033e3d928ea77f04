"""The command that audits settings on made-up tables. It reads no table."""

from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sdv_privpgd.cli.documents import columns_of, read_facts, read_metadata
from sdv_privpgd.cli.models import fitted
from sdv_privpgd.cli.saying import CommandError, in_options, own_errors, say
from sdv_privpgd.cli.synthesizing import synthesizer_of
from sdv_privpgd.cli.writing import Outputs

if TYPE_CHECKING:
    from sdv_privpgd.plugin.base import PrivateSynthesizer
    from sdv_privpgd.report.page import Report


USUAL = {
    "delta": 1e-5,
    "adjacency": "replace_one",
    "rows_per_person": 1,
    "person_column": None,
    "weigh_people": False,
    "discovery_share": 0.2,
    "seed": 0,
    "method": "privpgd",
}
"""What the options of a fit are if nobody says otherwise."""


def audit(arguments: Namespace) -> None:
    """Audits settings, and what a kept synthesizer holds. Raises ``CommandError`` for a fault."""
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
        synthesizer = _audited(arguments)
        with own_errors():
            report = _report(synthesizer, arguments.runs)
        outputs.write(out, partial(_saved, report))
        outputs.write(page, partial(_saved, report))
    print(report)
    wrong = report.to_dict()["failed"]
    if wrong:
        raise CommandError(f"The audit found faults: {', '.join(wrong)}.")


def _audited(arguments: Namespace) -> "PrivateSynthesizer":
    """The kept synthesizer, or one that the options describe."""
    if arguments.model is None:
        for name, usual in USUAL.items():
            if getattr(arguments, name) is None:
                setattr(arguments, name, usual)
        return synthesizer_of(arguments, read_metadata(arguments.metadata))
    for option in ("constraints", "method"):
        if getattr(arguments, option) is not None:
            raise CommandError(f"--{option} is not needed: {arguments.model} has its own.")
    synthesizer = fitted(arguments.model)
    for sentence in _other_facts(arguments, synthesizer):
        raise CommandError(sentence)
    return synthesizer


def _other_facts(arguments: Namespace, synthesizer: "PrivateSynthesizer") -> list[str]:
    """Sentences on what the options say and the kept synthesizer has otherwise."""
    said: dict[str, tuple[Any, Any]] = {}
    if arguments.metadata is not None:
        types = [
            {name: facts["sdtype"] for name, facts in columns_of(metadata).items()}
            for metadata in (read_metadata(arguments.metadata), synthesizer.get_metadata())
        ]
        said["--metadata"] = types[0], types[1]
    if arguments.domain is not None:
        said["--domain"] = read_facts(arguments.domain) or {}, synthesizer.public_domain or {}
    own, plain = synthesizer.people, ("epsilon", "delta", "adjacency", "discovery_share", "seed")
    kept = {
        **{name: getattr(synthesizer, name) for name in plain},
        "rows_per_person": own.max_rows,
        "person_column": own.column,
        "weigh_people": own.weighed,
        "num_bins": synthesizer.fitted_table.settings.method.num_bins,
    }
    for name, value in kept.items():
        asked = getattr(arguments, name)
        if asked is not None:
            said[f"--{name.replace('_', '-')}"] = asked, value
    return [
        f"{arguments.model} was not fitted with what {option} says: the file has other facts. An "
        "audit of the file needs no other option; what is declared in it is taken to be public."
        for option, (asked, kept) in said.items()
        if asked != kept
    ]


def _report(synthesizer: "PrivateSynthesizer", runs: int) -> "Report":
    say("Auditing made-up tables: no row is read.")
    try:
        return synthesizer.audit(runs=runs)
    except ValueError as error:  # ours, of made-up tables
        raise CommandError(in_options(error)) from None


def _saved(report: "Report", part: Path) -> None:
    report.save(part)
