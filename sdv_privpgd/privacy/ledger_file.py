"""Ledgers in files and words: what is read of the JSON text, and what is written ahead. Public."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeVar, cast

from sdv_privpgd.base.arguments import check_delta
from sdv_privpgd.base.files import digest_of
from sdv_privpgd.privacy.accounting import delta_of_rows, epsilon_of
from sdv_privpgd.privacy.counting import Weights
from sdv_privpgd.privacy.ledger import Charge, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency

Read = TypeVar("Read")

PLANNED = "planned"
"""The mechanism of what may have been spent, and is written down ahead."""

_ROUNDING = Fraction(1, 10**9)


def read_ledger(text: str) -> PrivacyLedger:
    """The same ledger, exactly.

    Raises:
        ValueError: For any other text, and for charges that do not cost what their noise says: no
            release is forgotten because somebody has edited a file.
    """
    try:
        found = json.loads(text)
    except RecursionError:
        raise ValueError("A ledger is not nested as deeply as this text.") from None
    if not isinstance(found, dict):
        raise ValueError(f"A ledger is a JSON object, got {type(found).__name__}.")
    facts = cast("dict[str, Any]", found)
    if facts.get("digest") != digest_of(facts):
        raise ValueError(
            "The ledger is not as it was written: its digest is missing or another. Take a copy "
            "that nobody has edited, written by this version."
        )
    adjacency = Adjacency(_entry(facts, "adjacency", str))
    ledger = PrivacyLedger(
        adjacency=adjacency,
        rows_per_person=_entry(facts, "rows_per_person", int),
        epsilon=_entry(facts, "epsilon", float),
        delta=check_delta(_entry(facts, "delta", float)),
        budget=_entry(facts, "budget_mu_squared", _amount),
        charges=tuple(_charge(each, adjacency) for each in _entry(facts, "charges", list)),
        reserved=_entry(facts, "reserved_delta", _amount),
        people=_entry(facts, "people", _optional(str)) if "people" in facts else None,
        weighed=_entry(facts, "weighed", bool) if "weighed" in facts else False,
        rows_are_people=_entry(facts, "rows_are_people", bool),
        weights=_entry(facts, "weights", _optional(_weights)) if "weights" in facts else None,
        family=_entry(facts, "family", _names) if "family" in facts else (),
    )
    if ledger.mu_squared != _entry(facts, "spent_mu_squared", _amount) or ledger.remaining < 0:
        raise ValueError("The charges of the ledger are not what it says was spent.")
    left = float(Fraction(ledger.delta) - ledger.reserved)
    allowed = epsilon_of(ledger.budget, left) if left > 0 else math.inf
    if not math.isclose(allowed, ledger.epsilon, rel_tol=1e-6, abs_tol=1e-9):
        raise ValueError("The epsilon of the ledger is not what its budget and its delta allow.")
    whole = (ledger.rows_counted * ledger.units) ** 2
    for charge in ledger.charges:
        if any(square % whole for _, square in charge.sensitivity_squared):
            raise ValueError(f"The ledger's charge for {charge.what!r} is not for {ledger.unit}.")
    return ledger


def written(ledger: PrivacyLedger) -> dict[str, Any]:
    """The ledger as plain values, which ``read_ledger`` reads as JSON."""
    facts = {
        "adjacency": ledger.adjacency.value,
        "rows_per_person": ledger.rows_per_person,
        "people": ledger.people,
        "weighed": ledger.weighed,
        "rows_are_people": ledger.rows_are_people,
        "weights": None if ledger.weights is None else list(ledger.weights),
        **({"family": list(ledger.family)} if ledger.family else {}),
        "units": ledger.units,
        "epsilon": ledger.epsilon,
        "delta": ledger.delta,
        "reserved_delta": str(ledger.reserved),
        "budget_mu_squared": str(ledger.budget),
        "spent_mu_squared": str(ledger.mu_squared),
        "spent_epsilon": {each.value: ledger.spent(adjacency=each) for each in Adjacency},
        "charges": [_written(charge, ledger.budget) for charge in ledger.charges],
    }
    return {**facts, "digest": digest_of(facts)}


def _written(charge: Charge, budget: Fraction) -> dict[str, Any]:
    own = [adjacency for adjacency, _ in charge.sensitivity_squared]
    deltas = {adjacency.value: str(delta) for adjacency, delta in charge.deltas}
    return {
        "mechanism": charge.mechanism,
        "what": charge.what,
        "num_queries": charge.num_queries,
        "num_values": charge.num_values,
        "sensitivity_squared": {each.value: n for each, n in charge.sensitivity_squared},
        "stddev": charge.stddev,
        "temperature": None if charge.temperature is None else str(charge.temperature),
        "threshold": charge.threshold,
        "range_epsilon": {each.value: float(charge.range_epsilon_under(each)) for each in own},
        "mu_squared": str(charge.mu_squared),
        "share": float(charge.mu_squared / (budget or 1)),
        "delta": str(charge.delta),
        **({"deltas": deltas} if deltas else {}),
    }


def planned(ledger: PrivacyLedger, what: str) -> PrivacyLedger:
    """The ledger with all that is left charged at once, for what may come to be spent.

    Privacy: all that is left is as much as one Gaussian of its mu^2, and all that is reserved of
    delta. A row that is replaced goes and another comes: twice the mu, and the delta of two.
    """
    if not ledger.remaining:
        return ledger
    one = (ledger.rows_counted * ledger.units) ** 2
    used = sum((charge.delta for charge in ledger.charges), Fraction(0))
    own = max(ledger.reserved - used, Fraction(0))
    twice, of_two = one, own
    if ledger.adjacency is Adjacency.ADD_REMOVE:
        twice = 4 * one
        of_two = Fraction(delta_of_rows(math.sqrt(ledger.remaining), float(own), 2))
    charge = Charge(
        mechanism=PLANNED,
        what=what,
        num_queries=0,
        num_values=0,
        sensitivity_squared=((Adjacency.REPLACE_ONE, twice), (Adjacency.ADD_REMOVE, one)),
        stddev=math.sqrt(one / ledger.remaining),
        mu_squared=ledger.remaining,
        delta=own,
        deltas=((Adjacency.REPLACE_ONE, of_two), (Adjacency.ADD_REMOVE, own)),
    )
    return ledger.record(charge)


def unit_in_words(ledger: PrivacyLedger) -> str:
    """What a ledger protects."""
    if ledger.family:
        root, *below = map(repr, ledger.family)
        return f"one row of {root} with all rows of {', '.join(below)} that lead to it"
    rows = ledger.rows_per_person
    if ledger.people is not None:
        together = ", together as one row" if ledger.weighed else ""
        return (
            f"all rows of one person, of which {rows} at most are used"
            f"{together} (told apart by {ledger.people!r})"
        )
    if ledger.rows_are_people:
        return "the row of one person"
    return "one row" if rows == 1 else f"up to {rows} rows of one person"


def epsilon_in_all(ledgers: Sequence[PrivacyLedger], delta: float | None = None) -> float:
    """The epsilon spent on somebody who is in the tables of all these ledgers. Public.

    It is at ``delta``, by default the largest of theirs. What a ledger's table says is changed by
    its own people alone. So who is in one of them has that one's epsilon, and for who is in several
    mu^2 adds up.
    """
    if not ledgers:
        return 0.0
    deltas = (charge.delta for ledger in ledgers for charge in ledger.charges)
    largest = max(ledger.delta for ledger in ledgers) if delta is None else check_delta(delta)
    left = Fraction(largest) - sum(deltas, Fraction(0))
    spent = sum((ledger.mu_squared for ledger in ledgers), Fraction(0))
    return epsilon_of(spent, float(left)) if left > 0 else math.inf


def _charge(facts: Any, adjacency: Adjacency) -> Charge:
    squares = _entry(facts, "sensitivity_squared", dict)
    charge = Charge(
        mechanism=_entry(facts, "mechanism", str),
        what=_entry(facts, "what", str),
        num_queries=_entry(facts, "num_queries", int),
        num_values=_entry(facts, "num_values", int),
        sensitivity_squared=tuple((each, _entry(squares, each.value, int)) for each in Adjacency),
        stddev=_entry(facts, "stddev", _finite),
        mu_squared=_entry(facts, "mu_squared", _amount),
        delta=_entry(facts, "delta", _amount),
        temperature=_entry(facts, "temperature", _optional(_positive)),
        threshold=_entry(facts, "threshold", _optional(int)),
        deltas=_entry(facts, "deltas", _amounts) if "deltas" in facts else (),
    )
    if charge.delta_under(adjacency) != charge.delta:
        raise ValueError(f"The ledger has two deltas for {charge.what!r} under one adjacency.")
    if charge.delta > 1:
        raise ValueError(f"The ledger has a delta above 1 for {charge.what!r}.")
    # What a choice costs is rounded up twice on the way to its odds and back.
    if charge.mu_squared * (1 + _ROUNDING) < charge.mu_squared_under(adjacency):
        raise ValueError(f"The ledger's charge for {charge.what!r} is less than its noise costs.")
    return charge


def _entry(facts: Any, key: str, read: Callable[[Any], Read]) -> Read:
    """One entry, read as it was written. Raises ``ValueError`` where it is missing or another."""
    try:
        return read(facts[key])
    except (KeyError, TypeError, ValueError, OverflowError, ZeroDivisionError):
        raise ValueError(f"A ledger needs the entry {key!r}, as it was written.") from None


def _weights(facts: Any) -> Weights:
    return Weights.of(*facts)


def _names(facts: Any) -> tuple[str, ...]:
    return tuple(str(name) for name in facts)


def _finite(number: Any) -> float:
    if not 0 <= number < math.inf:
        raise ValueError("A standard deviation is not negative and finite.")
    return float(number)


def _amount(text: Any) -> Fraction:
    """A fraction written as text, not negative."""
    amount = Fraction(str(text))
    if amount < 0:
        raise ValueError("An amount is not negative.")
    return amount


def _amounts(texts: Mapping[str, Any]) -> tuple[tuple[Adjacency, Fraction], ...]:
    """One of each adjacency."""
    return tuple((each, _amount(texts[each.value])) for each in Adjacency)


def _positive(text: Any) -> Fraction:
    amount = _amount(text)
    if not amount:
        raise ValueError("A temperature is positive.")
    return amount


def _optional(read: Callable[[Any], Read]) -> Callable[[Any], Read | None]:
    return lambda value: None if value is None else read(value)
