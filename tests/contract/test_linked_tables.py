"""Tables that belong together: what comes back is whole, and what cannot be is said before."""

import pickle
from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sdv_privpgd import (
    Between,
    Boolean,
    Categorical,
    Datetime,
    DomainMismatchError,
    FittedTables,
    Key,
    Link,
    Numerical,
    People,
    Prior,
    check,
    fit_table,
    fit_tables,
    plan_tables,
)
from sdv_privpgd.columns.links import tree_of
from sdv_privpgd.constraints import Inequality, ProgrammableConstraint
from sdv_privpgd.fitting.linked_tables import RunningTables, _is_hidden
from sdv_privpgd.fitting.tables_settings import TablesSettings
from sdv_privpgd.privacy.ledger_file import read_ledger
from sdv_privpgd.sources.source import SourceError

LINKS = [
    Link("stays", "drugs", "stay", 3),
    Link("people", "stays", "person", 2, "id"),
    Link("people", "bills", "id", 4, siblings=False),
]
COLUMNS = {
    "bills": {"bill": Key("B[0-9]{6}"), "paid": Boolean(nullable=False)},
    "people": {"id": Key("P-[0-9]{5}"), "old": Boolean(nullable=False)},
    "drugs": {"strong": Boolean(nullable=False), "dose": Numerical(0, 9, decimal_places=0)},
    "stays": {"days": Numerical(0, 30, decimal_places=0), "ward": Categorical(["A", "B", "C"])},
}


@pytest.fixture(scope="module")
def tables():
    rng, number = np.random.default_rng(0), 3_000
    old = rng.random(number) < 0.4
    people = pd.DataFrame({"id": np.arange(number) * 7, "old": old})
    whose = np.repeat(people.index, np.where(old, rng.integers(1, 3, number), 0))
    wards = np.array(["A", "B", "C"])
    stays = pd.DataFrame(
        {
            "stay": [f"s{place}" for place in range(len(whose))],
            "person": people["id"].to_numpy()[whose].astype(str),
            "days": rng.integers(0, 31, len(whose)),
            "ward": wards[whose % 3],  # a person's stays are in one ward
        }
    )
    times = np.where(stays["ward"] == "A", 3, rng.integers(0, 2, len(stays)))
    given = np.repeat(stays["stay"].to_numpy(), times)
    strong = np.repeat((stays["days"] > 15).to_numpy(), times)
    drugs = pd.DataFrame({"stay": given, "strong": strong, "dose": rng.integers(0, 10, len(given))})
    owing = rng.choice(people["id"], number)
    bills = pd.DataFrame({"bill": range(number), "id": owing, "paid": rng.random(number) < 0.5})
    return {"bills": bills, "people": people, "drugs": drugs, "stays": stays}


@pytest.fixture(scope="module")
def fitted(tables):
    return fit_tables(tables, COLUMNS, LINKS, 5.0, 1e-6)


@pytest.fixture(scope="module")
def rows(fitted):
    return fitted.sample()


@pytest.mark.long
def test_rows_lead_to_rows_in_their_order_about_as_many_as_there_were(rows, tables, fitted):
    for link in LINKS:
        assert rows[link.child][link.key].isin(rows[link.parent][link.parent_key]).all()
        assert rows[link.child][link.key].value_counts().max() <= link.max_children
        assert rows[link.parent][link.parent_key].is_unique
    assert list(rows) == list(tables)
    assert list(rows["people"]) == ["id", "old"]
    assert list(rows["stays"]) == ["stay", "person", "days", "ward"]
    assert list(rows["drugs"]) == ["stay", "strong", "dose"]
    assert set(rows["bills"]) == {"bill", "id", "paid"}
    assert rows["people"]["id"].str.fullmatch("P-[0-9]{5}").all()
    for name, own in tables.items():
        assert len(rows[name]) == pytest.approx(len(own), rel=0.1)
        assert fitted.num_rows[name] == pytest.approx(len(own), rel=0.1)


def test_children_are_as_many_as_they_should_and_go_with_parents_and_each_other(rows):
    people, stays = rows["people"], rows["stays"]
    number = people["id"].map(stays["person"].value_counts()).fillna(0)
    assert number[~people["old"]].mean() < 0.1
    assert number[people["old"]].mean() == pytest.approx(1.5, abs=0.1)
    drugs = stays["stay"].map(rows["drugs"]["stay"].value_counts()).fillna(0)
    assert drugs[stays["ward"] == "A"].mean() > 2.6
    assert drugs[stays["ward"] == "B"].mean() == pytest.approx(0.5, abs=0.2)
    joined = rows["drugs"].merge(rows["stays"], on="stay")
    assert ((joined["days"] > 15) == joined["strong"]).mean() > 0.7  # half of them by chance
    wards = rows["stays"].groupby("person")["ward"].agg(["nunique", "size"])
    assert (wards.loc[wards["size"] == 2, "nunique"] == 1).mean() > 0.8


def test_the_same_calls_give_the_same_rows_from_a_file_too(fitted, tmp_path):
    fitted.save(tmp_path / "tables.pkl")
    kept = FittedTables.load(tmp_path / "tables.pkl")
    fitted.reset_sampling()
    kept.reset_sampling()
    for _ in range(2):
        own, theirs = fitted.sample(200), kept.sample(200)
        assert all(own[name].equals(theirs[name]) for name in own)
    assert len(fitted.sample(scale=0.1)["people"]) == round(fitted.num_rows["people"] * 0.1)
    none = fitted.sample(0)
    assert {name: len(each) for name, each in none.items()} == dict.fromkeys(none, 0)
    assert list(none["drugs"]) == ["stay", "strong", "dose"]


def test_keys_are_where_their_table_has_them(tables):
    turned = {name: own[own.columns[::-1]] for name, own in tables.items()}
    columns = {name: dict(reversed(own.items())) for name, own in COLUMNS.items()}
    rows = fit_tables(turned, columns, LINKS, 5.0, 1e-6, method="independent").sample(20)
    for name, own in rows.items():
        assert list(own) == [column for column in turned[name] if column in own]


def test_many_families_are_made_part_by_part(fitted, monkeypatch):
    monkeypatch.setattr("sdv_privpgd.fitting.families.AT_ONCE", 100)
    many = fitted.sample(250)
    assert len(many["people"]) == 250
    assert many["people"]["id"].is_unique
    assert many["stays"]["person"].isin(many["people"]["id"]).all()


