"""The same rows from every source: the same counts, so that not one byte of the model differs."""

import datetime
import uuid
from decimal import Decimal

import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet
from pyarrow.dataset import dataset
from same_rows import observed, table

from sdv_privpgd import Boolean, Categorical, People, check, fit_table, measure
from sdv_privpgd.columns.dtypes import is_unreadable
from sdv_privpgd.columns.encoding import encode_table
from sdv_privpgd.columns.scalars import cells
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.drafting.formats import are_all
from sdv_privpgd.sources import arrow, frames
from sdv_privpgd.sources.locate import open_source
from sdv_privpgd.sources.source import Source, SourceError


def of_pyarrow(frame, folder):
    return pa.Table.from_pandas(frame)


def of_dataset(frame, folder):
    of_files(frame, folder)
    return dataset(str(folder))


def of_polars(frame, folder):
    return pl.from_pandas(frame)


def of_lazy_polars(frame, folder):
    return of_polars(frame, folder).lazy()


def of_files(frame, folder):
    for place, part in enumerate(np.array_split(np.arange(len(frame)), 3)):
        frame.iloc[part].to_parquet(folder / f"part {place}.parquet", row_group_size=211)
    return f"{folder}/*.parquet"


def of_folder(frame, folder):
    of_files(frame, folder)
    (folder / "_SUCCESS").touch()
    return folder


def of_paths(frame, folder):
    of_files(frame, folder)
    return sorted(folder.iterdir())


def of_duckdb(frame, folder):
    of_files(frame, folder)
    return duckdb.connect().sql(f"select * from '{folder}/*.parquet'")


def of_ibis(frame, folder):
    of_files(frame, folder)
    return ibis.duckdb.connect().read_parquet(f"{folder}/*.parquet")


def of_frames_in_parts(frame, folder):
    return open_source(frame)


def of_pandas_arrow(table, folder):
    return table.to_pandas(types_mapper=pd.ArrowDtype)


def of_dataset_of(table, folder):
    return dataset(table)


def of_parquet(table, folder):
    parquet.write_table(table, folder / "table.parquet")
    return folder / "table.parquet"


def of_polars_of(table, folder):
    return pl.from_arrow(table)


def of_duckdb_of(table, folder):
    return duckdb.connect().from_arrow(table)


def of_ibis_of(table, folder):
    return ibis.duckdb.connect().read_parquet(of_parquet(table, folder))


