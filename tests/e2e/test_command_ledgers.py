"""A kept model knows which ledger has what it has spent, and no later command forgets it."""

import json
import os
import shutil
import signal
import subprocess
import sys

import pandas as pd
import pytest
from commands import DOMAIN, declared, documents, fails_at, interrupt, new_files, refused, run

from sdv_privpgd.cli import checkpoint, journal, output_files
from sdv_privpgd.privacy.ledger_file import read_ledger

_FIT = "sdv_privpgd.synthesize.pgm.PrivatePGM.fit"


def full_at_the_end(monkeypatch):
    """Makes the disk full for what was spent, and not for what is planned."""
    settle = journal.Journal.settle

    def full(self):
        fails_at(monkeypatch, "ledger.part.next.json")
        settle(self)

    monkeypatch.setattr(journal.Journal, "settle", full)


def entered(path):
    return json.loads(path.read_text())["spent_epsilon"]["replace_one"]


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path / "ledger.json"


@pytest.fixture
def stopped(csv, tmp_path, ledger, capsys):
    """The file of a fit that stopped at a misspelled codebook, with a ledger."""
    domain = {**DOMAIN, "ward": {"range_values": ["a", "b"], "other_value": "other"}}
    (tmp_path / "domain.json").write_text(json.dumps(domain))
    assert declared(csv, "--ledger", "ledger.json", "--quiet") == 1
    return tmp_path / "out.rescued.zip"


@pytest.fixture
def fitted(kept, ledger):
    return kept / "model.zip"


class TestTheRest:
    def test_is_entered_though_nobody_names_the_ledger(self, stopped, capsys, csv, ledger):
        said = capsys.readouterr().err
        assert f"resume {stopped} --table TABLE --out FILE --ledger ledger.json goes on" in said
        before = entered(ledger)
        assert before < 0.9
        out = ("--out", csv.parent / "out.csv", "--quiet")
        assert run("resume", stopped, "--table", csv, *out) == 0
        assert "What is spent is added to ledger.json, the ledger of" in capsys.readouterr().err
        assert entered(ledger) == pytest.approx(1, abs=0.01)
        shared = checkpoint.fitted(stopped)
        assert shared.notes["ledger_file"] == ("ledger.json", len(shared.ledger.charges))

    def test_is_not_spent_where_the_ledger_has_gone(self, stopped, csv, ledger, capsys):
        ledger.rename(csv.parent / "elsewhere.json")
        out = ("--out", csv.parent / "out.csv", "--quiet")
        before = stopped.read_bytes()
        assert run("resume", stopped, "--table", csv, *out) == 1
        assert "the ledger ledger.json, which is not there: say with --ledger" in (
            capsys.readouterr().err
        )
        assert stopped.read_bytes() == before

    def test_a_ledger_beside_the_model_is_found(self, stopped, csv, ledger, tmp_path, monkeypatch):
        (tmp_path / "here").mkdir()
        monkeypatch.chdir(tmp_path / "here")
        assert run("resume", stopped, "--table", csv, "--out", "out.csv", "--quiet") == 0
        assert entered(ledger) == pytest.approx(1, abs=0.01)

    def test_a_ledger_that_was_not_written_is_caught_up_with(
        self, csv, ledger, tmp_path, monkeypatch, capsys
    ):
        """It is there, with earlier charges, and for those of the model with what it planned."""
        model = tmp_path / "model.zip"
        assert declared(csv, "--ledger", ledger, "--quiet") == 0
        (tmp_path / "out.csv").unlink()
        with monkeypatch.context() as patched:
            full_at_the_end(patched)
            assert declared(csv, "--model", model, "--ledger", ledger, "--quiet") == 1
        assert "ledger.json does not say so, and no rows were written" in capsys.readouterr().err
        assert entered(ledger) == pytest.approx(1.465, abs=0.001)
        asked = ("--epsilon", 1, "--out", tmp_path / "finer.csv", "--quiet")
        assert run("add-budget", model, csv, *asked, "--max-epsilon", 2.1) == 1
        assert "lacks epsilon 1 that" in capsys.readouterr().err
        assert run("add-budget", model, csv, *asked) == 0
        assert 2.1 < entered(ledger) < 2.5  # 1 by itself, and 2 of the model