@pytest.mark.long
def test_one_ledger_and_one_report_have_all_tables_and_a_plan_foretells_them(fitted, tmp_path):
    ledger = fitted.ledger
    assert 4.9 < ledger.spent() <= 5.0
    assert {charge.what.partition(":")[0] for charge in ledger.charges} == set(COLUMNS)
    assert ledger.unit.startswith("one row of 'people' with all rows of")
    assert read_ledger(ledger.to_json()) == ledger
    # What is said of one table promises what was spent on all: they are about the same families.
    assert all(each.ledger == ledger for each in fitted.tables.values())
    assert fitted.tables["stays"].about_rows()["epsilon"] == ledger.spent()
    with pytest.raises(AttributeError, match=r"such as tables\['people'\].methods_text"):
        fitted.methods_text()
    with pytest.raises(AttributeError, match=r"no 'add_budget'. Fit the tables once more"):
        fitted.add_budget({}, 1.0)
    with pytest.raises(ValueError, match="one of several that belong together"):
        fitted.tables["bills"].add_budget(None, 1.0)
    twice = ledger.followed_by(ledger)
    assert twice.family == ledger.family
    assert "siblings" in " ".join(charge.what for charge in ledger.charges)
    assert set(fitted.siblings) == {"stays", "drugs"}
    report = fitted.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert all(f"{name}: " in page for name in COLUMNS)
    order = [
        page.index(each) for each in ("ONE FAMILY is protected", "<figure>", "belong together<")
    ]
    assert order == sorted(order)
    assert "one row of 'people'" in str(report)
    assert set(report.to_dict()["tables"]) == set(COLUMNS)
    assert repr(fitted).startswith("FittedTables(bills, people, drugs, stays; epsilon")
    assert fitted.privacy_report() == str(report)
    plan = plan_tables(COLUMNS, LINKS, 1.0, 1e-6, num_rows=3_000)
    assert sum(plan.to_dict()["shares"].values()) == pytest.approx(1)
    assert set(plan.to_dict()["tables"]) == set(COLUMNS)
    assert "siblings of stays" in str(plan)
    assert "weighed=True" not in str(plan)


def test_rows_meet_the_constraints_of_their_table(tables):
    own = tables["drugs"].assign(most=tables["drugs"]["dose"] + 3)
    columns = {
        "people": {"old": Boolean()},
        "stays": {},
        "drugs": {
            "dose": Numerical(0, 20, decimal_places=0),
            "most": Numerical(0, 20, decimal_places=0),
        },
    }
    found = fit_tables(
        {"people": tables["people"], "stays": tables["stays"], "drugs": own}, columns, LINKS[:2],
        5.0, 1e-6, constraints={"drugs": [Inequality("dose", "most")]}, method="independent",
        allow_lost={"people": ["old"], "drugs": ["dose", "most"]},
    ).sample(500)["drugs"]  # fmt: skip
    assert (found["dose"].isna() | found["most"].isna() | (found["dose"] <= found["most"])).all()


@pytest.mark.filterwarnings("ignore:The model cannot be saved")
def test_a_constraint_on_the_place_of_a_row_holds_where_the_model_has_few_of_that_place():
    # Rows of the model of another place obeyed at that: nearly 1 of 100 of simulated visits.
    times = np.where(np.arange(1_000) < 10, 8, 1)
    drugs = pd.DataFrame({"stay": np.repeat(np.arange(1_000), times)})
    drugs["first"] = ~drugs["stay"].duplicated()
    tables = {"stays": pd.DataFrame({"stay": range(1_000)}), "drugs": drugs}
    columns = {"stays": {}, "drugs": {"first": Boolean(nullable=False)}}
    rule = ProgrammableConstraint(lambda rows: rows["first"] == (rows["place in stays"] == 1))
    link = Link("stays", "drugs", "stay", 8)
    rows = fit_tables(tables, columns, link, 20.0, 1e-6, constraints={"drugs": [rule]})
    found = rows.sample(5_000)["drugs"]
    assert (found["first"] != found["stay"].duplicated()).all()


def test_no_table_is_fitted_where_another_ones_column_has_no_categories(tables):
    columns = {**COLUMNS, "drugs": {"stay": Key(), "note": {"sdtype": "categorical"}}}
    notes = {"drugs": tables["drugs"].assign(note=[f"{n:b}" for n in range(len(tables["drugs"]))])}
    with pytest.raises(DomainMismatchError, match="no more was") as stopped:
        fit_tables({**tables, **notes}, columns, LINKS, 5.0, 1e-6)
    assert not any("marginals" in each.what for each in stopped.value.ledger.charges)


def test_as_many_rows_lead_to_one_as_it_may_say():
    homes = pd.DataFrame({"home": range(300), "size": [1, 2, 3] * 100})
    people = pd.DataFrame({"home": np.repeat(homes["home"], homes["size"]), "ill": True})
    columns = {"homes": {"size": Numerical(1, 3, decimal_places=0)}, "people": {"ill": Boolean()}}
    link, lost = Link("homes", "people", "home", 4, count="size"), {"homes": ["size"]}
    told = {"method": "independent", "allow_lost": {**lost, "people": ["ill"]}}
    made = fit_tables({"homes": homes, "people": people}, columns, link, 0.2, 1e-6, **told)
    rows = made.sample(2_000)
    held = rows["people"]["home"].value_counts().reindex(rows["homes"]["home"])
    assert (held.to_numpy() == rows["homes"]["size"]).all()

    for asked in (2, Between(2, 9)):
        rows = made.sample(200, where={"size": asked})
        held = rows["people"]["home"].value_counts().reindex(rows["homes"]["home"])
        assert (held.to_numpy() == rows["homes"]["size"]).all()
        assert set(held) <= ({2} if asked == 2 else {2, 3})


def test_rows_of_the_root_have_what_is_asked_of_them(fitted):
    for old, number in ((True, 1.5), (False, 0.0)):
        rows = fitted.sample(500, where={"old": old})
        assert (rows["people"]["old"] == old).all()
        assert rows["stays"]["person"].isin(rows["people"]["id"]).all()
        assert len(rows["stays"]) / 500 == pytest.approx(number, abs=0.2)
    for name in ("id", "ward"):
        with pytest.raises(ValueError, match="no modelled columns of 'people': choose from"):
            fitted.sample(5, where={name: "A"})


@pytest.mark.long
def test_families_are_compared_with_the_real_ones_and_what_is_said_is_not_private(
    fitted, tables, tmp_path
):
    few = {**tables, "people": tables["people"][:40]}
    found = fitted.evaluate(few, path=tmp_path / "page.html")
    for text in (str(found), (tmp_path / "page.html").read_text()):
        assert "NOT PRIVATE" in text
        assert "real rows are not used in a fit" in text
    assert str(found).count("NOT PRIVATE") == 1
    numbers = found.to_dict()
    assert not numbers["public"]
    assert numbers["tables"]["stays"]["columns"].keys() >= {"ward", "people.old", "number of drugs"}
    with pytest.raises(ValueError, match="real tables are to be"):
        fitted.evaluate({"people": few["people"]})


