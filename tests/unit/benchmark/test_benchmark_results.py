"""Results of the comparison: runs that are kept, means and ratios, and exchanged parts."""

import json
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from processes import python_says

from sdv_privpgd.benchmark.compare import Run, append, canonical, held
from sdv_privpgd.benchmark.fits import Stopwatch
from sdv_privpgd.benchmark.methods import (
    METHODS,
    PREPROCESSINGS,
    SELECTS,
    Compared,
    Preprocessing,
    is_arm,
    names_of,
    parts_of,
    published_epsilon,
)
from sdv_privpgd.benchmark.show import (
    KINDS,
    arms_of,
    in_rank,
    labeled,
    log_ratios,
    of_parts,
    said,
    settings_of_parts,
    summarize,
    table_of_arms,
    write_exchange,
)
from sdv_privpgd.benchmark.tables import RealTable, decoded
from sdv_privpgd.columns.parser import read_table
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.methods.k_way import Independent
from sdv_privpgd.methods.method import ENGINES, Method, engine_of, named_methods
from sdv_privpgd.privacy.accounting import mu_squared_of
from sdv_privpgd.privacy.ledger import FitLedger, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency

DELTA = 1e-5


def a_run(**changes) -> Run:
    settings = canonical({"delta": DELTA, "cells": 32})
    facts = {"method": "MST", "table": "adult", "epsilon": 1.0, "seed": 0, "settings": settings}
    return Run(**{**facts, **changes})


@pytest.mark.parametrize(("epsilon", "ratio"), [(2.5, 1.235), (1.0, 1.314), (0.2, 1.478)])
def test_the_published_noise_is_what_autodp_gave_the_paper(epsilon, ratio):
    # Standard deviations 2.018, 4.901 and 24.10 against the exact 1.634, 3.731 and 16.30.
    spent = published_epsilon(epsilon, DELTA)
    found = math.sqrt(mu_squared_of(epsilon, DELTA) / mu_squared_of(spent, DELTA))
    assert found == pytest.approx(ratio, abs=5e-4)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_a_strategy(name):
    assert isinstance(Compared(name=name).made(0), Method)


def test_a_methods_settings_are_those_that_it_reads():
    given = {"num_particles": 5, "published_epochs": 7, "max_megabytes": 8.0}
    read_by = {
        "MST": {},
        "AIM": {"max_megabytes": 8.0},
        "PrivPGD": {"num_particles": 5},
        "PrivPGD-AIM": {"num_particles": 5, "max_megabytes": 8.0},
        "PrivPGD-published": {"num_particles": 5, "published_epochs": 7},
    }
    for name, settings in read_by.items():
        assert Compared(name=name, **given).settings() == settings
    with pytest.raises(ValueError, match=r"no method 'GAN': choose from .*'AIM'"):
        Compared(name="GAN")


def test_runs_are_read_as_written_and_take_the_place_of_themselves_alone(tmp_path):
    path = tmp_path / "new" / "results.parquet"
    append(path, a_run(), {"rows": 80, "fit_seconds": 1.5}, {"l1": 0.25, "sw1": 0.01})
    rows = pd.read_parquet(path)
    assert rows[["metric", "value"]].to_dict("records") == [
        {"metric": "l1", "value": 0.25},
        {"metric": "sw1", "value": 0.01},
    ]
    assert rows["rows"].tolist() == [80, 80]
    assert rows["peak_mebibytes"].isna().all()
    assert json.loads(rows["versions"][0])["numpy"]
    assert held(path) == {a_run()}
    assert [kept.name for kept in path.parent.iterdir()] == ["results.parquet"]
    path = tmp_path / "results.parquet"
    others = [a_run(seed=1), a_run(epsilon=2.5), a_run(settings=canonical({"delta": 1e-6}))]
    append(path, a_run(), {"error": "MemoryError"}, {})
    for other in others:
        append(path, other, {}, {"l1": 1.0})
    assert a_run() in held(path)
    assert a_run() not in held(path, failed=False)
    append(path, a_run(), {}, {"l1": 2.0})
    rows = pd.read_parquet(path)
    assert sorted(rows["value"]) == [1.0, 1.0, 1.0, 2.0]
    assert rows["error"].isna().all()


def results(values: dict[tuple[str, str], list[float]], metric="l1") -> pd.DataFrame:
    """Rows of runs at one epsilon: (table, method) to a value a seed."""
    rows = [
        {"method": method, "table": table, "seed": seed, "value": value}
        for (table, method), each in values.items()
        for seed, value in enumerate(each)
    ]
    return pd.DataFrame(rows).assign(epsilon=1.0, settings="{}", metric=metric)


