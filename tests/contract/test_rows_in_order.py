"""Rows in order: persons are sampled with rows that follow each other, whatever holds the table."""

import json
import pickle
import zipfile
from datetime import date
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import sdv_tables
from encoding import Codec
from made_up import quiet
from sdv.cag import Inequality
from sdv.errors import InvalidDataError
from test_people_of_sources import of_csv
from test_sources import of_duckdb, of_files, of_polars, of_pyarrow
from visiting import COLUMNS, ORDER, in_order, transitions, visits

from sdv_privpgd import (
    Categorical,
    Datetime,
    Link,
    Measured,
    MSTSynthesizer,
    People,
    combine,
    fit_table,
    fit_tables,
    measure,
)
from sdv_privpgd.columns.parser import describe
from sdv_privpgd.columns.visits import Visits, time_after, time_between
from sdv_privpgd.fitting.options import parse_options
from sdv_privpgd.methods import ParticleGradientDescent, PrivPGD
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.ledger import FitLedger, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.sources.visits import VisitsSource

FACTS = {
    "patient": {"sdtype": "id"},
    **{name: {"sdtype": each.sdtype} for name, each in COLUMNS.items()},
}


@pytest.fixture(scope="module")
def fitted():
    return fit_table(visits(4_000), COLUMNS, 10.0, method="privpgd+pgm", **ORDER)


@pytest.fixture(scope="module")
def synthesizer():
    made = MSTSynthesizer(sdv_tables.metadata_of(FACTS), 10.0, public_domain=COLUMNS, **ORDER)
    with quiet():
        made.fit(visits(2_000))
    return made


class TestRows:
    def test_persons_come_with_their_rows_in_order_as_many_as_are_bounded(self, fitted):
        rows = fitted.fitted.sampler.first(5_000)
        rows = pd.DataFrame(rows)
        assert list(rows) == ["patient", "sex", "admitted", "ward"]
        assert rows["patient"].is_monotonic_increasing
        assert set(rows["patient"].diff().dropna()) == {0, 1}
        assert rows.groupby("patient")["admitted"].is_monotonic_increasing.all()
        assert rows.groupby("patient").size().max() == 3
        assert rows.groupby("patient")["sex"].nunique().max() == 1
        rows = pd.DataFrame(fitted.fitted.sampler.first(10_000))
        found = rows.groupby("patient").size().value_counts(normalize=True)
        # One to five rows are as likely, and no more than three are used.
        assert np.abs(found[[1, 2, 3]] - [0.2, 0.2, 0.6]).max() < 0.03
        added = {"admitted (since the row before)", "ward (row before)", "rows of the person"}
        told = fitted.noisy_tables()
        assert added <= {*told["column_1"], *told["column_2"]}
        assert not added & {*fitted.discovered_domain(), *fitted.sample(1)}

    def test_a_row_depends_on_the_row_before(self, fitted):
        real = visits(4_000).sort_values(["patient", "admitted"])
        rows = pd.DataFrame(fitted.fitted.sampler.first(10_000))
        assert np.abs(transitions(rows) - transitions(real)).sum() / 2 < 0.06
        days = rows.groupby("patient")["admitted"].diff().dt.days.dropna()
        assert 5 <= days.median() <= 9  # it is 7

    def test_times_that_would_lie_beyond_the_range_are_not_all_at_its_end(self):
        """Visits lie anywhere in two years but the last fortnight, so times between are long."""
        rng = np.random.default_rng(0)
        days = pd.to_timedelta(rng.integers(0, 715, 1_600), unit="D")
        table = pd.DataFrame({"patient": np.repeat(np.arange(400), 4), "sex": True})
        table["admitted"] = pd.Timestamp("2022-01-01") + days
        table["ward"] = rng.choice(["A", "B", "C"], len(table))
        told = {**COLUMNS, "admitted": Datetime(date(2022, 1, 1), date(2023, 12, 31))}
        order = in_order(context_columns=(), max_rows=4)
        rows = fit_table(table, told, 1.0, method="privpgd+pgm", **order).sample(2_000)
        assert (rows["admitted"] == "2023-12-31").mean() < 0.02
        assert rows.groupby("patient", sort=False)["admitted"].is_monotonic_increasing.all()

    @pytest.mark.long
    def test_noise_far_out_makes_no_long_times_between_rows(self):
        """The mean was 18 to 51 days in 8 fits as noise had it, and is so in one of 20 since."""
        means = []
        for _ in range(5):
            noisy = fit_table(visits(), COLUMNS, 1.0, method="independent+pgm", **ORDER)
            days = noisy.sample(1_500).groupby("patient")["admitted"].diff().dt.days
            means.append(days.mean())
        assert np.median(means) < 17

    def test_the_sequence_is_the_same_however_it_is_cut(self, fitted):
        fitted.reset_sampling()
        together = fitted.sample(300)
        fitted.reset_sampling()
        parts = [fitted.sample(number) for number in (0, 1, 99, 200)]
        assert pd.concat(parts, ignore_index=True).equals(together)
        kept = pickle.loads(pickle.dumps(fitted))
        assert kept.sample(500).equals(fitted.sample(500))
        assert len(fitted.sample(0)) == 0

    def test_blocks_go_on_and_visits_without_a_time_come_last(self):
        engine = ParticleGradientDescent(num_particles=300)
        small = fit_table(visits(300), COLUMNS, 20.0, method=PrivPGD(engine=engine), **ORDER)
        many = pd.DataFrame(small.fitted.sampler.first(2_000))
        assert set(many["patient"].diff().dropna()) == {0, 1}
        assert many.groupby("patient")["admitted"].is_monotonic_increasing.all()
        assert many.groupby("patient").size().max() == 3
        table = visits(1_000)
        table.loc[::3, "admitted"] = None
        fitted = fit_table(table, COLUMNS, 20.0, method="privpgd+pgm", **ORDER)
        rows = pd.DataFrame(fitted.fitted.sampler.first(3_000))
        assert rows["admitted"].isna().any()
        after = rows[rows.groupby("patient")["admitted"].transform(lambda own: own.shift().isna())]
        later = after[after["patient"].duplicated() | after["admitted"].isna()]
        assert later.groupby("patient")["admitted"].apply(lambda own: own[1:].isna().all()).all()


