"""DP-SGD by opacus: what steps cost, samples, sums on a grid, and networks that learn."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.methods.dp_sgd import DPCTGAN, DPDiffusion, TrainingQuery, training
from sdv_privpgd.methods.dp_sgd.networks import Adversarial, Codes, Diffusion
from sdv_privpgd.methods.dp_sgd.training import (
    GRID,
    OpacusTrainer,
    Optimizer,
    excess,
    noise_multiplier,
    samples,
)
from sdv_privpgd.privacy.accounting import delta_of_one, log_delta
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.ledger import FitLedger, PrivacyBudgetError, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency

CASES = [(0.05, 3.4, 300), (0.01, 0.8, 500), (0.2, 6.0, 50), (0.03, 0.75, 100), (1.0, 9.0, 20)]
REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE


def query(**changes):
    settings = {"network": "toy", "num_weights": 5, "clip": 1.0, "rate": Fraction(1, 4), "steps": 3}
    return TrainingQuery(**{**settings, **changes})


def gaussian(x, mu):
    return norm.cdf(mu / 2 - x / mu) - np.exp(x) * norm.cdf(-mu / 2 - x / mu)


@pytest.mark.parametrize(("rate", "noise", "steps"), CASES)
@pytest.mark.parametrize("factor", [0.8, 1.0, 1.3])
def test_the_delta_beyond_a_gaussian_is_google_s_in_both_orders(rate, noise, steps, factor):
    """From above, and by no more than the errors of opacus that are allowed."""
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    mu = factor * rate * math.sqrt(steps * math.expm1(noise**-2))
    one = pld.from_gaussian_mechanism(
        noise, sampling_prob=rate, value_discretization_interval=2e-4, use_connect_dots=True
    )
    x, composed = np.linspace(0.0, 8 * mu, 100), one.self_compose(steps)
    theirs = np.array([composed.get_delta_for_epsilon(each) for each in x])
    ours = excess(rate, steps, noise, mu, 1e-6)
    assert ours >= float((theirs - gaussian(x, mu)).max()) - 2e-7
    moved = theirs - gaussian(x + 3 * mu / training._FINE, mu)
    assert ours <= max(float(moved.max()), 0.0) + 1e-7


@pytest.mark.parametrize("rate", [1.0, 0.02])
def test_one_step_is_no_less_than_its_formula_says(rate):
    noise, mu, x = 2.0, 0.3, np.linspace(0, 1.5, 40_001)
    inner = np.log(1 + np.expm1(x) / rate)
    there = rate * (
        norm.cdf(0.5 / noise - inner * noise)
        - np.exp(inner) * norm.cdf(-0.5 / noise - inner * noise)
    )
    expected = max(np.max(there - gaussian(x, mu)), 0)
    assert expected <= excess(rate, 1, noise, mu, 1e-6) <= 1.2 * expected + 1e-7


def test_both_orders_are_looked_at(monkeypatch):
    """Were the one that opacus has not far worse, it would be found."""
    fine = excess(0.1, 100, 3.0, 0.4, 1e-6)
    worse = training.PoissonSubsampledGaussianPRV(0.1, 2.0)
    monkeypatch.setattr(training, "_TurnedPRV", lambda rate, noise: worse)
    assert excess(0.1, 100, 3.0, 0.4, 1e-6) > fine + 1e-2


@pytest.mark.parametrize(("rate", "noise"), [(0.1, 3.0), (0.02, 0.7), (1.0, 2.0)])
def test_the_other_order_s_losses_are_those_that_are_drawn(rate, noise):
    """log(Q / P) of normal numbers, drawn."""
    drawn = np.random.default_rng(0).normal(scale=noise, size=200_000)
    ahead = np.exp((2 * drawn - 1) / (2 * noise**2))
    losses = -np.log1p(rate * (ahead - 1))
    t = np.quantile(losses, [0.01, 0.2, 0.5, 0.9, 0.999])
    found = training._TurnedPRV(rate, noise).cdf(t)
    assert found == pytest.approx([0.01, 0.2, 0.5, 0.9, 0.999], abs=0.004)


@pytest.mark.filterwarnings("ignore")  # opacus' own search
@pytest.mark.parametrize(
    "epsilon", [1.0, *(pytest.param(each, marks=pytest.mark.slow) for each in (0.2, 5.0))]
)
def test_what_composes_costs_hardly_more_than_what_does_not(epsilon):
    """A tenth of delta is set apart; the noise is nearly what opacus asks for by itself."""
    from opacus.accountants.utils import get_noise_multiplier

    ledger = PrivacyLedger.open(epsilon, 1e-5, ADD, reserved=Fraction(1, 10**6))
    ours = noise_multiplier(0.05, 300, math.sqrt(ledger.budget), 1e-6)
    theirs = get_noise_multiplier(
        target_epsilon=epsilon, target_delta=1e-5, sample_rate=0.05, steps=300, accountant="prv",
        epsilon_tolerance=epsilon / 100, eps_error=epsilon / 200,
    )  # fmt: skip
    assert 0.99 < ours / theirs < 1.06


@pytest.mark.parametrize("mu", [0.05, 1.0])
def test_hardly_any_sample_needs_hardly_any_noise_and_the_search_ends(mu):
    assert noise_multiplier(2.0**-32, 3, mu, 1e-6) == training._LEAST_NOISE


def test_more_steps_less_budget_and_less_delta_need_more_noise():
    first = noise_multiplier(0.05, 50, 0.3, 1e-6)
    assert noise_multiplier(0.05, 100, 0.3, 1e-6) > 1.2 * first
    assert noise_multiplier(0.05, 50, 0.15, 1e-6) > 1.6 * first
    assert excess(0.05, 50, first, 0.3, 1e-6) <= 1e-6 < excess(0.05, 50, first / 1.03, 0.3, 1e-6)
    with pytest.raises(PrivacyBudgetError, match="1e-09 or more for one row"):
        noise_multiplier(0.05, 50, 0.3, 1e-10)
    assert log_delta(1.0, 0.3) < 0


def test_samples_are_of_independent_rows_at_the_rate():
    asked = query(rate=Fraction(1, 8), steps=4)
    rows = list(samples(40_000, asked, np.random.default_rng(0).bytes))
    mean, deviation = 5_000, (40_000 * 7 / 64) ** 0.5
    assert all(abs(len(each) - mean) < 6 * deviation for each in rows)
    both = len(np.intersect1d(rows[0], rows[1]))
    assert abs(both - 625) < 6 * 625**0.5
    whole = query(rate=Fraction(1), steps=2)
    assert [len(each) for each in samples(9, whole, lambda n: b"\xff" * n)] == [9, 9]
    assert [len(each) for each in samples(0, whole, bytes)] == [0, 0]


def summed(gradients, noise=1.0, clip=1.0):
    """The points of the grid that the noise is added to, of gradients of the records."""
    number = gradients.shape[1]
    weights = torch.nn.Parameter(torch.zeros(number, dtype=torch.float64))
    weights.grad_sample = torch.tensor(gradients)
    inner = torch.optim.SGD([weights], lr=0.0)
    optimizer = Optimizer(inner, query(num_weights=number, clip=clip), noise, bytes, 1)
    optimizer.clip_and_accumulate()
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "_noisy", lambda sums, *_: found.append(sums) or sums)
        optimizer.add_noise()
    return found[0]


FLOATS = st.floats(width=64) | st.sampled_from([0.0, 1e-320, 1e308, -1e308, float("nan")])


@given(
    st.lists(st.lists(FLOATS, min_size=4, max_size=4), min_size=1, max_size=30),
    st.lists(FLOATS, min_size=4, max_size=4),
    st.sampled_from([1e-3, 1.0, 1e9]),
)
def test_neighbors_sums_differ_by_the_sensitivity_at_most(others, own, clip):
    """Exactly, in whole numbers, and also of what is no number."""
    without, within = (np.array(each) for each in (others, [*others, own]))
    apart = summed(within, clip=clip) - summed(without, clip=clip)
    assert sum(int(x) ** 2 for x in apart) <= GRID**2


def test_a_long_gradient_keeps_its_direction_and_nearly_the_clip():
    gradient = np.random.default_rng(0).normal(size=(1, 500)) * 1e5
    found = summed(gradient)[:] / GRID
    assert 1 - 4 * np.sqrt(500) / GRID < np.linalg.norm(found) <= 1
    assert np.abs(found - gradient[0] / np.linalg.norm(gradient)).max() < 1e-4


def test_the_noise_is_whole_numbers_of_the_grid_and_the_operating_system_s(monkeypatch):
    asked = []

    def words(number):
        asked.append(number)
        return np.random.default_rng(number).bytes(number)

    weights = torch.nn.Parameter(torch.zeros(900, dtype=torch.float64))
    inner = torch.optim.SGD([weights], lr=0.0)
    optimizer = Optimizer(inner, query(num_weights=900, clip=0.5), 3.0, words, 1)
    weights.summed_grad = torch.full((900,), 1 / 3, dtype=torch.float64)
    monkeypatch.setattr(torch, "normal", lambda *_: pytest.fail("torch's generator"))
    optimizer.add_noise()
    points = weights.grad.numpy() / (0.5 / GRID)
    assert (points == np.rint(points)).all()
    assert sum(asked) >= 8 * 900
    assert 1.5 * 0.9 < weights.grad.numpy().std() < 1.5 * 1.1


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("rows", [1, 3])
def test_the_noise_of_all_steps_is_what_the_charge_pays_for(adjacency, rows, monkeypatch):
    """Of the sums that are noised, by the accountant: of all of them, at the rate they had."""
    drawn, noisy = [], training._noisy

    def noised(sums, stddev, words):
        drawn.append(stddev / GRID)
        return noisy(sums, stddev, words)

    monkeypatch.setattr(training, "_noisy", noised)
    domain = Domain(("a", "b"), (4, 3))
    data = np.random.default_rng(0).integers(0, (4, 3), (60, 2))
    ledger = PrivacyLedger.open(1.0, 1e-5, adjacency, rows, reserved=Fraction(1, 10**6))
    held = Curator(Dataset(domain, data), FitLedger(ledger))
    DPDiffusion(steps=40, batch=15, width=2).measure(held)
    *_, charge = held.ledger.charges
    *_, trained = held.measurements
    layers = 2
    assert len(drawn) == layers * trained.query.steps
    assert len(set(drawn)) == 1
    mu, most = 1 / charge.stddev, rows * (2 if adjacency is REPLACE else 1)
    own = delta_of_one(mu, float(charge.delta) * (1 + 1e-9), most)
    rate = float(trained.query.rate)
    assert excess(rate, 40, drawn[0], mu, own) <= own * (1 + 1e-6)
    # And not much more: half the steps would be heard.
    assert excess(rate, 80, drawn[0], mu, own) > 2 * own


def equal_columns(number=4_000):
    rng = np.random.default_rng(0)
    first = rng.integers(0, 6, number)
    near = (first + rng.integers(0, 2, number)) % 6
    return np.stack([first, first, near, rng.integers(0, 3, number)], axis=1)


CODES = Codes([6, 6, 6, 3], torch.tensor([1 / 6] * 18 + [1 / 3] * 3, dtype=torch.float64))


def trained(network, steps, noise):
    asked = query(num_weights=network.num_weights, rate=Fraction(1, 8), steps=steps)
    trainer = OpacusTrainer(network, asked, 500)
    trainer.noise = noise
    for _ in trainer.train(equal_columns(), np.random.default_rng(0).bytes):
        pass
    return trainer.weights()


def test_a_diffusion_learns_that_two_columns_are_equal():
    weights = trained(Diffusion(DPDiffusion(), CODES), 100, 0.5)
    fresh = Diffusion(DPDiffusion(), CODES)
    before = fresh.drawn(2_000)
    assert (before[:, 0] == before[:, 1]).mean() < 0.3
    fresh.load(weights)
    assert np.array_equal(fresh.weights(), weights)
    after = fresh.drawn(2_000)
    assert (after[:, 0] == after[:, 1]).mean() > 0.5
    assert np.abs(np.bincount(after[:, 0], minlength=6) / 2_000 - 1 / 6).max() < 0.1


def test_a_generator_learns_what_it_is_told_to_have_and_a_critic_moves():
    network = Adversarial(DPCTGAN(width=8), CODES)
    start = network.weights()
    weights = trained(network, 40, 0.5)
    assert np.isfinite(weights).all()
    assert len(weights) > network.num_weights
    for part in (slice(network.num_weights), slice(network.num_weights, None)):
        assert not np.array_equal(weights[part], start[part])
    fresh = Adversarial(DPCTGAN(width=8), CODES)
    fresh.load(weights)
    assert np.array_equal(fresh.weights(), weights)
    assert fresh.drawn(50).max(axis=0).tolist() <= [5, 5, 5, 2]


@pytest.mark.parametrize("make", [DPDiffusion, DPCTGAN])
def test_a_record_s_loss_depends_on_no_other_record(make):
    """But for the arithmetic of torch, which need not be the same to the last bit."""
    network = (Diffusion if make is DPDiffusion else Adversarial)(make(), CODES)
    rows = torch.from_numpy(equal_columns(50))
    whole = network.losses(rows).detach().numpy()
    for place in (0, 7, 49):
        alone = network.losses(rows[place : place + 1]).detach().numpy()
        assert alone == pytest.approx(whole[place : place + 1], rel=1e-12)
    turned = network.losses(rows.flip(0)).detach().numpy()[::-1]
    assert turned == pytest.approx(whole, rel=1e-12)


def test_parts_of_a_sample_add_up(monkeypatch):
    found = []
    monkeypatch.setattr(training, "_noisy", lambda own, *_: found[-1].append(own) or own)
    for at_once in (1, 7, 20, 1_000):
        network = Diffusion(DPDiffusion(width=4), CODES)
        asked = query(num_weights=network.num_weights, rate=Fraction(1), steps=1)
        monkeypatch.setattr(training, "_NUMBERS", at_once * network.num_weights)
        found.append([])
        assert len([*OpacusTrainer(network, asked, 1).train(equal_columns(20), bytes)]) == 1
    for each in found:
        # To a point of the grid: sums are of floating point, and are rounded.
        assert all(np.abs(x - y).max() <= 1 for x, y in zip(each, found[0], strict=True))
    assert max(np.abs(own).max() for own in found[0]) > GRID / 100
