"""The class is found in every import order, and the core imports neither SDV nor torch."""

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
        "import sdv_privpgd.pipeline; from sdv.single_table import PrivPGDSynthesizer"
    ),
    "sdv's metadata first": (
        "from sdv.metadata import Metadata; from sdv_privpgd import PrivPGDSynthesizer"
    ),
    "torch first": "import torch; from sdv_privpgd import PrivPGDSynthesizer",
}


def run(code: str) -> subprocess.CompletedProcess:
    return python("-W", "error:Failed to", "-c", textwrap.dedent(code))


@pytest.mark.parametrize("order", ORDERS)
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
synthesizer = PrivPGDSynthesizer(Metadata.load_from_dict(facts), 1.0, num_particles=50)
synthesizer.fit(pd.DataFrame({{"a": [True, False] * 20}}))
synthesizer.save({str(path)!r})
"""
    )
    assert written.returncode == 0, written.stderr
    return path


def test_a_file_holds_the_class_by_name(saved):
    assert b"Fits the synthesizer to" not in saved.read_bytes(), "the class itself was pickled"


@pytest.mark.parametrize("first", ["", "import sdv", "import sdv_privpgd", "import torch"])
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


def test_the_core_synthesizes_where_sdv_is_not_installed():
    done = run(
        """
import sys
for absent in ("sdv", "rdt", "sdmetrics", "opacus", "beartype"):
    sys.modules[absent] = None  # importing it raises ImportError
import numpy as np
from sdv_privpgd import PrivacyLedger, pipeline
from sdv_privpgd.methods import ParticleGradientDescent
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.domain import Domain
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.ledger import Books
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.report.privacy import privacy_report
from sdv_privpgd.methods.fixed import AllKWay
domain = Domain(("a", "b"), (3, 4))
codes = np.random.default_rng(0).integers(0, (3, 4), size=(500, 2))
ledger = PrivacyLedger.open(1.0, 1e-5, Adjacency.REPLACE_ONE)
engine = ParticleGradientDescent(num_particles=200, epochs=5)
release = pipeline.run(Curator(Dataset(domain, codes), Books(ledger)), AllKWay(), engine)
assert release.model.sample(7, seed=0).shape == (7, 2)
assert "differential privacy" in privacy_report(release.ledger)
"""
    )
    assert done.returncode == 0, done.stderr


def test_every_public_name_resolves():
    import sdv_privpgd

    for name in sdv_privpgd.__all__:
        assert getattr(sdv_privpgd, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = sdv_privpgd.nonsense
