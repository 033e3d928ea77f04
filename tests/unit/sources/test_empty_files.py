"""Files of text without rows among others: what has no rows, and what has lost its header."""

import gzip

import pandas as pd
import pytest

from sdv_privpgd import Numerical, fit_table
from sdv_privpgd.cli.reading import read_table
from sdv_privpgd.cli.saying import CommandError
from sdv_privpgd.sources.csv import CsvFiles, CsvSource
from sdv_privpgd.sources.dialect import Reading
from sdv_privpgd.sources.source import SourceError

FACTS = {"age": {"sdtype": "numerical"}, "ward": {"sdtype": "categorical"}}
NAMED = Reading(names=("age", "ward"))
NOTHING = {"no byte": b"", "a line": b"\n", "a mark": b"\xef\xbb\xbf", "spaces": b"  \n"}


def folder_of(tmp_path, empty, *, is_first, header="age,ward\n", ending=""):
    """A folder of two files, of which one is as given."""
    names = ("a", "b") if is_first else ("b", "a")
    for name, content in zip(names, (empty, f"{header}34,A\n71,B\n".encode()), strict=True):
        written = gzip.compress(content) if ending else content
        (tmp_path / f"{name}.csv{ending}").write_bytes(written)
    return sorted(tmp_path.glob("*.csv*")), tmp_path / f"{names[0]}.csv{ending}"


def rows_of(files, how):
    source = CsvSource(files, FACTS, how)
    batches = [batch.columns for batch in source.batches(source.names)]
    assert source.num_rows() == sum(len(each["age"]) for each in batches)
    return [age for each in batches for age in each["age"]]


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize("header", [b"age,ward\n", b"age,ward"])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_header_alone_says_that_there_are_no_rows(tmp_path, header, is_first, ending):
    files, _ = folder_of(tmp_path, header, is_first=is_first, ending=ending)
    assert rows_of(files, Reading()) == [34, 71]
    for facts in (FACTS, None):
        assert read_table(files, Reading(header=True), facts)["ward"].tolist() == ["A", "B"]


@pytest.mark.parametrize("empty", NOTHING)
@pytest.mark.parametrize("is_first", [True, False])
def test_a_file_that_has_lost_its_header_is_refused_by_name(tmp_path, empty, is_first):
    files, path = folder_of(tmp_path, NOTHING[empty], is_first=is_first)
    told = f"{path} is empty, without even a header: write it again, or leave it out"
    with pytest.raises(SourceError) as caught:
        CsvSource(files, FACTS)
    assert told in str(caught.value)
    for facts in (FACTS, None):
        with pytest.raises(CommandError) as said:
            read_table(files, Reading(header=True), facts)
        assert told in str(said.value)


@pytest.mark.parametrize("empty", NOTHING)
@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("how", [NAMED, Reading(header=False)], ids=["named", "by the facts"])
def test_where_files_have_no_header_an_empty_one_has_no_rows(tmp_path, empty, is_first, how):
    """It is what is left of a file with one row, once that row is gone."""
    files, _ = folder_of(tmp_path, NOTHING[empty], is_first=is_first, header="")
    assert rows_of(files, how) == [34, 71]
    for facts in (FACTS, None):
        assert read_table(files, how, facts).iloc[:, 1].tolist() == ["A", "B"]


def test_files_without_header_may_all_be_empty_if_somebody_says_the_names(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"")
    for how in (NAMED, Reading(header=False)):
        assert rows_of([tmp_path / "a.csv"], how) == []
    with pytest.raises(SourceError, match="is empty"):
        CsvSource([tmp_path / "a.csv"], {}, Reading(header=False))


def test_a_fit_of_a_folder_reads_past_an_empty_file_or_refuses_it(tmp_path):
    pd.DataFrame({"age": range(500)}).to_csv(tmp_path / "a.csv", index=False)
    columns = {"age": Numerical(0, 499, decimal_places=0)}
    (tmp_path / "b.csv").write_text("age\n")
    assert fit_table(CsvFiles(tmp_path), columns, 1.0, method="privpgd+pgm").num_rows == 500
    (tmp_path / "b.csv").write_bytes(b"")
    with pytest.raises(SourceError, match=r"b\.csv is empty"):
        fit_table(CsvFiles(tmp_path), columns, 1.0, method="privpgd+pgm")
