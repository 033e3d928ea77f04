"""What people hand over to SDV's methods works, or is refused with the reason; silence is silence.

NumPy's numbers, domains that are none, parts of several tables, and every argument of sampling.
"""

import warnings

import numpy as np
import pandas as pd
import pytest
import sdv_tables
from made_up import heard
from sdv.cag import Inequality
from sdv.errors import SynthesizerInputError
from sdv.sampling import Condition, DataFrameCondition

from sdv_privpgd import (
    AIMSynthesizer,
    Boolean,
    MSTSynthesizer,
    People,
    PrivacyLedger,
    PrivPGDSynthesizer,
    fit_table,
)
from sdv_privpgd.methods import AIM
from sdv_privpgd.privacy.queries import Adjacency

NUMPY = {
    "epsilon": np.float32(1.5),
    "delta": np.float64(1e-6),
    "people": People(max_rows=np.int8(2)),
    "public_metadata": np.bool_(False),
    "discovery_share": np.float64(0.25),
    "seed": np.int32(3),
    "verbose": np.bool_(False),
    "enforce_min_max_values": np.bool_(True),
    "enforce_rounding": np.bool_(True),
}


def test_numpy_s_numbers_are_taken_and_kept_as_python_s():
    kept = PrivPGDSynthesizer(sdv_tables.metadata(), **NUMPY).get_parameters()
    for name, value in NUMPY.items():
        assert kept[name] == value
        assert type(kept[name]) in (int, float, bool, People), name
    assert type(kept["people"].max_rows) is int
    with pytest.raises(ValueError, match="max_rows must be an integer of at least 1"):
        People(max_rows=np.int64(0))
    aim = AIMSynthesizer(sdv_tables.metadata(), np.int64(1), method=AIM(max_megabytes=np.int32(4)))
    assert aim._settings().method.max_megabytes == 4
    ledger = PrivacyLedger.open(np.float64(1), 1e-5, Adjacency.REPLACE_ONE, np.int8(100))
    assert ledger.rows_per_person**2 == 10_000
    fitted = MSTSynthesizer(
        sdv_tables.metadata_of({"a": {"sdtype": "boolean"}}), np.float64(1), np.float64(1e-5)
    )
    fitted.fit(pd.DataFrame({"a": [True, False] * 20}))
    assert len(fitted.sample(np.int64(7))) == 7
    assert "12" in fitted.plan(np.int64(12)).text


def test_a_domain_may_hold_numpy_s_numbers():
    domain = {
        "age": {
            "range_min": np.int8(0), "range_max": np.int64(110), "decimal_places": np.uint8(0),
            "num_bins": np.int16(11), "range_is_nullable": np.bool_(True),
        },
        "ward": {"range_values": np.array(["A", "B", "C"])},
    }  # fmt: skip
    plain = {"age": {name: own.item() for name, own in domain["age"].items()}}
    plain["ward"] = {"range_values": ["A", "B", "C"]}
    metadata = sdv_tables.metadata_of(
        {"age": {"sdtype": "numerical"}, "ward": {"sdtype": "categorical"}}
    )
    assert (
        MSTSynthesizer(metadata, 1.0, public_domain=domain)._schema()
        == MSTSynthesizer(metadata, 1.0, public_domain=plain)._schema()
    )


@pytest.mark.parametrize("settings", [{}, {"enforce_rounding": False}], ids=str)
@pytest.mark.parametrize(
    "domain",
    [(0, 10), 5, [("age", (0, 10))], {"age": (0, 10)}, {"ward": ["A"]}, {"age": {"range_min": ()}},
     {"age": {"range_min": (0, 10)}}, {"seen": {"range_max": "soon"}}],
    ids=str,
)  # fmt: skip
def test_a_domain_that_is_none_is_refused_at_once_with_the_remedy(domain, settings):
    with pytest.raises(ValueError, match=r"must (map|be)") as caught:
        MSTSynthesizer(sdv_tables.metadata(), 1.0, public_domain=domain, **settings)
    assert "range_m" in str(caught.value)
    later = MSTSynthesizer(sdv_tables.metadata(), 1.0, **settings)
    later.public_domain = domain
    with pytest.raises(ValueError, match=r"must (map|be)"):
        later.add_constraints([Inequality("age", "income")])
    with pytest.raises(ValueError, match=r"must (map|be)"):
        later.fit(sdv_tables.table(10))
    assert not later.ledger.charges


