"""The audit's watch on trainings finds what is planted in them, and nothing else."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from sdv_privpgd import Boolean, Categorical, People
from sdv_privpgd.audit import audit_fit
from sdv_privpgd.audit.checks import failed
from sdv_privpgd.audit.recorder import Event
from sdv_privpgd.audit.training import training_checks
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.methods.dp_sgd import DPDiffusion, TrainingQuery, training
from sdv_privpgd.methods.dp_sgd.training import OpacusTrainer, Optimizer
from sdv_privpgd.privacy.noise import rounded_gaussian

HONEST = training.noise_multiplier
CLIPS = Optimizer.clip_and_accumulate


def found(**changes):
    """The checks of a training that find something."""
    settings = Settings(epsilon=2.0, method=DPDiffusion(), **changes)
    return failed(training_checks([Event((), "train")], settings, 1e-8))


@pytest.mark.parametrize(
    "changes",
    [{}, {"adjacency": "add_remove", "delta": 1e-5, "people": People(max_rows=3)}],
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
    monkeypatch.setattr(training, "noise_multiplier", accountant)
    assert found() == ["training charge"]


@pytest.mark.parametrize("max_rows", [1, 2])
def test_a_row_that_is_replaced_charged_as_one(max_rows, monkeypatch):
    monkeypatch.setattr(TrainingQuery, "l2_sensitivity_squared", lambda self, adjacency: 1)
    assert found(people=People(max_rows=max_rows)) == ["training charge"]


def test_more_steps_than_were_charged(monkeypatch):
    real = training.samples

    def twice(number, query, words):
        return real(number, replace(query, steps=2 * query.steps), words)

    def two_at_a_time(self, codes, words):
        steps = train(self, codes, words)
        return zip(steps, steps, strict=True)

    train = OpacusTrainer.train
    monkeypatch.setattr(training, "samples", twice)
    monkeypatch.setattr(OpacusTrainer, "train", two_at_a_time)
    assert found() == ["training charge"]


@pytest.mark.parametrize(
    "noise",
    [
        lambda stddev, size, words: rounded_gaussian(stddev / 2, size, words),
        lambda stddev, size, words: rounded_gaussian(0.9 * stddev, size, words),
        lambda stddev, size, words: rounded_gaussian(stddev, size, np.random.default_rng(0).bytes),
        lambda stddev, size, words: rounded_gaussian(stddev, 1, words).repeat(size),
    ],
    ids=["half of it", "nine tenths of it", "the same in each step", "the same in each weight"],
)
def test_noise_that_was_not_charged_for(noise, monkeypatch):
    monkeypatch.setattr(training, "rounded_gaussian", noise)
    assert {"training noise", "training clip"} & set(found())


def longer(self):
    self.max_grad_norm *= 1.2
    CLIPS(self)
    self.max_grad_norm /= 1.2


def without_a_clip(self):
    clip, self.max_grad_norm = self.max_grad_norm, 1e30
    CLIPS(self)
    self.max_grad_norm = clip


def each_weight_by_itself(self):
    for each in self.params:
        each.grad_sample = each.grad_sample.clamp(-1.0, 1.0)
    without_a_clip(self)


def the_sum_in_place_of_records(self):
    """A record changes such a sum by twice the clip, though none is ever longer."""
    CLIPS(self)
    for each in self.params:
        each.summed_grad /= torch.clamp(each.summed_grad.norm(), min=1.0)


@pytest.mark.parametrize(
    "clips", [without_a_clip, each_weight_by_itself, longer, the_sum_in_place_of_records]
)
def test_gradients_that_are_too_long(clips, monkeypatch):
    monkeypatch.setattr(Optimizer, "clip_and_accumulate", clips)
    assert found() == ["training clip"]


def drawn(chosen):
    """Samples of the records that are chosen of so many, in a step."""

    def samples(number, query, words):
        for step in range(query.steps):
            yield np.asarray(chosen(step, number), dtype=np.int64)

    return samples


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
    monkeypatch.setattr(training, "samples", drawn(chosen))
    assert found() == ["training samples"]


def test_an_audit_watches_trainings(plant):
    columns = {"ill": Boolean(), "ward": Categorical(["A", "B", "C"])}
    asked = {"method": DPDiffusion(steps=2, width=4)}
    verdicts = {
        each["name"]: each["verdict"]
        for each in audit_fit(
            columns, 2.0, runs=50, discovery_share=0, false_alarms=1e-7, **asked
        ).to_dict()["checks"]
    }
    assert "failed" not in verdicts.values()
    assert {verdicts[name] for name in verdicts if name.startswith("training")} == {"passed"}
    plant(training, "noise_multiplier", lambda *asked: HONEST(*asked) / 2)
    report = audit_fit(columns, 2.0, runs=50, discovery_share=0, false_alarms=1e-7, **asked)
    assert set(report.to_dict()["failed"]) == {"training charge", "epsilon"}
