"""A site's measurement stops, or speaks, where declarations do not fit the table."""

import numpy as np
import pytest
from made_up import made_up

from sdv_privpgd import Boolean, Categorical, DomainMismatchError, Numerical, combine, measure
from sdv_privpgd.report.warnings import OPENING

ROWS = 3_000
COLUMNS = {
    "ward": Categorical(["A", "B"]),
    "score": Numerical(0, 9, decimal_places=0),
    "age": Numerical(0, 99, decimal_places=0),
    "ill": Boolean(),
}


def table(**columns):
    usual = {"ward": "AB", "score": (0, 10), "age": (0, 90), "ill": 0.3}
    return made_up(ROWS, **{**usual, **columns})


def measured(private, **settings):
    return measure(private, COLUMNS, 3.0, site="North", **settings)


WRONG = {
    "misspelled": ({"ward": ["a", "b"] * (ROWS // 2)}, "no declared values: 'ward'"),
    "no truths": ({"ill": ["yes", "no"] * (ROWS // 2)}, "no declared values: 'ill'"),
    "another unit": ({"score": np.arange(ROWS) + 100}, "outside the declared range_max=9: 'score'"),
}


@pytest.mark.parametrize(("columns", "told"), WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_declared_values_that_are_not_there_stop_it_and_the_rest_is_not_spent(
    columns, told, adjacency
):
    with pytest.raises(DomainMismatchError) as caught:
        measured(table(**columns), adjacency=adjacency, delta=1e-5)
    assert told in str(caught.value)
    assert 0 < caught.value.ledger.spent() < 0.3


def test_what_fits_is_silent_and_what_lies_at_a_wide_end_is_said_of_the_release_alone(tmp_path):
    assert measured(table()).warnings == ()
    assert "as if values beyond it were clipped" in warned_of().warnings[1]
    found = warned_of()
    read = type(found).load(found.save(tmp_path / "north.zip"))
    assert read.warnings == found.warnings != ()


def test_it_goes_on_all_the_same_and_is_combined_with_others():
    """One site may lack all that the others have."""
    private = table(ward=["C"] * ROWS)
    with pytest.raises(DomainMismatchError) as caught:
        measured(private)
    error, paid = caught.value, caught.value.ledger.charges
    with pytest.raises(ValueError, match=r"had 3,000 rows, and this one has 10"):
        error.resume(private[:10])
    with pytest.warns(UserWarning, match=OPENING) as told:
        north = error.resume(private)
    assert [each.filename for each in told] == [__file__]
    assert north.ledger.charges[: len(paid)] == paid
    assert north.ledger.spent() == pytest.approx(3.0, abs=1e-3)
    assert "Nearly all values are missing: 'ward'" in north.warnings[1]
    with pytest.raises(ValueError, match="goes on once"):
        error.resume(private)
    south = measure(table(), COLUMNS, 3.0, site="South")
    assert combine([north, south], engine="pgm").num_rows == 2 * ROWS


def warned_of():
    """A release that warns: nobody knows the ends of this site's own range."""
    private = table(age=np.where(np.arange(ROWS) % 4, np.arange(ROWS) % 98, 99))
    with pytest.warns(UserWarning, match="range_max=99 in") as told:
        found = measured(private)
    assert [each.filename for each in told] == [__file__]
    return found
