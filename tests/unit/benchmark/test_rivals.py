"""Our methods beside other implementations: the same codes, the same budget, the same errors."""

import json
import math
import sys
import types
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from benchmarks import reference_codes, rivals
from benchmarks.experiment import main
from benchmarks.reference_codes import REFERENCES, Call

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.benchmark.methods import METHODS
from sdv_privpgd.privacy.accounting import epsilon_of
from sdv_privpgd.privacy.queries import Adjacency

SIZES = [2, 3, 4]
CODES = np.random.default_rng(0).integers(0, SIZES, (300, 3))


def module(monkeypatch, name, **members):
    """A module of that name, with its packages, for as long as the test runs."""
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        path = ".".join(parts[:end])
        if path not in sys.modules:
            monkeypatch.setitem(sys.modules, path, types.ModuleType(path))
    made = types.ModuleType(name)
    vars(made).update(members)
    monkeypatch.setitem(sys.modules, name, made)
    return made


class Model:
    """What dpmm's models look like from outside; it gives back its rows, columns reversed."""

    def __init__(self, **options):
        self.options, self.generator, self.rho, self.sigma = options, self, 99.0, 99.0
        Model.last = self

    def fit(self, frame):
        self.frame = frame

    def generate(self, n_records):
        return self.frame.head(n_records)[list(reversed(self.frame.columns))]


@pytest.fixture
def dpmm(monkeypatch):
    module(monkeypatch, "dpmm.models.mst", MSTGM=Model)
    module(monkeypatch, "dpmm.models.aim", AIMGM=Model)


@pytest.mark.parametrize("name", ["MST", "AIM"])
def test_a_budget_replaces_that_of_the_reference_and_columns_keep_their_order(dpmm, name):
    found = REFERENCES[f"dpmm {name}"].run(CODES, SIZES, Call(rho=0.06, max_megabytes=2.0))
    np.testing.assert_array_equal(found, CODES)
    assert Model.last.rho == 0.06
    assert math.isclose(Model.last.sigma, 5.0)  # a third of rho each: sqrt(3 / (2 rho))
    assert list(Model.last.options["domain"].values()) == SIZES
    assert Model.last.options.get("max_model_size", 2.0) == 2.0


def test_a_run_reads_codes_and_writes_rows_seconds_and_memory(dpmm, tmp_path, capsys):
    source, target = tmp_path / "given.npz", tmp_path / "rows.npz"
    call = {"reference": "dpmm MST", "rho": 0.06, "max_megabytes": 80.0, "checkout": ""}
    np.savez(source, codes=CODES, sizes=np.array(SIZES), call=json.dumps(call))
    reference_codes.main(str(source), str(target))
    np.testing.assert_array_equal(np.load(target)["codes"], CODES)
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert set(found) == {"seconds", "peak_mebibytes"}
    assert min(found.values()) >= 0


def test_every_reference_has_a_method_beside_it_and_its_file_needs_nothing_of_ours():
    for reference in REFERENCES.values():
        assert reference.method in METHODS
        assert Adjacency(reference.adjacency)
        assert "pip install" in reference.install
    assert "import sdv_privpgd" not in Path(reference_codes.__file__).read_text()
    assert "from sdv_privpgd" not in Path(reference_codes.__file__).read_text()


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
def test_gaussian_noise_of_the_references_budget_spends_epsilon(epsilon):
    # A table with noise of 1 / sqrt(2 rho) and sensitivity 1: mu = sqrt(2 rho).
    spent = epsilon_of(2 * Fraction(rivals.rho_of(epsilon, 1e-5)), 1e-5)
    assert math.isclose(spent, epsilon, rel_tol=1e-6)


def test_errors_are_halves_of_l1_over_pairs_and_triples():
    domain = Domain(("a", "b", "c"), tuple(SIZES))
    other = np.random.default_rng(1).integers(0, SIZES, (200, 3))
    found = rivals.errors(domain, CODES, other)
    shares = [
        np.histogramdd(rows, bins=[np.arange(size + 1) for size in SIZES])[0] / len(rows)
        for rows in (CODES, other)
    ]
    gap = shares[0] - shares[1]
    pairs = [np.abs(gap.sum(axis=axis)).sum() / 2 for axis in range(3)]
    assert math.isclose(found["half_l1_of_triples"], np.abs(gap).sum() / 2)
    assert math.isclose(found["half_l1"], np.mean(pairs))
    assert found["sw1"] > 0


def test_both_are_run_on_the_same_rows_and_in_processes_of_their_own(monkeypatch, capsys):
    domain, fitted = Domain(("a", "b", "c"), tuple(SIZES)), []
    table = types.SimpleNamespace(domain=domain, split=lambda: [CODES], encode=lambda rows: rows)
    monkeypatch.setattr(rivals, "load", lambda *of: table)
    monkeypatch.setattr(rivals.os, "environ", {})

    def run(command, **_):  # a reference gives back what it is given
        fitted.append(command[0])
        given = np.load(command[-2])
        assert math.isclose(json.loads(str(given["call"]))["rho"], rivals.rho_of(1.0, 1e-5))
        np.savez(command[-1], codes=given["codes"])
        return types.SimpleNamespace(stdout='{"seconds": 7.0, "peak_mebibytes": 1.0}')

    def apart(function, **given):
        fitted.append(given["method"])
        return function(**given)

    monkeypatch.setattr(rivals.subprocess, "run", run)
    monkeypatch.setattr(rivals, "apart", apart)
    main(["rivals", "--reference", "dpmm MST", "--python", "other/python", "--seeds", "1",
          "--own-seeds", "2", "--only", "a", "c", "b"])  # fmt: skip
    assert fitted == ["other/python", "MST", "MST"]
    header, theirs, *ours = (line.split() for line in capsys.readouterr().out.splitlines())
    assert dict(zip(header, theirs[1:], strict=True))["half_l1"] == "0"  # what it was given
    assert ours[-1][0] == "MST"


def test_without_a_reference_the_command_says_what_it_needs(capsys):
    with pytest.raises(SystemExit, match="--list"):
        main(["rivals"])
    main(["rivals", "--list"])
    assert "pip install dpmm" in capsys.readouterr().out
