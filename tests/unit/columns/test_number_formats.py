"""Numbers and truths in text, read and written as a declaration says."""

from dataclasses import replace

import pandas as pd
import pytest
from encoding import codes, decoded, numerical, transformer
from hypothesis import given
from hypothesis import strategies as st

from sdv_privpgd import Boolean, Numerical, fit_table, read_domain, write_domain
from sdv_privpgd.columns.decoders import written_as
from sdv_privpgd.columns.encoders import read
from sdv_privpgd.columns.mismatch import mismatches
from sdv_privpgd.columns.number_formats import NumberFormat
from sdv_privpgd.columns.parser import read_facts
from sdv_privpgd.sources.csv import CsvFiles

EXAMPLES = (
    "1234", "1234.5", "$1,234.50", "-$1,234.50", "$-1,234.500", "(1,234.50)", "CHF 1’234.50-",
    "1.234,5 %", "\u22121\u202f234,50\u00a0€", "1 234 kg", "($1,234)", "1.234,50,-",
)  # fmt: skip
"""Every mark, sign, space and unit."""


@pytest.mark.parametrize(
    ("example", "number", "text"),
    [
        ("-$1,234.50", 0.5, "$0.50"), ("-$1,234.50", 0, "$0.00"), ("-$1,234.50", -0.001, "$0.00"),
        ("12 %", 1234, "1234 %"),
    ],
)  # fmt: skip
def test_small_numbers_have_no_sign_and_large_percentages_no_groups(example, number, text):
    assert written_as(NumberFormat(example), number) == text


@given(st.sampled_from(EXAMPLES), st.integers(-(10**12), 10**12))
def test_what_a_format_writes_it_reads(example, tick):
    written = NumberFormat(example)
    number = tick / 10**written.places if written.places else tick
    assert float(written.plain(written_as(written, number))) == number


PERCENTAGES = "12 %", "12.5%", "7,50 %", "-3%", "(0.5 %)", "123%"


@pytest.mark.parametrize("example", [*EXAMPLES, *PERCENTAGES])
def test_a_format_writes_its_example(example):
    written = NumberFormat(example)
    number = float(written.plain(example))
    assert written_as(written, number) == example
    assert example in PERCENTAGES or abs(number) == (1234.5 if written.places else 1234)


@pytest.mark.parametrize(
    ("example", "cells", "numbers"),
    [
        ("$1,234.50", ["$1,234.50", "(588.21)", "-$3", "$-3", "\u22123", ".5"],
         [1234.5, -588.21, -3, -3, -3, 0.5]),
        ("1234 %", ["12 %", "12%", "12", "12\u00a0%"], [12] * 4),
        ("1 234,50 €",
         ["1\u202f234,50\u00a0€", "1\u00a0234,5", "1 234,5 €", "1234,5"], [1234.5] * 4),
        ("1’234.5", ["1'234.5", "1’234.5", "+1234.5"], [1234.5] * 3),
        ("1.234,50 €", ["1.234", 12.25, 7], [1234, 12.25, 7]),
        ("12 %", ["7%", "100 %", "1234%", 3], [7, 100, 1234, 3]),
        ("0,50 %", ["7%", "1,25 %", "0,5"], [7, 1.25, 0.5]),
        ("1.234", ["1.234,2", "0,2"], [1234.2, 0.2]),
        ("1,234", ["1,234.2", "0.2"], [1234.2, 0.2]),
    ],
)  # fmt: skip
def test_text_is_read_with_any_usual_sign_and_space(example, cells, numbers):
    encoder = numerical(-2000, 2000, number_format=example, decimal_places=None)
    values, missing = encoder.read(pd.Series(cells, dtype=object))
    places = NumberFormat(example).places
    assert not missing.any()
    assert values.tolist() == [round(number * 10**places) for number in numbers]


@pytest.mark.parametrize(
    "cell",
    ["12,34", "1,23", "(5", "5)", "--5", "5 €", "1e3", "nan", "", "$", ".", " " * 10**5, "1_0"],
)  # fmt: skip
def test_text_in_another_format_is_missing(cell):
    assert codes(numerical(0, 9, number_format="$1,234.50", num_bins=3), cell) == [3]


@pytest.mark.parametrize("dtype", [None, "string"])
def test_rows_are_written_in_the_format_and_missing_ones_stay(dtype):
    table = pd.DataFrame({"x": pd.Series(["$1.00", "($2.50)", None] * 40, dtype=dtype or object)})
    facts = Numerical(-3, 3, number_format="($1,234.50)")
    rows = fit_table(table, {"x": facts}, epsilon=20.0, method="privpgd+pgm").sample(200)["x"]
    written = NumberFormat("($1,234.50)")
    read = [written_as(written, float(written.plain(cell))) for cell in rows.dropna()]
    assert read == rows.dropna().tolist()
    assert rows.isna().any()