class TestRefining:
    def test_goes_on_with_the_ledger_of_the_model(self, fitted, csv, ledger, tmp_path, capsys):
        out = ("--epsilon", 1, "--out", tmp_path / "finer.csv", "--quiet")
        assert run("add-budget", fitted, csv, *out, "--max-epsilon", 1.9) == 1
        assert run("add-budget", fitted, csv, *out, "--max-epsilon", 2.01) == 0
        assert "What is spent is added to ledger.json" in capsys.readouterr().err
        assert entered(ledger) == pytest.approx(2, abs=0.01)
        moved = tmp_path / "elsewhere" / "of_2027.json"
        moved.parent.mkdir()
        shutil.copy(ledger, moved)
        assert run("add-budget", fitted, csv, *out, "--ledger", moved, "--force") == 0
        assert entered(moved) == pytest.approx(3, abs=0.01)
        assert entered(ledger) == pytest.approx(2, abs=0.01)
        assert "lacks" not in capsys.readouterr().err

    def test_counts_in_what_no_ledger_was_told(self, fitted, csv, ledger, tmp_path, capsys):
        """Its charges are those of the other model, and yet they are others."""
        asked = ("--epsilon", 1, "--out", tmp_path / "finer.csv", "--ledger", ledger, "--quiet")
        alone = tmp_path / "alone.zip"
        said = refused(run("add-budget", alone, csv, *asked, "--max-epsilon", 2.1), capsys)
        assert f"--ledger {ledger} lacks epsilon 1 that {alone} had spent before" in said
        assert "more than --max-epsilon 2.1" in said
        assert entered(ledger) == pytest.approx(1)
        assert run("add-budget", alone, csv, *asked) == 0
        assert 2.1 < entered(ledger) < 2.5  # of two people's releases, 1 and 2
        capsys.readouterr()
        assert run("add-budget", alone, csv, *asked, "--force") == 0
        assert "lacks" not in capsys.readouterr().err

    def test_without_any_ledger_nothing_is_said(self, fitted, csv, tmp_path, ledger, capsys):
        asked = ("--epsilon", 1, "--out", tmp_path / "finer.csv", "--quiet")
        alone = tmp_path / "alone.zip"
        assert run("add-budget", alone, csv, *asked, "--max-epsilon", 1.9) == 1
        assert run("add-budget", alone, csv, *asked) == 0
        assert "is added to" not in capsys.readouterr().err
        assert entered(ledger) == pytest.approx(1)
        assert "ledger_file" not in checkpoint.fitted(alone).notes


class TestWhatThisRunHasSpent:
    @pytest.mark.parametrize("wrong", ["columns", "rows"])
    def test_is_nothing_on_an_unsuitable_table(self, fitted, csv, tmp_path, capsys, wrong):
        table, other = pd.read_csv(csv, dtype=str), tmp_path / "other.csv"
        (table.rename(columns={"ward": "x"}) if wrong == "columns" else table[:9]).to_csv(
            other, index=False
        )
        asked = ("--epsilon", 1, "--out", tmp_path / "no.csv", "--quiet")
        said = refused(run("add-budget", fitted, other, *asked), capsys)
        assert "Nothing was spent by this run; the model stands at epsilon 1 of 1" in said
        assert "was spent." not in said

    def test_is_said_beside_what_the_model_has(self, fitted, csv, tmp_path, monkeypatch, capsys):
        monkeypatch.setattr(_FIT, interrupt)
        asked = ("--epsilon", 1, "--out", tmp_path / "no.csv", "--quiet")
        assert run("add-budget", fitted, csv, *asked) == 130
        said = capsys.readouterr().err
        assert "This run spent epsilon 1." in said
        assert "; the model stands at epsilon 2 of 2 at delta 1e-05." in said
        assert f"resume {fitted} --out FILE --ledger ledger.json" in said
        assert (
            run("sample", fitted, "--rows", 5, "--out", tmp_path / "more.csv") == 0
        )  # of the last


