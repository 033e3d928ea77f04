"""A fit that fails keeps what it has paid for, and can be finished from there."""

import contextlib
import copy
import sys
from dataclasses import replace
from types import MappingProxyType

import cloudpickle
import numpy as np
import pandas as pd
import pytest
import sdv_tables
from made_up import kinds, quiet
from sdv.errors import InvalidDataError, NotFittedError, SamplingError

from sdv_privpgd import AIMSynthesizer, MSTSynthesizer, People, PrivPGDSynthesizer, fit_table
from sdv_privpgd.discovery.plan import CLOSER
from sdv_privpgd.discovery.transcript import Asker
from sdv_privpgd.fitting.mismatch import UNPARSED
from sdv_privpgd.methods import ParticleGradientDescent, PrivPGD, ProtectedThreshold
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.synthesize.particles import descent
from sdv_privpgd.synthesize.pgm import PrivatePGM

BOOLEANS = sdv_tables.metadata_of({name: {"sdtype": "boolean"} for name in "abc"})
TABLE = pd.DataFrame(np.random.default_rng(0).random((400, 3)) < [0.2, 0.5, 0.7], columns=[*"abc"])
UNDECLARED = sdv_tables.metadata_of(kinds(x="numerical", y="numerical", z="boolean"))
NUMBERS = pd.DataFrame(
    {"x": np.arange(900) % 9, "y": 50 + np.arange(900) % 7, "z": np.arange(900) % 2 == 0}
)


def fails(error=MemoryError):
    """A function that does nothing but raise."""

    def raises(*args, **settings):
        raise error

    return raises


@contextlib.contextmanager
def failing(monkeypatch, error, *, after=0):
    """The graphical model's fit, which fails after it has worked a few times."""
    fit, calls = PrivatePGM.fit, []

    def fits(self, *args, **settings):
        calls.append(1)
        if len(calls) > after:
            raise error
        return fit(self, *args, **settings)

    with monkeypatch.context() as patch:
        patch.setattr(PrivatePGM, "fit", fits)
        yield


def failed(synthesizer, table, monkeypatch, error=None, *, after=0):
    """The same synthesizer after a fit that paid and failed, and the error that the user saw."""
    error = MemoryError("no memory") if error is None else error
    stops = failing(monkeypatch, error, after=after)
    with stops, quiet(), pytest.raises(type(error)) as caught:
        synthesizer.fit(table)
    return synthesizer, caught.value


def notes(error):
    return " ".join(getattr(error, "__notes__", ()))


