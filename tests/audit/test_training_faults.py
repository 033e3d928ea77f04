"""The audit's watch on trainings finds what is planted in them, and nothing else."""

import numpy as np
import pytest
from no_processes import NoProcesses

from sdv_privpgd import Boolean, Categorical, audit_fit
from sdv_privpgd.audit import door
from sdv_privpgd.audit.checks import failed
from sdv_privpgd.audit.recording import Event
from sdv_privpgd.audit.training import training_checks
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.methods.dp_sgd import PrivateGradients
from sdv_privpgd.privacy import curator as curating
from sdv_privpgd.privacy.gradients import GradientSums, TrainingQuery
from sdv_privpgd.privacy.noise import rounded_gaussian
from sdv_privpgd.synthesize.diffusion import DiffusionNetwork

HONEST = curating.noise_multiplier
CLIPPED = TrainingQuery.clipped


def found(**changes):
    """The checks of a training that find something."""
    settings = Settings(epsilon=2.0, method=PrivateGradients(engine=DiffusionNetwork()), **changes)
    return failed(training_checks([Event((), "train")], settings, 1e-8))


@pytest.mark.parametrize(
    "changes",
    [{}, {"adjacency": "add_remove", "rows_per_person": 3}],
    ids=["a row replaced", "three rows of a person"],
)
def test_nothing_is_found_where_all_is_right(changes):
    assert found(**changes) == []


@pytest.mark.parametrize(
    "accountant",
    [
        lambda rate, *more: HONEST(rate / 2, *more),
        lambda rate, steps, *more: HONEST(rate, steps // 2, *more),
        lambda rate, steps, mu, *more: HONEST(rate, steps, 2 * mu, *more),
        lambda *asked: 0.9 * HONEST(*asked),
    ],
    ids=["half the rate", "half the steps", "twice the mu", "nine tenths of the noise"],
)
def test_an_accountant_that_is_told_too_little(accountant, monkeypatch):
    monkeypatch.setattr(curating, "noise_multiplier", accountant)
    assert found() == ["training charge"]


@pytest.mark.parametrize("rows_per_person", [1, 2])
def test_a_row_that_is_replaced_charged_as_one(rows_per_person, monkeypatch):
    monkeypatch.setattr(
        TrainingQuery, "l2_sensitivity_squared", lambda self, adjacency: self.GRID**2
    )
    assert found(rows_per_person=rows_per_person) == ["training charge"]


def test_more_steps_than_were_charged(monkeypatch):
    monkeypatch.setattr(curating, "range", lambda number: range(2 * number), raising=False)
    assert found() == ["training charge"]


@pytest.mark.parametrize(
    "noise",
    [
        lambda stddev, size, words: rounded_gaussian(stddev / 2, size, words),
        lambda stddev, size, words: rounded_gaussian(0.9 * stddev, size, words),
        lambda stddev, size, words: rounded_gaussian(stddev, size, np.random.default_rng(0).bytes),
    ],
    ids=["half of it", "nine tenths of it", "the same in each step"],
)
def test_noise_that_was_not_charged_for(noise, monkeypatch):
    monkeypatch.setattr(curating, "rounded_gaussian", noise)
    assert "training noise" in found()


@pytest.mark.parametrize(
    "clipped",
    [
        lambda query, gradient: np.rint(gradient / query.clip * query.GRID),
        lambda query, gradient: np.rint(np.clip(gradient / query.clip, -1, 1) * query.GRID),
        lambda query, gradient: 1.2 * CLIPPED(query, gradient),
    ],
    ids=["not clipped", "each weight by itself", "a fifth too long"],
)
def test_gradients_that_are_too_long(clipped, monkeypatch):
    monkeypatch.setattr(TrainingQuery, "clipped", clipped)
    assert found() == ["training clip"]


def test_sums_that_are_clipped_in_place_of_records(monkeypatch):
    """A record changes such a sum by twice the clip, though none is ever longer."""
    real = GradientSums.add

    def add(self, total, item):
        real(self, total, item)
        total[0][:] = CLIPPED(self._query, total[0] / self._query.GRID).astype(np.int64)

    monkeypatch.setattr(GradientSums, "add", add)
    assert found() == ["training clip"]


def drawn(chosen):
    """Sums over the records that are chosen of so many, in a step."""
    steps = []

    def add(self, total, item):
        steps.append(None)
        for row in chosen(len(steps), item.shape[1]):
            total[0] += self._of_one(item[:, row].astype(np.int64)).astype(np.int64)

    return add


@pytest.mark.parametrize(
    "chosen",
    [
        lambda step, number: range(number // 4),
        lambda step, number: range(step % 4, number, 4),
        lambda step, number: np.random.default_rng().permutation(number)[: number // 4],
        lambda step, number: np.flatnonzero(np.random.default_rng().random(number) < 0.5),
        lambda step, number: np.flatnonzero(np.random.default_rng(step // 2).random(number) < 0.25),
    ],
    ids=["the same in each step", "in turn", "of a fixed size", "twice the rate", "used twice"],
)
def test_samples_that_are_not_drawn_anew(chosen, monkeypatch):
    monkeypatch.setattr(GradientSums, "add", drawn(chosen))
    assert found() == ["training samples"]


def test_an_audit_watches_trainings(monkeypatch):
    monkeypatch.setattr(door, "FreshProcesses", NoProcesses)
    columns = {"ill": Boolean(), "ward": Categorical(["A", "B", "C"])}
    asked = {
        "method": PrivateGradients(steps=2, engine=DiffusionNetwork(width=4)),
    }
    verdicts = {
        each["name"]: each["verdict"]
        for each in audit_fit(
            columns, 2.0, runs=50, discovery_share=0, false_alarms=1e-7, **asked
        ).to_dict()["checks"]
    }
    assert {verdicts[name] for name in verdicts if name.startswith("training")} == {"passed"}
    monkeypatch.setattr(curating, "noise_multiplier", lambda *asked: HONEST(*asked) / 2)
    report = audit_fit(columns, 2.0, runs=50, discovery_share=0, false_alarms=1e-7, **asked)
    assert set(report.to_dict()["failed"]) == {"training charge", "epsilon"}
