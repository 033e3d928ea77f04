"""Ledgers put together: more budget for one table, and several tables with the same people."""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from sdv_privpgd.privacy.accounting import check_delta, check_epsilon, epsilon_of, mu_squared_of
from sdv_privpgd.privacy.ledger import PrivacyLedger


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
