"""What an audit looked at, what it found, and how sure it is. Public."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing that was looked at.

    Attributes:
        layer: The layer that it belongs to.
        name: A short name, unique among all checks.
        looked_at: What was compared, in a few words.
        passed: Whether nothing was found; ``None`` where it could not be looked at.
        found: What was found, in a sentence.
        false_alarms: How likely it is to fail although all is right.
        facts: Numbers.
    """

    layer: str
    name: str
    looked_at: str
    passed: bool | None
    found: str
    false_alarms: float = 0.0
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """In one or two words."""
        return {True: "passed", False: "FAILED", None: "not looked at"}[self.passed]


def failed(checks: Sequence[Check]) -> list[str]:
    """The names of the checks that found something."""
    return [each.name for each in checks if each.passed is False]


def first_of(faults: Sequence[str], otherwise: str) -> str:
    """The first fault of a list and how many more there are, or a sentence if there is none."""
    if not faults:
        return otherwise
    return (
        faults[0] if len(faults) == 1 else f"{faults[0]} ({len(faults) - 1:,} more of this kind.)"
    )


def check_of(
    layer: str, name: str, looked_at: str, faults: Sequence[str], otherwise: str, **facts: Any
) -> Check:
    """A check that no chance decides: it has passed if there are no faults."""
    return Check(
        layer=layer,
        name=name,
        looked_at=looked_at,
        passed=not faults,
        found=first_of(faults, otherwise),
        facts=facts,
    )
