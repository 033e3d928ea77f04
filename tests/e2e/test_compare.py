"""The comparison's command line, at toy size, on a table of one's own."""

import json
import math
import shutil
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
from made_up import made_up

from sdv_privpgd.benchmark.__main__ import main

NUM_ROWS = 250


def benchmark(*arguments) -> str:
    """What the benchmark prints. Each run of a comparison has a process of its own."""
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()) as said:
        patch.setattr("sys.argv", ["benchmark", *arguments])
        main()
    return said.getvalue()


@pytest.fixture(scope="module")
def own(tmp_path_factory) -> list[str]:
    """The arguments that name a table of two dependent columns and a label."""
    folder = tmp_path_factory.mktemp("own")
    frame = made_up(NUM_ROWS, age=(18, 90), ward="AB")
    frame["ill"] = frame["age"] > 60
    columns = {
        "age": {"sdtype": "numerical", "range_min": 18, "range_max": 90},
        "ward": {"sdtype": "categorical"},
        "ill": {"sdtype": "boolean", "range_is_nullable": False},
    }
    domain = {
        "age": {"decimal_places": 0, "range_is_nullable": False},
        "ward": {"range_values": ["A", "B"], "range_is_nullable": False},
    }
    frame.to_parquet(folder / "people.parquet")
    (folder / "metadata.json").write_text(json.dumps({"columns": columns}))
    (folder / "domain.json").write_text(json.dumps(domain))
    return [
        *("--table", str(folder / "people.parquet"), "--label", "ill", "--cells", "8"),
        *("--metadata", str(folder / "metadata.json"), "--domain", str(folder / "domain.json")),
    ]


@pytest.fixture(scope="module")
def results(own, tmp_path_factory):
    path = tmp_path_factory.mktemp("results") / "results.parquet"
    methods = ["--methods", "PrivPGD", "PrivPGD-published-noise", "Real"]
    small = ["--num-particles", "100", "--published-epochs", "1"]
    benchmark("compare", *own, *methods, *small, "--out", str(path))
    return path


