"""What a generator's rows are compared with: noisy mean embeddings and noisy tables.

Rows are given as the chances of their codes, which are independent given what the row was made of.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sdv_privpgd.base.domain import Clique, Domain
from sdv_privpgd.estimate.noisy_tables import NoisyTable
from sdv_privpgd.privacy.embedding import EmbeddingQuery
from sdv_privpgd.privacy.measurement import Measurement

_EXACT = 1e-3
"""Standard deviation, in records, that stands for an answer without noise."""

_AXES = "abcdefghijklmnopqrst"

Chances = Sequence[Float[Tensor, "row _"]]


@dataclass(frozen=True)
class TableLoss:
    """The squared distance of the rows' shares of cells from those of a noisy table."""

    axes: tuple[int, ...]
    target: Tensor
    precision: float

    @classmethod
    def of(
        cls, domain: Domain, clique: Clique, table: NoisyTable, total: float, device: torch.device
    ) -> "TableLoss":
        """The loss of a table of counts of about ``total`` records."""
        target = torch.from_numpy(table.counts / total).float().to(device)
        return cls(domain.axes(clique), target, total**2 / max(table.variance, _EXACT**2))

    def __call__(self, chances: Chances) -> Float[Tensor, ""]:
        letters = _AXES[: len(self.axes)]
        terms = ",".join(f"z{letter}" for letter in letters)
        own = [chances[axis] for axis in self.axes]
        found = torch.einsum(f"{terms}->{letters}", *own) / len(own[0])
        return (found - self.target).square().sum()


@dataclass(frozen=True)
class EmbeddingLoss:
    """The squared distance of the rows' mean embedding from a noisy one, over random features.

    A code x of attribute j adds an angle to the phase of its row. The mean of cos + i sin over
    independent codes is the product over j of sum_x chance_j(x) exp(i angle_j(x)).
    """

    axes: tuple[int, ...]
    waves: tuple[Float[Tensor, "2 _ feature"], ...]
    label: int | None
    target: Float[Tensor, "label 2 feature"]
    precision: float
    num_drawn: int
    generator: torch.Generator

    @classmethod
    def of(
        cls,
        domain: Domain,
        answer: Measurement,
        total: float,
        num_drawn: int,
        generator: torch.Generator,
        device: torch.device,
    ) -> "EmbeddingLoss":
        """The loss of an ``EmbeddingQuery``'s answer; a call draws so many of its features."""
        query = answer.query
        assert isinstance(query, EmbeddingQuery)
        unit = query.GRID * total
        angles = [2 * np.pi / query.TURN * phases.astype(np.float64) for phases in query.phases()]
        waves = [np.stack([np.cos(own), np.sin(own)]).astype(np.float32) for own in angles]
        return cls(
            axes=domain.axes(name for name, _ in query.coordinates),
            waves=tuple(torch.from_numpy(own).to(device) for own in waves),
            label=None if query.label is None else domain.axes((query.label,))[0],
            target=torch.from_numpy(answer.answer / unit).float().to(device),
            precision=(unit / max(answer.stddev, _EXACT * query.GRID)) ** 2,
            num_drawn=min(num_drawn, query.num_features),
            generator=generator,
        )

    def __call__(self, chances: Chances) -> Float[Tensor, ""]:
        num_features = self.target.shape[-1]
        drawn = torch.randperm(num_features, generator=self.generator)[: self.num_drawn]
        drawn = drawn.to(self.target.device)
        found = self.embedding(chances, drawn)
        far = (found - self.target[..., drawn]).square().sum()
        return num_features / self.num_drawn * far

    def embedding(self, chances: Chances, features: Tensor) -> Float[Tensor, "label 2 feature"]:
        """The mean embedding of rows with these chances of codes, for some of the features."""
        ones = torch.ones((len(chances[0]), len(features)), device=features.device)
        cosine, sine = ones, torch.zeros_like(ones)
        for axis, (cosines, sines) in zip(self.axes, self.waves, strict=True):
            own = chances[axis]
            across, along = own @ cosines[:, features], own @ sines[:, features]
            cosine, sine = cosine * across - sine * along, sine * across + cosine * along
        labels = ones[:, :1] if self.label is None else chances[self.label]
        return torch.einsum("zl,zwf->lwf", labels, torch.stack([cosine, sine], 1)) / len(ones)
