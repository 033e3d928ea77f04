"""Strategies and engines, by their names or as objects. Public."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from sdv_privpgd.estimate.structural_zeros import Possible
from sdv_privpgd.select.aim import AIM
from sdv_privpgd.select.all_pairs import AllPairs
from sdv_privpgd.select.independent import Independent
from sdv_privpgd.select.mst import MST
from sdv_privpgd.select.mwem import MWEM
from sdv_privpgd.select.strategy import Strategy
from sdv_privpgd.synthesize.engine import Engine
from sdv_privpgd.synthesize.pgm import PrivatePGM

STRATEGIES: Mapping[str, type] = {
    "all_pairs": AllPairs,
    "independent": Independent,
    "mst": MST,
    "aim": AIM,
    "mwem": MWEM,
}

ENGINES = ("particles", "pgm")


def strategy_of(strategy: Any, *, max_megabytes: float | None = None) -> Strategy:
    """The strategy of a name, or the same strategy.

    Args:
        strategy: A name of ``STRATEGIES``, or a ``Strategy``.
        max_megabytes: The largest graphical model of AIM or MWEM; ``None`` is their own.

    Raises:
        ValueError: For anything else, and for a size that the strategy does not ask for.

    >>> strategy_of("aim", max_megabytes=10).max_megabytes
    10
    """
    own = {} if max_megabytes is None else {"max_megabytes": max_megabytes}
    if isinstance(strategy, str) and strategy in STRATEGIES:
        if own and strategy not in ("aim", "mwem"):
            raise ValueError(
                f"max_megabytes={max_megabytes!r} says nothing to the strategy {strategy!r}: it is "
                "of 'aim' and 'mwem'. Leave it out."
            )
        return STRATEGIES[strategy](**own)
    if isinstance(strategy, Strategy) and not isinstance(strategy, type):
        if own:
            raise ValueError(
                f"max_megabytes={max_megabytes!r} says nothing to a strategy that is an object: "
                f"set it there, as in AIM(max_megabytes={max_megabytes!r})."
            )
        return strategy
    raise ValueError(
        f"strategy must be one of {tuple(STRATEGIES)} or a Strategy object such as "
        f"AIM(max_megabytes=20), got {strategy!r}."
    )


def engine_of(engine: Any, *, seed: int, **own: Any) -> Engine:
    """The engine of a name, or the same engine.

    Args:
        engine: A name of ``ENGINES``, or an ``Engine``, which has a seed of its own.
        seed: Of an engine that is named.
        own: Settings of ``ParticleGradientDescent``, for the engine of that kind that is named.

    Raises:
        ValueError: For anything else, and for settings of particles where there are none.

    >>> type(engine_of("pgm", seed=0)).__name__
    'PrivatePGM'
    """
    if isinstance(engine, str) and engine == "particles":
        # Imported late: settings, metadata and rows from a file need no torch.
        from sdv_privpgd.synthesize.particles.descent import ParticleGradientDescent

        return ParticleGradientDescent(seed=seed, **own)
    is_named = isinstance(engine, str) and engine in ENGINES
    if not is_named and (isinstance(engine, type) or not isinstance(engine, Engine)):
        raise ValueError(
            f"engine must be one of {ENGINES} or an Engine object such as PrivatePGM(steps=500), "
            f"got {engine!r}."
        )
    if own:
        raise ValueError(
            f"{', '.join(own)} can only be set with engine='particles'. An engine that is an "
            "object has its own, as in ParticleGradientDescent(num_particles=1000)."
        )
    return PrivatePGM() if isinstance(engine, str) else engine


def confined(engine: Engine, possible: Possible) -> Engine:
    """The engine, told which cells can hold rows, if it asks for that in a field ``possible``.

    Rows of any other engine are repaired all the same.

    >>> from sdv_privpgd.synthesize.pgm import PrivatePGM
    >>> adults = np.array([[True, False], [True, True]])  # no child is married
    >>> confined(PrivatePGM(), {("adult", "married"): adults}) is not None
    True
    """
    if not possible or not is_dataclass(engine) or isinstance(engine, type):
        return engine
    if "possible" not in (each.name for each in fields(engine)):
        return engine
    known = dict(getattr(engine, "possible"))  # noqa: B009 - no engine need have it
    for clique, cells in possible.items():
        known[clique] = np.logical_and(known[clique], cells) if clique in known else cells
    return replace(engine, possible=known)  # pyright: ignore[reportCallIssue]
