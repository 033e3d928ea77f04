"""Releases: the same noisy answers, other tables, and not one byte differs; nor does a neighbor's.

A site's file may depend on its own table alone, and on that through noisy answers alone.
"""

import copy
import json
import pickle
import re

import cloudpickle
import numpy as np
import pytest
from canaries import NUMBER, TEXT, traces
from interference import all_cells_are, nasty, other_values, said_by, settings
from made_up import heard, made_up, quiet
from sdv_tables import table as sdv_table

from sdv_privpgd import (
    Boolean,
    Categorical,
    DomainMismatchError,
    Measured,
    Numerical,
    PrivPGDSynthesizer,
    combine,
    fit_table,
    measure,
)
from sdv_privpgd.privacy import curator

COLUMNS = {
    "ward": Categorical(["A", "B", "C"]),
    "age": Numerical(0, 99, decimal_places=0),
    "ill": Boolean(),
}


def table(num_rows, seed):
    age = np.random.default_rng(seed).normal(50, 30, num_rows)
    return made_up(num_rows, seed, ward="ABCD", age=age, ill=0.5)


def observed(private, tmp_path, **asked):
    """Everything that a site's release and a combination with another's let out."""
    with heard() as said:
        measured = measure(private, COLUMNS, 1.0, site="North", **asked)
        path = measured.save(tmp_path / "north.zip")
        other = measure(table(300, 7), COLUMNS, 2.0, site="South", **asked)
        combined = combine([path, other], engine="pgm")
    report = combined.report()
    return {
        "file": path.read_bytes(),
        "digest": measured.digest,
        "repr": repr(measured),
        "pickle": pickle.dumps(measured),
        "report": measured.privacy_report(),
        "rows": combined.sample(200).to_csv(),
        "page": report.html(),
        "numbers": json.dumps(report.to_dict()),
        "combined": pickle.dumps(combined),
        "warnings": [str(each.message) for each in said],
    }


@pytest.mark.parametrize("strategy", ["privpgd", "mst"])
def test_nothing_of_a_release_depends_on_the_values(strategy, fixed_answers, tmp_path):
    one = observed(table(400, 0), tmp_path, method=strategy)
    for other in (table(400, 1), nasty(table(400, 0))):
        assert one == observed(other, tmp_path, method=strategy)


def test_nothing_depends_on_the_number_of_rows_where_it_is_private(fixed_answers, tmp_path):
    one = observed(table(400, 0), tmp_path, adjacency="add_remove", delta=1e-5)
    for num_rows in (0, 1, 900):
        other = observed(table(num_rows, 2), tmp_path, adjacency="add_remove", delta=1e-5)
        assert one == other, num_rows


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_nothing_depends_on_the_table_where_a_measurement_stops(
    adjacency, fixed_answers, monkeypatch
):
    """The noisy counts say that all cells are missing, whatever they are."""
    monkeypatch.setattr(curator, "_noisy", all_cells_are(-1))
    settings = {"site": "North", "method": "mst+particles", "adjacency": adjacency, "delta": 1e-5}

    def seen(private):
        with pytest.raises(DomainMismatchError) as caught:
            measure(private, COLUMNS, 9.0, **settings)
        error = caught.value
        told = [*said_by(error), error.ledger.to_json()]
        kept = cloudpickle.dumps((error.args, error.goes_on))
        with heard() as said:
            done = error.resume(private)
        told += [str(each.message) for each in said]
        return told, kept, pickle.dumps(done), done.warnings

    first = seen(table(400, 0))
    assert "'ward'" in first[0][0]
    assert "Nearly all values are missing" in first[3][1]
    assert first == seen(nasty(table(400, 0)))
    if adjacency == "add_remove":
        assert first == seen(table(900, 2))


def test_a_whole_holder_s_table_leaves_the_others_releases_untouched(monkeypatch, tmp_path):
    """With the randomness held fixed and real answers, South's file is the same to the byte."""
    files = []
    for seed in (0, 1):
        monkeypatch.setattr(
            "sdv_privpgd.privacy.ledger.FitLedger.__init__", _fixed_words, raising=True
        )
        releases = {
            "North": measure(table(400, seed), COLUMNS, 1.0, site="North"),
            "South": measure(table(300, 7), COLUMNS, 1.0, site="South"),
        }
        for name, measured in releases.items():
            path = measured.save(tmp_path / f"{name}{seed}.zip")
            files.append(path.read_bytes())
    assert files[0] != files[2]
    assert files[1] == files[3]


def _fixed_words(self, ledger, *, words=None):
    import threading

    self._ledger, self._lock = ledger, threading.Lock()
    self.words = np.random.default_rng(0).bytes


def test_no_canary_is_in_a_release_file(tmp_path):
    private = table(400, 0).replace("D", "A")
    private.loc[0, "ward"] = TEXT
    private.loc[1, "age"] = NUMBER
    measured = measure(private, COLUMNS, 5.0, site="North")
    path = measured.save(tmp_path / "north.zip")
    assert traces(path.read_bytes()) == []
    assert traces(pickle.dumps(Measured.load(path))) == []
    assert set(traces(pickle.dumps(private))) >= {TEXT, str(NUMBER)}


def refined(private, **asked):
    with heard() as said:
        first = fit_table(private, COLUMNS, 0.5, **asked)
        finer = first.add_budget(private, 0.5)
        grown = fit_table(private, COLUMNS, 0.5, after=finer.ledger, **asked)
    found = [str(each.message) for each in said]
    for done in (finer, grown):
        numbers = done.report().to_dict() | {"date": "a day"}
        found += [
            pickle.dumps(done),
            done.sample(200).to_csv(),
            re.sub(r"\d{4}-\d\d-\d\d", "a day", done.report().html()),
            json.dumps(numbers, default=str),
        ]
    return found


@pytest.mark.parametrize("change", ["other", "nasty"])
def test_nothing_of_a_refinement_depends_on_the_values(change, fixed_answers):
    other = table(400, 1) if change == "other" else nasty(table(400, 0))
    assert refined(table(400, 0)) == refined(other)


def test_nothing_of_a_refinement_depends_on_a_private_number_of_rows(fixed_answers):
    asked = {"adjacency": "add_remove", "delta": 1e-5}
    assert refined(table(400, 0), **asked) == refined(table(700, 3), **asked)


@pytest.mark.parametrize("change", [other_values, nasty])
def test_nothing_of_a_synthesizer_s_refinement_depends_on_the_table(change, fixed_answers):
    synthesizer = PrivPGDSynthesizer(**settings(verbose=False))

    def seen(private):
        own = copy.deepcopy(synthesizer)
        own.fit(private)
        own.add_budget(private, 0.5)
        return cloudpickle.dumps(own), own.sample(100).to_csv(), own.privacy_report()

    with quiet():
        assert seen(sdv_table(120)) == seen(change(sdv_table(120)))


def test_the_comparison_notices_a_leak(fixed_answers, tmp_path, monkeypatch):
    from sdv_privpgd.releases.site import Measuring

    run = Measuring.run

    def leaking(self, *rest):
        oldest = int(np.abs(self.private._source.columns["age"]).max())
        object.__setattr__(self, "site", f"{self.site} {oldest}")
        return run(self, *rest)

    monkeypatch.setattr(Measuring, "run", leaking)
    one, two = (observed(table(400, seed), tmp_path) for seed in (0, 1))
    assert one["file"] != two["file"]
