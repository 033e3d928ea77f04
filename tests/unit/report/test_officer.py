"""The page for the officer: who is protected in its first line, bounds that hold, and blanks."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from sdv_privpgd import Boolean, Categorical, People, fit_table
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.report.officer import YOURS, attackers_gains

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
        TABLE, {"ward": Categorical(), "ill": Boolean()}, 1.0, 1e-3, method="mst",
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
    with pytest.raises(ValueError, match="audience is 'analyst' or 'officer'"):
        fitted.report(audience="board")