def test_means_and_errors_are_of_runs_of_one_table_and_one_setting():
    rows = results({("adult", "MST"): [1.0, 2.0, 3.0], ("bank", "MST"): [5.0]})
    summary = summarize(rows)
    three = summary.loc["adult", 1.0, "MST", "l1"]
    assert three["mean"] == 2.0
    assert three["error"] == pytest.approx(1 / math.sqrt(3))
    assert three["runs"] == 3
    one = summary.loc["bank", 1.0, "MST", "l1"]
    assert said(one["mean"], one["error"]) == "5"
    assert said(0.123456, 0.00234) == "0.123 ± 0.002"
    rows = results({("adult", "AIM"): [1.0, 3.0], ("adult", "MST"): [1.0, 1.0]})
    rows.loc[0, "settings"] = canonical({"delta": DELTA, "max_megabytes": 8})
    rows.loc[1, "settings"] = canonical({"delta": DELTA, "max_megabytes": 80})
    assert labeled(rows)["method"].tolist() == [
        "AIM (max_megabytes 8)",
        "AIM (max_megabytes 80)",
        "MST",
        "MST",
    ]
    assert rows["method"].tolist() == ["AIM", "AIM", "MST", "MST"]


def test_ratios_are_over_the_baselines_mean_on_the_same_table():
    rows = results(
        {
            ("adult", "PrivPGD"): [1.0, 3.0],
            ("adult", "MST"): [8.0, 0.0],
            ("bank", "PrivPGD"): [4.0],
            ("bank", "MST"): [1.0],
            ("nist", "MST"): [1.0],
        }
    )
    found = log_ratios(rows, "PrivPGD").set_index(["table", "method", "seed"])["ratio"]
    assert found["adult", "MST", 0] == 2.0
    assert found["bank", "MST", 0] == -2.0
    assert found["adult", "PrivPGD", 0] == -1.0
    assert ("adult", "MST", 1) not in found.index  # no logarithm
    assert "nist" not in found.index.get_level_values("table")  # no baseline


def test_the_stopwatch_puts_all_time_down_to_stages():
    now = [0.0]
    watch = Stopwatch(lambda: now[0])
    now[0] += 5
    watch.lap("encode")
    for stage in ("measure", "compare", "measure again"):
        for _ in watch([1, 2, 3], stage):
            now[0] += 1
    now[0] += 2  # before the descent
    for _ in watch([1], "descend"):
        now[0] += 4
    now[0] += 7
    watch.lap("local_search")
    assert watch.seconds == {
        "encode": 5, "measure": 6, "consistency": 3, "start": 2, "descend": 4, "local_search": 7
    }  # fmt: skip


_HOLDS_50_MEBIBYTES = """
import numpy as np
from sdv_privpgd.benchmark.fits import PeakMemory
memory = PeakMemory()
held = np.ones(50 << 17)
del held
print(memory.mebibytes())
"""


def test_peak_memory_is_what_was_held_at_the_most():
    # In a process of its own, as the benchmarks use it: where the kernel does not let a process
    # forget its peak, what the tests before this one held would hide it.
    assert 40 < float(python_says("-c", _HOLDS_50_MEBIBYTES)) < 100


# The parts that the comparison exchanges, and what is drawn of them

JOBS = [f"job {number:03}" for number in range(150)]
WORDS = {
    "income": {"sdtype": "numerical", "range_min": 0, "range_max": 9_999, "decimal_places": 0},
    "age": {"sdtype": "numerical", "range_min": 0, "range_max": 7, "decimal_places": 0},
    "job": {"sdtype": "categorical", "range_values": JOBS, "range_is_nullable": False},
    "ill": {"sdtype": "boolean", "range_is_nullable": False},
}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    income = np.minimum(rng.exponential(300, 20_000), 9_999).astype(int)
    chances = np.array([30.0] * 20 + [0.1] * 130)
    frame = pd.DataFrame(
        {
            "income": np.where(rng.random(20_000) < 0.05, np.nan, income),
            "age": rng.integers(0, 8, 20_000),
            "job": rng.choice(JOBS, 20_000, p=chances / chances.sum()),
            "ill": rng.random(20_000) < 0.3,
        }
    )
    facts = read_table(WORDS, (), None)
    schema = Schema.of(facts, 16)
    return RealTable(name="own", frame=frame, schema=schema, cells=16, label="ill", facts=facts)


def preprocessed(table, name, epsilon=3.0):
    preprocessing = Preprocessing(name=name)
    reserved = preprocessing.reserved(table, 1e-5)
    shared = FitLedger(PrivacyLedger.open(epsilon, 1e-5, Adjacency.REPLACE_ONE, reserved=reserved))
    return preprocessing.schema(table, table.frame, shared, Independent()), shared.ledger


@pytest.mark.parametrize("name", PREPROCESSINGS)
def test_each_makes_codes_of_the_table_for_its_share_and_values_of_them(table, name):
    schema, ledger = preprocessed(table, name)
    assert schema.domain().attributes == table.domain.attributes
    assert ledger.mu_squared <= ledger.budget * Fraction(1, 10)
    assert bool(ledger.charges) is (name != "equal_width")
    codes = np.stack([np.arange(200) % size for size in schema.domain().sizes], axis=1)
    values = decoded(schema, codes, seed=0)
    assert set(values["job"]) <= set(JOBS)
    assert values["income"].dropna().between(0, 9_999).all()
    assert len(table.encode(values)) == 200