class TestTwoRuns:
    """Of one ledger, no two count on the same state, whatever one does while another begins."""

    @pytest.fixture
    def first(self, csv, monkeypatch):
        """A whole other run takes place where a run is about to lock a file."""

        def begin(option, run_other):
            locked = output_files.Outputs.open

            def opened(outputs, name, *args, **kwargs):
                if name == option:
                    monkeypatch.setattr(output_files.Outputs, "open", locked)
                    assert run_other() == 0
                return locked(outputs, name, *args, **kwargs)

            monkeypatch.setattr(output_files.Outputs, "open", opened)

        return begin

    @pytest.mark.parametrize("before", [False, True])
    @pytest.mark.parametrize("command", ["synthesize", "measure", "add-budget", "resume"])
    def test_one_that_began_later_and_ended_first_is_counted(
        self, command, before, csv, ledger, tmp_path, monkeypatch, first, capsys
    ):
        model = tmp_path / "model.zip"
        out = tmp_path / ("rows.zip" if command == "measure" else "r.csv")
        if command == "add-budget":
            assert declared(csv, "--epsilon", 0.1, "--model", model, "--quiet") == 0
            asked = ("add-budget", model, csv, "--epsilon", 1)
        elif command == "resume":
            with monkeypatch.context() as patched:
                patched.setattr("sdv_privpgd.methods.pipeline.ask", interrupt)
                assert declared(csv, "--epsilon", 1, "--model", model, "--quiet") == 130
            asked = ("resume", model, "--table", csv)
        else:
            asked = (command, csv, "--epsilon", 1, "--metadata", tmp_path / "metadata.json")
            asked = (*asked, "--domain", tmp_path / "domain.json")
            asked = (*asked, "--site", "North") if command == "measure" else asked
        if before:
            assert declared(csv, "--epsilon", 0.1, "--ledger", ledger, "--quiet", out="0.csv") == 0
        first("--ledger", lambda: declared(csv, "--ledger", ledger, "--quiet", out="other.csv"))
        limits = ("--ledger", ledger, "--max-epsilon", 1.2, "--out", out, "--quiet")
        assert run(*asked, *limits) == 1
        assert "more than --max-epsilon 1.2. Nothing was read." in capsys.readouterr().err
        assert not out.exists()
        assert entered(ledger) == pytest.approx(1 + 0.02 * before, abs=0.03)

    def test_a_model_without_a_ledger_is_its_own_book(self, fitted, csv, tmp_path, first):
        """It is read when nobody else can spend more on it."""
        alone = tmp_path / "alone.zip"
        again = ("add-budget", alone, csv, "--epsilon", 1, "--quiet", "--out")
        first("the model", lambda: run(*again, tmp_path / "other.csv"))
        assert run(*again, tmp_path / "finer.csv") == 0
        assert checkpoint.fitted(alone).ledger.spent() == pytest.approx(3, abs=0.01)

    @pytest.mark.parametrize("spelling", ["same", "relative", "symlink", "dangling"])
    def test_a_file_that_is_locked_is_so_under_any_name(
        self, csv, ledger, tmp_path, spelling, monkeypatch, capsys
    ):
        name = {"same": ledger, "relative": "./x/../ledger.json"}.get(spelling, "link.json")
        (tmp_path / "x").mkdir()
        if spelling != "dangling":
            assert declared(csv, "--epsilon", 0.1, "--ledger", ledger, "--quiet", out="0.csv") == 0
        if name == "link.json":
            (tmp_path / name).symlink_to("ledger.json")
        (tmp_path / "ledger.part.json").touch()
        assert declared(csv, "--ledger", name, "--quiet") == 1
        assert "ledger.part.json exists: another run" in capsys.readouterr().err
        (tmp_path / "ledger.part.json").unlink()
        assert declared(csv, "--ledger", name, "--quiet") == 0
        assert entered(ledger) == pytest.approx(1, abs=0.03)
        assert (tmp_path / "link.json").is_symlink() == (name == "link.json")

    def test_a_file_with_a_second_name_is_refused(self, csv, ledger, tmp_path, capsys):
        """The two would part, and each would have half of the charges."""
        assert declared(csv, "--epsilon", 0.1, "--ledger", ledger, "--quiet") == 0
        os.link(ledger, tmp_path / "other.json")
        assert declared(csv, "--ledger", tmp_path / "other.json", "--quiet", out="b.csv") == 1
        assert "has another name, a hard link" in capsys.readouterr().err