def test_what_was_found_is_declared_for_another_fit(fitted):
    found = fitted.discovered_domain()
    assert found["stays"].keys() == {"days", "ward"}
    TablesSettings.of(found, LINKS, 1.0, 1e-6).require()


def test_rows_are_numbered_and_read_in_the_order_of_their_numbers():
    rng = np.random.default_rng(0)
    bills = pd.DataFrame({"bill": rng.permutation(600)})
    lines = pd.DataFrame({"bill": np.repeat(bills["bill"].to_numpy(), rng.integers(1, 4, 600))})
    lines["number"] = lines.groupby("bill").cumcount()
    lines["is_first"] = lines["number"] == 0
    own, columns = {"bills": bills, "lines": lines.sample(frac=1)}, {"bills": {}, "lines": {
        "is_first": Boolean(), "number": Numerical(0, 9, decimal_places=0)}}  # fmt: skip
    link = Link("bills", "lines", "bill", 3, order="number", numbered="number")
    made = fit_tables(own, columns, link, 5.0, 1e-6)
    rows = made.sample(300)["lines"]
    assert list(rows.columns) == ["bill", "is_first", "number"]
    assert (rows["number"] == rows.groupby("bill").cumcount()).all()
    assert rows["number"].dtype == int
    assert (rows["is_first"] == (rows["number"] == 0)).mean() > 0.95
    assert not any("number x" in each.what for each in made.ledger.charges)
    with pytest.raises(ValueError, match="numbered names 'x', which must be a column of whole"):
        fit_tables(own, columns, replace(link, numbered="x"), 5.0, 1e-6)


@pytest.mark.long
def test_children_come_in_their_order(tables):
    rng = np.random.default_rng(1)
    people = tables["people"]
    times = rng.integers(0, 4, len(people))
    seen = pd.DataFrame({"person": np.repeat(people["id"].to_numpy(), times)})
    first = rng.integers(0, 100, len(people))
    seen["day"] = np.repeat(first, times) + 20 + 30 * seen.groupby("person").cumcount()
    seen["state"] = np.where(seen.groupby("person").cumcount() == 0, "new", "old")
    drugs, kept = [*"ABCDEFGHIJ"], rng.random(len(seen)) < 0.9
    kept &= seen["person"].duplicated()
    seen["drug"] = pd.Series(rng.choice(drugs, len(seen))).mask(kept).ffill()
    columns = {
        "people": {"old": Boolean()},
        "seen": {"day": Numerical(0, 300, decimal_places=0), "state": Categorical(["new", "old"])},
    }
    link = Link("people", "seen", "person", 3, "id", order="day")
    given = {"people": people.assign(ill=first), "seen": seen.sample(frac=1, random_state=2)}
    rows = fit_tables(given, columns, link, 5.0, 1e-6).sample()["seen"]
    apart = rows.groupby("person")["day"].diff().dropna()
    assert (apart >= 0).all()
    assert apart.median() == pytest.approx(30, abs=6)
    assert np.std(apart) < 20
    begins = rows.groupby("person").cumcount() == 0
    assert (rows.loc[begins, "state"] == "new").mean() > 0.85
    assert (rows.loc[~begins, "state"] == "old").mean() > 0.85
    columns["people"]["ill"] = Numerical(0, 100, decimal_places=0)
    columns["seen"]["drug"] = Categorical(drugs)
    made = fit_tables(given, columns, replace(link, start="ill"), 5.0, 1e-6)
    found = made.sample()
    starts = found["people"].set_index("id")["ill"].reindex(found["seen"]["person"]).to_numpy()
    assert not any("since the row before" in said for said in made.warnings)
    late = (found["seen"]["day"] - starts)[found["seen"].groupby("person").cumcount() == 0]
    assert late.min() >= 0
    again = found["seen"]["drug"] == found["seen"].groupby("person")["drug"].shift()
    assert again[found["seen"]["person"].duplicated()].mean() > 0.65
    assert late.median() == pytest.approx(20, abs=4)
    with pytest.raises(ValueError, match="with the sdtype of 'day'"):
        fit_tables(given, columns, replace(link, start="old"), 5.0, 1e-6)
    with pytest.raises(ValueError, match="at which order begins"):
        Link("people", "seen", "person", 3, start="ill")
    with pytest.raises(ValueError, match="with a declared range"):
        fit_tables(given, {**columns, "seen": {"day": Numerical()}}, link, 5.0, 1e-6)
    with pytest.raises(ValueError, match="by which siblings are in order"):
        Link("people", "seen", "person", 3, siblings=False, order="day")


@pytest.mark.long
@pytest.mark.parametrize(
    ("start", "met", "errors"),
    [
        ("began", [], (5, 2)),
        ("began", [Inequality("parents.began", "day")], (5, 2)),
        (None, [], (9, 6)),
    ],
)
def test_times_between_children_are_those_of_their_parents_group(start, met, errors):
    # In 87 fits means were 43.9 and 7.5, with standard deviations of 1.4 and 0.5; with the
    # constraint 45.7 and 7.7, with 1.3 and 0.4; without a start 40.6 and 9.4, with 0.9 and 0.3. One
    # of 150 was out of bounds, so the median of five is taken. At epsilon 5 they were 51 and 8, and
    # 71 and 41, where rows without a time broke the order, and dates went before the times between.
    rng, number = np.random.default_rng(2), 4_000
    parents = pd.DataFrame({"key": range(number), "often": rng.random(number) < 0.5})
    parents["began"] = rng.integers(0, 1_700, number)
    whose = np.repeat(np.arange(number), rng.integers(1, 5, number))
    apart = 1 + rng.exponential(np.where(parents["often"], 6, 40)[whose]).round()
    days = parents["began"].to_numpy()[whose] + pd.Series(apart).groupby(whose).cumsum().to_numpy()
    columns = {
        "parents": {"often": Boolean(), "began": Numerical(0, 1_700, decimal_places=0)},
        "children": {"day": Numerical(0, 2_000, decimal_places=0)},
    }
    children = pd.DataFrame({"key": whose, "day": days})
    children["day"] = children["day"].mask(rng.random(len(days)) < 0.1)
    link = Link("parents", "children", "key", 4, order="day", start=start)
    allowed = {"children": ["day"]}
    tables = {"parents": parents, "children": children}
    told = {"allow_lost": allowed, "constraints": {"children": met}}
    made = [fit_tables(tables, columns, link, 20.0, 1e-6, **told).sample() for _ in range(5)]
    joined = [own["children"].dropna().merge(own["parents"], on="key") for own in (tables, *made)]
    means = [own.groupby("key")["day"].diff().groupby(own["often"]).mean() for own in joined]
    assert means[0].tolist() == pytest.approx([44, 8], abs=1)
    medians = np.median(means[1:], axis=0)
    for found, mean, error in zip(medians, (44, 8), errors, strict=True):
        assert found == pytest.approx(mean, abs=error)


