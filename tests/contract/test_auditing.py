"""``synthesizer.audit``: it reads no row, changes nothing, and sees the code of users."""

import threading

import numpy as np
import pytest
import sdv_tables
from made_up import kinds, made_up
from sdv.cag import Inequality
from small_synthesizers import new

from sdv_privpgd import MSTSynthesizer, People, fit_table
from sdv_privpgd.audit import audit_fitted
from sdv_privpgd.audit.recorder import by_cell
from sdv_privpgd.plugin.audit import SynthesizerFit, kept_file

pytestmark = pytest.mark.usefixtures("plant")
QUICK = {"runs": 50, "false_alarms": 1e-7}
COLUMNS = kinds(came="numerical", left="numerical", ill="boolean")
DAYS = {"range_min": 0, "range_max": 365, "decimal_places": 0, "num_bins": 8}


def small(kind=MSTSynthesizer, **changes):
    settings = {"epsilon": 4.0, "discovery_share": 0, **changes}
    domain = {"came": DAYS, "left": DAYS}
    return kind(sdv_tables.metadata_of(COLUMNS), public_domain=domain, **settings)


def table(num_rows=500):
    rows = made_up(num_rows, came=(0, 300), left=(0, 60), ill=0.5)
    return rows.assign(left=rows["came"] + rows["left"])


def failed(synthesizer):
    return set(synthesizer.audit(**QUICK).to_dict()["failed"])


@pytest.mark.long
def test_an_audit_needs_no_fit_leaves_no_trace_and_sees_constraints():
    synthesizer = small()
    before = repr(sorted(vars(synthesizer)))
    assert failed(synthesizer) == set()
    assert repr(sorted(vars(synthesizer))) == before
    assert synthesizer.ledger.charges == ()
    assert not synthesizer.get_info()["is_fit"]
    synthesizer.add_constraints([Inequality("came", "left")])
    assert failed(synthesizer) == set()
    with pytest.raises(ValueError, match="runs must be an integer of at least 10"):
        small().audit(runs=0)
    with pytest.raises(ValueError, match="false_alarms must lie between 0 and 1"):
        small().audit(false_alarms=1.0)


def test_a_fitted_one_goes_on_where_it_was():
    synthesizer, other = small(), small()
    synthesizer.fit(table())
    spent = synthesizer.ledger
    first = synthesizer.sample(5)
    report = synthesizer.audit(**QUICK)
    assert report.to_dict()["passed"]
    assert synthesizer.ledger is spent
    assert not synthesizer.sample(5).equals(first)
    synthesizer.reset_sampling()
    assert synthesizer.sample(5).equals(first)
    assert other.ledger.charges == ()


@pytest.mark.slow
def test_a_large_table_of_all_kinds_of_columns_passes():
    assert failed(new(adjacency="add_remove", delta=1e-5, people=People(max_rows=2))) == set()


class Told(MSTSynthesizer):
    """Keeps a number of the table, as somebody's subclass might."""

    def _run(self, running, names, **more):
        super()._run(running, names, **more)
        came = running.private._source.columns["came"]
        self.oldest = str(came.max() if len(came) else 0)


class Warns(MSTSynthesizer):
    def fit(self, data, **more):
        import warnings

        if any(isinstance(cell, str) for cell in data["came"]):
            warnings.warn("Some cells are text.", stacklevel=2)
        super().fit(data, **more)


class Casts(MSTSynthesizer):
    """Gives back the dtype of the table."""

    def fit(self, data, **more):
        self._dtype_of_ill = str(data["ill"].dtype)
        super().fit(data, **more)

    def sample(self, num_rows, *more, **settings):
        rows = super().sample(num_rows, *more, **settings)
        return rows.astype({"ill": "object" if self._dtype_of_ill == "object" else "category"})


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "found"),
    [
        (Told, {"file", "messages"}),
        pytest.param(Warns, {"messages"}, marks=pytest.mark.slow),
        pytest.param(Casts, {"dtypes", "file"}, marks=pytest.mark.slow),
    ],
)
def test_a_subclass_that_leaks_is_found(kind, found):
    caught = failed(small(kind))
    assert min(found) in caught
    assert caught <= found | {"samples"}


@pytest.fixture(scope="module")
def synthesizer():
    synthesizer = small()
    synthesizer.fit(table())
    return synthesizer


class TestWhatIsKept:
    def checks(self, synthesizer):
        from sdv_privpgd.audit.subjects import file_checks

        return {check.name: check for check in file_checks(kept_file(synthesizer))}

    def test_all_of_it_follows_from_noisy_answers_and_settings(self, synthesizer, monkeypatch):
        checks = self.checks(synthesizer)
        assert {name: check.passed for name, check in checks.items()} == {
            "kept contents": True, "kept ledger": True, "kept delta": True,
        }  # fmt: skip
        monkeypatch.setattr(synthesizer, "epsilon", 1.0)
        assert self.checks(synthesizer)["kept ledger"].passed is False

    @pytest.mark.parametrize(
        ("name", "value"),
        [("note", "a true cell"), ("_count", 499), ("_table", np.array([3, 1, 2]))],
    )
    def test_what_does_not_is_named_by_its_place(self, synthesizer, name, value, monkeypatch):
        monkeypatch.setattr(synthesizer, name, value, raising=False)
        check = self.checks(synthesizer)["kept contents"]
        assert check.passed is False
        assert name in check.found
        assert str(value) not in check.found

    @pytest.mark.long
    def test_deltas_discoveries_and_tables_without_sdv_are_checked_too(self):
        synthesizer = small(delta=0.009)
        with pytest.warns(UserWarning, match="delta=0.009 promises next to nothing"):
            synthesizer.fit(table())
        assert self.checks(synthesizer)["kept delta"].passed is False
        synthesizer = small(discovery_share=0.2, epsilon=8.0)
        synthesizer.fit(table(2_000))
        assert self.checks(synthesizer)["kept contents"].passed
        columns = {name: {**facts, **(DAYS if name != "ill" else {})}
                   for name, facts in COLUMNS.items()}  # fmt: skip
        fitted = fit_table(table(), columns, epsilon=4.0, method="mst")
        assert audit_fitted(fitted, **QUICK).to_dict()["failed"] == []


def test_a_fit_in_another_thread_has_its_own_noise():
    """While an audit gives frozen answers, another thread's real fit draws fresh ones."""
    from sdv_privpgd.audit.replay import recorded

    real = [small() for _ in range(2)]
    begun, ended = threading.Event(), threading.Event()

    def fit():
        begun.wait(60)
        for each in real:
            each.fit(table())
        ended.set()

    thread = threading.Thread(target=fit)
    thread.start()
    begun.set()
    tapes = [recorded(SynthesizerFit(small())).tape]
    while not ended.is_set() and thread.is_alive():
        tapes.append(recorded(SynthesizerFit(small())).tape)
    thread.join()
    answers = [
        [each.answer.tobytes() for each in synthesizer._release.measurements if each.stddev]
        for synthesizer in real
    ]
    assert answers[0] != answers[1]
    frozen = [
        given
        for tape in tapes
        for event in tape.events
        if event.kind == "measure" and event.required
        for given in event.given
    ]
    for synthesizer in real:
        for each in synthesizer._release.measurements:
            if each.stddev and each.answer.size > 5:
                assert by_cell(each.answer) not in frozen
