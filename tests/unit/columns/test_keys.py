"""Keys: every text of a pattern, once, in the same order, and no more than there are."""

import pickle
import re
from itertools import product

import numpy as np
import pandas as pd
import pytest

from sdv_privpgd.columns.keys import keys_of, too_few
from sdv_privpgd.sampling.sampler import KeyStream

PATTERNS = ["a{2}[ab]", "a|b|a", "(a?b?){2}", "[a-c]{0,2}c?", "b(aa|a(b|c)){1,2}", "", "[aa]"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_all_texts_that_match_are_written_once(pattern):
    texts = ("".join(each) for size in range(7) for each in product("abc", repeat=size))
    keys = list(keys_of("id", pattern))
    assert too_few({"id": pattern}, len(keys)) == []
    assert len(set(keys)) == len(keys)
    assert set(keys) == {text for text in texts if re.fullmatch(pattern, text)}


@pytest.mark.parametrize("pattern", ["[0-9]+", "[^a]", ".", r"\w", "^a", "(a)(?=b)", "[a"])
def test_what_cannot_be_counted_up_is_refused(pattern):
    with pytest.raises(ValueError, match=r"key 'id' .* cannot be counted up"):
        keys_of("id", pattern)


def test_a_stream_goes_on_where_it_was_and_says_when_it_ends():
    stream = KeyStream(patterns={"code": "[A-C][0-9]", "id": None})
    first = stream.take(7)
    again = pickle.loads(pickle.dumps(stream))
    for each in (stream, again):
        assert each.take(3)["id"].tolist() == [7, 8, 9]
    with pytest.raises(ValueError, match=r"has 30 values .* 10 of them were taken"):
        stream.take(21)
    assert stream.take(20)["code"].iloc[-1] == "C9"
    stream.restart()
    assert stream.take(7)["code"].tolist() == first["code"].tolist()


@pytest.mark.parametrize(
    ("pattern", "dtype", "written"),
    [
        (None, None, [0, 1]),
        (None, pd.StringDtype(), ["0", "1"]),
        (None, np.dtype("float32"), ["0", "1"]),
        ("[1-9][0-9]", np.dtype("int16"), [10, 11]),
        ("X[0-9]", np.dtype("int16"), ["X0", "X1"]),
    ],
)
def test_keys_have_the_dtype_of_the_table_where_it_holds_them(pattern, dtype, written):
    found = KeyStream(patterns={"id": pattern}, dtypes={"id": dtype}).take(2)["id"]
    assert found.tolist() == written
    assert found.dtype == dtype or isinstance(dtype, np.dtype | None)


def test_more_whole_numbers_than_a_dtype_counts_are_not_cut():
    assert (
        KeyStream(patterns={"id": None}, dtypes={"id": np.dtype("int8")}).take(200)["id"].is_unique
    )
