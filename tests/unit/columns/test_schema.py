"""What words, facts and names say about columns, and what they may not say."""

import datetime

import numpy as np
import pandas as pd
import pytest
from columns_of_words import column, dates, numerical, ranged

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.columns.bins import Categories, Ticks
from sdv_privpgd.columns.cuts import column_of
from sdv_privpgd.columns.encoding import encode_table
from sdv_privpgd.columns.facts import CategoryFacts, DateFacts, NumberFacts, single
from sdv_privpgd.columns.names import WHOSE, on_names
from sdv_privpgd.columns.parser import read_facts, read_table
from sdv_privpgd.columns.schema import PublicDomainError, Schema

COLUMNS = {
    "id": {"sdtype": "id"},
    "income": {"sdtype": "numerical", "range_min": 0.0, "range_max": 1e6},
    "age": {"sdtype": "numerical", "range_min": 17, "range_max": 90, "decimal_places": 0},
    "job": {"sdtype": "categorical", "range_values": ["nurse", "cook", "clerk"]},
    "email": {"sdtype": "email", "pii": True},
    "size": {"sdtype": "ordinal", "range_values": ["S", "M"], "range_is_nullable": False},
    "smokes": {"sdtype": "boolean"},
    "born": ranged("datetime", "1920-01-01", "2006-12-31", datetime_format="%Y-%m-%d"),
}


def refusal(public_domain, columns=COLUMNS, keys=(), error=ValueError, **settings):
    with pytest.raises(error) as caught:
        Schema.from_sdv(columns, keys=keys, public_domain=public_domain, **settings)
    return str(caught.value)


def test_columns_are_in_order_and_so_are_the_codes_of_numbers_dates_and_ordinals():
    schema = Schema.from_sdv(COLUMNS, keys={"id"}, num_bins=10)
    assert schema.domain() == Domain(
        ("income", "age", "job", "size", "smokes", "born"), (11, 11, 4, 2, 3, 11)
    )
    ordered = {each.name: each.is_ordered for each in Schema.from_sdv(COLUMNS, keys={"id"}).columns}
    assert ordered == {
        "income": True, "age": True, "job": False, "size": True, "smokes": False, "born": True
    }  # fmt: skip


def test_keys_are_not_modelled_and_need_no_domain():
    schema = Schema.from_sdv(COLUMNS, keys={"age"})
    assert "age" not in schema.domain().attributes
    assert Schema.from_sdv({"id": {"sdtype": "id"}}).domain() == Domain((), ())
    assert Schema.from_sdv({"x": {"sdtype": "numerical"}}, keys={"x"}).columns == ()
    assert "key" in refusal({"age": {"range_min": 0}}, keys={"age"})


def test_a_public_domain_takes_the_place_of_the_metadata_which_stays():
    schema = Schema.from_sdv(
        COLUMNS,
        public_domain={
            "age": {"range_max": 120, "num_bins": 4},
            "job": {"range_values": ["none"], "range_is_nullable": False},
        },
    )
    assert schema.named["age"].cells == Ticks(17, 120, 4)
    assert schema.named["job"].cells == Categories(("none",))
    assert schema.named["job"].size == 1
    facts = {"x": {"sdtype": "numerical"}}
    Schema.from_sdv(facts, public_domain={"x": {"range_min": 0, "range_max": 1}})
    assert facts == {"x": {"sdtype": "numerical"}}


# What is asked for


def test_all_columns_without_a_domain_and_formats_that_lose_dates_are_refused():
    columns = {
        "a": {"sdtype": "numerical", "range_min": 0},
        "b": {"sdtype": "categorical", "range_values": []},
        "c": {"sdtype": "boolean"},
        "d": {"sdtype": "datetime", "datetime_format": "%Y"},
        "e": {"sdtype": "ordinal", "range_values": None},
        "f": {"sdtype": "id"},
    }
    message = refusal(None, columns, error=PublicDomainError)
    assert all(f"'{name}'" in message for name in "abde")
    assert not any(f"'{name}'" in message for name in "cf")
    assert "public_domain={" in message
    assert "public_metadata=True" in message
    lossy = {"sdtype": "datetime", "datetime_format": "%Y-%m-%d %I:%M"}  # noon or midnight?
    columns = {"x": {**lossy, "range_min": "2020-01-01 01:00", "range_max": "2020-06-01 01:00"}}
    assert "%Y-%m-%d %I:%M" in refusal(None, columns)


