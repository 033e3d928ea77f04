"""A private table in a file, with its public facts beside it."""

import json

import numpy as np
import pandas as pd
import pytest
from commands import DOMAIN, METADATA, SECRET


@pytest.fixture
def csv(tmp_path):
    """A private table, with its public facts beside it."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "age": rng.integers(20, 60, 2_000),
            "ward": rng.choice(["01", "02"], 2_000),
            "ill": rng.random(2_000) < 0.2,
        }
    )
    table.loc[0, "ward"] = SECRET
    table.to_csv(tmp_path / "table.csv", index=False)
    (tmp_path / "metadata.json").write_text(json.dumps(METADATA))
    (tmp_path / "domain.json").write_text(json.dumps(DOMAIN))
    return tmp_path / "table.csv"
