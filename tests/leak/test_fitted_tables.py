"""Through the door without SDV: the same noisy answers, other tables, and not one byte differs."""

import io
import pickle
import zipfile
from datetime import date, time

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from canaries import NUMBER, TEXT, WHOLE, traces
from interference import bar_into, in_files, in_memory, let_out
from made_up import heard
from pyarrow import parquet

from sdv_privpgd import (
    Between,
    Boolean,
    Categorical,
    Datetime,
    DomainMismatchError,
    Key,
    Numerical,
    People,
    TimeOfDay,
    fit_table,
)
from sdv_privpgd.columns.dialect import Dialect
from sdv_privpgd.constraints import FixedCombinations, Inequality, ProgrammableConstraint
from sdv_privpgd.inference import Criterion, Question, bootstrap
from sdv_privpgd.privacy import curator
from sdv_privpgd.sources.csv import CsvFiles, CsvSource
from sdv_privpgd.sources.locate import open_source

MOMENT = "%Y-%m-%d %H:%M:%S"
COLUMNS = {
    "ward": Categorical(["A", "B", "C"]),
    "age": Numerical(0, 99, missing_codes=[-9, "NA"]),
    "seen": Datetime(date(2020, 1, 1), date(2024, 12, 31)),
    "ill": Boolean(),
    "weight": Numerical(),
    "town": Categorical(),
    "fee": Numerical(0, 500, number_format="$1,234.50"),
    "agreed": Boolean("J", "N"),
    "diagnosis": Categorical(groups={"A": 1, "B": 2}, prefix=1, missing_codes=["-"], other=0),
    "day": Datetime(20200101, 20241231, datetime_format="%Y%m%d", missing_codes=[0]),
    "hour": TimeOfDay(),
    "at": Datetime("2020-01-01 00:00:00", "2024-12-31 23:59:59", datetime_format=MOMENT),
    "patient": Key("P[0-9]{4}"),
}

CRITERIA = [
    Criterion(what="share", where={"ward": "A"}, among={"ill": True}, within=0.1),
    Criterion(what="mean", of="age", where={"ill": True}, minus={"ill": False}, above=1),
    Criterion(what="coefficient", of="age", on=["ill"], relative=0.3),
]

QUESTIONS = [
    *CRITERIA,
    Question(what="share", where={"town": ["town 3", "town 4"]}, among={"age": Between(20, 45)}),
    Question(what="count", where={"weight": Between(11.5, 40), "fee": Between(high=301)}),
    Question(what="mean", of="weight", where={"ward": "A", "seen": Between(high="2021-03-03")}),
    Question(what="count", where={"day": "20200229", "diagnosis": None, "agreed": "J"}),
]

FEW = "weight", "town"
"""What few rows hide; in all other columns the first question may stop a fit."""


def light(rows):
    return ~(rows["weight"] > 1e6)


CONSTRAINTS = [
    Inequality("age", "weight"),
    FixedCombinations(["ward", "ill"], [("A", True), ("B", False), (None, False)]),
    ProgrammableConstraint(light),
]


def table(num_rows, seed):
    rng = np.random.default_rng(seed)
    days = pd.to_timedelta(rng.integers(0, 2_000, num_rows), unit="D")
    return pd.DataFrame(
        {
            "ward": rng.choice(["A", "B", "C", "D"], num_rows).astype(object),
            "age": rng.normal(50, 30, num_rows),
            "seen": pd.Timestamp("2019-06-01") + days,
            "ill": rng.random(num_rows) < 0.5,
            "weight": np.exp(rng.normal(3, 2, num_rows)),
            "town": rng.choice([f"town {i}" for i in range(50)], num_rows).astype(object),
            "fee": [f"${fee:.2f}" for fee in rng.normal(300, 200, num_rows)],
            "agreed": rng.choice(["J", "N", "nein"], num_rows).astype(object),
            "diagnosis": rng.choice(["A00", "B1.2", "C", "-", ""], num_rows).astype(object),
            "day": rng.choice([0, 20200229, 20210229, 20300101, -5], num_rows),
            "hour": np.array(
                [time(hour, 30, seed) for hour in rng.integers(0, 24, num_rows)], object
            ),
            "at": (pd.Timestamp("2020-06-01") + days * (1 + seed / 1_000)).strftime(MOMENT),
            "patient": rng.integers(0, 50 * (seed + 1), num_rows),
        }
    )


