"""The book of what was spent: exact, append-only, public."""

import json
import math
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sdv_privpgd.base.arguments import check_delta, check_epsilon, check_fields, check_integer
from sdv_privpgd.privacy.accounting import epsilon_of, mu_squared_of, mu_squared_of_range
from sdv_privpgd.privacy.counting import Bound, Weights, units_of
from sdv_privpgd.privacy.noise import WordSource
from sdv_privpgd.privacy.queries import Adjacency

_EVENTS_SHARE = Fraction(1, 2**60)
"""Share of delta that the events' own deltas may take beyond what is reserved for them: too little
to change a digit of epsilon."""

TRAINED = "training, weaker than counts"
"""The mechanism of a training, in the ledger's words."""


class PrivacyBudgetError(ValueError):
    """A plan needs more than is left. Nothing was read and nothing was released.

    >>> issubclass(PrivacyBudgetError, ValueError)
    True
    """


@dataclass(frozen=True, kw_only=True)
class Charge:
    """One use of the budget. Public.

    ``sensitivity_squared`` is the squared L2 sensitivity under each adjacency, for all the rows
    that one person may have: of the answers together, or of any one score of a choice;
    ``mu_squared`` is what the ledger counts under the fit's adjacency; ``delta`` is what the
    event adds to delta on its own (the sampler's bound, and that of a threshold). Noise has a
    ``stddev``; a choice, with probabilities proportional to exp(score / temperature), has a
    ``temperature`` instead; of values that nobody declared only those are released whose noisy
    number of rows reaches a ``threshold``. Where it is another one under another adjacency,
    ``deltas`` has the event's delta under each.
    """

    mechanism: str
    what: str
    num_queries: int
    num_values: int
    mu_squared: Fraction
    delta: Fraction
    sensitivity_squared: tuple[tuple[Adjacency, int], ...]
    stddev: float = 0.0
    temperature: Fraction | None = None
    threshold: int | None = None
    deltas: tuple[tuple[Adjacency, Fraction], ...] = ()

    def delta_under(self, adjacency: Adjacency) -> Fraction:
        """What the event adds to delta on its own, under an adjacency."""
        return dict(self.deltas).get(adjacency, self.delta)

    @property
    def is_exact(self) -> bool:
        """Whether an answer was released as it is, because the adjacency calls it public."""
        return self.stddev == 0 and self.temperature is None

    def range_epsilon_under(self, adjacency: Adjacency) -> Fraction:
        """The range epsilon of a choice under an adjacency; 0 where nothing was chosen."""
        if self.temperature is None:
            return Fraction(0)
        # A score's sensitivity is an integer: its square's root is exact.
        return 2 * math.isqrt(dict(self.sensitivity_squared)[adjacency]) / self.temperature

    def mu_squared_under(self, adjacency: Adjacency) -> Fraction:
        """What the event costs under an adjacency. An exact release costs 0: its answer is public.

        That 0 is a condition, not a gift; see ``PrivacyLedger.exact_releases``.
        """
        if self.is_exact:
            return Fraction(0)
        if self.temperature is not None:
            return mu_squared_of_range(self.range_epsilon_under(adjacency))
        return Fraction(dict(self.sensitivity_squared)[adjacency]) / Fraction(self.stddev) ** 2


