"""What no fit can work with is refused before a row is read; threads wait for each other."""

import contextlib
import copy
import threading

import cloudpickle
import numpy as np
import pandas as pd
import pytest
import sdv_tables
from made_up import kinds, made_up
from rdt.transformers import RegexGenerator
from sdv.cag import Inequality, Range, SingleTableProgrammableConstraint
from sdv.errors import InvalidDataError, SynthesizerInputError

from sdv_privpgd import AIMSynthesizer, MSTSynthesizer, PrivacyBudgetError, PrivPGDSynthesizer
from sdv_privpgd.constraints.repair import ConstraintError
from sdv_privpgd.fitting.resume import booked
from sdv_privpgd.methods import AIM, ParticleGradientDescent, PrivPGD, ProtectedThreshold

COLUMNS = sdv_tables.metadata_of(
    kinds(low="numerical", high="numerical", ward="categorical", ill="boolean")
)
DOMAIN = {
    "low": {"range_min": 0, "range_max": 9},
    "high": {"range_min": 0, "range_max": 900},
    "ward": {"range_values": ["A", "B"]},
}


def table(num_rows=600):
    return made_up(num_rows, low=(0, 9), high=(500, 900), ward="AB", ill=0.3)


def keyed(pattern, role):
    """A synthesizer of a table with a key; the pattern is the metadata's, or a generator's."""
    facts = {"sdtype": "id", **({"regex_format": pattern} if role != "generator" else {})}
    metadata = sdv_tables.metadata_of({**COLUMNS.tables["table"].columns, "id": facts})
    if role == "alternate":
        metadata.add_alternate_keys(["id"])
    else:
        metadata.set_primary_key("id")
    synthesizer = MSTSynthesizer(metadata, 5.0, method="independent+pgm", public_domain=DOMAIN)
    if role == "generator":
        synthesizer.auto_assign_transformers(table(9).assign(id=[f"{n}" for n in range(9)]))
        own = RegexGenerator(regex_format=pattern, cardinality_rule="unique")
        synthesizer.update_transformers({"id": own})
    return synthesizer


def never(*args, **settings):
    raise AssertionError("the table was looked at")


class TestPatternsOfKeys:
    @pytest.mark.parametrize("role", ["primary", "alternate", "generator"])
    @pytest.mark.parametrize("dtype", ["int64", "Int32", "uint8"])
    @pytest.mark.parametrize("pattern", ["[0-9]{1,4}", r"\d{1,3}", "([0-9]{1,2})", "0?[1-9]"])
    def test_one_that_writes_a_number_in_two_ways_is_refused(self, role, dtype, pattern):
        synthesizer = keyed(pattern, role)
        rows = table(200).assign(id=np.arange(200)).astype({"id": dtype})
        synthesizer._fit = never
        with pytest.raises(InvalidDataError, match="column 'id' has whole numbers, and its regex"):
            synthesizer.fit(rows)
        assert synthesizer.ledger is None or not synthesizer.ledger.charges
        synthesizer.validate(rows.astype({"id": "string"}))

    @pytest.mark.parametrize(
        ("pattern", "dtype", "kind"),
        [
            ("[1-9][0-9]{0,3}", "int64", "whole"), ("[1-9]{0,2}[0-9]", "Int32", "whole"),
            ("[1-9]?[0-9]{1}", "int64", "whole"), ("[0-9]{4}", "int64", "whole"),
            ("[0-9]{1,4}", "string", "text"), ("[0-9]{1,4}", "float32", "text"),
            ("[0-9]{1,4}", "Float64", "text"), ("[0-9]{1,4}", "float64", "text"),
            (r"1(\.0)?", "boolean", "text"), ("P[0-9]{1,2}", "int64", "text"),
        ],
    )  # fmt: skip
    def test_keys_of_all_others_are_unique(self, pattern, dtype, kind):
        synthesizer = keyed(pattern, "primary")
        number = 90 if dtype != "boolean" else 2
        rows = table(number).assign(id=np.arange(number)).astype({"id": dtype})
        synthesizer.fit(rows)
        ids = synthesizer.sample(number)["id"]
        assert ids.is_unique
        assert pd.api.types.is_integer_dtype(ids) is (kind == "whole")


def protecting(name, times=1):
    penalties = [ProtectedThreshold({name: 1.0}, b=0.5)] * times
    return PrivPGD(engine=ParticleGradientDescent(penalties=penalties))


