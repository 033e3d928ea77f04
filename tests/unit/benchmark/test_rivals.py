"""Our methods beside other implementations: the same codes, the same budget, the same errors."""

import json
import math
import sys
import types
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.benchmark import reference_codes, rivals
from sdv_privpgd.benchmark.__main__ import main
from sdv_privpgd.benchmark.compare import read
from sdv_privpgd.benchmark.methods import METHODS
from sdv_privpgd.benchmark.reference_codes import REFERENCES, Call
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


def test_smartnoise_gets_the_budget_in_place_of_its_own(monkeypatch):
    class Dataset:
        def __init__(self, df, domain):
            self.df, self.domain = df, domain

    class Synthesizer:
        def __init__(self, **options):
            self.synthesizer, self.undo_compress_fn = self, lambda data: data

        def MST(self, data, epsilon, delta):
            self.data = data
            Synthesizer.rho = made.cdp_rho(epsilon, delta)

        def synthetic_data(self, rows):
            return Dataset(self.data.df.head(rows), self.data.domain)

    made = module(
        monkeypatch,
        "snsynth.mst.mst",
        Dataset=Dataset,
        Domain=lambda names, sizes: dict(zip(names, sizes, strict=True)),
        MSTSynthesizer=Synthesizer,
    )
    found = REFERENCES["smartnoise MST"].run(CODES, SIZES, Call(rho=0.06))
    np.testing.assert_array_equal(found, CODES)
    assert Synthesizer.rho == 0.06


MWEM = """
from cdp2adp import cdp_rho
from mbi import Dataset

def worst_approximated(answers, bounded=False):
    return 2.0 if bounded else 1.0

def mwem_pgm(data, epsilon, delta, bounded, maxsize_mb):
    data.seen = (cdp_rho(epsilon, delta), bounded, maxsize_mb, worst_approximated({}))
    Dataset.seen = data.seen
    return data
"""


def test_mwem_of_a_checkout_is_told_the_total_and_counts_both_rows_of_a_pair(monkeypatch, tmp_path):
    class Dataset:
        def __init__(self, df, domain):
            self.df, self.domain = df, domain

    mbi = module(
        monkeypatch,
        "dpmm.models.base.mbi",
        Dataset=Dataset,
        Domain=types.SimpleNamespace(fromdict=dict),
    )
    for name in ("mbi", "cdp2adp"):  # so that what it leaves there goes
        module(monkeypatch, name)
    Path(tmp_path, "mechanisms").mkdir()
    Path(tmp_path, "mechanisms", "mwem+pgm.py").write_text(MWEM)
    call = Call(rho=0.06, max_megabytes=2.0, checkout=str(tmp_path))
    np.testing.assert_array_equal(REFERENCES["private-pgm MWEM"].run(CODES, SIZES, call), CODES)
    assert mbi.Dataset.seen == (0.06, True, 2.0, 2.0)


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


METADATA = {
    "columns": {"a": {"sdtype": "boolean"}, "b": {"sdtype": "boolean"}, "c": {"sdtype": "boolean"}}
}


def test_both_are_run_on_the_same_rows_and_runs_that_are_held_are_not_repeated(
    monkeypatch, tmp_path, capsys
):
    frame = pd.DataFrame(CODES < 1, columns=["a", "b", "c"])
    frame.to_csv(tmp_path / "own.csv", index=False)
    (tmp_path / "metadata.json").write_text(json.dumps(METADATA))
    fitted = []

    def fit(name, python, given):
        fitted.append(name)
        if name == "dpmm MST":
            assert python == "other/python"
            return {"seconds": 7.0, "peak_mebibytes": 1.0}, given["codes"]
        with monkeypatch.context() as patch:
            source, target = tmp_path / "given.npz", tmp_path / "rows.npz"
            np.savez(source, **given)
            patch.setattr(sys, "argv", ["", "rivals-once", str(source), str(target)])
            main()
        return json.loads(capsys.readouterr().out.splitlines()[-1]), np.load(target)["codes"]

    monkeypatch.setattr(rivals, "_fitted", fit)
    command = [
        "", "rivals", "--table", str(tmp_path / "own.csv"), "--out", str(tmp_path / "r.parquet"),
        "--metadata", str(tmp_path / "metadata.json"), "--reference", "dpmm MST",
        "--python", "other/python", "--seeds", "1", "--own-seeds", "2", "--only", "a", "c", "b",
    ]  # fmt: skip
    monkeypatch.setattr(sys, "argv", command)
    main()
    assert fitted == ["dpmm MST", "MST", "MST"]
    main()
    assert len(fitted) == 3
    results = read(tmp_path / "r.parquet")
    assert len(results) == 3 * 3
    exact = results[(results["method"] == "dpmm MST") & (results["metric"] == "half_l1")]
    assert exact["value"].tolist() == [0.0]  # the reference was given what it is compared with
    assert (results["rows"] == 240).all()  # 80 % of the rows
    printed = capsys.readouterr().out
    assert "dpmm MST" in printed
    assert printed.count("half_l1_of_triples") == 2


def test_without_a_reference_the_command_says_what_it_needs(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["", "rivals"])
    with pytest.raises(SystemExit, match="--list"):
        main()
    monkeypatch.setattr(sys, "argv", ["", "rivals", "--list"])
    main()
    assert "dpmm MST, beside MST: pip install" in capsys.readouterr().out
