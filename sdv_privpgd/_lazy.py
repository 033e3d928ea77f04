"""Public names that are imported when they are first used (PEP 562), read from a stub file."""

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path


def attach_stub(package: str, file: str) -> tuple[Callable[[str], object], list[str]]:
    """Returns ``__getattr__`` and ``__all__`` of a package, by the ``__init__.pyi`` beside it.

    The stub has a line ``from .module import name`` for each public name, or one with the whole
    path of a module elsewhere. Type checkers read the same lines.
    """
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    homes = {
        alias.name: f"{package}.{node.module}" if node.level else str(node.module)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    def resolve(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes[name]), name)

    return resolve, sorted(homes)
