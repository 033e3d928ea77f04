"""Networks that private gradients train, behind the door: files, pages and refusals."""

import pickle
import sys
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from sdv_privpgd import (
    Boolean,
    Categorical,
    Numerical,
    PrivacyBudgetError,
    PrivacyLedger,
    fit_table,
    measure,
)
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.methods import DPCTGAN, DPDiffusion, dp_sgd
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.ledger import Books, raised
from sdv_privpgd.privacy.ledger_file import read_ledger
from sdv_privpgd.privacy.queries import Adjacency

COLUMNS = {
    "age": Numerical(0, 110, decimal_places=0, num_bins=6),
    "ward": Categorical(["A", "B"]),
    "ill": Boolean(),
}
TABLE = pd.DataFrame(
    {"age": [3, 40, 90, 71] * 50, "ward": ["A", "B"] * 100, "ill": [True, False] * 100}
)
METHODS = [DPDiffusion(steps=4, batch=20, width=8), DPCTGAN(steps=4, batch=20, width=8)]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.network)
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_a_file_and_a_page_hold_the_training(method, adjacency):
    fitted = fit_table(TABLE, COLUMNS, 2.0, method=method, adjacency=adjacency)
    loaded = pickle.loads(pickle.dumps(fitted))
    fitted.reset_sampling()
    pd.testing.assert_frame_equal(loaded.sample(30), fitted.sample(30))
    assert read_ledger(fitted.ledger.to_json()) == fitted.ledger
    assert fitted.ledger.remaining == 0
    assert fitted.ledger.spent() <= 2.0
    assert "weaker than counts" in fitted.privacy_report()
    assert "4 random samples" in fitted.report().html()


@pytest.mark.parametrize("name", ["dp-diffusion+pgm", "privpgd+generator", "mst+diffusion"])
def test_what_does_not_go_together_is_refused_before_a_row_is_read(name):
    with pytest.raises(ValueError, match=r"Choose another engine|method must be one of"):
        fit_table("no such file.csv", COLUMNS, 1.0, method=name)


@pytest.mark.parametrize("delta", [1e-9, 1e-7])
def test_a_delta_that_is_too_small_is_refused_before_anything_is_spent(delta):
    kept = Fraction(delta) * DPDiffusion.own_delta
    books = Books(PrivacyLedger.open(8.0, delta, Adjacency.REPLACE_ONE, reserved=kept))
    domain = Domain(("a", "b"), (2, 3))
    curator = Curator(Dataset(domain, np.zeros((9, 2), dtype=np.int64)), books)
    with pytest.raises(PrivacyBudgetError, match="allow a larger delta"):
        METHODS[0].measure(curator)
    assert not curator.ledger.charges
    with pytest.raises(PrivacyBudgetError, match="allow a larger delta"):
        fit_table(
            TABLE,
            COLUMNS,
            8.0,
            delta,
            method=METHODS[0],
        )


def test_a_training_is_not_refined_and_nothing_is_spent_by_asking():
    fitted = fit_table(
        TABLE,
        COLUMNS,
        2.0,
        method=METHODS[0],
    )
    spent = fitted.ledger
    with pytest.raises(PrivacyBudgetError, match="cannot be refined"):
        fitted.refine(TABLE, 1.0)
    assert fitted.ledger == spent
    books = Books(raised(spent, 1.0))
    domain = Domain(("a", "b"), (2, 3))
    curator = Curator(Dataset(domain, np.zeros((9, 2), dtype=np.int64)), books)
    with pytest.raises(PrivacyBudgetError, match="cannot be refined"):
        METHODS[0].measure(curator)
    assert curator.ledger.charges == spent.charges


def test_what_is_not_declared_leaves_the_training_its_delta():
    columns = {**COLUMNS, "ward": Categorical()}
    table = pd.concat([TABLE] * 10, ignore_index=True)
    fitted = fit_table(
        table,
        columns,
        4.0,
        method=METHODS[0],
    )
    *_, training = fitted.ledger.charges
    assert training.delta >= Fraction(1, 10) * Fraction(1e-5) * (1 - Fraction(1, 100))
    assert fitted.ledger.spent() <= 4.0
    assert fitted.ledger.remaining == 0


def test_holders_do_not_train():
    with pytest.raises(ValueError, match="a release holds tables"):
        measure("no such file.csv", COLUMNS, 1.0, holder="here", method="dp-diffusion")


def test_without_opacus_nothing_is_spent(monkeypatch):
    monkeypatch.setattr(dp_sgd, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"pip install 'sdv-privpgd\[dp-sgd\]'"):
        fit_table(TABLE, COLUMNS, 2.0, method=METHODS[0])
    books = Books(PrivacyLedger.open(8.0, 1e-5, Adjacency.REPLACE_ONE, reserved=Fraction(1, 10**6)))
    domain = Domain(("a", "b"), (2, 3))
    curator = Curator(Dataset(domain, np.zeros((9, 2), dtype=np.int64)), books)
    with pytest.raises(ImportError, match=r"pip install 'sdv-privpgd\[dp-sgd\]'"):
        METHODS[0].measure(curator)
    assert not curator.ledger.charges


def test_rows_of_trained_weights_need_no_opacus(monkeypatch):
    fitted = fit_table(TABLE, COLUMNS, 2.0, method=METHODS[0])
    kept = pickle.dumps(fitted)
    monkeypatch.setitem(sys.modules, "opacus", None)
    monkeypatch.delitem(sys.modules, "sdv_privpgd.methods.dp_sgd.training")
    assert len(pickle.loads(kept).sample(30)) == 30
