"""Private-PGM fits the graphical model under which the noisy tables are most likely."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sdv_privpgd.base.arguments import check_fields, check_integer, check_positive, check_share
from sdv_privpgd.base.domain import Clique, Domain
from sdv_privpgd.base.progress import Progress, Shares, silent
from sdv_privpgd.estimate.consistency import Possible, possible_cells, possible_noisy
from sdv_privpgd.estimate.noisy_tables import NoisyTable, estimate_total
from sdv_privpgd.privacy.queries import Measurement
from sdv_privpgd.synthesize.engine import Engine, Model
from sdv_privpgd.synthesize.graphical import GraphicalModel, JunctionTree, MessagePassing


@dataclass(frozen=True, kw_only=True)
class PrivatePGM(Engine):
    """Fits the maximum entropy distribution with the highest likelihood of the measured tables.

    McKenna, Sheldon & Miklau 2019 (Private-PGM), Algorithm 1: mirror descent over the marginals
    of a junction tree, with Nesterov's momentum, in double precision. It sees noisy answers only,
    so all it does is post-processing. It draws no random numbers.

    It suits strategies that measure few, connected cliques (MST, AIM). Its memory and time grow
    with the largest clique of the junction tree; ``megabytes`` says how large the tree is before
    anything is spent. All pairs of many columns make one clique of all columns: use
    ``ParticleGradientDescent`` for them.

    Attributes:
        steps: The largest number of steps. Most fits end early, after 250 to 500.
        tolerance: The fit ends early once the loss falls by less than this share of itself, or of
            1, in each of two lots of 50 steps.
        possible: For some cliques, the cells that can hold rows at all. The model has nothing in
            the others, as long as its tree with these cliques stays below 80 MiB or below its own
            size.
        largest_megabytes: MiB of the largest junction tree that is fitted, before zeros; its
            estimation takes several times as much.

    >>> from sdv_privpgd.privacy.queries import MarginalQuery, Measurement
    >>> noisy = Measurement(
    ...     query=MarginalQuery(("a", "b")), answer=np.array([[41, -1], [2, 58]]), stddev=2.0
    ... )
    >>> model = PrivatePGM().fit(Domain(("a", "b"), (2, 2)), [noisy])
    >>> model.marginal(("a", "b")).round(2).tolist()
    [[0.41, 0.0], [0.02, 0.58]]
    """

    steps: int = 2_500
    tolerance: float = 1e-3
    possible: Possible = field(default_factory=dict, compare=False)
    largest_megabytes: float = 2048.0

    title = "A graphical model was fitted to the noisy counts"
    citation = (
        "McKenna, R., Sheldon, D. & Miklau, G. (2019). Graphical-model based estimation and "
        "inference for differential privacy. ICML, PMLR 97, 4435–4444."
    )
    quick = {"steps": 100}  # noqa: RUF012
    takes_groups = False

    def __post_init__(self) -> None:
        check_fields(self, check_integer, "steps")
        check_fields(self, check_share, "tolerance")
        check_fields(self, check_positive, "largest_megabytes")

    def megabytes(self, domain: Domain, cliques: Sequence[Clique]) -> float:
        """The size of the junction tree of these cliques, in MiB of float64."""
        return _megabytes(JunctionTree.of(domain, cliques))

    def refusal(self, domain: Domain, cliques: Sequence[Clique]) -> str | None:
        return self._too_large(JunctionTree.of(domain, cliques), len(set(cliques)))

    def _too_large(self, tree: JunctionTree, number: int) -> str | None:
        size = _megabytes(tree)
        if size <= self.largest_megabytes:
            return None
        return (
            f"its {number} tables overlap so much that the junction tree of the graphical model "
            f"would take {size:.3g} MiB, above {self.largest_megabytes:g}. Measure fewer cliques "
            "(the methods 'mst' and 'aim' do), or fit them with the engine 'particles', whose size "
            "does not depend on how they overlap."
        )

    def fit(
        self,
        domain: Domain,
        measurements: Sequence[Measurement],
        *,
        warm_start: Model | None = None,
        progress: Progress = silent,
    ) -> GraphicalModel:
        """The model of the measured tables; attributes that no table has are uniform.

        ``warm_start`` is where the descent starts if it is a model of this engine. Raises
        ``ValueError`` if the tables' junction tree would be too large to hold.
        """
        steps_at_once = 50  # the fit looks at the loss after each lot of steps
        total = estimate_total(domain, measurements).value
        # Tables are summed several times as fast with their longest axes last.
        by_size = domain.project(sorted(domain.attributes, key=lambda name: domain.size((name,))))
        tables = possible_noisy(by_size, measurements, self.possible)
        tree = JunctionTree.of(by_size, tables)
        reason = self._too_large(tree, len(tables))
        if reason is not None:
            raise ValueError(f"PrivatePGM cannot fit this: {reason}")
        tree, known = self._with_zeros(by_size, tree, tables)
        start = warm_start.potentials if isinstance(warm_start, GraphicalModel) else {}
        potentials = {
            clique: np.where(
                possible_cells(clique, by_size.shape(clique), self.possible),
                start.get(clique, np.zeros(by_size.shape(clique))),
                0.0,
            )
            for clique in tables
        }
        shares = Shares(progress, "fit")
        if tables:
            descent = _Descent(tree, tables, total, potentials, known)
            stalls, left = 0, self.steps
            for lot in range(1, 1 - (-self.steps // steps_at_once)):
                before = descent.loss
                for _ in range(min(steps_at_once, left)):
                    descent.step()
                left -= steps_at_once
                is_stalled = before - descent.loss <= self.tolerance * max(descent.loss, 1.0)
                stalls = stalls + 1 if is_stalled else 0
                if stalls == 2:
                    break
                shares.reach(lot / (lot + 5))  # most fits end early, after some five or ten lots
            potentials = descent.potentials
        shares.reach(1.0)
        both = _sum(potentials, known)
        centred = {clique: values - values.max() for clique, values in both.items()}
        return GraphicalModel.of_potentials(domain, tree, centred)

    def _with_zeros(
        self, domain: Domain, tree: JunctionTree, cliques: Iterable[Clique]
    ) -> tuple[JunctionTree, dict[Clique, np.ndarray]]:
        """A tree that holds the cliques with zeros as well, and their log-potentials."""
        held, known = list(cliques), {}
        limit = max(80.0, _megabytes(tree))  # MiB
        for names, allowed in self.possible.items():
            clique = tuple(name for name in domain.attributes if name in names)
            wider = JunctionTree.of(domain, [*held, clique])
            if _megabytes(wider) <= limit:
                tree = wider
                held.append(clique)
                possible = possible_cells(clique, domain.shape(clique), {names: allowed})
                known[clique] = np.where(possible, 0.0, -500.0)  # e**-500 of others
        return tree, known


def _megabytes(tree: JunctionTree) -> float:
    return tree.num_cells * 8 / 2**20


def _sum(
    potentials: Mapping[Clique, np.ndarray], known: Mapping[Clique, np.ndarray]
) -> dict[Clique, np.ndarray]:
    """The potentials of all cliques; those that are known keep their values."""
    both = {clique: known[clique] + potentials.get(clique, 0.0) for clique in known}
    return {**potentials, **both}


class _Descent:
    """The state of mirror descent with momentum, and the errors of each table there.

    The loss is half the sum of squared errors in standard deviations. A step subtracts the
    gradient with respect to the marginals from the potentials, their mirror image, and goes on in
    the direction of the last step (Nesterov 1983). A step that would lead uphill is not taken: the
    descent starts anew without momentum (O'Donoghue & Candes 2015, section 3.2) and with shorter
    steps.
    """

    def __init__(
        self,
        tree: JunctionTree,
        tables: Mapping[Clique, NoisyTable],
        total: float,
        potentials: Mapping[Clique, np.ndarray],
        known: Mapping[Clique, np.ndarray],
    ) -> None:
        cliques = tuple(dict.fromkeys([*tables, *known]))
        self._passing = MessagePassing(tree=tree, cliques=cliques)
        self._tables, self._total, self._known = tables, total, known
        self._precisions = {clique: 1 / table.weighed_variance for clique, table in tables.items()}
        self.potentials = self._without_momentum = dict(potentials)
        self.loss, self._errors = self._judged(self.potentials)
        self._length = 1 / (total * max(self._precisions.values()))
        self._since = 0

    def step(self) -> None:
        """Takes a step, or finds that it would lead uphill."""
        stepped = {
            clique: values - self._length * self._precisions[clique] * self._errors[clique]
            for clique, values in self.potentials.items()
        }
        momentum = self._since / (self._since + 3)
        tried = {
            clique: values + momentum * (values - self._without_momentum[clique])
            for clique, values in stepped.items()
        }
        loss, errors = self._judged(tried)
        if loss <= self.loss:
            self._without_momentum = stepped
            self.potentials, self.loss, self._errors = tried, loss, errors
            self._since += 1
        else:
            self._without_momentum = self.potentials
            self._length *= 0.8
            self._since = 0

    def _judged(
        self, potentials: Mapping[Clique, np.ndarray]
    ) -> tuple[float, dict[Clique, np.ndarray]]:
        """The loss of potentials, and each table's errors in counts."""
        margins = self._passing.margins(_sum(potentials, self._known))
        errors = {
            clique: self._total * margins[clique] - table.counts
            for clique, table in self._tables.items()
        }
        squares = sum(
            self._precisions[clique] * np.vdot(error, error) for clique, error in errors.items()
        )
        return 0.5 * float(squares), errors