class TestWrittenAhead:
    """What a run may spend stands in the file before a table is opened."""

    @pytest.fixture
    def seen(self, monkeypatch, ledger):
        """What the file says when the table is opened."""
        found = []

        def opened(*args):
            found.append(read_ledger(ledger.read_text()))
            return real(*args)

        from sdv_privpgd.cli import fits, input_files

        real = input_files.open_table
        for place in (fits, input_files):
            monkeypatch.setattr(place, "open_table", opened)
        return found

    def test_by_every_command(self, csv, ledger, tmp_path, seen):
        model, domain = tmp_path / "model.zip", tmp_path / "domain.json"
        facts = json.loads(domain.read_text())
        del facts["ward"]  # thresholds, which need a part of delta
        domain.write_text(json.dumps(facts))
        kept = ("--ledger", ledger, "--model", model, "--quiet")
        assert declared(csv, *kept) == 0
        assert (
            run("add-budget", model, csv, "--epsilon", 1, "--out", tmp_path / "f.csv", "--quiet")
            == 0
        )
        domain.write_text(json.dumps(DOMAIN))
        asked = ("--metadata", tmp_path / "metadata.json", "--domain", domain, "--epsilon", 1)
        named = ("--site", "North", "--ledger", ledger, "--out", tmp_path / "n.zip", "--quiet")
        assert run("measure", csv, *asked, *named) == 0
        first, second, third = seen
        assert first.spent() == pytest.approx(1)
        assert first.reserved > 0
        assert first.charges[0].delta == first.reserved
        assert [len(each.charges) > 1 for each in seen] == [False, True, True]
        assert second.spent() == pytest.approx(2, abs=0.01)
        after = read_ledger(ledger.read_text())
        assert third.spent() == pytest.approx(after.spent(), abs=0.01)
        assert not [each for each in after.charges if each.mechanism == "planned"]

    @pytest.mark.parametrize("before", [False, True])
    def test_goes_where_nothing_was_spent(self, csv, ledger, tmp_path, before, seen, capsys):
        if before:
            assert declared(csv, "--ledger", ledger, "--quiet", out="0.csv") == 0
        content = ledger.read_bytes() if before else None
        csv.write_text("age,height\n1,2\n")
        assert declared(csv, "--ledger", ledger, "--quiet") == 1
        assert len(seen) == 1 + before
        assert seen[-1].charges[-1].mechanism == "planned"
        assert (ledger.read_bytes() if ledger.exists() else None) == content
        assert not list(tmp_path.glob("*.part*"))

    @pytest.mark.long
    def test_a_run_that_is_killed_stands_there(self, csv, ledger, tmp_path, capsys):
        code = (
            "import sys, time, sdv, sdv_privpgd.synthesize.pgm as pgm\n"
            "from sdv_privpgd.cli.start import main\n"
            "def wait(*args, **kwargs):\n"
            "    print('paid', flush=True)\n"
            "    time.sleep(600)\n"
            "pgm.PrivatePGM.fit = wait\n"
            "sys.exit(main(sys.argv[1:]))"
        )
        arguments = [
            "synthesize", csv, "--epsilon", 1, "--method", "mst", "--out", tmp_path / "killed.csv",
            *documents(tmp_path),
            "--ledger", ledger, "--quiet",
        ]  # fmt: skip
        running = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, arguments)], stdout=subprocess.PIPE, text=True
        )
        assert running.stdout is not None
        assert running.stdout.readline() == "paid\n"
        limited = ("--ledger", ledger, "--quiet", "--max-epsilon")
        assert declared(csv, *limited, 1.2) == 1  # a second process, in this one
        assert "ledger.part.json exists: another run is about to write" in capsys.readouterr().err
        running.send_signal(signal.SIGKILL)
        running.communicate()
        assert entered(ledger) == pytest.approx(1)
        assert not (tmp_path / "killed.csv").exists()
        assert "If none runs any more, delete it" in refused(declared(csv, *limited, 1.2), capsys)
        (tmp_path / "ledger.part.json").unlink()
        said = refused(declared(csv, *limited, 1.2), capsys)
        assert "that planned epsilon 1 has not ended. All of that is spent." in said
        assert "after 1 before would come to epsilon 1.46" in said
        assert declared(csv, *limited, 1.5) == 0
        assert entered(ledger) == pytest.approx(1.465, abs=0.001)