def test_metadata_without_columns_are_refused_by_the_name_of_their_table():
    with pytest.raises(SynthesizerInputError, match="no column of the table 'table'"):
        PrivPGDSynthesizer(sdv_tables.metadata_of({}), epsilon=1.0)


def test_epsilon_is_needed_and_values_beyond_the_range_cannot_be_asked_for():
    with pytest.raises(TypeError, match="epsilon"):
        PrivPGDSynthesizer(sdv_tables.metadata())
    with pytest.raises(SynthesizerInputError, match="never leave the range"):
        MSTSynthesizer(METADATA, 1.0, enforce_min_max_values=False)


# Sampling


METADATA = sdv_tables.metadata_of(
    {"id": {"sdtype": "id"}, "a": {"sdtype": "boolean"}, "b": {"sdtype": "categorical"}},
    primary_key="id",
)
DOMAIN = {"b": {"range_values": ["x", "y"], "range_is_nullable": False}}
TABLE = pd.DataFrame({"id": range(200), "a": [True, False] * 100, "b": ["x", "y", "y", "y"] * 50})
KNOWN = pd.DataFrame({"b": ["x", "y", "x", "y", "x"]}, index=[9, 7, 5, 3, 1])
CONDITIONS = [Condition({"b": "x"}, num_rows=3), DataFrameCondition(pd.DataFrame({"a": [True]}))]


@pytest.fixture(scope="module")
def fitted():
    synthesizer = MSTSynthesizer(METADATA, 5.0, public_domain=DOMAIN)
    synthesizer.fit(TABLE)
    return synthesizer


WAYS = {
    "sample": lambda synthesizer, **given: synthesizer.sample(5, **given),
    "conditions": lambda synthesizer, **given: synthesizer.sample_from_conditions(
        CONDITIONS, **given
    ),
    "remaining": lambda synthesizer, **given: synthesizer.sample_remaining_columns(KNOWN, **given),
}


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_shown_unless_verbose_and_what_is_no_size_is_refused(way, fitted, capsys):
    WAYS[way](fitted, max_tries_per_batch=100)
    WAYS[way](fitted, max_tries_per_batch=None)
    with pytest.raises(ValueError, match="no row is drawn twice"):
        WAYS[way](fitted, max_tries_per_batch=500)
    for size in (0, -1, 2.5, True, "all"):
        with pytest.raises(ValueError, match="batch_size"):
            WAYS[way](fitted, batch_size=size)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        WAYS[way](fitted, batch_size=2)
    shown = capsys.readouterr()
    assert shown.out == shown.err == ""
    fitted.verbose = True
    try:
        WAYS[way](fitted)
    finally:
        fitted.verbose = False
    assert "Sampling" in capsys.readouterr().err


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7])
def test_batches_are_written_one_by_one_and_hold_what_is_returned(size, fitted, tmp_path):
    for way, make in WAYS.items():
        fitted.reset_sampling()
        folder = tmp_path / way
        rows = make(fitted, batch_size=size, output_folder_path=folder)
        written = pd.read_csv(folder / "table.csv")
        assert len(rows) == len(written) == (4 if way == "conditions" else 5)
        assert written["b"].tolist() == rows["b"].tolist()
        assert written["id"].astype(str).tolist() == rows["id"].astype(str).tolist()
        with pytest.raises(AssertionError, match="already exist"):
            make(fitted, output_folder_path=folder)
        assert len(pd.read_csv(folder / "table.csv")) == len(rows)
    fitted.reset_sampling()
    expected = fitted.sample(10)
    fitted.reset_sampling()
    again = pd.concat([fitted.sample(5, batch_size=size), fitted.sample(5)], ignore_index=True)
    pd.testing.assert_frame_equal(again, expected)


