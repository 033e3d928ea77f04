"""An attacker who sees each noisy sum of a training learns no more of a record than is charged.

He knows the network, the weights of each step and all other records, and so what the canary would
have added to each sum; whether it was in the sample he does not know. His score is the logarithm of
how much more likely all sums are with the canary than without it: no test of them is stronger.
Words come from seeded generators, so that no run fails by chance.
"""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch

from sdv_privpgd.audit.attack import Attack
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.methods.dp_sgd import DPCTGAN, DPDiffusion, TrainingQuery, networks, training
from sdv_privpgd.methods.dp_sgd.networks import Adversarial, Codes, Diffusion
from sdv_privpgd.methods.dp_sgd.training import OpacusTrainer, Optimizer
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.ledger import FitLedger, PrivacyLedger
from sdv_privpgd.privacy.noise import rounded_gaussian
from sdv_privpgd.privacy.queries import Adjacency

REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE
DOMAIN = Domain(("who", "ill"), (3, 2))
CODES = Codes([*DOMAIN.sizes], torch.tensor([0.4, 0.3, 0.3, 0.8, 0.2], dtype=torch.float64))
CANARY, OTHER_SELF, OTHERS = [2, 1], [1, 1], [0, 0]
STEPS, OFTEN, SELDOM = 8, Fraction(29, 32), Fraction(1, 8)
"""With so many steps at the higher rate the charge is hardly more than what can be shown."""
CLIP = 0.01
"""So small that the networks' gradients are longer."""
LEVEL = 0.999


class Worst:
    """Opposite gradients of the canary and its other self; the others' say nothing of either."""

    num_weights = 2

    def __init__(self):
        self.private = torch.nn.Sequential(torch.nn.Linear(2, 1, bias=False).double())

    def losses(self, codes):
        return self.private(self.gradients(codes)).squeeze(1)

    def gradients(self, codes):
        known = torch.tensor([[0.0, 1.0], [-50.0, 0.0], [50.0, 0.0]], dtype=torch.float64)
        return known[codes[:, 0]]

    def begin(self, steps):
        return torch.optim.SGD(self.private.parameters(), lr=0.0)

    def meet(self):
        pass

    def moved(self):
        pass

    def weights(self):
        return np.zeros(2)


def diffusion():
    return Diffusion(DPDiffusion(width=4, clip=CLIP), CODES)


def critic():
    return Adversarial(DPCTGAN(width=4, clip=CLIP), CODES)


class Attacker:
    """A network that hands on everything, and scores what it sees."""

    def __init__(self, inner, query, *, has_other_self):
        self.inner, self.query, self.has_other_self = inner, query, has_other_self
        self.private, self.losses, self.weights = inner.private, inner.losses, inner.weights
        self.begin, self.moved = inner.begin, inner.moved
        self.seen = []

    def meet(self):
        sums = torch.cat([each.grad.ravel() for each in self.private.parameters()]) / CLIP
        self.seen.append([self.added(sums, CANARY), self.added(sums, OTHER_SELF)])
        self.inner.meet()

    def added(self, sums, record):
        """How far a sum lies where the record would have moved it, from half way on."""
        codes = torch.tensor([record])
        if isinstance(self.inner, Worst):
            found = self.inner.gradients(codes)
        else:
            found = torch.autograd.grad(self.losses(codes).sum(), [*self.private.parameters()])
        own = torch.cat([each.ravel() for each in found]) / CLIP
        own = own / max(1.0, float(own.norm()))
        return float(sums @ own - own @ own / 2)

    def score(self, noise):
        rate = float(self.query.rate)
        # How much more likely each sum is with the record, in the sample or not, than without it.
        odds = np.logaddexp(math.log1p(-rate), math.log(rate) + np.array(self.seen) / noise**2)
        within, without = odds.sum(axis=0)
        return within - without if self.has_other_self else within


