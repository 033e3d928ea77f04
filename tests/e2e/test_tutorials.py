"""Every tutorial runs as a script, at small size, and leaves what it says that it leaves."""

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "tutorials"


@pytest.mark.parametrize("script", sorted(FOLDER.glob("[0-9]*.py")), ids=lambda path: path.stem)
def test_a_tutorial_runs_as_a_newcomer_runs_it(script, tmp_path):
    done = subprocess.run(
        [sys.executable, str(script), "--num-particles", "500", "--folder", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "differential privacy" in done.stdout
    assert {path.suffix for path in tmp_path.iterdir()} == {".csv", ".png"}
    for path in tmp_path.iterdir():
        assert path.stat().st_size > 1_000


def test_the_example_in_the_readme_runs(tmp_path):
    readme = (FOLDER.parent / "README.md").read_text()
    (example,) = [block.split("```")[0] for block in readme.split("```python\n")[1:]]
    done = subprocess.run(
        [sys.executable, "-c", example],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "Privacy report" in done.stdout
    assert (tmp_path / "model.pkl").exists()
