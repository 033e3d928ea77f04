"""Layer 2: the noise against what the ledger says of it.

Its standard deviation, mean, shape and lattice, over all draws of the attack and in each answer of
the recorded fit; and how often the exponential mechanism chooses what.
And whether noise comes again, whatever is seeded, forked or started twice.
"""

import math
import multiprocessing
import os
import random
import subprocess
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.special import ndtr
from scipy.stats import binomtest, chi2, kurtosistest, norm

from sdv_privpgd.audit.attack import Attack
from sdv_privpgd.audit.checks import Check, check_of, skipped
from sdv_privpgd.audit.recorder import Event
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.estimate.noisy_tables import rounded_variance
from sdv_privpgd.privacy.accounting import range_epsilon_of
from sdv_privpgd.privacy.boundary import EncodedTable
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.ledger import TRAINED, FitLedger, PrivacyLedger
from sdv_privpgd.privacy.queries import MarginalQuery, ModelErrorQuery

LAYER = "the noise"

_CHOICES = 3_000

_KNOWN = {
    "Gaussian, rounded", "exact (public)", "Gaussian, rounded, over a threshold", "exponential",
    TRAINED,
}  # fmt: skip
"""The mechanisms, in the ledger's words, that checks look at."""


_TOO_LITTLE = "There was too little noise to look at."


def law_checks(attack: Attack, false_alarms: float) -> list[Check]:
    """Checks the law of all draws of an attack, each of four checks at the chance of an alarm."""
    # From this standard deviation on rounding does not show in the shape of noise.
    wide_enough = 3.0
    number = attack.noise.size

    def check(name: str, passed: bool, found: str, **facts: float) -> Check:
        return Check(LAYER, name, f"{number:,} draws", passed, found, false_alarms, facts)

    spread = centre = 0.0
    scales = np.unique(attack.errors)
    for stddev in scales:
        draws = attack.noise[:, attack.errors == stddev].ravel()
        second, fourth = moments(float(stddev))
        error = math.sqrt((fourth - second**2) / draws.size)
        spread = max(spread, abs(float((np.mean(draws**2) - second) / error)))
        centre = max(centre, abs(float(draws.mean() / math.sqrt(second / draws.size))))
    limit = float(norm.isf(false_alarms / (2 * max(len(scales), 1))))
    sd = math.sqrt(np.mean((attack.noise / attack.errors) ** 2)) if number else math.nan
    wide = attack.errors >= wide_enough
    own = attack.noise[:, wide]
    even = float(np.mean(own % 2 == 0)) if own.size else 0.5
    odd = abs(even - 0.5) * 2 * math.sqrt(own.size)
    of_sd = f"Its standard deviation is {sd:.4f} of what the ledger says (rounding adds a little)."
    of_mean = f"Its mean is {centre:.2f} standard errors from 0."
    whole = "All answers are whole numbers" if attack.whole else "Answers are NOT whole numbers"
    on_lattice = attack.whole and odd <= float(norm.isf(false_alarms / 2))
    of_draws = f"{whole}, and {100 * even:.2f} % of the draws are even."
    return [
        check("noise sd", spread <= limit, of_sd, sd_of_promised=sd, z=spread),
        check("noise mean", centre <= limit, of_mean, z=centre),
        _shape(own / attack.errors[wide], false_alarms),
        check("noise lattice", on_lattice, of_draws, even=even),
    ]


def _shape(draws: np.ndarray, false_alarms: float) -> Check:
    """The kurtosis of draws of one scale that are so wide that rounding does not show.

    Tested as Anscombe & Glynn (1983) have it: that of a sample is skewed far into its tails.
    """
    many = 5_000  # fewer draws say little of the shape of noise
    if draws.size < many:
        return skipped(LAYER, "noise shape", _TOO_LITTLE)
    kurtosis = float(np.mean(draws**4) / np.mean(draws**2) ** 2) if draws.any() else math.nan
    chance = float(kurtosistest(draws.ravel()).pvalue) if draws.any() else 0.0
    looked_at, facts = f"{draws.size:,} draws", {"kurtosis": kurtosis, "p_value": chance}
    found, passed = f"Its kurtosis is {kurtosis:.4f}; a Gaussian's is 3.", chance >= false_alarms
    return Check(LAYER, "noise shape", looked_at, passed, found, false_alarms, facts)