def test_rows_that_were_written_before_a_failure_are_named(fitted, tmp_path, monkeypatch):
    sampler, taken = fitted._sampler, []
    take = type(sampler).take

    def fails(self, num_rows):
        if taken:
            raise MemoryError
        taken.append(num_rows)
        return take(self, num_rows)

    said = []
    monkeypatch.setattr(type(sampler), "take", fails)
    monkeypatch.setattr("sdv_privpgd.plugin.rows.note_on", lambda error, note: said.append(note))
    with pytest.raises(MemoryError):
        fitted.sample(9, batch_size=3, output_folder_path=tmp_path)
    assert len(pd.read_csv(tmp_path / "table.csv")) == 3
    assert said == [f"The rows that were made before lie in {tmp_path / 'table.csv'}."]


@pytest.mark.parametrize("size", [None, 1, 2])
def test_conditions_that_cannot_be_met_are_said_once_and_without_sdv_s_advice(size, fitted):
    known = pd.DataFrame({"b": ["x", "nowhere", "y", None]})
    with heard() as caught:
        rows = fitted.sample_remaining_columns(known, batch_size=size)
    (warning,) = caught
    assert "2 of 4 conditions can be met" in str(warning.message)
    assert "'nowhere'" in str(warning.message)
    assert "tries" not in str(warning.message)
    assert warning.filename == __file__
    assert rows["b"].tolist() == ["x", "y"]
    assert rows.index.tolist() == [0, 2]
    with pytest.raises(ValueError, match="Unable to sample any rows") as raised:
        fitted.sample_from_conditions([Condition({"b": "nowhere"})], batch_size=size)
    assert "tries" not in str(raised.value)


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.sample(3, main_table_name="other"),
        lambda s: s.get_transformers(table_name="other"),
        lambda s: s.update_transformers({}, table_name="other"),
        lambda s: s.get_metadata(version="newest"),
    ],
)
def test_names_that_are_not_there_are_refused(fitted, call):
    with pytest.raises(ValueError, match=r"other|newest"):
        call(fitted)


def test_names_and_conditions_that_are_there_or_none_are_taken(fitted):
    assert len(fitted.sample(3, main_table_name="table")) == 3
    assert set(fitted.get_transformers(table_name="table")) == set(TABLE.columns)
    for version in ("original", "modified"):
        assert fitted.get_metadata(version=version).to_dict() == METADATA.to_dict()
    for rows in (fitted.sample_from_conditions([]), fitted.sample_remaining_columns(KNOWN.head(0))):
        assert rows.empty
        assert list(rows.columns) == list(TABLE.columns)
    with pytest.raises(ValueError, match="known_columns must be a pandas DataFrame, got dict"):
        fitted.sample_remaining_columns({"table": KNOWN})
    for size in (None, 2):
        rows = fitted.sample_remaining_columns(KNOWN, batch_size=size)
        assert rows.index.tolist() == KNOWN.index.tolist()
        assert rows["b"].tolist() == KNOWN["b"].tolist()


def test_locales_reach_what_is_generated():
    metadata = sdv_tables.metadata_of({"a": {"sdtype": "boolean"}, "who": {"sdtype": "name"}})
    made = {}
    for locales in (["en_US"], ["ja_JP"], []):
        synthesizer = MSTSynthesizer(metadata, 5.0, locales=locales)
        synthesizer.fit(pd.DataFrame({"a": [True, False] * 50, "who": ["x"] * 100}))
        made[tuple(locales)] = "".join(synthesizer.sample(20)["who"])
    assert made["en_US",].isascii()
    assert not made["ja_JP",].isascii()
    assert made[()].isascii()


@pytest.mark.parametrize("wrong", [-1, 2.5, True, "5"])
def test_the_door_refuses_numbers_of_rows_that_are_none(wrong):
    fitted = fit_table(TABLE, {"a": Boolean()}, 5.0, method="independent+pgm")
    with pytest.raises(ValueError, match="num_rows"):
        fitted.sample(wrong)
    assert len(fitted.sample(np.int64(3))) == 3
