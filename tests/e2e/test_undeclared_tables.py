"""Every real table at hand, with detected metadata and nothing declared, at small settings."""

from pathlib import Path

import pandas as pd
import pytest
from sdv.metadata import Metadata

from sdv_privpgd import PrivPGDSynthesizer

DATA = Path(__file__).parents[3] / "shared" / "data"
PATHS = sorted(DATA.glob("*.parquet"))


@pytest.mark.skipif(not PATHS, reason="no real tables beside the checkout")
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_table_of_which_nothing_is_known_is_fitted_at_the_first_try(path, kind, tmp_path):
    real = pd.read_parquet(path).sample(1_000, random_state=0)
    if kind == "csv":
        real.to_csv(tmp_path / "table.csv", index=False)
        real = pd.read_csv(tmp_path / "table.csv")
    metadata = Metadata.detect_from_dataframes({"table": real})
    synthesizer = PrivPGDSynthesizer(metadata, epsilon=1.0, num_particles=200)
    with pytest.warns(UserWarning, match="are not declared: 0.05 of the budget"):
        synthesizer.fit(real)
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
