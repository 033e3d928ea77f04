"""Every tutorial runs as a script, at small size, and leaves what it says that it leaves."""

from pathlib import Path

import pytest
from processes import python

FOLDER = Path(__file__).parents[2] / "tutorials"
LEFT = {
    "01_quickstart": {"01_quickstart.csv", "01_quickstart.png"},
    "02_compare": {
        *(f"02_{name}.html" for name in ("privpgd", "mst", "independent")),
        *(f"02_{name}_not_private.html" for name in ("privpgd", "mst", "independent")),
        "02_compare_not_private.csv",
    },
    "03_protect": {f"03_protect_not_private.{kind}" for kind in ("csv", "png", "html")},
    "04_undeclared": {
        "04_survey.csv", "04_undeclared.csv", "04_report.html", "04_marks_not_private.csv"
    },
    "05_hospital": {
        "05_hospital.csv", "05_kept.csv", "05_domain.json", "05_metadata.json", "05_synthetic.csv",
        "05_report.html", "05_model.zip", "05_surgery.csv", "05_surgery.csv.about.json",
        "05_report_not_private.html",
        "05_look_not_private.csv",
    },
    "06_what_to_expect": {"06_what_to_expect.csv"},
    "07_conclusions": {"07_conclusions.txt", "07_standard_errors.csv"},
    "09_visits": {"09_report.html", "09_visits.csv", "09_compared_not_private.csv"},
    "08_published_tables": {
        "08_published.parquet", "08_rows.csv", "08_report.html", "08_compared_not_private.csv"
    },
    "10_linked_tables": {
        "10_patients.csv", "10_stays.csv", "10_given.csv", "10_report.html",
        "10_links_not_private.png",
    },
}  # fmt: skip


def test_every_tutorial_is_tested():
    assert {path.stem for path in FOLDER.glob("[0-9]*.py")} == LEFT.keys()


FIRST, *OTHERS = LEFT
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in OTHERS]


@pytest.mark.long
@pytest.mark.parametrize("name", [FIRST, *SLOW])
def test_a_tutorial_runs_as_a_newcomer_runs_it(name, tmp_path):
    script = FOLDER / f"{name}.py"
    done = python(str(script), "--num-particles", "500", "--folder", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "differential privacy" in " ".join(done.stdout.split())
    assert {path.name for path in tmp_path.iterdir()} == LEFT[name]
    for path in tmp_path.iterdir():
        assert path.stat().st_size > 100
