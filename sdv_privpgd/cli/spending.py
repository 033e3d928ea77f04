"""Limits what a command may spend, given what earlier ones have spent on the same people."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from sdv_privpgd.cli.saying import CommandError, in_options, reason
from sdv_privpgd.privacy.accounting import check_epsilon, epsilon_of
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.ledger_file import read_ledger


def earlier_ledger(path: Path | None) -> PrivacyLedger | None:
    """The ledger in a file; ``None`` if there is no file yet.

    >>> earlier_ledger(None) is None
    True
    """
    if path is None or not path.exists():
        return None
    try:
        return read_ledger(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CommandError(f"Cannot read --ledger {path}: {reason(error)}.") from None
    except ValueError as error:
        raise CommandError(
            f"--ledger {path} is not a ledger that can be gone on with: {in_options(error)}"
        ) from None


def check_spending(
    earlier: PrivacyLedger | None,
    planned: PrivacyLedger,
    most: float | None,
    what: str = "--epsilon",
) -> None:
    """Raises ``CommandError`` if a fit and all earlier ones would spend more than ``most``.

    Args:
        earlier: The ledger of what was spent on the same people.
        planned: The empty ledger of the fit.
        most: The largest epsilon.
        what: The name of what is planned, for a message.

    >>> from sdv_privpgd.privacy.queries import Adjacency
    >>> planned = PrivacyLedger.open(1.0, 1e-5, Adjacency.REPLACE_ONE)
    >>> check_spending(None, planned, most=2.0)  # there is enough
    """
    together = planned if earlier is None else after(closed(earlier), planned)
    if most is None or together.epsilon <= _checked(most):
        return
    before = ""
    if earlier is not None:
        before = f" after {earlier.spent():.6g} before"
    raise CommandError(
        f"{what} {planned.epsilon:.6g}{before} would come to epsilon {together.epsilon:.6g} at "
        f"delta {together.delta:g}, more than --max-epsilon {most:g}. Nothing was read."
    )


def rest(begun: PrivacyLedger) -> PrivacyLedger:
    """What is left of the budget of a fit that has begun, as the empty ledger of another.

    >>> from sdv_privpgd.privacy.queries import Adjacency
    >>> round(rest(PrivacyLedger.open(1.0, 1e-5, Adjacency.REPLACE_ONE)).epsilon, 6)
    1.0
    """
    reserved = begun.reserved - sum((charge.delta for charge in begun.charges), Fraction(0))
    reserved = max(reserved, Fraction(0))
    return replace(
        begun,
        epsilon=epsilon_of(begun.remaining, float(Fraction(begun.delta) - reserved)),
        budget=begun.remaining,
        charges=(),
        reserved=reserved,
    )


def after(earlier: PrivacyLedger | None, later: PrivacyLedger) -> PrivacyLedger:
    """Both ledgers together. Raises ``CommandError`` if they do not protect the same unit.

    >>> from sdv_privpgd.privacy.queries import Adjacency
    >>> ledger = PrivacyLedger.open(1.0, 1e-5, Adjacency.REPLACE_ONE)
    >>> after(None, ledger) is ledger
    True
    """
    if earlier is None:
        return later
    try:
        return earlier.followed_by(later)
    except ValueError as error:
        raise CommandError(f"--ledger: {in_options(error)}") from None


def spent(ledger: PrivacyLedger) -> str:
    """The charges in words.

    >>> from sdv_privpgd.privacy.queries import Adjacency
    >>> spent(PrivacyLedger.open(1.0, 1e-5, Adjacency.REPLACE_ONE))
    'Nothing was spent.'
    """
    if not ledger.charges:
        return "Nothing was spent."
    return (
        f"Epsilon {ledger.spent():.4g} of {ledger.epsilon:.4g} at delta {ledger.delta:g} was spent."
    )


def spent_now(ledger: PrivacyLedger, begun: int) -> str:
    """What a command has spent that began after so many charges, and all charges, in words.

    >>> from sdv_privpgd.privacy.queries import Adjacency
    >>> spent_now(PrivacyLedger.open(1.0, 1e-5, Adjacency.REPLACE_ONE), begun=0)
    'Nothing was spent.'
    """
    if not begun:
        return spent(ledger)
    own = closed(replace(ledger, charges=ledger.charges[begun:]))
    by_run = (
        f"This run spent epsilon {own.spent():.4g}"
        if own.charges
        else "Nothing was spent by this run"
    )
    return (
        f"{by_run}; the model stands at epsilon {ledger.spent():.4g} of {ledger.epsilon:.4g} at "
        f"delta {ledger.delta:g}."
    )


def closed(ledger: PrivacyLedger) -> PrivacyLedger:
    """The same charges with nothing left: an ended fit cannot use the rest of its budget.

    >>> from sdv_privpgd.privacy.queries import Adjacency
    >>> closed(PrivacyLedger.open(1.0, 1e-5, Adjacency.REPLACE_ONE)).remaining
    Fraction(0, 1)
    """
    deltas = sum((charge.delta for charge in ledger.charges), Fraction(0))
    return replace(ledger, budget=ledger.mu_squared, reserved=deltas)


def _checked(most: float) -> float:
    try:
        return check_epsilon(most)
    except ValueError:
        raise CommandError(f"--max-epsilon must be positive and finite, got {most:g}.") from None
