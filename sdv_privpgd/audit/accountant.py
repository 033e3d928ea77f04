"""Layer: a second accountant. It adds up losses numerically, and knows none of the ledger's proofs.

Each question is taken for the pair of distributions that its noise, its sensitivity and its samples
give two neighbors at worst. The losses log(P / Q) of all questions are added up by convolution on a
grid. The delta that is left at the epsilon of the books is a lower bound of the true one, but for
the grid: it must not exceed what the books say.
"""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, ndtr
from scipy.stats import binom

from sdv_privpgd.audit.checks import Check, check_of, unseen
from sdv_privpgd.audit.recording import Event
from sdv_privpgd.audit.thresholds import chance_of
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.privacy.queries import Adjacency

LAYER = "a second accountant"

_POINTS, _CELLS, _FAR = 1 << 15, 1 << 12, 10.0
"""Of the grid of losses; of a distribution, and how many deviations of it are looked at."""


@dataclass(frozen=True)
class Pair:
    """Two mixtures of normal numbers of deviation 1: chances and means of each."""

    p: tuple[tuple[float, float], ...]
    q: tuple[tuple[float, float], ...]

    @classmethod
    def normal(cls, mu: float) -> "Pair":
        """A Gaussian release that a person moves by mu deviations."""
        return cls(((1.0, mu),), ((1.0, 0.0),))

    @classmethod
    def sampled(cls, rate: float, noise: float, rows: int, adjacency: Adjacency) -> "Pair":
        """A step whose sample has each of a person's rows by chance; all push the same way."""
        rows_in = range(rows + 1)
        chances = [float(binom.pmf(number, rows, rate)) for number in rows_in]
        there = tuple((p, n / noise) for p, n in zip(chances, rows_in, strict=True) if p)
        if adjacency is Adjacency.ADD_REMOVE:
            return cls(there, ((1.0, 0.0),))
        return cls(there, tuple((chance, -mean) for chance, mean in there))

    def losses(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Losses log(P / Q) of cells of the line, and P's and Q's mass in each."""
        means = [mean for _, mean in (*self.p, *self.q)]
        ends = np.linspace(min(means) - _FAR, max(means) + _FAR, _CELLS + 1)
        middle = (ends[1:] + ends[:-1]) / 2

        def log_density(mixture: tuple[tuple[float, float], ...]) -> np.ndarray:
            parts = [math.log(chance) - (middle - mean) ** 2 / 2 for chance, mean in mixture]
            return np.asarray(logsumexp(parts, axis=0))

        def mass(mixture: tuple[tuple[float, float], ...]) -> np.ndarray:
            return np.sum([chance * np.diff(ndtr(ends - mean)) for chance, mean in mixture], axis=0)

        return log_density(self.p) - log_density(self.q), mass(self.p), mass(self.q)


@dataclass(frozen=True)
class Choice:
    """A choice of this range epsilon: its odds may change by half of it both ways."""

    range_epsilon: float

    def losses(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """As a ``Pair`` has them."""
        half = self.range_epsilon / 2
        of_p = np.array([1 / (1 + math.exp(-half)), 1 / (1 + math.exp(half))])
        return np.array([half, -half]), of_p, of_p[::-1]


def delta_of(steps: Mapping[Pair | Choice, int], epsilon: float) -> float:
    """The smallest delta at this epsilon of all steps together, each so many times."""
    losses = [(*pair.losses(), times) for pair, times in steps.items()]
    orders = [
        [(loss, of_p, times) for loss, of_p, _, times in losses],
        [(-loss, of_q, times) for loss, _, of_q, times in losses],
    ]
    return max(_delta_of(order, epsilon) for order in orders)


def _delta_of(order: Sequence[tuple[np.ndarray, np.ndarray, int]], epsilon: float) -> float:
    centres = [float(loss @ mass) for loss, mass, _ in order]
    centre = sum(times * at for at, (_, _, times) in zip(centres, order, strict=True))
    spread = sum(
        times * float((loss - at) ** 2 @ mass)
        for at, (loss, mass, times) in zip(centres, order, strict=True)
    )
    reach = max(abs(centre) + 12 * math.sqrt(spread), 2 * epsilon, 1e-6)
    width = 2 * reach / _POINTS
    whole = np.ones(_POINTS // 2 + 1, dtype=complex)
    for loss, mass, times in order:
        place = np.clip(loss / width, -_POINTS / 2, _POINTS / 2 - 2)
        low = np.floor(place).astype(int)
        upper = place - low  # between two points, so that the mean is kept
        table = np.bincount(low % _POINTS, mass * (1 - upper), _POINTS)
        table += np.bincount((low + 1) % _POINTS, mass * upper, _POINTS)
        whole *= np.fft.rfft(table) ** times
    chances = np.roll(np.fft.irfft(whole, _POINTS), _POINTS // 2)
    sums = width * np.arange(-_POINTS // 2, _POINTS // 2)
    above = sums > epsilon
    return float(chances[above] @ -np.expm1(epsilon - sums[above]))


def steps_of(
    events: Sequence[Event], settings: Settings
) -> tuple[Counter[Pair | Choice], float, list[str]]:
    """What all questions are at worst, what thresholds add to delta, and what cannot be added."""
    steps: Counter[Pair | Choice] = Counter()
    deltas, unknown = 0.0, []
    for event in events:
        for charge in event.charges:
            size = math.sqrt(event.required)
            if charge.threshold is not None:
                deltas += chance_of(event, charge, settings)
            if event.kind == "train":
                rate, rows = float(event.queries[0].rate), settings.people.max_rows
                steps[Pair.sampled(rate, event.noise, rows, settings.adjacency)] += event.steps
            elif charge.temperature is not None:
                steps[Choice(2 * size / float(charge.temperature))] += 1
            elif charge.stddev:
                steps[Pair.normal(size / charge.stddev)] += 1
            elif event.required:
                unknown.append(f"{charge.what!r} has neither noise nor a temperature.")
    return steps, deltas, unknown


def accountant_check(events: Sequence[Event], books: str | None, settings: Settings) -> Check:
    """Whether all questions of a recorded fit cost no more than its books say."""
    tolerance = 1.01  # the grids' own error, and the hundredth to which noise for samples is found
    name = "epsilon"
    if books is None:
        return unseen(LAYER, name, "The fit shows no ledger.")
    told = json.loads(books)
    claimed, delta = float(told["spent_epsilon"][settings.adjacency.value]), float(told["delta"])
    faults = [
        f"{what} {number:.4g} is claimed, and {most:.4g} was asked for."
        for what, number, most in (
            ("Epsilon", claimed, settings.epsilon * (1 + 1e-9)), ("Delta", delta, settings.delta),
        )
        if number > most
    ]  # fmt: skip
    steps, found, unknown = steps_of(events, settings)
    if steps and math.isfinite(claimed):
        found += delta_of(steps, claimed * tolerance + 1e-3)
    if found > delta * tolerance:
        faults.append(
            f"At epsilon {claimed:.4g}, which the books claim, delta is {found:.3g}, and {delta:g} "
            "is claimed."
        )
    return check_of(
        LAYER,
        name,
        f"{sum(steps.values()):,} steps of {len(events)} questions, added up numerically",
        [*unknown, *faults],
        f"At epsilon {claimed:.4g}, which the books claim, delta is {found:.3g}, and {delta:g} is "
        "claimed.",
        delta=found,
        delta_claimed=delta,
        epsilon_claimed=claimed,
    )
