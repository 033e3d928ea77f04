"""Names of ids and dates are told before anything is spent; ordinary names are not."""

import pytest

from sdv_privpgd.columns.facts import CategoryFacts, DateFacts
from sdv_privpgd.columns.naming import WHOSE, on_names
from sdv_privpgd.columns.parsing import read_facts

IDS = ["id", "ID", "patient_id", "PatientID", "patientId", "Kunden-Nr", "patient_nbr", "row key"]
IDS += ["Patient", "MRN", "Name", "last_name", "Nachname", "Patientennummer", "SSN", "e_mail"]
IDS += ["pid", "CustomerID", "customerid", "household", "HHID", "USUBJID", "subject", "kunde"]
IDS += ["kundennummer", "Versicherte", "matricule", "cliente", "person_nr", "personnummer", "uid"]
IDS += ["Unnamed: 0"]
IDS += [
    "numero_de_cliente",
    "N° patient",
    "no_patient",
    "id_hogar",
    "Assuré",
    "Schüler",
    "Haushalt",
]
IDS += [
    "codice_paziente",
    "patientno",
    "patient number",
    "klantnummer",
    "пациент",
    "患者番号",
    "客户",
    "пациент_ид",
    "номер пациента",
    "nr_pacjenta",
    "dossier",
    "환자번호",
    "病历号",
    "NHS number",
]
DATES = ["date", "birth_date", "date_of_birth", "DOB", "Geburtsdatum", "visit date", "Datum"]
ORDINARY = [
    "paid", "covid", "grid", "android", "key", "valid", "type_id", "status_id", "hausnr", "id_type",
    "update", "candidate", "mandate", "dated", "date_type", "sex", "age", "workclass", "", "7",
    "is_customer", "new patient", "hours per person", "household_size", "house number", "room no",
    "customer type", "kundenart", "postcode", "zip code", "numero_de_pieces", "area code", "nation",
    "age_of_patient", "number",
    "код", "номер дома", "nr_domu", "성별", "年龄", "chart_type",
    "name_of_ward", "ward_name", "person_years", "hausnummer_zusatz",
]  # fmt: skip


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize("sdtype", ["categorical", "numerical", "ordinal"])
def test_ids_that_would_be_modelled_are_named(name, sdtype):
    (said,) = on_names({name: read_facts(name, {"sdtype": sdtype})}, says_whose=True)
    assert repr(name) in said
    assert "ids" in said
    (asked,) = on_names({name: read_facts(name, {"sdtype": sdtype})}, says_whose=False)
    assert asked == f"{said} {WHOSE}"
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
    [
        {"sdtype": "categorical", "range_values": ["A"]},
        {"sdtype": "categorical", "other_value": "other"},
        {"sdtype": "numerical", "range_min": 0},
        {"sdtype": "boolean"},
    ],
)
def test_what_is_declared_is_meant(facts):
    read = read_facts("x", facts)
    assert on_names({"patient_id": read, "birth_date": read}, says_whose=False) == []
