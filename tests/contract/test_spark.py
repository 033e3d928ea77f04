"""Rows in Spark are counted where they are, each once, and nothing but totals comes from there.

But where rows are told of others: those come, in one order each time.

The server is Sail, which speaks Spark's protocol without a JVM; ``e2e/test_spark_of_apache.py`` has
Spark's own.
"""

import _thread
import contextlib
import datetime
import io
import logging
import os
import pickle
import secrets
import time
from collections import Counter
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from made_up import heard
from processes import python_says
from same_rows import COLUMNS, fit_linked, homes_and_people, observed, table
from visiting import COLUMNS as VISITED
from visiting import ORDER, visits

from sdv_privpgd import Categorical, Datetime, Numerical, fit_table
from sdv_privpgd.columns.arrow_dtypes import zone_of_spark
from sdv_privpgd.columns.bins import SIGNED_POWERS
from sdv_privpgd.columns.readings import Reading
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.privacy import curator
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.ledger import FitLedger, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.privacy.streams import Looking, Seen
from sdv_privpgd.sources.locate import of_people, open_source
from sdv_privpgd.sources.source import Cluster, Source, SourceError

pytest.importorskip("pyspark.sql.connect.session", exc_type=ImportError)
errors = pytest.importorskip("pyspark.errors")
sail = pytest.importorskip("pysail.spark")
spark_source = import_module("sdv_privpgd.sources.spark")

ZONE = "Asia/Tokyo"
SECRET = "Wilhelmina"


def connected(server):
    from pyspark.sql import SparkSession

    server.start(background=True)
    host, port = server.listening_address
    session = SparkSession.builder.remote(f"sc://{host}:{port}").create()
    session.conf.set("spark.sql.session.timeZone", ZONE)
    return session


@pytest.fixture(scope="module")
def spark():
    server = sail.SparkConnectServer("127.0.0.1", 0)
    session = connected(server)
    yield session
    session.stop()
    server.stop()


def in_spark(spark, frames, parts):
    return {name: spark.createDataFrame(own).repartition(parts) for name, own in frames.items()}


class Cells:
    """How often each cell of each column occurs, as text; and how many totals were added up."""

    def zero(self):
        return {"merged": Counter()}

    def add(self, total, item):
        for name, column in item.items():
            total.setdefault(name, Counter()).update(map(str, column))

    def merge(self, total, other):
        total["merged"][os.getpid()] += 1
        for name, found in other.items():
            total.setdefault(name, Counter()).update(found)


def cells_of(frame, *names):
    total = open_source(frame).total(names, Cells())
    return [dict(total.get(name, {})) for name in names]


@pytest.mark.long
@pytest.mark.parametrize("parts", [1, 17])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_the_model_is_the_frames_to_the_byte(spark, parts, adjacency, frozen):
    settings = {"method": "independent+pgm", "adjacency": adjacency, "delta": 1e-5}
    frame = table(1_500)
    found = observed(spark.createDataFrame(frame).repartition(parts), **settings)
    assert found == observed(frame, **settings)


def test_days_decimals_small_numbers_and_instants_are_read_as_spark_shows_them(spark, frozen):
    days = [datetime.date(1950, 1, 1) + datetime.timedelta(days=9 * i) for i in range(600)]
    prices = [None if i % 7 == 0 else Decimal(i) / 4 for i in range(600)]
    frame = pd.DataFrame({"born": days, "price": prices, "floor": np.arange(600) % 50})
    private = spark.createDataFrame(frame, "born date, price decimal(9, 2), floor smallint")
    columns = {"born": Datetime(), "price": Numerical(), "floor": Numerical(0, 49)}
    kinds = pa.date32(), pa.decimal128(9, 2)
    own = dict(zip(("born", "price"), map(pd.ArrowDtype, kinds), strict=True))
    frame = frame.astype({**own, "floor": "Int16"})
    settings = {"method": "independent+pgm"}
    one, other = (fit_table(each, columns, 20.0, **settings) for each in (private, frame))
    pd.testing.assert_frame_equal(one.sample(50), other.sample(50))
    assert one.ledger.to_json() == other.ledger.to_json()
    frame = spark.sql(
        "select timestamp '2024-01-31 00:30:00' as here, "
        "timestamp '2024-01-30 15:30:00Z' as there, "
        "timestamp_ntz '2024-01-31 00:30:00' as nowhere"
    )
    source = open_source(frame)
    assert {str(dtype) for dtype in source.dtypes.values()} == {"datetime64[ns]"}
    assert cells_of(frame, *source.names) == 3 * [{"2024-01-31 00:30:00": 1}]