SOURCES = [
    of_pyarrow, of_dataset, of_polars, of_lazy_polars, of_files, of_folder, of_paths, of_duckdb,
    of_ibis, of_frames_in_parts,
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("made", SOURCES)
def test_the_model_is_the_frames_to_the_byte(made, adjacency, frozen, monkeypatch, tmp_path):
    for module, name in ((arrow, "BLOCK"), (frames, "BLOCK")):
        monkeypatch.setattr(module, name, 257)  # many batches, the last one partly filled
    frame = table()
    expected = observed(frame, method="independent+pgm", adjacency=adjacency, delta=1e-5)
    found = observed(
        made(frame, tmp_path), method="independent+pgm", adjacency=adjacency, delta=1e-5
    )
    assert found == expected


@pytest.mark.long
def test_with_pairs_and_particles_too_unless_a_cell_is_another(frozen, tmp_path):
    frame = table(800)
    assert observed(of_files(frame, tmp_path)) == observed(frame)
    other = frame.assign(age=frame["age"].where(frame.index != 400, 17 + frame["age"] // 2))
    settings = {"method": "independent+pgm"}
    assert (
        observed(of_files(other, tmp_path), **settings)["model"]
        != observed(frame, **settings)["model"]
    )


@pytest.mark.parametrize("made", SOURCES)
def test_a_source_says_what_is_public_and_gives_all_rows_again_and_again(made, tmp_path):
    frame = table(500)
    source = open_source(made(frame, tmp_path))
    assert isinstance(source, Source)
    assert list(source.names) == list(frame.columns)
    assert source.num_rows() == 500
    for _ in range(2):
        batches = list(source.batches(["age", "ward"]))
        assert sum(len(batch.columns["age"]) for batch in batches) == 500
        assert batches[-1].done == 1.0
        assert all(list(batch.columns) == ["age", "ward"] for batch in batches)


class TestCells:
    """A cell is the same whatever the others are."""

    def test_cells_that_pandas_changes_are_read_as_they_are(self):
        source = open_source(pa.table({"x": [2**60 + 1, None]}))
        (batch,) = source.batches(["x"])
        assert batch.columns["x"].tolist()[0] == 2**60 + 1
        for values in (["A", None], ["A", "A"]):
            column = pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array(values))
            (batch,) = open_source(pa.table({"x": column})).batches(["x"])
            cells = [None if pd.isna(cell) else cell for cell in batch.columns["x"]]
            assert cells == [*values, None]
        assert str(arrow.dtypes_of(pa.schema({"x": pa.int16()}))["x"]) == "Int16"
        written = pa.Table.from_pandas(pd.DataFrame({"x": np.array([1], np.int16)}))
        assert str(arrow.dtypes_of(written.schema)["x"]) == "int16"
        for cell in (datetime.time(9), datetime.date(2020, 1, 1), Decimal("1.50")):
            of_pandas = pa.Table.from_pandas(pd.DataFrame({"x": [cell]})).schema  # by its cells
            kept = arrow.dtypes_of(of_pandas.remove_metadata())["x"]
            assert kept.type is type(cell)
            assert arrow.dtypes_of(of_pandas)["x"] != kept
            assert kept.kind == "M" or are_all(type(cell), pd.Series([cell], dtype=kept))

    def test_times_decimals_and_days_are_those_of_a_frame(self):
        facts = {
            "day": {"sdtype": "datetime", "range_min": "2020-01-01", "range_max": "2025-12-31"},
            "cost": {"sdtype": "numerical", "range_min": 0, "range_max": 100},
        }
        days = pd.date_range("2019-06-01", periods=50, freq="50D").date
        costs = [None if i % 9 == 0 else Decimal(3 * i) / 4 for i in range(50)]
        plain = pa.table({"day": days, "cost": pa.array(costs, pa.decimal128(9, 2))})
        frame = plain.to_pandas()
        schema = Schema.from_sdv(facts)
        (batch,) = open_source(plain).batches(["day", "cost"])
        assert np.array_equal(
            encode_table(batch.columns, schema), encode_table(dict(frame.items()), schema)
        )


class TestWhatCannotBeRead:
    def test_what_is_no_table_or_file_or_comes_once(self, tmp_path):
        for thing in (34, object(), {"a": 1}):
            with pytest.raises(SourceError, match=r"must be a DataFrame .* not of type"):
                open_source(thing)
        with pytest.raises(SourceError, match="can be read once"):
            open_source(pa.table({"a": [1]}).to_reader())
        for paths, told in (
            (tmp_path / "a.parquet", "There is no file"),
            (f"{tmp_path}/*.parquet", "There is no file"),
            (tmp_path, "holds no file"),
        ):
            with pytest.raises(SourceError, match=told):
                open_source(paths)
        (tmp_path / "a.csv").write_text("a\n1\n")
        (tmp_path / "b.parquet").write_bytes(b"")
        with pytest.raises(SourceError, match="several kinds"):
            open_source(tmp_path)

    def test_files_of_other_columns_or_types_are_named(self, tmp_path):
        pd.DataFrame({"a": [1], "b": ["x"]}).to_parquet(tmp_path / "1.parquet")
        for other in (pd.DataFrame({"a": [1]}), pd.DataFrame({"a": ["SECRET"], "b": ["x"]})):
            other.to_parquet(tmp_path / "2.parquet")
            with pytest.raises(
                SourceError, match=r"column '.' is not in .*parquet, or is of another type"
            ) as caught:
                open_source(tmp_path)
            assert "SECRET" not in str(caught.value)

    def test_a_column_that_is_missing_in_a_whole_file_is_no_other_type(self, tmp_path):
        pd.DataFrame({"a": [None, None]}, dtype=object).to_parquet(tmp_path / "1.parquet")
        pd.DataFrame({"a": ["x"]}).to_parquet(tmp_path / "2.parquet")
        assert open_source(tmp_path).num_rows() == 3


def nested():
    """Columns of types that no type of column reads, in Arrow's words."""
    return {
        "struct": pa.array([{"a": 1}] * 8),
        "list": pa.array([[1, 2]] * 8),
        "fixed_size_list": pa.array([[1, 2]] * 8, pa.list_(pa.int8(), 2)),
        "map": pa.array([[("a", 1)]] * 8, pa.map_(pa.string(), pa.int8())),
        "dense_union": pa.UnionArray.from_dense(
            pa.array([0] * 8, pa.int8()), pa.array(range(8), pa.int32()), [pa.array(range(8))]
        ),
        "month_day_nano_interval": pa.array([(1, 2, 3)] * 8, pa.month_day_nano_interval()),
        "duration": pa.array([5] * 8, pa.duration("s")),
        "extension<arrow.uuid": pa.array([uuid.UUID(int=5).bytes] * 8, pa.uuid()),
    }


NESTED = ["struct", "list", "fixed_size_list", "map", "dense_union", "month_day_nano_interval",
          "duration", "extension<arrow.uuid"]  # fmt: skip


class TestTypesThatNoColumnReads:
    @pytest.mark.parametrize("kind", NESTED)
    @pytest.mark.parametrize("role", ["declared", "person"])
    def test_a_schema_that_states_one_is_refused_by_name(self, kind, role):
        table = pa.table({"odd": nested()[kind], "ill": pa.array([True, False] * 4)})
        columns = {"ill": Boolean(), **({"odd": Categorical(["a"])} if role == "declared" else {})}
        people = {"adjacency": "add_remove", "delta": 1e-5, "people": People("odd", max_rows=2)}
        people = people if role == "person" else {}
        told = rf"No type of column reads {{'odd': '{kind}.*to a column for each part"
        if role == "person":
            told = "'odd' has (moments, which are no ids|the dtype .*, whose cells are no ids)"
        for door in (fit_table, measure):
            more = {"site": "North"} if door is measure else {}
            with pytest.raises(ValueError, match=told):
                door(table, columns, epsilon=1.0, **people, **more)
        assert fit_table(table, {"ill": Boolean()}, epsilon=1.0, method="privpgd+pgm").num_rows > 0

    @pytest.mark.parametrize(
        ("made", "kind"),
        [
            (of_pandas_arrow, "struct"), (of_pandas_arrow, "list"), (of_dataset_of, "struct"),
            (of_parquet, "struct"), (of_parquet, "map"), (of_polars_of, "struct"),
            (of_polars_of, "list"), (of_duckdb_of, "struct"), (of_duckdb_of, "map"),
            (of_ibis_of, "struct"),
        ],
    )  # fmt: skip
    def test_every_source_states_it(self, made, kind, tmp_path):
        table = made(
            pa.table({"odd": nested()[kind], "ill": pa.array([True, False] * 4)}), tmp_path
        )
        with pytest.raises(ValueError, match=r"No type of column reads {'odd'"):
            fit_table(table, {"odd": Categorical(), "ill": Boolean()}, epsilon=1.0)

    @pytest.mark.parametrize(
        "odd", [pd.interval_range(0, 8), pd.period_range("2024", periods=8, freq="M")]
    )
    def test_frames_of_pandas_state_some(self, odd):
        table = pd.DataFrame({"odd": odd, "ill": [True, False] * 4})
        for column in (table["odd"], table["odd"].astype("category")):
            with pytest.raises(ValueError, match=r"No type of column reads {'odd'"):
                fit_table(table.assign(odd=column), {"odd": Categorical()}, epsilon=1.0)
        told = check(table, {"odd": Categorical(), "ill": Boolean()}, epsilon=1.0).to_dict()
        assert [each["becomes"] for each in told["columns"].values()] == ["a fit stops", "modelled"]

    def test_types_of_one_cell_each_are_read(self):
        cells = {
            "binary": pa.array([b"x"] * 8), "time": pa.array([3] * 8, pa.time32("s")),
            "decimal": pa.array([Decimal("1.5")] * 8), "json": pa.array(["{}"] * 8, pa.json_()),
            "view": pa.array(["x"] * 8, pa.string_view()),
        }  # fmt: skip
        source = open_source(pa.table(cells))
        assert not any(map(is_unreadable, source.dtypes.values()))


class TestFilesThatLookLikeOthers:
    """A row that is read twice counts for two: its person would have half of the protection."""

    def test_a_file_that_is_named_twice_is_refused(self, tmp_path):
        frame = pd.DataFrame({"a": [1]})
        one = tmp_path / "1.parquet"
        frame.to_parquet(one)
        (tmp_path / "2.parquet").hardlink_to(one)
        for twice in ([one, one], [tmp_path / "1.*", f"{tmp_path}/./1.parquet"], tmp_path):
            with pytest.raises(SourceError, match="are the same table"):
                open_source(twice)

    def test_a_file_beside_its_packed_copy_is_refused(self, tmp_path):
        frame = pd.DataFrame({"a": [1]})
        for name in ("a.csv", "a.csv.gz"):
            frame.to_csv(tmp_path / name, index=False)
        with pytest.raises(SourceError, match=r"a\.csv.* are the same table"):
            open_source(tmp_path)

    def test_columns_that_nobody_asks_for_may_differ(self, tmp_path):
        pd.DataFrame({"a": [1, 2]}).set_index(pd.Index([5, 9])).to_parquet(tmp_path / "1.parquet")
        pd.DataFrame({"a": [3], "note": ["x"]}).to_parquet(tmp_path / "2.parquet")
        source = open_source(tmp_path, {"a": {"sdtype": "numerical"}})
        assert [list(batch.columns["a"]) for batch in source.batches(["a"])] == [[1, 2], [3]]
        pd.DataFrame({"b": [3]}).to_parquet(tmp_path / "3.parquet")
        with pytest.raises(SourceError, match=r"column 'a' is not in .*3\.parquet"):
            open_source(tmp_path, {"a": {"sdtype": "numerical"}})

    def test_columns_of_one_name_are_named(self, tmp_path):
        table = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
        parquet.write_table(table, tmp_path / "1.parquet")
        for given in (table, tmp_path):
            with pytest.raises(ValueError, match=r"\['a'\] are there more than once"):
                fit_table(given, {"a": Boolean()}, 1.0)


def test_no_time_of_the_day_stops_a_source():
    at = np.array([12 * 3600 * 10**9, 1, 86_400 * 10**9])  # noon, a nanosecond, and 24:00
    table = pa.table({"at": pa.array(at).cast(pa.time64("ns"))})
    in_words = duckdb.sql("select unnest([time '12:00', time '00:00', time '24:00']) as at")
    expected = [datetime.time(12), datetime.time(0), datetime.time(0)]
    for source in (table, in_words, of_pandas_arrow(table, None)):
        (batch,) = open_source(source).batches(["at"])
        assert cells(batch.columns["at"]) == expected
    held = table["at"].combine_chunks().dictionary_encode()
    assert cells(arrow.series_of(held)) == expected
