"""DP-SGD: networks that noisy sums of clipped gradients train (Abadi et al. 2016, Algorithm 1).

Opacus takes each record's gradient, clips it and accounts for all of them. Random bits of samples
and noise are the operating system's (``training``). The promise is weaker than that of
counts. It rests on opacus, on the networks' code and on torch's arithmetic in floating point, none
of which the core can look into: no gradient of a record may depend on who else is in the sample.
A step takes the longer the more records are in its sample: who can measure that learns of their
number.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sdv_privpgd.base.arguments import check_fields, check_integer, check_positive
from sdv_privpgd.base.domain import Clique, Domain
from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.estimate.noisy_tables import estimate_total
from sdv_privpgd.methods.method import Method, measure_tables
from sdv_privpgd.privacy.accounting import delta_of_one
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.ledger import TRAINED, PrivacyBudgetError, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency, Measurement
from sdv_privpgd.synthesize.engine import Model, Particles, default_number

if TYPE_CHECKING:
    from sdv_privpgd.methods.dp_sgd.networks import Network

TABLES = Fraction(1, 10)
"""Share of the budget for the tables of single columns."""

LEAST_DELTA = 1e-9
"""Of one record. Below it the rounding of the accountant would be no small part of it."""


@dataclass(frozen=True, kw_only=True)
class TrainingQuery:
    """Weights that were trained by noisy sums of clipped gradients over Poisson samples."""

    network: str  # what the weights are of, in words for the ledger
    num_weights: int  # how many there are
    clip: float  # the largest norm of a record's gradient
    rate: Fraction  # the chance of each record to be in a sample, a whole number of 2^-32
    steps: int  # the number of samples
    num_public: int = 0  # further weights, which no gradient of a record moves

    def describe(self) -> str:
        return (
            f"{self.network}, {self.num_weights:,} weights, by gradients of {self.steps:,} samples "
            f"at a rate of {float(self.rate):.4g}"
        )

    def l2_sensitivity_squared(self, adjacency: Adjacency) -> int:
        """Of one step's sum in clips: 1 when a record is added or removed, 4 when it changes."""
        return 4 if adjacency is Adjacency.REPLACE_ONE else 1

    def shape(self, domain: Domain) -> tuple[int, ...]:
        del domain
        return (self.num_weights + self.num_public,)

    def answer(self, dataset: Any) -> np.ndarray:
        """Never: weights have no answer without noise."""
        del dataset
        raise TypeError("Weights are trained by Curator.train alone.")


