"""With the noisy answers held fixed, nothing that leaves a fit depends on the table.

The curator still charges and counts; only what it gives out is replaced by numbers that depend on
the question alone. Two tables are fitted by copies of one synthesizer, with the clock stopped, and
everything observable is compared byte by byte.
"""

import copy
import datetime
import itertools
import logging
import tempfile
import warnings
from pathlib import Path

import cloudpickle
import numpy as np
import pandas as pd
import pytest
import sdv_tables
from sdv.cag import FixedIncrements, Inequality, SingleTableProgrammableConstraint

from sdv_privpgd import (
    AIM,
    FixedCombinations,
    MSTSynthesizer,
    PrivPGDSynthesizer,
    ProtectedThreshold,
)
from sdv_privpgd.privacy import curator
from sdv_privpgd.privacy.value_counts import ValueCounts
from sdv_privpgd.synthesize.particles import warmup


class StoppedClock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2026, 1, 1, tzinfo=tz)

    @classmethod
    def today(cls):
        return cls(2026, 1, 1)


@pytest.fixture(scope="module", autouse=True)
def _compiled():
    """Compiles once: the first fit of a machine has messages of the compiler's in its log."""
    warmup.compile_all()


@pytest.fixture
def fixed_answers(monkeypatch):
    """Answers that depend on the shape and order of the questions, never on the table."""

    def noisy(answer, stddev, words):
        if stddev == 0:  # public under the adjacency, and equal for the tables compared
            return answer
        seed = [*answer.shape, round(stddev * 1000)]
        return np.random.default_rng(seed).integers(-20, 80, answer.shape)

    def choice(scores, temperature, words):
        return len(scores) // 2

    monkeypatch.setattr(curator, "_noisy", noisy)
    monkeypatch.setattr(curator, "exponential_choice", choice)
    for module in ("sdv_privpgd.plugin.arguments", "sdv.single_table.base"):
        monkeypatch.setattr(f"{module}.datetime.datetime", StoppedClock)
    # One second a look at the clock: a bar that moved once more would say so.
    monkeypatch.setattr("tqdm.std.time", map(float, itertools.count()).__next__)


KNOWN = pd.DataFrame({"ward": ["A", "B", None], "age": [30, 40, 50]})


def observe(synthesizer, data, caplog, capsys, known=KNOWN) -> dict[str, object]:
    """Everything that a fit of a copy of the synthesizer lets out."""
    caplog.clear()
    capsys.readouterr()
    fitted = copy.deepcopy(synthesizer)
    with warnings.catch_warnings(record=True) as caught, caplog.at_level(logging.DEBUG):
        warnings.simplefilter("always")
        fitted.fit(data)
    bars = capsys.readouterr()
    seen = {
        "pickle": cloudpickle.dumps(fitted),
        "warnings": [str(warning.message) for warning in caught],
        "log": [(record.name, record.levelname, record.getMessage()) for record in caplog.records],
        "stdout": bars.out,
        "stderr": bars.err,
        "worth a look": fitted.warnings_,
        "domain": fitted.discovered_domain(),
        "report": fitted.privacy_report(),
        "ledger": fitted.ledger.to_json(),
        "info": fitted.get_info(),
        "repr": repr(fitted.__dict__.keys()) + repr(fitted.ledger),
        "parameters": repr(fitted.get_parameters()),
        "metadata": fitted.get_metadata().to_dict(),
    }
    sample = fitted.sample(150)
    sample = sample if isinstance(sample, pd.DataFrame) else sample["table"]
    seen["sample"] = sample.to_csv()
    seen["dtypes"] = sample.dtypes.astype(str).to_dict()
    rest = fitted.sample_remaining_columns(known)
    seen["remaining"] = (rest if isinstance(rest, pd.DataFrame) else rest["table"]).to_csv()
    with tempfile.TemporaryDirectory() as folder:
        seen["page"] = fitted.report().save(Path(folder) / "page.html").read_bytes()
    if isinstance(fitted, PrivPGDSynthesizer):
        seen["losses"] = fitted.get_loss_values().to_csv()
    fitted.reset_sampling()  # RDT's used generators hold the operating system's randomness
    seen["pickle after sampling"] = cloudpickle.dumps(fitted)
    return seen


