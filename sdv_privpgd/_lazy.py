"""What is imported late: public names, when they are first used (PEP 562), and extras."""

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

_EXTRA_OF = {"sdv": "sdv", "sdmetrics": "sdv", "sklearn": "sdv", "matplotlib": "report"}
"""The extra that brings a package."""


def need(what: str, *packages: str) -> None:
    """Raises ``ImportError`` if a package is not installed that something needs."""
    for package in packages:
        if not is_there(package):
            raise ImportError(
                f"{what} needs {package}, which is not installed: "
                f"pip install 'sdv-privpgd[{_EXTRA_OF[package]}]'.",
                name=package,
            )


def is_there(package: str) -> bool:
    """Whether a package is installed. It is not imported."""
    try:
        return sys.modules.get(package) is not None or find_spec(package) is not None
    except (ImportError, ValueError):  # it is kept from being imported
        return False


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
