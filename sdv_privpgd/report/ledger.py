"""What was spent on one population over the years: the releases in a ledger's file, and a page.

The charges are the ledger's, and they alone are counted. Beside them the file says of each release
what it was; what no release says it has cost is shown as such.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from importlib.metadata import version
from textwrap import fill
from typing import Any

from sdv_privpgd.base.arguments import check_epsilon
from sdv_privpgd.base.files import digest_of
from sdv_privpgd.privacy.accounting import epsilon_of, mu_squared_of
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.ledger_file import PLANNED, read_ledger
from sdv_privpgd.report.page import Facts, Items, Page, Part, Report, Section, Table, Text
from sdv_privpgd.report.privacy import WIDTH, protected

_SAID = ("name", "date", "release", "method", "unit", "program")
_NUMBERS = ("epsilon", "delta", "mu")
_ADDS_UP = (
    "Whoever is in several releases has the epsilon so far, which is less than the sum: the "
    "squares of mu add up, exactly. Whoever is in one alone has that one's."
)


@dataclass(frozen=True, kw_only=True)
class History:
    """The ledger of one population, and what its releases were. Public.

    Attributes:
        ledger: All charges.
        releases: A dictionary each, in order, as ``release_entry`` makes them.
        limit: The epsilon that all of them together may spend, if somebody has set one.
    """

    ledger: PrivacyLedger
    releases: Sequence[Mapping[str, Any]] = ()
    limit: float | None = None

    def to_json(self) -> str:
        """The text of the file: the ledger's own, with the releases and the limit beside it."""
        facts = self.ledger.to_dict()
        if self.limit is not None:
            facts["max_epsilon"] = self.limit
        if self.releases:
            facts["releases"] = list(self.releases)
        return json.dumps({**facts, "digest": digest_of(facts)}, indent=2)

    @property
    def left(self) -> float | None:
        """The epsilon that one more release may spend within the limit; ``None`` without one."""
        if self.limit is None:
            return None
        delta = Fraction(self.ledger.delta) - _deltas(self.ledger)
        if delta <= 0:
            return 0.0
        left = mu_squared_of(self.limit, float(delta)) - self.ledger.mu_squared
        return epsilon_of(left, float(delta)) if left > 0 else 0.0


def read_history(text: str) -> History:
    """What ``History.to_json`` wrote. Raises ``ValueError`` for any other text."""
    ledger, facts = read_ledger(text), json.loads(text)
    releases, limit = facts.get("releases", []), facts.get("max_epsilon")
    try:
        costs = [_cost(each) for each in releases]
        whole = all(isinstance(each[name], str) for each in releases for name in _SAID)
        whole &= all(isinstance(each[name], float) for each in releases for name in _NUMBERS)
        limit = None if limit is None else check_epsilon(limit)
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        costs, whole = [], False
    if not whole or sum(mu_squared for mu_squared, _ in costs) > ledger.mu_squared:
        raise ValueError("The releases in the ledger are not as they were written.")
    return History(ledger=ledger, releases=releases, limit=limit)


def release_entry(
    ledger: PrivacyLedger, *, name: str, release: str | None, method: str
) -> dict[str, Any]:
    """What the ledger's file says of a release.

    Args:
        ledger: With its own charges alone.
        name: The file of its rows or of its tables.
        release: Its digits, by ``release_id``; ``None`` for a run that paid and made none.
        method: What was measured, and how rows were made.
    """
    return {
        "name": name,
        "date": date.today().isoformat(),
        "release": release or "none was made",
        "method": method,
        "unit": ledger.unit,
        "program": f"sdv-privpgd {version('sdv-privpgd')}",
        "epsilon": ledger.spent(),
        "delta": ledger.delta,
        "mu": math.sqrt(ledger.mu_squared),
        "mu_squared": str(ledger.mu_squared),
        "own_delta": str(_deltas(ledger)),
    }


