"""The networks that DP-SGD trains. All but the gradients of records is public.

Random numbers here come from a seed: what disturbs a record, and what is compared with it. Each
record takes its part of what is drawn for a step by its own codes, so that its gradient depends on
no other record, and not on how many there are.
"""

import abc
import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.func import functional_call, grad, vmap
from torch.nn import Linear, ReLU, Sequential
from torch.nn.functional import one_hot, softplus
from torch.nn.utils import clip_grad_norm_, parameters_to_vector, vector_to_parameters
from torch.optim.lr_scheduler import CosineAnnealingLR

from sdv_privpgd.base import cached_property
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.privacy.queries import Measurement
from sdv_privpgd.synthesize.engine import first_shares

if TYPE_CHECKING:
    from sdv_privpgd.methods.dp_sgd import DPCTGAN, DPDiffusion

_LEVELS, _COPIES = 12, 8
"""Degrees of disturbance; disturbed copies of a row that its gradient is the mean of."""
_LONGEST = 5.0
"""No step moves the weights farther. On Adult at epsilon 0.2, 1 and 5 this and the rate of 64 are
as good as the best rate for each, of 1 to 128."""
_LATENT, _CONDITIONS = 16, 4
"""Normal numbers of an input; conditions of a row that its gradient is the mean of."""
_FAKES = 200
"""Rows that the critic compares with in a step, and that the generator learns from."""
_COOL = 0.5
"""Temperature of the softened codes (Jang, Gu & Poole 2017)."""
_DEALT = 1024
"""Sets of random numbers of a step, one of which a row takes by its codes."""
_NEW = 0.05
"""Part of the last weights in the mean of those of the last steps."""