def test_cut_points_begin_cells():
    cells = numerical(0, 99, decimal_places=0, cut_points=[39.5, 41, 99]).cells
    assert cells.starts.tolist() == [0, 40, 41, 99]
    assert cells.widths.tolist() == [40, 1, 58, 1]
    assert numerical(0, 1, cut_points=[0.1, 0.5]).cells.edges.tolist() == [0, 0.1, 0.5, 1]


@pytest.mark.parametrize(
    "cuts",
    [
        ["2020-01-05", "2020-01-09"],
        [datetime.date(2020, 1, 5), np.datetime64("2020-01-09")],
        pd.to_datetime(["2020-01-05", "2020-01-09"]),
        ["2020-01-04 12:00", "2020-01-08 00:00:01"],  # rounded up to days, which the bounds are
    ],
)
def test_cut_points_begin_cells_of_dates(cuts):
    cells = dates("2020-01-01", "2020-01-09", cut_points=cuts).cells
    first = (datetime.date(2020, 1, 1) - datetime.date(1970, 1, 1)).days
    assert cells.starts.tolist() == [first, first + 4, first + 8]
    assert cells.widths.tolist() == [4, 4, 1]


def test_cut_points_and_frequencies_of_dates_are_in_the_format_of_cells():
    cells = dates("01.2020", "12.2020", "%m.%Y", cut_points=["03.2020"]).cells
    assert cells.widths.tolist() == [2, 10]
    cuts = [datetime.date(2020, 3, 2), datetime.date(2020, 4, 1)]  # one after rounding
    column = dates(
        "01.2020", "12.2020", "%m.%Y", cut_points=cuts, frequencies=[1, 2, 3], num_bins=1
    )
    assert column.cells.widths.tolist() == [3, 9]
    assert column.merging is None
    days = pd.date_range("2020-01-01", "2020-04-09")
    often = [1000 if day.day == 13 else 1 for day in days]
    column = dates(days[0], days[-1], cut_points=days[1:], frequencies=often, num_bins=8)
    assert column.num_values == 8
    codes, _ = column.locate(np.arange(100) + column.cells.first)
    assert all(
        np.count_nonzero(codes == codes[place]) == 1 for place in np.flatnonzero(days.day == 13)
    )


@pytest.mark.parametrize("key", ["cut_points", "frequencies"])
@pytest.mark.parametrize("name", ["income", "born"])
def test_cells_are_declared_with_their_range(name, key):
    facts = {"sdtype": COLUMNS[name]["sdtype"], "range_min": COLUMNS[name]["range_min"]}
    message = refusal({name: {key: [5]}}, {name: facts})
    assert [word for word in (key, name, "range_max") if word not in message] == []


def test_what_is_not_among_the_values_may_have_a_value_of_its_own():
    own = column(sdtype="categorical", range_values=["a"], other_value="other")
    codes = encode_table({"x": pd.Series(["a", "b", None, "other"])}, Schema((own,)))
    assert codes[:, 0].tolist() == [0, 1, 2, 1]


# What cannot be