def attack(make, adjacency, *, runs, rate=OFTEN, steps=STEPS):
    """The scores in both worlds, and the mu that the ledger was charged."""
    others = 5 if make is Worst else 0  # the networks' gradients of others would hide the canary's
    rows = [[OTHERS] * others, [OTHERS] * others + [CANARY]]
    if adjacency is REPLACE:
        rows[0] = [*rows[0], OTHER_SELF]
    query = TrainingQuery(
        network="toy", num_weights=make().num_weights, clip=CLIP, rate=rate, steps=steps,
        num_public=len(make().weights()) - make().num_weights,
    )  # fmt: skip
    ledger = PrivacyLedger.open(5.0, 1e-5, adjacency, reserved=Fraction(1, 10**6))
    scores = []
    for index, world in enumerate(rows):
        data = Dataset(DOMAIN, np.array(world, dtype=np.int64).reshape(-1, 2))
        words, found = np.random.default_rng(index).bytes, []
        for _ in range(runs):
            attacker = Attacker(make(), query, has_other_self=adjacency is REPLACE)
            curator = Curator(data, FitLedger(ledger, words=words))
            trainer = OpacusTrainer(attacker, query, 1)
            curator.train(trainer, ledger.budget, ledger.reserved)
            found.append(attacker.score(trainer.noise))
        scores.append(np.array(found))
    claim = math.sqrt(ledger.budget)
    # At half the claim, the threshold of the counted bound, the odds of both worlds are even.
    without, within = (each / claim + claim / 2 for each in scores)
    return Attack(without=without, within=within, claim=claim)


NETWORKS = {"worst": Worst, "diffusion": diffusion, "critic": critic}


@pytest.fixture(autouse=True)
def _few_fakes(monkeypatch):
    monkeypatch.setattr(networks, "_FAKES", 3)


@pytest.mark.long
@pytest.mark.parametrize("adjacency", Adjacency)
def test_rare_samples_hide_as_much_as_is_promised(adjacency):
    found = attack(Worst, adjacency, runs=60, rate=SELDOM, steps=16)
    assert found.counted_bound(LEVEL) <= found.claim


@pytest.mark.long
@pytest.mark.parametrize("adjacency", Adjacency)
def test_the_attacker_gains_no_more_and_hardly_less_than_is_charged(adjacency):
    found = attack(Worst, adjacency, runs=200)
    assert found.counted_bound(LEVEL) <= found.claim
    # Were the noise far too loud, fewer would be told apart: the bound is no empty one.
    assert found.counted_bound(LEVEL) > 0.35 * found.claim


@pytest.mark.slow
@pytest.mark.parametrize("make", [diffusion, critic])
def test_gradients_of_networks_give_away_no_more(make):
    found = attack(make, ADD, runs=200)
    assert found.counted_bound(LEVEL) <= found.claim
    assert found.counted_bound(LEVEL) > 0.2 * found.claim


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("make", NETWORKS.values(), ids=NETWORKS)
def test_many_fits_give_away_no_more(make, adjacency):
    found = attack(make, adjacency, runs=1_500)
    assert found.counted_bound(LEVEL) <= found.claim


def is_caught(make=Worst, runs=150, **samples):
    found = attack(make, ADD, runs=runs, **samples)
    return found.counted_bound(LEVEL) > found.claim


@pytest.mark.long
@pytest.mark.parametrize("make", [Worst, pytest.param(diffusion, marks=pytest.mark.slow)])
def test_half_the_noise_is_caught(make, monkeypatch):
    monkeypatch.setattr(
        training,
        "rounded_gaussian",
        lambda stddev, size, words: rounded_gaussian(stddev / 2, size, words),
    )
    assert is_caught(make)


@pytest.mark.long
@pytest.mark.parametrize("make", [Worst, pytest.param(diffusion, marks=pytest.mark.slow)])
def test_gradients_that_are_not_clipped_are_caught(make, monkeypatch):
    real = Optimizer.__init__

    def unbounded(self, *asked):
        real(self, *asked)
        self.max_grad_norm = 1e30

    monkeypatch.setattr(Optimizer, "__init__", unbounded)
    assert is_caught(make)


@pytest.mark.long
def test_samples_of_all_rows_are_caught(monkeypatch):
    """Charged as if few of them were in a sample."""
    real = training.samples
    everybody = lambda number, asked, words: real(number, replace(asked, rate=Fraction(1)), words)
    monkeypatch.setattr(training, "samples", everybody)
    assert is_caught(rate=SELDOM, steps=16)


@pytest.mark.long
def test_a_charge_for_one_step_of_several_is_caught(monkeypatch):
    honest = training.noise_multiplier
    monkeypatch.setattr(
        training, "noise_multiplier", lambda rate, steps, *more: honest(rate, 1, *more)
    )
    assert is_caught()
