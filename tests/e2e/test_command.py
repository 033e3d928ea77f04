"""The command line, as a user types it."""

import errno
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import sdv  # noqa: F401  (before a module of ours is named: it loads them at its end)
from sdv.utils import load_synthesizer

import sdv_privpgd
from sdv_privpgd.cli.program import main

SECRET = "CANARYTEXT"
METADATA = {
    "columns": {
        "age": {"sdtype": "numerical"},
        "ward": {"sdtype": "categorical"},
        "ill": {"sdtype": "boolean"},
    }
}
DOMAIN = {
    "age": {"range_min": 0, "range_max": 110, "decimal_places": 0},
    "ward": {"range_values": ["01", "02"]},
}


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


def run(*arguments):
    return main([str(argument) for argument in arguments])


def declared(csv, *more, out="out.csv"):
    """A quick fit of a table of which all is declared."""
    folder = csv.parent
    return run(
        "synthesize", csv, "--epsilon", 1, "--method", "mst", "--out", folder / out,
        "--metadata", folder / "metadata.json", "--domain", folder / "domain.json", *more,
    )  # fmt: skip


def new_files(csv):
    given = {"table.csv", "metadata.json", "domain.json"}
    return {path.name for path in csv.parent.iterdir()} - given


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_a_file_in_a_file_out(csv, suffix, capsys, tmp_path):
    source, out = tmp_path / f"in{suffix}", tmp_path / f"out{suffix}"
    real = pd.read_csv(csv, dtype={"ward": str})
    if suffix == ".parquet":
        real.to_parquet(source)
    else:
        real.to_csv(source, index=False)
    page, model = tmp_path / "report.html", tmp_path / "model.pkl"
    method = ["--method", "mst"] if suffix != ".csv" else []
    assert run(
        "synthesize", source, "--epsilon", 2, "--out", out, "--report", page, "--model", model,
        *method,
    ) == 0  # fmt: skip
    said = capsys.readouterr()
    assert "Guarantee   (" in said.out
    assert "were detected from the table and are taken as public; --metadata" in said.err
    assert "are not declared" in said.err
    assert "public_domain" not in said.err
    assert SECRET not in said.out + said.err
    rows = pd.read_parquet(out) if suffix == ".parquet" else pd.read_csv(out, dtype={"ward": str})
    assert len(rows) == len(real)
    assert list(rows.columns) == list(real.columns)
    assert {"01", "02"} <= set(rows["ward"])
    assert SECRET not in out.read_bytes().decode(errors="ignore")
    assert "<html" in page.read_text()
    assert run("describe", model) == 0
    described = capsys.readouterr().out
    assert "Synthesizer" in described
    assert "age: numerical" in described
    assert SECRET not in described
    assert not list(tmp_path.glob("*.part*"))


def test_declared_columns_and_silence(csv, tmp_path, capsys):
    assert declared(csv, "--adjacency", "add_remove", "--rows", 50, "--quiet") == 0
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "")
    rows = pd.read_csv(tmp_path / "out.csv", dtype={"ward": str})
    assert len(rows) == 50
    assert set(rows["ward"].dropna()) == {"01", "02"}