@pytest.mark.parametrize(
    ("public_domain", "told"),
    [
        ([("age", {})], ["public_domain", "map"]),
        ({"agee": {"range_min": 0}}, ["'agee'", "'age'"]),
        ({"email": {"range_values": ["x"]}}, ["'email'", "not modelled"]),
        ({"age": [0, 1]}, ["'age'", "[0, 1]", "range_min"]),
        ({"age": {"min": 0}}, ["'age'", "'min'", "range_min"]),
        ({"age": {"datetime_format": "%Y"}}, ["'datetime_format'", "numerical"]),
        ({"age": {"range_min": 91}}, ["range_min", "91", "90"]),
        ({"age": {"range_min": "17"}}, ["range_min", "'17'", "number"]),
        ({"age": {"range_max": float("inf")}}, ["range_max", "inf"]),
        ({"age": {"range_max": 2**62 + 1}}, ["range_max", "2**62", "decimal_places"]),
        ({"age": {"decimal_places": -1}}, ["decimal_places", "-1"]),
        ({"age": {"range_min": 17.1, "range_max": 17.9}}, ["17.1", "17.9", "decimal_places"]),
        ({"income": {"range_min": -1e308, "range_max": 1e308}}, ["range_min", "narrower"]),
        ({"age": {"num_bins": 0}}, ["num_bins", "0"]),
        ({"age": {"cut_points": 30}}, ["cut_points", "list", "30"]),
        ({"age": {"cut_points": [40, 30]}}, ["cut_points", "ascend", "[40, 30]"]),
        ({"age": {"cut_points": [91]}}, ["cut_points", "91"]),
        ({"born": {"cut_points": ["1950-01-01", 1]}}, ["cut_points", "date", "%Y-%m-%d", "got 1"]),
        ({"age": {"cut_points": [30], "frequencies": [1]}}, ["frequencies", "2 numbers"]),
        ({"age": {"cut_points": [30], "frequencies": [1, float("nan")]}}, ["frequencies", "nan"]),
        ({"age": {"cut_points": [30], "frequencies": [1, -1]}}, ["frequencies", "-1"]),
        ({"age": {"cut_points": [30], "frequencies": "ab"}}, ["frequencies", "'ab'"]),
        ({"job": {"other_value": ["x"]}}, ["other_value", "['x']"]),
        ({"job": {"range_values": ["a"], "other_value": "a"}}, ["other_value", "'a'"]),
        ({"age": {"range_is_nullable": "no"}}, ["range_is_nullable", "'no'"]),
        ({"job": {"range_values": "abc"}}, ["range_values", "list", "'abc'"]),
        ({"job": {"range_values": ["a", None]}}, ["range_values", "None", "range_is_nullable"]),
        ({"job": {"range_values": [["a"]]}}, ["range_values", "['a']"]),
        ({"job": {"range_values": [1, 1.0]}}, ["range_values", "differ"]),
        ({"born": {"range_min": "01/02/1990"}}, ["range_min", "'01/02/1990'", "%Y-%m-%d"]),
        ({"born": {"range_min": "2007-01-01"}}, ["range_min", "2007-01-01", "2006-12-31"]),
        ({"born": {"range_max": "9999-12-30"}}, ["range_max", "9999-12-30", "2262"]),
        ({"born": {"datetime_format": "mixed"}}, ["datetime_format", "'mixed'", "%Y"]),
        ({"born": {"datetime_format": "%m-%d", "range_min": "12-31"}}, ["range_max", "%m-%d"]),
    ],
)
def test_errors_name_the_argument_the_value_and_the_remedy(public_domain, told):
    message = refusal(public_domain)
    assert [word for word in told if word not in message] == []


DAY = 86_400 * 10**9


def test_formats_that_were_given_up_stay_so_and_zones_are_those_of_format_or_bound():
    stated = DateFacts(low=0, datetime_format="%H:%M", num_bins=8)
    found = DateFacts(low=DAY, high=9 * DAY, datetime_format=None, aware=True)
    known = stated.and_found(found)
    assert (known.datetime_format, known.unit, known.utc, known.num_bins) == (None, "D", True, 8)
    assert stated.and_found(DateFacts(high=DAY, datetime_format="%H:%M")).unit == "m"
    ends = {"range_min": "2020-01-01", "range_max": pd.Timestamp("2020-02-01", tz="Asia/Tokyo")}
    assert read_facts("x", {"sdtype": "datetime", **ends}).utc
    written = {"sdtype": "datetime", "datetime_format": "%Y", "range_max": ends["range_max"]}
    assert not read_facts("x", written).utc
    assert read_facts("x", {"sdtype": "datetime", "datetime_format": "%Y %z"}).utc


@pytest.mark.parametrize(
    ("places", "end", "bound", "kept"),
    [
        (0, "low", 0.5, 1), (0, "high", 0.5, 0), (1, "low", 0.25, 0.3), (1, "high", 0.25, 0.2),
        (1, "low", 0.3, 0.3), (None, "low", 0.25, 0.25), (0, "high", -7, -7),
    ],
)  # fmt: skip
def test_a_single_value_is_one_that_the_column_can_hold(places, end, bound, kept):
    facts = single(NumberFacts(**{end: bound}, decimal_places=places), end)
    assert (facts.low, facts.high) == (kept, kept)
    assert column_of("x", facts).num_values == 1


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"sdtype": "numerical", "decimal_places": "x"}, "decimal_places of 'x'"),
        ({"sdtype": "numerical", "increment": 0.5}, "increment of 'x'"),
        ({"sdtype": "numerical", "rounding": {10: 0.5}}, "rounding of 'x' must be a list"),
        ({"sdtype": "numerical", "rounding": [[10, 0.5], 5]}, "pairs of a step above 0"),
        ({"sdtype": "numerical", "rounding": [[0, 0.5]]}, "pairs of a step above 0"),
        ({"sdtype": "numerical", "rounding": [[10, 0.5], [5, 0.6]]}, "pairs of a step above 0"),
        ({"sdtype": "numerical", "increment": 5, "range_max": 2**53 + 1}, r"within 2\*\*53"),
        ({"sdtype": "numerical", "decimal_places": 0, "range_min": -(2**62)}, r"within 2\*\*62"),
        ({"sdtype": "datetime", "datetime_format": "mixed"}, "datetime_format of 'x'"),
        ({"sdtype": "datetime", "num_bins": 1.5}, "num_bins of 'x'"),
        ({"sdtype": "categorical", "range_is_nullable": 1}, "range_is_nullable of 'x'"),
    ],
)
def test_facts_on_a_column_without_a_domain_are_checked_at_once(facts, told):
    """Else the fit would fail after it had paid for the domain."""
    with pytest.raises(ValueError, match=told):
        read_table({"x": {"sdtype": facts["sdtype"]}}, public_domain={"x": {
            key: fact for key, fact in facts.items() if key != "sdtype"
        }})  # fmt: skip


