"""The class is found in every import order, and the core imports neither SDV nor torch."""

import json
import subprocess
import textwrap

import pytest
from processes import python

USE = """
from sdv.metadata import Metadata
facts = {"tables": {"t": {"columns": {"a": {"sdtype": "boolean"}}}}}
synthesizer = PrivPGDSynthesizer(Metadata.load_from_dict(facts), 1.0)
assert type(synthesizer).__module__ == "sdv_privpgd.synthesizer", type(synthesizer).__module__
import sdv.single_table, sdv_privpgd, sdv_privpgd.synthesizer
assert sdv.single_table.PrivPGDSynthesizer is type(synthesizer)
assert sdv_privpgd.PrivPGDSynthesizer is type(synthesizer)
"""

ORDERS = {
    "sdv alone": "from sdv.single_table import PrivPGDSynthesizer",
    "sdv first": "import sdv; from sdv_privpgd import PrivPGDSynthesizer",
    "ours first": "import sdv_privpgd; PrivPGDSynthesizer = sdv_privpgd.PrivPGDSynthesizer",
    "our module": "from sdv_privpgd.synthesizer import PrivPGDSynthesizer",
    "ours, then sdv": (
        "import sdv_privpgd; import sdv; from sdv.single_table import PrivPGDSynthesizer"
    ),
    "the core first": (
        "import sdv_privpgd.methods.pipeline; from sdv.single_table import PrivPGDSynthesizer"
    ),
    "sdv's metadata first": (
        "from sdv.metadata import Metadata; from sdv_privpgd import PrivPGDSynthesizer"
    ),
    "its parts first": (
        "import sdv_privpgd.plugin.synthesizers; from sdv.single_table import PrivPGDSynthesizer"
    ),
    "torch first": "import torch; from sdv_privpgd import PrivPGDSynthesizer",
}
QUICK = "sdv first", "our module", "its parts first"


def run(code: str) -> subprocess.CompletedProcess:
    return python("-W", "error:Failed to", "-c", textwrap.dedent(code))


@pytest.mark.long
@pytest.mark.parametrize(
    "order",
    [pytest.param(each, marks=[] if each in QUICK else pytest.mark.slow) for each in ORDERS],
)
def test_the_class_is_there_in_every_import_order(order):
    done = run(ORDERS[order] + "\n" + USE)
    assert done.returncode == 0, done.stderr
    assert "Failed to load" not in done.stderr


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A file that was saved by a process that named the class through SDV alone."""
    path = tmp_path_factory.mktemp("saved") / "model.pkl"
    written = run(
        f"""
from sdv.single_table import PrivPGDSynthesizer
from sdv.metadata import Metadata
import pandas as pd
facts = {{"tables": {{"t": {{"columns": {{"a": {{"sdtype": "boolean"}}}}}}}}}}
synthesizer = PrivPGDSynthesizer(Metadata.load_from_dict(facts), 1.0, method="mst")
synthesizer.fit(pd.DataFrame({{"a": [True, False] * 20}}))
synthesizer.save({str(path)!r})
"""
    )
    assert written.returncode == 0, written.stderr
    return path


@pytest.mark.long
def test_a_file_holds_the_class_by_name(saved):
    assert b"Fits the synthesizer to" not in saved.read_bytes(), "the class itself was pickled"


@pytest.mark.long
@pytest.mark.parametrize(
    "first",
    ["", *(pytest.param(f"import {each}", marks=pytest.mark.slow)
           for each in ("sdv", "sdv_privpgd", "torch"))],
)  # fmt: skip
def test_a_saved_synthesizer_loads_whatever_was_imported_before(first, saved):
    read = run(
        f"""
{first}
import pickle
with open({str(saved)!r}, "rb") as file:
    synthesizer = pickle.load(file)
from sdv.utils import load_synthesizer
import sdv.single_table
for loaded in (synthesizer, load_synthesizer({str(saved)!r})):
    assert list(loaded.sample(5).columns) == ["a"]
    assert sdv.single_table.PrivPGDSynthesizer is type(loaded)
"""
    )
    assert read.returncode == 0, read.stderr


def test_importing_the_package_imports_neither_sdv_nor_torch():
    done = run(
        """
import sys
import sdv_privpgd
import sdv_privpgd.columns.schema, sdv_privpgd.privacy.curator, sdv_privpgd.estimate.consistency
import sdv_privpgd.privacy.ledger, sdv_privpgd.privacy.noise, sdv_privpgd.estimate.noisy_tables
heavy = {"sdv", "rdt", "torch", "opacus", "sdmetrics", "numba"} & set(sys.modules)
assert not heavy, heavy
"""
    )
    assert done.returncode == 0, done.stderr


WITHOUT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"sdv", "rdt", "sdmetrics", "sklearn", "plotly", "matplotlib",
                                      "tqdm", "opacus", "beartype"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
"""
"""Begins a program for which what comes with an extra is not installed."""