class TestNoRowsWithoutBooks:
    @pytest.fixture(params=["full", "changed", "gone"])
    def fails(self, request, monkeypatch, ledger):
        """What happens to the file while a table is fitted, and what undoes it."""
        fit = "sdv_privpgd.synthesize.pgm.PrivatePGM.fit"
        from sdv_privpgd.synthesize.pgm import PrivatePGM

        real = PrivatePGM.fit

        def changes(*args, **kwargs):
            if request.param == "gone":
                ledger.unlink()
            else:
                ledger.write_text(ledger.read_text().replace("rows", "Rows"))
            return real(*args, **kwargs)

        if request.param == "full":
            full_at_the_end(monkeypatch)
        else:
            monkeypatch.setattr(fit, changes)
        return request.param

    @pytest.mark.parametrize("keeps", [False, True])
    def test_but_a_model_that_is_entered_before_it_gives_any(
        self, csv, ledger, tmp_path, fails, keeps, monkeypatch, capsys
    ):
        model = tmp_path / ("model.zip" if keeps else "out.rescued.zip")
        more = ("--model", model) if keeps else ()
        assert declared(csv, "--ledger", ledger, "--report", "page.html", "--quiet", *more) == 1
        monkeypatch.undo()
        monkeypatch.chdir(tmp_path)
        assert new_files(csv) - {"ledger.json"} == {model.name}
        said = capsys.readouterr().err
        assert f"--ledger {ledger} does not say so, and no rows were written" in said
        assert f"sdv-privpgd sample {model}" in said
        out = ("--rows", 5, "--out", tmp_path / "more.csv")
        if fails == "changed":
            assert run("sample", model, *out) == 1
            assert "ledger.json is no ledger that can be read" in capsys.readouterr().err
            ledger.unlink()
        if fails != "full":
            assert run("sample", model, *out) == 1
            assert "which is not there: say with --ledger where it is" in capsys.readouterr().err
            assert run("sample", model, *out, "--ledger", "elsewhere.json") == 0
            ledger = tmp_path / "elsewhere.json"
        else:
            assert entered(ledger) == pytest.approx(1)  # what was planned
            assert run("sample", model, "--again", *out) == 1
            assert "without --again it is entered there" in capsys.readouterr().err
            assert run("sample", model, *out) == 0
        shared = checkpoint.fitted(model).ledger
        assert entered(ledger) == pytest.approx(1)
        assert read_ledger(ledger.read_text()).charges == shared.charges
        before = ledger.read_bytes()
        assert run("sample", model, *out, "--force") == 0
        assert ledger.read_bytes() == before

    def test_of_a_fit_that_stopped_either(self, csv, ledger, tmp_path, monkeypatch, capsys):
        with monkeypatch.context() as patched:
            full_at_the_end(patched)
            patched.setattr(_FIT, interrupt)
            assert declared(csv, "--ledger", "ledger.json", "--quiet") == 130
        stopped, out = tmp_path / "out.rescued.zip", ("--out", tmp_path / "out.csv", "--quiet")
        (charge,) = read_ledger(ledger.read_text()).charges
        assert charge.mechanism == "planned"
        with monkeypatch.context() as patched:
            full_at_the_end(patched)
            assert run("resume", stopped, *out) == 1
        assert not (tmp_path / "out.csv").exists()
        assert run("sample", stopped, *out) == 0
        assert read_ledger(ledger.read_text()).charges == checkpoint.fitted(stopped).ledger.charges

    @pytest.mark.parametrize("full", ["ledger", "release"])
    def test_nor_a_release(self, csv, ledger, tmp_path, monkeypatch, capsys, full):
        full_at_the_end(monkeypatch) if full == "ledger" else fails_at(monkeypatch, "north.part")
        asked = documents(tmp_path)
        kept = ("--ledger", ledger, "--out", tmp_path / "north.zip", "--quiet")
        assert run("measure", csv, *asked, "--epsilon", 1, "--site", "North", *kept) == 1
        assert new_files(csv) == {"ledger.json", "north.rescued.zip"}
        assert entered(ledger) == pytest.approx(1)
        said = capsys.readouterr().err
        assert "north.rescued.zip.\n" in said
        assert ("does not have it" in said) is (full == "ledger")

    def test_nor_a_table_that_is_read(self, csv, ledger, tmp_path, monkeypatch, capsys):
        monkeypatch.setattr("sdv_privpgd.cli.fits.open_table", pytest.fail)
        fails_at(monkeypatch, "ledger.part.next.json")
        assert declared(csv, "--ledger", ledger, "--quiet") == 1
        assert "Cannot write --ledger" in capsys.readouterr().err
        assert new_files(csv) == set()


