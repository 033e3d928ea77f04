"""Files are written whole or not at all, and help says what each option is."""

import argparse
import errno
import os
import shlex

import pandas as pd
import pytest

from sdv_privpgd.cli.arguments import parser
from sdv_privpgd.cli.messages import CommandError
from sdv_privpgd.cli.output_files import Outputs, write_rows


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("the only copy")
    return path


def outputs(table, *, force=False):
    return Outputs(inputs=[table, None], force=force)


def put(text):
    return lambda part: part.write_text(text)


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("spelling", ["same", "relative", "dots", "symlink", "hard link", "folder"])
def test_an_input_is_never_overwritten(table, spelling, force, monkeypatch):
    folder = table.parent
    monkeypatch.chdir(folder)
    (folder / "inside").mkdir()
    (folder / "symlink.csv").symlink_to(table)
    os.link(table, folder / "hard.csv")
    (folder / "elsewhere").symlink_to(folder)
    path = {
        "same": table,
        "relative": table.relative_to(folder),
        "dots": folder / "inside" / ".." / "table.csv",
        "symlink": folder / "symlink.csv",
        "hard link": folder / "hard.csv",
        "folder": folder / "elsewhere" / "table.csv",
    }[spelling]
    with outputs(table, force=force) as those, pytest.raises(CommandError, match="is read"):
        those.open("--out", path)
    assert table.read_text() == "the only copy"
    assert not list(folder.glob("*.part*"))


def test_files_that_exist_are_overwritten_by_force_alone_and_links_stay(table, tmp_path):
    old = tmp_path / "old.csv"
    old.write_text("old")
    with outputs(table) as those, pytest.raises(CommandError, match="--force"):
        those.open("--out", old)
    with outputs(table, force=True) as those:
        out = those.open("--out", old)
        those.write(out, put("new"))
        assert old.read_text() == "old"
    assert old.read_text() == "new"
    (tmp_path / "old.csv").touch()
    (tmp_path / "link.csv").symlink_to("old.csv")
    with outputs(table, force=True) as those:
        those.write(those.open("--out", tmp_path / "link.csv"), put("new"))
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "old.csv").read_text() == "new"


def test_two_outputs_are_two_files_also_of_two_runs(table, tmp_path):
    (tmp_path / "here").symlink_to(tmp_path)
    with outputs(table, force=True) as those:
        those.open("--out", tmp_path / "a")
        with pytest.raises(CommandError, match="--report and --out are the same file"):
            those.open("--report", tmp_path / "here" / "a")
    with outputs(table) as first:
        first.write(first.open("--out", tmp_path / "out"), put("first"))
        with outputs(table, force=True) as second, pytest.raises(CommandError, match="another run"):
            second.open("--out", tmp_path / "out")
    assert (tmp_path / "out").read_text() == "first"


@pytest.mark.parametrize("name", ["-", "folder", "pipe", "none/a.csv", "x" * 254])
def test_places_that_cannot_be_written_are_told(table, tmp_path, name):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    path = tmp_path / name if name != "-" else type(tmp_path)("-")
    with outputs(table, force=True) as those, pytest.raises(CommandError) as caught:
        those.open("--out", path)
    assert any(
        told in str(caught.value)
        for told in ("must name a file", "no regular file", "no folder", "File name too long")
    )


def test_a_folder_without_permission_is_told_with_its_reason(table, tmp_path, monkeypatch):
    def refuse(*args):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("sdv_privpgd.cli.output_files.Path.open", refuse)
    with outputs(table) as those, pytest.raises(CommandError) as caught:
        those.open("--out", tmp_path / "a.csv")
    assert str(caught.value) == f"Cannot write --out {tmp_path / 'a.csv'}: Permission denied."


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_after_an_error_only_what_was_paid_for_and_is_whole_is_kept(table, tmp_path, error, capsys):
    before = set(tmp_path.iterdir())
    with pytest.raises(error), outputs(table) as those:  # noqa: PT012 - all of it is the command
        model = those.open("--model", tmp_path / "model", is_paid=True)
        those.open("--ledger", tmp_path / "ledger", is_paid=True)
        out = those.open("--out", tmp_path / "out")
        those.write(model, put("model"))
        those.write(out, put("rows"))
        raise error
    assert set(tmp_path.iterdir()) - before == {tmp_path / "model"}
    assert "model is complete and was kept" in capsys.readouterr().err


def test_a_full_disk_is_told_and_leaves_nothing(table, tmp_path):
    def fail(part):
        part.write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(CommandError) as caught, outputs(table) as those:
        those.write(those.open("--out", tmp_path / "out"), fail)
    assert str(caught.value) == f"Cannot write --out {tmp_path / 'out'}: No space left on device."
    assert list(tmp_path.iterdir()) == [table]


