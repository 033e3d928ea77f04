"""Facts in files that people read and change: JSON and YAML."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

TREES = (".json", ".yaml", ".yml")
"""The endings of such files."""


def write_tree(facts: Mapping[str, Any], path: Path, endings: Sequence[str] = TREES) -> Path:
    """Writes plain facts to a JSON or YAML file, and returns its path. Raises as ``yaml_for``."""
    yaml = yaml_for(path, endings)
    if yaml is None:
        text = json.dumps(facts, indent=2, ensure_ascii=False) + "\n"
    else:
        text = yaml.safe_dump(facts, sort_keys=False, allow_unicode=True)
        if yaml.safe_load(text) != facts:  # PyYAML writes some control characters as they are
            text = yaml.safe_dump(facts, sort_keys=False)
    path.write_text(text, encoding="utf-8")
    return path


def yaml_for(path: Path, endings: Sequence[str] = TREES) -> ModuleType | None:
    """The library that reads and writes YAML; ``None`` for JSON.

    Raises ``ValueError`` for an ending that is none of these, and ``ImportError`` without it.
    """
    if path.suffix.lower() == ".json":
        return None
    if path.suffix.lower() not in TREES:
        raise ValueError(
            f"It is kept in a file that ends in {', '.join(endings)}, got {str(path)!r}."
        )
    try:
        import yaml
    except ImportError:
        raise ImportError(f"{path} needs PyYAML: pip install pyyaml. JSON needs nothing.") from None
    return yaml
