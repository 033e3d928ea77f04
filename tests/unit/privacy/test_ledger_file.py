"""A ledger in a file is the same ledger, and one that was edited is none."""

import json
from fractions import Fraction

import pytest

from sdv_privpgd.privacy.accounting import mu_squared_of_range
from sdv_privpgd.privacy.ledger import Charge, PrivacyLedger
from sdv_privpgd.privacy.ledger_file import read_ledger
from sdv_privpgd.privacy.queries import Adjacency

REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE


@pytest.fixture
def ledger():
    opened = PrivacyLedger.open(1.0, 1e-5, REPLACE, 2, reserved=Fraction(1, 10**6))
    common = {"num_queries": 1, "num_values": 6, "delta": Fraction(1, 2**128)}
    noisy = Charge(
        mechanism="Gaussian, rounded",
        what="tables",
        sensitivity_squared=((REPLACE, 8), (ADD, 4)),
        stddev=100.25,
        mu_squared=Fraction(8) / Fraction(100.25) ** 2,
        **common,
    )
    chosen = Charge(
        mechanism="exponential",
        what="a pair",
        sensitivity_squared=((REPLACE, 4), (ADD, 4)),
        stddev=0.0,
        temperature=Fraction(401, 3),
        mu_squared=mu_squared_of_range(4 / Fraction(401, 3)),
        **common,
    )
    exact = Charge(
        mechanism="exact (public)",
        what="number of rows",
        sensitivity_squared=((REPLACE, 0), (ADD, 4)),
        stddev=0.0,
        mu_squared=Fraction(0),
        threshold=17,
        **common,
    )
    return opened.record(noisy).record(chosen).record(exact)


def test_what_is_written_is_read_exactly(ledger):
    assert read_ledger(ledger.to_json()) == ledger
    both = ledger.followed_by(ledger)
    assert read_ledger(both.to_json()) == both


def test_the_books_of_all_fits_without_delta_left_are_read(ledger):
    loud = ledger.followed_by(PrivacyLedger.open(1.0, 1e-5, REPLACE, 2, reserved=9.5e-6))
    assert loud.epsilon == float("inf")
    assert read_ledger(loud.to_json()) == loud


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["charges", 0, "mu_squared"], "1/100000"),
        (["charges", 0, "stddev"], 50.0),
        (["charges", 0, "stddev"], float("nan")),
        (["charges", 0, "stddev"], -100.25),
        (["charges", 0, "delta"], "-1/3"),
        (["charges", 0, "sensitivity_squared"], {"replace_one": 8}),
        (["charges", 1, "temperature"], "1/9"),
        (["charges", 1, "temperature"], "0"),
        (["charges"], []),
        (["charges"], None),
        (["budget_mu_squared"], "1/1000000"),
        (["spent_mu_squared"], "0"),
        (["adjacency"], "both"),
        (["rows_per_person"], 0),
        (["delta"], 1.5),
        (["reserved_delta"], "none"),
    ],
)
def test_an_edited_file_is_no_ledger(ledger, path, value):
    facts = ledger.to_dict()
    *way, last = path
    place = facts
    for key in way:
        place = place[key]
    place[last] = value
    with pytest.raises(ValueError, match=r"ledger|adjacency|rows_per_person|delta"):
        read_ledger(json.dumps(facts))


@pytest.mark.parametrize("text", ["", "[]", "3", "{}", '{"adjacency": "replace_one"}'])
def test_other_text_is_no_ledger(text):
    with pytest.raises(ValueError, match=r"ledger|Expecting value"):
        read_ledger(text)
