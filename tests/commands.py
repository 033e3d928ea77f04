"""A private table in a file, and the command line."""

import errno
import os

import sdv  # noqa: F401  (before a module of ours is named: it loads them at its end)
from made_up import kinds

from sdv_privpgd.cli import linked_tables  # noqa: F401  (before a test replaces a name that it takes)
from sdv_privpgd.cli.start import main

SECRET = "CANARYTEXT"
METADATA = {"columns": kinds(age="numerical", ward="categorical", ill="boolean")}
DOMAIN = {
    "age": {"range_min": 0, "range_max": 110, "decimal_places": 0},
    "ward": {"range_values": ["01", "02"]},
}


def run(*arguments):
    return main([str(argument) for argument in arguments])


def documents(folder):
    """What is public of the table in a folder."""
    return "--metadata", folder / "metadata.json", "--domain", folder / "domain.json"


def interrupt(*args, **kwargs):
    raise KeyboardInterrupt


def declared(csv, *more, out="out.csv"):
    """A quick fit of a table of which all is declared."""
    folder = csv.parent
    return run(
        "synthesize", csv, "--epsilon", 1, "--method", "mst", "--out", folder / out,
        *documents(folder), *more,
    )  # fmt: skip


def refused(status, capsys):
    """What a command that has failed said."""
    assert status == 1
    return capsys.readouterr().err


def new_files(csv):
    given = {"table.csv", "metadata.json", "domain.json"}
    found = {path.name for path in csv.parent.iterdir()} - given
    return found - {f"{name}.about.json" for name in found}  # cards of rows that are there


def fails_at(monkeypatch, name):
    """Makes writing one file fail, as on a full disk. Its name has a part of the path."""
    fsync, links = os.fsync, "/proc/self/fd"

    def full(number):
        if name in os.readlink(f"{links}/{number}"):
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(number)

    monkeypatch.setattr("sdv_privpgd.cli.output_files.os.fsync", full)
