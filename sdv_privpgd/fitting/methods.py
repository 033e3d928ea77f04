"""Strategies and engines, by their names or as objects. Public."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from sdv_privpgd.estimate.structural_zeros import Possible
from sdv_privpgd.methods.dp_sgd import DPCTGAN, DPDiffusion
from sdv_privpgd.methods.dp_sgd.as_engine import PrivateGradients
from sdv_privpgd.select.adaptive import Adaptive
from sdv_privpgd.select.aim import AIM
from sdv_privpgd.select.all_pairs import AllPairs
from sdv_privpgd.select.half_spaces import HalfSpaces
from sdv_privpgd.select.independent import Independent
from sdv_privpgd.select.mean_embedding import MeanEmbedding
from sdv_privpgd.select.mst import MST
from sdv_privpgd.select.mwem import MWEM
from sdv_privpgd.select.privmrf import PrivMRF
from sdv_privpgd.select.privsyn import PrivSyn
from sdv_privpgd.select.strategy import Strategy
from sdv_privpgd.synthesize.engine import Engine
from sdv_privpgd.synthesize.gum import GUM
from sdv_privpgd.synthesize.pgm import PrivatePGM

STRATEGIES: Mapping[str, type] = {
    "all_pairs": AllPairs,
    "independent": Independent,
    "mst": MST,
    "aim": AIM,
    "mwem": MWEM,
    "privsyn": PrivSyn,
    "privmrf": PrivMRF,
    "adaptive": Adaptive,
    "mean_embedding": MeanEmbedding,
    "half_spaces": HalfSpaces,
    "private_gradients": PrivateGradients,
}

_WITH_MODELS = ("aim", "mwem", "privmrf", "adaptive")
"""The strategies that know how large a model may be."""

ENGINES = (
    "particles",
    "pgm",
    "gum",
    "rap",
    "rap++",
    "gem",
    "private_gsd",
    "generator",
    "diffusion",
    "gan",
)


def strategy_of(strategy: Any, *, max_megabytes: float | None = None) -> Strategy:
    """The strategy of a name, or the same strategy.

    Args:
        strategy: A name of ``STRATEGIES``, or a ``Strategy``.
        max_megabytes: The largest model of AIM, MWEM, PrivMRF or ``Adaptive``; ``None`` is their
            own.

    Raises:
        ValueError: For anything else, and for a size that the strategy does not ask for.
    """
    own = {} if max_megabytes is None else {"max_megabytes": max_megabytes}
    if isinstance(strategy, str) and strategy in STRATEGIES:
        if own and strategy not in _WITH_MODELS:
            raise ValueError(
                f"max_megabytes={max_megabytes!r} says nothing to the strategy {strategy!r}: it is "
                f"of {_WITH_MODELS!r}. Leave it out."
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
        own: Settings of ``ParticleGradientDescent``, for the engine of that kind that is named;
            ``enable_gpu`` is of ``"rap"``, ``"rap++"`` and ``"gem"`` as well, and ``"generator"``
            has that and ``num_particles``, and ``"diffusion"`` and ``"gan"`` have the latter.

    Raises:
        ValueError: For anything else, and for settings that the engine has not.
    """
    if isinstance(engine, str) and engine == "particles":
        # Imported late: settings, metadata and rows from a file need no torch.
        from sdv_privpgd.synthesize.particles.descent import ParticleGradientDescent

        return ParticleGradientDescent(seed=seed, **own)
    if isinstance(engine, str) and engine == "generator" and "penalties" not in own:
        from sdv_privpgd.synthesize.generator import GeneratorNetwork

        return GeneratorNetwork(seed=seed, **own)
    if isinstance(engine, str) and engine in ("diffusion", "gan") and set(own) <= {"num_particles"}:
        return (DPDiffusion if engine == "diffusion" else DPCTGAN)(seed=seed, **own)
    is_named = isinstance(engine, str) and engine in ENGINES
    if not is_named and (isinstance(engine, type) or not isinstance(engine, Engine)):
        raise ValueError(
            f"engine must be one of {ENGINES} or an Engine object such as PrivatePGM(steps=500), "
            f"got {engine!r}."
        )
    if isinstance(engine, str) and engine in ("rap", "rap++", "gem") and set(own) <= {"enable_gpu"}:
        return _relaxed(engine, seed=seed, **own)
    if own:
        raise ValueError(
            f"{', '.join(own)} can only be set with engine='particles'. An engine that is an "
            "object has its own, as in ParticleGradientDescent(num_particles=1000)."
        )
    if not isinstance(engine, str):
        return engine
    if engine == "pgm":
        return PrivatePGM()
    if engine == "gum":
        return GUM(seed=seed)
    from sdv_privpgd.synthesize.private_gsd import PrivateGSD

    return PrivateGSD(seed=seed)


def _relaxed(name: str, **own: Any) -> Engine:
    """RAP, RAP++ or GEM. They are imported late, as the particles are."""
    from sdv_privpgd.synthesize.annealed import AnnealedProjection
    from sdv_privpgd.synthesize.gem import GenerativeNetwork
    from sdv_privpgd.synthesize.rap import RelaxedProjection

    made = {"rap": RelaxedProjection, "rap++": AnnealedProjection, "gem": GenerativeNetwork}
    return made[name](**own)


def cells_of(strategy: Strategy, num_bins: int | None) -> int | None:
    """The cells of a number that does not name its own: as asked, or as the strategy needs.

    A strategy that keeps numbers as they are has a fine grid of its own, ``num_bins``.
    """
    return getattr(strategy, "num_bins", None) if num_bins is None else num_bins


def confined(engine: Engine, possible: Possible) -> Engine:
    """The engine, told which cells can hold rows, if it asks for that in a field ``possible``.

    Rows of any other engine are repaired all the same.
    """
    if not possible or not is_dataclass(engine) or isinstance(engine, type):
        return engine
    if "possible" not in (each.name for each in fields(engine)):
        return engine
    known = dict(getattr(engine, "possible"))  # noqa: B009 - no engine need have it
    for clique, cells in possible.items():
        known[clique] = np.logical_and(known[clique], cells) if clique in known else cells
    return replace(engine, possible=known)  # pyright: ignore[reportCallIssue]