@pytest.mark.long
def test_the_core_runs_without_extras(tmp_path):
    done = run(
        WITHOUT
        + f"folder = {str(tmp_path)!r}"
        + """
import pickle
import numpy as np, pandas as pd
from sdv_privpgd import (
    Boolean, Categorical, Measured, Numerical, check_domain, combine,
    draft_domain, fit_table, measure,
)
from sdv_privpgd.methods import ParticleGradientDescent, PrivPGD
rng = np.random.default_rng(0)
table = pd.DataFrame({"age": rng.integers(18, 95, 500), "ward": rng.choice(["A", "B"], 500),
                      "ill": rng.random(500) < .3})
columns = {"age": Numerical(0, 110, decimal_places=0), "ward": Categorical(["A", "B"]),
           "ill": Boolean()}
engine = ParticleGradientDescent(num_particles=200, epochs=5)
fitted = fit_table(table, columns, epsilon=1.0, method=PrivPGD(engine=engine))
rows = pickle.loads(pickle.dumps(fitted)).sample(7)
assert list(rows.columns) == list(columns) and len(rows) == 7, rows
report = fitted.report()
assert "differential privacy" in str(report) and report.to_dict()["epsilon_spent"] <= 1
html = report.html()
assert "<svg" not in html and "A picture needs matplotlib" in html
for site in "ab":
    measure(table, columns, 1.0, site=site).save(f"{folder}/{site}.zip")
held = [Measured.load(f"{folder}/{site}.zip") for site in "ab"]
assert len(combine(held, engine=engine).sample(5)) == 5
assert list(draft_domain(table.dtypes)) == list(columns)
assert check_domain({"columns": {"ill": {"sdtype": "boolean"}}}, {"ill": Boolean()}) == []
"""
    )
    assert done.returncode == 0, done.stderr


NEEDED = {
    "from sdv_privpgd import PrivPGDSynthesizer": "SDV's interface needs sdv",
    "import sdv_privpgd.synthesizer": "SDV's interface needs sdv",
    "from sdv_privpgd import draft_metadata; draft_metadata({'a': 'bool'})": "needs sdv",
    "from sdv_privpgd import evaluate; import pandas as pd; t = pd.DataFrame({'a': [1]}); "
    "evaluate(t, t, {'columns': {'a': {'sdtype': 'numerical'}}})": "needs sdmetrics",
    "from sdv_privpgd.metrics import FidelityError": "FidelityError needs sdmetrics",
    "import numpy as np; from sdv_privpgd.metrics import f1_by_model; t = np.zeros((9, 1)); "
    "from sdv_privpgd.base.domain import Domain; f1_by_model(Domain(('a',), (2,)), t, t, 'a')": (
        "f1_by_model needs sklearn"
    ),
}


def test_what_an_extra_brings_is_named_where_it_is_lacking():
    tried = "\n".join(
        f"try:\n    exec({use!r})\nexcept ImportError as error:\n    print(error)" for use in NEEDED
    )
    done = run(f"{WITHOUT}\n{tried}")
    assert done.returncode == 0, done.stderr
    for said, needed in zip(done.stdout.splitlines(), NEEDED.values(), strict=True):
        assert needed in said
        assert said.endswith("which is not installed: pip install 'sdv-privpgd[sdv]'.")


@pytest.mark.long
def test_the_command_line_runs_without_sdv_and_says_what_needs_it(tmp_path):
    (tmp_path / "table.csv").write_text("age,ill\n" + "30,yes\n40,no\n" * 400)
    kinds = {"age": {"sdtype": "numerical"}, "ill": {"sdtype": "categorical"}}
    (tmp_path / "metadata.json").write_text(json.dumps({"columns": kinds}))
    domain = {"age": {"range_min": 0, "range_max": 99}, "ill": {"range_values": ["yes", "no"]}}
    (tmp_path / "domain.json").write_text(json.dumps(domain))
    (tmp_path / "types.json").write_text(json.dumps(domain | {"ill": kinds["ill"]}))
    done = run(
        WITHOUT
        + f"""
import os
os.chdir({str(tmp_path)!r})
from sdv_privpgd.cli.start import main
declared = ["--metadata", "metadata.json", "--domain", "domain.json"]
assert main(["measure", "table.csv", "--header", "--site", "a", "--epsilon", "1", *declared,
             "--out", "a.zip"]) == 0
assert main(["combine", "a.zip", "--engine", "pgm", "--out", "rows.csv"]) == 0
assert main(["draft-domain", "--metadata", "metadata.json", "--out", "draft.json"]) == 0
fit = ["table.csv", "--epsilon", "1", "--method", "mst"]
assert main(["plan", *fit, "--domain", "types.json"]) == 0
assert main(["synthesize", *fit, *declared, "--out", "declared.csv"]) == 0
typed = ["--domain", "types.json", "--ledger", "l.json", "--model", "m.zip"]
assert main(["synthesize", *fit, *typed, "--out", "typed.csv", "--report", "page.html"]) == 0
assert main(["sample", "m.zip", "--rows", "9", "--condition", "ill=no", "--out", "9.csv"]) == 0
assert main(["add-budget", "m.zip", "table.csv", "--epsilon", "1", "--out", "finer.csv"]) == 0
assert main(["describe", "m.zip"]) == 0
assert main(["audit", "--model", "m.zip", "--runs", "20"]) == 0
assert main(["synthesize", *fit, "--header", "--out", "no.csv"]) == 1
"""
    )
    assert done.returncode == 0, done.stderr
    for name in ("rows", "declared", "typed", "9", "finer"):
        assert (tmp_path / f"{name}.csv").read_text().startswith("age,ill\n"), name
    assert done.stderr.endswith(
        "Detecting types needs sdv, which is not installed: pip install 'sdv-privpgd[sdv]'. Or say "
        "the types: with --metadata, with --types dtypes, or with an sdtype of each column in "
        "--domain.\n"
    )


def test_every_public_name_resolves():
    import sdv_privpgd

    for name in sdv_privpgd.__all__:
        assert getattr(sdv_privpgd, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = sdv_privpgd.nonsense