class TestSettings:
    @pytest.mark.parametrize(
        ("name", "wrong"),
        [
            ("epsilon", 0), ("epsilon", "1"), ("delta", 1.0), ("adjacency", "both"),
            ("people", 3), ("discovery_share", 1.5),
            ("discovery_share", -0.1), ("seed", -1), ("verbose", "yes"),
            ("public_metadata", 1), ("enforce_min_max_values", None), ("enforce_rounding", "no"),
            ("public_domain", {"low": {"minimum": 0}}), ("public_domain", "low"),
            ("method", "best"),
        ],
    )  # fmt: skip
    def test_a_setting_that_was_changed_is_checked_before_the_table_is_looked_at(
        self, name, wrong, monkeypatch
    ):
        synthesizer = PrivPGDSynthesizer(COLUMNS, 1.0)
        monkeypatch.setattr(PrivPGDSynthesizer, "_open", never)
        setattr(synthesizer, name, wrong)
        for spend in (
            lambda: synthesizer.fit(table()),
            lambda: synthesizer.fit_processed_data({"table": table()}),
            lambda: synthesizer.plan(50),
        ):
            with pytest.raises(ValueError, match=name):
                spend()
        assert synthesizer._ledgers.ledger is None

    def test_the_constructor_checks_the_same_and_numbers_may_be_names(self):
        with pytest.raises(SynthesizerInputError, match="enforce_rounding"):  # SDV's own
            PrivPGDSynthesizer(COLUMNS, 1.0, enforce_rounding="no")
        with pytest.raises(ValueError, match="max_megabytes"):
            AIMSynthesizer(COLUMNS, 1.0, method=AIM(max_megabytes=0))
        metadata = sdv_tables.metadata_of({"0": {"sdtype": "categorical"}})
        synthesizer = MSTSynthesizer(metadata, 3.0)
        synthesizer.public_domain = {0: {"range_values": ["A", "B"]}}
        synthesizer.fit(table()[["ward"]].set_axis([0], axis=1))
        assert set(synthesizer.sample(30)[0].dropna()) <= {"A", "B"}

    @pytest.mark.parametrize(
        ("method", "match"),
        [
            (protecting("height"), "height"),
            (protecting("low", times=99), "99 statistics"),
            (AIM(workload=(("low", "height"),), engine="particles"), "height"),
        ],
    )
    def test_a_question_about_no_column_is_refused_before_discovery_is_paid(self, method, match):
        synthesizer = PrivPGDSynthesizer(COLUMNS, 1.0, method=method)
        with pytest.raises((ValueError, PrivacyBudgetError), match=match):
            synthesizer.fit(table())
        assert synthesizer.ledger.charges == ()


class TestCodes:
    @pytest.mark.parametrize(
        "told",
        [
            lambda codes: table().assign(ward="secret"), lambda codes: codes.astype(str),
            lambda codes: codes.astype(float), lambda codes: codes.astype("Int64"),
            lambda codes: codes.astype(bool), lambda codes: codes.to_numpy(),
            lambda codes: codes.iloc[:, 1:], lambda codes: codes.assign(more=1),
            lambda codes: codes.iloc[:, [0, *range(len(codes.columns))]],
        ],
    )  # fmt: skip
    def test_what_preprocess_does_not_give_is_refused_without_a_word_of_a_cell(self, told):
        synthesizer = PrivPGDSynthesizer(COLUMNS, 1.0, public_domain=DOMAIN)
        codes = synthesizer.preprocess(table())["table"]
        with pytest.raises(InvalidDataError, match="Codes are a DataFrame of whole") as refused:
            synthesizer.fit_processed_data({"table": told(codes)})
        assert "secret" not in str(refused.value)
        assert synthesizer.ledger.charges == ()

    def test_another_table_is_refused_and_a_frame_is_taken(self):
        synthesizer = PrivPGDSynthesizer(COLUMNS, 1.0, public_domain=DOMAIN, **sdv_tables.SMALL)
        codes = synthesizer.preprocess(table(60))["table"]
        with pytest.raises(InvalidDataError, match="one table named 'table', got \\['other'\\]"):
            synthesizer.fit_processed_data({"other": codes})
        with pytest.warns(UserWarning, match="In so few rows noise"):
            synthesizer.fit_processed_data(codes)
        assert synthesizer.ledger.spent() == pytest.approx(1.0, abs=1e-3)


class Never(SingleTableProgrammableConstraint):
    def is_valid(self, synthetic_data):
        return synthetic_data["nonsense"] > 0


class OfText(SingleTableProgrammableConstraint):
    def is_valid(self, synthetic_data):
        return ~synthetic_data["ward"].str.startswith("never", na=False)


class OfKnownWards(SingleTableProgrammableConstraint):
    def is_valid(self, synthetic_data):
        if synthetic_data["ward"].eq("A").any():
            raise RuntimeError("no such ward")
        return synthetic_data["high"].notna()


