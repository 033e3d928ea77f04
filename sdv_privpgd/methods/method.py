"""What a method is: it asks a curator, and makes a model of the answers. Public."""

import math
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from fractions import Fraction
from importlib import import_module
from itertools import combinations, pairwise
from numbers import Real
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from sdv_privpgd import methods
from sdv_privpgd.base.arguments import check_fields, check_integer, check_positive, shown
from sdv_privpgd.base.domain import Clique, Domain, Grouping, in_words
from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.estimate.consistency import Possible
from sdv_privpgd.estimate.prior import PublicRows
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import GroupedMarginalQuery, MarginalQuery, Measurement, Query
from sdv_privpgd.synthesize.engine import TABLES, Engine, Model

if TYPE_CHECKING:
    from sdv_privpgd.columns.column import Column


def checked_workload(domain: Domain, workload: Iterable[Clique] | None) -> tuple[Clique, ...]:
    """The cliques of a workload, each once and in the domain's order; ``None`` means all pairs.

    Raises:
        ValueError: For a clique that is empty, repeats an attribute or has an unknown one, and for
            a workload without cliques.
    """
    if workload is None:
        return domain.cliques(2)
    found: dict[Clique, None] = {}
    for clique in workload:
        axes = sorted(set(domain.axes(clique)))
        if not axes or len(axes) != len(clique):
            raise ValueError(f"workload needs cliques of distinct attributes, got {shown(clique)}.")
        found[tuple(domain.attributes[axis] for axis in axes)] = None
    if not found:
        raise ValueError("workload is empty: name a clique, or leave it out for all pairs.")
    return tuple(found)


def downward_closure(workload: Iterable[Clique]) -> dict[Clique, int]:
    """Every non-empty subset of a workload's cliques, by size, with its weight.

    The weight of r is the sum over the cliques s of the workload of |r & s|: how much of the
    workload a marginal informs (McKenna et al. 2022, AIM).
    """
    workload = tuple(workload)
    largest = max(len(clique) for clique in workload)
    subsets = dict.fromkeys(
        subset
        for degree in range(1, largest + 1)
        for clique in workload
        for subset in combinations(clique, degree)
    )
    return {
        subset: sum(len(set(subset) & set(clique)) for clique in workload) for subset in subsets
    }


CHOSEN = ", chosen by noisy answers"
"""Before the names of cliques that noisy answers have chosen, in the ledger. A plan ends there."""


def measure_tables(
    curator: Curator,
    cliques: Iterable[Clique],
    what: str,
    mu_squared: Fraction | None = None,
    progress: Progress = silent,
    grouping: Grouping | None = None,
    kind: Callable[[Clique, Grouping], Query] = GroupedMarginalQuery,
    *,
    are_chosen: bool = False,
) -> list[Measurement]:
    """Asks for the marginals of cliques together; over groups, if there are any, for this kind.

    Without ``mu_squared`` they get all that is left of the budget. The ledger names those that
    noisy answers have chosen.
    """
    cliques = list(cliques)
    asked = [MarginalQuery(each) if grouping is None else kind(each, grouping) for each in cliques]
    part = curator.ledger.remaining if mu_squared is None else mu_squared
    what = f"{what}{CHOSEN}: {in_words(cliques)}" if are_chosen else what
    return curator.measure(asked, part, what=what, progress=progress)


Importance = Mapping[str, float]
"""By attribute, how many times the budget of another pair a pair with it gets."""

Target = str | Sequence[str] | Importance | None
"""A column that is to be predicted, several, or importances by name."""

TARGET = 6.0
"""The importance of a column that is to be predicted."""


def importance_of(target: Target) -> dict[str, float]:
    """The importances that are meant by a column to predict, by several, or by factors.

    Raises ``ValueError`` for anything else.
    """
    if target is None or isinstance(target, Mapping):
        return checked_importance(target)
    names = [target] if isinstance(target, str) else target
    if isinstance(names, list | tuple) and all(isinstance(name, str) for name in names):
        return dict.fromkeys(names, TARGET)
    raise ValueError(
        "target must be the name of a column, a list of names, or a dictionary from names to "
        f"factors, got {shown(target)}."
    )