def answer_checks(events: Sequence[Event], false_alarms: float) -> list[Check]:
    """The noise of each answer of a recorded fit, and whether any comes twice."""
    named = [
        (str(event.question[-1]), charge.stddev, noise, _slack(event))
        for event in events
        for charge in event.charges
        if charge.stddev
        for noise in _noise_of(event)
        if noise.size
    ]
    if not named:
        return [skipped(LAYER, "noise of each answer", _TOO_LITTLE), _twice([])]
    limit = false_alarms / (2 * len(named))
    faults = []
    for what, stddev, noise, slack in named:
        if unlikely_noise(noise, stddev, slack) < 2 * limit:
            spread = f"noise of {math.sqrt(float(np.mean(np.square(noise, dtype=float)))):.4g}"
            faults.append(f"An answer to {what!r} has {spread}, and {stddev:.4g} was charged for.")
    looked_at = f"{len(named)} answers of the recorded fit"
    name, right = "noise of each answer", "Each has the noise that was charged for."
    each = check_of(LAYER, name, looked_at, faults, right, false_alarms=false_alarms)
    return [each, _twice([(stddev, noise) for _, stddev, noise, _ in named])]


def choice_check(ledger: PrivacyLedger, schema: Schema, false_alarms: float) -> Check:
    """How often the exponential mechanism takes the better of two choices."""
    clique = schema.domain().attributes[:1]
    few = Schema(tuple(column for column in schema.columns if column.name in clique))
    first = made_up_curator(few, ledger)
    expected = np.zeros(few.domain().sizes, dtype=np.int64)
    one = ModelErrorQuery(clique=clique, expected=expected)
    most = ledger.rows_counted * math.isqrt(one.l2_sensitivity_squared(ledger.adjacency))
    temperature = 2 * most / float(range_epsilon_of(ledger.budget))
    gap = max(round(temperature), 1)
    scores = [ModelErrorQuery(clique=clique, expected=expected, bias=bias) for bias in (gap, 0)]
    dataset = first._dataset
    better = sum(
        Curator(dataset, FitLedger(ledger)).select(scores, ledger.budget, what="one of two")
        for _ in range(_CHOICES)
    )
    odds, share = 1 / (1 + math.exp(-gap / temperature)), better / _CHOICES
    passed = float(binomtest(better, _CHOICES, odds).pvalue) >= false_alarms
    found = f"The better one was taken in {100 * share:.1f} % and should be in {100 * odds:.1f} %."
    looked_at, facts = f"{_CHOICES:,} choices between two", {"taken": share, "expected": odds}
    return Check(LAYER, "choices", looked_at, passed, found, false_alarms, facts)


def mechanism_checks(events: Sequence[Event]) -> list[Check]:
    """A word for each mechanism that was charged and whose law no check looks at."""
    used = dict.fromkeys(charge.mechanism for event in events for charge in event.charges)
    return [
        skipped(LAYER, mechanism, "No check knows the law of this mechanism.")
        for mechanism in used
        if mechanism not in _KNOWN
    ]


def unlikely_noise(noise: np.ndarray, stddev: float, slack: float) -> float:
    """How likely draws of this deviation are so small, or so large, by chance.

    Each may have been rounded afterwards by as much as the ``slack``.
    """
    second = moments(stddev)[0]
    least = chi2.cdf(np.sum((np.abs(noise) + slack) ** 2) / second, noise.size)
    most = chi2.sf(np.sum(np.maximum(np.abs(noise) - slack, 0) ** 2) / second, noise.size)
    return 2 * float(min(least, most))


def moments(stddev: float) -> tuple[float, float]:
    """The second and fourth moments of a Gaussian that is rounded to whole numbers."""
    second = rounded_variance(stddev)
    if stddev > 50:
        return second, 3 * second**2
    reach = np.arange(1, math.ceil(12 * stddev) + 2)
    chances = 2 * (ndtr(-(reach - 0.5) / stddev) - ndtr(-(reach + 0.5) / stddev))
    return second, float((chances * reach**4.0).sum())


def _noise_of(event: Event) -> list[np.ndarray]:
    """The noise of each answer; of a discovery where the threshold has not chosen among draws."""
    far_above = 8.0  # so many standard deviations above a threshold noise is as it was drawn
    if event.kind == "measure":
        return event.residuals()
    if event.kind != "discover" or not event.charges:
        return []
    (charge, *_) = event.charges
    far = (charge.threshold or 0) + far_above * charge.stddev
    found = []
    for exact, given in zip(event.exact, event.given, strict=True):
        known = [each for each in given if each[1] is None or exact.get(each, 0) >= far]
        found.append(np.array([given[each] - exact.get(each, 0) for each in known]))
    return found


def _slack(event: Event) -> float:
    """By how much rounding moves an answer, at most: what is found is given in whole people."""
    return (event.units + (event.units > 1)) / 2 if event.kind == "discover" else 0.5


