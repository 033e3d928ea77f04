"""Figures have titles, plain numbers and ticks where cells begin."""

import base64
import math
import re
import subprocess
import sys
from importlib import resources
from io import BytesIO
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest
from PIL import Image

from sdv_privpgd.base.words import number, share, short_number
from sdv_privpgd.columns.labels import Names, code_names
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.report.figures import Bars, Curves, Heat

NASTY = ["<b>x</b>", "$\\frac{1}{$", "日本\n語", "\x00\ud800", "", " ", "a" * 99, "#p&quot;"]


def drawn(picture):
    """The texts of a picture, and its element."""
    root = ElementTree.fromstring(picture.svg("a label"))
    return [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")], root


def bars(names, synthetic, other=None, margins=None, title="x"):
    return Bars(
        title=title,
        names=names,
        synthetic=np.asarray(synthetic),
        other=other,
        other_name="measured",
        margins=margins,
    )


def heat(values, rows, columns, largest=1.0, titles=("v", "h")):
    values = np.asarray(values)
    return Heat(titles=titles, rows=rows, columns=columns, values=values, largest=largest)


def test_no_share_above_all_rows_is_drawn_and_axes_have_titles():
    names = Names.plain(["a", "b"])
    picture = bars(names, [1.0, 0.0], np.array([1.3, -0.3]), np.array([0.1, 0.1]))
    texts, root = drawn(picture)
    assert {"a", "b", "x", "share of rows", "0 %", "100 %"} <= set(texts)
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    for path in root.iter("{http://www.w3.org/2000/svg}path"):
        places = np.array(re.findall(r"-?[\d.]+", path.attrib["d"]), dtype=float).reshape(-1, 2)
        assert (places >= 0).all()
        assert (places <= (width, height)).all()
    assert picture.numbers == (
        ("value", "synthetic", "measured", "±"),
        [("a", "100", "130", "10"), ("b", "0", "-30", "10")],
    )
    texts, _ = drawn(heat(np.eye(2), names, Names.plain(["c", "d"]), titles=("<v>", "h")))
    marks = {"0 %", "25 %", "50 %", "75 %", "100 %"}
    assert {"<v>", "h", "share of rows", "a", "b", "c", "d", *marks} <= set(texts)


@pytest.mark.parametrize("name", NASTY)
def test_any_text_can_be_drawn(name):
    names, plain = Names.plain([name, name]), Names.plain(["a", "b", "c"])
    pictures = [
        bars(names, [0.5, 0.5], title=name),
        heat(np.ones((2, 3)), names, plain, titles=(name, name)),
        Curves(title=name, at=[1, 2], lines={name: [0.1, 0.2]}),
    ]
    kinds = {"svg", "g", "path", "text", "image", "defs", "use", "clipPath", "rect"}
    for picture in pictures:
        html = re.sub(r'aria-label="[^"]*"', "", picture.svg(name))  # may hold what XML may not
        found = {each.tag.rpartition("}")[2] for each in ElementTree.fromstring(html).iter()}
        assert found <= kinds


@pytest.mark.parametrize(
    "picture",
    [
        bars(Names.plain([]), []),
        bars(Names.plain(["a"]), [0.0], np.zeros(1), np.zeros(1)),
        bars(Names.plain(list(map(str, range(2_000)))), np.full(2_000, 0.0005)),
        heat([[np.nan]], Names.plain(["a"]), Names.plain(["b"]), largest=0.0),
        Curves(title="x", at=[1], lines={"all nothing": [0.0]}),
        Curves(title="x", at=[1, 1_000_000], lines={"much": [7.0, 1e-12], "none": [0.0, 0.0]}),
    ],
)
def test_what_is_at_an_edge_is_drawn(picture):
    assert picture.svg("a label").startswith("<svg")


def test_each_color_is_one_of_the_pages_style_in_light_in_the_dark_and_on_paper():
    picture = bars(Names.plain(["a"]), [1.0], np.ones(1), np.ones(1)).svg("a label")
    named = set(re.findall(r"var\(--(\w+), #[0-9a-f]{6}\)", picture))
    assert named == {"synthetic", "other", "quiet", "line"}
    assert not set(re.findall("#[0-9a-f]{6}", re.sub(r"var\([^)]*\)", "", picture)))
    style = (resources.files("sdv_privpgd.report") / "page.css").read_text()
    light, dark, *_, paper = style.split(":root {")[1:]
    assert "prefers-color-scheme: dark" in light
    assert all(f"--{name}: #" in part for name in named for part in (light, dark, paper))


def test_a_picture_leaves_what_others_draw_as_it_was():
    before = dict(mpl.rcParams)
    with mpl.rc_context({"font.size": 40, "axes.facecolor": "black", "svg.fonttype": "path"}):
        styled = bars(Names.plain(["a"]), [1.0]).svg("a label")
    assert styled == bars(Names.plain(["a"]), [1.0]).svg("a label")
    assert dict(mpl.rcParams) == before
    assert (
        "matplotlib.pyplot"
        not in subprocess.run(
            [sys.executable, "-c", _ALONE], check=True, capture_output=True, text=True
        ).stdout
    )


_ALONE = """
import sys
import numpy as np
from sdv_privpgd.columns.labels import Names
from sdv_privpgd.report.figures import Heat
names = Names.plain(["a"])
Heat(titles=("a", "b"), rows=names, columns=names, values=np.eye(1), largest=1.0).svg("it")
print(*sys.modules)
"""


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (0.0, "0 %"),
        (1e-9, "below 0.01 %"),
        (0.0123, "1.2 %"),
        (0.0999, "10 %"),
        (0.999, "nearly 100 %"),
        (1.7, "100 %"),
        (math.nan, "none"),
    ],
)
def test_shares_are_said_in_plain_words(part, words):
    assert share(part) == words


