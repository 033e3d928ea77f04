"""Rows of CSV files and of the frame that the command line would read make one model."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

from sdv_privpgd import Boolean, Categorical, Datetime, Numerical, fit_table
from sdv_privpgd.cli.reading import read_table
from sdv_privpgd.privacy import curator
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
def frozen(monkeypatch):
    """The same noise for each answer of the same shape: other counts are other answers."""

    def noisy(answer, stddev, words):
        if stddev == 0:
            return answer
        return answer + np.random.default_rng(answer.size).integers(-9, 10, answer.shape)

    monkeypatch.setattr(curator, "_noisy", noisy)


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


def observed(private, **settings):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        fitted = fit_table(private, COLUMNS, 20.0, engine="pgm", **settings)
    return {
        "model": pickle.dumps(fitted),
        "rows": fitted.sample(200).to_csv(),
        "ledger": fitted.ledger.to_json(),
        "warnings": [str(each.message) for each in said],
    }


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("dtypes", [{}, {"code": pd.CategoricalDtype(), "cost": pd.Float32Dtype()}])
def test_the_model_is_the_frames_to_the_byte(files, frozen, adjacency, dtypes):
    how = Reading(sep=";", decimal=",", dtypes=dtypes)
    settings = {"strategy": "independent", "adjacency": adjacency}
    source, frame = CsvSource(files, COLUMNS, how), read_table(files, how, COLUMNS)
    assert observed(source, **settings) == observed(frame, **settings)


def test_another_cell_is_another_model(files, frozen):
    how, settings = Reading(sep=";", decimal=","), {"strategy": "independent"}
    frame = read_table(files, how, COLUMNS)
    frame.loc[:9, "ward"] = "x"
    assert observed(frame, **settings) != observed(CsvSource(files, COLUMNS, how), **settings)