def _twice(named: Sequence[tuple[float, np.ndarray]]) -> Check:
    """Whether two answers begin with the same noise."""
    same = 1e-12  # how likely two answers may be to begin with the same noise by chance
    found = pairs = 0
    for (here, one), (there, other) in combinations(named, 2):
        # Two rounded Gaussians are equal as often as one of sqrt(2) times the scale is 0.
        chance = 1 / (2 * math.sqrt(math.pi) * max(min(here, there), 1e-9))
        needed = math.inf if chance >= 0.5 else math.ceil(math.log(same) / math.log(chance))
        if min(one.size, other.size) >= needed:
            pairs += 1
            found += bool(np.array_equal(one[: int(needed)], other[: int(needed)]))
    said = f"In {found} of them both answers have the same noise." if found else "None share noise."
    looked_at, facts = f"{pairs:,} pairs of answers", {"pairs": pairs}
    return Check(LAYER, "noise once", looked_at, not found, said, same * pairs, facts)


def made_up_curator(schema: Schema, ledger: PrivacyLedger) -> Curator:
    """A real curator with an empty ledger, of a few made-up rows, all with the first codes."""
    names = list(schema.domain().attributes)
    codes = pd.DataFrame(np.zeros((5, len(names)), dtype=int), columns=pd.Index(names))
    return EncodedTable(codes, bound=ledger.bound).curator(schema, FitLedger(ledger))


_DRAWS = 64

_PROCESS = (
    "from sdv_privpgd.privacy.noise import rounded_gaussian;"
    f"print(*rounded_gaussian(50.0, {_DRAWS}))"
)


class FreshProcesses:
    """Two new processes that draw noise while other things are looked at."""

    def __enter__(self) -> "FreshProcesses":
        command, out, err = [sys.executable, "-c", _PROCESS], subprocess.PIPE, subprocess.DEVNULL
        begun = (subprocess.Popen(command, stdout=out, stderr=err, text=True) for _ in range(2))
        self._running = list(begun)
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._running:
            process.kill()  # nothing happens if it has ended
            process.wait()
            process.stdout.close()  # pyright: ignore[reportOptionalMemberAccess]

    def draws(self) -> list[tuple[str, ...]]:
        """What each has drawn; empty where a process could not run."""
        return [tuple(process.communicate()[0].split()) for process in self._running]


def fresh_check(ledger: PrivacyLedger, processes: FreshProcesses) -> Check:
    """Whether noise is new each time: after seeds, in a fork, and in two processes."""
    faults = []
    with _seeded():
        first = _drawn(ledger)
    with _seeded():
        second = _drawn(ledger)
    if first == second:
        faults.append("After the same seeds for random, NumPy and torch, the same noise came.")
    if second == _drawn(ledger):
        faults.append("The same noise came twice in a row.")
    child = _forked(ledger)
    if child is not None and child == _drawn(ledger):
        faults.append("A forked process has drawn the noise of its parent.")
    one, other = processes.draws()
    if one and one == other:
        faults.append("Two processes have drawn the same noise.")
    where = f"after seeds{', in two processes' * bool(one)}{' and in a fork' * (child is not None)}"
    return check_of(LAYER, "noise fresh", where, faults, "It was another each time.")


def _drawn(ledger: PrivacyLedger) -> tuple[str, ...]:
    """The noise of a table of made-up rows."""
    facts = {"code": {"range_values": [f"{place}" for place in range(_DRAWS)]}}
    schema = Schema.from_sdv({"code": {"sdtype": "categorical"}}, public_domain=facts)
    curator, query = made_up_curator(schema, ledger), MarginalQuery(("code",))
    (answer,) = curator.measure([query], ledger.budget, what="an audit")
    return tuple(map(str, answer.answer.tolist()))


@contextmanager
def _seeded() -> Iterator[None]:
    """All generators that libraries share are seeded, and are as they were afterwards."""
    torch = sys.modules.get("torch")
    states = random.getstate(), np.random.get_state()  # noqa: NPY002 - of libraries that use it
    state = None if torch is None else torch.get_rng_state()
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    if torch is not None:
        torch.manual_seed(0)
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
        if torch is not None:
            torch.set_rng_state(state)


def _forked(ledger: PrivacyLedger) -> tuple[str, ...] | None:
    """The noise that a fork of this process draws; ``None`` where that cannot be seen."""
    seconds = 30.0  # after which a forked process is given up
    if not hasattr(os, "fork"):
        return None
    with warnings.catch_warnings(), suppress(multiprocessing.TimeoutError, OSError):
        warnings.simplefilter("ignore")  # of threads: the child draws noise and ends
        with multiprocessing.get_context("fork").Pool(1) as pool:
            return pool.apply_async(_drawn, (ledger,)).get(seconds)
    return None
