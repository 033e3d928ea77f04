"""What every fitted table can do, whatever door it came through."""

import numpy as np
import pandas as pd
import pytest

from sdv_privpgd import (
    Between,
    Categorical,
    CombinedTable,
    FittedTable,
    Numerical,
    combine,
    fit_table,
    from_tables,
    measure,
)
from sdv_privpgd.base.files import DamagedFileError

RNG = np.random.default_rng(0)
WARD = RNG.choice(["A", "B"], 2_000)
TABLE = pd.DataFrame({"ward": WARD, "age": RNG.integers(0, 50, 2_000) + 40 * (WARD == "B")})
COLUMNS = {"ward": Categorical(["A", "B", "C"]), "age": Numerical(0, 99, decimal_places=0)}
PUBLISHED = pd.DataFrame({"label_1": ["A", "B", "C"], "estimate": [900, 1_100, 0], "stddev": 2.0})
PUBLISHED["column_1"] = "ward"
DOORS = {
    "fit_table": lambda: fit_table(TABLE, COLUMNS, 5.0, method="mst"),
    "combine": lambda: combine(
        [measure(TABLE, COLUMNS, 5.0, site=name) for name in ("North", "South")], engine="pgm"
    ),
    "from_tables": lambda: from_tables(
        PUBLISHED, {"ward": COLUMNS["ward"]}, publisher="the census", engine="pgm"
    ),
}


@pytest.fixture(scope="module")
def fitted():
    return DOORS["fit_table"]()


@pytest.mark.parametrize("door", DOORS)
def test_each_draws_rows_under_conditions_and_is_kept_in_a_file(door, tmp_path):
    made = DOORS[door]()
    assert set(made.sample(50, where={"ward": "B"})["ward"]) == {"B"}
    made.save(tmp_path / "model.bin")
    again = type(made).load(tmp_path / "model.bin")
    made.reset_sampling()
    again.reset_sampling()
    pd.testing.assert_frame_equal(again.sample(40), made.sample(40))
    assert "ward" in again.discovered_domain()


def test_a_file_that_is_another_or_has_changed_is_refused(fitted, tmp_path):
    path = tmp_path / "model.bin"
    fitted.save(path)
    with pytest.raises(DamagedFileError, match="holds a FittedTable"):
        CombinedTable.load(path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedFileError):
        FittedTable.load(path)
    with pytest.raises(DamagedFileError, match="cannot be read"):
        FittedTable.load(tmp_path / "none.bin")


def test_other_columns_follow_the_model_and_rows_are_completed_under_their_index(fitted):
    young = fitted.sample(400, where={"ward": "A"})["age"]
    old = fitted.sample(400, where={"ward": "B"})["age"]
    assert old.mean() - young.mean() > 30
    assert fitted.sample(30, where={"age": Between(30, 40)})["age"].between(30, 40).all()
    assert fitted.sample(0, where={"ward": "A"}).shape == (0, 2)
    known = pd.DataFrame({"ward": ["A", "B", "A"]}, index=[7, 3, 5])
    rows = fitted.complete(known)
    assert list(rows.index) == [7, 3, 5]
    assert list(rows["ward"]) == ["A", "B", "A"]
    with pytest.warns(UserWarning, match="1 of 2 conditions can be met.*outside the domain"):
        rows = fitted.complete(pd.DataFrame({"ward": ["A", "Z"]}))
    assert list(rows.index) == [0]


@pytest.mark.parametrize(
    ("where", "match"),
    [
        ({"ward": "Z"}, "Unable to sample any rows"),
        ({"town": "A"}, "no modelled columns"),
        ({"ward": Between("A", "B")}, "ward"),
        ({"ward": ["A", "B"]}, "one value of 'ward'"),
    ],
)
def test_a_condition_that_no_row_meets_is_refused(fitted, where, match):
    with pytest.raises(ValueError, match=match):
        fitted.sample(5, where=where)


def test_rows_are_compared_with_the_real_ones_and_the_sequence_goes_on(fitted, tmp_path):
    fitted.reset_sampling()
    first = fitted.sample(10)
    found = fitted.evaluate(TABLE, path=tmp_path / "page.html")
    assert found.columns["ward"] < 0.1
    assert (tmp_path / "page.html").stat().st_size > 1_000
    second = fitted.sample(10)
    fitted.reset_sampling()
    pd.testing.assert_frame_equal(fitted.sample(20), pd.concat([first, second], ignore_index=True))
    with pytest.raises(ValueError, match="no columns \\['age'\\]"):
        fitted.evaluate(TABLE[["ward"]])