def test_a_frame_of_spark_is_a_source_and_a_cluster_that_hands_out_no_row(spark):
    frame = spark.createDataFrame(table(10)).repartition(2)
    source = open_source(frame)
    assert isinstance(source, Source)
    assert isinstance(source, Cluster)
    assert list(source.names) == list(table(10))
    assert source.num_rows() == 10
    assert dict(source.dtypes) == frame.toPandas().dtypes.to_dict()
    with pytest.raises(SourceError, match="stay on its workers"):
        next(source.batches(["age"]))


@pytest.mark.parametrize("name", ["a.b", "a b`c", "part", "c0", "größe", "SELECT"])
def test_columns_may_be_called_anything(spark, name):
    frame = spark.createDataFrame(pd.DataFrame({"c1": [1, 2], name: ["x", None]}))
    assert cells_of(frame, name, "c1") == [{"x": 1, "nan": 1}, {"1": 1, "2": 1}]


@pytest.mark.parametrize("parts", [1, 2, 17, 40])
def test_each_row_is_counted_once_by_a_tree_of_sums(spark, parts, monkeypatch):
    monkeypatch.setattr(spark_source, "WIDTH", 4)
    frame = spark.range(500).repartition(parts)
    assert cells_of(frame, "id") == [{str(number): 1 for number in range(500)}]


def test_rows_that_are_not_there_are_none(spark):
    frame = spark.range(50).repartition(4)
    source = open_source(frame.where("id < 0"))
    assert source.num_rows() == 0
    assert source.total(["id"], Looking([])).tables[()] == 0
    assert cells_of(frame.where("id = 7"), "id") == [{"7": 1}]


class Noise:
    """A total that no compression makes small."""

    def zero(self):
        return [0, np.random.default_rng(0).bytes(2_500_000)]

    def add(self, total, item):
        total[0] += len(item["id"])

    def merge(self, total, other):
        total[0] += other[0]


def test_large_totals_come_in_pieces(spark, monkeypatch):
    came = sent_to_the_driver(spark, monkeypatch)
    total = open_source(spark.range(99).repartition(3)).total(["id"], Noise())
    assert total == [99, Noise().zero()[1]]
    assert len(came[-1]) == 3


def sent_to_the_driver(spark, monkeypatch):
    """All rows that the driver will have collected."""
    kind, came = type(spark.range(1)), []
    real = kind.collect

    def collect(frame):
        came.append(real(frame))
        return came[-1]

    monkeypatch.setattr(kind, "collect", collect)
    for name in ("toPandas", "toArrow", "toLocalIterator"):
        monkeypatch.setattr(kind, name, None)
    return came


def test_one_scan_a_round_and_nothing_but_totals_to_the_driver(spark, monkeypatch):
    frame = table(600)
    frame["town"] = SECRET
    private = spark.createDataFrame(frame).repartition(20)
    came = sent_to_the_driver(spark, monkeypatch)
    declared = {name: COLUMNS[name] for name in ("ward", "age", "ill")}
    # A fifth of the wards are not declared, which noise may make a reason to stop.
    private = private.select(*declared)
    fit_table(private, declared, 5.0, method="independent+pgm", allow_lost=["ward"])
    ready, *others = came
    assert [list(row) for row in ready] == [[0, b""]]
    totals = [rows for rows in others if hasattr(rows[0], "total")]
    sizes = [rows[0][0] for rows in others if not hasattr(rows[0], "total")]
    assert set(sizes) == {600}
    assert len(totals) > 1
    for rows in totals:
        found = spark_source.opened(b"".join(bytes(row.total) for row in rows))
        tables = found.tables.values() if isinstance(found, Seen) else found
        assert all(isinstance(each, np.ndarray) and each.dtype == np.int64 for each in tables)
        assert SECRET not in str(rows)