def nasty(table: pd.DataFrame) -> pd.DataFrame:
    """The same columns and number of rows, with everything that a cell can hold."""
    cells = [
        10**400, -(10**400), float("inf"), float("nan"), None, pd.NA, pd.NaT, "CANARY", b"CANARY",
        [1, 2], {"CANARY": 1}, complex(1, 2), datetime.date(9999, 12, 31), object,
        pd.Timestamp("2020-05-05", tz="Asia/Tokyo"), datetime.datetime(1, 1, 1), True, "2020-02-30",
    ]  # fmt: skip
    return pd.DataFrame(
        {
            name: pd.Series(
                [cells[(row + shift) % len(cells)] for row in range(len(table))], dtype=object
            )
            for shift, name in enumerate(table.columns)
        }
    )


def other_values(table):
    return sdv_tables.table(len(table), seed=99)


def missing_cells(table):
    return table.mask(np.random.default_rng(1).random(table.shape) < 0.4)


def all_missing(table):
    return table.mask(np.ones(table.shape, dtype=bool))


def other_dtypes(table):
    """Those that cells may choose."""
    return table.astype({"age": "float64", "income": object, "grade": "uint64", "smoker": "int64"})


def other_row_order(table):
    return table.sample(frac=1.0, random_state=3)


def other_column_order(table):
    return table[table.columns[::-1]]


def constant(table):
    return pd.concat([table.iloc[[0]]] * len(table))


OTHER_TABLES = [
    other_values, missing_cells, all_missing, other_dtypes, other_row_order, other_column_order,
    constant, nasty,
]  # fmt: skip


def settings(**changes):
    return {
        "metadata": sdv_tables.metadata(),
        "epsilon": 1.0,
        "public_domain": sdv_tables.PUBLIC_DOMAIN,
        "verbose": True,
        **sdv_tables.SMALL,
        **changes,
    }


@pytest.mark.parametrize("change", OTHER_TABLES)
def test_nothing_depends_on_the_values_under_replace_one(change, fixed_answers, caplog, capsys):
    table = sdv_tables.table(120)
    synthesizer = PrivPGDSynthesizer(**settings())
    first = observe(synthesizer, table, caplog, capsys)
    assert "3-way marginals in groups" in first["ledger"]  # the default asks all it can ask
    assert "120 rows are few" in "".join(first["worth a look"])
    assert "120 rows are few" in "".join(first["warnings"])
    assert first == observe(synthesizer, change(table), caplog, capsys)


@pytest.mark.parametrize("num_rows", [0, 1, 500])
def test_nothing_depends_on_the_number_of_rows_under_add_remove(
    num_rows, fixed_answers, caplog, capsys
):
    synthesizer = PrivPGDSynthesizer(**settings(adjacency="add_remove"))
    first = observe(synthesizer, sdv_tables.table(120), caplog, capsys)
    assert first == observe(synthesizer, sdv_tables.table(num_rows, seed=8), caplog, capsys)


def test_nothing_depends_on_the_table_behind_a_protected_statistic(fixed_answers, caplog, capsys):
    penalty = ProtectedThreshold({"age": 1.0, "income": -0.5}, b=0.2, weight=0.1)
    synthesizer = PrivPGDSynthesizer(**settings(penalties=[penalty]))
    table = sdv_tables.table(120)
    assert observe(synthesizer, table, caplog, capsys) == observe(
        synthesizer, other_values(table), caplog, capsys
    )


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize(
    "strategy", ["independent", "mst", "mwem", AIM(rounds_per_attribute=1)], ids=str
)
def test_nothing_depends_on_the_table_whatever_is_selected(
    strategy, adjacency, fixed_answers, caplog, capsys
):
    synthesizer = PrivPGDSynthesizer(**settings(strategy=strategy, adjacency=adjacency))
    table = sdv_tables.table(120)
    assert observe(synthesizer, table, caplog, capsys) == observe(
        synthesizer, nasty(table), caplog, capsys
    )