def weighed(method: Any, importance: Importance) -> Any:
    """Returns the method with these importances; ``ValueError`` if it cannot weigh."""
    if not importance:
        return method
    held = getattr(method, "importance", None)
    if held is None or not is_dataclass(method):
        raise ValueError(f"{method.called} asks the same of all columns: it takes no target.")
    if held:
        raise ValueError("Give target to the fit, or importance to the method, and not both.")
    return replace(method, importance=importance)  # pyright: ignore[reportArgumentType]


def whole_weight(clique: Clique, importance: Importance) -> int:
    """What a score of a clique counts beside others: its importance, as a whole number."""
    return round(clique_weights([clique], importance)[clique])


def checked_importance(importance: Importance | None) -> dict[str, float]:
    """The importances as floats. Raises ``ValueError`` unless each is a number of at least 1."""
    if not isinstance(importance, Mapping | None):
        raise ValueError(
            f"target and importance map columns to numbers of at least 1, got {shown(importance)}."
        )
    found = {}
    for name, factor in (importance or {}).items():
        if isinstance(factor, bool) or not isinstance(factor, Real) or not 1 <= factor < math.inf:
            raise ValueError(
                f"The importance of {name!r} must be a number of at least 1, got {shown(factor)}."
            )
        found[str(name)] = float(factor)
    return found


def clique_weights(cliques: Iterable[Clique], importance: Importance) -> dict[Clique, float]:
    """For each clique the largest importance of its attributes; those without one have 1."""
    return {clique: max(importance.get(name, 1.0) for name in clique) for clique in cliques}


def is_for_important(importance: Importance) -> bool:
    """Whether some attribute is more important than others."""
    return any(factor > 1 for factor in importance.values())


_SYNTHESIZE = "sdv_privpgd.synthesize"

ENGINES = {
    "particles": "particles.descent:ParticleGradientDescent",
    "pgm": "pgm:PrivatePGM",
    "gum": "gum:GUM",
    "rap": "relaxed_projection:RelaxedProjection",
    "rap++": "rap_plus_plus:AnnealedProjection",
    "gem": "relaxed_projection:GenerativeNetwork",
    "private_gsd": "genetic:PrivateGSD",
    "generator": "generator:GeneratorNetwork",
}
"""The engines by name. They are imported when they are used: most of them need torch."""

Own = TypeVar("Own", bound="Method")
OwnEngine = TypeVar("OwnEngine", bound="EngineMethod")


class MatchError(ValueError):
    """Raised for a method that cannot model what it will ask.

    Nothing was spent, but on the search for what is not declared, if that is how it was found out.

    >>> issubclass(MatchError, ValueError)
    True
    """