@pytest.mark.filterwarnings("ignore:The ranges or categories")
class TestConstraints:
    @pytest.mark.parametrize(
        ("domain", "constraint"),
        [
            ({"high": {"range_min": 20}, "low": {"range_max": 10}}, Inequality("high", "low")),
            (
                {"low": {"range_min": 9, "range_is_nullable": False}, "high": {"range_max": 9}},
                Inequality("low", "high", strict_boundaries=True),
            ),
        ],
    )
    def test_what_no_discovery_could_meet_is_refused_before_it_is_paid(self, domain, constraint):
        synthesizer = MSTSynthesizer(COLUMNS, 3.0)
        with pytest.raises(SynthesizerInputError, match="must decide each row"):
            synthesizer.add_constraints([Never()])
        synthesizer.add_constraints([constraint])
        synthesizer.public_domain = domain  # after: the constraint is looked at again
        with pytest.raises(ConstraintError, match="cannot be met by the declared bounds"):
            synthesizer.fit(table())
        assert synthesizer.ledger.charges == ()

    @pytest.mark.parametrize(
        "constraint",
        [Inequality("high", "low"), Range("high", "low", "ill_age"), OfText()],
        ids=lambda constraint: type(constraint).__name__,
    )
    def test_what_discovery_decides_does_not_fail_after_it_is_paid(self, constraint):
        metadata = sdv_tables.metadata_of(
            {**COLUMNS.to_dict()["tables"]["table"]["columns"], "ill_age": {"sdtype": "numerical"}}
        )
        synthesizer = MSTSynthesizer(metadata, 5.0)
        synthesizer.add_constraints([constraint])
        synthesizer.fit(table().assign(ill_age=-5))
        rows = synthesizer.sample(200)
        synthesizer.validate_constraints(rows)
        assert len(rows) == 200
        assert 0.99 * 5.0 < synthesizer.ledger.spent() <= 5.0

    def test_a_black_box_that_fails_on_what_was_found_is_set_aside_with_a_warning(self):
        synthesizer = MSTSynthesizer(COLUMNS, 5.0)
        synthesizer.add_constraints([OfKnownWards(), Inequality("low", "high")])
        with pytest.warns(UserWarning, match="Not enforced: OfKnownWards.*no such ward"):
            synthesizer.fit(table())
        rows = synthesizer.sample(300)
        assert not (rows["low"] > rows["high"]).any()

    def test_an_order_that_a_date_s_format_cannot_write_gives_the_format_up(self):
        """Hours and minutes are all of 1900, years with two digits from 1969 on."""
        columns = {
            "late": {"sdtype": "datetime", "datetime_format": "%d.%m.%y"},
            "time": {"sdtype": "datetime", "datetime_format": "%H:%M"},
        }
        days = pd.date_range("2001-01-01", periods=600).strftime("%d.%m.%y")
        hours = pd.date_range("2001-01-01", periods=600, freq="7min").strftime("%H:%M")
        synthesizer = MSTSynthesizer(sdv_tables.metadata_of(columns), 5.0)
        synthesizer.add_constraints([Inequality("late", "time")])
        synthesizer.fit(pd.DataFrame({"late": days, "time": hours}))
        assert len(synthesizer.sample(50)) == 50


class TestThreads:
    """Both threads are led to the same point of a fit, if both are let in."""

    @pytest.mark.filterwarnings("ignore")
    def test_no_fit_is_lost_from_the_ledger(self, monkeypatch):
        synthesizer = MSTSynthesizer(COLUMNS, 1.0, public_domain=DOMAIN)
        both = threading.Barrier(2)

        def slowly(*shared):
            after = booked(*shared)
            with contextlib.suppress(threading.BrokenBarrierError):
                both.wait(0.2)  # met by the other thread only if nothing holds it
            return after

        monkeypatch.setattr("sdv_privpgd.fitting.resume.booked", slowly)
        threads = [threading.Thread(target=synthesizer.fit, args=(table(),)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        one = MSTSynthesizer(COLUMNS, 1.0, public_domain=DOMAIN)
        one.fit(table())
        asked = [charge.what for charge in synthesizer.ledger.charges]
        assert asked.count("cells that are no declared values") == 3  # noise says how many looks
        assert synthesizer.ledger.mu_squared == 3 * one.ledger.mu_squared

    @pytest.mark.parametrize(
        "take", [copy.deepcopy, lambda s: cloudpickle.loads(cloudpickle.dumps(s))]
    )
    def test_a_copy_does_not_wait_for_the_original(self, take):
        synthesizer = MSTSynthesizer(COLUMNS, 1.0)
        with synthesizer._ledgers.lock:
            assert take(synthesizer)._ledgers.lock is not synthesizer._ledgers.lock