def of_its_shape_alone(answer, stddev, words):
    fixed = np.random.default_rng(answer.size).integers(-20, 80, answer.shape)
    return fixed if stddev else answer


@pytest.mark.long
def test_with_the_same_answers_nothing_else_says_which_tables_they_were(
    spark, monkeypatch, caplog, capfd
):
    monkeypatch.setattr(curator, "_noisy", of_its_shape_alone)
    monkeypatch.setattr(spark_source, "BLOCK", 100)
    columns = {name: COLUMNS[name] for name in ("ward", "age", "left", "ill")}
    one = table(400)[list(columns)]
    other = one.assign(ward=SECRET, age=10**12, left=pd.Timestamp("1850-01-01"), ill=True)
    homes, others = homes_and_people(120), homes_and_people(90)
    others["people"] = others["people"].assign(age=10**9, job=SECRET)

    def said_of(fit, *given):
        caplog.clear()
        capfd.readouterr()
        with caplog.at_level("DEBUG"), heard() as said:
            fitted = fit(*given, method="independent+pgm")
        assert SECRET not in caplog.text
        return [pickle.dumps(fitted), list(map(str, said)), capfd.readouterr()]

    one, other = (
        said_of(fit_table, spark.createDataFrame(frame).repartition(3), columns, 5.0)
        for frame in (one, other)
    )
    assert one == other
    one, other = (said_of(fit_linked, in_spark(spark, own, 3)) for own in (homes, others))
    assert one == other


class FailsAtFirst(Cells):
    """One task fails when it has added up its rows; repeated, it does not."""

    def __init__(self, marker):
        self.marker = marker

    def add(self, total, item):
        super().add(total, item)
        try:
            self.marker.touch(exist_ok=False)
        except FileExistsError:
            return
        raise ConnectionError("the first attempt")


def repeated(marker):
    """The cells of rows of which one task is repeated, by a mode of the server that repeats."""
    server = sail.SparkConnectServer("127.0.0.1", 0)
    session = connected(server)
    try:
        frame = session.range(300).repartition(5)
        return open_source(frame).total(["id"], FailsAtFirst(marker))["id"]
    finally:
        session.stop()
        server.stop()


def test_a_task_that_is_repeated_counts_once(tmp_path, monkeypatch):
    monkeypatch.setenv("SAIL_MODE", "local-cluster")
    for attempt in range(4):
        marker = tmp_path / f"failed {attempt}"
        try:
            found = repeated(marker)
        except SourceError as error:
            # On a busy machine its workers may not come up in time, and no task runs again.
            if "SparkRuntimeException" not in str(error) or attempt == 3:
                raise
        else:
            assert marker.exists()
            assert found == {str(number): 1 for number in range(300)}
            return


class Quotes(Cells):
    def add(self, total, item):
        raise KeyError(f"{item['name'].iloc[0]} is unknown")


def test_a_worker_s_exception_names_its_kind_alone(spark, capfd):
    frame = spark.createDataFrame(pd.DataFrame({"name": [SECRET] * 40})).repartition(20)
    with pytest.raises(SourceError) as caught:
        open_source(frame).total(["name"], Quotes())
    assert str(caught.value) == "The Spark DataFrame cannot be read: a worker's KeyError."
    said = capfd.readouterr()
    assert SECRET not in said.out + said.err + repr(caught.value.__cause__)
    assert cells_of(frame, "name") == [{SECRET: 40}]


def interrupts(spark, monkeypatch):
    """The tags of all that will have been interrupted."""
    stopped, real = [], type(spark).interruptTag
    monkeypatch.setattr(
        type(spark), "interruptTag", lambda self, tag: [stopped.append(tag), real(self, tag)]
    )
    return stopped


class Interrupts(Cells):
    def __init__(self, marker):
        self.marker = marker

    def add(self, total, item):
        time.sleep(0.3)  # a lock of gRPC is never released if it is interrupted while it asks
        with contextlib.suppress(FileExistsError):  # one of the tasks, and not each
            self.marker.touch(exist_ok=False)
            _thread.interrupt_main()  # Sail's workers are threads of this process
        time.sleep(2)


