"""What an engine is, and what a fitted model is. Public."""

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar, cast, runtime_checkable

import numpy as np

from sdv_privpgd.base.domain import Clique, Domain, Grouping, code_type, table_of
from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.estimate.consistency import Possible, possible_noisy
from sdv_privpgd.estimate.noisy_tables import (
    NoisyTable,
    estimate_total,
    grouped_tables,
    margin_estimates,
    noisy_tables,
)
from sdv_privpgd.estimate.prior import PriorUse, PublicRows
from sdv_privpgd.estimate.support import supported_one_way
from sdv_privpgd.privacy.queries import Measurement, Query

TABLES = "tables"
"""The kind of answers that most engines fit: noisy tables of counts."""

DP_MERF = (
    "Harder, F., Adamczewski, K. & Park, M. (2021). DP-MERF: differentially private mean "
    "embeddings with random features for practical privacy-preserving data generation. AISTATS, "
    "PMLR 130, 1819–1827."
)
PRIVSYN = (
    "Zhang, Z., Wang, T., Li, N., Honorio, J., Backes, M., He, S., Chen, J. & Zhang, Y. (2021). "
    "PrivSyn: differentially private data synthesis. USENIX Security 30, 929–946."
)
RAP = (
    "Aydore, S., Brown, W., Kearns, M., Kenthapadi, K., Melis, L., Roth, A. & Siva, A. (2021). "
    "Differentially private query release through adaptive projection. ICML, PMLR 139, 457–467."
)
RAP_PLUS_PLUS = (
    "Vietri, G., Archambeau, C., Aydore, S., Brown, W., Kearns, M., Roth, A., Siva, A., Tang, S. & "
    "Wu, Z. S. (2022). Private synthetic data for multitask learning and marginal queries. "
    "NeurIPS 35."
)
"""Works that describe a method and its engine."""


@runtime_checkable
class Model(Protocol):
    """A fitted distribution over the codes of a domain. Public."""

    @property
    def domain(self) -> Domain:
        """The attributes of its rows and their numbers of codes."""
        ...

    @property
    def block(self) -> int:
        """The number of rows that one pass over the model gives; draw them in such blocks."""
        ...

    def marginal(self, clique: Clique) -> np.ndarray:
        """The probabilities of a clique's cells, axes in the clique's order."""
        ...

    def sample(self, num_rows: int, seed: int) -> np.ndarray:
        """Codes of shape (row, attribute). The same seed gives the same rows."""
        ...


@dataclass(frozen=True, kw_only=True)
class Wrapped:
    """A model whose rows are drawn in another way."""

    model: Model

    @property
    def domain(self) -> Domain:
        """The domain of the model's rows."""
        return self.model.domain

    @property
    def block(self) -> int:
        """The number of rows that is best drawn at once."""
        return self.model.block

    def marginal(self, clique: Clique) -> np.ndarray:
        return self.model.marginal(clique)