@pytest.mark.long
def test_children_in_order_have_what_their_place_tells_best_whatever_their_parents_have():
    # In 12 fits the largest difference was 2.3. Where the place was asked last it was 14.
    rng, number = np.random.default_rng(4), 2_000
    parents = pd.DataFrame({"key": range(number), "born": rng.integers(0, 3_000, number)})
    whose = np.repeat(np.arange(number), rng.integers(1, 6, number))
    place = pd.Series(whose).groupby(whose).cumcount().to_numpy()
    days = parents["born"].to_numpy()[whose] + 30 * 2**place + rng.integers(-3, 4, len(whose))
    children = pd.DataFrame({"key": whose, "day": days, "size": 50 + 10 * place})
    columns = {
        "parents": {"born": Numerical(0, 3_000, decimal_places=0)},
        "children": {
            "day": Numerical(0, 4_000, decimal_places=0),
            "size": Numerical(0, 100, decimal_places=0),
        },
    }
    link = Link("parents", "children", "key", 5, order="day", start="born")
    rows = fit_tables({"parents": parents, "children": children}, columns, link, 9.0, 1e-6)
    made = rows.sample()["children"]
    means = made["size"].groupby(made.groupby("key").cumcount()).mean()
    assert means.tolist() == pytest.approx([50, 60, 70, 80, 90], abs=6)


@pytest.mark.long
def test_siblings_that_say_other_times_are_not_all_near_the_middle():
    # In 18 fits the days' standard deviation was 0.96 to 1.04 of the right one, and times between
    # 3.4 to 4.3. It was 0.63 to 0.72 where siblings agreed on times between what each one says.
    rng, number = np.random.default_rng(6), 1_000
    whose = np.repeat(np.arange(number), rng.integers(5, 11, number))
    days = rng.integers(0, 2_000, number)[whose]
    days += pd.Series(rng.integers(0, 8, len(whose))).groupby(whose).cumsum().to_numpy()
    heat = (60 + 8 * rng.normal(size=number)[whose] + rng.normal(size=len(whose))).round()
    tables = {
        "parents": pd.DataFrame({"key": range(number)}),
        "children": pd.DataFrame({"key": whose, "day": days, "heat": heat}),
    }
    ends = {"day": (0, 2_100), "heat": (0, 120)}
    own = {name: Numerical(*each, decimal_places=0) for name, each in ends.items()}
    link = Link("parents", "children", "key", 10, order="day")
    rows = fit_tables(tables, {"parents": {}, "children": own}, link, 2.0, 1e-6).sample()
    made = rows["children"]
    assert made["day"].std() / days.std() > 0.88
    assert made.groupby("key")["day"].diff().mean() < 6


@pytest.mark.long
def test_what_one_child_of_each_parent_has_is_as_frequent_whatever_parents_have():
    # In 120 fits the share was 0.006 too high, with a standard deviation of 0.0046, and 0.017 to
    # 0.027 where columns of parents that say nothing were asked before the number of children.
    rng, number = np.random.default_rng(7), 2_000
    whose = np.repeat(np.arange(number), 1 + rng.binomial(3, 0.35, number))
    owns = np.diff(whose, prepend=-1) != 0
    balance = rng.normal(2_000, 3_000, number).round()
    mixed = pd.DataFrame({"key": whose, "owns": owns}).sample(frac=1, random_state=1)
    tables = {
        "parents": pd.DataFrame({"key": range(number), "balance": balance}),
        "children": mixed,
    }
    columns = {
        "parents": {"balance": Numerical(-20_000, 100_000, decimal_places=0)},
        "children": {"owns": Boolean(nullable=False)},
    }
    link = Link("parents", "children", "key", 4)
    fits = [fit_tables(tables, columns, link, 9.0, 1e-6).sample()["children"] for _ in range(5)]
    shares = [made["owns"].mean() for made in fits]
    assert np.mean(shares) == pytest.approx(owns.mean(), abs=0.0145)


@pytest.mark.long
def test_no_row_comes_before_its_start_where_a_constraint_moves_it():
    # A quarter of them did: who moves a day below the last one knew of no start.
    rng = np.random.default_rng(8)
    first, days = rng.integers(0, 900, 1_000), rng.integers(1, 60, 1_000)
    tables = {
        "stays": pd.DataFrame({"stay": range(1_000), "first": first, "last": first + days}),
        "drugs": pd.DataFrame({"stay": range(1_000), "day": first + rng.integers(0, days)}),
    }
    number = Numerical(0, 1_000, decimal_places=0)
    columns = {"stays": {"first": number, "last": number}, "drugs": {"day": number}}
    link = Link("stays", "drugs", "stay", 2, order="day", start="first")
    rules = {
        "stays": [Inequality("first", "last")],
        "drugs": [Inequality("day", "stays.last")],
    }
    rows = fit_tables(tables, columns, link, 5.0, 1e-6, constraints=rules).sample()
    made = rows["drugs"].merge(rows["stays"], on="stay")
    assert len(made) > 900
    assert ((made["first"] <= made["day"]) & (made["day"] <= made["last"])).all()


@pytest.mark.long
def test_a_flag_of_first_rows_takes_nothing_from_what_parents_tell():
    # In 20 fits the difference was 0.50 to 0.55, and 0.42 to 0.44 in three where the flag made the
    # number of rows the most telling.
    rng, number = np.random.default_rng(9), 2_000
    times = rng.integers(1, 6, number)
    sex, age = rng.integers(0, 2, number), rng.integers(0, 100, number)
    parents = pd.DataFrame({"key": range(number), "sex": sex, "age": age, "times": times})
    whose = np.repeat(np.arange(number), times)
    first = np.diff(whose, prepend=-1) != 0
    ill = rng.random(len(whose)) < np.where(age[whose] >= 50, 0.8, 0.2)
    day = np.sort(rng.integers(0, 2_000, len(whose)) + 10_000 * whose) - 10_000 * whose
    own = {"key": whose, "day": day, "sex": sex[whose], "ill": ill, "first": first}
    children = pd.DataFrame(own)
    ends = {"sex": 1, "times": 9, "age": 99, "day": 2_000}
    numbers = {name: Numerical(0, end, decimal_places=0) for name, end in ends.items()}
    columns = {
        "parents": {name: numbers[name] for name in ("sex", "times", "age")},
        "children": {"day": numbers["day"], "sex": numbers["sex"]}
        | dict.fromkeys(("ill", "first"), Boolean()),
    }
    link = Link("parents", "children", "key", 5, order="day")
    rows = fit_tables({"parents": parents, "children": children}, columns, link, 9.0, 1e-6).sample()
    made = rows["children"].merge(rows["parents"], on="key")
    ill = made["ill"].groupby(made["age"] >= 50).mean()
    assert ill[True] - ill[False] > 0.46


