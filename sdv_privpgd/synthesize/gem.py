"""GEM: a generative network is trained until the answers of what it makes are the noisy ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from sdv_privpgd.base.arguments import check_fields, check_integer
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.base.progress import Progress, Shares, silent
from sdv_privpgd.privacy.queries import Measurement
from sdv_privpgd.synthesize.engine import Model
from sdv_privpgd.synthesize.goals import Goals
from sdv_privpgd.synthesize.relaxed import (
    Mixture,
    MixtureEngine,
    RelaxedLoss,
    descend,
    device_of,
    softmaxes,
)


@dataclass(frozen=True, kw_only=True)
class GenerativeNetwork(MixtureEngine):
    """Trains a small network that turns noise into product distributions to match the tables.

    Liu, Vietri & Wu 2021 (GEM), section 4: a fixed sample of Gaussian noise goes through a residual
    network; its output, a softmax for each attribute, is a mixture of product distributions, whose
    answers have a gradient. It sees noisy answers only, so all it does is post-processing. With
    ``Adaptive`` it is the published method, and with another strategy its training alone. Ours
    differs in four ways:

    - All measured cells count in each step, by the noise of their table, where the published code
      trains on cells whose error is above a threshold.
    - The weights of the last step are taken, and no average over rounds.
    - Rows are drawn as for ``RelaxedProjection``.
    - There are 500 products and a learning rate of 0.005, where the paper has 1,000 and the
      published code 0.0001 to 0.001: with all pairs of Adult at epsilon 1, 14 seconds of one core
      instead of 31, and errors no larger.

    Attributes:
        num_components: The size of the sample of noise, which is the number of products.
        latent: The number of noise values of each.
        widths: The layers' numbers of units.
        steps: The largest number of steps.
        learning_rate: Adam's, of the network's weights.
        tolerance: The learning rate is halved when 25 steps lower the loss by less than this share
            of itself; after the third time the fit ends.
        possible: For some cliques, the cells that can hold rows at all; the others are wanted
            empty.
        seed: The seed of the sample and the first weights. No private noise depends on it.
        enable_gpu: Whether to use CUDA where there is a device.

    >>> import numpy as np
    >>> from sdv_privpgd.base.domain import Domain
    >>> from sdv_privpgd.privacy.queries import Measurement
    >>> from sdv_privpgd.privacy.queries import MarginalQuery
    >>> noisy = Measurement(
    ...     query=MarginalQuery(("a", "b")), answer=np.array([[41, -1], [2, 58]]), stddev=2.0
    ... )
    >>> engine = GenerativeNetwork(num_components=100, widths=(16,))
    >>> model = engine.fit(Domain(("a", "b"), (2, 2)), [noisy])
    >>> model.marginal(("a", "b")).round(1).tolist()
    [[0.4, 0.0], [0.0, 0.6]]
    >>> model.sample(3, seed=0).shape
    (3, 2)
    """

    num_components: int = 500
    latent: int = 128
    widths: tuple[int, ...] = (256, 256)
    learning_rate: float = 5e-3

    title = "A generative network was trained on the noisy counts"
    citation = (
        "Liu, T., Vietri, G. & Wu, Z. S. (2021). Iterative methods for private synthetic data: "
        "unifying framework and new methods. NeurIPS 34."
    )
    quick = {"num_components": 50, "widths": (8,), "latent": 8, "steps": 10}  # noqa: RUF012

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, check_integer, "latent")
        for width in self.widths:
            check_integer("widths", width)

    def fit(
        self,
        domain: Domain,
        measurements: Sequence[Measurement],
        *,
        warm_start: Model | None = None,
        progress: Progress = silent,
    ) -> Mixture:
        """The mixture of the network that is nearest to the measured tables.

        ``warm_start`` is where the training starts if a network of this shape made it.
        """
        device = device_of(enable_gpu=self.enable_gpu)
        generator = torch.Generator().manual_seed(self.seed)
        noise = torch.randn((self.num_components, self.latent), generator=generator).to(device)
        start = first_weights(self.latent, self.widths, sum(domain.sizes), generator)
        known = warm_start.weights if isinstance(warm_start, Mixture) else {}
        if {name: own.shape for name, own in known.items()} == {
            name: tuple(own.shape) for name, own in start.items()
        }:
            start = {name: torch.tensor(own) for name, own in known.items()}
        weights = {name: own.to(device).requires_grad_() for name, own in start.items()}
        goals = Goals.of(domain, measurements, self.possible)
        shares = Shares(progress, "fit")
        if goals.tables:
            loss = RelaxedLoss(goals, device)
            descend(
                lambda: loss(softmaxes(logits_of(noise, weights), domain)),
                list(weights.values()),
                steps=self.steps,
                learning_rate=self.learning_rate,
                tolerance=self.tolerance,
                shares=shares,
            )
        shares.reach(1.0)
        with torch.no_grad():
            found = softmaxes(logits_of(noise, weights), domain)
        return Mixture(
            domain=domain,
            shares=found.cpu().numpy(),
            weights={name: own.detach().cpu().numpy() for name, own in weights.items()},
        )


def first_weights(
    latent: int, widths: Sequence[int], codes: int, generator: torch.Generator
) -> dict[str, Tensor]:
    """Random weights: uniform within 1 / sqrt(inputs) of 0, scales of 1 and shifts of 0."""

    def uniform(*shape: int) -> Tensor:
        return (2 * torch.rand(shape, generator=generator) - 1) / shape[0] ** 0.5

    found: dict[str, Tensor] = {}
    inputs = latent
    for at, width in enumerate(widths):
        found[f"map {at}"] = uniform(inputs, width)
        found[f"scale {at}"] = torch.ones(width)
        found[f"shift {at}"] = torch.zeros(width)
        inputs += width
    found["map"] = uniform(inputs, codes)
    found["shift"] = torch.zeros(codes)
    return found


def logits_of(
    noise: Float[Tensor, "component latent"], weights: Mapping[str, Tensor]
) -> Float[Tensor, "component code"]:
    """The network's output: log-shares of all codes.

    A layer's values are normalized over the sample, scaled, shifted and cut at 0; what went into
    the layer goes on beside them.
    """
    steady = 1e-5  # added to the variance of a layer's values before they are divided by its root
    values = noise
    for at in range((len(weights) - 2) // 3):
        mapped = values @ weights[f"map {at}"]
        variance, mean = torch.var_mean(mapped, dim=0, correction=0)
        normal = (mapped - mean) * torch.rsqrt(variance + steady)
        active = torch.relu(normal * weights[f"scale {at}"] + weights[f"shift {at}"])
        values = torch.cat([active, values], dim=1)
    return values @ weights["map"] + weights["shift"]
