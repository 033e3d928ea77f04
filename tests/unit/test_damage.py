"""A damaged file is read as it was, or raises one error that names it."""

import importlib.util
import random
import sys

import numpy as np
import pandas as pd
import pytest

from sdv_privpgd import Boolean, Categorical, Measured, fit_table, measure, read_domain
from sdv_privpgd.base.files import DamagedFileError, write_archive
from sdv_privpgd.cli.checkpoint import fitted
from sdv_privpgd.cli.journal import Journal
from sdv_privpgd.cli.messages import CommandError
from sdv_privpgd.cli.metadata_files import read_json
from sdv_privpgd.cli.output_files import Outputs
from sdv_privpgd.synthesize.particles.compiler import is_compiled

FLIPS = 300
DEEP = "[" * 100_000


def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame({"ward": rng.choice(["A", "B"], 600), "ill": rng.random(600) < 0.3})


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """One of each kind, how it is read, and what it says."""
    folder = tmp_path_factory.mktemp("whole")
    columns = {"ward": Categorical(["A", "B"]), "ill": Boolean()}
    released = measure(table(), columns, 1.0, site="North")
    released.save(folder / "release.zip")
    (folder / "ledger.json").write_text(released.ledger.to_json() + "\n")
    fit_table(table(), columns, 1.0, method="mst").save(folder / "model.zip")
    return folder


def read_release(path):
    read = Measured.load(path)
    facts = (read.site, read.date, read.strategy, read.columns, read.ledger)
    return repr((facts, [(each.query, each.stddev, each.answer.tolist()) for each in read.answers]))


def read_ledger_of(path):
    with Outputs(inputs=[], force=False) as outputs:
        return Journal(outputs, path).earlier


def read_model(path):
    return fitted(path).ledger


READERS = {"release.zip": read_release, "ledger.json": read_ledger_of, "model.zip": read_model}


def flipped(content, number):
    """The same bytes but for one bit; of a short file no two bits are the same."""
    place = random.Random(7).sample(range(8 * len(content)), min(FLIPS, 8 * len(content)))[number]
    changed = bytearray(content)
    changed[place // 8] ^= 1 << place % 8
    return bytes(changed)


def mutated(content, number):
    """The same bytes but for a bit, a byte more or less, or some that are others."""
    place = random.Random(number).randrange(len(content))
    rest = content[place:]
    new = [rest[1:], b"\0" + rest, rest[:1] + rest, bytes(reversed(rest[:64])) + rest[64:]]
    return flipped(content, number) if number % 5 else content[:place] + new[number // 5 % 4]


def outcome(read, path):
    """What a file says, or the error that it raises."""
    try:
        return read(path), None
    except (CommandError, DamagedFileError) as error:
        return None, str(error)


@pytest.mark.parametrize("name", READERS)
def test_what_has_changed_is_told_or_changes_nothing(name, files, tmp_path):
    read, content, path = READERS[name], (files / name).read_bytes(), tmp_path / name
    whole, refused = read(files / name), 0
    for number in range(FLIPS):
        changed = mutated(content, number)
        path.write_bytes(changed)
        found, told = outcome(read, path)
        assert found == whole if told is None else str(path) in told
        refused += told is not None or changed == content
    assert refused == FLIPS if name.endswith(".zip") else refused > FLIPS / 2


@pytest.mark.parametrize("left", [0, 1, 10, 0.3, 0.9, -1, -40])
@pytest.mark.parametrize("name", READERS)
def test_a_file_that_was_cut_is_told_or_is_whole(name, left, files, tmp_path):
    read, content, path = READERS[name], (files / name).read_bytes(), tmp_path / name
    path.write_bytes(content[: int(left * len(content)) if isinstance(left, float) else left])
    found, told = outcome(read, path)
    if told is None:
        assert (name, left) == ("ledger.json", -1)  # of the line's end
        assert found == read(files / name)
    else:
        assert str(path) in told


@pytest.mark.parametrize("text", [DEEP, '{"a": ' * 100_000, "\ud800".encode("utf-16", "replace")])
def test_text_that_is_nested_or_no_text_is_told(text, tmp_path):
    content = text if isinstance(text, bytes) else text.encode()
    for name, read in {
        **READERS,
        "domain.json": read_domain,
        "domain.yaml": read_domain,
        "metadata.json": read_json,
    }.items():
        if name == "domain.yaml" and text != DEEP:
            continue
        path = tmp_path / name
        path.write_bytes(content[:1_200] if name == "domain.yaml" else content)
        with pytest.raises((CommandError, ValueError), match=name):
            read(path)


def test_a_nested_ledger_in_a_release_is_told(files, tmp_path):
    path = tmp_path / "release.zip"
    write_archive(path, {"release.json": DEEP.encode()})
    with pytest.raises(DamagedFileError, match="RecursionError"):
        Measured.load(path)


@pytest.fixture
def module(tmp_path):
    """A module with a compiled function, loaded as by a new process."""
    path = tmp_path / "compiled.py"
    path.write_text(
        "from sdv_privpgd.synthesize.particles.compiler import njit\n"
        "@njit()\n"
        "def twice(number):\n"
        "    return 2 * number\n"
    )

    def load():
        spec = importlib.util.spec_from_file_location("compiled", path)
        found = importlib.util.module_from_spec(spec)
        sys.modules["compiled"] = found
        spec.loader.exec_module(found)
        return found

    yield load
    sys.modules.pop("compiled", None)


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_compiled_code_that_is_damaged_is_compiled_anew(module, ending, tmp_path):
    assert module().twice(3) == 6
    (path,) = (tmp_path / "__pycache__").glob(f"*.{ending}")
    content = path.read_bytes()
    contents = [b"", content[:-1], content[:40], *(flipped(content, each) for each in range(8))]
    for damaged in contents:
        path.write_bytes(damaged)
        again = module()
        assert is_compiled(again.twice) == (ending == "nbc")
        assert again.twice(3) == 6
        assert again.twice.stats.cache_misses
        assert path.read_bytes() != damaged  # it is mended
        third = module()
        third.twice(3)
        assert third.twice.stats.cache_hits