def test_numbers_are_finer_where_rows_are_and_rare_categories_share_a_code(table):
    income, age, _, _ = preprocessed(table, "equal_mass")[0].columns
    places = income.locate(np.array([0, 250, 500, 1_000, 9_000, 9_999]))[0]
    assert places[2] - places[0] > 3 > places[5] - places[4]
    assert age == table.schema.columns[1]
    job = preprocessed(table, "equal_width+rare")[0].columns[2]
    codes = np.array(job.merging.codes)
    assert job.num_values == 21
    assert codes[:20].tolist() == list(range(20))
    assert set(codes[20:]) == {20}
    schema, ledger = preprocessed(table, "equal_width")
    assert schema.domain() == table.domain
    assert ledger.charges == ()


def test_names_and_shares_that_say_nothing_are_refused():
    with pytest.raises(ValueError, match="There is no 'rare': choose from"):
        Compared(name="rare / mst / pgm")
    with pytest.raises(ValueError, match="share"):
        Preprocessing(name="equal_mass", share=Fraction(1))
    with pytest.raises(ValueError, match="There is no 'dawa'"):
        Compared(name="dawa / mst / pgm")


def test_registered_parts_make_arms_that_have_names_settings_and_an_order():
    names = names_of(PREPROCESSINGS, SELECTS, tuple(ENGINES))
    assert len(names) == len(set(names)) == len(PREPROCESSINGS) * len(SELECTS) * len(ENGINES)
    for name in names[:: len(ENGINES) + 1]:
        assert is_arm(name)
        preprocess, select, synthesize = parts_of(name)
        arm = Compared(name=name)
        assert arm.preprocessing == Preprocessing(name=preprocess)
        made = arm.made(3)
        assert type(made) is type(named_methods()[select]())
        assert type(made.engine) is type(engine_of(synthesize))
    assert names_of(None, None, None) == []
    assert not is_arm("PrivPGD-MST")
    arm = Compared(name="equal_mass / aim / particles", num_particles=70, max_megabytes=3.0)
    made = arm.made(5)
    assert (made.engine.num_particles, made.engine.seed, made.max_megabytes) == (70, 5, 3.0)
    assert arm.settings() == {"share": 0.1, "num_particles": 70, "max_megabytes": 3.0}
    assert Compared(name="equal_width / mwem / pgm", max_megabytes=3.0).made(0).max_megabytes == 3
    found = settings_of_parts()
    assert set(found[found["kind"] == "synthesize"]["part"]) == set(ENGINES)
    assert set(found[found["kind"] == "select"]["part"]) <= set(SELECTS)
    assert found["value"].str.len().max() <= 60
    for kind, known in KINDS.items():
        assert in_rank(kind, [*reversed(list(known)), "another"]) == [*known, "another"]


def of_arms(left_out=()):
    """Scores of all arms of two parts each: an error is a sum of what each part adds."""
    adds = {"equal_width": 1.0, "equal_mass": 2.0, "mst": 0.0, "aim": 10.0}
    adds |= {"pgm": 0.0, "particles": 100.0}
    found = []
    for name in names_of(["equal_width", "equal_mass"], ["mst", "aim"], ["pgm", "particles"]):
        if any(set(pair) <= set(parts_of(name)) for pair in left_out):
            found.append({"method": name, "error": "MatchError", "reason": "they do not go"})
        else:
            value = sum(adds[part] for part in parts_of(name))
            found.append({"method": name, "metric": "l1", "value": value, "fit_seconds": 3.0})
    rows = pd.DataFrame(found).assign(table="adult", epsilon=1.0, seed=0, peak_mebibytes=5.0)
    return rows.reindex(columns=[*rows.columns, *({"error", "reason"} - set(rows.columns))])


def test_a_part_is_not_judged_by_the_company_that_it_keeps():
    everywhere = of_parts(arms_of(of_arms()), "select")["l1"]
    assert everywhere["aim"] - everywhere["mst"] == 10
    # Without this arm aim would only stand with the better engine, and seem better than mst.
    fewer = of_parts(arms_of(of_arms([("aim", "particles")])), "select")["l1"]
    assert fewer.to_dict() == {"aim": 11.5, "mst": 1.5}
    assert of_parts(arms_of(of_arms([("aim", "particles")])), "select").attrs["others"] == 2


def test_what_was_refused_is_a_dash_and_has_its_reason(tmp_path):
    rows = of_arms([("aim", "particles")])
    shown = table_of_arms(arms_of(rows), "l1")
    assert shown.loc[("equal_mass", "aim")].to_dict() == {"particles": "–", "pgm": "12"}
    written = write_exchange(rows, tmp_path)
    assert all(path.stat().st_size for path in written)
    assert (tmp_path / "exchange_adult_epsilon_1.png") in written
    page = (tmp_path / "exchange.html").read_text()
    assert "they do not go" in page
    assert "not private" in page
    assert (
        pd.read_csv(tmp_path / "exchange_not_run.csv")["reason"].tolist() == ["they do not go"] * 2
    )
    with pytest.raises(ValueError, match="no arms"):
        write_exchange(rows.assign(method="MST"), tmp_path)
