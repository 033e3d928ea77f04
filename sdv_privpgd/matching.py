"""Which strategies go with which engines: refused before anything is spent. Public.

A strategy asks, an engine makes rows of the answers, and each pair of them works unless it is
refused here. All of it follows from the domain and the settings.
"""

from collections.abc import Sequence

from sdv_privpgd.domain import Clique, Domain
from sdv_privpgd.forecast import cliques_of, coarse_cliques_of
from sdv_privpgd.select.strategy import Strategy
from sdv_privpgd.synthesize.engine import Engine, refusal, takes_groups


class MatchError(ValueError):
    """Raised for a strategy and an engine that do not go together. Nothing was spent on them.

    >>> issubclass(MatchError, ValueError)
    True
    """


def require_match(strategy: Strategy, engine: Engine, domain: Domain) -> None:
    """Raises ``MatchError`` where the engine cannot make a model of what the strategy will ask.

    It says why, and what goes together instead. A strategy that has ``max_megabytes`` chooses what
    the engine can take, as PrivSyn does; of others it is known what they will ask for.
    """
    require_kind(strategy, engine)
    coarse = coarse_cliques_of(domain, strategy)
    if coarse and not takes_groups(engine):
        raise _error(
            strategy,
            engine,
            f"{len(coarse)} pairs of columns are too many to measure over all of their values, so "
            "most are measured over groups of values, and the engine can use answers about single "
            "values alone. Choose engine='particles', or a strategy that chooses pairs "
            "('mst', 'aim').",
        )
    largest = getattr(engine, "largest_megabytes", None)
    allowed = getattr(strategy, "max_megabytes", None)
    if largest is not None and allowed is not None and allowed > largest:
        raise _error(
            strategy,
            engine,
            f"max_megabytes={allowed:g} allows models larger than the {largest:g} MiB that the "
            "engine fits. Choose a smaller max_megabytes.",
        )
    cliques = cliques_of(domain, strategy) if allowed is None else domain.cliques(1)
    _require(strategy, engine, domain, cliques)


def require_kind(strategy: Strategy, engine: Engine) -> None:
    """Raises ``MatchError`` for an embedding without an engine that fits it, and the reverse.

    So for half-spaces of numbers and engines that fit these, and for private gradients and networks
    that they train. A strategy of your own says ``asks_embedding = True`` of itself, or
    ``asks_half_spaces`` or ``asks_gradients``, and an engine ``fits_embeddings = True``,
    ``fits_half_spaces`` or ``fits_gradients``, and ``fits_tables = False`` if it has no use for
    tables alone.
    """
    is_trained = getattr(strategy, "asks_gradients", False)
    has_gradients = getattr(engine, "fits_gradients", False)
    if is_trained and not has_gradients:
        raise _error(
            strategy,
            engine,
            "it has no network that private gradients train. Choose engine='diffusion' or 'gan'.",
        )
    if is_trained:
        return
    if has_gradients:
        raise _error(
            strategy,
            engine,
            "its network is trained by private gradients, which this strategy does not ask for. "
            "Choose strategy='private_gradients', or engine='particles' or 'pgm'.",
        )
    is_asked = getattr(strategy, "asks_embedding", False)
    if is_asked and not getattr(engine, "fits_embeddings", False):
        raise _error(
            strategy,
            engine,
            "it reads tables, and would leave the mean embedding unused. Choose "
            "engine='generator'.",
        )
    if getattr(strategy, "asks_half_spaces", False) and not getattr(
        engine, "fits_half_spaces", False
    ):
        raise _error(
            strategy,
            engine,
            "it reads tables over codes, and would leave the half-spaces of numbers unused. Choose "
            "engine='rap++'.",
        )
    if not is_asked and not getattr(engine, "fits_tables", True):
        raise _error(
            strategy,
            engine,
            "it fits mean embeddings, which this strategy does not ask for. Choose "
            "strategy='mean_embedding', or engine='particles' or 'pgm'.",
        )


def require_model(engine: Engine, domain: Domain, cliques: Sequence[Clique]) -> None:
    """Raises ``MatchError`` where the engine cannot make a model of tables that were measured."""
    _require("What was measured", engine, domain, cliques)


def _require(
    asks: "Strategy | str", engine: Engine, domain: Domain, cliques: Sequence[Clique]
) -> None:
    reason = refusal(engine, domain, cliques)
    if reason is not None:
        raise _error(asks, engine, reason)


def _error(asks: "Strategy | str", engine: Engine, reason: str) -> MatchError:
    asking = asks if isinstance(asks, str) else type(asks).__name__
    return MatchError(f"{asking} does not go with {type(engine).__name__} here: {reason}")
