"""Rows of CSV files and of the frame that the command line would read make one model."""

import numpy as np
import pandas as pd
import pytest
from same_rows import observed

from sdv_privpgd import Boolean, Categorical, Datetime, Numerical
from sdv_privpgd.cli.reading import read_table
from sdv_privpgd.sources import csv
from sdv_privpgd.sources.csv import CsvSource
from sdv_privpgd.sources.dialect import Reading

COLUMNS = {
    "age": Numerical(0, 99, decimal_places=0),
    "cost": Numerical(),
    "code": Categorical(),
    "ward": Categorical([1, 2, "x"]),
    "came": Datetime(datetime_format="%d.%m.%Y"),
    "ill": Boolean(),
}


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.setattr(csv, "_BLOCK", 101)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "age": rng.integers(-5, 120, 1_500).astype(object),
            "cost": [f"{cost:.2f}".replace(".", ",") for cost in rng.exponential(20, 1_500)],
            "code": rng.choice(["007", "7", "A\nB", 'say "A"'], 1_500),
            "ward": rng.choice(["1", "2.0", "x", "y"], 1_500),
            "came": pd.Timestamp("2021-06-01") + pd.to_timedelta(rng.integers(0, 900, 1_500), "D"),
            "ill": rng.choice(["TRUE", "0", "maybe"], 1_500),
        }
    )
    table["came"] = table["came"].dt.strftime("%d.%m.%Y")
    table.loc[::50, "age"] = 2**60 + 1
    for place, name in enumerate(table, start=7):
        table.loc[::place, name] = None
        table.loc[1::99, name] = "?"
    for number, part in enumerate(np.array_split(np.arange(1_500), 3)):
        path = tmp_path / f"{number}.csv.gz"
        table.iloc[part].to_csv(path, sep=";", index=False)
    return sorted(tmp_path.iterdir())


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("dtypes", [{}, {"code": pd.CategoricalDtype(), "cost": pd.Float32Dtype()}])
def test_the_model_is_the_frames_to_the_byte(files, frozen, adjacency, dtypes):
    how = Reading(sep=";", decimal=",", dtypes=dtypes)
    settings = {"method": "independent+pgm", "adjacency": adjacency, "delta": 1e-5}
    source, frame = CsvSource(files, COLUMNS, how), read_table(files, how, COLUMNS)
    assert observed(source, COLUMNS, **settings) == observed(frame, COLUMNS, **settings)


def test_another_cell_is_another_model(files, frozen):
    how, settings = (
        Reading(sep=";", decimal=","),
        {"method": "independent+pgm"},
    )
    frame = read_table(files, how, COLUMNS)
    frame.loc[:9, "ward"] = "x"
    source = CsvSource(files, COLUMNS, how)
    assert observed(frame, COLUMNS, **settings) != observed(source, COLUMNS, **settings)