class TestWhatIsPaidForIsKept:
    @pytest.mark.parametrize("error", [MemoryError(), KeyboardInterrupt(), RuntimeError("kernel")])
    def test_a_fit_is_finished_from_its_answers_for_nothing(self, error, monkeypatch):
        synthesizer, error = failed(MSTSynthesizer(BOOLEANS, 3.0), TABLE, monkeypatch, error)
        shared = synthesizer.ledger
        assert shared.spent() == pytest.approx(3.0, abs=1e-9)
        if sys.version_info >= (3, 11):
            assert "resume() makes a model of it, at no cost" in notes(error)
        with pytest.raises(SamplingError, match="not been fitted"):
            synthesizer.sample(5)
        synthesizer.resume()
        assert synthesizer.ledger == shared
        assert synthesizer.sample(2_000).mean().tolist() == pytest.approx(
            TABLE.mean().tolist(), abs=0.15
        )

    @pytest.mark.parametrize(
        "take", [copy.deepcopy, lambda s: cloudpickle.loads(cloudpickle.dumps(s))]
    )
    def test_files_and_copies_can_be_finished_too(self, take, monkeypatch):
        synthesizer, _ = failed(MSTSynthesizer(BOOLEANS, 3.0), TABLE, monkeypatch)
        taken = take(synthesizer)
        taken.resume()
        synthesizer.resume()
        pd.testing.assert_frame_equal(synthesizer.sample(20), taken.sample(20))

    def test_nothing_of_the_table_is_kept_with_them(self, monkeypatch):
        table = sdv_tables.table(200)
        table.loc[:9, ["ward", "income"]] = "CANARY", -98765.4321
        synthesizer = MSTSynthesizer(
            sdv_tables.metadata(), 1.0, public_domain=sdv_tables.PUBLIC_DOMAIN
        )
        failed(synthesizer, table, monkeypatch)
        state = cloudpickle.dumps(synthesizer)
        assert b"CANARY" not in state
        assert np.float64(-98765.4321).tobytes() not in state
        assert b"person7@" not in state

    def test_an_adaptive_strategy_is_finished_from_what_it_measured(self, monkeypatch):
        synthesizer, error = failed(
            AIMSynthesizer(BOOLEANS, 3.0), TABLE, monkeypatch, KeyboardInterrupt(), after=2
        )
        spent = synthesizer.ledger.spent()
        assert 0 < spent < 2.9
        if sys.version_info >= (3, 11):
            assert "what is left of the budget" in notes(error)
        synthesizer.resume()
        assert synthesizer.ledger.spent() == spent
        assert len(synthesizer.sample(10)) == 10

    def test_with_the_table_what_is_left_of_the_budget_is_spent(self, monkeypatch):
        synthesizer, _ = failed(
            AIMSynthesizer(BOOLEANS, 3.0), TABLE, monkeypatch, KeyboardInterrupt(), after=2
        )
        before = synthesizer.ledger.charges
        synthesizer.resume(TABLE)
        assert synthesizer.ledger.charges[: len(before)] == before
        assert len(synthesizer.ledger.charges) > len(before)
        assert synthesizer.ledger.spent() == pytest.approx(3.0, abs=1e-9)
        assert synthesizer.ledger.epsilon == 3.0
        asked = [charge.what for charge in synthesizer.ledger.charges]
        assert asked[:3] == ["number of rows", UNPARSED, "number of rows"]
        assert asked.count("number of rows") == 2
        assert len(synthesizer._release.measurements) == sum(
            charge.num_queries
            for charge in synthesizer.ledger.charges[2:]
            if charge.temperature is None
        )

    def test_what_was_discovered_is_not_paid_for_again(self, monkeypatch):

        synthesizer = MSTSynthesizer(UNDECLARED, 5.0)
        with monkeypatch.context() as patch:
            patch.setattr("sdv_privpgd.fitting.fit.Fit.ask", fails())
            with pytest.warns(UserWarning, match="not declared"), pytest.raises(MemoryError):
                synthesizer.fit(NUMBERS)
        paid = synthesizer.ledger.charges
        assert 0 < synthesizer.ledger.spent() < 2.2
        with pytest.raises(ValueError, match=r"resume\(data\) with the table"):
            synthesizer.resume()
        synthesizer.resume(NUMBERS)
        assert synthesizer.ledger.charges[: len(paid)] == paid
        later = [charge.what for charge in synthesizer.ledger.charges[len(paid) :]]
        assert not any("undeclared" in what for what in later)
        assert synthesizer.ledger.spent() == pytest.approx(5.0, rel=0.01)
        assert synthesizer.ledger.spent() <= 5.0
        assert synthesizer.sample(200)["y"].between(40, 64).mean() > 0.8

    def test_an_earlier_model_stays_until_the_new_one_is_finished(self, monkeypatch):
        synthesizer = MSTSynthesizer(BOOLEANS, 3.0)
        synthesizer.fit(TABLE)
        first = synthesizer.sample(30)
        synthesizer.reset_sampling()
        failed(synthesizer, {"table": ~TABLE}, monkeypatch)
        pd.testing.assert_frame_equal(synthesizer.sample(30), first)
        synthesizer.resume()
        assert set(synthesizer.sample(3)) == {"table"}
        assert synthesizer.sample(1_000)["table"]["a"].mean() > 0.5
        assert len(synthesizer.ledger.charges) == 2 * len(synthesizer._release.ledger.charges)

    def test_a_protected_statistic_is_kept_until_the_model_is_finished_and_no_longer(
        self, monkeypatch, few_epochs
    ):
        penalty = ProtectedThreshold({"age": 1.0}, b=0.5, weight=0.5)
        synthesizer = PrivPGDSynthesizer(
            sdv_tables.metadata(), 1.0, public_domain=sdv_tables.PUBLIC_DOMAIN,

            method=PrivPGD(
                engine=ParticleGradientDescent(penalties=[penalty], num_particles=300)
            ),
        )  # fmt: skip

        engine = "sdv_privpgd.synthesize.particles.descent.ParticleGradientDescent.fit"
        with monkeypatch.context() as patch:
            patch.setattr(engine, fails())
            patch.setattr(descent, "must_compile", lambda **_: False)  # it fits, to compile
            with pytest.raises(MemoryError):
                synthesizer.fit(sdv_tables.table(200))
        synthesizer.resume()
        assert [m.query.describe() for m in synthesizer._release.measurements] == ["number of rows"]
        assert synthesizer._ledgers.unfinished is None

    def test_there_is_nothing_to_finish_before_a_fit_fails_or_after_one_succeeded(
        self, monkeypatch
    ):
        synthesizer = MSTSynthesizer(BOOLEANS, 3.0)
        with pytest.raises(NotFittedError, match="nothing to resume"):
            synthesizer.resume()
        failed(synthesizer, TABLE, monkeypatch)
        with pytest.warns(UserWarning, match=r"resume\(\) makes use of its answers"):
            synthesizer.fit(TABLE)
        with pytest.raises(NotFittedError, match="nothing to resume"):
            synthesizer.resume()

    def test_a_fit_that_was_refused_leaves_what_is_kept(self, monkeypatch):
        synthesizer, _ = failed(MSTSynthesizer(BOOLEANS, 3.0), TABLE, monkeypatch)
        synthesizer.epsilon = -1
        with pytest.raises(ValueError, match="epsilon"):
            synthesizer.fit(TABLE)
        synthesizer.epsilon = 3.0
        with failing(monkeypatch, MemoryError()), pytest.raises(MemoryError):
            synthesizer.resume()
        synthesizer.resume()
        assert synthesizer.ledger.spent() == pytest.approx(3.0, abs=1e-9)

    def test_answers_are_not_read_under_settings_that_mean_something_else(self, monkeypatch):
        metadata = sdv_tables.metadata_of({"x": {"sdtype": "numerical"}})
        domain = {"x": {"range_min": 0, "range_max": 9, "decimal_places": 0}}
        synthesizer = MSTSynthesizer(metadata, 3.0, public_domain=domain)
        failed(synthesizer, NUMBERS[["x"]], monkeypatch)
        synthesizer.public_domain = {"x": {**domain["x"], "range_min": 10, "range_max": 19}}
        with pytest.raises(ValueError, match="settings that give the noisy answers their meaning"):
            synthesizer.resume()
        synthesizer.public_domain = domain
        synthesizer.resume()
        assert synthesizer.sample(50)["x"].dropna().between(0, 9).all()


