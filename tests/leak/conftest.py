"""Answers that depend on the questions alone."""

import html
import itertools
import sys

import numpy as np
import pytest
from interference import KNOWN, StoppedClock, observe

from sdv_privpgd.methods.dp_sgd import training
from sdv_privpgd.privacy import curator
from sdv_privpgd.synthesize.particles import descent


@pytest.fixture(scope="module", autouse=True)
def _compiled():
    """Compiles once: the first fit of a machine has messages of the compiler's in its log."""
    descent.compile_all()


def held(size, label, draw):
    """In place of a picture, all that it is drawn of."""
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
        return html.escape(f"{size} {label} {vars(draw.__self__)}")


@pytest.fixture
def undrawn(monkeypatch):
    """A picture is drawn of what it holds alone, and drawing takes longer than a fit."""
    monkeypatch.setattr("sdv_privpgd.report.figures._svg", held)


@pytest.fixture
def fixed_answers(monkeypatch, undrawn):
    """Answers that depend on the shape and order of the questions, never on the table."""

    def noisy(answer, stddev, words):
        if stddev == 0:  # public under the adjacency, and equal for the tables compared
            return answer
        seed = [*answer.shape, round(stddev * 1000)]
        return np.random.default_rng(seed).integers(-20, 80, answer.shape)

    def choice(scores, temperature, words):
        return len(scores) // 2

    monkeypatch.setattr(curator, "_noisy", noisy)
    monkeypatch.setattr(training, "_noisy", noisy)
    monkeypatch.setattr(curator, "exponential_choice", choice)
    # Such answers are of no rows at all.
    monkeypatch.setattr("sdv_privpgd.releases.site_release.require_agreement", lambda *_: None)
    for module in ("sdv_privpgd.plugin.arguments", "sdv.single_table.base"):
        monkeypatch.setattr(f"{module}.datetime.datetime", StoppedClock)
    # One second a look at the clock: a bar that moved once more would say so.
    monkeypatch.setattr("tqdm.std.time", map(float, itertools.count()).__next__)


@pytest.fixture
def unmoved(fixed_answers, caplog, capsys):
    """Asserts that fits let out the same to the byte of a table and of what it is changed to."""

    def same(synthesizer, table, changes, known=KNOWN):
        first = observe(synthesizer, table, caplog, capsys, known)
        for number, change in enumerate(changes):
            other = change(table) if callable(change) else change
            assert first == observe(synthesizer, other, caplog, capsys, known), (number, change)
        return first

    return same
