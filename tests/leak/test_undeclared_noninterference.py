"""Nothing that is found of undeclared columns depends on the table but through the answers."""

import numpy as np
import pandas as pd
import pytest
import sdv_tables
from interference import (
    KNOWN,
    OTHER_TABLES,
    all_missing,
    constant,
    missing_cells,
    other_row_order,
    other_values,
    settings,
)

from sdv_privpgd import MSTSynthesizer, PrivPGDSynthesizer
from sdv_privpgd.discovery.ranges import Rough
from sdv_privpgd.privacy import curator
from sdv_privpgd.privacy.value_counts import Counted, ValueCounts
from sdv_privpgd.report import measures, warnings

pytestmark = pytest.mark.long


def fix_categories(monkeypatch):
    """The released categories are part of the answer, so they are held fixed as well."""
    counted = Counted(np.array(["A", "B", "C"], dtype=object), np.array([1, 9, 1, 2]))
    monkeypatch.setattr(ValueCounts, "counts", lambda self, name: counted)
    fixed = curator._noisy

    def noisy(answer, stddev, words):
        return fixed(answer, stddev, words) + 10_000 * (answer.shape == (4,))

    monkeypatch.setattr(curator, "_noisy", noisy)


@pytest.mark.parametrize("others", [None, 1])  # in few columns a row is then looked for rarer ones
def test_nothing_depends_on_the_table_where_nothing_is_declared(others, unmoved, monkeypatch):
    fix_categories(monkeypatch)
    if others is not None:
        monkeypatch.setattr("sdv_privpgd.discovery.first_queries.others", lambda *_: others)
    synthesizer = PrivPGDSynthesizer(**settings(public_domain=None))
    table = sdv_tables.table(120)
    known = KNOWN[["ward"]]  # which ages are in the domain is up to the noise
    first = unmoved(synthesizer, table, OTHER_TABLES, known)
    assert any(f",{ward}," in first["sample"] for ward in "ABC"), "nothing was discovered"
    for words in ("categories of", "undeclared"):  # in a cell of several lines
        assert words in first["report"]


def seen_in_tokyo(table):
    """The dtype, with its time zone, is as public as the column's name."""
    return table.assign(seen=pd.to_datetime(table["seen"]).dt.tz_localize("Asia/Tokyo"))


def test_nothing_but_the_dtype_s_time_zone_depends_on_dates_that_nobody_declared(unmoved):
    domain = {name: facts for name, facts in sdv_tables.PUBLIC_DOMAIN.items() if name != "seen"}
    synthesizer = PrivPGDSynthesizer(**settings(public_domain=domain))
    table = sdv_tables.table(120)
    first = unmoved(
        synthesizer,
        seen_in_tokyo(table),
        [
            seen_in_tokyo(change(table))
            for change in (other_values, missing_cells, all_missing, other_row_order, constant)
        ],
    )
    assert first["dtypes"]["seen"] == "datetime64[ns, Asia/Tokyo]"


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
def test_nothing_but_chosen_dtypes_depends_on_the_table(method, declared, unmoved, monkeypatch):
    changed = settings(public_domain=sdv_tables.PUBLIC_DOMAIN if declared else None)
    if method is MSTSynthesizer:
        changed["method"] = None
    fix_categories(monkeypatch)
    synthesizer = method(**changed)
    table = sdv_tables.table(120)
    known = KNOWN[["ward"]]
    first = unmoved(
        synthesizer,
        chosen_dtypes(table),
        [chosen_dtypes(change(table)) for change in (other_values, all_missing, constant)],
        known,
    )
    expected = {
        "id": "int64", "age": "Int16", "income": "float32", "ward": "category", "grade": "int8",
        "smoker": "boolean", "seen": "datetime64[ns, Asia/Tokyo]", "mail": "string",
    }  # fmt: skip
    if not declared:  # what is released in place of the grades is text
        del expected["grade"]
    assert first["dtypes"].items() >= expected.items()


