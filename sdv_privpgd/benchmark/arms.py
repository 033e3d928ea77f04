"""The arms of the exchange: a preprocessing, a strategy and an engine, each by its name.

An arm's name is that of its parts: ``equal_width+rare / mst / pgm``. Strategies and engines are
those of ``strategy=`` and ``engine=`` elsewhere, with their own settings.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from itertools import product
from typing import Any

from sdv_privpgd.benchmark.preprocessing import PREPROCESSINGS, SHARE, Preprocessing
from sdv_privpgd.fitting.methods import ENGINES, STRATEGIES, engine_of, strategy_of
from sdv_privpgd.select.strategy import Strategy
from sdv_privpgd.synthesize.engine import Engine

_BETWEEN = " / "

USUAL = ("equal_width+rare", "aim", "pgm")
"""The parts that are not named: the benchmark paper's preprocessing, and the engine that it holds
fast while it exchanges strategies, with the best of them."""


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One arm of the exchange.

    Attributes:
        preprocess: One of ``PREPROCESSINGS``.
        select: One of ``STRATEGIES``.
        synthesize: One of ``ENGINES``.
        share: Part of the budget for a preprocessing that asks.
        num_particles: Of the particles; ``None`` takes the engine's own number.
        max_megabytes: The largest model of a strategy that has such a limit.
    """

    preprocess: str
    select: str
    synthesize: str
    share: Fraction = SHARE
    num_particles: int | None = None
    max_megabytes: float = 80.0

    def __post_init__(self) -> None:
        choices = (PREPROCESSINGS, tuple(STRATEGIES), tuple(ENGINES))
        for named, choice in zip(self.parts, choices, strict=True):
            if named not in choice:
                raise ValueError(f"There is no {named!r}: choose from {choice!r}.")

    @property
    def parts(self) -> tuple[str, str, str]:
        """The names of its parts, in the order in which they work."""
        return self.preprocess, self.select, self.synthesize

    @property
    def name(self) -> str:
        """The names of its parts in one."""
        return _BETWEEN.join(self.parts)

    @property
    def has_particles(self) -> bool:
        """Whether its engine is the particles."""
        return self.synthesize == "particles"

    def settings(self) -> dict[str, float]:
        """The settings that it reads, but for its parts' own."""
        read: dict[str, float] = {}
        if self.preprocess != "equal_width":
            read["share"] = float(self.share)
        if self.has_particles and self.num_particles is not None:
            read["num_particles"] = self.num_particles
        if _has(self.strategy(), "max_megabytes"):
            read["max_megabytes"] = self.max_megabytes
        return read

    def spends(self, epsilon: float, delta: float) -> float:
        """The same epsilon: all arms are on one ledger."""
        del delta
        return epsilon

    def preprocessing(self) -> Preprocessing:
        """What makes codes of the table."""
        return Preprocessing(name=self.preprocess, share=self.share)

    def strategy(self) -> Strategy:
        """The strategy that measures."""
        strategy: Any = strategy_of(self.select)
        if _has(strategy, "max_megabytes"):
            return replace(strategy, max_megabytes=self.max_megabytes)
        return strategy

    def engine(self, seed: int) -> Engine:
        """The engine that makes rows of the measurements."""
        own = {"num_particles": self.num_particles} if self.has_particles else {}
        return engine_of(self.synthesize, seed=seed, **own)


def is_arm(method: str) -> bool:
    """Whether the name of a method is that of an arm."""
    return len(parts_of(method)) == 3


def parts_of(method: str) -> list[str]:
    """The names of an arm's parts, of which there are three."""
    return method.split(_BETWEEN)


def names_of(
    preprocess: Sequence[str] | None,
    select: Sequence[str] | None,
    synthesize: Sequence[str] | None,
) -> list[str]:
    """The names of all arms of these parts; none if no part is named."""
    named = (preprocess, select, synthesize)
    if not any(named):
        return []
    parts = [each or [usual] for each, usual in zip(named, USUAL, strict=True)]
    return [_BETWEEN.join(each) for each in product(*parts)]


def _has(part: Any, name: str) -> bool:
    return name in {each.name for each in fields(part)}
