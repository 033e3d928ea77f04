"""A bound on people is kept, and people are weighed, on every source as on a frame."""

from collections import Counter
from functools import partial

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from made_up import made_up
from same_rows import observed
from test_sources import SOURCES, of_duckdb, of_ibis, of_lazy_polars

from sdv_privpgd import Boolean, Categorical, People
from sdv_privpgd.columns.links import Link, Tree
from sdv_privpgd.columns.parser import describe
from sdv_privpgd.columns.visits import Visits
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.sources import arrow, frames, people
from sdv_privpgd.sources.csv import CsvFiles
from sdv_privpgd.sources.locate import of_families, of_people, of_visits, open_source

UNORDERED = of_duckdb, of_ibis, of_lazy_polars
COLUMNS = {"ward": Categorical(["A", "B"]), "ill": Boolean(), "town": Categorical()}


def table(who="whole numbers", num_rows=700):
    frame = made_up(
        num_rows, who=(0, 150), ward="AB", ill=0.4, town=("North", "South"), row=range(num_rows)
    )
    ids = frame["who"]
    if who == "text":
        ids = "P" + ids.astype(str)
    if who == "some missing":
        ids = ids.mask(ids % 11 == 0)
    return frame.assign(who=ids)


def of_csv(frame, folder):
    frame.to_csv(folder / "visits.csv", index=False)
    return CsvFiles(folder / "visits.csv", header=True)


@pytest.fixture(autouse=True)
def one_key(monkeypatch):
    """Many batches, and the same key in every fit."""
    for module, name in ((arrow, "BLOCK"), (frames, "BLOCK")):
        monkeypatch.setattr(module, name, 97)
    monkeypatch.setattr(
        people.secrets, "token_bytes", lambda number: b"one key of all fits"[:number]
    )


@pytest.mark.parametrize(
    ("made", "who"),
    [
        *[(made, who) for made in SOURCES for who in ("whole numbers", "text", "some missing")],
        (of_csv, "text"),
    ],
)
def test_no_more_rows_of_a_person_are_read_than_may_be(made, who, tmp_path):
    frame = table(who)
    source = of_people(open_source(made(frame, tmp_path)), "who", 2, True)
    assert source.numbered is not None
    rows, used = Counter(), {}
    for batch in source.batches(["row", source.numbered]):
        rows.update(batch.columns["row"].astype(int).tolist())
        used.update(zip(batch.columns["row"].astype(int), batch.columns["number"], strict=True))
    own = of_people(open_source(frame), "who", 2, True)
    kept = [row for batch in own.batches(["row"]) for row in batch.columns["row"].tolist()]
    assert sum(rows.values()) == len(kept)
    if made not in UNORDERED:
        assert rows == Counter(kept)  # the frame's
    numbers = frame["who"].value_counts(dropna=False).clip(upper=2)
    assert source.num_rows() == len(kept) == numbers.sum()
    kept_of = frame.loc[sorted(rows), "who"]
    assert used == {
        row: numbers[np.nan if pd.isna(each) else each] for row, each in kept_of.items()
    }


@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize("made", [*SOURCES, of_csv])
def test_the_model_is_the_frames_to_the_byte(made, weighed, frozen, tmp_path):
    settings = {
        "method": "independent+pgm", "adjacency": "add_remove", "delta": 1e-5,
        "people": People("who", max_rows=3, weighed=weighed),
    }  # fmt: skip
    frame = table("text")
    if made in UNORDERED:  # all is of the sorted frame
        frame = frame.sort_values(["who", *COLUMNS], ignore_index=True)
    expected = observed(frame, COLUMNS, **settings)
    assert observed(made(frame, tmp_path), COLUMNS, **settings) == expected


class Shuffled:
    """A relation of DuckDB whose rows come in another order each time, as a join's may."""

    def __new__(cls, frame):
        connection = duckdb.connect()
        connection.register("visits", frame)
        return connection.sql("select * from visits order by random()")


def lazily_shuffled(frame):
    """So may those of a lazy table of Polars."""
    shuffled = partial(pl.DataFrame.sample, fraction=1.0, shuffle=True)
    return pl.from_pandas(frame).lazy().map_batches(shuffled)


@pytest.mark.parametrize("shuffled", [Shuffled, lazily_shuffled])
def test_rows_in_any_order_are_chosen_by_what_they_say(shuffled):
    frame = table()
    found = []
    for _ in range(3):
        names = ["ward", "ill", "town", "row"]
        source = of_people(open_source(shuffled(frame)), "who", 2, columns=names)
        for _ in range(2):
            rows = [row for batch in source.batches(["row"]) for row in batch.columns["row"]]
            found.append(sorted(map(int, rows)))
    assert all(each == found[0] for each in found)
    assert len(found[0]) == frame["who"].value_counts().clip(upper=2).sum()