@dataclass(frozen=True, kw_only=True)
class PrivacyLedger:
    """A budget and the charges against it, in exact fractions of mu^2. Public.

    Gaussian-DP events compose by adding mu^2 (Dong, Roth & Su 2022, Corollary 2), also when later
    ones depend on earlier answers (Smith & Thakurta 2022), and deltas add.

    >>> ledger = PrivacyLedger.open(1.0, 1e-5, Adjacency.REPLACE_ONE)
    >>> ledger.spent(), ledger.remaining == ledger.budget
    (0.0, True)
    >>> twice = ledger.followed_by(ledger)  # two fits of the same people
    >>> round(twice.epsilon, 2), twice.delta
    (1.47, 1e-05)
    """

    adjacency: Adjacency
    rows_per_person: int = 1
    epsilon: float
    """The epsilon that was asked for, at ``delta``; the sum of the fits' after a second fit."""
    delta: float
    budget: Fraction
    charges: tuple[Charge, ...] = ()
    reserved: Fraction = Fraction(0)
    """The part of ``delta`` that is kept for the events' own deltas."""
    people: str | None = None
    """The column that says whose a row is, where a person's rows beyond ``rows_per_person`` were
    not read; ``None`` where that number was taken for granted."""
    weighed: bool = False
    """Whether each row of a person counted as 1 / the number of those that were read."""
    rows_are_people: bool = False
    """Whether somebody has said that each row is another person's."""
    weights: Weights | None = None
    """The column that says how much a row counted, if rows did not count alike."""
    family: tuple[str, ...] = ()
    """Tables that belong together, of which a row of the first is protected with all that lead to
    it; ``people`` is its column of keys then."""

    def __post_init__(self) -> None:
        check_fields(self, check_integer, "rows_per_person")  # NumPy's would wrap around

    @classmethod
    def open(
        cls,
        epsilon: float,
        delta: float,
        adjacency: Adjacency,
        rows_per_person: int = 1,
        *,
        reserved: Fraction = Fraction(0),
        **whose: Any,
    ) -> "PrivacyLedger":
        """An empty ledger over the largest mu^2 that (epsilon, delta)-DP allows.

        ``reserved`` is the part of delta, below all of it, that thresholds may use up, and
        ``whose`` what else is said of the rows, by the names of the ledger's own attributes.
        """
        reserved = Fraction(reserved)
        if not 0 <= reserved < Fraction(check_delta(delta)):
            raise ValueError(f"reserved must lie in [0, delta), got {float(reserved)!r}.")
        return cls(
            adjacency=adjacency,
            rows_per_person=rows_per_person,
            epsilon=check_epsilon(epsilon),
            delta=check_delta(delta),
            budget=mu_squared_of(epsilon, float(Fraction(delta) - reserved)),
            reserved=reserved,
            **whose,
        )

    @property
    def rows_counted(self) -> int:
        """What the rows of one person count as together: so many rows, at most.

        >>> PrivacyLedger.open(1.0, 1e-5, Adjacency.ADD_REMOVE, 3, weighed=True).rows_counted
        1
        """
        return 1 if self.weighed else self.rows_per_person

    @property
    def bound(self) -> Bound:
        """What is done about people with several rows, or about weights of rows.

        >>> PrivacyLedger.open(1.0, 1e-5, Adjacency.ADD_REMOVE, 3, people="patient").bound
        ('patient', 3, False)
        """
        if self.people is None:
            return self.weights
        return self.people, self.rows_per_person, self.weighed

    @property
    def units(self) -> int:
        """How many units a count of one is, in which counts, noise and charges are whole numbers.

        >>> PrivacyLedger.open(1.0, 1e-5, Adjacency.ADD_REMOVE, 3, weighed=True).units
        6
        """
        if self.weights is not None:
            return self.weights.units
        return units_of(self.rows_per_person) if self.weighed else 1

    def squares(self, of_row: Callable[[Adjacency], int]) -> dict[Adjacency, int]:
        """The squared sensitivity to a whole person, in units: that to a row, of all their rows.

        A family in whose place another one comes may take a third with it, whose key that one has:
        then two go, and both may be in one cell. So it is as far as twice a family that goes.
        """
        whole, gone = (self.rows_counted * self.units) ** 2, of_row(Adjacency.ADD_REMOVE)
        return {a: whole * (a.cells**2 * gone if self.family else of_row(a)) for a in Adjacency}

    @property
    def unit(self) -> str:
        """What is protected, in words.

        >>> PrivacyLedger.open(1.0, 1e-5, Adjacency.ADD_REMOVE, 3, people="patient").unit
        "all rows of one person, of which 3 at most are used (told apart by 'patient')"
        """
        from sdv_privpgd.privacy.ledger_file import unit_in_words

        return unit_in_words(self)

    @property
    def says_whose(self) -> bool:
        """Whether somebody has said whose the rows are.

        >>> PrivacyLedger.open(1.0, 1e-5, Adjacency.REPLACE_ONE).says_whose
        False
        """
        return self.people is not None or self.rows_per_person > 1 or self.rows_are_people

    @property
    def mu_squared(self) -> Fraction:
        """What was spent so far."""
        return sum((charge.mu_squared for charge in self.charges), Fraction(0))

    @property
    def remaining(self) -> Fraction:
        """What is left, in mu^2."""
        return self.budget - self.mu_squared

    @property
    def exact_releases(self) -> tuple[Charge, ...]:
        """Charges that released an answer without noise, because the adjacency calls it public."""
        return tuple(charge for charge in self.charges if charge.is_exact)

    def record(self, charge: Charge) -> "PrivacyLedger":
        """The ledger with one more charge. Raises ``PrivacyBudgetError`` if it does not fit."""
        if charge.mu_squared > self.remaining:
            raise PrivacyBudgetError(
                f"{charge.mechanism} on {charge.what} needs mu²={float(charge.mu_squared):.6g}, "
                f"but {float(self.remaining):.6g} of {float(self.budget):.6g} is left. "
                "Ask for less or allow a larger epsilon."
            )
        deltas = charge.delta + sum(earlier.delta for earlier in self.charges)
        if deltas > self.reserved + Fraction(self.delta) * _EVENTS_SHARE:
            raise PrivacyBudgetError(
                f"{charge.mechanism} on {charge.what} adds {float(charge.delta):.3g} to delta, "
                f"too much for delta={self.delta!r}. Choose a larger delta."
            )
        return replace(self, charges=(*self.charges, charge))

    def followed_by(self, later: "PrivacyLedger") -> "PrivacyLedger":
        """The composition of two ledgers over the same table. Raises ``ValueError`` if unlike.

        >>> ledger = PrivacyLedger.open(1.0, 1e-5, Adjacency.REPLACE_ONE)
        >>> round(ledger.followed_by(ledger).epsilon, 2)  # of two fits of the same people
        1.47
        """
        own, other = (
            f"{each.adjacency.value}/{each.rows_per_person}{'/weighed' if each.weighed else ''}"
            + ("" if each.weights is None else f"/{tuple(each.weights)}")
            + "".join(f"/{name}" for name in each.family)
            for each in (self, later)
        )
        if own != other:
            raise ValueError(
                "Ledgers compose only under one adjacency and one rows_per_person, got "
                f"{own} and {other}."
            )
        budget = self.budget + later.budget
        delta = max(self.delta, later.delta)
        reserved = self.reserved + later.reserved
        left = float(Fraction(delta) - reserved)
        return replace(
            self,
            epsilon=epsilon_of(budget, left) if left > 0 else math.inf,
            delta=delta,
            budget=budget,
            charges=self.charges + later.charges,
            reserved=reserved,
            people=self.people if self.people == later.people else None,
            rows_are_people=self.rows_are_people and later.rows_are_people,
        )

    def spent(self, delta: float | None = None, adjacency: Adjacency | str | None = None) -> float:
        """The epsilon spent so far, at this delta (default: the one asked for).

        Under the fit's own adjacency unless another is named. The other one is computed event by
        event, and holds given the answers of ``exact_releases``: a replace-one fit protects
        against adding or removing a row only given the published number of rows. Infinite if the
        events' own deltas use up ``delta``.
        """
        delta = check_delta(self.delta if delta is None else delta)
        adjacency = self.adjacency if adjacency is None else Adjacency(adjacency)
        left = Fraction(delta) - sum(charge.delta_under(adjacency) for charge in self.charges)
        if left <= 0:
            return math.inf
        if adjacency is self.adjacency:
            return epsilon_of(self.mu_squared, float(left))
        other = sum((charge.mu_squared_under(adjacency) for charge in self.charges), Fraction(0))
        return epsilon_of(other, float(left))

    def to_dict(self) -> dict[str, Any]:
        """The ledger as plain values: fractions as text, exactly, and as floats for reading.

        Their ``digest`` tells an edit by mistake. It is no signature: who edits can write it anew.
        """
        from sdv_privpgd.privacy.ledger_file import written

        return written(self)

    def to_json(self, *, indent: int | None = 2) -> str:
        """``to_dict`` as JSON text."""
        return json.dumps(self.to_dict(), indent=indent)


