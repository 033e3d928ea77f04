"""``sdv-privpgd audit``: settings and a kept synthesizer, audited at the command line."""

import json
import re

import pytest
from commands import SECRET, documents, refused, run

from sdv_privpgd import FittedTable
from sdv_privpgd.privacy import curator
from sdv_privpgd.privacy.noise import rounded_gaussian

pytestmark = pytest.mark.long


def audited(folder, *more):
    return run(
        "audit", *documents(folder),
        "--epsilon", 6, "--method", "mst", "--runs", 200, "--out", folder / "audit.json",
        "--report", folder / "audit.html", *more,
    )  # fmt: skip


def test_settings_are_audited_without_a_table(csv, capsys):
    folder = csv.parent
    csv.unlink()
    assert (
        audited(folder, "--adjacency", "add_remove", "--delta", 1e-5, "--rows-per-person", 2) == 0
    )
    facts = json.loads((folder / "audit.json").read_text())
    assert facts["passed"]
    assert facts["failed"] == []
    assert facts["rows_of_a_person"] == "2"
    assert {check["name"] for check in facts["checks"]} >= {"changes", "file", "attack"}
    page = (folder / "audit.html").read_text()
    assert "What the audit cannot see" in page
    told = capsys.readouterr()
    assert "Passed: none of" in told.out
    assert "no row is read" in told.err


def test_a_fault_ends_with_status_1_and_all_files(csv, plant, capsys):
    plant(
        curator,
        "rounded_gaussian",
        lambda stddev, size, words: rounded_gaussian(stddev / 2, size, words),
    )
    assert audited(csv.parent) == 1
    facts = json.loads((csv.parent / "audit.json").read_text())
    assert "noise sd" in facts["failed"]
    assert (csv.parent / "audit.html").exists()
    assert "The audit found faults:" in capsys.readouterr().err


class TestModel:
    @pytest.fixture
    def model(self, kept):
        return kept / "alone.zip"

    def test_a_kept_model_holds_noisy_answers_and_a_true_value_is_found(self, model, plant, capsys):
        before = model.read_bytes()
        assert run("audit", "--model", model, "--runs", 50) == 0
        assert model.read_bytes() == before
        assert re.search("kept contents +passed", capsys.readouterr().out)
        fitted = FittedTable.load(model)
        vars(fitted)["note"] = SECRET
        fitted.save(model)
        assert run("audit", "--model", model, "--runs", 50) == 1
        told = capsys.readouterr()
        assert "kept contents" in told.err
        assert SECRET not in told.err + told.out

    def test_options_that_are_not_those_of_the_file_are_refused(self, model, csv, capsys):
        domain = csv.parent / "other.json"
        domain.write_text('{"age": {"range_min": 0, "range_max": 99}}')
        for more, told in [
            (("--domain", domain), "--domain"),
            (("--rows-per-person", 2), "--rows-per-person"),
            (("--epsilon", 3), "--epsilon"),
            (("--method", "aim"), "--method is not needed"),
        ]:
            assert told in refused(run("audit", "--model", model, *more), capsys)


def test_what_is_missing_is_told(csv, capsys):
    for more, told in [
        ((), "An audit needs --metadata and --epsilon, or --model."),
        (("--metadata", csv.parent / "metadata.json"), "--epsilon is needed"),
        (("--metadata", csv, "--epsilon", 1, "--out", "audit.csv"), "must end in .json"),
        (
            ("--metadata", csv.parent / "metadata.json", "--epsilon", 1, "--runs", 0),
            "--runs must be an integer of at least 10",
        ),
    ]:
        assert told in refused(run("audit", *more), capsys)