@pytest.mark.filterwarnings("ignore::UserWarning")
class TestOtherPeople:
    """Whom the ledger protect is not changed under them, and no row is read where it would be."""

    table = pd.DataFrame(
        {"who": np.arange(400) // 10, "other": np.arange(400) // 5, "day": np.arange(400) % 9}
    ).join(TABLE)
    metadata = sdv_tables.metadata_of(
        kinds(who="id", other="id", day="numerical", a="boolean", b="boolean", c="boolean")
    )
    told = MappingProxyType(
        {
            "adjacency": "add_remove", "delta": 1e-5, "people": People("who", max_rows=3),
            "public_domain": {"day": {"range_min": 0, "range_max": 8, "decimal_places": 0}},
        }
    )  # fmt: skip
    changed = pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"people": People("who", max_rows=10)}, "people.max_rows was 3 and is 10"),
            ({"people": People(max_rows=3)}, "people.column was 'who' and is None"),
            ({"people": People("other", 3)}, "people.column was 'who' and is 'other'"),
            ({"people": People("who", 3, weighed=True)}, "people.weighed was False and is True"),
            (
                {"adjacency": "replace_one", "people": None},
                "adjacency was 'add_remove' and is 'replace_one'; people.max_rows was",
            ),
            ({"people": People("who", 3, sequence_index="day")}, "constraints or people"),
        ],
    )

    def refused(self, synthesizer, changes, said, monkeypatch, doing):
        before, shared = {name: getattr(synthesizer, name) for name in changes}, synthesizer.ledger
        with monkeypatch.context() as patch:
            patch.setattr(PrivateTable, "opened", None)  # no table is
            for name, value in changes.items():
                setattr(synthesizer, name, value)
            with pytest.raises(ValueError, match=said):
                doing(self.table)
        assert synthesizer.ledger == shared
        for name, value in before.items():
            setattr(synthesizer, name, value)

    @changed
    def test_between_a_fit_that_stopped_and_its_end(self, changes, said, monkeypatch):
        synthesizer = AIMSynthesizer(self.metadata, 5.0, **self.told)
        failed(synthesizer, self.table, monkeypatch, KeyboardInterrupt(), after=1)
        self.refused(synthesizer, changes, said, monkeypatch, synthesizer.resume)
        synthesizer.resume(self.table)
        assert abs(synthesizer.estimated_num_rows - 120) < 60  # and not 400

    @pytest.fixture(scope="class")
    def fitted(self):
        synthesizer = MSTSynthesizer(self.metadata, 2.0, **self.told)
        synthesizer.fit(self.table)
        return synthesizer

    @changed
    def test_between_a_fit_and_its_refinement(self, changes, said, fitted, monkeypatch):
        refine = lambda table: fitted.add_budget(table, epsilon=3.0)
        self.refused(fitted, changes, said, monkeypatch, refine)

    def test_as_it_was_it_is_refined_and_so_at_the_door(self, fitted):
        fitted.add_budget(self.table, epsilon=8.0)
        assert abs(fitted.estimated_num_rows - 120) < 60
        columns = {name: {"sdtype": "boolean"} for name in "abc"}
        told = {name: self.told[name] for name in self.told if name != "public_domain"}
        fitted = fit_table(self.table, columns, 2.0, method="privpgd+pgm", **told)
        other = replace(fitted.fitted.settings, people=People("who", max_rows=10))
        with pytest.raises(ValueError, match=r"people\.max_rows was 3 and is 10"):
            replace(fitted, fitted=replace(fitted.fitted, settings=other)).add_budget(
                self.table, 1.0
            )