def test_the_number_of_rows_is_the_noisy_one_where_it_is_private(csv, tmp_path):
    model = tmp_path / "model.pkl"
    assert declared(csv, "--adjacency", "add_remove", "--model", model, "--quiet") == 0
    rows = pd.read_csv(tmp_path / "out.csv")
    assert len(rows) == load_synthesizer(model).estimated_num_rows
    assert abs(len(rows) - 2_000) < 500
    assert run("sample", model, "--out", tmp_path / "more.csv") == 0
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "more.csv"), rows)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (["--epsilon", "-1"], "--epsilon must be positive and finite, got -1.0"),
        (["--delta", "2"], "--delta must lie strictly between 0 and 1"),
        (["--rows-per-person", "0"], "--rows-per-person must be a whole number"),
        (["--max-epsilon", "0.5"], "--epsilon 1 would come to epsilon 1 at delta 1e-05, more than"),
        (["--max-epsilon", "-1"], "--max-epsilon must be positive"),
        (["--rows", "-3"], "--rows must be 0 or more, got -3"),
        (["--out", "nowhere/out.csv"], "There is no folder nowhere"),
        (["--out", "out.xlsx"], "Cannot write rows to out.xlsx: give a name that ends in .csv"),
        (["--out", "out"], "Cannot write rows to out"),
        (["--metadata", "none.json"], "Cannot read none.json: No such file"),
        (["--domain", "none.json"], "none.json"),
        (["--ledger", "{table}"], "is not a ledger"),
        (["--discovery-share", "0"], "need a public domain: 'age'"),
        (["--discovery-share", "2"], "--discovery-share must be a number"),
        (["--sep", ";"], "name what separates them with --sep"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(csv, tmp_path, changes, told, capsys):
    out = tmp_path / "out.csv"
    changes = [csv if change == "{table}" else change for change in changes]
    assert run("synthesize", csv, "--epsilon", 1, "--out", out, "--quiet", *changes) == 1
    *before, line = capsys.readouterr().err.splitlines()
    assert told in line
    assert all("were detected" in each for each in before)
    assert new_files(csv) == set()


def test_the_input_is_never_overwritten(csv, tmp_path, capsys):
    before = csv.read_bytes()
    for option in ("--out", "--model", "--report", "--ledger"):
        more = [option, csv] if option != "--out" else []
        out = "table.csv" if option == "--out" else "out.csv"
        assert declared(csv, "--force", *more, out=out) == 1
    assert run("evaluate", csv, csv, "--out", csv, "--force") == 1
    assert csv.read_bytes() == before
    assert new_files(csv) == set()
    said = capsys.readouterr().err
    assert said.count("which is read: it is never overwritten") == 3
    assert SECRET not in said


def test_an_existing_file_is_overwritten_by_force_alone(csv, tmp_path):
    (tmp_path / "out.csv").write_text("earlier")
    assert declared(csv) == 1
    assert (tmp_path / "out.csv").read_text() == "earlier"
    assert declared(csv, "--force", "--quiet") == 0
    assert len(pd.read_csv(tmp_path / "out.csv")) == 2_000


# What ends a command

_PLACES = {
    "reading": "sdv_privpgd.cli.reading.parsed_text",
    "before a row is asked about": "sdv_privpgd.fitting.fit.discover",
    "in the engine": "sdv_privpgd.synthesize.pgm.PrivatePGM.fit",
    "writing the model": "sdv_privpgd.plugin.base.PrivateSynthesizer.save",
    "writing rows": "sdv_privpgd.cli.synthesizing.write_as_asked",
    "writing the page": "sdv_privpgd.plugin.base.PrivateSynthesizer.report",
}
_FREE = list(_PLACES)[:2]


_INTERRUPT = KeyboardInterrupt()
_FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("place", "error", "status", "told"),
    [
        *((place, _INTERRUPT, 130, "interrupted") for place in _PLACES),
        *((place, _FULL, 1, "") for place in _PLACES if place.startswith("writing")),
        ("in the engine", KeyboardInterrupt(signal.SIGTERM), 143, "interrupted"),
        ("in the engine", ValueError(SECRET), 1, "failed with ValueError; its text is withheld"),
    ],
)
def test_whatever_ends_it_the_books_are_kept_and_no_half_file_is_left(
    csv, tmp_path, monkeypatch, capsys, place, error, status, told
):
    def fail(*args, **kwargs):
        for part in tmp_path.glob("*.part*"):
            if not part.stat().st_size:
                part.write_bytes(b"half")
        raise error

    monkeypatch.setattr(_PLACES[place], fail)
    ledger, model, page = (tmp_path / name for name in ("l.json", "model.pkl", "page.html"))
    assert declared(csv, "--ledger", ledger, "--model", model, "--report", page) == status
    said = capsys.readouterr().err
    assert SECRET not in said
    assert told in said.splitlines()[-1]
    if place.startswith("writing") and isinstance(error, OSError):
        assert "Cannot write --" in said
        assert ": No space left on device." in said
    kept = set()
    if place not in _FREE:
        assert "Epsilon 1 of 1 at delta 1e-05 was spent." in said
        assert json.loads(ledger.read_text())["spent_epsilon"]["replace_one"] == pytest.approx(1)
        kept = {"l.json"}
    elif isinstance(error, KeyboardInterrupt):
        assert "Nothing was spent." in said
    if place in ("writing rows", "writing the page"):
        kept |= {"model.pkl"}
        assert run("sample", model, "--rows", 5, "--out", tmp_path / "rows.csv") == 0
        kept |= {"rows.csv"}
    assert new_files(csv) == kept


