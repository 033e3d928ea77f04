"""Rows with the weights of a survey: shares are the population's, through every door."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
import sdv_tables
from commands import run
from made_up import kinds
from sdv.errors import SynthesizerInputError
from test_people_of_sources import of_csv
from test_sources import SOURCES

from sdv_privpgd import (
    Boolean,
    Categorical,
    DomainMismatchError,
    FittedTable,
    MSTSynthesizer,
    Numerical,
    People,
    PrivacyLedger,
    check,
    combine,
    fit_table,
    measure,
    plan_table,
)
from sdv_privpgd.fitting.options import opened, parse_options
from sdv_privpgd.privacy.counting import Weights
from sdv_privpgd.privacy.ledger import FitLedger
from sdv_privpgd.privacy.ledger_file import read_ledger

COLUMNS = {"old": Boolean(), "ill": Boolean(), "town": Categorical(["North", "South"])}
PEOPLE = People(rows_are_people=True, weight_column="weight", weight_range=(2, 20))
WEIGHED = {"adjacency": "add_remove", "delta": 1e-6, "people": PEOPLE}


def population():
    rng = np.random.default_rng(0)
    old = rng.random(40_000) < 0.5
    ill = rng.random(40_000) < np.where(old, 0.6, 0.1)
    town = np.where(rng.random(40_000) < np.where(ill, 0.7, 0.4), "North", "South").astype(object)
    return pd.DataFrame({"old": old, "ill": ill, "town": town})


def sampled():
    """A survey of the population: the old are asked at a tenth of the rate of the others."""
    whole = population()
    rate = np.where(whole["old"], 0.05, 0.5)
    return whole.assign(weight=1 / rate)[np.random.default_rng(1).random(len(whole)) < rate]


@pytest.fixture(scope="module")
def fitted():
    return fit_table(sampled(), COLUMNS, 3.0, method="privpgd+pgm", **WEIGHED)


def test_shares_are_the_population_s(fitted):
    """Those of the rows are far off: 15 % of them are ill, and 35 % of the population."""
    whole, rows = population(), sampled()
    assert rows["ill"].mean() < 0.18 < 0.33 < whole["ill"].mean()
    weighted = np.average(rows["ill"], weights=rows["weight"])
    found = fitted.answer("share", where={"ill": True})
    assert abs(found.estimate - weighted) < 5 * found.stddev + 1e-6
    low, high = found.interval("population", level=0.9999)
    assert low < whole["ill"].mean() < high
    synthetic = fitted.sample(20_000)
    assert list(synthetic) == list(COLUMNS)
    for pair in (["old", "ill"], ["ill", "town"]):
        shares = [each[pair].value_counts(normalize=True) for each in (whole, synthetic)]
        assert abs(shares[0] - shares[1]).sum() < 0.06


def test_weights_outside_their_range_are_told(fitted):
    people = People(rows_are_people=True, weight_column="weight", weight_range=(2, 10))
    settings = {**WEIGHED, "people": people, "method": "independent+pgm"}
    clipped = fit_table(sampled(), COLUMNS, 3.0, **settings)
    told = ["of the weights in 'weight' lie outside" in str(f.warnings) for f in (fitted, clipped)]
    assert told == [False, True]


def test_counts_are_sums_of_weights(fitted):
    rows = sampled()
    assert abs(fitted.num_rows - rows["weight"].sum() / 20) < 30
    counted = fitted.answer("count", where={"ill": True})
    ill = rows.loc[rows["ill"], "weight"].sum()
    assert 0 < counted.stddev < 500
    assert abs(counted.estimate - ill) < 5 * counted.stddev
    low, high = counted.interval()
    assert low < counted.estimate < high
    assert "units (standard deviation of the noise" in str(counted)
    assert "their weights ('weight'), clipped to 2 to 20" in str(counted)
    cells = fitted.answer("table", of="ill")
    assert cells.estimate["True"] == pytest.approx(counted.estimate)
    assert cells.to_frame().loc["True", "low"] == pytest.approx(low)
    regression = fitted.regression("ill", ["old"])
    assert "clipped to 2 to 20" in " ".join(regression.notes)


@pytest.mark.long
def test_intervals_for_the_population_hold_it_though_rows_count_alike():
    """Of 60 surveys, at an epsilon whose noise is small: 95 % intervals miss hardly any."""
    rng, missed = np.random.default_rng(3), [0, 0]
    whole = pd.DataFrame({"ill": rng.random(6_000) < 0.4})
    settings = {**WEIGHED, "method": "independent+pgm"}
    for _ in range(60):
        weight = rng.choice([2.0, 20.0], len(whole))
        rows = whole.assign(weight=weight)[rng.random(len(whole)) < 1 / weight]
        fitted = fit_table(rows, {"ill": Boolean()}, 20.0, **settings)
        for number, where in ((whole["ill"].sum(), {"ill": True}), (len(whole), {})):
            low, high = fitted.answer("count", where=where).interval("population")
            missed[where == {}] += not low <= number <= high
    # At most 3 of each are expected, and 11 are 4.7 standard deviations more. How many rows and
    # which weights came is by chance: intervals that take their number for fixed miss the second.
    assert max(missed) <= 10


def test_synthesizers_of_sdv_do_the_same():
    facts = kinds(old="boolean", ill="boolean", weight="unknown")
    made = MSTSynthesizer(sdv_tables.metadata_of(facts), 3.0, **WEIGHED)
    assert made.get_parameters()["people"] == PEOPLE
    rows = sampled()[list(facts)]
    made.fit(rows)
    assert abs(made.sample(20_000)["ill"].mean() - population()["ill"].mean()) < 0.05
    assert made.ledger.weights == Weights("weight", 2.0, 20.0)
    with pytest.raises(SynthesizerInputError, match="need the table itself"):
        made.fit_processed_data(made.preprocess(rows))
    with pytest.raises(SynthesizerInputError, match="People\\(weight_column"):
        made.fit(rows, weights=rows["weight"])


def test_weights_are_modelled_if_they_are_declared_as_well():
    columns = {"ill": Boolean(), "weight": Numerical(2, 20)}
    rows = fit_table(sampled(), columns, 3.0, method="mst", **WEIGHED).sample(4_000)
    assert abs((rows["weight"] > 10).mean() - 0.5) < 0.1  # the old are half of the population


@pytest.mark.parametrize("made", [*SOURCES, of_csv])
def test_rows_weigh_the_same_on_every_source(made, tmp_path):
    frame = sampled().head(500).reset_index(drop=True)
    frame.loc[:3, "weight"] = [np.nan, 1e9, -1.0, 7.25]
    settings, description = parse_options(COLUMNS, 1.0, **WEIGHED)
    shared = FitLedger(settings.ledger())
    totals = []
    for each in (frame, made(frame, tmp_path)):
        private = opened(each, description, PEOPLE.limit)
        dataset = private.curator(description.schema, shared)._dataset
        totals.append(dataset.counts(("old", "ill", "town")).tolist())
    assert totals[0] == totals[1]
    right = frame["weight"].clip(2, 20).fillna(2)
    assert np.sum(totals[0]) == np.rint(right * 50).sum()


def test_ledger_files_pages_plans_and_checks_know_it(fitted):
    again = read_ledger(fitted.ledger.to_json())
    assert again == fitted.ledger
    assert (again.units, again.rows_counted, again.bound) == (1_000, 1, PEOPLE.weights)
    told = json.loads(fitted.ledger.to_json())
    assert told["weights"] == ["weight", 2.0, 20.0]
    kept = pickle.loads(pickle.dumps(fitted))
    assert isinstance(kept, FittedTable)
    assert kept.sample(20).equals(fitted.sample(20))
    said = " ".join(fitted.privacy_report().split())
    assert "Counts are of rows of weight 20: a row counts as its weight ('weight')" in said
    assert "Counts are of rows of weight 20" in " ".join(fitted.report().html().split())
    other = PrivacyLedger.open(1.0, 1e-6, fitted.ledger.adjacency, weights=Weights("w", 1.0, 9.0))
    with pytest.raises(ValueError, match=r"got add_remove/1/\('weight', 2.0, 20.0\) and"):
        fitted.ledger.followed_by(other)
    finer = fitted.add_budget(sampled(), epsilon=1.0)
    assert finer.ledger.weights == PEOPLE.weights
    told = "1,000 rows count as 100 to 1,000"
    for page in (
        plan_table(COLUMNS, 1.0, num_rows=1_000, **WEIGHED),
        check(sampled(), COLUMNS, 1.0, **WEIGHED),
    ):
        assert told in " ".join(str(page).split())


def test_another_row_may_have_another_weight(fitted):
    """So that the number of rows is not known where one row is another, and the ledger says it."""
    (rows,) = (each for each in fitted.ledger.charges if each.what == "number of rows")
    assert {square for _, square in rows.sensitivity_squared} == {1_000**2}


def test_holders_weigh_in_one_range(tmp_path):
    settings = {**WEIGHED, "method": "independent"}
    rows = sampled()
    north = measure(rows, COLUMNS, 3.0, site="North", **settings)
    north.save(tmp_path / "north.zip")
    south = measure(rows, COLUMNS, 3.0, site="South", **settings)
    both = combine([tmp_path / "north.zip", south], engine="pgm")
    assert abs(both.num_rows - 2 * rows["weight"].sum() / 20) < 60
    assert "clipped to 2 to 20" in str(both.answer("count"))
    wide = People(weight_column="weight", weight_range=(2, 40))
    west = measure(rows, COLUMNS, 3.0, site="West", **{**settings, "people": wide})
    with pytest.raises(ValueError, match=r"'North' has weighed rows by weight_range=\(2.0, 20.0\)"):
        combine([north, west])


class TestRefusals:
    @pytest.mark.parametrize(
        ("told", "said"),
        [
            ({"weight_range": None}, "weight_column and weight_range go together"),
            ({"weight_column": 3}, "weight_column must be the name of a column"),
            ({"weight_range": (0, 20)}, "two numbers above 0"),
            ({"weight_range": (1, 2, 3)}, "two numbers above 0"),
            ({"column": "who", "rows_are_people": False}, "cannot go together"),
        ],
    )
    def test_people_that_contradict_themselves(self, told, said):
        own = {"rows_are_people": True, "weight_column": "weight", "weight_range": (2, 20)}
        with pytest.raises(ValueError, match=said):
            People(**{**own, **told})

    @pytest.mark.parametrize(
        ("told", "columns", "said"),
        [
            ({"adjacency": "replace_one"}, {}, "'weight' needs adjacency='add_remove'"),
            ({"method": "dp-diffusion"}, {}, "Choose another method"),
            ({}, {"weight": Categorical(["2", "20"])}, "must hold plain numbers"),
            ({"people": People(weight_column="w", weight_range=(2, 20))}, {}, "no column 'w'"),
        ],
    )
    def test_before_anything_is_spent(self, told, columns, said):
        with pytest.raises(ValueError, match=said):
            fit_table(sampled(), {**COLUMNS, **columns}, 1.0, **{**WEIGHED, **told})

    @pytest.mark.parametrize(
        ("written", "columns", "said"),
        [
            (lambda weight: f"{weight:.1f}".replace(".", ","), {}, "may be no plain numbers"),
            (
                lambda weight: f"{weight} kg",
                {"weight": Numerical(2, 20)},
                "may be no plain numbers",
            ),
            (lambda weight: weight / 1000, {}, "Nearly all rows lie outside"),
        ],
    )
    def test_weights_that_are_not_read_stop_a_fit(self, written, columns, said):
        """Its first question counts them by rows, of which each counts as the lower end."""
        rows = sampled().head(2_000)
        rows["weight"] = rows["weight"].map(written)
        with pytest.raises(DomainMismatchError, match=said) as stop:
            fit_table(rows, {**COLUMNS, **columns}, 1.0, **WEIGHED)
        assert "'weight'" in str(stop.value)
        assert stop.value.ledger.spent() < 0.1
        assert stop.value.resume(rows).num_rows < 500

    def test_weights_that_no_type_reads(self):
        rows = sampled()
        rows["weight"] = pd.to_timedelta(rows["weight"], unit="D")
        with pytest.raises(ValueError, match=r"No type of column reads \{'weight'"):
            fit_table(rows, COLUMNS, 1.0, **WEIGHED)


def test_the_command_line(tmp_path, capsys):
    sampled().to_csv(tmp_path / "survey.csv", index=False)
    domain = {name: {"range_values": ["North", "South"]} for name in ["town"]}
    (tmp_path / "domain.json").write_text(json.dumps(domain))
    metadata = kinds(old="boolean", ill="boolean", town="categorical", weight="numerical")
    described = {"tables": {"table": {"columns": metadata}}, "METADATA_SPEC_VERSION": "V1"}
    (tmp_path / "metadata.json").write_text(json.dumps(described))
    asked = (
        "--header", "--metadata", tmp_path / "metadata.json", "--domain", tmp_path / "domain.json",
        "--epsilon", 3, "--delta", 1e-6, "--adjacency", "add_remove", "--rows-are-people",
        "--method", "mst", "--weight-column", "weight",
    )  # fmt: skip
    out, ends = tmp_path / "rows.csv", ("--weight-range", 2, 20)
    run_ = lambda *more: run("synthesize", tmp_path / "survey.csv", *asked, "--out", out, *more)
    assert run_("--rows", 20_000) == 1
    assert "--weight-column and --weight-range go together" in capsys.readouterr().err
    assert run_(*ends, "--dtype", "weight=number:1234,5") == 1
    assert "--weight-column 'weight' must hold plain numbers" in capsys.readouterr().err
    assert run_("--rows", 20_000, *ends) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Counts are of rows of weight 20" in said
    rows = pd.read_csv(out)
    assert list(rows) == ["old", "ill", "town"]
    assert abs(rows["ill"].mean() - population()["ill"].mean()) < 0.05