@pytest.mark.long
def test_visits_that_begin_long_after_a_birth_are_when_they_are():
    # In 12 fits 98.9 to 99.9 % were there, and 55 to 57 % where the times after births alone count,
    # whose cells are 15 years wide: then times between visits were 500 to 550 days, and 300 are
    # right.
    rng, number = np.random.default_rng(5), 2_000
    parents = pd.DataFrame({"key": range(number), "born": rng.integers(0, 30_000, number)})
    whose = np.repeat(np.arange(number), rng.integers(1, 5, number))
    apart = pd.Series(rng.integers(100, 500, len(whose))).groupby(whose).cumsum()
    tables = {"parents": parents, "children": pd.DataFrame({"key": whose, "day": 36_000 + apart})}
    columns = {
        "parents": {"born": Numerical(0, 30_000, decimal_places=0)},
        "children": {"day": Numerical(0, 42_000, decimal_places=0)},
    }
    link = Link("parents", "children", "key", 4, order="day", start="born")
    days = fit_tables(tables, columns, link, 9.0, 1e-6).sample()["children"]["day"]
    assert days.between(35_500, 38_500).mean() > 0.9


@pytest.mark.long
def test_noise_far_out_makes_no_long_times_between_children():
    # In 14 fits at epsilon 0.5 and 1 means were 14 to 25 and standard deviations 13 to 28; a few
    # fits have more. They were up to 209 and 703 where wide cells had the rows of noise.
    rng, number = np.random.default_rng(3), 1_000
    whose = np.repeat(np.arange(number), rng.integers(1, 5, number))
    days = pd.Series(1 + rng.exponential(15, len(whose)).round()).groupby(whose).cumsum()
    tables = {
        "parents": pd.DataFrame({"key": range(number), "began": 0}),
        "children": pd.DataFrame({"key": whose, "day": days}),
    }
    columns = {
        "parents": {"began": Numerical(0, 10, decimal_places=0)},
        "children": {"day": Numerical(0, 5_000, decimal_places=0)},
    }
    link = Link("parents", "children", "key", 4, order="day", start="began")
    told = {"allow_lost": {"parents": ["began"], "children": ["day"]}}
    found = []
    for _ in range(5):
        rows = fit_tables(tables, columns, link, 1.0, 1e-6, **told).sample()["children"]
        apart = rows.groupby("key")["day"].diff().dropna()
        found.append((apart.mean(), apart.std()))
    mean, deviation = np.median(found, axis=0)
    assert mean == pytest.approx(16, abs=12)
    assert deviation < 60


def test_files_are_read_as_frames_are(tables, tmp_path):
    files = {}
    for name, own in tables.items():
        files[name] = tmp_path / f"{name}.{'csv' if name == 'bills' else 'parquet'}"
        own.to_csv(files[name], index=False) if name == "bills" else own.to_parquet(files[name])
    found = fit_tables(files, COLUMNS, LINKS, 9.0, 1e-6, method="independent")
    for name, number in found.num_rows.items():
        assert number == pytest.approx(len(tables[name]), rel=0.05)


@pytest.mark.parametrize(
    ("links", "said"),
    [
        ([], "at least one of them"),
        (["people"], "takes links"),
        ([Link("a", "b", "k", 1), Link("b", "a", "k", 1)], "no circle"),
        ([Link("a", "a", "k", 1, "x")], "Leave out a key that leads to rows of its own table"),
        ([Link("a", "b", "k", 1), Link("c", "d", "k", 1)], "one tree"),
        ([Link("a", "c", "k", 1), Link("b", "c", "k", 1)], "more than one parent"),
        ([Link("a", "b", "k", 1, "x"), Link("a", "c", "k", 1, "y")], "two keys of 'a'"),
    ],
)
def test_links_that_make_no_tree_are_refused(links, said):
    with pytest.raises(ValueError, match=said):
        tree_of(links)


@pytest.mark.parametrize(
    ("columns", "links", "said"),
    [
        ({"people": {}, "stays": {}}, LINKS[1:], "describe each of them"),
        ({**COLUMNS, "stays": {"person": Boolean()}}, LINKS, "is a key by the links"),
        ({**COLUMNS, "stays": {"place in people": Boolean()}}, LINKS, "rename them"),
        ({**COLUMNS, "people": {"number of stays": Boolean()}}, LINKS, "rename them"),
        (COLUMNS, [LINKS[0], Link("people", "stays", "person", 40, "id"), LINKS[2]], "100 at most"),
    ],
)
def test_what_cannot_be_is_said_before_a_table_is_opened(columns, links, said):
    with pytest.raises(ValueError, match=said):
        fit_tables(dict.fromkeys(COLUMNS), columns, links, 1.0, 1e-6)


@pytest.mark.parametrize(
    "keys",
    [
        pd.period_range("2000-01-01", periods=9, freq="D"),
        pd.interval_range(0, 9),
        pd.timedelta_range("1D", periods=9),
        np.arange(9) * 1j,
        pd.Categorical(pd.date_range("2000-01-01", periods=9, tz="UTC")),
        pd.array([[1]] * 9, dtype=pd.ArrowDtype(pa.list_(pa.int64()))),
    ],
)
def test_keys_that_are_not_read_are_refused_before_a_row_is_read(keys):
    above, below = pd.DataFrame({"key": keys, "ill": True}), pd.DataFrame({"key": range(9)})
    for tables in ({"a": above, "b": below}, {"a": below.assign(ill=True), "b": above[["key"]]}):
        with pytest.raises(SourceError, match="are no ids"):
            fit_tables(
                tables, {"a": {"ill": Boolean()}, "b": {}}, Link("a", "b", "key", 1), 1.0, 1e-6
            )
    with pytest.raises(SourceError, match="are no ids"):
        fit_table(above, {"ill": Boolean()}, 1.0, 1e-6, adjacency="add_remove",
                  people=People("key", 1))  # fmt: skip


