"""A private table in a file, with its public facts beside it, and models of it."""

import json
import shutil

import numpy as np
import pytest
from commands import DOMAIN, METADATA, SECRET, declared
from made_up import made_up


def private_table(folder):
    table = made_up(2_000, age=(20, 60), ill=0.2)
    table.insert(1, "ward", np.random.default_rng(1).choice(["01", "02"], 2_000))
    table.loc[0, "ward"] = SECRET
    table.to_csv(folder / "table.csv", index=False)
    (folder / "metadata.json").write_text(json.dumps(METADATA))
    (folder / "domain.json").write_text(json.dumps(DOMAIN))
    return folder / "table.csv"


@pytest.fixture
def csv(tmp_path):
    return private_table(tmp_path)


@pytest.fixture(scope="session")
def _kept(tmp_path_factory):
    csv = private_table(tmp_path_factory.mktemp("kept"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(csv.parent)
        assert declared(csv, "--model", "alone.zip", "--quiet", out="alone.csv") == 0
        assert declared(csv, "--model", "model.zip", "--ledger", "ledger.json", "--quiet") == 0
    return csv.parent


@pytest.fixture
def kept(_kept, csv, tmp_path):
    """Beside the table a model without a ledger, ``alone.zip``, and one with ``ledger.json``."""
    shutil.copytree(_kept, tmp_path, dirs_exist_ok=True)
    return tmp_path