def test_nothing_depends_on_the_table_behind_a_graphical_model(fixed_answers, caplog, capsys):
    changed = settings()
    for name in sdv_tables.SMALL:
        del changed[name]
    synthesizer = MSTSynthesizer(**changed)
    table = sdv_tables.table(120)
    assert observe(synthesizer, table, caplog, capsys) == observe(
        synthesizer, nasty(table), caplog, capsys
    )


def fix_categories(monkeypatch):
    """The released categories are part of the answer, so they are held fixed as well."""
    counted = [("A", 1), ("B", 9), ("C", 1), (None, 2)]
    monkeypatch.setattr(ValueCounts, "counts", lambda self, name: counted)
    fixed = curator._noisy

    def noisy(answer, stddev, words):
        return fixed(answer, stddev, words) + 10_000 * (answer.shape == (4,))

    monkeypatch.setattr(curator, "_noisy", noisy)


@pytest.mark.parametrize("change", OTHER_TABLES)
def test_nothing_depends_on_the_table_where_nothing_is_declared(
    change, fixed_answers, caplog, capsys, monkeypatch
):
    fix_categories(monkeypatch)
    synthesizer = PrivPGDSynthesizer(**settings(public_domain=None))
    table = sdv_tables.table(120)
    known = KNOWN[["ward"]]  # which ages are in the domain is up to the noise
    first = observe(synthesizer, table, caplog, capsys, known)
    assert ",A," in first["sample"], "nothing was discovered"
    assert "categories of undeclared columns" in first["report"]
    assert first == observe(synthesizer, change(table), caplog, capsys, known)


def seen_in_tokyo(table):
    """The dtype, with its time zone, is as public as the column's name."""
    return table.assign(seen=pd.to_datetime(table["seen"]).dt.tz_localize("Asia/Tokyo"))


@pytest.mark.parametrize(
    "change", [other_values, missing_cells, all_missing, other_row_order, constant]
)
def test_nothing_but_the_dtype_s_time_zone_depends_on_dates_that_nobody_declared(
    change, fixed_answers, caplog, capsys
):
    domain = {name: facts for name, facts in sdv_tables.PUBLIC_DOMAIN.items() if name != "seen"}
    synthesizer = PrivPGDSynthesizer(**settings(public_domain=domain))
    table = sdv_tables.table(120)
    first = observe(synthesizer, seen_in_tokyo(table), caplog, capsys)
    assert first["dtypes"]["seen"] == "datetime64[ns, Asia/Tokyo]"
    assert first == observe(synthesizer, seen_in_tokyo(change(table)), caplog, capsys)


def chosen_dtypes(table):
    """The dtypes, but not the categories of a categorical, are as public as the columns' names."""
    dates = pd.to_datetime(table["seen"], errors="coerce").astype("M8[ns]")
    return table.assign(
        id=np.arange(len(table)),
        age=pd.to_numeric(table["age"]).astype("Int16"),
        income=pd.to_numeric(table["income"]).astype("float32"),
        ward=table["ward"].astype("category").cat.as_ordered(),
        grade=pd.to_numeric(table["grade"]).fillna(1).astype("int8"),
        smoker=table["smoker"].astype("boolean"),
        seen=dates.dt.tz_localize("Asia/Tokyo").dt.as_unit("s"),
        mail=table["mail"].astype("string"),
    )


@pytest.mark.parametrize(
    ("method", "declared"), [(PrivPGDSynthesizer, True), (MSTSynthesizer, False)]
)
@pytest.mark.parametrize("change", [other_values, all_missing, constant])
def test_nothing_but_chosen_dtypes_depends_on_the_table(
    change, method, declared, fixed_answers, caplog, capsys, monkeypatch
):
    changed = settings(public_domain=sdv_tables.PUBLIC_DOMAIN if declared else None)
    if method is MSTSynthesizer:
        del changed["num_particles"]
    fix_categories(monkeypatch)
    synthesizer = method(**changed)
    table = sdv_tables.table(120)
    known = KNOWN[["ward"]]
    first = observe(synthesizer, chosen_dtypes(table), caplog, capsys, known)
    expected = {
        "id": "int64", "age": "Int16", "income": "float32", "ward": "category", "grade": "int8",
        "smoker": "boolean", "seen": "datetime64[s, Asia/Tokyo]", "mail": "string",
    }  # fmt: skip
    if not declared:  # what is released in place of the grades is text
        del expected["grade"]
    assert first["dtypes"].items() >= expected.items()
    assert first == observe(synthesizer, chosen_dtypes(change(table)), caplog, capsys, known)


