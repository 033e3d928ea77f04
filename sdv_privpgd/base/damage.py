"""Files that are damaged: one error, whatever the parser of their kind would say."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class DamagedFileError(ValueError):
    """A file cannot be read as what it should be."""


@contextmanager
def undamaged(path: Path, kind: str, *passed: type[Exception]) -> Iterator[None]:
    """Raises ``DamagedFileError``, with the file's name, for whatever reading it raises inside.

    Parsers raise what their code happens to run into: no list of theirs is ever complete. Nothing
    private is near: the files are public.

    Args:
        path: Of the file.
        kind: What it should be.
        passed: Errors that are passed on as they are.
    """
    try:
        yield
    except (DamagedFileError, *passed):
        raise
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise DamagedFileError(f"The {kind} {path} cannot be read: {reason}.") from None
    except Exception as error:  # noqa: BLE001 - that is what it is for
        text = " ".join(str(error).split())
        said = text if isinstance(error, ValueError) and text else f"{type(error).__name__}: {text}"
        raise DamagedFileError(f"{path} is no {kind} that can be read: {said}") from None


def digest_of(facts: Mapping[str, Any]) -> str:
    """The digest of all that facts in JSON say, but for the digest itself."""
    others = {name: fact for name, fact in facts.items() if name != "digest"}
    return hashlib.sha256(json.dumps(others, sort_keys=True).encode()).hexdigest()