@dataclass(frozen=True, kw_only=True)
class _Trained(Method):
    """What both methods share: their settings, what they ask, and rows by trained weights."""

    steps: int = 100
    batch: int = 1_500
    width: int
    clip: float = 1.0
    learning_rate: float
    num_particles: int | None = None
    num_bins: int | None = None
    seed: int = 0

    network: ClassVar[str]
    kind: ClassVar[str]  # its class in ``networks``
    layers: ClassVar[int]  # weights for each code and unit of the width

    own_delta = Fraction(1, 10)
    """The part of delta that the ledger must reserve: between 0.02 and 0.3 of it the noise is the
    same to 2 %."""
    weighs_rows = False
    needs_table = "its answer is a network, and no table"
    quick = {"num_particles": 300, "width": 8}  # noqa: RUF012

    def __post_init__(self) -> None:
        check_fields(self, check_integer, "num_bins", "steps", "batch", "width")
        check_fields(self, check_positive, "clip", "learning_rate")

    def begun(self, domain: Domain, measurements: Sequence[Measurement]) -> "Network":
        """The network before its first step, by the noisy tables among the answers."""
        from sdv_privpgd.methods.dp_sgd import networks  # imported late: opacus is an extra

        return getattr(networks, self.kind)(self, networks.Codes.of(domain, measurements))

    def megabytes(self, domain: Domain, cliques: Sequence[Clique] = ()) -> float:
        """About the size of all networks in MiB of float64."""
        del cliques
        return self.width * self.layers * sum(domain.sizes) * 8 / 2**20

    def refusal(self, domain: Domain, cliques: Sequence[Clique] = ()) -> str | None:
        """Why it cannot be used here: opacus is an extra."""
        del domain, cliques
        if find_spec("opacus") is None:
            return "it trains by opacus, which is not installed: pip install 'sdv-privpgd[dp-sgd]'."
        return None

    def require_budget(self, ledger: PrivacyLedger) -> None:
        if any(charge.mechanism == TRAINED for charge in ledger.charges):
            raise PrivacyBudgetError(
                "A training by private gradients has used up the part of delta that it needs, so "
                "no budget can be added to it: fit anew."
            )
        rows = ledger.rows_counted * (2 if ledger.adjacency is Adjacency.REPLACE_ONE else 1)
        mu, kept = math.sqrt(ledger.remaining * (1 - TABLES)) / rows, _kept(ledger)
        if kept <= 0 or delta_of_one(mu, float(kept), rows) < 2 * LEAST_DELTA:
            raise PrivacyBudgetError(
                f"Private gradients need a part of delta, {2 * LEAST_DELTA:g} or more for one row, "
                f"and of delta={ledger.delta:g} less is left here. Choose a larger delta, a "
                "smaller epsilon, or fewer rows of a person."
            )

    def counted(self, measurements: Sequence[Measurement]) -> str:
        del measurements
        return (
            "the frequencies of each column, and gradients of a network's loss, clipped and summed "
            f"over {self.steps:,} random samples of {self.batch:,} rows on average (DP-SGD, by "
            "opacus)"
        )

    def measure(self, curator: Curator, *, progress: Progress = silent) -> list[Measurement]:
        """Returns the tables and the trained weights, bought with all that is left."""
        grain = 1 << 32
        domain, ledger = curator.domain, curator.ledger
        if refused := self.refusal(domain):
            raise ImportError(f"{type(self).__name__} cannot be used: {refused}")
        self.require_budget(ledger)
        from sdv_privpgd.methods.dp_sgd.training import OpacusTrainer

        cliques, share = self.cliques(domain), ledger.remaining * TABLES
        found = measure_tables(curator, cliques, "all 1-way marginals", share, progress)
        total = max(estimate_total(domain, curator.measurements).value, 1.0)
        network = self.begun(domain, curator.measurements)
        query = TrainingQuery(
            network=self.network,
            num_weights=network.num_weights,
            num_public=len(network.weights()) - network.num_weights,
            clip=float(self.clip),
            rate=min(Fraction(math.ceil(self.batch / total * grain), grain), Fraction(1)),
            steps=self.steps,
        )
        trainer = OpacusTrainer(network, query, min(self.batch, math.ceil(total)))
        ledger = curator.ledger
        weights = curator.train(trainer, ledger.remaining, _kept(ledger), progress=progress)
        return [*found, weights]

    def fit(
        self,
        domain: Domain,
        measurements: Sequence[Measurement],
        *,
        warm_start: Model | None = None,
        progress: Progress = silent,
    ) -> Particles:
        """Rows of the network with the weights among the answers. ``warm_start`` is not used."""
        at_once = 1 << 13  # rows that are drawn at a time
        del warm_start
        network = self.begun(domain, measurements)
        for each in measurements:
            if isinstance(each.query, TrainingQuery) and each.query.network == self.network:
                network.load(each.answer)
        total = estimate_total(domain, measurements).value
        number = self.num_particles or default_number(total, 100)  # as slow as so many tables
        starts = progress(range(0, number, at_once), "fit")
        parts = [network.drawn(min(at_once, number - start)) for start in starts]
        return Particles(domain=domain, codes=np.concatenate(parts))