@pytest.mark.parametrize("change", OTHER_TABLES)
def test_nothing_depends_on_the_table_where_cells_of_dates_are_declared(
    change, fixed_answers, caplog, capsys
):
    weeks = pd.date_range("2020-01-08", "2020-12-31", freq="7D").strftime("%Y-%m-%d").tolist()
    seen = {"cut_points": weeks, "frequencies": [*range(len(weeks)), 99], "num_bins": 8}
    domain = {**sdv_tables.PUBLIC_DOMAIN, "seen": {**sdv_tables.PUBLIC_DOMAIN["seen"], **seen}}
    synthesizer = PrivPGDSynthesizer(**settings(public_domain=domain))
    table = sdv_tables.table(120)
    assert observe(synthesizer, table, caplog, capsys) == observe(
        synthesizer, change(table), caplog, capsys
    )


@pytest.mark.parametrize("change", OTHER_TABLES)
def test_nothing_depends_on_the_table_where_categories_are_many(
    change, fixed_answers, caplog, capsys
):
    wards = {"range_values": [*"ABC", *map(str, range(2_000))]}
    domain = {**sdv_tables.PUBLIC_DOMAIN, "ward": wards}
    synthesizer = PrivPGDSynthesizer(**settings(public_domain=domain))
    table = sdv_tables.table(120)
    first = observe(synthesizer, table, caplog, capsys)
    assert first["warnings"][:-1] == []  # the last is about the fit, not about what is declared
    assert first == observe(synthesizer, change(table), caplog, capsys)


class Young(SingleTableProgrammableConstraint):
    """A black box that would give itself away if it were asked of the private table."""

    def fit(self, data, metadata):
        self.fitted_on = data

    def validate_input_data(self, data):
        raise AssertionError("asked of the private table")

    def is_valid(self, synthetic_data):
        assert "CANARY" not in synthetic_data.to_csv()
        return ~(synthetic_data["age"] > 100)