@pytest.mark.parametrize(
    ("value", "words", "short"),
    [
        (157_899.0, "157,899", "157.9k"),
        (1_234_567.891, "1,234,568", "1.235M"),
        (0.000123456, "0.000123456", "0.0001235"),
        (2_000, "2,000", "2000"),
        (-15.889533, "-15.8895", "-15.89"),
        (1.5e17, "1.5e+17", "1.5e+17"),
    ],
)
def test_numbers_are_written_without_exponents(value, words, short):
    assert number(value) == words
    assert short_number(value) == short


def test_ticks_are_where_cells_begin_and_dates_no_finer_than_they_need():
    columns = {
        "income": {"sdtype": "numerical", "range_min": 0, "range_max": 10**7, "num_bins": 4},
        "born": {"sdtype": "datetime", "range_min": "1920-01-01", "range_max": "2004-12-31"},
        "seen": {
            "sdtype": "datetime",
            "range_min": "01/02/2020",
            "range_max": "29/02/2020",
            "datetime_format": "%d/%m/%Y",
        },
    }
    income, born, seen = map(code_names, Schema.from_sdv(columns, num_bins=4).columns)
    assert income.ticks[:4] == ["0", "2.5M", "5M", "7.5M"]
    assert income.labels[0] == "0 – 2,500,000"
    assert born.ticks[:2] == ["1920", "1941"]
    assert seen.labels[0] == "01/02/2020 – 08/02/2020"
    assert seen.ticks[0] == "2020-02-01"


def test_colors_keep_the_order_of_the_values_and_blanks_stay_blank():
    values = [[0.0, 0.04, np.nan], [0.25, 0.09, 1.0]]
    picture = heat(values, Names.plain(["a", "b"]), Names.plain(["x", "y", "z"]))
    assert picture.numbers == (
        ("v \\ h", "x", "y", "z"),
        [("a", "0", "4", "–"), ("b", "25", "9", "100")],
    )
    (found, *_) = re.findall(r"data:image/png;base64,\s*([^\"]+)", picture.svg("a label"))
    pixels = np.asarray(Image.open(BytesIO(base64.b64decode(found))).convert("RGBA"), dtype=int)
    assert pixels.shape == (2, 3, 4)
    assert np.argwhere(pixels[..., 3] == 0).tolist() == [[0, 2]]
    light = pixels[..., :3].sum(axis=-1)
    assert light[0, 0] < light[0, 1] < light[1, 1] < light[1, 0] < light[1, 2]