def test_pyspark_logs_no_cell_of_a_query_that_fails(monkeypatch):
    from pyspark.logger import PySparkLogger

    logger, said = PySparkLogger.getLogger("SQLQueryContextLogger"), io.StringIO()
    of_answers = logging.getLogger("py4j.clientserver")
    for each in (logger, of_answers):
        monkeypatch.setattr(each, "handlers", [logging.StreamHandler(said)])
    monkeypatch.setattr(of_answers, "level", logging.DEBUG)

    class Failed(errors.PySparkException):
        def getQueryContext(self):
            return [SimpleNamespace(contextType=lambda: errors.QueryContextType.SQL)]

    failed = Failed(f"[CAST_INVALID_INPUT] The value '{SECRET}' is malformed.")
    with spark_source._quoting_no_worker():
        failed._log_exception()
        of_answers.debug("Answer received: %s", failed)
    assert said.getvalue() == ""
    failed._log_exception()
    of_answers.debug("Answer received: %s", failed)
    assert said.getvalue().count(SECRET) == 2


def test_ctrl_c_stops_the_workers_and_the_next_total_is_right(spark, monkeypatch, tmp_path):
    stopped = interrupts(spark, monkeypatch)
    frame = spark.range(10)
    source = open_source(frame)
    assert source.num_rows() == 10
    with pytest.raises(KeyboardInterrupt):
        source.total(["id"], Interrupts(tmp_path / "interrupted"))
    assert len(stopped) == 1
    assert not spark.getTags()
    assert source.total(["id"], Cells())["id"] == {str(number): 1 for number in range(10)}


def test_what_is_no_table_or_has_no_readable_type_is_refused(spark):
    kinds = ("struct(id AS a)", "array(id)", "map(id, id)", "make_dt_interval(1)", "binary('x')")
    table = spark.range(8).selectExpr(*(f"{kind} AS c{n}" for n, kind in enumerate(kinds)))
    columns = {f"c{n}": Categorical() for n in range(len(kinds))}
    with pytest.raises(ValueError, match="No type of column reads") as caught:
        fit_table(table, columns, epsilon=1.0)
    assert [name for name in columns if f"'{name}'" not in str(caught.value)] == ["c4"]
    for wrong in (spark, spark.range(1).id, spark.range(1).groupBy("id")):
        with pytest.raises(SourceError, match="Give a Spark DataFrame"):
            open_source(wrong)
    stream = type("DataFrame", (), {"mapInArrow": None, "isStreaming": True})
    with pytest.raises(SourceError, match="A stream has no end"):
        spark_source.SparkSource(stream())
    frame = spark.createDataFrame(pd.DataFrame({"name": [SECRET]}))
    broken = frame.selectExpr("cast(name as int) as number", "assert_true(name = 'x') as held")
    with pytest.raises(SourceError, match=r"^The Spark DataFrame cannot be read: ") as caught:
        open_source(broken).total(["number", "held"], Cells())
    assert SECRET not in str(caught.value)


def test_workers_with_another_version_are_refused_before_anything_is_counted(spark, monkeypatch):
    old = spark_source.Ready(version="0.0.1")
    monkeypatch.setattr(spark_source, "Ready", lambda: old)
    with pytest.raises(SourceError, match=r"cannot run sdv_privpgd .*PYSPARK_PYTHON"):
        open_source(spark.range(3))


class Missing:
    def __reduce__(self):
        return import_module, ("no_such_package",)

    def __call__(self, batches):
        yield from batches


def test_workers_without_the_package_are_refused_before_anything_is_counted(spark, monkeypatch):
    monkeypatch.setattr(spark_source, "Ready", Missing)
    with pytest.raises(SourceError, match="Install the same version of sdv-privpgd, with pyarrow"):
        open_source(spark.range(3))


@pytest.mark.parametrize("zone", ["Z", "+01:00", "Europe/Zurich", "GMT"])
def test_time_zones_of_spark_are_known(zone):
    assert pd.Timestamp(0, tz=zone_of_spark(zone)).tz is not None


