"""The file of a model holds all of it and no code, whatever it was made by."""

import datetime
import importlib
import json
import zipfile
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sdv_privpgd import (
    Boolean,
    Categorical,
    Datetime,
    FittedTable,
    Key,
    Link,
    Numerical,
    People,
    TimeOfDay,
    check,
    fit_table,
    fit_tables,
)
from sdv_privpgd.base.files import DamagedFileError, write_archive
from sdv_privpgd.constraints import (
    FixedCombinations,
    FixedIncrements,
    Inequality,
    OneHotEncoding,
    ProgrammableConstraint,
    Range,
)
from sdv_privpgd.fitting.fitted_table import UnfinishedTable
from sdv_privpgd.fitting.model_file import NotKeptError, read_model, write_model
from sdv_privpgd.methods import DPCTGAN, DPDiffusion, PrivPGD
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.synthesize.particles.batched_local_search import BatchedSearch
from sdv_privpgd.synthesize.particles.batched_projection import BatchedProjection
from sdv_privpgd.synthesize.particles.descent import ParticleGradientDescent
from sdv_privpgd.synthesize.particles.paper import AdamStep, SoftmaxProjection
from sdv_privpgd.synthesize.particles.penalties import DifferentiablePenalty, ProtectedThreshold

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

ROWS, RNG = 900, np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "id": np.arange(ROWS),
        "patient": RNG.integers(0, 300, ROWS),
        "ward": RNG.choice(["A", "B"], ROWS),
        "age": RNG.integers(0, 99, ROWS),
        "weight": RNG.normal(70, 9, ROWS),
        "ill": RNG.random(ROWS) < 0.3,
        "in": pd.Timestamp("2020-01-01") + pd.to_timedelta(RNG.integers(0, 300, ROWS), unit="D"),
        "out": pd.Timestamp("2021-01-01") + pd.to_timedelta(RNG.integers(0, 300, ROWS), unit="D"),
        "one": [1, 0, 0] * (ROWS // 3),
        "two": [0, 1, 1] * (ROWS // 3),
    }
)
WARD = {"ward": Categorical(["A", "B"]), "age": Numerical(0, 99, decimal_places=0)}
DATES = {"in": Datetime("2020-01-01", "2020-12-31"), "out": Datetime("2021-01-01", "2021-12-31")}
BITS = {name: Numerical(0, 1, decimal_places=0) for name in ("one", "two")}
MADE = {
    "found and rules": lambda: fit_table(
        TABLE.astype({"ward": "category", "age": "Int64"}),
        {**WARD, **DATES, **BITS, "weight": Numerical(), "ill": Boolean(), "id": Key()},
        5.0,
        constraints=[
            Inequality("in", "out"),
            Range("one", "two", "age"),
            FixedIncrements("age", 1),
            OneHotEncoding(["one", "two"]),
            FixedCombinations(["ward", "ill"], [["A", True], ["B", False], ["B", True]]),
        ],
    ),
    "visits": lambda: fit_table(
        TABLE,
        {**WARD, **DATES},
        1.0,
        1e-6,
        adjacency="add_remove",
        people=People("patient", 3, sequence_index="in", previous=["ward"]),
    ),
    "weights": lambda: fit_table(
        TABLE,
        WARD,
        1.0,
        1e-6,
        adjacency="add_remove",
        people=People(rows_are_people=True, weight_column="weight", weight_range=(40, 90)),
    ),
    "prior": lambda: fit_table(TABLE, WARD, 1.0, prior=TABLE[["ward", "age"]].head(50)),
    "refined": lambda: fit_table(TABLE, WARD, 1.0).add_budget(TABLE, 0.5),
    "mst": lambda: fit_table(TABLE, WARD, 1.0, method="mst"),
}


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    fitted = MADE["mst"]()
    fitted.save(path := tmp_path_factory.mktemp("kept") / "model.zip")
    return path


def forged(kept, path, change):
    """The same file with other JSON, and the digest of that."""
    with zipfile.ZipFile(kept) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    facts = json.loads(members["model.json"])
    change(facts)
    write_archive(path, {**members, "model.json": json.dumps(facts).encode()})
    return path


