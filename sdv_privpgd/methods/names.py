"""Methods by their names, which are the same for every door. Public."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from sdv_privpgd import methods
from sdv_privpgd.methods.method import ENGINES, EngineMethod, Method, engine_of


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
    if isinstance(method, Method):
        return method.seeded(seed)
    known = named_methods()
    if isinstance(method, str):
        if method in known:
            return known[method]().seeded(seed)
        name, plus, engine = method.rpartition("+")
        if plus and name in known and engine in ENGINES:
            made = known[name]()
            if isinstance(made, EngineMethod):
                return replace(made, engine=engine_of(engine, seed=seed))
    raise ValueError(
        f"method must be one of {tuple(sorted(known))}, one of them with another engine of "
        f"{tuple(ENGINES)}, such as 'aim+particles', or a Method such as AIM(max_megabytes=20), "
        f"got {method!r}."
    )