class TestAcrossTheYears:
    def test_the_file_says_what_each_release_was(self, csv, ledger, tmp_path, capsys):
        kept = ("--ledger", ledger, "--quiet")
        assert declared(csv, *kept, "--model", "model.zip", "--max-epsilon", 3) == 0
        assert run("add-budget", "model.zip", csv, "--epsilon", 1, "--out", "finer.csv", *kept) == 0
        domain = {**DOMAIN, "ward": {"range_values": ["a", "b"], "other_value": "other"}}
        (tmp_path / "domain.json").write_text(json.dumps(domain))
        assert declared(csv, *kept, out="next.csv") == 1
        capsys.readouterr()
        assert run("ledger", ledger, "--html", "page.html") == 0
        told, page = capsys.readouterr().out, (tmp_path / "page.html").read_text()
        names = ("out.csv", "finer.csv", "next.csv")
        assert [told.index(f"- {name} protects") for name in names] == sorted(
            told.index(f"- {name} protects") for name in names
        )
        for name in names[:2]:
            card = json.loads((tmp_path / f"{name}.about.json").read_text())
            assert card["release"] in told
            assert card["release"] in page
        assert "Release: none was made." in " ".join(told.split())
        assert "limit of epsilon: 3" in told
        assert "is no release of this list" not in told
        assert run("ledger", ledger, "--html", "ledger.json") == 1
        said = refused(run("ledger", ledger, "--max-epsilon", 0), capsys)
        assert "--max-epsilon must be a positive number, got 0" in said

    def test_a_model_that_it_learned_of_later_is_told_apart(self, fitted, ledger, csv, capsys):
        alone, out = fitted.with_name("alone.zip"), ("--out", "more.csv", "--quiet")
        assert run("add-budget", alone, csv, "--epsilon", 1, "--ledger", ledger, *out) == 0
        capsys.readouterr()
        assert run("ledger", ledger) == 0
        assert "Epsilon 1 was spent by what is no release of this list" in capsys.readouterr().out

    def test_measurements_are_releases_too(self, csv, ledger, tmp_path, capsys):
        facts = documents(tmp_path)
        asked = ("--epsilon", 1, "--ledger", ledger, "--quiet", *facts, "--method", "mst")
        assert run("measure", csv, "--site", "North", "--out", "north.zip", *asked) == 0
        (found,) = json.loads(ledger.read_text())["releases"]
        assert found["name"] == "north.zip"
        assert found["epsilon"] == pytest.approx(1)
        assert len(found["release"]) == 32

    def test_a_run_beyond_the_limit_of_an_earlier_one_says_so_before(self, csv, ledger, capsys):
        assert declared(csv, "--ledger", ledger, "--quiet", "--max-epsilon", 1.2) == 0
        capsys.readouterr()
        assert declared(csv, "--ledger", ledger, "--quiet", out="more.csv") == 0
        assert "more than the 1.2 that an earlier run was told" in capsys.readouterr().err
        assert run("ledger", ledger) == 0
        assert "left for another release: 0\n" in capsys.readouterr().out


class TestNoRowAlone:
    def test_sample_says_what_it_costs(self, fitted, tmp_path, capsys):
        more = ("--rows", 300, "--min-rows-like", 4, "--on", "age,ward", "--quiet")
        assert run("sample", fitted, "--out", "crowd.csv", *more) == 0
        assert "At least 4 rows have each combination of age, ward" in capsys.readouterr().out
        rows = pd.read_csv(tmp_path / "crowd.csv", dtype={"ward": str})
        assert rows.groupby(["age", "ward"], dropna=False).size().min() >= 4

    @pytest.mark.parametrize(
        ("more", "told"),
        [
            (["--min-rows-like", 3], "--min-rows-like and --on go together"),
            (["--on", "age"], "--min-rows-like and --on go together"),
            (["--on", "wage", "--min-rows-like", 3], "--on names 'wage': choose from"),
            (["--on", "age", "--min-rows-like", 1], "--min-rows-like must be an integer"),
        ],
    )
    def test_what_cannot_be_meant_leaves_the_model_where_it_was(self, fitted, capsys, more, told):
        before = fitted.read_bytes()
        assert run("sample", fitted, "--out", "crowd.csv", "--quiet", *more) == 1
        assert told in capsys.readouterr().err
        assert fitted.read_bytes() == before