@dataclass(frozen=True, kw_only=True)
class DPDiffusion(_Trained):
    """Rows of a diffusion model that DP-SGD has trained: DP-Diffusion.

    Kotelnikov et al. 2023 (TabDDPM, section 3) disturb a row step by step, and a network learns to
    undo it; Dockhorn et al. 2023 train such networks with DP-SGD. Ours differs in five ways:

    - Numbers are codes as well, so that all columns have the disturbance of categories (there,
      Eq. 3), which replaces a code. It replaces it by one of the column's noisy table, not by any.
    - The network adds to the logits of what the code itself says, known in closed form: before its
      first step, columns are independent and have the right shares.
    - The loss is the cross-entropy of the row given the disturbed one, of all levels alike.
    - It is small, as noise falls on each weight: one hidden layer, ``width`` wide. Steps are long,
      but none is longer than a bound: where noise is most of a gradient, it would add up.
    - A row's gradient is the mean over eight disturbed copies, as Dockhorn et al. have it (section
      3.1). Steps are hundreds, where they are tens of thousands without privacy.

    Its promise is weaker than that of counts. It needs the extra ``dp-sgd``.

    When to use it: to compare with networks trained by DP-SGD. On the guide's tables it is worse
    than PrivPGD and than DP-MERF in nearly everything.

    Attributes:
        steps: The number of samples.
        batch: The number of rows of a sample, on average.
        width: Of the hidden layer.
        clip: The largest norm of a row's gradient.
        learning_rate: Of the descent, at the first step, for gradients in units of the clip.
        num_particles: Rows that are drawn of the model once it is trained. A sample is dealt from
            them. ``None`` takes the estimated number of rows, or of many an equal part.
        seed: Of all random choices here. No private noise depends on it, nor does any sample.
    """

    width: int = 16
    learning_rate: float = 64.0

    title = "The network was a diffusion model, which the rows were drawn from"
    citation = (
        "Kotelnikov, A., Baranchuk, D., Rubachev, I. & Babenko, A. (2023). TabDDPM: modelling "
        "tabular data with diffusion models. ICML, PMLR 202, 17564–17579."
    )
    network, kind = "diffusion", "Diffusion"
    layers = 2


@dataclass(frozen=True, kw_only=True)
class DPCTGAN(_Trained):
    """Rows of a conditional generator whose critic was trained by DP-SGD: DP-CTGAN.

    Xu et al. 2019 (CTGAN) condition each row on one column's value, and train a generator against a
    critic; Fang, Dhami & Kersting 2022 (DP-CTGAN) train the critic with DP-SGD. The generator sees
    real rows through the critic alone, so all it does is post-processing. Ours differs in five
    ways:

    - Numbers are codes, where CTGAN has modes of a mixture that it fits to the table.
    - A real row is conditioned on its own value of a column that is drawn; theirs draws the value
      and looks for a row that has it, which is no Poisson sample.
    - Values are drawn by the noisy tables, and the generator starts with their shares.
    - The critic has a logistic loss without a gradient penalty and without packs of rows, and
      takes several steps for one of the generator's (Bie, Kamath & Zhang 2023).
    - Both networks have one hidden layer.

    Its promise is weaker than that of counts. It needs the extra ``dp-sgd``.

    When to use it: to compare with networks trained by DP-SGD. On the guide's tables its pairs
    are worse than those of independent columns.

    The settings are those of ``DPDiffusion``, but for these.

    Attributes:
        width: Of the critic's hidden layer; the generator's is twice as wide.
        learning_rate: Of Adam, of both networks, at the first step.
        critic_steps: Of the critic, for one of the generator.
    """

    width: int = 32
    learning_rate: float = 5e-4
    critic_steps: int = 2

    title = "The network was the critic of a conditional generator, which the rows were drawn from"
    citation = (
        "Xu, L., Skoularidou, M., Cuesta-Infante, A. & Veeramachaneni, K. (2019). Modeling tabular "
        "data using conditional GAN. NeurIPS 32."
    )
    network, kind = "conditional critic", "Adversarial"
    layers = 6


def _kept(ledger: PrivacyLedger) -> Fraction:
    """What is left of the reserved part of delta."""
    return ledger.reserved - sum((charge.delta for charge in ledger.charges), Fraction(0))


METHODS = {"dp-diffusion": DPDiffusion, "dp-ctgan": DPCTGAN}
