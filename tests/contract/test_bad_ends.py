"""Whatever ends a fit of files, no cell is told, the ledger has what was paid, the next fit works.

A fit of an undeclared table reads it twice. What was found is paid for between the two.
"""

import errno
import io
import tempfile
import traceback

import pytest
import sdv_tables
from canaries import NUMBER, TEXT, traces
from made_up import kinds, made_up, quiet

from sdv_privpgd import MSTSynthesizer
from sdv_privpgd.privacy import streams
from sdv_privpgd.sources import arrow, csv
from sdv_privpgd.sources.arrow import ArrowSource
from sdv_privpgd.sources.csv import CsvSource
from sdv_privpgd.sources.source import SourceError

METADATA = sdv_tables.metadata_of(kinds(age="numerical", cost="numerical", ward="categorical"))


def write(path, **cells):
    """A part of a table with canaries."""
    table = made_up(400, age=(0, 9), ward="AB").assign(cost=1.5)[["age", "cost", "ward"]]
    table.loc[7, ["cost", "ward"]] = NUMBER, TEXT
    table = table.assign(**cells)
    if path.suffix == ".parquet":
        table.to_parquet(path, index=False)
    else:
        table.to_csv(path, index=False)


def gone(path):
    path.unlink()


def torn(path):
    path.write_bytes(path.read_bytes()[:99])


def of_other_types(path):
    write(path, age=TEXT)


def too_long(path):
    path.write_text(f"{path.read_text()}1,2,A,{TEXT}\n")


def with_an_open_quote(path):
    path.write_text(f'{path.read_text()}1,2,"{TEXT}\n')


def with_another_header(path):
    path.write_text(path.read_text().replace("ward", TEXT, 1))


def of_fewer_rows(path):
    path.write_text("age,cost,ward\n1,2,A\n")


ENDS = [
    *((".parquet", end) for end in (gone, torn, of_other_types)),
    *((".csv", end) for end in (gone, too_long, with_an_open_quote, of_fewer_rows)),
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Small batches, codes that go to a file at once, and a folder of its own for that file."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    for place, name, value in (
        (streams, "_IN_MEMORY", 1), (arrow, "BLOCK", 101), (csv, "_BLOCK", 101)
    ):  # fmt: skip
        monkeypatch.setattr(place, name, value)
    (tmp_path / "table").mkdir()
    return tmp_path / "table"


@pytest.fixture
def before_reading(monkeypatch):
    """Does something before the rows are read for the first or the second time."""

    def arranged(reading, do):
        for kind in (CsvSource, ArrowSource):
            monkeypatch.setattr(kind, "batches", counted(kind.batches, reading, do))

    def counted(read, reading, do):
        calls = []

        def batches(self, names):
            calls.append(1)
            if len(calls) == reading:
                do()
            return read(self, names)

        return batches

    return arranged


def fitted(synthesizer, folder, kind):
    with quiet():
        synthesizer.fit(f"{folder}/*{kind}")


def fails(synthesizer, folder, kind, error=SourceError):
    with pytest.raises(error) as caught:
        fitted(synthesizer, folder, kind)
    told = "".join(traceback.format_exception_only(caught.value))
    assert traces(told) == []
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    assert list((folder.parent / "temporary").iterdir()) == []
    return told


def two_files(folder, kind):
    for name in ("1", "2"):
        write(folder / f"{name}{kind}")
    return folder / f"2{kind}"


def assert_the_next_fit_works(synthesizer, folder, kind, earlier):
    two_files(folder, kind)
    fitted(synthesizer, folder, kind)
    assert synthesizer.ledger.charges[: len(earlier)] == earlier
    assert len(synthesizer.sample(10)) == 10


@pytest.mark.parametrize("reading", [1, 2])
@pytest.mark.parametrize(("kind", "end"), ENDS)
def test_a_file_that_goes_bad(folder, before_reading, kind, end, reading):
    bad, synthesizer = two_files(folder, kind), MSTSynthesizer(METADATA, 1.0)
    before_reading(reading, lambda: end(bad))
    told = fails(synthesizer, folder, kind)
    assert str(folder) in told
    earlier = synthesizer.ledger.charges
    assert bool(earlier) == (reading == 2)
    assert_the_next_fit_works(synthesizer, folder, kind, earlier)


@pytest.mark.parametrize(
    ("kind", "end"),
    [*((kind, end) for kind, end in ENDS if end not in (gone, of_fewer_rows))]
    + [(".csv", with_another_header)],
)
def test_a_file_that_was_bad_before_costs_nothing(folder, kind, end):
    from sdv.errors import InvalidDataError

    synthesizer = MSTSynthesizer(METADATA, 1.0)
    end(two_files(folder, kind))
    fails(synthesizer, folder, kind, (InvalidDataError, SourceError))
    assert synthesizer.ledger.charges == ()
    assert_the_next_fit_works(synthesizer, folder, kind, ())


class FullDisk(io.BytesIO):
    """A file on a disk that is full after a first part."""

    def write(self, part):
        if self.tell():
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(part)


class Interrupted(tempfile.SpooledTemporaryFile):
    """A file that is interrupted after a first part."""

    def write(self, part):
        if self.tell():
            raise KeyboardInterrupt
        return super().write(part)


@pytest.mark.parametrize("kind", [".csv", ".parquet"])
@pytest.mark.parametrize(
    ("made", "error", "words"),
    [
        (lambda **_: FullDisk(), SourceError, ["No space left on device", "TMPDIR"]),
        (Interrupted, KeyboardInterrupt, []),
    ],
)
def test_what_ends_the_writing_of_codes(folder, kind, made, error, words, monkeypatch):
    two_files(folder, kind)
    synthesizer = MSTSynthesizer(METADATA, 1.0)
    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "SpooledTemporaryFile", made)
        told = fails(synthesizer, folder, kind, error)
    assert all(word in told for word in words)
    earlier = synthesizer.ledger.charges
    assert earlier
    assert_the_next_fit_works(synthesizer, folder, kind, earlier)
