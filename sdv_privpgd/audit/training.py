"""Layers: a second accountant, and a training that records push as far as they can.

The accountant adds up losses numerically, and knows none of the ledger's proofs. Each question is
taken for the pair of distributions that its noise, its sensitivity and its samples give two
neighbors at worst. The losses log(P / Q) of all questions are added up by convolution on a grid.
The delta that is left at the epsilon of the ledger is a lower bound of the true one, but for the
grid: it must not exceed what the ledger says.

To watch a training, the real curator trains on made-up records whose gradients are far longer than
the clip and all point one way. What is seen of each step is what any training by DP-SGD shows:
which records were in its sample, and the noisy sum. That must be the number of records in the
sample, times the clip, and noise; samples must have the rate that was charged for, and be drawn
anew.
"""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pandas as pd
from scipy.special import logsumexp, ndtr
from scipy.stats import binom, binomtest, chi2, norm

from sdv_privpgd.audit.checks import Check, check_of, skipped
from sdv_privpgd.audit.recorder import Event
from sdv_privpgd.audit.thresholds import chance_of
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.methods.dp_sgd import TrainingQuery
from sdv_privpgd.privacy.boundary import EncodedTable
from sdv_privpgd.privacy.ledger import FitLedger
from sdv_privpgd.privacy.queries import Adjacency

ACCOUNTANT = "a second accountant"

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


def accountant_check(events: Sequence[Event], as_json: str | None, settings: Settings) -> Check:
    """Whether all questions of a recorded fit cost no more than its ledger says."""
    tolerance = 1.01  # the grids' own error, and the hundredth to which noise for samples is found
    name = "epsilon"
    if as_json is None:
        return skipped(ACCOUNTANT, name, "The fit shows no ledger.")
    spent = json.loads(as_json)
    claimed, delta = float(spent["spent_epsilon"][settings.adjacency.value]), float(spent["delta"])
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
    said = f"At epsilon {claimed:.4g}, which the ledger claims, delta is {found:.3g}, and"
    said = f"{said} {delta:g} is claimed."
    if found > delta * tolerance:
        faults.append(said)
    looked_at = f"{sum(steps.values()):,} steps of {len(events)} questions, added up numerically"
    facts = {"delta": found, "delta_claimed": delta, "epsilon_claimed": claimed}
    return check_of(ACCOUNTANT, name, looked_at, [*unknown, *faults], said, **facts)


LAYER = "a training"

_ONES = 20
_RECORDS, _STEPS, _WEIGHTS, _RATE = _ONES**2, 128, 64, Fraction(1, 4)
_LONG = 1e6
"""How much longer a gradient is than the clip."""


@dataclass(frozen=True, eq=False)
class _Watched:
    """What was seen of a training."""

    event: Event  # what was asked, charged and said
    as_json: str  # the ledger afterwards, as JSON
    samples: np.ndarray  # how often each record was in each step's sample: (step, record)
    sums: np.ndarray  # each step's noisy sum in units of the clip: (step, weight)


def training_checks(
    events: Sequence[Event], settings: Settings, false_alarms: float
) -> list[Check]:
    """Checks that trainings do what was charged for, three times at the chance of an alarm."""
    if not any(event.kind == "train" for event in events):
        return [skipped(LAYER, "training", "No network is trained by private gradients.")]
    seen = _watched(settings)
    return [_samples(seen, false_alarms), *_sums(seen, false_alarms), _charge(seen, settings)]


class _Pushing:
    """A network all of whose records have the same long gradient; it writes down all it sees."""

    num_weights = _WEIGHTS

    def __init__(self) -> None:
        import torch

        self.private = torch.nn.Sequential(torch.nn.Linear(1, _WEIGHTS, bias=False).double())
        self.calls: list[list[int]] = [[]]
        self.sums: list[np.ndarray] = []
        self._torch: Any = torch

    def losses(self, codes: Any) -> Any:
        self.calls[-1] += (codes[:, 0] * _ONES + codes[:, 1]).tolist()
        ones = self._torch.ones(len(codes), 1, dtype=self._torch.float64)
        return _LONG * self.private(ones).sum(1)

    def begin(self, steps: int) -> Any:
        del steps
        return self._torch.optim.SGD(self.private.parameters(), lr=0.0)

    def meet(self) -> None:
        (weights,) = self.private.parameters()
        self.sums.append(np.array(weights.grad).ravel())
        self.calls.append([])

    def moved(self) -> None:
        pass

    def weights(self) -> np.ndarray:
        return np.zeros(_WEIGHTS)