def test_nothing_depends_on_the_table_where_cells_of_dates_are_declared(unmoved):
    weeks = pd.date_range("2020-01-08", "2020-12-31", freq="7D").strftime("%Y-%m-%d").tolist()
    seen = {"cut_points": weeks, "frequencies": [*range(len(weeks)), 99], "num_bins": 8}
    domain = {**sdv_tables.PUBLIC_DOMAIN, "seen": {**sdv_tables.PUBLIC_DOMAIN["seen"], **seen}}
    synthesizer = PrivPGDSynthesizer(**settings(public_domain=domain))
    table = sdv_tables.table(120)
    unmoved(synthesizer, table, OTHER_TABLES)


def test_nothing_depends_on_the_table_where_categories_are_many(unmoved):
    wards = {"range_values": [*"ABC", *map(str, range(2_000))]}
    domain = {**sdv_tables.PUBLIC_DOMAIN, "ward": wards}
    synthesizer = PrivPGDSynthesizer(**settings(public_domain=domain))
    table = sdv_tables.table(120)
    first = unmoved(synthesizer, table, OTHER_TABLES)
    # The first is about few rows, the last about the fit, and none about what is declared.
    assert [each for each in first["warnings"][:-1] if "In so few rows" not in each] == []


def test_what_is_said_of_rows_beyond_a_range_depends_on_the_answers_alone(unmoved, monkeypatch):
    fix_categories(monkeypatch)  # the numbers that many rows share are released, too
    fixed = curator._noisy

    def many_beyond(answer, stddev, words):
        noisy = fixed(answer, stddev, words)
        if noisy.ndim == 1 and noisy.size > 3:
            noisy[0], noisy[-1] = 45, 0  # of 120 rows; none is missing
        return noisy

    # Such answers contradict each other: they ask for look after look, and other rules would call
    # the columns lost.
    monkeypatch.setattr(Rough, "closer", lambda *_: None)
    own = [rule for rule in warnings.COLUMN_RULES if rule.measure is measures.of_discovery]
    monkeypatch.setattr(warnings, "COLUMN_RULES", own)
    monkeypatch.setattr(curator, "_noisy", many_beyond)
    synthesizer = PrivPGDSynthesizer(**settings(epsilon=20.0))
    table = sdv_tables.table(120)
    first = unmoved(synthesizer, table, OTHER_TABLES)
    said = "".join(first["worth a look"])
    assert "'age' lie below its declared range_min=0" in said
    assert "'seen' lie below its declared range_min='2020-01-01'" in said


def test_what_is_said_of_rows_beyond_a_short_range_depends_on_the_answers_alone(
    unmoved, monkeypatch
):
    fixed = curator._noisy

    def many_beyond(answer, stddev, words):
        noisy = fixed(answer, stddev, words)
        if noisy.shape == (4,):  # below, inside, above and missing
            noisy[:] = [36, 70, 0, 0]
        return noisy

    monkeypatch.setattr(curator, "_noisy", many_beyond)
    short = {
        "age": {"range_min": 20, "range_max": 29, "decimal_places": 0, "range_is_nullable": False},
        "income": {"range_min": 0, "range_max": 9, "decimal_places": 0},
        "seen": {
            "range_min": "2020-01-01",
            "range_max": "2020-01-25",
            "datetime_format": "%Y-%m-%d",
        },
    }
    domain = {**sdv_tables.PUBLIC_DOMAIN, **short}
    changed = settings(public_domain=domain, epsilon=20.0)
    changed["method"] = None
    synthesizer = MSTSynthesizer(**changed)
    table = sdv_tables.table(120)
    known = KNOWN[["ward"]]
    first = unmoved(synthesizer, table, OTHER_TABLES, known)
    said = "".join(first["worth a look"])
    assert "'age' lie below its declared range_min=20" in said
    assert "'seen' lie below its declared range_min='2020-01-01'" in said
    assert "rows beyond short declared ranges" in first["report"]
