"""Files: which ones are meant, and whether they have changed or are damaged. Public.

Paths and patterns name tables, whose kinds follow from their names. Archives say if they have
changed, and plain facts lie in files that people read and change.
"""

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, TypeVar

import numpy as np

from sdv_privpgd.base.arguments import SourceError


class DamagedFileError(ValueError):
    """A file cannot be read as what it should be."""


@contextmanager
def undamaged(path: Path, kind: str, *passed: type[Exception]) -> Iterator[None]:
    """Raises ``DamagedFileError`` for whatever reading a file of that kind raises inside.

    Parsers raise what their code happens to run into: no list of theirs is ever complete. Nothing
    private is near: the files are public. Errors that are ``passed`` stay as they are.
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


MOST_TEXT = 2**28
"""Bytes of the JSON of an archive, at most."""

Read = TypeVar("Read")


def write_archive(path: Path, members: Mapping[str, bytes]) -> None:
    """Writes members to a sealed archive. The same members give the same bytes.

    Any program that reads zip files opens it.
    """
    packed, epoch = io.BytesIO(), (1980, 1, 1, 0, 0, 0)  # the archive's own dates say nothing
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name, epoch)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, content)
        archive.comment = sealed(b"")
    body = packed.getvalue()[: -len(sealed(b""))]
    path.write_bytes(body + sealed(body))


def sealed(body: bytes) -> bytes:
    """The comment that ends an archive with this body. Who means to deceive can write it, too."""
    return b"sdv-privpgd sha256 " + hashlib.sha256(body).hexdigest().encode()


def read_archive(path: Path, kind: str, read: Callable[["Members"], Read]) -> Read:
    """What ``read`` makes of an archive's members.

    Raises ``DamagedFileError`` for a file in which any byte has changed, and for whatever reading
    it raises.
    """
    with undamaged(path, kind):
        content = path.read_bytes()
        if content[:1] == b"\x80":
            raise ValueError(
                "it is a pickle, as SDV writes its synthesizers, and nothing is run here. Save the "
                "fitted_table of the synthesizer in its place."
            )
        if not zipfile.is_zipfile(io.BytesIO(content)):
            raise ValueError("it is not a zip file, or its end is missing.")
        body, seal = content[: -len(sealed(b""))], content[-len(sealed(b"")) :]
        if seal != sealed(body):
            raise ValueError("its digest is another, so that some of it has changed.")
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return read(Members(archive))


_HOLDS = {
    "model.json": "a model, of which FittedTable.load, sample and describe know more",
    "release.json": "the release of one site, which combine makes rows of",
}
"""What the archives with these members are."""


class Members:
    """What an archive holds. No member may be larger than its reader expects."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive

    def bytes(self, name: str, most: int) -> bytes:
        """A member that is no larger than it may be, whatever it claims to be."""
        for other in {*_HOLDS} - {name} if name in _HOLDS else ():
            if other in self._archive.namelist():
                raise ValueError(f"it is {_HOLDS[other]}.")
        with self._archive.open(name) as member:
            content = member.read(most + 1)
        if len(content) > most:
            raise ValueError(f"its {name} is larger than it can be.")
        return content

    def array(self, name: str, most: int) -> np.ndarray:
        """An array with at most so many bytes of numbers. No pickle is accepted."""
        header = 2**12  # bytes of an array's header, at most
        content = io.BytesIO(self.bytes(name, most + header))
        return np.lib.format.read_array(content, allow_pickle=False)


def array_bytes(numbers: np.ndarray) -> bytes:
    """An array as a member. Raises ``ValueError`` for one of objects."""
    content = io.BytesIO()
    np.lib.format.write_array(content, numbers, allow_pickle=False)
    return content.getvalue()


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


