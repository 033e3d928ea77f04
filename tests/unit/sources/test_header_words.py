"""First records of words: rows are refused, and the names of real tables are taken."""

import pytest

from sdv_privpgd.sources.headers import names_of
from sdv_privpgd.sources.source import SourceError

ROWS = [
    ["M", "unknown"], ["F", "no", "B12"], ["female", "single", "never"], ["Miller, Mr. John", "b"],
    ["12 High Street", "London"], ["70 kg", "x"], ["State-gov", ">50K"], ["Hauptstraße 5", "Bonn"],
]  # fmt: skip
NAMES = [
    ["wage", "female", "married", "black"], ["year", "male", "female"], ["n", "m"], ["M", "F"],
    ["No", "year", "pm2.5"], ["YES", "COUTAX", "AGE"], ["1st Flr SF", "3Ssn Porch"], ["x", "y"],
]  # fmt: skip


@pytest.mark.parametrize("record", ROWS, ids=str)
def test_a_row_of_words_is_refused_without_a_word_of_it(record):
    with pytest.raises(SourceError, match="looks like data") as error:
        names_of(record, None, trusted=False)
    assert not any(repr(field) in str(error.value) for field in record)
    assert names_of(record, None, trusted=True) == record
    assert names_of(record, record, trusted=False) == record


@pytest.mark.parametrize("record", NAMES, ids=str)
def test_names_are_taken(record):
    assert names_of(record, None, trusted=False) == record