class TestAnotherTable:
    """Its number of rows tells it apart, where that is public."""

    def stopped(self, monkeypatch, adjacency="replace_one"):
        synthesizer = AIMSynthesizer(BOOLEANS, 3.0, adjacency=adjacency, delta=1e-5)
        return failed(synthesizer, TABLE, monkeypatch, KeyboardInterrupt(), after=2)[0]

    def test_is_refused_before_anything_is_spent(self, monkeypatch):
        synthesizer = self.stopped(monkeypatch)
        before = synthesizer.ledger
        with pytest.raises(InvalidDataError, match="had 400 rows, and this one has 100: hand over"):
            synthesizer.resume(TABLE[:100])
        assert synthesizer.ledger == before
        synthesizer.resume(TABLE)

    def test_nothing_is_said_where_the_number_is_private(self, monkeypatch):
        synthesizer = self.stopped(monkeypatch, "add_remove")
        synthesizer.resume(TABLE[:100])
        assert synthesizer.unfinished is None

    def test_is_refused_after_a_discovery_that_had_ended(self, monkeypatch):
        """Also if what goes on fails again before it asks anything."""
        synthesizer = MSTSynthesizer(UNDECLARED, 5.0)

        with monkeypatch.context() as patch, quiet():
            patch.setattr("sdv_privpgd.fitting.fit.Fit.ask", fails())
            for fitting in (synthesizer.fit, synthesizer.resume):
                with pytest.raises(MemoryError):
                    fitting(NUMBERS)
                with pytest.raises(InvalidDataError, match="had 900 rows, and this one has 90"):
                    synthesizer.resume(NUMBERS[:90])


MIXED = sdv_tables.metadata_of(
    {
        **kinds(age="numerical", job="categorical", ill="boolean"),
        "came": {"sdtype": "datetime", "datetime_format": "%Y-%m-%d"},
    }
)
PEOPLE = pd.DataFrame(
    {
        "age": np.arange(3_000) % 70,
        "job": np.where(np.arange(3_000) % 3, "nurse", "clerk"),
        "came": np.datetime_as_string(np.datetime64("2024-01-01") + np.arange(3_000) % 300),
        "ill": np.arange(3_000) % 5 == 0,
    }
)
LOOKS = [
    "number of rows", UNPARSED,
    "number of rows", "categories of undeclared columns", "numbers that many rows share",
    "sizes of numbers and dates", "precisions of numbers and dates",
    "values of columns on fine grids",
]  # fmt: skip