def test_what_others_say_of_a_cell_is_withheld(csv, tmp_path, capsys):
    ragged = tmp_path / "ragged.csv"
    ragged.write_text(f'a,b\n1,2\n1,"{SECRET}')
    assert run("synthesize", ragged, "--epsilon", 1, "--out", tmp_path / "out.csv") == 1
    said = capsys.readouterr().err
    assert "Cannot read" in said
    assert SECRET not in said


# Books over several runs


def test_a_ledger_goes_on_from_run_to_run(csv, tmp_path, capsys):
    ledger = tmp_path / "ledger.json"
    assert declared(csv, "--ledger", ledger, "--quiet") == 0
    first = json.loads(ledger.read_text())
    assert first["spent_epsilon"]["replace_one"] == pytest.approx(1)
    assert declared(csv, "--ledger", ledger, out="b.csv") == 0
    assert "Together with all before: Epsilon 1.4" in capsys.readouterr().out
    second = json.loads(ledger.read_text())
    charges = [[each["mu_squared"] for each in book["charges"]] for book in (first, second)]
    assert charges[1][: len(charges[0])] == charges[0]
    assert 1.3 < second["spent_epsilon"]["replace_one"] < 2
    before = ledger.read_text()
    for more, told in [
        (["--max-epsilon", 1.6], "after 1.4"),
        (["--adjacency", "add_remove"], "one adjacency"),
        (["--rows-per-person", 2], "rows-per-person"),
    ]:
        assert declared(csv, "--ledger", ledger, *more, out="c.csv") == 1
        assert told in capsys.readouterr().err
    assert ledger.read_text() == before
    assert declared(csv, "--ledger", ledger, "--max-epsilon", 1.9, "--quiet", out="c.csv") == 0


def test_too_much_is_refused_before_anything_is_read(csv, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sdv_privpgd.cli.synthesizing.read_table", lambda *args: 1 / 0)
    assert declared(csv, "--max-epsilon", 0.9) == 1
    assert "more than --max-epsilon 0.9. Nothing was read." in capsys.readouterr().err


def test_a_ledger_of_a_run_that_was_killed_stops_the_next(csv, tmp_path, capsys):
    (tmp_path / "ledger.part.json").touch()
    assert declared(csv, "--ledger", tmp_path / "ledger.json", "--force") == 1
    assert "what it spent is not in the ledger" in capsys.readouterr().err


# Other commands


@pytest.fixture
def model(csv, tmp_path):
    assert declared(csv, "--model", tmp_path / "model.pkl", "--quiet") == 0
    return tmp_path / "model.pkl"


def test_rows_under_conditions(model, tmp_path, capsys):
    def sampled(*conditions):
        options = [part for each in conditions for part in ("--condition", each)]
        out = tmp_path / "more.csv"
        assert run("sample", model, "--rows", 20, "--out", out, "--force", *options) == 0
        return pd.read_csv(out, dtype={"ward": str})

    assert len(sampled()) == 20
    rows = sampled("ward=01", "age=30..40", "ill=true")
    assert set(rows["ward"]) == {"01"}
    assert rows["age"].between(30, 40).all()
    assert rows["ill"].all()
    assert sampled("age=35")["age"].tolist() == [35] * 20
    assert sampled("ward=")["ward"].isna().all()
    capsys.readouterr()
    for condition, told in [
        ("wage=3", "--condition names ['wage']"),
        ("age=old", "--condition age=old: the column holds numbers"),
    ]:
        out = tmp_path / "no.csv"
        assert run("sample", model, "--rows", 5, "--out", out, "--condition", condition) == 1
        assert told in capsys.readouterr().err
        assert not out.exists()
    assert run("sample", model, "--rows", 5, "--out", model, "--force") == 1
    with pytest.raises(SystemExit, match="2"):
        run("sample", model, "--out", "a.csv", "--condition", "age")


def test_the_comparison_says_that_it_is_not_private(csv, model, tmp_path, capsys):
    page = tmp_path / "page_not_private.html"
    assert run("evaluate", model, csv, "--out", page) == 0
    assert f"NOT PRIVATE: {page} compares with the real table" in capsys.readouterr().err
    assert "NOT PRIVATE" in page.read_text()
    assert run("evaluate", model, csv, "--out", page) == 1
    assert "--force" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["plan", "dry run"])
