"""RAP: a relaxed table is moved until its answers are the noisy ones."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

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
class RelaxedProjection(MixtureEngine):
    """Moves a table of relaxed rows until its answers match the measured tables.

    Aydore et al. 2021 (RAP), Algorithm 1: a relaxed row has a distribution for each attribute
    instead of a code, so that the answers have a gradient, which Adam follows. Rows are drawn of
    the relaxed rows at the end. It sees noisy answers only, so all it does is post-processing.
    With ``Adaptive`` it is the published method, and with another strategy its projection alone.
    Ours differs in four ways:

    - Shares are softmaxes of free numbers, as in later codes, instead of being clipped.
    - An error counts by the noise of its table: tables need not be equally noisy.
    - The descent ends when steps bring little, by ``tolerance``.
    - Among the rows of a relaxed row each code gets its share rounded up or down, instead of
      independent draws.

    Attributes:
        num_components: Relaxed rows. Time and memory grow in proportion.
        steps: The largest number of steps.
        learning_rate: Adam's, of numbers whose softmax is a share.
        tolerance: The learning rate is halved when 25 steps lower the loss by less than this share
            of itself; after the third time the fit ends.
        possible: For some cliques, the cells that can hold rows at all; the others are wanted
            empty.
        seed: The seed of the start. No private noise depends on it.
        enable_gpu: Whether to use CUDA where there is a device.

    >>> import numpy as np
    >>> from sdv_privpgd.base.domain import Domain
    >>> from sdv_privpgd.privacy.queries import Measurement
    >>> from sdv_privpgd.privacy.queries import MarginalQuery
    >>> noisy = Measurement(
    ...     query=MarginalQuery(("a", "b")), answer=np.array([[41, -1], [2, 58]]), stddev=2.0
    ... )
    >>> model = RelaxedProjection(num_components=100).fit(Domain(("a", "b"), (2, 2)), [noisy])
    >>> model.marginal(("a", "b")).round(1).tolist()
    [[0.4, 0.0], [0.0, 0.6]]
    >>> model.sample(3, seed=0).shape
    (3, 2)
    """

    title = "A relaxed table was fitted to the noisy counts by Adam"
    citation = (
        "Aydore, S., Brown, W., Kearns, M., Kenthapadi, K., Melis, L., Roth, A. & Siva, A. (2021). "
        "Differentially private query release through adaptive projection. ICML, PMLR 139, "
        "457–467."
    )
    quick = {"num_components": 50, "steps": 10}  # noqa: RUF012

    def fit(
        self,
        domain: Domain,
        measurements: Sequence[Measurement],
        *,
        warm_start: Model | None = None,
        progress: Progress = silent,
    ) -> Mixture:
        """The relaxed table that is nearest to the measured tables.

        ``warm_start`` is where the descent starts if it is a mixture of as many components.
        """
        device = device_of(enable_gpu=self.enable_gpu)
        shape = (self.num_components, sum(domain.sizes))
        if isinstance(warm_start, Mixture) and warm_start.shares.shape == shape:
            start = torch.tensor(warm_start.shares).clamp_min(1e-6).log()
        else:
            generator = torch.Generator().manual_seed(self.seed)
            start = torch.randn(shape, generator=generator)
        logits = start.to(device).requires_grad_()
        goals = Goals.of(domain, measurements, self.possible)
        shares = Shares(progress, "fit")
        if goals.tables:
            loss = RelaxedLoss(goals, device)
            descend(
                lambda: loss(softmaxes(logits, domain)),
                [logits],
                steps=self.steps,
                learning_rate=self.learning_rate,
                tolerance=self.tolerance,
                shares=shares,
            )
        shares.reach(1.0)
        found = softmaxes(logits.detach(), domain)
        return Mixture(domain=domain, shares=found.cpu().numpy())
