"""The audit of a bound on people, weighed or not, finds what is planted, and nothing else."""

from dataclasses import replace

import numpy as np
import pytest
import sdv_tables

from sdv_privpgd import Boolean, Categorical, MSTSynthesizer, Numerical, People
from sdv_privpgd.audit import audit_fit, audit_measure
from sdv_privpgd.columns.encoding import parts_of_one
from sdv_privpgd.privacy import streams
from sdv_privpgd.privacy.counting import units_of
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.releases.site import Measuring
from sdv_privpgd.sources import people, visits
from sdv_privpgd.sources.people import staying

pytestmark = pytest.mark.long

COLUMNS = {"ill": Boolean(), "ward": Categorical(["A", "B", "C"])}
IN_ORDER = {**COLUMNS, "day": Numerical(0, 9, decimal_places=0)}
PEOPLE = {"adjacency": "add_remove", "delta": 1e-5, "people": People("who", max_rows=2)}
WEIGHED = {**PEOPLE, "people": People("who", max_rows=2, weighed=True)}
WEIGHTS = {**PEOPLE, "people": People(weight_column="weight", weight_range=(1, 50))}
ORDER = {"people": People("who", 2, sequence_index="day", previous=["ward"])}


def failed(columns=COLUMNS, **settings):
    asked = {"epsilon": 6.0, "method": "independent+pgm", "discovery_share": 0}
    report = audit_fit(columns, runs=100, false_alarms=1e-7, **{**asked, **PEOPLE, **settings})
    return set(report.to_dict()["failed"])


@pytest.mark.parametrize(
    "people",
    [pytest.param(PEOPLE, marks=pytest.mark.slow), WEIGHED, WEIGHTS],
    ids=["rows", "people", "weights"],
)
def test_nothing_is_found_where_all_is_right(people, plant):
    assert failed(**people) == set()


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["privpgd", "mst", "mwem"])
@pytest.mark.parametrize("people", [PEOPLE, WEIGHED, WEIGHTS], ids=["rows", "people", "weights"])
def test_nothing_is_found_whatever_is_asked(strategy, people, plant):
    columns = {**COLUMNS, "town": Categorical()}
    asked = {"method": strategy, "discovery_share": 0.3, **people}
    assert failed(columns, **asked) == set()


def test_nothing_is_found_where_ids_are_made_anew(plant):
    assert failed({**COLUMNS, "who": {"sdtype": "id"}}, **WEIGHED) == set()


@pytest.mark.slow
def test_nothing_is_found_in_a_synthesizer_whose_ids_are_made_anew(plant):
    facts = {"who": {"sdtype": "id"}, "ill": {"sdtype": "boolean"}}
    metadata = sdv_tables.metadata_of(facts)
    synthesizer = MSTSynthesizer(metadata, 6.0, **WEIGHED)
    assert synthesizer.audit(runs=100, false_alarms=1e-7).to_dict()["failed"] == []


@pytest.mark.parametrize(
    "people", [PEOPLE, pytest.param(WEIGHED, marks=pytest.mark.slow)], ids=["rows", "people"]
)
def test_a_bound_that_is_not_kept(people, plant):
    plant("sdv_privpgd.sources.people.staying", lambda owner, *_: np.ones(len(owner), dtype=bool))
    assert {"changes", "people"} <= failed(**people)


@pytest.mark.slow
@pytest.mark.parametrize("people", [PEOPLE, WEIGHED], ids=["rows", "people"])
def test_a_person_counted_with_one_row_too_many(people, plant):
    plant("sdv_privpgd.sources.people.staying", lambda *own: staying(*own[:-1], own[-1] + 1))
    assert {"changes", "people"} <= failed(**people)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("weights", "found"),
    [
        (lambda most: [units_of(most) // max(n - 1, 1) for n in range(1, most + 1)], "changes"),
        (lambda most: [units_of(most) // (n + 1) for n in range(1, most + 1)], "people"),
    ],
    ids=["a row too few", "a row too many"],
)
def test_weights_that_are_off_by_one_row(weights, found, plant):
    plant(streams, "weights_of", weights)
    assert {found, "people"} <= failed(**WEIGHED)


@pytest.mark.parametrize(
    ("times", "found"), [(0.5, "people"), (1.5, "changes")], ids=["half of it", "half more"]
)
def test_rows_that_count_as_another_part_than_their_weights_say(times, found, plant):
    plant(streams, "parts_of_one", lambda *rest: times * parts_of_one(*rest))
    assert {found, "people"} <= failed(**WEIGHTS)


@pytest.mark.parametrize(
    "spelled",
    [lambda cell, _: repr(cell), pytest.param(lambda cell, _: str(cell), marks=pytest.mark.slow)],
    ids=["1 and '1' are two", "1 and 1.0 are two"],
)
def test_one_person_in_two_spellings_taken_for_two(spelled, plant):
    plant(people, "person_of", spelled)
    assert {"changes", "people"} <= failed()


@pytest.mark.slow
def test_rows_that_are_chosen_by_who_else_is_there(plant):
    def of_all(names, numbers, *_):
        return numbers.sum() % np.maximum(numbers, 1)

    plant(people, "starts_of", of_all)
    assert "changes" in failed()


@pytest.mark.slow
def test_a_charge_for_one_row_of_people_who_have_two(plant):
    plant(PrivacyLedger, "rows_counted", property(lambda self: 1))
    assert {"changes", "attack"} <= failed()


def measured(**settings):
    report = audit_measure(
        COLUMNS, 6.0, runs=100, false_alarms=1e-7, method="independent", **settings
    )
    return set(report.to_dict()["failed"])


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, PEOPLE, WEIGHED])
def test_nothing_is_found_in_a_release_where_all_is_right(settings, plant):
    assert measured(**settings) == set()


@pytest.mark.slow
def test_a_release_that_says_how_many_rows_there_are(plant):
    real = Measuring.run

    def run(self, *given, **named):
        released = real(self, *given, **named)
        return replace(released, strategy=str(self.private._source.num_rows()))

    plant(Measuring, "run", run)
    assert measured(**PEOPLE) == {"file"}


@pytest.mark.slow
def test_nothing_is_found_in_rows_in_order(plant):
    assert failed(IN_ORDER, **ORDER) == set()


@pytest.mark.slow
def test_one_row_in_order_too_many(plant):
    in_order = visits._in_order

    def one_more(owner, most, starts, *keys):
        return in_order(owner, most + 1, starts, *keys)

    plant(visits, "_in_order", one_more)
    assert {"changes", "people"} <= failed(IN_ORDER, **ORDER)


def test_a_row_that_is_told_of_somebody_else(plant):
    in_order = visits._in_order

    def of_anybody(owner, most, starts, *keys):
        stays, _ = in_order(owner, most, starts, *keys)
        last = np.maximum.accumulate(np.where(stays, np.arange(len(owner)), 0))
        return stays, np.where(stays, np.r_[0, last[:-1]], -1)  # of whoever stood there before

    plant(visits, "_in_order", of_anybody)
    assert "changes" in failed(IN_ORDER, method="privpgd", **ORDER)