def test_a_plan_reads_nothing(csv, tmp_path, capsys, command):
    csv.unlink()
    first = ["plan"] if command == "plan" else ["synthesize", csv, "--dry-run"]
    asked = [*first, "--epsilon", 1, "--method", "mst", "--metadata", tmp_path / "metadata.json"]
    assert run(*asked, "--rows", 5_000) == 0
    said = capsys.readouterr().out
    assert "Plan for 5,000 rows: nothing was read" in said
    if command == "dry run":
        assert run(*asked) == 1
        assert "--dry-run needs --metadata and --rows" in capsys.readouterr().err


def test_a_plan_says_all_that_does_not_fit(csv, tmp_path, capsys):
    (tmp_path / "domain.json").write_text(json.dumps(DOMAIN | {"ill": {}, "ward": {}}))
    plan = ["plan", "--epsilon", 1, "--rows", 100, "--metadata", tmp_path / "metadata.json"]
    assert run(*plan, "--domain", tmp_path / "domain.json") == 0
    assert "range_values of 'ward' is not declared" in capsys.readouterr().err


# Types and domains without a look


@pytest.mark.parametrize("ending", ["json", "yaml"])
def test_a_domain_is_drafted_filled_in_and_used(csv, tmp_path, ending, capsys):
    pytest.importorskip("yaml" if ending == "yaml" else "json")
    source, draft = tmp_path / "table.parquet", tmp_path / f"draft.{ending}"
    metadata = tmp_path / "drafted.json"
    real = pd.read_csv(csv, dtype={"ward": str}).astype({"age": "Int64"}).set_index("ward")
    real.to_parquet(source)
    assert run("draft-domain", source, "--out", draft, "--metadata-out", metadata) == 0
    assert "Fill in what is null" in capsys.readouterr().err
    assert SECRET not in draft.read_text() + metadata.read_text()
    domain = sdv_privpgd.read_domain(draft)
    assert domain["age"] == {
        "range_min": None, "range_max": None, "decimal_places": 0, "range_is_nullable": None
    }  # fmt: skip
    domain["age"] |= DOMAIN["age"]
    domain["ward"] |= DOMAIN["ward"]
    sdv_privpgd.write_domain(domain, draft)
    assert run(
        "synthesize", source, "--epsilon", 1, "--method", "mst", "--out", tmp_path / "out.csv",
        "--metadata", metadata, "--domain", draft, "--quiet",
    ) == 0  # fmt: skip
    assert "not declared" not in capsys.readouterr().err
    assert set(pd.read_csv(tmp_path / "out.csv", dtype=str)["ward"].dropna()) == {"01", "02"}
    assert run("draft-domain", source, "--out", draft) == 1
    again = ["draft-domain", "--metadata", metadata, "--out", draft, "--force"]
    assert run(*again) == 0
    assert set(sdv_privpgd.read_domain(draft)) == {"age", "ward", "ill"}


def test_text_has_no_types_unless_the_user_says_them(csv, tmp_path, capsys):
    draft = ["draft-domain", csv, "--out", tmp_path / "draft.json"]
    assert run(*draft) == 1
    told = capsys.readouterr().err
    assert "Say the types of ['age', 'ward', 'ill'] with --dtype" in told
    types = ["--dtype", "age=Int64", "--dtype", "ward=str", "--dtype", "ill=boolean"]
    assert run(*draft, *types) == 0
    assert list(sdv_privpgd.read_domain(tmp_path / "draft.json")) == ["age", "ward", "ill"]
    assert run("draft-domain", "--out", tmp_path / "draft.json") == 1
    assert run("draft-domain", csv, "--out", tmp_path / "draft.txt") == 1