@pytest.mark.long
def test_what_stops_a_fit_of_tables_is_said(tables, fitted):
    with pytest.raises(ValueError, match=r"^stays: The columns .'person'. are missing"):
        fit_tables({**tables, "stays": tables["stays"].drop(columns="person")}, COLUMNS, LINKS,
                   1.0, 1e-6)  # fmt: skip
    with pytest.raises(ValueError, match="The links are of the tables"):
        fit_tables({"people": tables["people"]}, COLUMNS, LINKS, 1.0, 1e-6)
    for name, own in (("people", "number of bills"), ("stays", "people.old"),
                      ("drugs", "place in stays"), ("drugs", "dose (sibling)")):  # fmt: skip
        held = {**tables, name: tables[name].assign(**{own: 1})}
        with pytest.raises(ValueError, match="as those are that links add"):
            fit_tables(held, COLUMNS, LINKS, 1.0, 1e-6)
    with pytest.raises(ValueError, match="which are no tables"):
        fit_tables(tables, COLUMNS, LINKS, 1.0, 1e-6, constraints={"x": []})
    with pytest.raises(ValueError, match="not both"):
        fitted.sample(5, scale=1.0)
    with pytest.raises(ValueError, match="must be a name"):
        Link("a", 1, "k", 1)
    columns = {**COLUMNS, "stays": {**COLUMNS["stays"], "ward": Categorical(["X"])}}
    with pytest.raises(DomainMismatchError) as stopped:
        fit_tables(tables, columns, LINKS, 5.0, 1e-6, method="independent")
    assert 0 < stopped.value.ledger.spent() < 5
    assert "had spent epsilon" in stopped.value.__notes__[-1]
    assert str(stopped.value).startswith("stays: The fit stopped after its first question.")
    assert f"{stopped.value.ledger.spent():.3g} of 5 is spent; no more" in str(stopped.value)
    # The first questions about all tables come first: nothing else is spent on those before.
    kinds = {charge.what.partition(": ")[2] for charge in stopped.value.ledger.charges}
    assert kinds == {"cells that are no declared values"}
    lost = {"stays": ["ward"]}
    fit_tables(tables, columns, LINKS, 5.0, 1e-6, method="independent", allow_lost=lost)
    stays = tables["stays"].drop(columns="ward")  # it stops before a row is read
    with pytest.raises(ValueError, match="ward"):
        fit_tables({**tables, "stays": stays}, COLUMNS, LINKS, 5.0, 1e-6)


def test_keys_that_lead_nowhere_stop_a_fit_after_the_first_questions(tables):
    strangers = tables["stays"].assign(person=[f"X{row}" for row in range(len(tables["stays"]))])
    others = {**tables, "stays": strangers}
    with pytest.raises(DomainMismatchError, match=r"'stays\.person' and 'people\.id' are"):
        fit_tables(others, COLUMNS, LINKS, 9.0, 1e-6, method="independent")
    told = {"people": ["number of stays", "number of bills"], "stays": ["number of drugs"]}
    fitted = fit_tables(others, COLUMNS, LINKS, 9.0, 1e-6, method="independent", allow_lost=told)
    assert len(fitted.sample(500)["stays"]) < 50
    assert fitted.ledger.spent() > 8.9


def test_a_root_of_one_key_alone_is_told_of_after_a_fit(tables):
    again = {**tables, "people": tables["people"].assign(id="A")}
    told = {"allow_lost": {"people": ["number of stays", "number of bills"]}}
    said = fit_tables(again, COLUMNS, LINKS, 1.0, 1e-6, method="independent", **told).warnings
    assert said[0].startswith("Noise hides whether any row of 'people' is used: there are too few")


def test_siblings_that_never_have_one_of_many_values_do_not_have_it_as_by_chance():
    rng, values = np.random.default_rng(0), list("abcdefghi")
    one, apart = rng.integers(0, 9, 3_000), rng.integers(1, 9, 3_000)
    both = np.ravel(np.column_stack([one, (one + apart) % 9]))
    tags = pd.DataFrame({"item": np.repeat(range(3_000), 2), "tag": np.array(values)[both]})
    told = {"items": {}, "tags": {"tag": Categorical(values)}}
    items = pd.DataFrame({"item": range(3_000)})
    link = Link("items", "tags", "item", 2)
    fitted = fit_tables({"items": items, "tags": tags}, told, link, 20.0, 1e-6)
    made = fitted.sample()["tags"].groupby("item")["tag"]
    assert (made.nunique() == 1).mean() < 0.05  # .02 in eight fits; by chance it is .11


@pytest.mark.parametrize(("number", "is_hidden"), [(29, True), (31, False)])
def test_noise_hides_a_table_of_fewer_rows_than_three_standard_deviations(number, is_hidden):
    own: Any = SimpleNamespace(fitted=SimpleNamespace(release="asked"))
    own.answer = lambda _: SimpleNamespace(estimate=number, stddev=10)
    assert _is_hidden(own) == is_hidden
    said = tree_of(LINKS).hides("stays")
    assert said.endswith("or keys in 'stays.person' are in no row of 'people' that is used.")


@pytest.mark.parametrize("keys", [[None] * 2_000 + [*range(1_000)], np.arange(3_000) % 2_000])
def test_a_root_whose_keys_are_no_keys_stops_a_fit_after_the_first_questions(tables, keys):
    given = {**tables, "people": tables["people"].assign(id=keys)}, COLUMNS, LINKS, 3.0, 1e-6
    with pytest.raises(DomainMismatchError, match="Of the keys in") as said:
        fit_tables(*given, method="independent")
    assert said.value.ledger.spent() < 0.3


@pytest.mark.parametrize(("by_keys", "stops"), [(30.0, True), (400.0, False)])
def test_what_rows_and_keys_say_of_how_many_lead_somewhere_is_taken_together(by_keys, stops):
    tables = {"p": pd.DataFrame({"k": [1]}), "c": pd.DataFrame({"k": [1], "x": [True]})}
    told = TablesSettings.of({"p": {}, "c": {"x": Boolean()}}, Link("p", "c", "k", 3), 1.0, 1e-6)
    running = RunningTables.of(told, tables)
    answered = lambda number: SimpleNamespace(answer=np.array([number, 0.0]), stddev=100.0)
    asked = {name: [SimpleNamespace(found=[answered(n)])] for name, n in {"p": 4e3, "c": 0}.items()}
    first: Any = {name: SimpleNamespace(answered=own) for name, own in asked.items()}
    running.numbers["c", "k"] = answered(by_keys)
    with pytest.raises(DomainMismatchError, match="Next to no row") if stops else nullcontext():
        running._require_led(first)


def test_many_rows_that_lead_nowhere_stop_a_fit_unless_that_is_how_it_is(tables):
    given = {**tables, "people": tables["people"][::2]}, COLUMNS, LINKS, 3.0, 1e-6
    with pytest.raises(DomainMismatchError, match=r"'bills\.id' .* % are missing, or lead") as said:
        fit_tables(*given, method="independent")
    assert said.value.ledger.spent() < 0.3
    lost = {"people": ["number of stays", "number of bills"]}
    fitted = fit_tables(*given, method="independent", allow_lost=lost)
    assert not any("that is used ('01'" in each for each in fitted.warnings)