@pytest.mark.parametrize("dtype", ["Int64", "float32"])
def test_a_chosen_dtype_of_numbers_keeps_them_numbers(dtype):
    table = pd.DataFrame({"x": pd.Series([1, 2, 3] * 40, dtype=dtype)})
    facts = Numerical(0, 4, number_format="$1,234")
    assert fit_table(table, {"x": facts}, 20.0, method="mst").sample(5)["x"].dtype == dtype


@pytest.mark.parametrize("example", ["", "12.50", "1,234,5", "1.2345", "$1,234.05", "%d", 1234.5])
def test_what_is_no_example_is_refused_with_one(example):
    with pytest.raises(ValueError, match=r"must be how the table writes 1234\.5"):
        Numerical(number_format=example)


def test_dtypes_and_places_follow_from_the_declaration():
    assert read_facts("x", {"sdtype": "numerical", "number_format": "1,234.50"}).decimal_places == 2
    with pytest.raises(ValueError, match=r"writes 1 decimal places.*decimal_places=2"):
        Numerical(number_format="1,234.5", decimal_places=2)
    facts = read_facts("x", {"sdtype": "boolean", "true_value": "J", "false_value": "N"})
    assert mismatches({"x": pd.Series([True]).dtype}, {"x": facts})
    assert not mismatches({"x": pd.Series(["J"], dtype=object).dtype}, {"x": facts})


@pytest.mark.parametrize("pair", [("J", "N"), ("yes", "no"), ("1", "2"), (1, 2), (1, 0), ("x", "")])
def test_declared_truths_are_read_exactly_and_written_back(pair):
    truths = transformer("boolean", true_value=pair[0], false_value=pair[1])
    assert codes(truths, *pair, "other", None) == [1, 0, 2, 2]
    assert [type(each)(back) for each, back in zip(pair, decoded(truths, 1, 0), strict=True)] == [
        *pair
    ]


@pytest.mark.parametrize(("true", "false"), [("J", "N"), ("1", "2"), (1, 2), ("NA", "no")])
def test_declared_truths_are_read_from_files(tmp_path, true, false):
    pd.DataFrame({"x": [true, false, false] * 60}).to_csv(tmp_path / "x.csv", index=False)
    source = CsvFiles(tmp_path / "x.csv", header=True)
    truths = Boolean(true, false, nullable=False)
    rows = fit_table(source, {"x": truths}, 20.0, method="mst").sample(600)["x"]
    assert 120 < (rows == true).sum() < 280
    assert ((rows == true) | (rows == false)).all()


@pytest.mark.parametrize("pair", [("J", None), (None, "N"), ("J", "J"), (1, True), ([], "N")])
def test_truths_that_are_no_two_values_are_refused(pair):
    with pytest.raises(ValueError, match="must be two different texts or numbers"):
        Boolean(*pair)


def test_a_declaration_is_read_by_files_conditions_and_quality(tmp_path):
    table = pd.DataFrame({"x": ["$1", "$2,000", "$3"] * 60, "y": ["J", "N", "N"] * 60})
    columns = {"x": Numerical(0, 2100, number_format="$1,234"), "y": Boolean("J", "N")}
    fitted = fit_table(table, columns, 20.0, method="mst")
    rows = fitted.sample(4, where={"x": "$2,000", "y": "J"})
    assert rows.to_numpy().tolist() == [["$2,000", "J"]] * 4
    assert fitted.evaluate(table).properties["Column Shapes"] > 0.8
    domain = {"x": Numerical(0, 9, number_format="1’234 %"), "y": Boolean("ja", "nein")}
    write_domain(domain, tmp_path / "domain.json")
    assert read_domain(tmp_path / "domain.json") == {
        name: {"sdtype": facts.sdtype, **facts} for name, facts in domain.items()
    }
    table = pd.DataFrame({"x": [f"1.{number:03},5 %" for number in range(900)]})
    table.to_csv(tmp_path / "x.csv", index=False)
    for source in (table, CsvFiles(tmp_path / "x.csv", header=True)):
        fitted = fit_table(source, {"x": Numerical(number_format="1.234,5 %")}, 20.0, method="mst")
        found = fitted.discovered_domain()["x"]
        assert found["range_min"] <= 1100  # noise may hide rows far beyond the others
        assert found["range_max"] >= 1800
        written = fitted.sample(500)["x"].str.removesuffix(" %")
        drawn = written.str.replace(".", "").str.replace(",", ".").astype(float)
        assert drawn.quantile([0.02, 0.5, 0.98]).to_numpy() == pytest.approx(
            [1018, 1450, 1881], abs=60
        )


def test_numbers_of_no_declared_precision_are_read_in_their_format():
    real = replace(numerical(0, 2000).column, number_format=NumberFormat("1.234,5"))
    values, missing = read(real, pd.Series(["1.234,5", "1.5"]))
    assert (values[0], missing.tolist()) == (1234.5, [False, True])