def test_what_appears_meanwhile_is_kept_and_so_are_the_rows(table, tmp_path, capsys):
    with outputs(table) as those:
        those.write(those.open("--out", tmp_path / "out"), put("ours"))
        (tmp_path / "out").write_text("theirs")
    assert (tmp_path / "out").read_text() == "theirs"
    assert (tmp_path / "out.part").read_text() == "ours"
    assert "appeared meanwhile" in capsys.readouterr().err


@pytest.mark.parametrize("place", ["writing", "placing"])
def test_one_file_that_cannot_be_written_does_not_take_the_others(
    table, tmp_path, monkeypatch, capsys, place
):
    def full(part):
        raise OSError(errno.ENOSPC, "No space left on device")

    def refuse(part, target):
        if target.name == "b":
            raise OSError(errno.ENOSPC, "No space left on device")
        real(part, target)

    real, told = os.replace, []
    if place == "placing":
        monkeypatch.setattr("sdv_privpgd.cli.output_files.os.replace", refuse)
    those = outputs(table)
    those.after_failure = told.append
    names = {"--out": "a", "--report": "b", "--ledger": "c"}
    for option, name in names.items():
        output = those.open(option, tmp_path / name, is_paid=True)
        fails = place == "writing" and name == "b"
        those.attempt(output, full if fails else put(name))
    with pytest.raises(CommandError, match="b: No space left on device"):
        those.__exit__(None)
    assert {path.name for path in tmp_path.iterdir()} == {"table.csv", "a", "c"}
    assert told == [None]
    assert "a is complete and was kept" in capsys.readouterr().err


def test_new_files_have_the_permissions_of_new_files(table, tmp_path):
    (tmp_path / "usual").touch()
    with outputs(table) as those:
        those.write(those.open("--out", tmp_path / "out"), put("rows"))
    assert (tmp_path / "out").stat().st_mode == (tmp_path / "usual").stat().st_mode


# Rows


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.csv.gz", "a.txt.zip", "a.csv.xz"])
def test_rows_are_read_again_as_they_were(tmp_path, name):
    rows = pd.DataFrame({"age": [1, 2], "zip": ["01234", "x;y,z"]})
    write_rows(rows, tmp_path / name, tmp_path / name)
    sep = "\t" if name == "a.tsv" else ","
    read = pd.read_csv(tmp_path / name, sep=sep, dtype={"zip": str})
    pd.testing.assert_frame_equal(read, rows)


def test_rows_are_written_in_the_dialect_and_types_that_are_asked_for(tmp_path):
    rows = pd.DataFrame({"preis": [1.5], "ort": ["Münster 東"]})
    path = tmp_path / "a.csv"
    write_rows(rows, path, path, {"sep": ";", "decimal": ",", "encoding": "cp1252"})
    assert path.read_text("cp1252").split() == ["preis;ort", "1,5;Münster", r"\u6771"]
    rows = pd.DataFrame({"code": pd.Series([1, "other", None], dtype=object), "n": [1, 2, 3]})
    path = tmp_path / "a.parquet"
    write_rows(rows, path, path)
    read = pd.read_parquet(path)
    assert read["code"].tolist() == ["1", "other", None]
    assert read["n"].tolist() == [1, 2, 3]
    rows = pd.DataFrame(
        {"age": [3.0, None, -0.0], "dose": [3.0, None, 2.5], "far": [1e300, 2.0, None]}
    )
    path = tmp_path / "a.csv"
    write_rows(rows, path, path)
    assert path.read_text().split() == ["age,dose,far", "3,3.0,1e+300", ",,2.0", "0,2.5,"]


WHOLE = parser()
(EACH,) = (each for each in WHOLE._actions if isinstance(each, argparse._SubParsersAction))
COMMANDS = EACH.choices
FITS = {"synthesize", "plan", "measure", "audit"}


@pytest.mark.parametrize("name", COMMANDS)
def test_an_example_of_each_command_parses_and_each_option_says_what_it_is(name):
    shown = COMMANDS[name].format_help()
    example = COMMANDS[name].epilog.removeprefix("example:\n")
    assert shown.rstrip().endswith(example)
    program, *words = shlex.split(example)
    assert program == WHOLE.prog
    assert words[0] == name
    assert callable(WHOLE.parse_args(words).run)
    shown = " ".join(COMMANDS[name].format_help().split())
    for action in COMMANDS[name]._actions:
        if action.option_strings:
            assert action.help, action.option_strings
        if isinstance(action.default, int | float) and not isinstance(action.default, bool):
            assert f"(default: {action.default})" in shown
    assert "==SUPPRESS==" not in shown
    assert "(default: False)" not in shown
    assert "(default: [])" not in shown


@pytest.mark.parametrize("name", sorted(FITS))
def test_options_of_a_fit_are_in_groups(name):
    titles = [group.title for group in COMMANDS[name]._action_groups]
    assert len(set(titles)) == len(titles)
    assert {"what may be spent", "whose the rows are"} <= set(titles)
    assert {"what is modelled, and how", "what is public of the table"} <= set(titles)
    options = next(group for group in COMMANDS[name]._action_groups if group.title == "options")
    assert len(options._group_actions) <= 9