class TestSdv:
    def test_ids_are_made_up_for_persons_and_given_ones_kept(self, synthesizer):
        synthesizer.reset_sampling()
        rows = synthesizer.sample(2_000)
        assert list(rows) == list(FACTS)
        assert rows["patient"].iloc[0] == "sdv-id-0"
        assert rows.groupby("patient", sort=False)["admitted"].is_monotonic_increasing.all()
        assert rows.groupby("patient").size().max() == 3
        table = visits(300).astype({"patient": str})
        made = MSTSynthesizer(sdv_tables.metadata_of(FACTS), 5.0, public_domain=COLUMNS, **ORDER)
        with quiet():
            made.fit(table)
        assert made.sample(3)["patient"].str.startswith("sdv-id-").all()
        known = pd.DataFrame({"ward": ["A", "C"], "patient": ["Ann", "Bea"]})
        rows = synthesizer.sample_remaining_columns(known)
        assert rows["ward"].tolist() == ["A", "C"]
        assert rows["patient"].tolist() == ["Ann", "Bea"]

    def test_more_budget_and_files_keep_the_order(self, synthesizer, tmp_path):
        kept = pickle.loads(pickle.dumps(synthesizer))
        kept.add_budget(visits(2_000), 1.0)
        rows = kept.sample(500)
        assert rows.groupby("patient", sort=False)["admitted"].is_monotonic_increasing.all()
        assert kept.ledger.epsilon == 11

    def test_pages_plans_and_comparisons_know_the_order(self, synthesizer):
        page = " ".join(synthesizer.report().html().split())
        assert "Rows of a person in order" in page
        assert "on no earlier one" in page
        assert "Persons with more than 3 rows look shorter" in page
        assert "ward (row before)" in str(synthesizer.plan(1_000).to_dict())
        found = synthesizer.evaluate(visits(300))
        assert "row before" not in str(found.to_dict())

    def test_constraints_hold_in_rows_that_follow(self):
        table = visits(800)
        stay = pd.to_timedelta(np.arange(len(table)) % 9, unit="D")
        table["left"] = table["admitted"] + stay
        facts = sdv_tables.metadata_of({**FACTS, "left": {"sdtype": "datetime"}})
        domain = {**COLUMNS, "left": Datetime("2020-01-01", "2024-12-31")}
        made = MSTSynthesizer(facts, 10.0, public_domain=domain, **ORDER)
        made.add_constraints([Inequality("admitted", "left")])
        with quiet():
            made.fit(table)
        rows = made.sample(1_000)
        assert (rows["admitted"] <= rows["left"]).all()
        assert rows.groupby("patient", sort=False)["admitted"].is_monotonic_increasing.all()


