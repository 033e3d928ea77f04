"""Bars: what they count is public, and what they say of the time left is right."""

import re

import numpy as np
import pytest

from sdv_privpgd import ParticleGradientDescent, PrivacyLedger, pipeline, synthesizer  # noqa: F401
from sdv_privpgd._lifecycle import _bars
from sdv_privpgd.dataset import Dataset
from sdv_privpgd.domain import Domain
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.queries import Adjacency
from sdv_privpgd.select.fixed import AllKWay

DOMAIN = Domain(("a", "b", "c"), (2, 3, 4))


def stages_of_a_fit(codes: np.ndarray, seed: int) -> list[tuple[str, int]]:
    """The stages that a fit shows, and of how many steps each is."""
    seen = []

    def record(items, stage):
        seen.append((stage, len(items)))
        return items

    ledger = PrivacyLedger.open(1.0, 1e-5, Adjacency.ADD_REMOVE)
    words = np.random.default_rng(seed).bytes
    engine = ParticleGradientDescent(num_particles=50, epochs=2)
    curator = Curator(Dataset(DOMAIN, codes), ledger, words=words)
    pipeline.run(curator, AllKWay(), engine, progress=record)
    return seen


def test_steps_are_those_that_the_domain_and_the_settings_fix():
    rng = np.random.default_rng(0)
    tables = [
        np.zeros((0, 3), dtype=np.int64),
        np.ones((7, 3), dtype=np.int64),
        rng.integers(0, DOMAIN.sizes, (70_000, 3)),  # more than a block of the counting
    ]
    first, *others = [stages_of_a_fit(codes, seed) for seed, codes in enumerate(tables)]
    assert dict(first)["measure"] == 3
    assert {"measure", "project", "descend"} <= set(dict(first))
    assert all(stages == first for stages in others)


class Clock:
    """A clock that moves by what the steps are said to take."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr("tqdm.std.time", lambda: self.now)

    def estimates(self, seconds, capsys) -> list[tuple[float, float]]:
        """What was shown as the time left, and what it was, after each step that was shown."""
        left = dict(zip(range(1, len(seconds) + 1), sum(seconds) - np.cumsum(seconds), strict=True))
        for step in _bars("PrivPGDSynthesizer", range(len(seconds)), "descend"):
            self.now += seconds[step]
        shown = re.findall(r"(\d+)/\d+ \[[\d:]+<([\d:]+),", capsys.readouterr().err)
        return [(in_seconds(text), left[int(step)]) for step, text in shown]


def in_seconds(text: str) -> int:
    seconds = 0
    for part in text.split(":"):
        seconds = 60 * seconds + int(part)
    return seconds


def check(estimates, *, within: float) -> None:
    """Estimates of more than a minute, from a quarter of the way on, are near enough."""
    checked = [pair for pair in estimates[len(estimates) // 4 :] if pair[1] > 60]
    assert len(checked) > 40
    for shown, true in checked:
        assert shown == pytest.approx(true, rel=within)


def test_even_steps_are_estimated_to_the_second(monkeypatch, capsys):
    estimates = Clock(monkeypatch).estimates([3.0] * 200, capsys)
    check(estimates, within=1 / 60)  # shown in whole seconds


def test_a_slow_first_step_is_soon_forgotten(monkeypatch, capsys):
    estimates = Clock(monkeypatch).estimates([30.0] + [2.0] * 199, capsys)
    check(estimates, within=0.05)


def test_unequal_steps_are_averaged(monkeypatch, capsys):
    """Steps of 1 to 5 s: an average over about 20 is right to 30 % at 3.5 standard errors."""
    seconds = np.random.default_rng(0).uniform(1, 5, 300)
    check(Clock(monkeypatch).estimates(seconds, capsys), within=0.35)


def test_the_check_notices_a_wrong_clock(monkeypatch, capsys):
    estimates = Clock(monkeypatch).estimates([3.0] * 200, capsys)
    with pytest.raises(AssertionError):
        check([(shown * 1.1, true) for shown, true in estimates], within=0.05)
