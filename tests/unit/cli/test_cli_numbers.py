"""Numbers in groups of three digits, and zeros in front."""

from types import SimpleNamespace

import pytest
from encoding import numerical

from sdv_privpgd.cli.reading import read_table
from sdv_privpgd.cli.saying import in_options
from sdv_privpgd.report import warnings
from sdv_privpgd.sources.dialect import Reading
from sdv_privpgd.sources.source import SourceError

SECRET = "CANARYTEXT"


def read(tmp_path, text, facts, **how):
    path = tmp_path / "table.csv"
    path.write_text(text, encoding="utf-8")
    return read_table(path, Reading(**{"header": True, **how}), facts)


@pytest.mark.parametrize(
    ("cell", "decimal", "thousands", "number"),
    [
        ("1.234,56", ",", ".", 1234.56),
        ("1.234", ",", ".", 1234),
        ("83,4", ",", ".", 83.4),
        ("-12.345.678", ",", ".", -12345678),
        ("1,234.5", ".", ",", 1234.5),
        ("1\u00a0234,5", ",", " ", 1234.5),
        ("15.04.1972", ",", ".", None),
        ("1.23", ",", ".", None),
        ("12,34", ".", ",", None),
        ("1_000", ".", ",", None),
    ],
)
def test_groups_of_thousands_are_read_where_they_are_named(
    tmp_path, cell, decimal, thousands, number
):
    facts = {"n": {"sdtype": "numerical"}}
    how = {"sep": ";", "decimal": decimal, "thousands": thousands, "header": True}
    cells = read(tmp_path, f"n\n{cell}\n7\n", facts, **how)["n"]
    assert cells[1] == 7
    assert cells[0] == number if number is not None else cells.isna()[0]


def test_one_cell_does_not_decide_how_others_are_read(tmp_path):
    facts = {"n": {"sdtype": "numerical"}}
    how = {"sep": ";", "decimal": ",", "thousands": "."}
    alone = read(tmp_path, "n\n1.234,5\n2\n", facts, **how)["n"]
    beside = read(tmp_path, f"n\n1.234,5\n{SECRET}\n", facts, **how)["n"]
    assert alone[0] == beside[0] == 1234.5


def test_detection_sees_grouped_numbers_and_dates_that_look_like_them(tmp_path):
    text = "cost;born;weight\n1.234,5;15.04.1972;83,4\n7;01.02.1980;60\n"
    table = read(tmp_path, text, None, sep=";", decimal=",", thousands=".")
    assert table["cost"].tolist() == [1234.5, 7]
    assert table["born"].tolist() == ["15.04.1972", "01.02.1980"]
    assert table["weight"].tolist() == [83.4, 60]


def test_one_sign_cannot_be_both(tmp_path):
    with pytest.raises(SourceError, match="both marked") as caught:
        read(tmp_path, "n\n1\n", None, thousands=".")
    assert "Name the sign with --decimal" in in_options(caught.value)


@pytest.mark.parametrize("sdtype", ["id", "categorical", "detected"])
def test_zeros_in_front_stay(tmp_path, sdtype):
    facts = {"code": {"sdtype": sdtype}, "n": {"sdtype": "numerical"}}
    table = read(tmp_path, "code,n\n0000621,1\n12,0\n", None if sdtype == "detected" else facts)
    assert table["code"].tolist() == (
        ["0000621", 12] if sdtype == "categorical" else ["0000621", "12"]
    )
    assert table["n"].tolist() == [1, 0]


def test_advice_on_numbers_names_the_options():
    seen = SimpleNamespace(column=numerical(0, 9).column, declared=None, has_other=False)
    told = in_options(warnings._on_parsing(seen))  # pyright: ignore[reportArgumentType]
    assert "--decimal" in told
    assert "--thousands" in told