TEXT = (".csv", ".tsv", ".txt")
PARQUET = (".parquet", ".pq")
COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zip": "zip"}
KNOWN = f"{', '.join(TEXT)} (also with {', '.join(COMPRESSED)}) and {', '.join(PARQUET)}"
"""The endings that are both read and written, in words."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """The kind of a file, by its name: the form of its rows, and pandas' word for its compression.

    ``sep`` separates columns in text, unless the user names another.
    """

    form: Literal["text", "parquet", "excel"]
    sep: str = ","
    compression: str | None = None


def kind_of(path: Path) -> Kind | None:
    """The kind of a file; ``None`` if its ending says none that is known."""
    endings = [ending.lower() for ending in path.suffixes]
    last = endings[-1] if endings else ""
    if last in PARQUET:
        return Kind(form="parquet")
    if last == ".xlsx":
        return Kind(form="excel")
    compression = COMPRESSED.get(last)
    ending = last if compression is None else ([""] + endings)[-2]
    if ending not in TEXT:
        return None
    return Kind(form="text", sep="\t" if ending == ".tsv" else ",", compression=compression)


_DOCUMENTS = ("readme", "license", "licence", "changelog")


def files_of(paths: str | os.PathLike | Sequence) -> list[Path]:
    """The files that paths and patterns name, in order.

    Raises ``SourceError`` if there are none, and for a file that is named twice: its rows would
    count twice, and their people have a half of the protection.

    Of a folder it takes all files whose names begin with no point and no underscore; documents
    beside tables, such as a README, are passed over.
    """
    found = _files_of(paths)
    _require_each_once(found)
    return found


def are_text(paths: Any) -> bool:
    """Whether a path or a pattern, the first of several, names a file of text by its ending."""
    first = next(iter(paths), None) if isinstance(paths, list | tuple) else paths
    if isinstance(first, str | os.PathLike):
        with suppress(SourceError):
            kind = kind_of(_files_of(first)[0])
            return kind is not None and kind.form == "text"
    return False


def _files_of(paths: str | os.PathLike | Sequence) -> list[Path]:
    if not isinstance(paths, str | os.PathLike):
        return [path for each in paths for path in _files_of(each)]
    text = os.path.expanduser(os.fspath(paths))
    if os.path.isdir(text):
        inside = (path for path in Path(text).rglob("*") if path.is_file())
        shown = sorted(path for path in inside if not path.name.startswith((".", "_")))
        tables = [p for p in shown if not p.stem.lower().startswith(_DOCUMENTS)]  # no documents
        found = [path for path in tables if kind_of(path) is not None] or shown
    elif os.path.exists(text) or not has_magic(text):
        found = [Path(text)] if os.path.exists(text) else []
    else:
        found = [Path(each) for each in sorted(glob(text, recursive=True)) if os.path.isfile(each)]
    if not found and os.path.isdir(text):
        raise SourceError(
            f"The folder {os.fspath(paths)} holds no file whose name begins with a letter or digit."
        )
    if not found:
        raise SourceError(f"There is no file {os.fspath(paths)}.")
    folders = {part for path in found for part in path.parts[:-1]} - {*Path(text).parts}
    if columns := sorted({part.split("=")[0] for part in folders if "=" in part}):
        raise SourceError(
            f"The columns {columns!r} stand in names of folders of {os.fspath(paths)}, and not in "
            "files: they are not read. Write files that have them (Python also takes "
            "pyarrow.dataset.dataset(FOLDER, partitioning='hive')), or name the files one by one "
            "to leave them out."
        )
    return found


def _require_each_once(paths: Sequence[Path]) -> None:
    seen: dict[Any, Path] = {}
    for path in paths:
        facts = path.stat()
        unpacked = path.with_suffix("") if path.suffix.lower() in COMPRESSED else path
        for mark in ((facts.st_dev, facts.st_ino), unpacked.resolve()):
            if seen.setdefault(mark, path) is not path:
                raise SourceError(
                    f"{seen[mark]} and {path} are the same table: its rows would be read twice, "
                    "and count as those of two. Name each file once."
                )
