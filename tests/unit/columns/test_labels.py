"""What codes are called."""

import pandas as pd
import pytest
from encoding import Codec
from pages import public_schema

from sdv_privpgd.columns.labels import code_labels


@pytest.mark.parametrize("name", ["age", "balance", "weight", "seen", "smoker"])
def test_each_label_begins_with_a_value_of_its_cell(name):
    (column,) = (column for column in public_schema().columns if column.name == name)
    labels = code_labels(column)
    assert len(labels) == column.size
    first = [label.split(" – ")[0] for label in labels[: column.num_values]]
    values = {"seen": list, "smoker": lambda texts: [text == "True" for text in texts]}
    read = values.get(name, lambda texts: [float(text) for text in texts])(first)
    codes, _ = Codec(column).encode(pd.Series(read))
    assert codes.tolist() == list(range(column.num_values))


def test_labels_name_both_ends_and_the_missing_code():
    columns = {column.name: code_labels(column) for column in public_schema().columns}
    assert columns["age"][0] == "18 – 24"
    assert columns["age"][-1] == "(missing)"
    assert columns["balance"][0] == "-1.00 – -0.75"
    assert columns["weight"][:4] == ["0.5 – 2.5", "2.5 – 4.5", "4.5 – 6.5", "6.5 – 8.5"]
    assert columns["seen"][0].startswith("2020-01-01 – 2020-02")
    assert columns["smoker"] == ["False", "True"]