@pytest.mark.long
def test_every_run_is_in_the_file_with_what_it_spent_and_cost(results):
    rows = pd.read_parquet(results).set_index(["method", "metric"])
    assert rows["error"].isna().all()
    assert set(rows["table"]) == {"people"}
    assert set(rows["rows"]) == {NUM_ROWS * 4 // 5}
    assert set(rows["columns"]) == {3}
    assert set(rows["adjacency"]) == {"replace_one"}
    ours, noisier = rows.loc["PrivPGD"], rows.loc["PrivPGD-published-noise"]
    assert 0.999 < ours["spent_epsilon"].iloc[0] <= 1.0
    assert 0.74 < noisier["spent_epsilon"].iloc[0] < 0.75  # see the unit test of published_epsilon
    assert (ours["fit_seconds"] > 0).all()
    assert json.loads(noisier["settings"].iloc[0])["published_epochs"] == 1
    real = rows.loc["Real"]
    assert real.loc["decoded_l1", "value"] == 0 < ours.loc["decoded_l1", "value"]
    assert set(real["epsilon"]) == {math.inf}
    assert real.loc["l1", "value"] == 0
    assert real.loc["downstream", "value"] <= 0.1  # the label is a function of the age
    assert ours.loc["l1", "value"] > 0
    # Beside rows that no fit has seen, the fitted real rows are a fresh sample and not perfect.
    # Fifty rows tell a fit's by no more than half: twelve fits had .38 on average, deviation .06.
    assert 0 < real.loc["decoded_tv3", "value"] < 2 * ours.loc["decoded_tv3", "value"]
    assert real.loc["decoded_auroc", "value"] > 0.95
    assert 0 < ours.loc["decoded_linear_accuracy", "value"] <= 1
    assert 0 <= real.loc["decoded_pmse", "value"] < 0.5
    assert real.loc["decoded_tail", "value"] < 0.5


@pytest.mark.long
def test_what_the_file_holds_is_skipped_and_a_failure_is_a_row(own, results, tmp_path):
    results = Path(shutil.copy(results, tmp_path))
    before = pd.read_parquet(results)
    methods = ["--methods", "PrivPGD", "Real", "--num-particles", "100"]
    said = benchmark("compare", *own, *methods, "--out", str(results))
    assert "2 runs, 2 of them held" in said
    pd.testing.assert_frame_equal(pd.read_parquet(results), before)

    failing = ["--methods", "PrivPGD", "--delta", "2"]
    said = benchmark("compare", *own, *failing, "--out", str(results))
    assert "1 runs failed" in said
    added = pd.read_parquet(results).iloc[len(before) :]
    assert added[["method", "error", "delta"]].isna().to_numpy().tolist() == [[False, False, True]]
    assert added["error"].tolist() == ["ValueError"]


def test_a_table_of_ones_own_that_no_run_can_take_is_refused_before_the_first(own, tmp_path):
    wrong = [each if each != "ill" else "sick" for each in own]
    out = "--out", str(tmp_path / "none")
    for given, said in (
        (["compare", *wrong, "--methods", "MST"], "--label 'sick' is not a modelled column"),
        (["split", *wrong], "--label 'sick' is not a modelled column"),
        (["compare", *own[:2], "--methods", "MST"], "or name a file with its --metadata"),
    ):
        with pytest.raises(SystemExit, match=said):
            benchmark(*given, *out)
    assert not (tmp_path / "none").exists()


@pytest.mark.long
def test_another_programs_rows_are_scored_and_all_is_shown(own, results, tmp_path):
    results = Path(shutil.copy(results, tmp_path))
    benchmark("split", *own, "--out", str(tmp_path))
    rows = str(tmp_path / "train.csv")
    named = ["--method", "a copy", "--epsilon", "1", "--out", str(results)]
    benchmark("score", *own, "--rows", rows, *named)
    held = pd.read_parquet(results)
    copied = held[held["method"] == "a copy"].set_index("metric")["value"]
    assert copied["l1"] == 0  # a CSV file keeps every code
    assert copied["sw1"] == 0
    assert copied["decoded_auroc"] > 0.95
    assert copied["decoded_l1"] == copied["decoded_w1"] == copied["outside"] == 0

    shown = benchmark("show", str(results), "--out", str(tmp_path / "shown"))
    assert "people, epsilon 1" in shown
    assert "people, epsilon inf" in shown
    assert "a copy" in shown
    assert "decoded_l1" in shown
    assert (tmp_path / "shown" / "figure1_epsilon_1.png").stat().st_size > 0
    assert "not private" in (tmp_path / "shown" / "results.html").read_text()


@pytest.mark.long
def test_arms_are_compared_and_those_that_do_not_go_together_have_the_reason(own, tmp_path):
    results, shown = tmp_path / "arms.parquet", tmp_path / "shown"
    parts = ["--preprocess", "equal_mass", "--select", "mst", "aim", "--synthesize", "pgm"]
    limits = ["--max-megabytes", "4000", "--no-code-models"]
    said = benchmark("compare", *own, *parts, *limits, "--out", str(results))
    assert "2 runs, 0 of them held" in said
    assert "failed" not in said
    rows = pd.read_parquet(results).set_index("method")
    done, refused = rows.loc["equal_mass / mst / pgm"], rows.loc["equal_mass / aim / pgm"]
    assert done["error"].isna().all()
    assert 0.999 < done["spent_epsilon"].iloc[0] <= 1.0
    assert json.loads(done["settings"].iloc[0]) == {
        "all_metrics": False, "cells": 8, "delta": 1e-5, "label": "ill", "models_on_codes": False,
        "share": 0.1,
    }  # fmt: skip
    assert "downstream" not in set(done["metric"])
    assert "decoded_auroc" in set(done["metric"])
    assert refused["error"] == "MatchError"
    assert "Choose a smaller max_megabytes" in refused["reason"]
    said = benchmark("show", str(results), "--exchange", "--out", str(shown))
    assert "exchange.html" in said
    assert (shown / "exchange_people_epsilon_1.png").stat().st_size > 0