class FitLedger:
    """What all curators of a fit share: one ledger, and the randomness of the noise.

    A curator answers for one table of codes. A fit has several of them, one after another, and
    what each of them charges stands here, whatever happens next. Threads may share it.

    Args:
        ledger: Empty, or that of a fit that goes on.
        words: The randomness: the operating system's, but in tests.
    """

    __slots__ = ("_ledger", "_lock", "words")

    def __init__(self, ledger: PrivacyLedger, *, words: WordSource = os.urandom) -> None:
        self._ledger = ledger
        self._lock = threading.Lock()
        self.words = words

    @property
    def ledger(self) -> PrivacyLedger:
        """What was charged so far. Public."""
        return self._ledger

    def require(self, bound: Bound) -> None:
        """Raises ``ValueError`` unless a table is read as the ledger says: ask before it is read.

        ``bound`` is what ``PrivacyLedger.bound`` would be.
        """
        if bound != self._ledger.bound:
            raise ValueError(
                f"A table with (person_column, rows_per_person, weigh_people) = {bound} is not "
                f"what its ledger says, {self._ledger.bound}: open it as they do, or fit anew."
            )

    def charge(self, charge: Charge) -> None:
        """Puts a charge on the ledger. Raises ``PrivacyBudgetError`` if it does not fit."""
        with self._lock:
            self._ledger = self._ledger.record(charge)


def raised(ledger: PrivacyLedger, epsilon: float) -> PrivacyLedger:
    """The same ledger with a budget that allows so much more epsilon in all. Public.

    Privacy: the charges so far and all later ones together are within the new budget, because mu^2
    adds up, also where later questions depend on earlier answers (``PrivacyLedger``). The largest
    mu^2 of the new total is more than the sum of two smaller ones' would be: epsilon 0.5 and 0.5
    more may spend exactly what epsilon 1 may.

    Args:
        ledger: Of a fit. What it has left can be spent as well.
        epsilon: What the total epsilon grows by, at the same delta.

    Raises:
        ValueError: For an epsilon that is not positive and finite, and where the ledger's own
            deltas leave nothing of its delta.
    """
    total = check_epsilon(ledger.epsilon + check_epsilon(epsilon))
    left = float(Fraction(ledger.delta) - ledger.reserved)
    if left <= 0:
        raise ValueError(
            f"The ledger's own deltas use up its delta={ledger.delta!r}: nothing can be added."
        )
    return replace(ledger, epsilon=total, budget=mu_squared_of(total, left))
