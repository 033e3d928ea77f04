"""Networks that private gradients train, behind the door: files, pages and refusals."""

import pickle

import pandas as pd
import pytest

from sdv_privpgd import (
    AdversarialNetwork,
    Boolean,
    Categorical,
    DiffusionNetwork,
    Numerical,
    PrivateGradients,
    PrivatePGM,
    fit_table,
    measure,
)
from sdv_privpgd.privacy.ledger_file import read_ledger

COLUMNS = {
    "age": Numerical(0, 110, decimal_places=0, num_bins=6),
    "ward": Categorical(["A", "B"]),
    "ill": Boolean(),
}
TABLE = pd.DataFrame(
    {"age": [3, 40, 90, 71] * 50, "ward": ["A", "B"] * 100, "ill": [True, False] * 100}
)
STRATEGY = PrivateGradients(steps=4, batch=20)
ENGINES = [DiffusionNetwork(width=8), AdversarialNetwork(width=8)]


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.network)
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_a_file_and_a_page_hold_the_training(engine, adjacency):
    fitted = fit_table(TABLE, COLUMNS, 2.0, strategy=STRATEGY, engine=engine, adjacency=adjacency)
    loaded = pickle.loads(pickle.dumps(fitted))
    fitted.reset_sampling()
    pd.testing.assert_frame_equal(loaded.sample(30), fitted.sample(30))
    assert read_ledger(fitted.ledger.to_json()) == fitted.ledger
    assert fitted.ledger.remaining == 0
    assert fitted.ledger.spent() <= 2.0
    assert "samples" in fitted.privacy_report()
    assert "4 random samples" in fitted.report().html()


@pytest.mark.parametrize(
    "settings",
    [
        {"strategy": "private_gradients"},
        {"strategy": STRATEGY, "engine": PrivatePGM()},
        {"strategy": STRATEGY, "engine": "generator"},
        {"engine": "diffusion"},
        {"strategy": "mst", "engine": "gan"},
    ],
    ids=str,
)
def test_what_does_not_go_together_is_refused_before_a_row_is_read(settings):
    with pytest.raises(ValueError, match=r"Choose (engine|strategy)='\w+'"):
        fit_table("no such file.csv", COLUMNS, 1.0, **settings)


def test_holders_do_not_train():
    with pytest.raises(ValueError, match="a release holds tables alone"):
        measure("no such file.csv", COLUMNS, 1.0, holder="here", strategy="private_gradients")