def dealt(block: int, num_rows: int, rng: np.random.Generator) -> np.ndarray:
    """Which of a model's equally likely parts each of so many rows is of.

    Parts are dealt like decks of cards: each is used once before any is used again. So samples have
    less variance than independent draws.
    """
    require_number(num_rows)
    decks = [rng.permutation(block) for _ in range(-(-num_rows // block))]
    return np.concatenate([np.empty(0, dtype=np.int64), *decks])[:num_rows]


def require_number(num_rows: int) -> None:
    """Raises ``ValueError`` for a negative number of rows."""
    if num_rows < 0:
        raise ValueError(f"num_rows must be at least 0, got {num_rows!r}.")


Own = TypeVar("Own", bound="Engine")


class Engine(ABC):
    """Fits a model to noisy answers. It sees nothing else: all it does is post-processing.

    An engine of your own is a subclass with a method ``fit``. The others say more of it, and have
    defaults that suit an engine of tables.

    Attributes:
        title: What made the rows, as a sentence for a methods section.
        citation: The work that describes it.
        takes: The kinds of answers that it fits.
        takes_groups: Whether answers about groups of codes are of use to it.
        takes_quadrants: Whether numbers of rows on the same sides of two attributes are.
        takes_prior: Whether it can lean on public rows.
        repeats: Whether a fit that starts from a model of such answers takes a moment.
        quick: Settings with which a fit takes a moment, for an audit.

    >>> from sdv_privpgd.methods import ParticleGradientDescent, PrivatePGM
    >>> isinstance(PrivatePGM(), Engine), isinstance(ParticleGradientDescent(), Engine)
    (True, True)
    """

    title: ClassVar[str] = "The rows were fitted to the noisy counts by an engine of our own"
    citation: ClassVar[str] = ""
    takes: ClassVar[tuple[str, ...]] = (TABLES,)
    takes_groups: ClassVar[bool] = True
    takes_quadrants: ClassVar[bool] = False
    takes_prior: ClassVar[bool] = False
    repeats: ClassVar[bool] = False
    quick: ClassVar[Mapping[str, Any]] = {}

    @abstractmethod
    def fit(
        self,
        domain: Domain,
        measurements: Sequence[Measurement],
        *,
        warm_start: Model | None = None,
        progress: Progress = silent,
    ) -> Model:
        """Returns a model of the measurements, reproducible from the engine's own seed."""

    def statistics(self, domain: Domain) -> Sequence[Query]:
        """Returns the queries that must be answered besides those of the method."""
        del domain
        return ()

    def megabytes(self, domain: Domain, cliques: Sequence[Clique]) -> float:
        """Returns the size of a model of tables of these cliques, in MiB of float64."""
        distinct = {frozenset(clique) for clique in cliques}  # any of them may overlap
        return sum(domain.size(clique) for clique in distinct) * 8 / 2**20

    def refusal(self, domain: Domain, cliques: Sequence[Clique]) -> str | None:
        """Returns why tables of these cliques cannot be modelled; ``None`` where they can."""
        del domain, cliques
        return None

    def seconds(self, domain: Domain) -> float:
        """Returns about how long a fit takes on one core; 0 where that is hardly ever a minute."""
        del domain
        return 0.0

    def seeded(self: Own, seed: int) -> Own:
        """Returns the engine with this seed, if it has one."""
        return self._with(seed=seed)

    def with_possible(self: Own, possible: Possible) -> Own:
        """Returns the engine that knows which cells can hold rows, if it asks for that.

        Rows of any other engine are repaired all the same.
        """
        known = dict(getattr(self, "possible", {}))
        for clique, cells in possible.items():
            known[clique] = np.logical_and(known[clique], cells) if clique in known else cells
        return self._with(possible=known) if possible else self

    def given(self: Own, prior: PublicRows) -> Own:
        """Returns the engine that leans on public rows, if it can."""
        return self._with(prior=prior)

    def small(self: Own) -> Own:
        """Returns the engine with its ``quick`` settings, where its own are larger."""
        now = {name: getattr(self, name, None) for name in self.quick}
        own = {
            name: min(now[name], most) if isinstance(now[name], int) else most
            for name, most in self.quick.items()
        }
        return self._with(**own, enable_gpu=False)

    def warm(self: Own, model: Model, num_rows: int, seed: int) -> Own:
        """Returns the engine for a fit to answers much like those of a model it starts from."""
        del model, num_rows
        return self.seeded(seed)

    def reads(self, domain: Domain) -> Collection[str]:
        """Returns the attributes of which rows must have what the model says."""
        del domain
        return ()

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of what it is made of."""
        return (type(self).__name__,)

    def prepare(self, progress: Progress = silent) -> None:
        """Compiles what a fit would compile. Called before a row is read."""
        del progress

    def _with(self: Own, **settings: Any) -> Own:
        """Returns the engine with those of the settings that it has."""
        names = {each.name for each in fields(self)} if is_dataclass(self) else set()
        own = {name: value for name, value in settings.items() if name in names}
        return cast(Own, replace(cast(Any, self), **own)) if own else self


class View(NamedTuple):
    """An attribute through its codes, or through groups of them."""

    axis: int
    groups: tuple[int, ...]
    """The group of each code; its own number where codes are looked at themselves."""

    @property
    def size(self) -> int:
        """The number of groups."""
        return max(self.groups) + 1


@dataclass(frozen=True, kw_only=True, eq=False)
class Goals:
    """Tables that a model is to match.

    A model's loss is the sum over cells of weight * (share - wanted share)^2: the mean squared
    error in standard deviations of the noise. Where all tables are equally noisy, this is the sum
    of squares of the published engines but for a factor.
    """

    domain: Domain  # the domain of the rows
    views: tuple[View, ...]  # the ways in which tables look at attributes
    tables: tuple[tuple[int, ...], ...]  # for each table the indices of its views
    # For each table the noisy counts, divided by the number of records; float64, one axis a view.
    # Noise makes some of them negative.
    shares: tuple[np.ndarray, ...]
    weights: tuple[float, ...]  # for each table what a squared error of a share counts

    @classmethod
    def of(
        cls,
        domain: Domain,
        measurements: Sequence[Measurement],
        possible: Possible | None = None,
        *,
        with_groups: bool = True,
    ) -> "Goals":
        """The tables over codes that were measured, and those over groups if these are of use.

        ``possible`` marks the cells of some cliques that can hold rows at all: the others are
        wanted empty.
        """
        total = estimate_total(domain, measurements).value
        every: dict[Grouping | None, Mapping[Clique, NoisyTable]] = {
            None: possible_noisy(domain, measurements, possible or {})
        }
        if with_groups:
            every |= grouped_tables(domain, measurements)
        found = [(q, over, table) for over, own in every.items() for q, table in own.items()]
        views: dict[View, int] = {}
        places = [
            tuple(views.setdefault(_view(domain, name, grouping), len(views)) for name in clique)
            for clique, grouping, _ in found
        ]
        cells = sum(table.counts.size for _, _, table in found)
        return cls(
            domain=domain,
            views=tuple(views),
            tables=tuple(places),
            shares=tuple(table.counts / total for _, _, table in found),
            weights=tuple(total**2 / table.weighed_variance / cells for _, _, table in found),
        )


def _view(domain: Domain, name: str, grouping: Grouping | None) -> View:
    (axis,) = domain.axes((name,))
    groups = range(domain.sizes[axis]) if grouping is None else grouping[name].tolist()
    return View(axis, tuple(groups))


def first_shares(domain: Domain, measurements: Sequence[Measurement]) -> list[np.ndarray]:
    """The shares of each attribute's codes by its noisy tables, where a fit may start.

    A code that surely holds no rows gets about 1e-5: all logarithms are finite.
    """
    total = estimate_total(domain, measurements).value
    margins = margin_estimates(noisy_tables(domain, measurements), 1)
    found = []
    for name, size in domain.size_of.items():
        shares = supported_one_way(margins.get((name,)), size, total) / total + 1e-5
        found.append(shares / shares.sum())
    return found


_LEAST, _FEW, _MOST = 5_000, 20_000, 100_000

_WORK = 11_000_000
"""Particles times tables of a default fit: seconds on two cores for up to 200 tables."""


def default_number(total: float, num_tables: int) -> int:
    """The default number of particles for about ``total`` rows and so many tables. Public.

    The number of rows is about a multiple of it. So a sample of as many rows as were fitted uses
    each particle equally often and has no error of drawing. The more tables there are, the fewer
    particles it gives, down to 20,000.
    """
    most = min(max(_WORK // max(num_tables, 1), _FEW), _MOST)
    decks = max(math.ceil(total / most), 1)
    return max(math.ceil(total / decks), _LEAST)


@dataclass(frozen=True, kw_only=True, eq=False)
class Particles:
    """Equally likely points of a domain, as codes of shape (particle, attribute). Public.

    ``codes`` is kept read-only in the smallest unsigned type that fits. ``losses`` maps numbers of
    epochs to the mean squared sliced W2 distance from the noisy targets after them. ``prior`` says
    what became of public rows, where some were given.
    """

    domain: Domain
    codes: np.ndarray
    losses: Mapping[int, float] = field(default_factory=dict)
    prior: PriorUse | None = None

    def __post_init__(self) -> None:
        assert len(self.codes)
        assert ((self.codes >= 0) & (self.codes < self.domain.sizes)).all()
        codes = self.codes.astype(code_type(self.domain))
        codes.setflags(write=False)
        object.__setattr__(self, "codes", codes)

    @property
    def block(self) -> int:
        """The number of particles; a sample of so many rows uses each of them once."""
        return len(self.codes)

    def marginal(self, clique: Clique) -> np.ndarray:
        columns = self.codes[:, self.domain.axes(clique)].T.astype(np.int64)
        return table_of(columns, self.domain.shape(clique)) / len(self.codes)

    def sample(self, num_rows: int, seed: int) -> np.ndarray:
        """Codes of shape (row, attribute), int64. The same seed gives the same rows.

        Particles are dealt like decks of cards (``dealt``).
        """
        order = dealt(self.block, num_rows, np.random.default_rng(seed))
        return self.codes[order].astype(np.int64)