@pytest.mark.parametrize("change", [other_values, nasty])
@pytest.mark.parametrize("method", [PrivPGDSynthesizer, MSTSynthesizer])
def test_nothing_depends_on_whether_the_table_meets_constraints(
    method, change, fixed_answers, caplog, capsys
):
    changed = settings()
    if method is MSTSynthesizer:
        del changed["num_particles"]
    synthesizer = method(**changed)
    synthesizer.add_constraints(
        [
            Inequality("age", "income"),
            FixedIncrements("age", 5),
            FixedCombinations(["ward", "grade"], [("A", 1), ("B", 2), (None, 3)]),
            Young(),
        ]
    )
    table = sdv_tables.table(120)
    first = observe(synthesizer, table, caplog, capsys)
    meets = table.assign(age=table["age"] // 5 * 5, income=200.0, ward="A", grade=1)
    for other in (change(table), meets):
        assert first == observe(synthesizer, other, caplog, capsys)


@pytest.mark.parametrize("change", OTHER_TABLES)
@pytest.mark.parametrize("declared", [True, False])
def test_nothing_depends_on_the_differences_of_columns_in_order(
    declared, change, fixed_answers, caplog, capsys
):
    domain = dict(sdv_tables.PUBLIC_DOMAIN)
    if not declared:
        del domain["age"], domain["income"]
    changed = settings(public_domain=domain)
    del changed["num_particles"]
    synthesizer = MSTSynthesizer(**changed)
    synthesizer.add_constraints([Inequality("age", "income", strict_boundaries=True)])
    table = sdv_tables.table(120)
    known = KNOWN[["ward"]]
    first = observe(synthesizer, table, caplog, capsys, known)
    assert "sizes of 'income - age'" in first["report"]
    meets = table.assign(income=table["age"] + 1)
    for other in (change(table), meets):
        assert first == observe(synthesizer, other, caplog, capsys, known)


@pytest.mark.parametrize("num_rows", [0, 1, 500])
def test_nothing_depends_on_how_many_differences_there_are_under_add_remove(
    num_rows, fixed_answers, caplog, capsys
):
    changed = settings(adjacency="add_remove")
    del changed["num_particles"]
    synthesizer = MSTSynthesizer(**changed)
    synthesizer.add_constraints([Inequality("age", "income")])
    first = observe(synthesizer, sdv_tables.table(120), caplog, capsys)
    assert first == observe(synthesizer, sdv_tables.table(num_rows, seed=8), caplog, capsys)


@pytest.mark.parametrize("change", OTHER_TABLES)
def test_nothing_depends_on_the_table_where_a_constraint_widens_a_range(
    change, fixed_answers, caplog, capsys
):
    domain = {
        **sdv_tables.PUBLIC_DOMAIN,
        "age": {"range_max": 110, "decimal_places": 0, "range_is_nullable": False},
        "income": {"range_min": -(2.0**50), "range_max": -(2.0**49), "range_is_nullable": False},
    }
    synthesizer = PrivPGDSynthesizer(**settings(public_domain=domain))
    table = sdv_tables.table(120)
    freely = copy.deepcopy(synthesizer)
    with pytest.warns(UserWarning, match="not declared"):
        freely.fit(table)
    assert freely.sample(500)["age"].min() > -(2.0**49), "nothing to widen"
    synthesizer.add_constraints([Inequality("age", "income")])
    known = KNOWN[["ward"]]
    first = observe(synthesizer, table, caplog, capsys, known)
    assert first == observe(synthesizer, change(table), caplog, capsys, known)


@pytest.mark.parametrize("change", [other_values, nasty])
def test_nothing_depends_on_the_table_where_a_fit_fails_and_is_finished(
    change, fixed_answers, monkeypatch
):
    changed = settings(verbose=False)
    del changed["num_particles"]
    synthesizer = MSTSynthesizer(**changed)

    def fails(*args, **kwargs):
        raise MemoryError

    def seen(table):
        fitted = copy.deepcopy(synthesizer)
        with monkeypatch.context() as patch:
            patch.setattr("sdv_privpgd.synthesize.pgm.PrivatePGM.fit", fails)
            with pytest.raises(MemoryError) as caught:
                fitted.fit(table)
        failed = cloudpickle.dumps(fitted)
        fitted.finish()
        told = getattr(caught.value, "__notes__", [])
        return failed, told, cloudpickle.dumps(fitted), fitted.sample(50).to_csv()

    table = sdv_tables.table(120)
    assert seen(table) == seen(change(table))


def test_nothing_depends_on_the_table_in_sdv_s_dict_form(fixed_answers, caplog, capsys):
    synthesizer = PrivPGDSynthesizer(**settings())
    table = sdv_tables.table(120)
    first = observe(synthesizer, {"table": table}, caplog, capsys)
    assert first == observe(synthesizer, {"table": nasty(table)}, caplog, capsys)


def test_the_comparison_notices_a_leak(fixed_answers, caplog, capsys, monkeypatch):
    """The same comparison must fail when one private number is kept."""
    run = PrivPGDSynthesizer._run

    def leaking(self, fit, names, codes, *rest):
        run(self, fit, names, codes, *rest)
        self.oldest = int(codes[:, fit.description.attributes.domain().axes(("age",))[0]].max())

    monkeypatch.setattr(PrivPGDSynthesizer, "_run", leaking)
    synthesizer = PrivPGDSynthesizer(**settings())
    young = sdv_tables.table(120).assign(age=20)
    old = young.assign(age=80)
    first = observe(synthesizer, young, caplog, capsys)
    assert first["pickle"] != observe(synthesizer, old, caplog, capsys)["pickle"]


def test_the_comparison_notices_a_bar_that_knows_the_number_of_rows(
    fixed_answers, caplog, capsys, monkeypatch
):
    true_rows = lambda self, columns: len(next(iter(columns)))
    monkeypatch.setattr(PrivPGDSynthesizer, "_known_rows", true_rows)
    synthesizer = PrivPGDSynthesizer(**settings(adjacency="add_remove"))
    first = observe(synthesizer, sdv_tables.table(120), caplog, capsys)
    other = observe(synthesizer, sdv_tables.table(30_000), caplog, capsys)
    assert first["stderr"] != other["stderr"]