class TestHolders:
    def test_a_release_carries_its_order(self, tmp_path):
        paths = [
            measure(visits(1_000, seed), COLUMNS, 5.0, site=name, **ORDER).save(
                tmp_path / f"{name}.zip"
            )
            for seed, name in enumerate(("North", "South"))
        ]
        assert Measured.load(paths[0]).visits.previous == ("ward",)
        combined = combine(paths, engine="pgm")
        rows = combined.sample(1_000)
        assert rows.groupby("patient")["admitted"].is_monotonic_increasing.all()
        assert "Rows of a person in order" in combined.report().html()

    @pytest.mark.parametrize(
        "other", [{"previous": ["sex"], "context_columns": []}, {"max_rows": 2}, None]
    )
    def test_orders_have_to_agree(self, other):
        plain = {**ORDER, "people": People("patient", max_rows=3)}
        asked = plain if other is None else in_order(**other)
        one = measure(visits(100), COLUMNS, 1.0, site="North", **ORDER)
        two = measure(visits(100), COLUMNS, 1.0, site="South", **asked)
        with pytest.raises(ValueError, match="Let both measure with the same People"):
            combine([one, two])

    def test_another_version_of_the_file_is_refused(self, tmp_path):
        path = measure(visits(100), COLUMNS, 1.0, site="North", **ORDER).save(tmp_path / "n.zip")
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        facts = json.loads(members["release.json"])
        assert facts["version"] == 2
        for changed in ({"version": 1}, {"order": {"sequence_index": "admitted"}}, {"order": None}):
            members["release.json"] = json.dumps({**facts, **changed}).encode()
            with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
                for name, content in members.items():
                    archive.writestr(name, content)
            with pytest.raises(ValueError, match="no release file that can be read"):
                Measured.load(tmp_path / "other.zip")


class TestRefusals:
    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"sequence_index": None}, "previous and context_columns need sequence_index"),
            ({"column": None}, "sequence_index needs column="),
            ({"max_rows": 1}, "max_rows of at least 2"),
            ({"sequence_index": "ward", "previous": []}, "no modelled column of numbers or dates"),
            ({"sequence_index": 3}, "must be the name of a column"),
            ({"previous": ["wrd"]}, r"previous names \['wrd'\], which are no modelled columns"),
            ({"context_columns": ["patient"]}, r"context_columns names \['patient'\]"),
            ({"previous": ["sex"]}, "both name"),
            ({"previous": ["admitted"]}, "must not name 'admitted'"),
            ({"previous": ["ward", "ward"]}, "names a column twice"),
            ({"weighed": True}, "weighed=True and sequence_index cannot go together"),
        ],
    )
    def test_an_order_that_cannot_be_meant_is_refused_before_a_row_is_read(self, changes, said):
        with pytest.raises(ValueError, match=said):
            fit_table(object(), COLUMNS, 1.0, **in_order(**changes))
        with pytest.raises(ValueError, match=said):
            MSTSynthesizer(
                sdv_tables.metadata_of(FACTS), 1.0, public_domain=COLUMNS, **in_order(**changes)
            )

    def test_an_order_needs_a_declared_range_people_and_free_names(self):
        columns = {**COLUMNS, "admitted": Datetime()}
        with pytest.raises(ValueError, match="needs a column whose range is declared"):
            fit_table(visits(10), columns, 1.0, **ORDER)
        columns = {**COLUMNS, "ward (row before)": Categorical(["A"])}
        with pytest.raises(ValueError, match="as those are that sequence_index adds: rename them"):
            fit_table(visits(10), columns, 1.0, **ORDER)
        with pytest.raises(ValueError, match="no column 'patient' to tell people apart"):
            fit_table(visits(10).drop(columns="patient"), COLUMNS, 1.0, **ORDER)
        made = MSTSynthesizer(
            sdv_tables.metadata_of({**FACTS, "who": {"sdtype": "id"}}), 1.0,
            public_domain=COLUMNS, **ORDER,
        )  # fmt: skip
        with pytest.raises(InvalidDataError, match="missing in the data"):
            made.fit(visits(10))