@pytest.fixture
def fixed_answers(monkeypatch, undrawn):
    """The noisy answers are the same whatever the exact ones are; noise alone for values."""

    def noisy(answer, stddev, words):
        if stddev == 0:
            return answer
        return np.random.default_rng(answer.size).integers(-40, 400, answer.shape)

    def none_found(self, mu_squared, delta, **asked):
        return {name: [(None, 3)] for name in asked["names"]}

    monkeypatch.setattr(curator, "_noisy", noisy)
    monkeypatch.setattr(curator.Curator, "discover", none_found)
    monkeypatch.setattr(bootstrap, "AUTOMATIC", 2)  # refits of public answers take long


def in_text(frame, folder):
    """In a file of text, of whose cells other ones are no numbers."""
    path = folder / f"{int(frame['age'].abs().sum())}.csv"
    odd = frame["age"] > frame["age"].iloc[0]
    written = frame.astype({"age": object, "weight": object})
    written.loc[odd, ["age", "weight"]] = "<5"
    written.to_csv(path, index=False)
    return CsvFiles(path, header=True, dtypes={"weight": "Float32"})


def observed(private, tmp_path, **settings):
    told = []
    with heard() as said:
        asked = {"progress": bar_into(told), "allow_lost": FEW, **settings}
        try:
            fitted = fit_table(private, COLUMNS, 1.0, **asked)
        except DomainMismatchError as error:
            told.append(str(error))
            fitted = error.resume(private)
    return {
        **let_out(fitted, said, told),
        "keys": fitted.complete(pd.DataFrame({"ill": [True, False]})).to_csv(),
        "officer": str(fitted.report(audience="officer")),
        "accepted": str(fitted.accept(CRITERIA)),
        "answers": [
            str(fitted.answer("share", where={"ward": "A"}, among={"ill": True})),
            str(fitted.answer("mean", of="age", where={"ward": "B", "ill": False})),
            str(fitted.answer("quantile", of="seen", q=0.5)),
            str(fitted.answer("table", of=["ward", "ill"])),
        ],
    }


@pytest.mark.long
@pytest.mark.parametrize(
    ("settings", "given"),
    [
        ({}, in_memory),
        ({}, in_text),
        ({"target": {"ill": 6, "town": 2}}, in_memory),
        ({"questions": QUESTIONS}, in_memory),
        ({"constraints": CONSTRAINTS}, in_memory),
        ({"constraints": CONSTRAINTS}, in_files),
        ({"prior": table(900, 7).drop(columns="town")}, in_memory),
        ({"prior": table(900, 7), "constraints": CONSTRAINTS}, in_files),
    ],
)
def test_nothing_depends_on_the_values(settings, given, fixed_answers, tmp_path):
    one, two = (
        observed(given(table(400, seed), tmp_path), tmp_path, **settings) for seed in (0, 1)
    )
    assert one == two


@pytest.mark.long
@pytest.mark.parametrize(
    ("given", "people"),
    [
        (in_memory, {}),
        (in_files, {}),
        (in_memory, {"people": People("patient", max_rows=2)}),
        (in_files, {"people": People("patient", max_rows=2)}),
    ],
)
def test_nothing_depends_on_the_number_of_rows_under_add_remove(
    given, people, fixed_answers, tmp_path, monkeypatch
):
    monkeypatch.setattr("sdv_privpgd.sources.arrow.BLOCK", 100)
    settings = {"adjacency": "add_remove", "delta": 1e-5, **people}
    one = observed(given(table(400, 0), tmp_path), tmp_path, **settings)
    for num_rows in (0, 1, 900):
        other = observed(given(table(num_rows, 2), tmp_path), tmp_path, **settings)
        assert one == other, num_rows


