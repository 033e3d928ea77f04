"""Tables that are clear are read, from CSV as from a frame; others are refused at once."""

import datetime
import gzip

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made_up import made_up
from same_rows import observed

from sdv_privpgd import Boolean, Categorical, Datetime, Numerical, fit_table
from sdv_privpgd.cli.input_files import read_table, tables_in
from sdv_privpgd.columns.dialect import Dialect
from sdv_privpgd.sources import csv
from sdv_privpgd.sources.csv import CsvSource
from sdv_privpgd.sources.frames import FrameSource
from sdv_privpgd.sources.locate import open_source, retyped
from sdv_privpgd.sources.source import SourceError

NUMBER = 200
TABLE = pd.DataFrame({"ill": [True, False] * (NUMBER // 2), "ward": ["A", "B"] * (NUMBER // 2)})
ILL = {"ill": Boolean()}


def fitted(table, columns=ILL, **more):
    return fit_table(table, columns, epsilon=5.0, method="mst", **more)


def nothing_is_spent(table, columns, match, monkeypatch):
    """Checks that a table is refused before its fit can charge."""
    monkeypatch.setattr("sdv_privpgd.fitting.fitted_table.RunningFit.run", None)
    with pytest.raises(ValueError, match=match):
        fitted(table, columns)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_documents_beside_tables_are_passed_over(kind, tmp_path):
    getattr(TABLE, f"to_{kind}")(tmp_path / f"part.{kind}", index=False)
    for name in ("README", "README.md", "readme.txt", "LICENSE.txt", "codebook.pdf"):
        (tmp_path / name).write_text("What is in the table, and who may use it.")
    assert fitted(tmp_path).num_rows == NUMBER
    assert tables_in([tmp_path]) == [tmp_path / f"part.{kind}"]
    (tmp_path / f"part.{kind}").unlink()
    with pytest.raises(SourceError, match=r"README|kinds"):
        fitted(tmp_path)


@pytest.mark.parametrize("given", ["", "*/*.csv"])
def test_columns_in_names_of_folders_are_refused_by_name_and_never_lost(given, tmp_path):
    for ward, rows in TABLE.groupby("ward"):
        (tmp_path / f"ward={ward}").mkdir()
        rows[["ill"]].to_csv(tmp_path / f"ward={ward}" / "part.csv", index=False)
    with pytest.raises(SourceError, match=r"The columns \['ward'\] stand in names of folders"):
        fitted(str(tmp_path / given))
    files = sorted(tmp_path.glob("*/*.csv"))
    assert tables_in(files) == files


def test_files_may_have_columns_in_another_order_unless_a_name_repeats(tmp_path):
    turned = TABLE[["ward", "ill"]]
    TABLE.to_csv(tmp_path / "a.csv", index=False)
    with gzip.open(tmp_path / "b.csv.gz", "wt") as file:
        turned.to_csv(file, index=False)
    facts = {"ill": {"sdtype": "boolean"}, "ward": {"sdtype": "categorical"}}
    source = CsvSource([tmp_path / "a.csv", tmp_path / "b.csv.gz"], facts)
    assert source.names == ["ill", "ward"]
    read = [batch.columns for batch in source.batches(source.names)]
    for each in read:
        assert each["ward"].tolist() == TABLE["ward"].tolist()
        assert each["ill"].tolist() == TABLE["ill"].tolist()
    both = read_table(tables_in([tmp_path]), Dialect(header=True), None)
    assert both["ward"].tolist() == [*TABLE["ward"], *TABLE["ward"]]
    renamed = Dialect(names=("x", "y"), header=True)
    source = CsvSource([tmp_path / "a.csv", tmp_path / "b.csv.gz"], {}, renamed)
    assert [batch.columns["y"].tolist() for batch in source.batches(["y"])] == [
        TABLE["ward"].tolist()
    ] * 2
    (tmp_path / "a.csv").write_text("a,a,b\n1,2,3\n")
    (tmp_path / "b.csv").write_text("a,b,a\n1,2,3\n")
    named = Dialect(names=("x", "y", "z"), header=True)
    with pytest.raises(SourceError, match="is not that of"):
        CsvSource(str(tmp_path / "*.csv"), {}, named)


def test_text_with_a_dictionary_in_one_file_and_without_in_another_is_text(tmp_path):
    plain = pa.Table.from_pandas(TABLE, preserve_index=False)
    packed = plain.set_column(1, "ward", plain["ward"].dictionary_encode())
    for first, second in ((plain, packed), (packed, plain)):
        for name, table in (("a", first), ("b", second)):
            pq.write_table(table.replace_schema_metadata(None), tmp_path / f"{name}.parquet")
        source = open_source(str(tmp_path), {"ward": {}})
        assert source.dtypes["ward"].kind == "O"
        for batch in source.batches(["ward"]):
            assert batch.columns["ward"].tolist() == TABLE["ward"].tolist()
        done = fitted(tmp_path, {"ward": Categorical(["A", "B"])})
        assert abs((done.sample(400)["ward"] == "A").mean() - 0.5) < 0.15


def test_a_dictionary_among_texts_is_missing_and_nothing_else_is():
    cells = [{"a": 1} if row % 4 == 0 else "B" for row in range(NUMBER)]
    columns = {"ward": Categorical(["B"])}
    done = fitted(TABLE.assign(ward=cells), columns, allow_lost=["ward"])
    assert abs(done.sample(2_000)["ward"].isna().mean() - 0.25) < 0.15


@pytest.mark.parametrize("lazy", [False, True])
def test_a_type_of_polars_that_arrow_lacks_is_refused_only_if_it_is_asked_for(lazy, monkeypatch):
    wide = pl.Series(range(NUMBER), dtype=pl.Int128)
    days = pl.Series([datetime.date(2020, 1, 1)] * NUMBER, dtype=pl.Object)  # in addresses
    table = pl.from_pandas(TABLE).with_columns(wide=wide, days=days)
    table = table.lazy() if lazy else table
    assert fitted(table).num_rows == NUMBER
    asked = {**ILL, "wide": Numerical(0, NUMBER), "days": Categorical()}
    said = "'wide': 'struct<Int128 of Polars.*'days': 'struct<Object of Polars"
    nothing_is_spent(table, asked, said, monkeypatch)


COLUMNS = {
    "age": Numerical(0, 99, decimal_places=0),
    "cost": Numerical(),
    "code": Categorical(),
    "ward": Categorical([1, 2, "x"]),
    "came": Datetime(datetime_format="%d.%m.%Y"),
    "ill": Boolean(),
}


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.setattr(csv, "_BLOCK", 101)
    costs = np.random.default_rng(1).exponential(20, 1_500)
    table = made_up(
        1_500, age=(-5, 120), cost=[f"{cost:.2f}".replace(".", ",") for cost in costs],
        code=("007", "7", "A\nB", 'say "A"'), ward=("1", "2.0", "x", "y"), came=(0, 900),
        ill=("TRUE", "0", "maybe"),
    ).astype({"age": object})  # fmt: skip
    days = pd.to_timedelta(table["came"], "D")
    table["came"] = (pd.Timestamp("2021-06-01") + days).dt.strftime("%d.%m.%Y")
    table.loc[::50, "age"] = 2**60 + 1
    for place, name in enumerate(table, start=7):
        table.loc[::place, name] = None
        table.loc[1::99, name] = "?"
    for number, part in enumerate(np.array_split(np.arange(1_500), 3)):
        path = tmp_path / f"{number}.csv.gz"
        table.iloc[part].to_csv(path, sep=";", index=False)
    return sorted(tmp_path.iterdir())


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("dtypes", [{}, {"code": pd.CategoricalDtype(), "cost": pd.Float32Dtype()}])
def test_the_model_is_the_frames_to_the_byte(files, frozen, adjacency, dtypes):
    how = Dialect(sep=";", decimal=",", dtypes=dtypes)
    settings = {"method": "independent+pgm", "adjacency": adjacency, "delta": 1e-5}
    frame = read_table(files, how, COLUMNS)
    frame = retyped(FrameSource.of(frame), dtypes) if dtypes else frame  # as a workbook's rows are
    source = CsvSource(files, COLUMNS, how)
    assert observed(source, COLUMNS, **settings) == observed(frame, COLUMNS, **settings)
