"""Archives that say if they have changed: zip files that end in the digest of all before it."""

import hashlib
import io
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import numpy as np

from sdv_privpgd.base.damage import undamaged

_SEAL = b"sdv-privpgd sha256 "

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
            told = zipfile.ZipInfo(name, epoch)
            told.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(told, content)
        archive.comment = sealed(b"")
    body = packed.getvalue()[: -len(sealed(b""))]
    path.write_bytes(body + sealed(body))


def sealed(body: bytes) -> bytes:
    """The comment that ends an archive with this body. Who means to deceive can write it, too."""
    return _SEAL + hashlib.sha256(body).hexdigest().encode()


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


class Members:
    """What an archive holds. No member may be larger than its reader expects."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive

    def bytes(self, name: str, most: int) -> bytes:
        """A member that is no larger than it may be, whatever it claims to be."""
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
