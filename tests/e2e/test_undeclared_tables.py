"""Every real table at hand, with detected metadata and nothing declared, at small settings."""

import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sdv.metadata import Metadata
from sdv_tables import by_particles, metadata_of

from sdv_privpgd import PrivPGDSynthesizer

DATA = Path(__file__).parents[3] / "shared" / "data"
PATHS = sorted(DATA.glob("*.parquet"))
QUICK = "adult", "diabetes_130us", "nyc_flights13"
"""Words and numbers; many codes; dates."""

SELECTED = [
    path if path.stem in QUICK else pytest.param(path, marks=pytest.mark.slow) for path in PATHS
]
NUMBER = {"sdtype": "numerical"}


@pytest.mark.long
@pytest.mark.skipif(not PATHS, reason="no real tables beside the checkout")
@pytest.mark.filterwarnings("ignore:.*(names of|have the sdtype id)")  # ids are asked about
@pytest.mark.parametrize("path", SELECTED, ids=lambda path: path.stem)
@pytest.mark.parametrize("kind", ["csv", pytest.param("parquet", marks=pytest.mark.slow)])
def test_a_table_of_which_nothing_is_known_is_fitted_at_the_first_try(path, kind, tmp_path):
    real = pd.read_parquet(path).sample(1_000, random_state=0)
    if kind == "csv":
        real.to_csv(tmp_path / "table.csv", index=False)
        real = pd.read_csv(tmp_path / "table.csv")
    metadata = Metadata.detect_from_dataframes({"table": real})
    synthesizer = PrivPGDSynthesizer(metadata, epsilon=1.0, **by_particles(200))
    with pytest.warns(UserWarning, match="are not declared: 0.2 of the budget"):
        synthesizer.fit(real, allow_lost=list(real.columns))  # rows are few, codes many
    rows = synthesizer.sample(len(real))
    assert len(rows) == len(real)
    assert list(rows.columns) == list(real.columns)
    assert synthesizer.ledger.spent() <= 1.0
    for name, facts in metadata.tables["table"].columns.items():
        if facts["sdtype"] == "numerical":
            assert pd.api.types.is_numeric_dtype(rows[name]), name
        elif facts["sdtype"] == "datetime":
            is_date = pd.api.types.is_datetime64_any_dtype
            assert is_date(rows[name]) == is_date(real[name]), name


def test_ten_thousand_categories_are_fitted_in_small_tables():
    """Two columns of 10,000 categories: a table of all pairs of them would have 100 million."""
    rng = np.random.default_rng(0)
    ranks = np.minimum(rng.pareto(1.0, (2, 20_000)).astype(int), 9_999)
    values = np.array([f"v{rank}" for rank in range(10_000)], dtype=object)
    real = pd.DataFrame({"x": values[ranks[0]], "y": values[ranks[1]], "z": rng.random(20_000)})
    columns = {"x": {"sdtype": "categorical"}, "y": {"sdtype": "ordinal"}, "z": NUMBER}
    settings = {"public_domain": {name: {"range_values": list(values)} for name in "xy"}}
    settings |= by_particles(1_000)
    synthesizer = PrivPGDSynthesizer(metadata_of(columns), 2.0, **settings)
    tracemalloc.start()
    with pytest.warns(UserWarning, match=r"categories of 'z' are not declared"):
        synthesizer.fit(real)
    rows = synthesizer.sample(20_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 400 * 2**20
    assert max(synthesizer._schema().domain().sizes) <= 258
    for name in "xy":
        assert set(rows[name].dropna()) <= set(values)
        ours, theirs = ((frame[name] == "v0").mean() for frame in (rows, real))
        assert ours == pytest.approx(theirs, abs=0.05)