def test_types_may_come_from_dtypes_alone(csv, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sdv_privpgd.cli.synthesizing.detected_metadata", lambda table: 1 / 0)
    fit = ["synthesize", csv, "--epsilon", 1, "--method", "mst", "--types", "dtypes", "--quiet"]
    types = ["--dtype", "age=Int64", "--dtype", "ward=str", "--dtype", "ill=boolean"]
    assert run(*fit, "--out", tmp_path / "a.csv", *types) == 0
    assert SECRET not in capsys.readouterr().err
    pd.read_csv(csv).to_parquet(tmp_path / "table.parquet")
    fit[1] = tmp_path / "table.parquet"
    assert run(*fit, "--out", tmp_path / "b.csv") == 0
    assert run(*fit[:1], csv, *fit[2:], "--out", tmp_path / "c.csv") == 1
    assert "--dtype COLUMN=TYPE" in capsys.readouterr().err


def test_files_that_hold_no_model(csv, tmp_path, capsys):
    assert run("synthesize", tmp_path / "no.csv", "--epsilon", 1, "--out", tmp_path / "o.csv") == 1
    assert run("describe", tmp_path / "no.pkl") == 1
    assert capsys.readouterr().err.count("There is no file") == 2
    assert run("sample", csv, "--rows", 5, "--out", tmp_path / "o.csv") == 1
    assert "holds no synthesizer that can be read" in capsys.readouterr().err
    pd.Series([1]).to_pickle(tmp_path / "other.pkl")
    assert run("describe", tmp_path / "other.pkl") == 1
    assert "holds no synthesizer of this package" in capsys.readouterr().err


@pytest.mark.parametrize(
    "wrong",
    [
        ["synthesise"],
        ["plan", "--epsilon", "1"],
        ["describe", "m", "--sep", ";"],
        ["evaluate", "m", "t", "--out", "p", "--sep", ";;"],
        ["evaluate", "m", "t", "--out", "p", "--encoding", "latin-17"],
        ["evaluate", "m", "t", "--out", "p", "--names", "a,a"],
        ["evaluate", "m", "t", "--out", "p", "--dtype", "a"],
        ["evaluate", "m", "t", "--out", "p", "--dtype", "a=none"],
        ["evaluate", "m", "t", "--out", "p", "--dtype", "a=timedelta64[ns]"],
        ["evaluate", "m", "t", "--out", "p", "--header", "--no-header"],
    ],
)
def test_a_wrong_command_line_has_a_status_of_its_own(wrong):
    with pytest.raises(SystemExit, match="2"):
        run(*wrong)


def test_the_version_is_said(capsys):
    with pytest.raises(SystemExit, match="0"):
        run("--version")
    assert capsys.readouterr().out.startswith("sdv-privpgd ")


def test_types_that_sdv_cannot_detect_are_asked_for(tmp_path, capsys):
    pd.DataFrame({"time": pd.to_timedelta([1, 2], "h"), "note": [SECRET, ""]}).to_parquet(
        tmp_path / "table.parquet"
    )
    assert run(
        "synthesize", tmp_path / "table.parquet", "--epsilon", 1, "--out", tmp_path / "out.csv"
    ) == 1  # fmt: skip
    said = capsys.readouterr().err
    assert "cannot detect the columns' types (InvalidMetadataError). Give them with" in said
    assert SECRET not in said


@pytest.mark.parametrize("names", [("table.parquet", "out.csv"), ("table.csv", "out.parquet")])
def test_parquet_without_pyarrow_is_told_before_a_row_is_read(names, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("sdv_privpgd.cli.files.find_spec", lambda name: None)
    table, out = (tmp_path / name for name in names)
    table.touch()
    assert run("synthesize", table, "--epsilon", 1, "--out", out) == 1
    assert "needs pyarrow: pip install pyarrow." in capsys.readouterr().err


def test_the_program_is_installed_and_puts_things_in_order_when_it_is_ended(csv, tmp_path):
    program = [sys.executable, "-m", "sdv_privpgd.cli"]
    done = subprocess.run([*program, "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    fifo = tmp_path / "metadata.json"
    fifo.unlink()
    os.mkfifo(fifo)  # it waits here
    waiting = subprocess.Popen(
        [*program, "plan", "--epsilon", "1", "--rows", "9", "--metadata", str(fifo)],
        stderr=subprocess.PIPE,
        text=True,
    )
    with fifo.open("w"):  # returns when the program reads
        waiting.send_signal(signal.SIGINT)
        _, said = waiting.communicate(timeout=300)
    assert waiting.returncode == 130, said
    assert said.splitlines() == ["sdv-privpgd: interrupted"]