def test_workers_need_little_and_write_to_nothing_but_their_rows():
    done = python_says(
        "-c",
        "import sys, sdv_privpgd.privacy.streams\n"
        "import sdv_privpgd.sources.spark\n"
        "print({'torch', 'scipy', 'sdv', 'sklearn', 'numba', 'jaxtyping'} & set(sys.modules))",
    )
    assert done == "set()\n"
    source = Path(spark_source.__file__).read_text()
    for word in ("ccumulator", "global ", "foreach", "open(", "persist", "cache("):
        assert word not in source, word
    with pytest.raises(SourceError, match=r"set spark\.sql\.session\.timeZone"):
        zone_of_spark("PST8")


@pytest.mark.parametrize("most", [1, 3])
def test_no_more_than_so_many_rows_of_a_person_are_read(spark, most):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"who": rng.integers(0, 40, 400).astype(float), "x": range(400)})
    frame.loc[::7, "who"] = np.nan
    source = of_people(open_source(spark.createDataFrame(frame).repartition(5)), "who", most)
    numbers = frame["who"].value_counts(dropna=False)
    whose, which = (source.total([name], Cells())[name] for name in ("who", "x"))
    kept = {str(who): min(number, most) for who, number in numbers.items()}
    assert {who.replace("None", "nan"): number for who, number in whose.items()} == kept
    assert source.num_rows() == sum(kept.values())
    assert source.total(["x"], Cells())["x"] == which  # the same rows again
    other = of_people(open_source(spark.createDataFrame(frame).repartition(5)), "who", most)
    assert other.total(["x"], Cells())["x"] != which  # another key


@pytest.mark.parametrize("kind", ["text", "whole numbers", "floats", "bytes"])
def test_workers_spell_people_as_everybody_does(spark, kind):
    whose = np.arange(60) % 20
    spelled = [str, "0{}".format, "{}.0 ".format]
    texts = [spelled[row // 20](who) for row, who in enumerate(whose.tolist())]
    who = {"text": texts, "whole numbers": whose + 2**60, "floats": whose / 2}
    who["bytes"] = [text.encode() for text in texts]
    frame = pd.DataFrame({"who": who[kind], "x": [b"no text: \xff"] * 60})
    source = of_people(open_source(spark.createDataFrame(frame).repartition(4)), "who", 2, True)
    assert source.num_rows() == 40
    assert source.total(["number"], Cells())["number"] == {"2": 40}
    assert "x" in source.names
    assert len(source.names) == 2


@pytest.mark.parametrize("who", ["who", "some"])
def test_rows_of_a_person_count_as_one_in_spark(spark, who):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"who": rng.integers(0, 40, 400).astype(float), "ill": [True] * 400})
    frame["some"] = frame["who"].mask(frame.index % 7 == 0)
    columns = {"ill": {"sdtype": "boolean"}}
    settings = {"has_others": True, "people": (who, 3, True)}
    given = spark.createDataFrame(frame).repartition(5)
    opened, errors = PrivateTable.opened(given, columns, {}, **settings)
    assert errors == []
    ledger = PrivacyLedger.open(1.0, 1e-5, Adjacency.ADD_REMOVE, 3, people=who, weighed=True)
    people = frame[who].nunique(dropna=False)
    counts = opened.curator(Schema.from_sdv(columns), FitLedger(ledger))._dataset.counts(("ill",))
    assert counts.tolist() == [0, 6 * people, 0]
    grid = SIGNED_POWERS
    asks = frozenset(["categories"])
    reading = Reading(name="ill", asks=asks, cells=grid)
    first = opened.first_queries([reading], FitLedger(ledger))
    assert first._dataset.counts(()) == 6 * people
    assert dict(first._values.counts("ill").pairs()) == {True: 6 * people, None: 0}


