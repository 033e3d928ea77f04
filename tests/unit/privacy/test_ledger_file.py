"""A ledger in a file is the same ledger, and one that was edited is none."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest
from answers import charge_of

from sdv_privpgd.base.files import digest_of
from sdv_privpgd.privacy.accounting import mu_squared_of_range
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.ledger_file import planned, read_ledger
from sdv_privpgd.privacy.queries import Adjacency

REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE


@pytest.fixture
def ledger():
    opened = PrivacyLedger.open(1.0, 1e-5, REPLACE, 2, reserved=Fraction(1, 10**6))
    delta, cost = Fraction(1, 2**128), Fraction(8) / Fraction(100.25) ** 2
    noisy = charge_of("Gaussian, rounded", "tables", 1, 6, (8, 4), 100.25, cost, delta)
    heat = Fraction(401, 3)
    cost = mu_squared_of_range(4 / heat)
    chosen = charge_of("exponential", "a pair", 1, 6, (4, 4), 0.0, cost, delta, temperature=heat)
    exact = charge_of("exact (public)", "number of rows", 1, 6, (0, 4), 0.0, 0, delta, threshold=17)
    return opened.record(noisy).record(chosen).record(exact)


def test_what_is_written_is_read_exactly_whatever_delta_is_left(ledger):
    assert read_ledger(ledger.to_json()) == ledger
    both = ledger.followed_by(ledger)
    assert read_ledger(both.to_json()) == both
    loud = ledger.followed_by(PrivacyLedger.open(1.0, 1e-5, REPLACE, 2, reserved=9.5e-6))
    assert loud.epsilon == float("inf")
    assert read_ledger(loud.to_json()) == loud
    facts = ledger.to_dict()
    del facts["digest"]
    with pytest.raises(ValueError, match="digest is missing"):
        read_ledger(json.dumps(facts))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["charges", 0, "mu_squared"], "1/100000"), (["charges", 0, "stddev"], 50.0),
        (["charges", 0, "stddev"], float("nan")), (["charges", 0, "stddev"], -100.25),
        (["charges", 0, "delta"], "-1/3"),
        (["charges", 0, "sensitivity_squared"], {"replace_one": 8}),
        (["charges", 1, "temperature"], "1/9"), (["charges", 1, "temperature"], "0"),
        (["charges"], []), (["charges"], None), (["budget_mu_squared"], "1/1000000"),
        (["spent_mu_squared"], "0"), (["adjacency"], "both"), (["rows_per_person"], 0),
        (["delta"], 1.5), (["reserved_delta"], "none"), (["rows_per_person"], 3),
        (["epsilon"], 0.5), (["delta"], 2e-5), (["reserved_delta"], "1/200000"),
    ],
)  # fmt: skip
def test_what_a_file_says_must_fit_under_a_new_digest_too(ledger, path, value):
    facts = ledger.to_dict()
    assert read_ledger(redigested(facts)) == ledger
    *way, last = path
    place = facts
    for key in way:
        place = place[key]
    place[last] = value
    with pytest.raises(ValueError, match=r"ledger|adjacency|rows_per_person|delta"):
        read_ledger(redigested(facts))


@pytest.mark.parametrize("text", ["", "[]", "3", "{}", '{"adjacency": "replace_one"}'])
def test_other_text_is_no_ledger(text):
    with pytest.raises(ValueError, match=r"ledger|Expecting value"):
        read_ledger(text)


# Every entry


def places(facts, way=()):
    """The way to each entry of nested facts, and the entry."""
    if isinstance(facts, dict | list):
        items = facts.items() if isinstance(facts, dict) else enumerate(facts)
        for key, value in items:
            yield from places(value, (*way, key))
    yield way, facts


def edits(value):
    """Others that an editor may put there."""
    if isinstance(value, bool) or value is None:
        return [not value, 1]
    if isinstance(value, int | float):
        return [value + 1, value / 2, str(value)]
    if isinstance(value, str):
        return [value + "0", None]
    return [type(value)(), None]


@pytest.mark.parametrize("weighed", [False, True])
def test_no_entry_can_be_edited_unnoticed(ledger, weighed):
    opened = replace(ledger, people="patient")
    if weighed:  # with charges in units
        opened = planned(PrivacyLedger.open(1.0, 1e-5, ADD, 3, people="patient", weighed=True), "a")
    written = json.loads(opened.to_json())
    assert read_ledger(json.dumps(written)) == opened
    noticed = 0
    for way, value in places(written):
        for other in edits(value) if way else []:
            if repr(other) == repr(value):
                continue
            facts = json.loads(opened.to_json())
            place = facts
            for key in way[:-1]:
                place = place[key]
            place[way[-1]] = other
            with pytest.raises(ValueError, match=r"\w"):
                read_ledger(json.dumps(facts))
            noticed += 1
    assert noticed > 60


def redigested(facts):
    return json.dumps({**facts, "digest": digest_of(facts)})


def test_weights_fit_the_charges_under_a_new_digest_too():
    opened = PrivacyLedger.open(1.0, 1e-5, ADD, 3, weighed=True)
    facts = planned(opened, "a run").to_dict()
    assert read_ledger(redigested(facts)).weighed
    whole = {**facts, "charges": [{**facts["charges"][0], "stddev": 1e9, "what": "rows"}]}
    whole["charges"][0]["sensitivity_squared"] = {"replace_one": 9 * 4, "add_remove": 9}
    with pytest.raises(ValueError, match="is not for up to 3 rows of one person"):
        read_ledger(redigested(whole))


@pytest.mark.parametrize("adjacency", [REPLACE, ADD])
@pytest.mark.parametrize("reserved", [Fraction(0), Fraction(1, 10**6)])
def test_what_is_planned_is_spent_in_full(adjacency, reserved):
    opened = PrivacyLedger.open(1.0, 1e-5, adjacency, 3, reserved=reserved)
    ahead = planned(opened, "a run")
    assert ahead.remaining == 0
    assert ahead.spent() == pytest.approx(1, abs=1e-9)
    assert sum(charge.delta for charge in ahead.charges) == reserved
    assert read_ledger(ahead.to_json()) == ahead
    assert planned(ahead, "another") is ahead
    (other,) = set(Adjacency) - {adjacency}
    assert ahead.spent(adjacency=other) >= ahead.spent()
    (charge,) = ahead.charges
    twice = 2 if adjacency is ADD else 1
    assert twice * reserved <= charge.delta_under(REPLACE) <= 12 * reserved
