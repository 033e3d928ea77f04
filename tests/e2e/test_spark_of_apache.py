"""Spark's own workers, where there is a Java: two processes that fail and die."""

import os
import secrets
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import numpy as np
import pandas as pd
import pytest
from processes import python
from same_rows import fit_linked, homes_and_people, observed, table

from sdv_privpgd.privacy import curator
from sdv_privpgd.sources import spark
from sdv_privpgd.sources.locate import open_source
from sdv_privpgd.sources.source import SourceError

SECRET = "Wilhelmina"
METHOD = {"method": "independent+pgm"}


@pytest.mark.slow
@pytest.mark.skipif(which("java") is None, reason="no Java")
@pytest.mark.skipif(find_spec("py4j") is None, reason="PySpark is not here, or its client alone")
def test_two_worker_processes_count_each_row_once_and_quote_none(tmp_path):
    tests = Path(__file__).parents[1]
    done = python(
        __file__, tmp_path, PYTHONPATH=os.pathsep.join([str(tests), str(tests.parent)]),
        PYSPARK_PYTHON=sys.executable,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert SECRET not in done.stdout + done.stderr


class Numbers:
    """How often each number comes, and which processes have counted."""

    def zero(self):
        return {"numbers": Counter(), "processes": set()}

    def add(self, total, item):
        total["numbers"].update(item["id"].tolist())
        total["processes"].add(os.getpid())

    def merge(self, total, other):
        total["numbers"].update(other["numbers"])
        total["processes"] |= other["processes"]


class Once(Numbers):
    """Something happens to one task when it has counted; repeated, it does not."""

    def __init__(self, marker, happens):
        self.marker, self.happens = marker, happens

    def add(self, total, item):
        super().add(total, item)
        try:
            os.close(os.open(self.marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        self.happens()


class Quotes(Numbers):
    def add(self, total, item):
        raise KeyError(f"{item['name'].iloc[0]} is unknown")


def fail():
    raise ConnectionError("the first attempt")


def die():
    os._exit(1)


def main(folder):
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.driver.memory", "512m")
        .config("spark.executor.memory", "512m")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    counted_once(session, folder)
    nothing_is_quoted(session)
    same_model(session)
    same_linked_models(session)
    refused_where_python_is_another(session)
    session.stop()


def counted_once(session, folder):
    source = open_source(session.range(2_000).repartition(8))
    each_once = Counter(range(2_000))
    total = source.total(["id"], Numbers())
    assert total["numbers"] == each_once
    assert len(total["processes"]) > 1
    for happens in (fail, die):
        marker = f"{folder}/{happens.__name__}"
        assert source.total(["id"], Once(marker, happens))["numbers"] == each_once, happens
        assert Path(marker).exists()


def nothing_is_quoted(session):
    frame = session.range(100).selectExpr("id", f"'{SECRET}' as name")
    with pytest.raises(SourceError, match=r"DataFrame cannot be read: a worker's KeyError\.$"):
        open_source(frame).total(["name"], Quotes())


def same_model(session):
    """Under the same noise a fit is the pandas frame's."""

    def noisy(answer, stddev, words):
        if stddev == 0:
            return answer
        return answer + np.random.default_rng(answer.size).integers(-9, 10, answer.shape)

    curator._noisy = noisy
    frame = table(900)
    private = session.createDataFrame(frame).repartition(5)
    assert observed(private, **METHOD) == observed(frame, **METHOD)


def same_linked_models(session):
    """So are those of linked tables, whose rows come in an order of their own."""
    frames = homes_and_people()
    given = {name: session.createDataFrame(own).repartition(5) for name, own in frames.items()}
    spark.BLOCK = 100
    secrets.token_bytes = bytes  # draws which children are used
    found, expected = (fit_linked(each, **METHOD).sample(100) for each in (given, frames))
    for name in frames:
        pd.testing.assert_frame_equal(found[name], expected[name])
    names = session.range(60).selectExpr(f"'{SECRET}' as name").repartition(3)
    broken = names.selectExpr("name", "assert_true(length(name) < 3) as held")
    with pytest.raises(SourceError, match=r"DataFrame cannot be read: ") as caught:
        list(open_source(broken).ordered(["held"]).batches(["held"]))
    assert SECRET not in str(caught.value)


def refused_where_python_is_another(session):
    session.sparkContext.pythonExec = "/bin/false"
    with pytest.raises(SourceError, match=r"os\.environ\['PYSPARK_PYTHON'\] = sys\.executable"):
        open_source(session.range(3))


if __name__ == "__main__":
    main(sys.argv[1])