class Method(Engine):
    """A whole way from a curator to a model. It says of itself what a fit has to know.

    A method of your own is a subclass with the methods ``measure`` and ``fit``. It sees the table
    through the curator alone, which charges for every answer, so it cannot overspend. A file in
    ``sdv_privpgd/methods`` that maps names to methods in ``METHODS`` adds it to all doors.

    Attributes:
        own_delta: The part of delta that the ledger must reserve for it.
        num_bins: The bins of a number or date that names none; ``None`` is as many as pay.
        chooses: Whether answers decide what is asked.
        is_quick: Whether its questions are found quickly enough to plan many fits.
        weighs_rows: Whether a row can count in part.
        takes_factors: Whether a target may have a factor of its own.
        counts: What it counts, as a part of a sentence, where its settings do not change that.
        needs_table: Why its answers cannot be released without a model; ``""`` if they can.

    >>> from sdv_privpgd.methods import MST
    >>> isinstance(MST(), Method)
    True
    """

    own_delta: ClassVar[Fraction] = Fraction(0)
    num_bins = None
    chooses: ClassVar[bool] = True
    is_quick: ClassVar[bool] = False
    weighs_rows: ClassVar[bool] = True
    takes_factors: ClassVar[bool] = True
    counts: ClassVar[str] = ""
    needs_table: ClassVar[str] = ""

    @property
    def called(self) -> str:
        """The name by which all doors know it; without one, that of its class."""
        for name, make in named_methods().items():
            made = make()
            if type(made) is type(self) and made.parts == self.parts:
                return repr(name)
        return type(self).__name__

    @abstractmethod
    def measure(self, curator: Curator, *, progress: Progress = silent) -> list[Measurement]:
        """Returns the answers of the curator, bought with all that is left of its budget."""

    def cliques(self, domain: Domain) -> Sequence[Clique]:
        """Returns the cliques that it is likely to measure over codes."""
        return domain.cliques(1)

    def coarse_cliques(self, domain: Domain) -> Sequence[Clique]:
        """Returns the pairs that it measures over groups of codes."""
        del domain
        return ()

    def require(self, domain: Domain) -> None:
        """Raises ``MatchError`` where it cannot model what it will ask of a domain."""
        reason = self.refusal(domain, self.cliques(domain))
        if reason is not None:
            raise MatchError(f"{self.called} does not go with these columns: {reason}")

    def require_settings(self, domain: Domain) -> None:
        """Raises ``ValueError`` where its settings name what is no attribute of a domain."""
        del domain

    def require_budget(self, ledger: PrivacyLedger) -> None:
        """Raises ``PrivacyBudgetError`` where what is left of a ledger cannot buy what it asks."""
        del ledger

    def for_table(self: Own, columns: "Sequence[Column]", possible: Possible) -> Own:
        """Returns the method that knows the public facts of a table.

        Args:
            columns: What has codes.
            possible: For some cliques, the cells that can hold rows.
        """
        del columns
        return self.with_possible(possible)

    def knowing(self: Own, names: Collection[str]) -> Own:
        """Returns the method, told of which attributes tables are known from elsewhere.

        It need not ask of them alone.
        """
        del names
        return self

    def plain(self: Own, domain: Domain) -> tuple[Own, Fraction]:
        """Returns the method as if no answer chose its questions, and its part of the budget."""
        del domain
        return self, Fraction(1)

    def counted(self, measurements: Sequence[Measurement]) -> str:
        """Returns what was counted, as a part of a sentence for a methods section."""
        del measurements
        return self.counts or f"what the method {type(self).__name__} chose"


