"""Small things that people met when they tried the package for the first time."""

import json
import os
import signal
import subprocess
import sys

import pytest
import sdv  # noqa: F401  (before a module of ours is named: it loads them at its end)
from commands import run

from sdv_privpgd import combine
from sdv_privpgd.cli.start import main, raised


def test_the_package_runs_as_the_command_does_and_wrong_options_take_two_lines():
    ran = subprocess.run(
        [sys.executable, "-m", "sdv_privpgd", "plan", "--epsilonn", "1"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 2
    first, second = ran.stderr.splitlines()
    assert first.startswith("sdv-privpgd: ")
    assert "--epsilon" in first
    assert second == "See sdv-privpgd plan --help."


def test_an_interrupt_while_it_is_loaded_is_no_traceback(monkeypatch, capsys):
    class Interrupts:
        def find_spec(self, name, *_):
            if name == "sdv_privpgd.cli.arguments":
                os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.delitem(sys.modules, "sdv_privpgd.cli.arguments", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupts(), *sys.meta_path])
    assert main(["plan"]) == 130
    assert capsys.readouterr().err == "sdv-privpgd: Nothing was spent.\nsdv-privpgd: interrupted\n"


def test_a_closed_terminal_ends_nothing_that_nohup_began():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with raised():
            os.kill(os.getpid(), signal.SIGHUP)
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_one_row_an_empty_folder_and_a_missing_release_say_what_they_are(tmp_path, capsys):
    (tmp_path / "metadata.json").write_text(json.dumps({"columns": {"x": {"sdtype": "boolean"}}}))
    plan = ["plan", "--metadata", tmp_path / "metadata.json", "--epsilon", 1, "--rows", 1]
    assert run(*plan) == 0
    assert "Plan for 1 row:" in capsys.readouterr().out
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / ".hidden.csv").touch()
    assert run("plan", tmp_path / "empty", "--epsilon", 1) == 1
    assert "holds no file whose name begins with a letter or digit" in capsys.readouterr().err
    with pytest.raises(ValueError, match=r"north\.zip cannot be read: No such file"):
        combine([tmp_path / "north.zip"])