def test_a_schema_of_facts_needs_all_domains():
    known = {"age": NumberFacts(low=0, high=9, decimal_places=0), "ward": CategoryFacts()}
    with pytest.raises(PublicDomainError, match="'ward'"):
        Schema.of(known)
    (column,) = Schema.of({"age": known["age"]}, num_bins=3).columns
    assert (column.name, column.num_values) == ("age", 3)
    for wrong in (0, True, None):
        with pytest.raises(ValueError, match="num_bins must be"):
            Schema.of({}, num_bins=wrong)


IDS = [
    "id", "ID", "patient_id", "PatientID", "Kunden-Nr", "patient_nbr", "row key", "Patient", "MRN",
    "Name", "last_name", "Nachname", "Patientennummer", "SSN", "e_mail", "customerid", "household",
    "USUBJID", "kundennummer", "cliente", "personnummer", "Unnamed: 0", "numero_de_cliente",
    "N° patient", "id_hogar", "Assuré", "Schüler", "codice_paziente", "patientno", "пациент",
    "患者番号", "пациент_ид", "номер пациента", "nr_pacjenta", "환자번호", "病历号", "NHS number",
    "N° de dossier", "caseid", "StudyID", "account_number", "Policy No", "Aktenzeichen", "KVNR",
    "Fallnr", "lopnr", "customer_ref", "patient_hash", "IMEI",
]  # fmt: skip
DATES = ["date", "birth_date", "date_of_birth", "DOB", "Geburtsdatum", "visit date", "Datum"]
ORDINARY = [
    "paid", "covid", "grid", "key", "valid", "type_id", "status_id", "hausnr", "id_type", "update",
    "mandate", "dated", "date_type", "sex", "age", "", "7", "is_customer", "new patient",
    "page_ref", "SeniorCitizen", "active_user",
    "hours per person", "household_size", "house number", "customer type", "kundenart", "postcode",
    "numero_de_pieces", "nation", "код", "номер дома", "nr_domu", "성별", "年龄", "age_of_patient",
    "number", "name_of_ward", "ward_name", "person_years", "hausnummer_zusatz", "visit_number",
    "account_type", "claim_nb", "study", "policy", "age°",
]  # fmt: skip


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize("sdtype", ["categorical", "numerical", "ordinal"])
def test_ids_that_would_be_modelled_are_named(name, sdtype):
    (said,) = on_names({name: read_facts(name, {"sdtype": sdtype})}, says_whose=True)
    assert repr(name) in said
    assert "ids" in said
    asked = on_names({name: read_facts(name, {"sdtype": sdtype})}, says_whose=False)
    assert asked == [said, WHOSE]
    assert "People(column" in WHOSE
    assert "People(rows_are_people=True)" in WHOSE


@pytest.mark.parametrize("name", DATES)
def test_dates_that_would_be_categories_are_named(name):
    (said,) = on_names({name: CategoryFacts()}, says_whose=False)
    assert repr(name) in said
    assert "datetime_format" in said
    assert on_names({name: DateFacts()}, says_whose=False) == []


@pytest.mark.parametrize("name", ORDINARY)
@pytest.mark.parametrize("sdtype", ["categorical", "numerical", "boolean", "datetime"])
def test_ordinary_names_are_not(name, sdtype):
    assert on_names({name: read_facts(name, {"sdtype": sdtype})}, says_whose=False) == []


@pytest.mark.parametrize(
    "facts",
    [{"sdtype": "categorical", "other_value": "other"}, {"sdtype": "numerical", "range_min": 0}],
)
def test_what_is_declared_is_meant(facts):
    read = read_facts("x", facts)
    assert on_names({"patient_id": read, "birth_date": read}, says_whose=False) == []
