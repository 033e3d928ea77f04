"""What an audit looked at, what it found, how sure it is, and the page that shows it. Public."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from importlib.metadata import version
from typing import Any

from sdv_privpgd.base.arguments import check_integer
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.report.page import Facts, Items, Report, Section, Table, Text
from sdv_privpgd.report.privacy import first_line


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    layer: str
    name: str  # a short name, unique among all checks
    looked_at: str  # what was compared, in a few words
    passed: bool | None  # whether nothing was found; ``None`` where it could not be looked at
    found: str  # what was found, in a sentence
    false_alarms: float = 0.0  # how likely it is to fail although all is right
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.passed is not None:  # NumPy's truths are no others
            object.__setattr__(self, "passed", bool(self.passed))

    @property
    def verdict(self) -> str:
        """In one or two words."""
        return {True: "passed", False: "FAILED", None: "not looked at"}[self.passed]


def failed(checks: Sequence[Check]) -> list[str]:
    """The names of the checks that found something."""
    return [each.name for each in checks if each.passed is False]


def check_of(
    layer: str,
    name: str,
    looked_at: str,
    faults: Sequence[str],
    otherwise: str,
    *,
    false_alarms: float = 0.0,
    **facts: Any,
) -> Check:
    """A check that has passed if there are no faults; of several it shows the first."""
    found = faults[0] if faults else otherwise
    if len(faults) > 1:
        found += f" ({len(faults) - 1:,} more of this kind.)"
    return Check(layer, name, looked_at, not faults, found, false_alarms, facts)


def skipped(layer: str, name: str, why: str, looked_at: str = "") -> Check:
    """A check of what could not be looked at."""
    return Check(layer, name, looked_at, None, why)


_WHAT = {
    "the same answers, other tables": "A fit to a made-up table was recorded and repeated on "
    "others, with the same noisy answers: on neighbors, on missing cells, odd cells, other dtypes "
    "and values that one row has. What is not the same to the byte would tell the tables apart.",
    "each cell and row alone": "Cells were read in a crowd of equal ones and alone, and rows in "
    "order with and without the rows after them: what becomes of one may not depend on those.",
    "the noise": "The noise must have the standard deviation that the ledger says, lie on whole "
    "numbers, and be new each time.",
    "an attacker who knows all but one person": "The attacker knows the whole table but for one "
    "person, and looks at the noisy answers along what the person changes: no test of a Gaussian "
    "release is stronger. The bounds are what the attacker could prove; they must stay below the "
    "claim.",
    "what nobody declared": "Values that a column has are found by noisy counts over a threshold. "
    "A value of one person must not come out, and numbers that do must have noise.",
    "a training": "The real curator has trained on made-up records whose gradients are far longer "
    "than the clip. Each noisy sum must be one clip for each record in the sample, and the noise "
    "that was charged for; samples must be drawn anew, at the rate that was charged for.",
    "a second accountant": "The losses of all questions of the recorded fit were added up "
    "numerically, without the ledger's proofs.",
    "the fitted object": "A model was made anew of the noisy answers that the fitted object keeps, "
    "without any table. What the object holds beyond that would come from the table.",
}

_UNSEEN = (
    "How long a fit takes, how much memory it needs, and other side channels.",
    "An attacker inside the process, and code that behaves otherwise when it is audited.",
    "Faults that show with no table of those that were made up, or only in larger ones: an audit "
    "can prove that something leaks, and never that nothing does. The proofs are in the code.",
    "Names, types, ranges and categories that were declared, or types that SDV has detected: they "
    "are taken to be public. Whoever wrote them down by looking at the table has told of it.",
    "Rows of a person beyond max_rows if no column of People says whose they are, and other "
    "fits of the same people.",
)


_IN_TEXT = "audited", "method"
"""Facts that are too long for a tile."""


def right_chance(runs: Any, false_alarms: float) -> tuple[int, float]:
    """The number of runs, checked, and how likely each check may be to fail by chance."""
    fewest = 10  # runs from which a deviation can be estimated
    chances = 15  # checks that can fail by chance; each gets as large a part of what is allowed
    runs = check_integer("runs", runs, least=fewest)
    if not 0 < false_alarms < 1:
        raise ValueError(f"false_alarms must lie between 0 and 1, got {false_alarms!r}.")
    return runs, false_alarms / chances


def audit_report(
    name: str,
    ledger: PrivacyLedger,
    settings: Settings,
    columns: Mapping[str, Mapping],
    checks: Sequence[Check],
    runs: int,
) -> Report:
    """The audit as a text, a page and a dictionary."""
    wrong, chance = failed(checks), sum(check.false_alarms for check in checks)
    facts = {
        "audited": name,
        "epsilon": f"{ledger.epsilon:g}",
        "delta": f"{ledger.delta:g}",
        "adjacency": ledger.adjacency.value,
        "rows of a person": f"{ledger.rows_per_person}" + ", as one" * ledger.weighed,
        "columns": f"{len(columns)}",
        "method": " + ".join(settings.method.parts),
        "runs": f"{runs:,}",
    }
    for attack in (check.facts for check in checks if check.name == "attack"):
        facts["epsilon claimed"] = f"{attack['epsilon_claimed']:.3g}"
        facts["epsilon shown"] = f"{attack['epsilon_lower_bound']:.3g}"
        facts["epsilon that could have been shown"] = f"{attack['epsilon_ceiling']:.3g}"
    looked = sum(check.passed is not None for check in checks)
    verdict = f"Passed: none of {looked} checks found a fault."
    if wrong:
        verdict = f"FAILED: {len(wrong)} of {len(checks)} checks found a fault: {', '.join(wrong)}."
    about = Text(
        "No private row was read. The settings, with all constraints, methods and engines, were "
        f"audited on made-up tables of {facts['columns']} columns, and nothing was spent."
    )
    by_chance = Text(
        f"If all is right, an audit fails by chance with a probability of at most {chance:.1g}. "
        "The bounds of 95 % are for reading: the verdict needs one that is exceeded by chance that "
        "rarely."
    )
    shown = []
    for layer in dict.fromkeys(check.layer for check in checks):
        own = [check for check in checks if check.layer == layer]
        title = layer[0].upper() + layer[1:]
        header = ("check", "verdict", "looked at", "what was found")
        rows = [(each.name, each.verdict, each.looked_at, each.found) for each in own]
        table = Table(f"Checks: {layer}", header, rows, texts=4)
        shown.append(Section(title, [Text(_WHAT[layer]), table]))
    faults = [f"{each.name}: {each.found}" for each in checks if each.passed is False]
    in_tiles = [(key, fact) for key, fact in facts.items() if key not in _IN_TEXT]
    return Report.of(
        f"Audit of {name}",
        [
            Facts([("verdict", "FAILED" if faults else "passed"), *in_tiles]),
            Text(verdict),
            *([Items(faults)] if faults else []),
            about,
            Text(f"Method: {facts['method']}."),
            by_chance,
            Text(f"By sdv-privpgd {version('sdv-privpgd')}, {date.today().isoformat()}.", True),
        ],
        [*shown, Section("What the audit cannot see", [Items(_UNSEEN)])],
        {
            "report": "audit",
            "passed": not wrong,
            "failed": wrong,
            "date": date.today().isoformat(),
            "version": version("sdv-privpgd"),
            **{key.replace(" ", "_"): fact for key, fact in facts.items()},
            "false_alarms": chance,
            "checks": [{**vars(check), "verdict": check.verdict} for check in checks],
            "not_seen": list(_UNSEEN),
        },
        first_line(ledger),
    )