@pytest.mark.parametrize("shuffled", [Shuffled, lazily_shuffled])
def test_rows_in_any_order_have_what_their_own_parents_have(shuffled):
    homes = pd.DataFrame({"id": range(300), "x": np.arange(300) % 7})
    people = pd.DataFrame({"home": [*range(300)] * 2}).assign(y=lambda own: own["home"] % 7)
    sources = {"homes": open_source(shuffled(homes)), "people": open_source(shuffled(people))}
    tree = Tree((Link("homes", "people", "home", 2, "id"),))
    columns = {"homes": ["x"], "people": ["y"]}
    rows, _, _ = of_families(sources, tree, columns, {}, 2, dict.fromkeys(sources, ()))
    found = pd.concat([pd.DataFrame(e.columns) for e in rows["people"].batches(["y", "homes.x"])])
    assert len(found) == 600
    assert (found["y"] == found["homes.x"]).all()


SPELLINGS = (str, "{}.0".format, "{:03}".format, " {} ".format, "{}e0".format)


@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize("made", [*SOURCES, of_csv])
def test_one_person_in_several_spellings_is_one(made, weighed, tmp_path):
    frame = table()
    people = frame["who"]
    written = [SPELLINGS[row % len(SPELLINGS)](who) for row, who in enumerate(people.tolist())]
    source = of_people(open_source(made(frame.assign(who=written), tmp_path)), "who", 2, weighed)
    numbers = people.value_counts().clip(upper=2)
    assert source.num_rows() == numbers.sum()
    if source.numbered is not None:
        for batch in source.batches(["row", source.numbered]):
            told = dict(zip(map(int, batch.columns["row"]), batch.columns["number"], strict=True))
            assert told == {row: numbers[people[row]] for row in told}


def test_rows_in_order_are_of_one_person_in_several_spellings():
    day = describe("row", {"sdtype": "numerical", "range_min": 0, "range_max": 700})
    cells = [7, "7", 7.0, "07", b"7", " 7.0"]
    frame = pd.DataFrame({"who": pd.Series(cells, dtype=object), "row": range(6)})
    source = of_visits(open_source(frame), Visits(person="who", most=2, by="row"), day)
    (batch,) = source.batches(["row", "rows of the person"])
    assert np.diff(batch.columns["row"]).tolist() == [1]  # two that follow each other
    assert batch.columns["rows of the person"].tolist() == [2, 2]


def written(frame, path):
    frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_whole_numbers_of_a_file_are_floats_in_another_that_has_one_missing(kind, tmp_path):
    ids = pd.DataFrame({"who": [2**60 + 1, 1, 2, 3], "ill": [True] * 4})
    for name, frame in (("a", ids), ("b", ids.assign(who=ids["who"].mask(ids["who"] == 3)))):
        written(frame, tmp_path / f"{name}.{kind}")
    facts = {"ill": {"sdtype": "boolean"}}
    source = of_people(open_source(f"{tmp_path}/*.{kind}", facts, "who"), "who", 1)
    assert source.num_rows() == 5  # three people, the one who was written with fewer digits, nobody


def test_a_column_of_people_has_one_type_and_keeps_all_digits(tmp_path):
    ids = pd.DataFrame({"who": [1, 2], "ill": [True, False]})
    ids.to_parquet(tmp_path / "a.parquet")
    ids.astype({"who": str}).to_parquet(tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"'who' is not in .*b\.parquet, or is of another"):
        PrivateTable.opened(
            f"{tmp_path}/*.parquet", {"ill": {"sdtype": "boolean"}}, {}, has_others=True,
            people=("who", 1, False),
        )  # fmt: skip
    frame = pd.DataFrame({"who": np.arange(50) + 2**62})
    assert of_people(open_source(frame), "who", 1).num_rows() == 50
    assert of_people(open_source(frame.astype(object)), "who", 1).num_rows() < 50  # as floats


@pytest.mark.parametrize("zone", [None, "Asia/Tokyo"])
def test_dates_tell_no_people_apart(zone):
    frame = pd.DataFrame({"who": pd.to_datetime(["2024-01-31"] * 2).tz_localize(zone)})
    with pytest.raises(ValueError, match="'who' has moments, which are no ids"):
        of_people(open_source(frame), "who", 1)