@pytest.mark.long
@pytest.mark.parametrize("kinds", ["Spark alone", "Spark and pandas"])
def test_linked_tables_are_the_frames(spark, kinds, frozen, monkeypatch):
    monkeypatch.setattr(secrets, "token_bytes", bytes)  # draws which children are used
    monkeypatch.setattr(spark_source, "BLOCK", 500)
    frames, found = homes_and_people(), []
    given = in_spark(spark, frames, 7)
    given |= {} if kinds == "Spark alone" else {"people": frames["people"]}
    for tables in (frames, given):
        with heard() as said:
            fitted = fit_linked(tables, method="independent+pgm")
        rows = fitted.sample(60)
        found.append([fitted.ledger.to_json(), [str(each.message) for each in said]])
        found[-1] += [own.astype(str).to_csv() for own in rows.values()]
        found[-1] += [each.answer.tolist() for each in fitted.answers["people"]]
    assert found[0] == found[1]


def test_visits_are_the_frames(spark, frozen, monkeypatch):
    monkeypatch.setattr(secrets, "token_bytes", bytes)
    frame, found = visits(300), []
    for private in (frame, spark.createDataFrame(frame).repartition(5)):
        fitted = fit_table(private, VISITED, 20.0, method="independent+pgm", **ORDER)
        found.append([fitted.ledger.to_json(), fitted.sample(100).astype(str).to_csv()])
    assert found[0] == found[1]


def in_order(frame, *by):
    batches = [each.columns for each in open_source(frame).ordered(by).batches(by)]
    return [row for columns in batches for row in zip(*map(list, columns.values()), strict=True)]


def test_rows_come_in_an_order_of_their_own_and_each_time(spark, monkeypatch):
    monkeypatch.setattr(spark_source, "BLOCK", 100)
    monkeypatch.setattr(spark_source, "_PIECE", 900)
    cells = [("a", None), (None, "a"), (None, None), *((str(n), str(n % 7)) for n in range(900))]
    frame = spark.createDataFrame(cells, "one string, other string")
    source = open_source(frame.repartition(9)).ordered(["one", "other"])
    read = [list(source.batches(["one", "other"])) for _ in range(2)]
    dones = [each.done for each in read[0]]
    assert dones == sorted(dones)
    assert dones[-1] == 1
    assert len(dones) > 9
    assert max(len(each.columns["one"]) for each in read[0]) < 200
    first, second = (
        pd.concat([pd.DataFrame(each.columns).astype(object) for each in batches]).to_numpy()
        for batches in read
    )
    pd.testing.assert_frame_equal(pd.DataFrame(first), pd.DataFrame(second))
    rows = [tuple(None if pd.isna(cell) else cell for cell in row) for row in first]
    assert Counter(rows) == Counter(cells)
    alone = [each.columns["one"].astype(object) for each in source.batches(["one"])]
    pd.testing.assert_series_equal(
        pd.concat(alone, ignore_index=True), pd.Series(first[:, 0]), check_names=False
    )


def test_rows_of_others_have_no_part_in_the_order(spark, monkeypatch):
    monkeypatch.setattr(secrets, "token_bytes", bytes)
    monkeypatch.setattr(spark_source, "BLOCK", 100)
    frame = spark.range(1_000).repartition(6)
    found = in_order(frame, "id")
    assert in_order(frame.where("id % 3 > 0"), "id") == [row for row in found if row[0] % 3]
    assert in_order(frame.where("id < 0"), "id") == []


def test_what_ends_a_reading_in_order_quotes_no_cell_and_leaves_nothing_running(
    spark, capfd, monkeypatch
):
    stopped = interrupts(spark, monkeypatch)
    frame = spark.createDataFrame(pd.DataFrame({"name": [SECRET] * 40})).repartition(3)
    reading = open_source(frame).ordered(["name"]).batches(["name"])
    assert list(next(reading).columns["name"]) == [SECRET] * 40
    reading.close()
    assert len(stopped) == 1
    assert not spark.getTags()
    broken = frame.selectExpr("name", "cast(assert_true(name = 'x') as string) as held")
    old = spark_source.Rows(60, version="0.0.1")
    for each, name in ((broken, "held"), (frame, "name")):
        with pytest.raises(SourceError, match=r"^The Spark DataFrame cannot be read: ") as caught:
            list(open_source(each).ordered([name]).batches([name]))
        assert SECRET not in str(caught.value) + repr(caught.value.__cause__)
        monkeypatch.setattr(spark_source, "Rows", lambda shift: old)
    said = capfd.readouterr()
    assert SECRET not in said.out + said.err
    assert not spark.getTags()
