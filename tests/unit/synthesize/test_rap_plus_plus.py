"""RAP++'s engine on numbers as they are: skewed, with values that most rows have."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.base.linear_thresholds import Cut, Line
from sdv_privpgd.privacy.queries import CutMarginalQuery, MarginalQuery, Measurement, exact_answers
from sdv_privpgd.synthesize.rap_plus_plus import AnnealedProjection, HalfSpaceLoss, Ranks, Target

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
    exact = exact_answers(asked, DOMAIN, _codes(rng))
    return [
        Measurement(query=query, answer=answer.astype(np.int64), stddev=STDDEV)
        for query, answer in zip(asked, exact, strict=True)
    ]


def _off(model, measured):
    """The mean squared error of a model's rows in standard deviations, question by question."""
    codes = model.sample(20_000, seed=0)
    found = exact_answers([each.query for each in measured], DOMAIN, codes)
    return np.array(
        [
            np.square((answer - each.answer) / each.stddev).mean()
            for answer, each in zip(found, measured, strict=True)
        ]
    )


@pytest.mark.long
def test_answers_about_skewed_numbers_come_out(measured):
    engine = AnnealedProjection(num_components=500, first_slope=4.0, slopes=8)
    off = _off(engine.fit(DOMAIN, measured), measured)
    assert off.mean() < 10
    assert off.max() < 25


def test_a_fit_follows_its_answers_and_no_model_of_others(measured):
    """Steep sigmoids left numbers where they were: repetitions of a fit had errors of nearly 0."""
    engine = AnnealedProjection(num_components=50, steps=2, slopes=2)
    others = [replace(each, answer=each.answer[..., ::-1]) for each in measured]
    anew = engine.fit(DOMAIN, measured, warm_start=engine.fit(DOMAIN, others))
    assert (anew.sample(500, 0) == engine.fit(DOMAIN, measured).sample(500, 0)).all()


def _table(line, counts, thresholds=None, weight=1):
    steps = line.places[:-1] if thresholds is None else thresholds
    cut = Cut((line,), (weight,), tuple(steps))
    return Target(clique=(), cuts=(cut,), counts=np.array(counts, dtype=float), variance=1.0)


def test_a_code_is_as_wide_as_its_share_and_alike_in_one_interval():
    line = Line("gain", (0, 1, 100), nullable=True)
    ranks = Ranks.of(line, [_table(line, [90, 0, 10, 25])])
    widths = np.diff(ranks.edges)
    assert widths == pytest.approx([0.9 * 0.9 + 0.1 / 3, 0.1 / 3, 0.9 * 0.1 + 0.1 / 3])
    assert ranks.missing == pytest.approx(0.2)
    line = Line("age", (0, 10, 20, 30))
    widths = np.diff(Ranks.of(line, [_table(line, [60, 40], [30], weight=3)]).edges)
    assert widths[:2].tolist() == pytest.approx([0.9 * 0.3 + 0.025] * 2)
    assert widths[2:].tolist() == pytest.approx([0.9 * 0.2 + 0.025] * 2)


@pytest.mark.parametrize("counts", [[0, 0, 0], [-4, -1, -2]])
def test_where_noise_left_no_rows_codes_are_alike(counts):
    line = Line("age", (0, 10, 20))
    assert np.diff(Ranks.of(line, [_table(line, counts)]).edges) == pytest.approx([1 / 3] * 3)


@given(st.lists(st.integers(-3, 50), min_size=3, max_size=3), st.integers(-5, 70))
def test_a_threshold_of_places_is_one_of_ranks(counts, place):
    line = Line("age", (0, 7, 60))
    ranks = Ranks.of(line, [_table(line, counts)])
    above = ranks.middles > ranks.threshold(float(place))
    assert above.tolist() == [own > place for own in line.places]


@given(st.lists(st.integers(0, 50), min_size=4, max_size=4))
def test_values_and_ranks_say_the_same(counts):
    line = Line("age", (0, 7, 60, 61))
    ranks = Ranks.of(line, [_table(line, counts)])
    assert ranks.to_values(ranks.edges) == pytest.approx(np.linspace(0, 1, 5))
    assert np.floor(4 * ranks.to_values(ranks.middles)).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("slope", [4.0, 16.0, 256.0, None])
def test_a_skewed_column_that_is_right_is_left_alone_at_every_slope(slope):
    """Along values, sigmoids take a value that most rows have apart from itself."""
    counts = np.array([900.0, *np.geomspace(40, 1, 30)])
    counts *= 1_000 / counts.sum()
    line = Line("gain", tuple(np.rint(np.geomspace(20, 65_536, 31)).astype(int).tolist()))
    wanted = _table(line, counts)
    ranks = Ranks.of(line, [wanted])
    # Right rows: each code has its share of 2,000, spread over its own ranks.
    held = np.round(2 * counts).astype(int)
    rows = np.concatenate(
        [
            low + (high - low) * (np.arange(number) + 0.5) / max(number, 1)
            for low, high, number in zip(ranks.edges[:-1], ranks.edges[1:], held, strict=True)
        ]
    )
    loss = HalfSpaceLoss(
        Domain(("gain",), (31,)), {"gain": ranks}, [wanted], 1_000.0, torch.device("cpu")
    )
    values = torch.tensor(rows)[:, None].float().requires_grad_()
    found = loss(values, torch.ones(len(rows), 1), torch.zeros(len(rows), 0), slope=slope)
    assert float(found.detach()) < 10  # 3 rows of 1,000; all rows at one end are 30,000 off


def test_a_half_space_sees_a_value_that_many_rows_have_as_one():
    """A threshold beside it takes none of its rows away, and they feel it all the same."""
    line = Line("hours", tuple(range(0, 1_000, 10)))
    other = Line("age", tuple(range(0, 1_000, 10)))
    counts = np.full(100, 5.0)
    counts[40] = 500.0
    own = _table(line, counts)
    cut = Cut((other, line), (1, 100), (30_000, 39_500, 50_000))
    plane = Target(clique=(), cuts=(cut,), counts=np.array([1.0, 1, 0, 0]), variance=1.0)
    ranks = {"age": Ranks.of(other, []), "hours": Ranks.of(line, [own])}
    loss = HalfSpaceLoss(
        Domain(("age", "hours"), (100, 100)), ranks, [plane], 2.0, torch.device("cpu")
    )
    edges = ranks["hours"].edges
    inside = torch.linspace(float(edges[40]) + 0.01, float(edges[41]) - 0.01, 50)
    values = torch.stack([torch.zeros(50), inside], dim=1).requires_grad_()
    soft = [
        loss(values[[row]], torch.ones(1, 2), torch.zeros(1, 0), slope=8.0) for row in range(50)
    ]
    assert len({round(float(each.detach()), 5) for each in soft}) == 1
    (gradient,) = torch.autograd.grad(torch.stack(soft).sum(), values)
    assert (gradient[:, 1] != 0).all()
