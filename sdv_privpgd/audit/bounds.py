"""What an attacker has shown: bounds of mu from his scores in two worlds, beside the claim."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.special import ndtri
from scipy.stats import beta
from scipy.stats import t as student

from sdv_privpgd.audit.checks import Check
from sdv_privpgd.privacy.accounting import epsilon_of
from sdv_privpgd.privacy.ledger import PrivacyLedger

LAYER = "an attacker who knows all but one person"


@dataclass(frozen=True, kw_only=True, eq=False)
class Attack:
    """The attacker's scores in both worlds, in standard deviations that the ledger promises.

    Attributes:
        claim: The mu of all answers that were measured, as the ledger has it.
        without: Scores where the people are not there, or are their other selves: of all people in
            the first run, then in the second, and so on.
        within: The same where they are.
        people: How many are attacked in each run.
        noise: Draws, each in its own promised standard deviation.
        whole: Whether all answers were whole numbers.
        errors: For each draw the standard deviation that was promised.
        names: The columns that were asked about.
    """

    claim: float
    without: np.ndarray
    within: np.ndarray
    people: int
    noise: np.ndarray
    errors: np.ndarray
    whole: bool
    names: tuple[str, ...]

    @classmethod
    def of_scores(cls, without: np.ndarray, within: np.ndarray, claim: float) -> "Attack":
        """One person's, with no noise kept."""
        none = np.empty(0)
        return cls(
            claim=claim, without=without, within=within, people=1, noise=none, errors=none,
            whole=True, names=(),
        )  # fmt: skip

    @property
    def comparisons(self) -> int:
        """The number of scores in each world."""
        return self.without.size

    @property
    def estimate(self) -> float:
        """How far the worlds are apart, in standard deviations of the scores themselves."""
        # Worlds that are so many standard deviations apart have no noise, but that of arithmetic.
        largest_ratio = 1e6
        # Of each person alone: noise that is the same in all runs may differ between people.
        worlds = [each.reshape(-1, self.people) for each in (self.without, self.within)]
        pooled = math.sqrt(np.mean([each.var(axis=0, ddof=1).mean() for each in worlds]))
        apart = float(self.within.mean() - self.without.mean())
        if apart > largest_ratio * pooled:
            return math.inf
        return apart / pooled if pooled else 0.0

    def lower_bound(self, level: float) -> float:
        """A lower bound of mu at this confidence, by normal theory; 0 or more.

        Student's quantile, for the deviation is estimated, too.
        """
        estimate = self.estimate
        if not math.isfinite(estimate):
            return estimate
        error = math.sqrt(2 / self.comparisons + estimate**2 / (4 * self.comparisons))
        quantile = float(student.ppf(level, 2 * (self.comparisons - self.people)))
        return max(estimate - quantile * error, 0.0)

    def counted_bound(self, level: float) -> float:
        """The same by Clopper and Pearson at one threshold fixed beforehand: no law is assumed."""
        threshold = self.claim / 2
        alarms = int((self.without > threshold).sum())
        misses = int((self.within <= threshold).sum())
        return _mu_of(alarms, misses, self.comparisons, level)

    def ceiling(self, level: float) -> float:
        """The largest ``counted_bound`` that so many comparisons could have given."""
        return _mu_of(0, 0, self.comparisons, level)


def attack_checks(attack: Attack, ledger: PrivacyLedger, false_alarms: float) -> list[Check]:
    """Whether the attacker gains more than the ledger says.

    Args:
        attack: The scores.
        ledger: The empty ledger of a fit: it says what is claimed.
        false_alarms: How likely each of the two checks may be to fail although all is right.
    """
    level = 0.95  # confidence of the bounds that are shown
    delta = ledger.delta
    bounds: list[tuple[str, str, Callable[[float], float]]] = [
        ("attack", "normal theory", attack.lower_bound),
        ("attack, counted", "Clopper and Pearson", attack.counted_bound),
    ]
    checks = []
    for name, how, bound in bounds:
        shown, sure, ceiling = bound(level), bound(1 - false_alarms), attack.ceiling(level)
        # Rounding of the ledger's own numbers.
        passed = sure <= attack.claim * (1 + 1e-9)
        checks.append(
            Check(
                layer=LAYER,
                name=name,
                looked_at=f"{attack.comparisons:,} scores in each of two worlds, by {how}",
                passed=passed,
                found=(
                    f"mu is at least {shown:.4g} with 95 % confidence, and {attack.claim:.4g} is "
                    f"claimed: epsilon {_epsilon(shown, delta):.3g} of "
                    f"{_epsilon(attack.claim, delta):.3g}. So many comparisons could have shown "
                    f"up to mu {ceiling:.3g}, epsilon {_epsilon(ceiling, delta):.3g}."
                    + ("" if passed else f" It is above {sure:.4g} almost surely.")
                ),
                false_alarms=false_alarms,
                facts={
                    "mu_claimed": attack.claim,
                    "mu_estimate": attack.estimate,
                    "mu_lower_bound": shown,
                    "mu_lower_bound_of_the_verdict": sure,
                    "mu_ceiling": ceiling,
                    "epsilon_claimed": _epsilon(attack.claim, delta),
                    "epsilon_lower_bound": _epsilon(shown, delta),
                    "epsilon_ceiling": _epsilon(ceiling, delta),
                    "delta": delta,
                    "comparisons": attack.comparisons,
                    "people": attack.people,
                    "columns": list(attack.names),
                },
            )
        )
    return checks


def _mu_of(alarms: int, misses: int, number: int, level: float) -> float:
    """A lower bound of mu from counts of both errors, each at half of what may go wrong."""
    wrong = (1 - level) / 2
    first, second = (
        1.0 if errors >= number else float(beta.ppf(1 - wrong, errors + 1, number - errors))
        for errors in (alarms, misses)
    )
    return max(float(-ndtri(first) - ndtri(second)), 0.0) if max(first, second) < 1 else 0.0


def _epsilon(mu: float, delta: float) -> float:
    largest = 30.0  # A mu whose epsilon, beyond 600, is as good as none
    if mu > largest:
        return math.inf
    return epsilon_of(Fraction(mu) ** 2, delta)
