"""Pages for those who decide: the officer's for one release, and the ledger's across years."""

import json
import math
import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from sdv_privpgd import Boolean, Categorical, People, fit_table
from sdv_privpgd.base.files import digest_of
from sdv_privpgd.privacy.accounting import mu_squared_of
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.ledger_file import planned, read_ledger
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.report.privacy import History, ledger_report, read_history, release_entry
from sdv_privpgd.report.release import YOURS, attackers_gains

TABLE = pd.DataFrame({"ward": ["A", "B"] * 600, "ill": [True, False] * 600, "p": range(1_200)})
COLUMNS = {"ward": Categorical(["A", "B"]), "ill": Boolean()}


def page(people=None, adjacency="replace_one", **more):
    fitted = fit_table(
        TABLE, COLUMNS, 1.0, 1e-6, method="mst", adjacency=adjacency, people=people, **more
    )
    return fitted, fitted.report(audience="officer")


@pytest.mark.parametrize(
    ("people", "adjacency", "first"),
    [
        (None, "replace_one", "ONE ROW, NOT ONE PERSON, is protected"),
        (People(rows_are_people=True), "replace_one", "ONE PERSON WITH AT MOST 1 ROW is"),
        (People("p", 3), "add_remove", "ONE PERSON WITH AT MOST 3 ROWS is protected, told apart"),
    ],
)
def test_the_first_line_says_who_is_protected(people, adjacency, first):
    _, report = page(people, adjacency)
    assert str(report).split("\n\n")[1].startswith(first)
    assert report.to_dict()["protected"].startswith(first)
    assert report.html().split("</h1>")[1].startswith(f"<p>{first}")


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_no_test_of_two_neighbors_gains_more_than_the_page_says(adjacency):
    """The best attacker on a Gaussian count, by simulation, comes near the bound and not above."""
    ledger = page(People(rows_are_people=True), adjacency)[0].ledger
    mu, rng, draws = math.sqrt(ledger.mu_squared), np.random.default_rng(0), 400_000
    single, link, infer = (with_it for _, _, with_it in attackers_gains(ledger))
    without, there = rng.normal(0, 1, draws), rng.normal(mu, 1, draws)
    error = 4 * math.sqrt(0.25 / draws)
    right = ((there > mu / 2).mean() + (without <= mu / 2).mean()) / 2
    assert link - error < right < link + error
    for bound, chance in ((single, 0.001), (infer, 0.1)):
        found = (there > norm.ppf(1 - chance)).mean()
        assert bound - 4 * math.sqrt(bound / draws) < found < bound + 4 * math.sqrt(bound / draws)
    assert link - 0.5 == pytest.approx((2 * norm.cdf(mu / 2) - 1) / 2, abs=1e-6)


def test_what_a_threshold_may_give_away_is_in_the_bounds():
    fitted = fit_table(
        TABLE, {"ward": Categorical(), "ill": Boolean()}, 1.0, 5e-4, method="mst",
        people=People(rows_are_people=True),
    )  # fmt: skip
    own = float(sum(charge.delta for charge in fitted.ledger.charges))
    assert own > 0
    mu = math.sqrt(fitted.ledger.mu_squared)
    _, _, infer = attackers_gains(fitted.ledger)
    assert infer[2] == pytest.approx(norm.cdf(norm.ppf(0.1) + mu) + own)


def test_nothing_spent_gains_nothing_and_earlier_releases_are_told():
    ledger = PrivacyLedger.open(1.0, 1e-5, Adjacency.REPLACE_ONE)
    assert all(without == pytest.approx(with_it) for _, without, with_it in attackers_gains(ledger))
    earlier, _ = page(People(rows_are_people=True))
    fitted, report = page(People(rows_are_people=True), after=earlier.ledger)
    assert report.to_dict()["epsilon_spent"] == pytest.approx(fitted.ledger.spent())
    assert "are of earlier releases; this one alone has epsilon 1 " in " ".join(str(report).split())
    notice = page(People("p", 3), "add_remove")[1].to_dict()["privacy_notice"]
    assert "all your records (at most 3 of them were used) been others or none" in notice
    assert "by a factor of at most 2.72" in notice
    assert "had a record of yours been others:" in page()[1].to_dict()["privacy_notice"]
    assert max(map(len, str(page()[1]).splitlines())) <= 100


def test_what_a_fit_cannot_know_is_yours_and_hazards_are_named():
    fitted, report = page()
    text = " ".join(str(report).split())
    assert text.count(YOURS) == 7
    assert "Hazards: the unit is no person (one row)." in text
    assert fitted.about_rows()["release"] in text
    assert "entries are of this release." in text
    for asked in ("Mechanism", "Utility", "Bias", "Access control", "Data collection"):
        assert f"\n{asked} " in str(report)
    with pytest.warns(UserWarning, match="promises next to nothing"):
        fitted = fit_table(TABLE, COLUMNS, 25.0, 1e-4, method="mst")
    assert "epsilon above 20 (25), delta above 1e-5 (0.0001)" in " ".join(
        str(fitted.report(audience="officer")).split()
    )
    with pytest.raises(ValueError, match="audience must be one of 'analyst', 'officer'"):
        fitted.report(audience="board")


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
    lines = [line.split() for line in text.splitlines() if re.match(r"[01]\.csv ", line)]
    assert [line[-4] for line in lines[:2]] == ["1", "0.5"]
    assert lines[1][-1] == f"{facts['epsilon_spent']:.4g}"
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