@dataclass(frozen=True)
class Codes:
    """The codes of all attributes in one row of numbers, side by side.

    Attributes:
        sizes: Codes of each attribute.
        shares: The estimated share of each code of each attribute; those of one add up to 1.
    """

    sizes: list[int]
    shares: torch.Tensor

    @classmethod
    def of(cls, domain: Domain, measurements: Sequence[Measurement]) -> "Codes":
        """By the noisy tables among the answers."""
        shares = np.concatenate(first_shares(domain, measurements))
        return cls(list(domain.sizes), torch.from_numpy(shares))

    @property
    def number(self) -> int:
        """Of all codes."""
        return sum(self.sizes)

    @cached_property
    def first(self) -> torch.Tensor:
        """The place of each attribute's first code."""
        return torch.tensor([0, *self.sizes[:-1]]).cumsum(0)

    def of_each(self, logits: torch.Tensor, change: str) -> torch.Tensor:
        """The softmax (or another function) of each attribute's part of the last axis."""
        parts = torch.split(logits, self.sizes, dim=-1)
        return torch.cat([getattr(torch, change)(part, dim=-1) for part in parts], dim=-1)

    def placed(self, codes: torch.Tensor) -> torch.Tensor:
        """Rows of zeros, with a 1 at the place of each code."""
        places = self.first + codes
        found = torch.zeros(*codes.shape[:-1], self.number, dtype=torch.float64)
        return found.scatter_(-1, places, 1.0)

    def drawn(self, chances: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """A code of each attribute by its chances (row, code): codes (row, attribute)."""
        parts = torch.split(chances, self.sizes, dim=1)
        one = [torch.multinomial(part, 1, generator=generator) for part in parts]
        return torch.cat(one, dim=1)


class Network(abc.ABC):
    """Weights, the loss of each record, and rows by the weights.

    Attributes:
        private: What noisy gradients of records move. Nothing of a record is in it but by these.
    """

    private: Sequential
    _average: Sequential

    def __init__(self, method: "DPDiffusion | DPCTGAN", codes: Codes) -> None:
        self._codes, self._rate, self._clip = codes, method.learning_rate, method.clip
        self._generator = torch.Generator().manual_seed(method.seed)

    @property
    def num_weights(self) -> int:
        """Those that gradients of records move."""
        return sum(each.numel() for each in self.private.parameters())

    @abc.abstractmethod
    def losses(self, codes: torch.Tensor) -> torch.Tensor:
        """The loss of each record, of its codes (record, attribute)."""

    @abc.abstractmethod
    def begin(self, steps: int) -> torch.optim.Optimizer:
        """What moves the private weights by noisy gradients, in so many steps."""

    @abc.abstractmethod
    def meet(self) -> None:
        """Changes the noisy gradient before a step: by public numbers alone."""

    @abc.abstractmethod
    def moved(self) -> None:
        """Does after a step what is to be done, and draws random numbers for the next one."""

    @abc.abstractmethod
    def drawn(self, number: int) -> np.ndarray:
        """Codes (row, attribute) by the weights."""

    @abc.abstractmethod
    def kept(self) -> list[torch.nn.Parameter]:
        """What a release holds of it."""

    def weights(self) -> np.ndarray:
        """All weights that are kept, float64 (weight,)."""
        return parameters_to_vector(self.kept()).detach().numpy().copy()

    def load(self, weights: np.ndarray) -> None:
        """Takes these weights."""
        vector_to_parameters(torch.tensor(weights), self.kept())

    @torch.no_grad()
    def _follow(self, now: Sequential, part: float) -> None:
        """Moves the mean of the last steps' weights: noise of single steps is averaged out."""
        for mean, own in zip(self._average.parameters(), now.parameters(), strict=True):
            mean.lerp_(own, part)

    def _linear(self, inputs: int, outputs: int, scale: float, *, bias: bool = False) -> Linear:
        """A layer of normal weights."""
        layer = Linear(inputs, outputs, bias=bias, dtype=torch.float64)
        with torch.no_grad():
            layer.weight.normal_(0.0, scale, generator=self._generator)
            if bias:
                layer.bias.zero_()
        return layer

    def _dealt(self, codes: torch.Tensor) -> torch.Tensor:
        """For each row a number below ``_DEALT``, which its codes alone decide."""
        mixed = np.full(len(codes), 0x9E3779B97F4A7C15, dtype=np.uint64)
        for column in codes.T.numpy().astype(np.uint64):
            mixed = (mixed ^ column) * np.uint64(0xBF58476D1CE4E5B9) + np.uint64(0x94D049BB133111EB)
            mixed ^= mixed >> np.uint64(29)
        return torch.from_numpy((mixed % np.uint64(_DEALT)).astype(np.int64))


class Diffusion(Network):
    """What undoes a disturbance.

    At level l a code is kept with a chance that falls along a cosine (Nichol & Dhariwal 2021), and
    is drawn by its column's shares otherwise.
    """

    def __init__(self, method: "DPDiffusion", codes: Codes) -> None:
        super().__init__(method, codes)
        part = (torch.arange(_LEVELS, dtype=torch.float64) + 1) / _LEVELS
        self._kept = torch.cos(part * math.pi / 2 * 0.98) ** 2  # (level,)
        odds = self._kept[:, None] / (1 - self._kept[:, None]) / codes.shares
        self._own = torch.log1p(odds)  # what a disturbed code says for itself
        scale = 1 / math.sqrt(len(codes.sizes))
        self.private = Sequential(
            self._linear(codes.number + _LEVELS, method.width, scale),
            ReLU(),
            self._linear(method.width, codes.number, 0.0),
        )
        self._average, self._step = copy.deepcopy(self.private), 0
        self._deal()

    def losses(self, codes: torch.Tensor) -> torch.Tensor:
        dealt = self._dealt(codes)
        disturbed = torch.where(self._stays[dealt], codes[:, None], self._others[dealt])
        logs = self._codes.of_each(
            self._logits(self.private, disturbed, self._levels), "log_softmax"
        )
        places = (self._codes.first + codes)[:, None].expand_as(disturbed)
        return -logs.gather(-1, places).sum(-1).mean(-1)

    def begin(self, steps: int) -> torch.optim.Optimizer:
        # Adam would let coordinates of which little is known move as far as others: noise of the
        # same size is in all of them.
        own = torch.optim.SGD(self.private.parameters(), lr=self._rate, momentum=0.9, dampening=0.9)
        for each in self.private.parameters():
            own.state[each]["momentum_buffer"] = torch.zeros_like(each)
        self._schedule = CosineAnnealingLR(own, steps)
        return own

    def meet(self) -> None:
        for each in self.private.parameters():
            assert each.grad is not None
            each.grad /= self._clip
        clip_grad_norm_(self.private.parameters(), _LONGEST / self._rate)

    def moved(self) -> None:
        self._schedule.step()
        self._step += 1
        self._follow(self.private, max(_NEW, 1 / self._step))
        self._deal()

    def kept(self) -> list[torch.nn.Parameter]:
        return [*self._average.parameters()]

    @torch.no_grad()
    def drawn(self, number: int) -> np.ndarray:
        """Codes (row, attribute): disturbed ones by the columns' shares, undone level by level."""
        codes, shares = self._codes, self._codes.shares
        held = codes.drawn(shares.expand(number, -1), self._generator)
        for level in reversed(range(_LEVELS)):
            logits = self._logits(self._average, held, torch.full((number,), level))
            chances = codes.of_each(logits, "softmax")
            if level:
                # The chance of each code a level before, by Bayes' rule for each code at first:
                # exactly summed up (Austin et al. 2021, Eq. 4), as first codes are independent.
                places = codes.first + held
                odd = torch.exp(-self._own[level])[places]
                chances.scatter_(1, places, chances.gather(1, places) * odd)
                parts = torch.split(chances, codes.sizes, dim=1)
                sums = [part.sum(1, keepdim=True).expand_as(part) for part in parts]
                below = self._kept[level - 1]
                chances = below * chances + (1 - below) * shares * torch.cat(sums, dim=1)
                stays = self._kept[level] / below
                more = 1 + stays / (1 - stays) / shares[places]
                chances.scatter_(1, places, chances.gather(1, places) * more)
            held = codes.drawn(chances, self._generator)
        return held.numpy()

    def _logits(
        self, network: Sequential, disturbed: torch.Tensor, levels: torch.Tensor
    ) -> torch.Tensor:
        """Of the codes that were disturbed, to these levels along the last axis but one."""
        placed = self._codes.placed(disturbed)
        at = one_hot(levels, _LEVELS).to(placed).expand(*placed.shape[:-1], _LEVELS)
        own = placed * self._own[levels]
        return network(torch.cat([placed, at], dim=-1)) + own + self._codes.shares.log()

    def _deal(self) -> None:
        """Draws what disturbs rows in the next step: public, and the same for any table."""
        own, number = self._generator, len(self._codes.sizes)
        uniform = torch.rand(_COPIES, generator=own, dtype=torch.float64)
        self._levels = ((torch.arange(_COPIES) + uniform) / _COPIES * _LEVELS).long()
        kept = self._kept[self._levels][:, None]
        shape = (_DEALT, _COPIES, number)
        self._stays = torch.rand(shape, generator=own, dtype=torch.float64) < kept
        shares = self._codes.shares.expand(_DEALT * _COPIES, -1)
        self._others = self._codes.drawn(shares, own).reshape(shape)


class Adversarial(Network):
    """A critic, which gradients of records move, and a generator, which learns by it."""

    def __init__(self, method: "DPCTGAN", codes: Codes) -> None:
        super().__init__(method, codes)
        self._every = method.critic_steps
        number, width, wide = codes.number, method.width, 2 * method.width
        self.private = Sequential(
            self._linear(2 * number, width, 1 / math.sqrt(len(codes.sizes) + 1), bias=True),
            ReLU(),
            self._linear(width, 1, 1 / math.sqrt(width)),
        )
        self._judge = copy.deepcopy(self.private)  # opacus has no hooks in this one
        # A generator of zeros would have no gradient but in its last layer.
        self._maker = Sequential(
            self._linear(_LATENT + number, wide, 1 / math.sqrt(_LATENT + 1)),
            ReLU(),
            self._linear(wide, number, 0.1 / math.sqrt(wide)),
        )
        self._average, self._step = copy.deepcopy(self._maker), 0
        self._deal()

    def losses(self, codes: torch.Tensor) -> torch.Tensor:
        axes = self._axes[self._dealt(codes)]
        conditions = one_hot(self._codes.first[axes] + codes.gather(1, axes), self._codes.number)
        rows = self._codes.placed(codes)[:, None].expand(conditions.shape)
        found = self.private(torch.cat([rows, conditions.to(rows)], dim=-1))
        return softplus(-found).squeeze(-1).mean(-1)

    def begin(self, steps: int) -> torch.optim.Optimizer:
        own, self._makers = (
            torch.optim.Adam(each.parameters(), lr=self._rate, betas=(0.9, 0.99), eps=1e-12)
            for each in (self.private, self._maker)
        )
        self._schedules = [
            CosineAnnealingLR(own, steps),
            CosineAnnealingLR(self._makers, max(1, steps // self._every)),
        ]
        return own

    def meet(self) -> None:
        """Adds what generated rows say, each clipped as a real one is."""
        conditions = self._conditions(_FAKES)
        rows = self._codes.placed(self._codes.drawn(self._chances(conditions), self._generator))
        both = torch.cat([rows, conditions], dim=1)

        def loss(weights: dict[str, torch.Tensor], one: torch.Tensor) -> torch.Tensor:
            return softplus(functional_call(self._judge, weights, (one,)).squeeze())

        found = vmap(grad(loss), (None, 0))(self._critic(), both)
        flat = torch.cat([each.reshape(_FAKES, -1) for each in found.values()], dim=1)
        factors = (self._clip / flat.norm(dim=1).clamp(min=1e-12)).clamp(max=1.0) / _FAKES
        for name, each in self.private.named_parameters():
            assert each.grad is not None
            each.grad += torch.einsum("i,i...->...", factors, found[name])

    def moved(self) -> None:
        # Part of the critic's weights that a step takes off: what noise adds to them fades.
        forget = 0.01
        with torch.no_grad():
            for each in self.private.parameters():
                each.mul_(1 - forget)
        self._schedules[0].step()
        self._step += 1
        if self._step % self._every == 0:
            self._generate()
            self._schedules[1].step()
        self._deal()

    def kept(self) -> list[torch.nn.Parameter]:
        return [*self.private.parameters(), *self._average.parameters()]

    def drawn(self, number: int) -> np.ndarray:
        """Codes (row, attribute) of the generator, under conditions that are drawn."""
        chances = self._chances(self._conditions(number))
        return self._codes.drawn(chances, self._generator).numpy()

    def _critic(self) -> dict[str, torch.Tensor]:
        return {name: each.detach() for name, each in self.private.named_parameters()}

    def _deal(self) -> None:
        """Draws the columns on which real rows are conditioned in the next step."""
        shape = (_DEALT, _CONDITIONS)
        self._axes = torch.randint(len(self._codes.sizes), shape, generator=self._generator)

    def _conditions(self, number: int) -> torch.Tensor:
        """Rows of zeros, with a 1 at a code of one column each, by its shares."""
        codes = self._codes
        every = codes.first + codes.drawn(codes.shares.expand(number, -1), self._generator)
        axes = torch.randint(len(codes.sizes), (number, 1), generator=self._generator)
        return one_hot(every.gather(1, axes).squeeze(1), codes.number).double()

    @torch.no_grad()
    def _chances(self, conditions: torch.Tensor) -> torch.Tensor:
        """The generator's chances (row, code), under conditions."""
        return self._codes.of_each(self._logits(self._average, conditions), "softmax")

    def _logits(self, maker: Sequential, conditions: torch.Tensor) -> torch.Tensor:
        latent = torch.randn(
            len(conditions), _LATENT, generator=self._generator, dtype=torch.float64
        )
        return maker(torch.cat([latent, conditions], dim=1)) + self._codes.shares.log()

    def _generate(self) -> None:
        """A step of the generator: to be taken for real, and to have what it was told to have."""
        conditions = self._conditions(_FAKES)
        logits = self._logits(self._maker, conditions)
        uniform = torch.rand(logits.shape, generator=self._generator, dtype=torch.float64)
        noise = -torch.log(-torch.log(uniform + 1e-300) + 1e-300)
        soft = self._codes.of_each((logits + noise) / _COOL, "softmax")
        both = torch.cat([soft, conditions], dim=1)
        taken = softplus(-functional_call(self._judge, self._critic(), (both,))).mean()
        of_conditions = -(self._codes.of_each(logits, "log_softmax") * conditions).sum(1).mean()
        self._makers.zero_grad()
        (taken + of_conditions).backward()
        self._makers.step()
        self._follow(self._maker, max(_NEW, self._every / self._step))
