"""RDT's transformers carry values there and back, and keep nothing of the cells."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sdv  # noqa: F401  (before a module of ours is named: it loads them at its end)
from encoding import EACH, decoded
from rdt import HyperTransformer

from sdv_privpgd.plugin.generators import ColumnTransformer

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture
def hyper_transformer():
    """A fitted one, whose public frame holds one row of each column's first and last value."""
    hyper_transformer = HyperTransformer()
    fresh = {name: ColumnTransformer(each.column) for name, each in EACH.items()}
    sdtypes = {name: each.column.sdtype for name, each in fresh.items()}
    hyper_transformer.set_config({"sdtypes": sdtypes, "transformers": fresh})
    public = pd.DataFrame(
        {name: decoded(each, 0, each.column.num_values - 1) for name, each in EACH.items()}
    )
    hyper_transformer.fit(public)
    return hyper_transformer


def test_rdt_carries_values_there_and_back_also_from_outside(hyper_transformer):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            name: each.decode(rng.integers(0, each.column.size, 50), rng.random(50))
            for name, each in EACH.items()
        }
    )
    coordinates = hyper_transformer.transform(table)
    for name, each in EACH.items():
        assert coordinates[name].dtype == np.float64
        assert np.array_equal(np.floor(coordinates[name]), each.encode(table[name])[0])
    back = hyper_transformer.reverse_transform(coordinates)
    pd.testing.assert_frame_equal(back, table, rtol=1e-12)
    for each in hyper_transformer.field_transformers.values():
        size = each.column.size
        name = each.columns[0]
        wild = pd.DataFrame({name: [-1.0, size + 3.0, np.nan, np.inf, size - 0.5]})
        assert each.reverse_transform(wild)[name].isna().tolist() == [False, True, True, True, True]


def test_rdt_keeps_nothing_of_the_cells():
    kept = []
    for cells in (["a", 2, 0.5], [None, "SENTINEL", "a"]):
        fitted = ColumnTransformer(EACH["category"].column)
        fitted.fit(pd.DataFrame({"x": cells}), "x")
        fitted.transform(pd.DataFrame({"x": cells}))
        fitted.reset_randomization()
        kept.append(pickle.dumps(fitted))
    assert kept[0] == kept[1]
