"""People who count as one: through every door, into every file, and what is refused."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import sdv_tables
from made_up import kinds, quiet
from sdv.errors import SynthesizerInputError

from sdv_privpgd import (
    Boolean,
    Categorical,
    FittedTable,
    MSTSynthesizer,
    People,
    PrivacyLedger,
    combine,
    fit_table,
    measure,
)
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.ledger import FitLedger
from sdv_privpgd.privacy.ledger_file import read_ledger
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.releases.site_release import Measured

COLUMNS = {"ward": Categorical(["A", "B"]), "ill": Boolean()}
BOUND = {"adjacency": "add_remove", "delta": 1e-5, "people": People("who", max_rows=3)}
WEIGHED = {**BOUND, "people": People("who", max_rows=3, weighed=True)}


def table():
    """The ill come often: 2 of 10 people, and most rows."""
    rng = np.random.default_rng(0)
    ill = rng.random(2_000) < 0.2
    who = np.repeat(np.arange(2_000), np.where(ill, 6, 1))
    ward = rng.choice(["A", "B"], len(who)).astype(object)
    return pd.DataFrame({"who": who, "ward": ward, "ill": ill[who]})


@pytest.fixture(scope="module")
def fitted():
    return fit_table(table(), COLUMNS, 5.0, method="privpgd+pgm", **WEIGHED)


def test_shares_are_of_people_and_errors_are_as_is_said(fitted):
    assert abs(fitted.num_rows - 2_000) < 5 * fitted.fitted.release.measurements[0].stddev + 1
    people = table().groupby("who")["ill"].mean().mean()
    found = fitted.answer("share", where={"ill": True})
    assert abs(found.estimate - people) < 5 * found.stddev
    assert 0 < found.stddev < 0.01
    counted = fitted.answer("count", where={"ill": True})
    assert abs(counted.estimate - people * 2_000) < 5 * counted.stddev
    assert "people (standard deviation of the noise" in str(counted)
    assert "each person counts as one ('who')" in str(counted)
    rows = fit_table(table(), COLUMNS, 5.0, method="privpgd+pgm", **BOUND).answer(
        "share", where={"ill": True}
    )
    visits = table().groupby("who").head(3)["ill"].mean()
    assert abs(rows.estimate - visits) < 5 * rows.stddev
    assert visits > 2 * people


def test_the_noise_is_that_of_one_row(fitted):
    """In whole numbers of 1/6, with the standard deviation that the ledger has in them."""
    ledger = fitted.ledger
    assert (ledger.units, ledger.rows_counted, ledger.rows_per_person) == (6, 1, 3)
    pairs = ledger.charges[-1]
    squared = dict(pairs.sensitivity_squared)[Adjacency.ADD_REMOVE]
    assert squared == 36 * pairs.num_queries
    one = fit_table(
        table(), COLUMNS, 5.0, method="privpgd+pgm", **{**BOUND, "people": People("who")}
    )
    own = [[each.stddev for each in each.fitted.release.measurements] for each in (fitted, one)]
    assert own[0] == pytest.approx(own[1], rel=1e-9)
    for each in fitted.fitted.release.measurements:
        assert np.allclose(each.answer * 6, np.rint(each.answer * 6), atol=1e-6)
    tables = fitted.noisy_tables()
    said = tables[tables["kind"] == "measured"]["stddev"].unique()
    # Whole numbers of 1/6 add 1 / (12 * 36).
    assert sorted(np.square(said)) == pytest.approx(sorted(np.square(own[0]) + 1 / 432), rel=1e-6)


def test_rarer_categories_are_looked_for_with_what_noise_the_first_ones_had():
    """Numbers are in people, and their noise is: half of the people have other categories."""
    words = np.where(np.arange(2_000) % 2, "A", [f"{each} of few" for each in range(2_000)])
    visits = pd.DataFrame({"who": np.arange(2_000), "ward": words, "ill": words == "A"})
    columns = {"ward": Categorical(), "ill": Boolean()}
    how = {**WEIGHED, "people": People("who", max_rows=8, weighed=True), "allow_lost": ["ward"]}
    with quiet():
        charges = fit_table(visits, columns, 1.0, method="independent", **how).ledger.charges
    assert "rarer categories of undeclared columns" in {charge.what for charge in charges}


def test_pages_ledger_and_files_say_what_is_counted_and_more_budget_keeps_it(fitted, tmp_path):
    said = " ".join(fitted.privacy_report().split())
    assert "all rows of one person, of which 3 at most are used, together as one row" in said
    assert "Counts are of people: each row counts as 1 / the number of rows of its person" in said
    assert "Counts are of people" in " ".join(fitted.report().html().split())
    lines = fitted.privacy_report().splitlines()
    (asked,) = (line.split() for line in lines if line.startswith("number of rows"))
    assert asked[6:8] == ["0", "1"]  # what a person adds, in people
    assert read_ledger(fitted.ledger.to_json()) == fitted.ledger
    again = pickle.loads(pickle.dumps(fitted))
    assert isinstance(again, FittedTable)
    assert again.ledger == fitted.ledger
    assert again.sample(20).equals(fitted.sample(20))
    with pytest.raises(ValueError, match=r"got add_remove/3/weighed and add_remove/3\."):
        fitted.ledger.followed_by(
            PrivacyLedger.open(1.0, 1e-5, Adjacency.ADD_REMOVE, 3, people="who")
        )
    finer = fitted.add_budget(table(), epsilon=2.0)
    assert finer.ledger.epsilon == 7.0
    assert finer.ledger.weighed
    assert abs(finer.num_rows - 2_000) < 30


def test_holders_who_weigh_are_combined_with_each_other_alone(tmp_path):
    frame = table()
    north = measure(frame, COLUMNS, 5.0, site="North", **WEIGHED)
    north.save(tmp_path / "north.zip")
    kept = Measured.load(tmp_path / "north.zip")
    assert kept.ledger == north.ledger
    for one, two in zip(north.answers, kept.answers, strict=True):
        assert np.array_equal(one.answer, two.answer)
        assert one.stddev == two.stddev
    south = measure(frame.head(900), COLUMNS, 5.0, site="South", **WEIGHED)
    number = frame.head(900)["who"].nunique()
    assert abs(combine([kept, south], engine="pgm").num_rows - 2_000 - number) < 60
    rows = measure(frame, COLUMNS, 5.0, site="West", **BOUND)
    with pytest.raises(ValueError, match="'West' has counted rows and 'North' people"):
        combine([rows, north])


class TestRefusals:
    def test_nobody_is_weighed_who_is_not_known_or_public_or_has_too_many_rows(self, fitted):
        with pytest.raises(ValueError, match="weighed=True needs column="):
            People(weighed=True)
        settings = {**WEIGHED, "adjacency": "replace_one"}
        with pytest.raises(ValueError, match="needs adjacency='add_remove'"):
            fit_table(table(), COLUMNS, 1.0, **settings)
        with pytest.raises(ValueError, match="weighed=True takes max_rows of at most 100"):
            People("who", max_rows=101, weighed=True)
        with pytest.raises(ValueError, match="weighed must be True or False, got 'yes'"):
            People("who", weighed="yes")
        facts = kinds(who="id", ill="boolean")
        synthesizer = MSTSynthesizer(sdv_tables.metadata_of(facts), 1.0, **WEIGHED)
        codes = MSTSynthesizer(sdv_tables.metadata_of(facts), 1.0).preprocess(
            table()[["who", "ill"]]
        )
        with pytest.raises(SynthesizerInputError, match="need the table itself"):
            synthesizer.fit_processed_data(codes)
        assert not synthesizer.ledger.charges
        domain = fitted.fitted.schema.domain()
        records = Dataset(domain, np.zeros((3, len(domain)), dtype=np.uint8))
        with pytest.raises(ValueError, match=r"units of 1 / 1 and the ledger in units of 1 / 6"):
            Curator(records, FitLedger(fitted.ledger))


class TestSynthesizers:
    def fitted(self):
        domain = {"ward": {"range_values": ["A", "B"]}}
        metadata = sdv_tables.metadata_of(kinds(who="id", ward="categorical", ill="boolean"))
        made = MSTSynthesizer(metadata, 5.0, public_domain=domain, **WEIGHED)
        made.fit(table())
        return made

    def test_of_sdv(self):
        made = self.fitted()
        assert made.get_parameters()["people"] == WEIGHED["people"]
        assert abs(made.estimated_num_rows - 2_000) < 60
        rows = made.sample(2_000)
        assert abs(rows["ill"].mean() - 0.2) < 0.05
        again = copy.deepcopy(made)
        again.reset_sampling()
        assert again.sample(2_000).equals(rows)
        plan = str(made.plan(num_rows=2_000))
        assert "Rows here are people" in " ".join(plan.split())


def test_all_conclusions_say_that_they_are_for_the_rows_that_were_read(fitted):
    """Four in ten rows were not read: shares of the others are not theirs."""
    bound = fit_table(table(), COLUMNS, 5.0, method="privpgd+pgm", **BOUND)
    told = "At most 3 rows of a person were read"
    for found in (
        bound.answer("share", where={"ill": True}),
        bound.answer("table", of=["ward", "ill"]),
        bound.regression("ill", ["ward"]),
        bound.bootstrap(lambda rows: rows["ill"].mean(), 3, num_processes=1),
    ):
        assert told in " ".join(found.notes)
        assert told in str(found)
    assert told in fitted.answer("count").notes[-1]
    free = fit_table(
        table()[["ward", "ill"]], COLUMNS, 5.0, method="privpgd+pgm", people=People(max_rows=3)
    )
    (said,) = free.answer("count").notes
    assert said.startswith("Up to 3 rows of a person may be alike")