def ledger_report(history: History, name: str) -> Report:
    """A page of the ledger: its releases, what each cost, the sum so far, and what is left."""
    ledger, left = history.ledger, history.left
    rows, whats, told, so_far, deltas = [], [], [], Fraction(0), Fraction(0)
    for each in history.releases:
        mu_squared, own = _cost(each)
        so_far, deltas = so_far + mu_squared, deltas + own
        cost, delta, mu = (f"{each[number]:.4g}" for number in _NUMBERS)
        together = f"{_epsilon(so_far, ledger.delta, deltas):.4g}"
        said = [each[fact] for fact in ("name", "date", "method")]
        rows.append([*said, cost, delta, mu, together])
        whats.append(
            f"{each['name']} protects {each['unit']}. Release: {each['release']}. By "
            f"{each['program']}."
        )
        told.append(
            f"- {each['name']} ({each['date']}, {each['method']}): epsilon {cost} at delta "
            f"{delta}, mu {mu}; epsilon {together} so far. It{whats[-1].removeprefix(each['name'])}"
        )
    glance = [
        ("releases", f"{len(rows):,}"),
        ("epsilon spent in all", f"{ledger.spent():.4g}"),
        ("delta", f"{ledger.delta:g}"),
        ("limit of epsilon", "none is set" if history.limit is None else f"{history.limit:g}"),
        *([] if left is None else [("left for another release", f"{left:.4g}")]),
    ]
    whose = protected(ledger).split(" If each row")[0]
    notes = _notes(history, so_far, deltas)
    title = f"What was spent on the people of {name}"
    header = ["release", "date", "method", "epsilon", "delta", "mu", "epsilon so far"]
    lead: list[Part] = [Text(whose), Facts(glance)]
    sections = [
        Section("Releases", [Table("In order", header, rows, 3), Text(_ADDS_UP)]),
        Section("What each is", [Items(whats)]),
        *([Section("To be looked at", [Items(notes)])] if notes else []),
    ]
    facts = {
        "report": "ledger",
        "public": True,
        "releases": list(history.releases),
        "epsilon_spent": ledger.spent(),
        "delta": ledger.delta,
        "limit": history.limit,
        "left": left,
        "notes": notes,
        "ledger": ledger.to_dict(),
    }
    lines = "\n".join(f"{what}: {value}" for what, value in glance)
    each = [fill(line, WIDTH, subsequent_indent="  ") for line in told]
    rest = [fill(line, WIDTH) for line in (_ADDS_UP, *notes)]
    text = "\n\n".join([title, fill(whose, WIDTH), lines, *each, *rest])
    return Report(text=text, page=Page(title=title, lead=lead, sections=sections), facts=facts)


def _notes(history: History, mu_squared: Fraction, deltas: Fraction) -> list[str]:
    """Sentences on what was spent beside the releases, which cost so much together."""
    ledger = history.ledger
    planned = [charge for charge in ledger.charges if charge.mechanism == PLANNED]
    notes = [f"{charge.what} has not ended: all of that counts as spent." for charge in planned]
    rest = ledger.mu_squared - mu_squared - sum(charge.mu_squared for charge in planned)
    if rest > 0:
        own = _deltas(ledger) - deltas - sum(charge.delta for charge in planned)
        notes.append(
            f"Epsilon {_epsilon(rest, ledger.delta, own):.4g} was spent by what is no release of "
            "this list: the ledger is older than such lists, or learned later of a model."
        )
    if len({each["unit"] for each in history.releases}) > 1:
        notes.append("The releases do not protect the same: each protects what its line says.")
    return notes


def _cost(release: Mapping[str, Any]) -> tuple[Fraction, Fraction]:
    """The mu^2 of a release, and what its events add to delta. Raises for what is neither."""
    cost = Fraction(release["mu_squared"]), Fraction(release["own_delta"])
    if min(cost) < 0:
        raise ValueError("A cost is not negative.")
    return cost


def _deltas(ledger: PrivacyLedger) -> Fraction:
    return sum((charge.delta for charge in ledger.charges), Fraction(0))


def _epsilon(mu_squared: Fraction, delta: float, own: Fraction) -> float:
    """The epsilon of a sum of mu^2 at ``delta``, of which the events take their own part."""
    left = float(Fraction(delta) - own)
    return epsilon_of(mu_squared, left) if left > 0 else math.inf
