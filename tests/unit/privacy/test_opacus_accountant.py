"""Opacus users can read our ledger, and nobody else has to import torch."""

import math
import subprocess
import sys

import numpy as np
import pytest

from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.ledger import Books, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency, CountQuery, MarginalQuery, ModelErrorQuery

pytestmark = pytest.mark.filterwarnings("ignore")  # opacus' and torch's own deprecations


@pytest.fixture(scope="module")
def accountant_class():
    pytest.importorskip("opacus")
    from sdv_privpgd.privacy.opacus import ExactGDPAccountant

    return ExactGDPAccountant


def test_opacus_finds_the_noise_multiplier_by_its_own_search(accountant_class):
    from opacus.accountants import create_accountant
    from opacus.accountants.utils import get_noise_multiplier

    assert isinstance(create_accountant("gdp-exact"), accountant_class)
    multiplier = get_noise_multiplier(
        target_epsilon=2.5,
        target_delta=1e-5,
        sample_rate=1.0,
        steps=1,
        accountant="gdp-exact",
        epsilon_tolerance=1e-6,
    )
    assert multiplier == pytest.approx(1.634003, abs=1.5e-6)


@pytest.mark.parametrize("adjacency", Adjacency)
def test_a_ledger_read_by_opacus_spends_the_same_epsilon(
    accountant_class, domain, codes, adjacency
):
    ledger = PrivacyLedger.open(1.0, 1e-5, adjacency, rows_per_person=2)
    curator = Curator(Dataset(domain, codes), Books(ledger))
    curator.measure([CountQuery()], ledger.budget / 100, what="number of rows")
    for degree in (1, 2):
        tables = [MarginalQuery(clique) for clique in domain.cliques(degree)]
        curator.measure(tables, ledger.budget / 3, what="tables")
    # A choice counts as the Gaussian that dominates it.
    scores = [
        ModelErrorQuery(clique=clique, expected=np.zeros(domain.shape(clique), dtype=np.int64))
        for clique in domain.cliques(1)
    ]
    curator.select(scores, ledger.budget / 10, what="a column")
    accountant = accountant_class.of(curator.ledger)
    assert len(accountant) == (4 if adjacency is Adjacency.ADD_REMOVE else 3)
    for delta in (1e-5, 1e-9):
        # Equal up to the rounding of each sigma and multiplier to a double.
        assert accountant.get_epsilon(delta) == pytest.approx(
            curator.ledger.spent(delta), rel=1e-12
        )


def test_an_empty_ledger_has_no_steps(accountant_class):
    accountant = accountant_class.of(PrivacyLedger.open(1.0, 1e-5, Adjacency.REPLACE_ONE))
    assert len(accountant) == 0
    assert accountant.get_epsilon(1e-5) == 0.0


def test_equal_steps_are_counted_together(accountant_class):
    accountant = accountant_class()
    for multiplier in (20.0, 20.0, 40.0, 20.0):
        accountant.step(noise_multiplier=multiplier, sample_rate=1.0)
    assert accountant.history == [(20.0, 1.0, 2), (40.0, 1.0, 1), (20.0, 1.0, 1)]
    assert len(accountant) == 4
    one = accountant_class()
    one.step(noise_multiplier=1 / math.sqrt(3 / 400 + 1 / 1600), sample_rate=1.0)
    assert accountant.get_epsilon(1e-5) == pytest.approx(one.get_epsilon(1e-5), rel=1e-12)


def test_it_agrees_with_opacus_prv_from_below(accountant_class):
    from opacus.accountants import PRVAccountant

    ours, prv = accountant_class(), PRVAccountant()
    ours.history = [(20.0, 1.0, 9), (40.0, 1.0, 36)]
    prv.history = list(ours.history)
    # privacy.md section 2: exact 0.77380, PRV 0.77485 within its eps_error.
    assert ours.get_epsilon(1e-5) == pytest.approx(0.77380, abs=1e-5)
    bound = prv.get_epsilon(1e-5, eps_error=1e-3)
    assert ours.get_epsilon(1e-5) <= bound <= ours.get_epsilon(1e-5) + 2e-3


@pytest.mark.parametrize("sample_rate", [0.0, 0.5, 0.999, 2.0, math.nan])
def test_subsampling_is_refused(accountant_class, sample_rate):
    accountant = accountant_class()
    with pytest.raises(ValueError, match="sample_rate must be 1"):
        accountant.step(noise_multiplier=1.0, sample_rate=sample_rate)
    assert len(accountant) == 0


@pytest.mark.parametrize("multiplier", [0.0, -1.0, math.nan])
def test_a_noise_multiplier_that_is_not_positive_is_refused(accountant_class, multiplier):
    with pytest.raises(ValueError, match="noise_multiplier"):
        accountant_class().step(noise_multiplier=multiplier, sample_rate=1.0)


def test_the_state_travels_through_opacus_state_dict(accountant_class):
    accountant = accountant_class()
    accountant.step(noise_multiplier=np.float64(3.0), sample_rate=1.0)
    other = accountant_class()
    other.load_state_dict(accountant.state_dict())
    assert other.get_epsilon(1e-5) == accountant.get_epsilon(1e-5)


def test_the_privacy_core_imports_neither_torch_nor_opacus_nor_pandas():
    script = (
        "import sys\n"
        "import sdv_privpgd.privacy.accounting, sdv_privpgd.privacy.curator\n"
        "import sdv_privpgd.privacy.ledger, sdv_privpgd.privacy.noise\n"
        "import sdv_privpgd.estimate.consistency, sdv_privpgd.methods.fixed\n"
        "print(sorted({name.split('.')[0] for name in sys.modules}"
        " & {'torch', 'opacus', 'pandas', 'sdv', 'rdt', 'numba'}))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"