@dataclass(frozen=True, kw_only=True)
class EngineMethod(Method):
    """A method that asks, and leaves the model of the answers to an engine.

    A subclass has a method ``measure``. An adaptive one fits its engine to the answers so far, with
    ``fit``, to decide what to ask next.

    Attributes:
        engine: The engine, or its name in ``ENGINES``, whose seed is that of the fit.
        num_bins: Cells of a column of numbers or dates that does not name its own: of about equally
            many rows, and of equal width where nothing is looked into. ``None`` is as many as the
            noise can pay for and the engine can model, 4 to 32, and 32 where nothing is looked
            into. Fewer cells have less noise; values inside a cell follow a finer grid.
        questions: Tables that are asked for first, whatever the method asks besides. A fit adds
            those of the questions that it was told of.
    """

    engine: Engine | str = "particles"
    num_bins: int | None = None
    questions: tuple[Query, ...] = ()

    asks: ClassVar[str] = TABLES
    """The kind of answers, which the engine must fit."""

    asks_pairs: ClassVar[bool] = False
    """Whether it is likely to measure each attribute, and as many pairs as join them all."""

    def __post_init__(self) -> None:
        _require_engine(self.engine)
        check_fields(self, check_integer, "num_bins")
        if hasattr(self, "importance"):
            importance = checked_importance(getattr(self, "importance"))  # noqa: B009 - not of all
            if not self.takes_factors and {*importance.values()} - {TARGET}:
                raise ValueError(
                    f"{self.called} takes rows apart by the values of a target, whatever its "
                    f"factor: give names alone, as in target={[*importance]!r}."
                )
            object.__setattr__(self, "importance", importance)
        if hasattr(self, "max_megabytes"):
            check_fields(self, check_positive, "max_megabytes")

    def cliques(self, domain: Domain) -> Sequence[Clique]:
        joined = pairwise(domain.attributes) if self.asks_pairs else ()
        return [*domain.cliques(1), *joined]

    def require_settings(self, domain: Domain) -> None:
        checked_workload(domain, getattr(self, "workload", None))

    @property
    def made(self) -> Engine:
        """The engine, made of its name if it has only that."""
        return engine_of(self.engine)

    def fit(
        self,
        domain: Domain,
        measurements: Sequence[Measurement],
        *,
        warm_start: Model | None = None,
        progress: Progress = silent,
    ) -> Model:
        modelled = self.modelled(domain, measurements)
        return self.made.fit(domain, modelled, warm_start=warm_start, progress=progress)

    def modelled(self, domain: Domain, measurements: Sequence[Measurement]) -> list[Measurement]:
        """Returns the answers but for tables of questions that no model could hold beside others.

        The questions are answered by these tables all the same.
        """
        asked = [each for each in self.questions if isinstance(each, MarginalQuery)]
        tables = [each.query for each in measurements if isinstance(each.query, MarginalQuery)]
        own = [each.clique for each in tables if each not in asked]
        quick = max(getattr(self, "max_megabytes", 8.0), self.megabytes(domain, own))
        held = self.held_together(domain, [*own, *(each.clique for each in asked)], quick)
        left_out = {each for each in asked if each.clique not in held}
        return [each for each in measurements if each.query not in left_out]

    def held_together(
        self, domain: Domain, cliques: Sequence[Clique], megabytes: float = math.inf
    ) -> list[Clique]:
        """Returns the cliques without those that the engine cannot model beside those before.

        Where it matters how they overlap, no model takes more than so many megabytes.
        """
        most = min(getattr(self.made, "largest_megabytes", math.inf), megabytes)
        if not hasattr(self.made, "largest_megabytes") or self.megabytes(domain, cliques) <= most:
            return list(cliques)
        found: list[Clique] = []
        for clique in cliques:
            if self.megabytes(domain, [*found, clique]) <= most:
                found.append(clique)
        return found

    def require(self, domain: Domain) -> None:
        """Raises ``MatchError`` where the engine cannot make a model of what will be asked.

        Methods that have ``max_megabytes`` choose what the engine can take.
        """
        engine = self.made
        if self.asks not in engine.takes:
            raise self._error(
                f"it fits {' and '.join(engine.takes)}, and {self.asks} are asked for. "
                f"Choose another engine, such as {type(self).engine!r}."
            )
        coarse = self.coarse_cliques(domain)
        if coarse and not engine.takes_groups:
            raise self._error(
                f"{len(coarse)} pairs of columns are too many to measure over all of their "
                "values, so most are measured over groups of values, and the engine can use "
                "answers about single values alone. Choose the engine 'particles', or a method "
                "that chooses pairs ('mst', 'aim')."
            )
        largest = getattr(engine, "largest_megabytes", None)
        allowed = getattr(self, "max_megabytes", None)
        if largest is not None and allowed is not None and allowed > largest:
            raise self._error(
                f"max_megabytes={allowed:g} allows models larger than the {largest:g} MiB that the "
                "engine fits. Choose a smaller max_megabytes."
            )
        cliques = self.cliques(domain) if allowed is None else domain.cliques(1)
        require_model(engine, domain, cliques, self.called)

    def _error(self, reason: str) -> MatchError:
        return MatchError(
            f"{self.called} does not go with {type(self.made).__name__} here: {reason}"
        )

    def statistics(self, domain: Domain) -> Sequence[Query]:
        return self.made.statistics(domain)

    def megabytes(self, domain: Domain, cliques: Sequence[Clique]) -> float:
        return self.made.megabytes(domain, cliques)

    def num_fits(self, domain: Domain) -> int:
        """Returns how often the engine is fitted."""
        del domain
        return 1

    def seconds(self, domain: Domain) -> float:
        return self.num_fits(domain) * self.made.seconds(domain)

    def refusal(self, domain: Domain, cliques: Sequence[Clique]) -> str | None:
        return self.made.refusal(domain, cliques)

    def seeded(self: OwnEngine, seed: int) -> OwnEngine:
        """Returns the method, whose engine has this seed if only its name is known."""
        return replace(self, engine=engine_of(self.engine, seed=seed))

    def with_possible(self: OwnEngine, possible: Possible) -> OwnEngine:
        return replace(self, engine=self.made.with_possible(possible))

    def given(self: OwnEngine, prior: PublicRows) -> OwnEngine:
        return replace(self, engine=self.made.given(prior))

    @property
    def takes_prior(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether its engine can lean on public rows."""
        return self.made.takes_prior

    @property
    def repeats(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether its engine repeats a fit in a moment."""
        return self.made.repeats

    def small(self: OwnEngine) -> OwnEngine:
        return replace(self, engine=self.made.small())

    def warm(self: OwnEngine, model: Model, num_rows: int, seed: int) -> OwnEngine:
        return replace(self, engine=self.made.warm(model, num_rows, seed))

    def reads(self, domain: Domain) -> Collection[str]:
        return self.made.reads(domain)

    @property
    def parts(self) -> tuple[str, ...]:
        return (type(self).__name__, type(self.made).__name__)

    def prepare(self, progress: Progress = silent) -> None:
        self.made.prepare(progress)


def engine_of(engine: Any, *, seed: int = 0) -> Engine:
    """Returns the engine of a name, with this seed, or the same engine.

    Raises:
        ValueError: For anything else.
    """
    _require_engine(engine)
    if isinstance(engine, Engine):
        return engine
    module, name = ENGINES[engine].split(":")
    return getattr(import_module(f"{_SYNTHESIZE}.{module}"), name)().seeded(seed)


def _require_engine(engine: Any) -> None:
    is_named = isinstance(engine, str) and engine in ENGINES
    if not is_named and not isinstance(engine, Engine):
        raise ValueError(
            f"engine must be one of {tuple(ENGINES)} or an Engine object such as "
            f"PrivatePGM(steps=500), got {shown(engine)}."
        )


def require_model(
    engine: Engine, domain: Domain, cliques: Sequence[Clique], subject: str = "What was measured"
) -> None:
    """Raises ``MatchError`` where the engine cannot make a model of tables of these cliques."""
    reason = engine.refusal(domain, cliques)
    if reason is not None:
        raise MatchError(f"{subject} does not go with {type(engine).__name__} here: {reason}")


def named_methods() -> Mapping[str, Callable[[], Method]]:
    """Returns what makes the method of each name: all ``METHODS`` of the files of this folder."""
    files = (
        import_module(f"{methods.__name__}.{each.name}") for each in iter_modules(methods.__path__)
    )
    return {name: make for file in files for name, make in getattr(file, "METHODS", {}).items()}


def method_of(method: Any, *, seed: int = 0) -> Method:
    """Returns the method of a name, or the same method. Engines that are named get the seed.

    Args:
        method: A name, such as ``"aim"``, a name with that of another engine, such as
            ``"aim+particles"``, or a ``Method``.
        seed: Of an engine that is named.

    Raises:
        ValueError: For anything else.
    """
    seed, known = check_integer("seed", seed, least=0), named_methods()
    if isinstance(method, Method):
        return method.seeded(seed)
    if isinstance(method, str):
        if method in known:
            return known[method]().seeded(seed)
        for engine in ENGINES:  # the name of one ends in "++"
            name = method.removesuffix(f"+{engine}")
            if name == method or name not in known:
                continue
            made = known[name]()
            if isinstance(made, EngineMethod):
                return replace(made, engine=engine_of(engine, seed=seed))
            raise ValueError(f"method={name!r} makes its rows without an engine: leave it out.")
    raise ValueError(
        f"method must be one of {tuple(sorted(known))}, one of them with another engine of "
        f"{tuple(ENGINES)}, such as 'aim+particles', or a Method such as AIM(max_megabytes=20), "
        f"got {shown(method)}."
    )