def test_no_canary_is_in_its_file(tmp_path):
    private = table(400, 0)
    private.loc[0, ["ward", "town"]] = TEXT
    private.loc[1, ["age", "weight"]] = NUMBER
    private.loc[2, ["age", "weight"]] = WHOLE
    private["patient"] = TEXT
    fitted = fit_table(private, COLUMNS, 5.0, allow_lost=list(COLUMNS))
    path = tmp_path / "model.zip"
    fitted.save(path)
    assert set(traces(pickle.dumps(private))) >= {TEXT, str(NUMBER), str(WHOLE)}
    with zipfile.ZipFile(path) as archive:
        assert [found for name in archive.namelist() for found in traces(archive.read(name))] == []
    assert traces(pickle.dumps(fitted)) == []
    assert traces(repr(fitted)) == []


@pytest.mark.long
def test_the_comparison_notices_a_leak(fixed_answers, tmp_path, monkeypatch):
    from sdv_privpgd.fitting.fit import Fit

    ask = Fit.ask

    def leaking(self, table, *rest, **more):
        object.__setattr__(self.settings, "seed", int(np.abs(table._source.columns["age"]).sum()))
        return ask(self, table, *rest, **more)

    monkeypatch.setattr(Fit, "ask", leaking)
    one, two = (observed(table(400, seed), tmp_path) for seed in (0, 1))
    assert one != two


@pytest.mark.long
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Zurich"])
def test_no_cell_decides_the_unit_of_dates(fixed_answers, zone):
    """In pandas 3 a column has the unit of its cells: seconds where none can be read."""
    texts = ["soon", "2021-05-05", "2021-05-05 00:00:00.5", "2021-05-05 00:00:00.000000001"]
    moments = [np.datetime64("2021-05-05", unit) for unit in ("s", "ms", "us", "ns")]
    found = set()
    for cells in (*([text] + ["soon"] * 99 for text in texts), *([each] * 100 for each in moments)):
        dates = pd.to_datetime(pd.Series(cells), errors="coerce", format="ISO8601")
        for own in (dates, dates.astype("category")):
            if zone is not None and own is dates:
                own = own.dt.tz_localize(zone)
            seen = Datetime(date(2020, 1, 1), date(2024, 12, 31))
            told = {"epsilon": 1.0, "method": "privpgd+pgm", "allow_lost": ["seen"]}
            fitted = fit_table(pd.DataFrame({"seen": own}), {"seen": seen}, **told)
            found.add((own is dates, str(fitted.sample(5)["seen"].dtype)))
    assert len(found) == 2


@pytest.mark.parametrize("last", ["2021-05-05 10:00:00.5", "2021-05-05", "soon"])
def test_no_cell_of_text_decides_the_unit_of_dates(last, fixed_answers):
    """Arrow's reader has seconds, nanoseconds if one cell needs them, text if one is no date."""

    def unit(last):
        text = "\n".join(["seen", *["2021-05-05 10:00:00"] * 99, last])
        read = pd.read_csv(io.BytesIO(text.encode()), engine="pyarrow")
        seen = Datetime(date(2020, 1, 1), date(2024, 12, 31))
        settings: dict = {"method": "privpgd+pgm", "allow_lost": ["seen"]}
        fitted = fit_table(read, {"seen": seen}, epsilon=1.0, **settings)
        return read["seen"].dtype, fitted.sample(5)["seen"].dtype

    (own, told), (other, told_then) = unit("2021-05-05 10:00:00"), unit(last)
    assert own == "M8[s]"
    assert (own == other) == (last == "2021-05-05")
    assert told == told_then