@pytest.mark.long
def test_many_rows_that_lead_to_no_row_of_a_table_between_stop_a_fit(tables):
    given = {**tables, "stays": tables["stays"][::2]}, COLUMNS, LINKS, 5.0, 1e-6
    with pytest.raises(DomainMismatchError, match=r"'drugs\.stay' .* % are missing, or lead"):
        fit_tables(*given, method="independent")
    lost = {"stays": ["number of drugs"]}
    fitted = fit_tables(*given, method="independent", allow_lost=lost)
    assert not any("'drugs.stay'" in each for each in fitted.warnings)


def test_keys_of_a_table_between_that_are_there_again_stop_a_fit_after_the_first_questions(tables):
    number = tables["stays"].groupby("person").cumcount()  # each person's stays begin with 0
    named = dict(zip(tables["stays"]["stay"], number, strict=True))
    drugs = tables["drugs"].assign(stay=tables["drugs"]["stay"].map(named))
    given = {**tables, "stays": tables["stays"].assign(stay=number), "drugs": drugs}
    told = COLUMNS, LINKS, 3.0, 1e-6
    with pytest.raises(DomainMismatchError, match=r"'stays\.stay' .* rows of 'drugs' that") as said:
        fit_tables(given, *told, method="independent")
    assert said.value.ledger.spent() < 0.3
    lost = {"stays": ["stay", "number of drugs"]}
    fitted = fit_tables(given, *told, method="independent", allow_lost=lost)
    assert not any("'stays.stay'" in each for each in fitted.warnings)


def test_a_pattern_of_fewer_keys_than_the_root_has_stops_a_fit_after_the_first_questions(tables):
    people = {**COLUMNS["people"], "id": Key("P[0-9]{2}")}
    with pytest.raises(DomainMismatchError, match="fewer values in its pattern 'P") as said:
        fit_tables(tables, {**COLUMNS, "people": people}, LINKS, 3.0, 1e-6)
    assert said.value.ledger.spent() < 0.3


@pytest.mark.long
def test_it_is_told_after_a_fit_that_few_rows_of_the_root_are_left_out(tables):
    ids = tables["people"]["id"].where(np.arange(3_000) > 200, None)
    given = {**tables, "people": tables["people"].assign(id=ids)}, COLUMNS, LINKS, 9.0, 1e-6
    for lost, is_told in (({}, True), ({"people": ["id"]}, False)):
        said = fit_tables(*given, method="independent", allow_lost=lost).warnings
        assert said[0].startswith("Of the keys in 'people.id' ") == is_told


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ([0] * 200 + [3], None),
        ([0, 1, 2, 3, 3], "About 40% of the rows of 'people' have 3 rows of 'stays', as many as"),
        ([0, 1, 2, 2, 3], None),
        ([1, 2] * 99 + [3], None),
    ],
)
def test_it_is_said_where_too_few_rows_are_used(numbers, said):
    link = Link("people", "stays", "person", 3, "id")
    found = link.on_numbers(np.array(numbers))
    assert [said in each for each in found] == [True] * (said is not None)
    assert all("allow_lost={'people': ['number of stays']}" in each for each in found)
    assert not replace(link, max_children=1).on_numbers(np.array(numbers)[-1:])


def test_a_number_of_children_is_warned_of_in_words_of_the_link():
    homes = pd.DataFrame({"home": range(900), "rents": [True, False] * 450})
    people = pd.DataFrame({"home": [*range(900)] * 3})
    told = {"homes": {"rents": Boolean()}, "people": {}}
    given = {"homes": homes, "people": people}, told, Link("homes", "people", "home", 2), 5.0, 1e-6
    (said,) = fit_tables(*given, method="independent").warnings
    assert "of the rows of 'homes' have 2 rows of 'people', as many as max_children lets" in said
    passed = {"homes": ["number of people"]}
    assert not fit_tables(*given, method="independent", allow_lost=passed).warnings
    with pytest.raises(ValueError, match=r"allow_lost names \['hoems'\], which are no tables"):
        fit_tables(*given, allow_lost={"hoems": ["rents"]})
    with pytest.raises(ValueError, match="allow_lost is a dictionary of lists by table, got"):
        fit_tables(*given, allow_lost=["rents"])


def test_a_start_after_all_rows_in_order_and_a_count_of_others_are_told():
    began = np.tile(np.arange(20), 100)
    tables = {
        "parents": pd.DataFrame({"key": range(2_000), "began": began + 50, "times": 5}),
        "children": pd.DataFrame({"key": [*range(2_000)] * 2, "day": np.tile(began + 30, 2)}),
    }
    number = Numerical(0, 100, decimal_places=0)
    columns = {"parents": {"began": number, "times": number}, "children": {"day": number}}
    link = Link("parents", "children", "key", 3, order="day", start="began", count="times")
    for is_wrong in (True, False):
        said = " ".join(fit_tables(tables, columns, link, 5.0, 1e-6).warnings)
        for names in ("'parents.began', 'day'", "'number of children', 'times'"):
            assert (f"at its limit: {names} in" in said) == is_wrong
        tables["parents"] = tables["parents"].assign(began=began, times=2)


@pytest.mark.long
def test_a_fit_of_families_leans_on_public_ones_and_says_so(tables, fitted):
    few = tables["people"].iloc[:300]
    own = {**tables, "people": few}  # what leads to others is left out
    lost = {
        name: [each for each in COLUMNS[name] if each not in ("id", "bill")] for name in COLUMNS
    }
    lost["people"] += ["number of stays", "number of bills"]
    given = own, COLUMNS, LINKS, 0.3, 1e-6
    leant = fit_tables(*given, prior=Prior(fitted, name="last year"), allow_lost=lost)
    assert leant.ledger.spent() <= 0.3
    page = leant.report().html()
    assert "drugs: Public rows" in page
    assert "last year, of a release with epsilon 5" in page
    public = Prior({name: each.copy() for name, each in tables.items()}, name="a census")
    leant = fit_tables(*given, prior=public, allow_lost=lost)
    assert "public rows of a census" in leant.report().html()
    with pytest.raises(ValueError, match="public tables by name, or FittedTables"):
        fit_tables(*given, prior=tables["people"])
    with pytest.raises(ValueError, match="The prior's tables are not as the private ones: "):
        fit_tables(*given, prior={"people": tables["people"]})
    with pytest.raises(ValueError, match="needs the engine 'particles'"):
        fit_tables(*given, prior=fitted, method="mst")