def interrupted(monkeypatch, at):
    """A synthesizer whose discovery ended before it could ask the question ``at``."""
    synthesizer, asked = PrivPGDSynthesizer(MIXED, 2.0, **sdv_tables.SMALL), []
    ask = Asker._answer  # noise decides whether categories are asked for once more
    monkeypatch.setattr("sdv_privpgd.discovery.first_queries.others", lambda *_: 0)

    def ends(self, what, *args, **settings):
        if len(asked) == at:
            raise KeyboardInterrupt
        asked.append(what)
        return ask(self, what, *args, **settings)

    with monkeypatch.context() as patch, quiet():  # that nothing is declared
        patch.setattr(Asker, "_answer", ends)
        with pytest.raises(KeyboardInterrupt):
            synthesizer.fit(PEOPLE)
    assert asked == LOOKS[:at]
    return synthesizer


class TestAnInterruptedDiscovery:
    @pytest.mark.parametrize("at", range(2, len(LOOKS)))  # the first one costs nothing
    @pytest.mark.filterwarnings("ignore::UserWarning")
    def test_goes_on_where_it_ended_and_pays_for_nothing_twice(self, at, monkeypatch):
        synthesizer = interrupted(monkeypatch, at)
        paid = synthesizer.ledger.charges
        # Under replace-one the number of rows is public.
        assert [charge.what for charge in paid] == LOOKS[:at]
        kept = cloudpickle.loads(cloudpickle.dumps(synthesizer))
        with pytest.raises(ValueError, match=r"resume\(data\) with the table"):
            kept.resume()
        with monkeypatch.context() as patch:
            if at == len(LOOKS) - 1:  # all of the first look is known: rows are not read for it
                patch.setattr(PrivateTable, "first_queries", None)
            kept.resume(PEOPLE)
        whats = [charge.what for charge in kept.ledger.charges]
        assert kept.ledger.charges[:at] == paid
        assert [what for what in whats if what in LOOKS] == [*LOOKS, "number of rows"]
        assert kept.ledger.spent() == pytest.approx(2.0, rel=0.01)
        assert kept.ledger.spent() <= 2.0
        assert kept.unfinished is None
        rows = kept.sample(300)
        assert set(rows["job"].dropna()) <= {"nurse", "clerk", "other"}
        found = kept.discovered_domain()["age"]
        assert rows["age"].between(found["range_min"], found["range_max"]).all()
        # Of 300 fits one had a range that noise made wider, and 2 % of its rows there.
        assert rows["age"].between(0, 128).mean() > 0.95

    def test_a_fit_that_fails_again_keeps_what_it_has_by_then(self, monkeypatch):
        synthesizer = interrupted(monkeypatch, 4)

        with monkeypatch.context() as patch:
            patch.setattr("sdv_privpgd.fitting.fit.find_shapes", fails())
            with pytest.raises(MemoryError):
                synthesizer.resume(PEOPLE)
        looked = [each.what for each in synthesizer.unfinished.looked]
        assert [what for what in looked if what != CLOSER] == LOOKS
        assert synthesizer.unfinished.diagnostics is None

    def test_under_settings_that_look_for_something_else_it_is_refused(self, monkeypatch):
        synthesizer = interrupted(monkeypatch, 5)
        spent = synthesizer.ledger.spent()
        synthesizer.public_domain = {"job": {"range_values": ["nurse", "clerk"]}}
        with pytest.raises(ValueError, match="what is looked for"):
            synthesizer.resume(PEOPLE)
        assert synthesizer.ledger.spent() == spent

    @pytest.mark.skipif(sys.version_info < (3, 11), reason="errors have no notes")
    def test_one_that_ends_while_categories_are_counted_says_what_is_lost(self, monkeypatch):
        """Delta is kept for one such question each: it cannot be asked again."""
        synthesizer = PrivPGDSynthesizer(MIXED, 2.0, **sdv_tables.SMALL)

        monkeypatch.setattr(
            "sdv_privpgd.privacy.curator.ValueCounts.counts", fails(KeyboardInterrupt)
        )
        with quiet(), pytest.raises(KeyboardInterrupt) as caught:
            synthesizer.fit(PEOPLE)
        assert [charge.what for charge in synthesizer.ledger.charges] == LOOKS[:4]
        assert synthesizer.unfinished is None
        assert "nothing could be kept" in notes(caught.value)
