"""The ledger across years: what each release was and cost, the sum, and what is left."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest

from sdv_privpgd.base.files import digest_of
from sdv_privpgd.privacy.accounting import mu_squared_of
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.ledger_file import planned, read_ledger
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.report.ledger import History, ledger_report, read_history, release_entry


def spent(epsilon, what="all pairs"):
    """A ledger with one charge of all that it allows."""
    return planned(PrivacyLedger.open(epsilon, 1e-6, Adjacency.REPLACE_ONE), what)


def history(*epsilons, limit=None, listed=None):
    ledgers = [spent(each) for each in epsilons]
    together = ledgers[0]
    for each in ledgers[1:]:
        together = together.followed_by(each)
    releases = [
        release_entry(each, name=f"{n}.csv", release="ab" * 16, method="MST")
        for n, each in enumerate(ledgers[:listed])
    ]
    return History(ledger=together, releases=releases, limit=limit)


def test_it_is_read_as_it_was_written_with_what_a_release_may_still_spend_exactly():
    own = history(1.0, 0.5, limit=3.0)
    assert read_history(own.to_json()) == own
    assert read_ledger(own.to_json()) == own.ledger
    alone = History(ledger=own.ledger, releases=[])
    assert alone.to_json() == own.ledger.to_json()
    assert read_history(own.ledger.to_json()) == alone
    own = history(1.0, limit=2.0)
    assert 1 < own.left < 2  # squares of mu add up, not epsilons
    both = own.ledger.mu_squared + mu_squared_of(own.left, 1e-6)
    assert float(both) == pytest.approx(float(mu_squared_of(2.0, 1e-6)), rel=1e-6)
    assert history(1.0, 1.0, limit=1.2).left == 0
    assert history(1.0).left is None
    entry = release_entry(spent(1.0), name="a", release=None, method="")
    assert Fraction(entry["mu_squared"]) == spent(1.0).mu_squared
    assert entry["release"] == "none was made"


def test_the_page_has_each_release_with_its_cost_and_the_sum_so_far():
    report = ledger_report(history(1.0, 0.5, limit=3.0), "northland")
    text, facts = str(report), report.to_dict()
    assert text.startswith("What was spent on the people of northland\n")
    assert "- 0.csv (" in text
    assert "epsilon 0.5 at delta 1e-06" in text
    assert f"epsilon {facts['epsilon_spent']:.4g} so far" in " ".join(text.split())
    assert facts["epsilon_spent"] < 1.5
    assert [each["name"] for each in facts["releases"]] == ["0.csv", "1.csv"]
    assert all(len(line) <= 100 for line in text.splitlines())
    for shown in ("ab" * 16, "left for another release", "MST"):
        assert shown in report.html()


def test_what_no_release_has_cost_is_said():
    own = history(1.0, 0.5, listed=1)
    assert "has not ended: all of that counts as spent." in str(ledger_report(own, "l"))
    ended = [replace(charge, mechanism="Gaussian") for charge in own.ledger.charges]
    own = replace(own, ledger=replace(own.ledger, charges=tuple(ended)))
    assert "was spent by what is no release of this list" in str(ledger_report(own, "l"))
    several = [*own.releases, {**own.releases[0], "unit": "another", "mu_squared": "0"}]
    told = str(ledger_report(replace(own, releases=several), "l"))
    assert "do not protect the same" in told


@pytest.mark.parametrize(
    "change",
    [
        {"mu_squared": "x"},
        {"mu_squared": "-1"},
        {"mu_squared": "9"},
        {"own_delta": None},
        {"name": 3},
        {"epsilon": "1"},
        {"method": None},
    ],
)
def test_releases_that_were_edited_are_refused(change):
    facts = json.loads(history(1.0).to_json())
    facts["releases"][0] |= change
    for text in (json.dumps(facts), json.dumps(facts | {"digest": digest_of(facts)})):
        with pytest.raises(ValueError, match="not as"):
            read_history(text)
    del facts["releases"][0]["mu"]
    with pytest.raises(ValueError, match="not as they were written"):
        read_history(json.dumps(facts | {"digest": digest_of(facts)}))
