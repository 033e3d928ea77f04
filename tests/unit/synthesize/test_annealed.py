"""RAP++'s engine on numbers as they are: skewed, with values that most rows have."""

import numpy as np
import pytest

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.privacy.half_spaces import Cut, Line
from sdv_privpgd.privacy.queries import (
    CutMarginalQuery,
    MarginalQuery,
    Measurement,
    answers_of_codes,
)
from sdv_privpgd.synthesize.annealed import AnnealedProjection

GAIN = Line("gain", tuple(np.rint(np.geomspace(10, 65_536, 60) - 10).astype(int).tolist()))
HOURS = Line("hours", tuple(range(0, 65_000, 650)))
DOMAIN = Domain(("gain", "hours", "rich"), (60, 100, 2))
STDDEV = 30.0


def _codes(rng):
    """Codes of 20,000 rows: nine of ten gain nothing, half work 40 hours, the rich more of both."""
    rich = rng.random(20_000) < 0.25
    gain = np.where(rng.random(20_000) < 0.95 - 0.2 * rich, 0, rng.integers(25, 60, 20_000))
    usual = rng.random(20_000) < 0.5
    hours = np.where(usual, 40, np.clip(rng.normal(38 + 8 * rich, 14, 20_000), 1, 99).astype(int))
    return np.stack([gain, hours, rich.astype(int)], axis=1)


def _asked(rng):
    """Each column's table, and half-spaces with thresholds beside the value that half have."""
    questions = [
        CutMarginalQuery(("rich",), (Cut((line,), (1,), line.places[:-1]),))
        for line in (GAIN, HOURS)
    ]
    for _ in range(12):
        weights = tuple(int(each) for each in rng.integers(100, 2_000, 2) * rng.choice([-1, 1], 2))
        usual = weights[1] * HOURS.places[40]
        steps = {usual + step * abs(weights[1]) for step in (-9_000, -3_000, -320, 320, 3_000)}
        cut = Cut((GAIN, HOURS), weights, tuple(sorted(steps)))
        questions.append(CutMarginalQuery(("rich",), (cut,)))
    return [MarginalQuery(("rich",)), *questions]


@pytest.fixture(scope="module")
def measured():
    rng = np.random.default_rng(0)
    asked = _asked(rng)
    exact = answers_of_codes(asked, DOMAIN, _codes(rng))
    return [
        Measurement(query=query, answer=answer.astype(np.int64), stddev=STDDEV)
        for query, answer in zip(asked, exact, strict=True)
    ]


def _off(model, measured):
    """The mean squared error of a model's rows in standard deviations, question by question."""
    codes = model.sample(20_000, seed=0)
    found = answers_of_codes([each.query for each in measured], DOMAIN, codes)
    return np.array(
        [
            np.square((answer - each.answer) / each.stddev).mean()
            for answer, each in zip(found, measured, strict=True)
        ]
    )


def test_answers_about_skewed_numbers_come_out(measured):
    """Moved along values from flat slopes on, rows are 55 off here, and 100 at worst."""
    engine = AnnealedProjection(num_components=500, first_slope=4.0, slopes=8)
    off = _off(engine.fit(DOMAIN, measured), measured)
    assert off.mean() < 10
    assert off.max() < 25


def test_a_warm_start_is_where_the_other_fit_ended(measured):
    first = AnnealedProjection(num_components=500, steps=20, slopes=2).fit(DOMAIN, measured)
    again = AnnealedProjection(num_components=500, steps=1, slopes=1, learning_rate=1e-9)
    assert (
        again.fit(DOMAIN, measured, warm_start=first).sample(500, 0) == first.sample(500, 0)
    ).all()