def _watched(settings: Settings) -> _Watched:
    """A training with samples, whatever the settings' own would be on a table of made-up size."""
    # Imported late: opacus is an extra.
    from sdv_privpgd.methods.dp_sgd.training import OpacusTrainer

    shape = {"num_weights": _WEIGHTS, "clip": 1.0, "rate": _RATE, "steps": _STEPS}
    query, places = TrainingQuery(network="made up", **shape), np.arange(_RECORDS)
    records = pd.DataFrame({"tens": places // _ONES, "ones": places % _ONES})
    kinds = {name: {"sdtype": "categorical"} for name in records}
    facts = {name: {"range_values": [*range(_ONES)]} for name in records}
    schema = Schema.from_sdv(kinds, public_domain=facts)
    ledger, network = settings.ledger(settings.own_delta), _Pushing()
    shared, trainer = FitLedger(ledger), OpacusTrainer(cast(Any, network), query, 1)
    curator = EncodedTable(records, bound=ledger.bound).curator(schema, shared)
    part = ledger.budget / 4  # a fit has less than all of it for a training
    trained = curator.train(trainer, part, ledger.reserved)
    event = Event(
        ("train", query.describe()), "train", (query,), charges=shared.ledger.charges,
        result=[(trained.answer, trained.stddev)], steps=len(network.sums), noise=trainer.noise,
    )  # fmt: skip
    samples = np.zeros((len(network.sums), _RECORDS), dtype=int)
    for step, calls in zip(samples, network.calls, strict=False):
        np.add.at(step, calls, 1)
    return _Watched(event, shared.ledger.to_json(), samples, np.array(network.sums))


def _samples(seen: _Watched, false_alarms: float) -> Check:
    """Samples have the rate that was charged for, and each is drawn anew of each record alone."""
    rate, samples = float(_RATE), seen.samples
    chance = float(binomtest(min(int(samples.sum()), samples.size), samples.size, rate).pvalue)
    faults = []
    if chance < false_alarms / 3:
        share = f"{100 * samples.mean():.2f} %, and {100 * rate:.2f} % was charged for."
        faults.append(f"A record is in a sample in {share}")
    # Records of a fresh sample are in so many, and samples so large, as coins say: neither all
    # alike (an epoch, a fixed size) nor some in all (a sample that is not drawn anew).
    for whose, axis in (("records", 0), ("samples", 1)):
        if _spread_chance(samples.sum(axis=axis), samples.shape[axis], rate) < false_alarms / 3:
            faults.append(f"Numbers of {whose} are not those of samples that are drawn anew.")
    if samples.max(initial=0) > 1:
        faults.append("A record is in one sample more than once.")
    looked_at = f"{len(samples)} samples of {_RECORDS} records"
    right = f"A record is in a sample in {100 * samples.mean():.2f} %; {100 * rate:.2f} % is right."
    return check_of(LAYER, "training samples", looked_at, faults, right, false_alarms=false_alarms)


def _spread_chance(numbers: np.ndarray, tries: int, rate: float) -> float:
    """How likely binomial numbers are spread so unusually, on both sides, by two moments."""
    variance = tries * rate * (1 - rate)
    fourth = 3 * variance**2 + variance * (1 - 6 * rate * (1 - rate))
    score = float(np.mean((numbers - tries * rate) ** 2))
    # A multiple of a chi-square number has the mean and the variance of the score.
    freedom = 2 * variance**2 * len(numbers) / (fourth - variance**2)
    least, most = (each(score / variance * freedom, freedom) for each in (chi2.cdf, chi2.sf))
    return 2 * float(min(least, most))


def _sums(seen: _Watched, false_alarms: float) -> list[Check]:
    """Each sum is one clip a record in the sample, and noise as said, which is new each time."""
    noise = seen.event.noise
    ahead = np.full(_WEIGHTS, 1 / math.sqrt(_WEIGHTS))
    left = seen.sums - seen.samples.sum(axis=1)[:, None] * ahead
    along = left @ ahead
    clipped = abs(float(along.sum())) / (noise * math.sqrt(len(along)))
    number = seen.samples.sum() or 1
    added = 1 + float(along.sum()) / number
    far = float(norm.isf(false_alarms / 2))
    across = left - along[:, None] * ahead
    freedom = across.size - len(across)
    score = float((across**2).sum()) / noise**2
    chance = 2 * float(min(chi2.cdf(score, freedom), chi2.sf(score, freedom)))
    measured = noise * math.sqrt(score / max(freedom, 1))
    sentence = f"The noise is {measured:.4g} clips, and {noise:.4g} is said."
    faults = [sentence] if chance < false_alarms / 2 else []
    again = abs(float((across[1:] * across[:-1]).sum())) / noise**2
    if again / math.sqrt(max(freedom, 1)) > float(norm.isf(false_alarms / 4)):
        faults.append("Two steps have noise that is alike.")
    of_clip = f"A record adds {added:.4g} clips to a sum; 1 is right."
    pushed = f"{number:,} gradients that are {_LONG:g} clips long in each of {_WEIGHTS} weights"
    drawn = f"{across.size:,} draws in {len(across)} steps"
    return [
        check_of(LAYER, name, looked_at, own, right, false_alarms=false_alarms)
        for name, looked_at, own, right in (
            ("training clip", pushed, [of_clip] if clipped > far else [], of_clip),
            ("training noise", drawn, faults, sentence),
        )
    ]


def _charge(seen: _Watched, settings: Settings) -> Check:
    """The second accountant on what was seen: the steps that were taken, all of the same noise."""
    found = accountant_check([seen.event], seen.as_json, settings)
    faults, looked_at = [found.found], f"{seen.event.steps} steps, added up numerically"
    return check_of(LAYER, "training charge", looked_at, faults * (not found.passed), found.found)