@pytest.mark.parametrize("has_header", [True, False])
@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize(
    "cell", ["a\rb", "\r" * 9, "a\r", "\0", "a\r\nb", 'a"\r', "\ufeff", "\x1a", "#", "\u2028"]
)
def test_no_cell_of_text_decides_what_a_record_is(cell, place, has_header, tmp_path):
    facts = {"free": {"sdtype": "categorical"}, "age": {"sdtype": "numerical"}}
    found = []
    for given in ("A", cell):
        free = ["A", "B", "C"]
        free[place] = given
        frame = pd.DataFrame({"free": free, "age": [1, 2, 3]})
        frame.to_csv(tmp_path / "table.csv", index=False, header=has_header)  # quotes no \r
        source = CsvSource(tmp_path / "table.csv", facts, Dialect(header=has_header))
        assert source.num_rows() == 3
        (batch,) = source.batches(["free", "age"])
        assert batch.columns["age"].tolist() == [1, 2, 3]
        found.append(np.delete(batch.columns["free"].to_numpy(dtype=object), place).tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("cell", ['"', '"a', 'a"', '""', '"a" b', '"\r', ","])
def test_no_cell_of_unquoted_text_decides_what_a_record_is(cell, place, tmp_path):
    free = ["A", "B", "C"]
    free[place] = cell
    lines = ["free\tage", *(f"{each}\t{age}" for age, each in enumerate(free))]
    (tmp_path / "table.tsv").write_bytes("\n".join(lines).encode())
    source = CsvSource(tmp_path / "table.tsv", {}, Dialect(header=True, unquoted=True))
    (batch,) = source.batches(["free", "age"])
    assert batch.columns["age"].tolist() == ["0", "1", "2"]
    free[place] = cell.replace("\r", " ")
    assert batch.columns["free"].tolist() == free


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize(
    ("encoding", "cell", "read"),
    [
        (None, b"J\xf6rg", "Jörg"),
        ("ascii", b"\x80", "€"),
        ("cp1252", b"\x81", "\ufffd"),
        ("utf-16-le", b"\x41\xd8", "AØ"),
    ],
)
def test_no_cell_that_is_not_in_the_encoding_stops_a_reading(encoding, cell, read, place, tmp_path):
    text = "age,free\n1,A\n1,B\n1,C".encode(encoding or "utf-8")
    text = text.replace("ABC"[place].encode(encoding or "utf-8"), cell)
    (tmp_path / "table.csv").write_bytes(text)
    source = CsvSource(tmp_path / "table.csv", {}, Dialect(header=True, encoding=encoding))
    (batch,) = source.batches(["age", "free"])
    expected = [*"ABC"]
    expected[place] = read
    assert batch.columns["free"].tolist() == expected


@pytest.mark.parametrize("encoded", [True, False])
@pytest.mark.parametrize("form", [pa.string(), pa.large_string()])
def test_no_cell_of_arrow_that_is_no_text_stops_a_reading(form, encoded, tmp_path):
    cells = pa.array([b"A", b"\xff", b"B", b"\xfe", None], pa.binary())
    column = cells.cast(pa.large_binary()).view(form) if "large" in str(form) else cells.view(form)
    table = pa.table({"free": column.dictionary_encode() if encoded else column})
    parquet.write_table(table, tmp_path / "table.parquet")
    for given in (table, tmp_path / "table.parquet"):
        (batch,) = open_source(given).batches(["free"])
        found = batch.columns["free"].astype(object).fillna("missing").tolist()
        assert found == ["A", "\ufffd", "B", "\ufffd", "missing"]


@pytest.mark.parametrize("row", [None, "age", "\0"])
@pytest.mark.parametrize("has_header", [True, False])
def test_a_row_of_a_single_cell_is_one_whatever_it_holds(row, has_header, tmp_path):
    facts, path = {"age": {"sdtype": "numerical"}}, tmp_path / "table.csv"
    frame = pl.DataFrame({"age": [row, "1", "2"]})
    frame.write_csv(path, include_header=has_header)  # a missing cell is an empty line
    assert CsvSource(path, facts, Dialect(header=has_header)).num_rows() == 3