@pytest.mark.long
@pytest.mark.parametrize("name", MADE)
def test_all_of_a_model_comes_back(name, tmp_path):
    fitted = MADE[name]()
    fitted.sample(7)
    fitted.save(tmp_path / "model.zip")
    loaded = FittedTable.load(tmp_path / "model.zip")
    loaded.save(tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == (tmp_path / "model.zip").read_bytes()
    pd.testing.assert_frame_equal(loaded.sample(60), fitted.sample(60))
    pd.testing.assert_frame_equal(
        loaded.sample(9, where={"ward": "B"}), fitted.sample(9, where={"ward": "B"})
    )
    assert loaded.report().html() == fitted.report().html()
    assert loaded.ledger == fitted.ledger
    assert loaded.add_budget(TABLE, 0.1).ledger.spent() > fitted.ledger.spent()


def test_what_a_fit_that_stopped_has_paid_for_comes_back(tmp_path, monkeypatch):
    running = MADE["mst"]().more_budget(TABLE, 0.5)
    with monkeypatch.context() as patch:
        patch.setattr("sdv_privpgd.synthesize.pgm.PrivatePGM.fit", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            running.run()
    assert running.unfinished is not None
    running.unfinished.save(tmp_path / "left.zip")
    left = UnfinishedTable.load(tmp_path / "left.zip")
    assert left.ledger == running.ledger
    assert left.last is not None
    assert len(left.resumed().run().sample(5)) == 5


@pytest.mark.parametrize(
    "whole",
    [
        PrivPGD(engine=ParticleGradientDescent(step=AdamStep(), projection=SoftmaxProjection())),
        PrivPGD(
            engine=ParticleGradientDescent(
                local_search=BatchedSearch(), projection=BatchedProjection()
            )
        ),
        ProtectedThreshold({"age": 1.0}, 0.5), DPCTGAN(), DPDiffusion(),
        pd.CategoricalDtype([1, 2], ordered=True), pd.CategoricalDtype(), pd.StringDtype("python"),
        pd.Int64Dtype(), [Decimal, datetime.time, int], pd.DatetimeTZDtype("ns", "Europe/Vienna"),
        np.dtype("datetime64[ns]"), {b"\x00y": b""}, Adjacency.ADD_REMOVE,
        [pd.NaT, pd.NA, float("nan"), -float("inf"), 0.1, 2**80, np.float32(0.1), "\ud800"],
        (datetime.date(2020, 1, 2), datetime.time(3), datetime.datetime(2020, 1, 2, 3, 4)),
        {("a", 1): {3, 1}, None: frozenset("ab"), True: Fraction(1, 3), 2.5: Decimal("1.50")},
    ],
    ids=lambda whole: type(whole).__name__,
)  # fmt: skip
def test_settings_and_values_come_back(whole, tmp_path):
    write_model(tmp_path / "x.zip", whole)
    found = read_model(tmp_path / "x.zip", "thing")
    assert repr(found) == repr(whole)
    assert type(found) is type(whole)


def kinds_of_cells():
    """Cells of most kinds, in Arrow's types."""
    days = [datetime.datetime(2020, 1, 1) + datetime.timedelta(hours=7 * h) for h in range(300)]
    columns = {
        "decimal": pa.array([Decimal(i) / 4 for i in range(300)], pa.decimal128(9, 2)),
        "zone": pa.array(days, pa.timestamp("us", tz="Europe/Vienna")),
        "day": pa.array([each.date() for each in days], pa.date32()),
        "time": pa.array([each.time() for each in days], pa.time64("us")),
        "entry": pa.array(["a", "b", "c"] * 100).dictionary_encode(),
        "text": pa.array(["x", "y"] * 150),
        "large": pa.array(["x", "y"] * 150, pa.large_string()),
        "small": pa.array([1, 2, 3] * 100, pa.int8()),
        "real": pa.array([0.5, 0.25] * 150, pa.float32()),
        "truth": pa.array([True, False] * 150),
    }
    return pa.table(columns), {
        "decimal": Numerical(0, 100), "zone": Datetime("2020-01-01", "2020-12-31"),
        "day": Datetime("2020-01-01", "2020-12-31"), "time": TimeOfDay(),
        "entry": Categorical(["a", "b", "c"]), "text": Categorical(["x", "y"]),
        "large": Categorical(["x", "y"]), "small": Numerical(0, 9), "real": Numerical(0, 1),
        "truth": Boolean(),
    }  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("given", ["arrow", "pandas", "types of Arrow", "nullable", "categories"])
def test_tables_of_any_types_give_models_that_come_back(given, tmp_path):
    table, columns = kinds_of_cells()
    frame = {
        "arrow": lambda: table,
        "pandas": table.to_pandas,
        "types of Arrow": lambda: table.to_pandas(types_mapper=pd.ArrowDtype),
        "nullable": lambda: table.to_pandas().convert_dtypes(),
        "categories": lambda: table.to_pandas().astype({"text": "category", "small": "category"}),
    }[given]()
    prior = table.to_pandas() if given == "arrow" else frame.copy()
    how = {"epsilon": 5.0, "allow_lost": list(columns)}
    for more in ({"method": "independent"}, {"prior": prior}):
        fitted = fit_table(frame, columns, **how, **more)
        fitted.save(tmp_path / "model.zip")
        loaded = FittedTable.load(tmp_path / "model.zip")
        pd.testing.assert_frame_equal(loaded.sample(20), fitted.sample(20))


class Own:
    """Somebody else's."""


@pytest.mark.parametrize(
    ("whole", "told"),
    [
        (ProgrammableConstraint(lambda rows: rows["age"] > 3), "is_valid is the function <lambda>"),
        (DifferentiablePenalty(lambda p: p["age"].mean()), "is the function <lambda>"),
        (Own(), r"a test_model_files\.Own"),
        ([np.array([print], dtype=object)], "a numpy.ndarray"),
        (print, "the function print"),
        (importlib, "a builtins.module"),
    ],
)
def test_what_is_code_is_refused_before_anything_is_written(whole, told, tmp_path):
    with pytest.raises(NotKeptError, match=f"(?s){told}.*Nothing was written"):
        write_model(tmp_path / "x.zip", whole)
    assert not (tmp_path / "x.zip").exists()


def test_that_no_file_will_hold_a_function_is_said_before_a_fit():
    rule = ProgrammableConstraint(lambda rows: rows["age"] > 3)
    said = check(TABLE, WARD, 1.0, constraints=[rule]).to_dict()["warnings"]
    assert any("cannot be saved" in each and "Nothing was written" not in each for each in said)
    with pytest.warns(UserWarning, match=r"cannot be saved: .*is_valid is the function"):
        fit_table(TABLE, WARD, 1.0, constraints=[rule])
    visits, link = TABLE.rename(columns={"ill": 7}), Link("people", "visits", "patient", 3)
    tables = {"people": visits[["patient"]].drop_duplicates(), "visits": visits}
    columns, rules = {"people": {}, "visits": {**WARD, 7: Boolean()}}, {"visits": [rule]}
    said = check(tables, columns, 1.0, 1e-6, relationships=link, constraints=rules).to_dict()
    assert any("cannot be saved" in each for each in said["warnings"])
    with pytest.warns(UserWarning, match=r"text in the rows: \['7'\]. The model cannot be saved"):
        fit_tables(tables, columns, link, 1.0, 1e-6, constraints=rules)


def named(name, attributes):
    return lambda facts: facts.update(whole={name: attributes})


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (named("system", {"command": "true"}), "names 'system'"),
        (named("os.system", ["true"]), "names 'os.system'"),
        (named("Path", {}), "names 'Path'"),
        (named("RunningFit", {}), "names 'RunningFit'"),
        (named("plugin.synthesizers.PrivPGDSynthesizer", {}), "names 'plugin"),
        (named("fitting.model_file.import_module", {}), "names 'fitting"),
        (named("fitting.no_module.Fit", {}), "names 'fitting"),
        (named("fitting.fitted_table.FittedTable", {"name": "x"}), "lacks attributes"),
        (named("constraints.repair.Repair", {}), "holds a Repair"),
        (named("part", 10_000), "IndexError"),
        (named("part", -1), "has a place"),
        (named("array", "model.json"), "magic string"),
        (lambda facts: facts.update(version=0), "version 0"),
        (lambda facts: facts.update(format="a list"), "format is not"),
        (lambda facts: facts.update(whole=3), "holds a int"),
        (lambda facts: facts.update(whole={"list": [], "dict": []}), "too many values"),
    ],
)
def test_a_file_that_was_forged_runs_nothing(kept, change, told, tmp_path):
    with pytest.raises(DamagedFileError, match=told):
        FittedTable.load(forged(kept, tmp_path / "forged.zip", change))