def test_families_of_keys_alone_and_some_without_a_parent_may_be_a_prior():
    homes = pd.DataFrame({"home": range(1_000), "rents": [True, False] * 500})
    people = pd.DataFrame({"home": [*range(1_000)] * 2})
    link, told = Link("homes", "people", "home", 2), {"homes": {"rents": Boolean()}}
    own = {"homes": homes, "people": people.assign(ill=True)}
    prior = {"homes": homes[:600], "people": people}
    fitted = fit_tables(own, {**told, "people": {}}, link, 5.0, 1e-6, prior=prior)
    assert list(fitted.sample(50)["people"]) == ["home"]
    declared, lost = {**told, "people": {"ill": Boolean()}}, {"people": ["ill"]}
    with pytest.warns(UserWarning, match="people: The prior, or a part of it, lacks 'ill'"):
        fitted = fit_tables(own, declared, link, 5.0, 1e-6, prior=prior, allow_lost=lost)
    assert list(fitted.sample(50)["people"]) == ["home", "ill"]


@pytest.mark.long
def test_a_prior_of_families_in_other_units_is_told_and_all_questions_have_its_cells(tables):
    links = replace(LINKS[0], order="dose"), replace(LINKS[1], count="times"), LINKS[2]
    people = {**COLUMNS["people"], "times": Numerical(0, 9, decimal_places=0)}
    told = TablesSettings.of({**COLUMNS, "people": people}, links, 1.0, 1e-6)
    others = {name: each.copy() for name, each in tables.items()}
    hours = {**others, "stays": others["stays"].assign(days=24 * others["stays"]["days"] + 40)}
    hours |= {"cars": others["bills"], "drugs": others["drugs"][["stay", "strong"]]}
    given = {**tables, "people": tables["people"].assign(times=1)}
    running = RunningTables.of(told, given, {}, hours)
    one, again = (running._options_of("stays")[1] for _ in range(2))
    assert one.facts == again.facts
    said = " ".join(running.told_before)
    assert "'days' (" in said
    assert "people: The prior, or a part of it, lacks 'times': fitted as without it." in said
    assert "drugs: The prior, or a part of it, lacks 'dose', '" in said


def test_a_table_of_keys_alone_costs_nothing_and_has_as_many_rows():
    size = np.random.default_rng(0).integers(0, 4, 2_000)
    homes = pd.DataFrame({"home": range(2_000), "rents": [True, False] * 1_000})
    people = pd.DataFrame({"home": np.repeat(homes["home"], size)})
    link = Link("homes", "people", "home", max_children=3)
    told = {"homes": {"rents": Boolean()}, "people": {"person": Key("P[0-9]{6}")}}
    fitted = fit_tables({"homes": homes, "people": people.assign(person=0)}, told, link, 3.0, 1e-6)
    assert {charge.what.partition(":")[0] for charge in fitted.ledger.charges} == {"homes"}
    assert fitted.ledger.spent() > 2.9
    rows = fitted.sample()
    assert list(rows["people"]) == ["home", "person"]
    assert rows["people"]["person"].is_unique
    shares = rows["homes"]["home"].map(rows["people"]["home"].value_counts()).fillna(0)
    assert shares.value_counts(normalize=True).to_numpy() == pytest.approx(0.25, abs=0.05)
    plan = plan_tables(told, link, 3.0, 1e-6, num_rows=2_000)
    assert plan.to_dict()["shares"] == {"homes": 1.0}
    assert "people" in fitted.report().to_dict()["tables"]
    with pytest.raises(ValueError, match="The sum of 'number of people' of 'homes' counts it"):
        fitted.answer("count", "people")
    assert fitted.answer("sum", of="number of people").estimate == pytest.approx(3_000, rel=0.1)


def test_parts_of_the_budget_are_as_the_cube_roots_of_pairs_of_columns():
    link = Link("homes", "people", "home", max_children=2)
    told = {"homes": {"a": Boolean()}, "people": dict.fromkeys("bcd", Boolean())}
    shares = plan_tables(told, link, 1.0, 1e-6, num_rows=900).to_dict()["shares"]
    # Of 'a' and the number of people one; of b, c, d three, and nine with those and the place.
    expected = np.cbrt([1, 3 + 9, 6 / 4])  # homes, people, and siblings of these
    assert list(shares.values()) == pytest.approx(expected / expected.sum(), rel=0.01)


def test_what_parents_have_takes_nothing_from_what_is_found_of_children():
    link, looked = Link("homes", "people", "home", max_children=2), set()
    for own in ({}, dict.fromkeys("abcde", Categorical([1, 2]))):
        told = {"homes": own, "people": {"x": Numerical(), "y": Categorical([1, 2])}}
        looked.add(
            TablesSettings.of(told, link, 1.0, 1e-6).options_of("people")[1].parts_looked_into[0]
        )
    assert looked == {Fraction(1, 2)}


def test_a_tree_is_the_same_in_any_order_of_its_links_and_after_use():
    tree = tree_of(LINKS)
    assert tree.tables == ("people", "stays", "bills", "drugs")
    assert pickle.dumps(tree) == pickle.dumps(tree_of(LINKS))
    assert (tree.root, tree.root_key, tree.most_of("drugs")) == ("people", "id", 6)


def test_a_check_says_what_becomes_of_each_column_and_reads_no_cell():
    homes = pd.DataFrame({"home": range(50), "built": ["2020-01-01"] * 50})
    people = pd.DataFrame({"home": [*range(50)] * 2, "job": ["a", "b"] * 50})
    built = Datetime("2000-01-01", "2024-12-31")
    told = {"homes": {"built": built}, "people": {"job": Categorical()}}
    link = Link("homes", "people", "home", max_children=2)

    def checked(**more):
        tables = {"homes": homes, "people": people} | more
        return check(tables, told, 1.0, 1e-6, relationships=link)

    found = checked()
    assert {name: set(own["columns"]) for name, own in found.to_dict()["tables"].items()} == {
        "homes": {"home", "built"},
        "people": {"job"},
    }
    assert "noise hides what fewer than" in " ".join(str(found).split())
    assert str(found).count("are counted in days") == 1  # by the table that has the dates
    assert found.to_dict()["stops"] == []
    other = people.assign(job=None)
    assert str(checked(people=other)) == str(found)
    stopped = checked(people=people.drop(columns="job"))
    assert "['job'] are missing" in stopped.to_dict()["stops"][0]
    with pytest.raises(ValueError, match="relationships=Link"):
        check({"homes": homes, "people": people}, told, 1.0, 1e-6)
    with pytest.raises(ValueError, match="delta must be given"):
        check({"homes": homes, "people": people}, told, 1.0, relationships=link)