class TestTimes:
    @pytest.mark.parametrize(
        "facts",
        [
            {"sdtype": "datetime", "range_min": "2020-01-01", "range_max": "2023-12-31"},
            {"sdtype": "datetime", "range_min": "2020-01-01 00:00:01", "range_max": "2020-01-09"},
            {"sdtype": "numerical", "range_min": 0, "range_max": 99, "decimal_places": 0},
            {"sdtype": "numerical", "range_min": 0, "range_max": 9.9, "decimal_places": 1},
            {"sdtype": "numerical", "range_min": 0.0, "range_max": 1.0},
            {"sdtype": "numerical", "range_min": 0, "range_max": 90, "increment": 10,
             "decimal_places": 0},
            {"sdtype": "numerical", "range_min": 5, "range_max": 5, "decimal_places": 0},
        ],
        ids=str,
    )  # fmt: skip
    def test_a_time_after_is_as_long_after_as_it_was_between(self, facts):
        clock = describe("when", facts)
        order = Visits(person="who", most=2, by="when")
        since = next(iter(order.columns_of({"when": clock})))
        low, high = clock.cells.ends
        before = np.linspace(low, high, 9).astype(type(clock.cells.at(np.array([0]), [0.0])[0]))
        now = before[::-1].copy()[:5][::-1]
        earlier = np.minimum(before[:5], now)
        apart = time_between(clock, earlier, now)
        codes, positions = Codec(since).encode(pd.Series(apart))
        steps = since.at(codes, positions)
        assert np.allclose(time_after(clock, earlier, steps), now)
        assert (codes < since.num_values).all()
        assert np.all(np.diff(since.cells.at(np.arange(since.num_values), np.zeros(1))) > 0)


def test_times_that_are_whole_days_stay_so_and_so_do_those_between_rows():
    table, columns = visits(1_500), {**COLUMNS}
    columns["admitted"] = Datetime("2020-01-01 00:00:00", "2023-12-31 23:59:59", nullable=False)
    private = {"people": table[["patient"]].drop_duplicates(), "stays": table}
    described, told = {"people": {}, "stays": columns}, {"method": "independent"}
    link = Link("people", "stays", "patient", 3, order="admitted")
    for rows in (
        fit_table(table, columns, 10.0, **told, **ORDER).sample(2_000),
        fit_tables(private, described, link, 10.0, 1e-5, **told).sample()["stays"],
    ):
        assert (rows["admitted"] == rows["admitted"].dt.normalize()).all()
        apart = rows.groupby("patient")["admitted"].diff().dropna()
        assert apart.median().days == pytest.approx(7, abs=2)


@pytest.mark.parametrize("made", [of_pyarrow, of_polars, of_duckdb, of_csv, of_files])
def test_all_sources_tell_rows_the_same(made, tmp_path):
    table, counts = visits(300), []
    table["ward"] = table["ward"].where(table.index % 7 > 0, None)
    given = made(table, tmp_path)
    _, description = parse_options(COLUMNS, 1.0, method="privpgd+pgm", **in_order(max_rows=9))
    for each in (table, given):
        private, errors = PrivateTable.opened(
            each, description.words, description.facts, has_others=True,
            people=("patient", 9), visits=description.ordered,
        )  # fmt: skip
        assert not errors
        shared = FitLedger(PrivacyLedger.open(1.0, 1e-5, Adjacency.ADD_REMOVE, 9, people="patient"))
        curator = private.curator(description.attributes, shared)
        names = description.attributes.domain().attributes
        counts.append([curator._dataset.counts(clique) for clique in pairwise(names)])
    assert isinstance(private._source, VisitsSource)
    for one, other in zip(*counts, strict=True):
        assert (one == other).all()
