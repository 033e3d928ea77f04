"""The page that is not private compares with the real table, and says so."""

import numpy as np
import pandas as pd
import pytest
from pages import BREAKOUT, COLUMNS, EVIL, Reader

from sdv_privpgd.report.evaluation import evaluate


def rows_of(num_rows=300, seed=0):
    rng = np.random.default_rng(seed)
    categories = np.array(["a&b", BREAKOUT, "<b>c</b>", None], dtype=object)
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 366, num_rows), unit="D")
    return pd.DataFrame(
        {
            EVIL: rng.choice(categories, num_rows),
            "age": rng.integers(18, 68, num_rows),
            "balance": rng.uniform(-1, 1, num_rows).round(2),
            "weight": rng.uniform(0.5, 8.5, num_rows),
            "seen": pd.Series(days).dt.strftime("%Y-%m-%d"),
            "smoker": rng.random(num_rows) < 0.3,
        }
    )


METADATA = {"tables": {"people": {"columns": COLUMNS}}}


def test_a_table_compared_with_itself_is_perfect_and_others_differ_by_half_of_l1(tmp_path):
    table = rows_of()
    found = evaluate(table, {"people": table}, METADATA, path=tmp_path / "page.html")
    assert set(found.columns.values()) == {0.0}
    assert set(found.pairs.values()) == {0.0}
    assert set(found.scores.values()) == {0.0}
    assert found.quality == 1.0
    synthetic = rows_of()
    synthetic["smoker"] = True
    found = evaluate(synthetic, rows_of(), METADATA, path=tmp_path / "page.html")
    assert found.columns["smoker"] == pytest.approx((~rows_of()["smoker"]).mean(), rel=1e-12)
    assert {name for name, value in found.columns.items() if value} == {"smoker"}
    assert found.pairs["age", "smoker"] == pytest.approx(found.columns["smoker"], rel=1e-12)


def test_the_page_that_is_not_private_says_so_wherever_it_is_scrolled_to(tmp_path):
    found = evaluate(rows_of(seed=1), rows_of(), METADATA, path=tmp_path / "page.html")
    html = found.path.read_text(encoding="utf-8")
    page = Reader(html)
    assert "NOT PRIVATE" in page.text
    assert "position: sticky" in html[html.index(".banner {") :].split("}")[0]
    assert page.tags.count("svg") == page.tags.count("figure") > 0
    assert "script" not in page.tags
    assert "img" not in page.tags
    assert page.handlers == []


def test_errors_say_what_is_missing(tmp_path):
    path = tmp_path / "page.html"
    with pytest.raises(ValueError, match="metadata is needed"):
        evaluate(rows_of(), rows_of(), path=path)
    with pytest.raises(ValueError, match=r"columns \['age'\] of the metadata are missing"):
        evaluate(rows_of().drop(columns="age"), rows_of(), METADATA, path=path)
    with pytest.raises(ValueError, match="at least one row"):
        evaluate(rows_of().head(0), rows_of(), METADATA, path=path)
    assert not path.exists()


def test_rows_are_judged_beside_fresh_real_ones(tmp_path):
    rng = np.random.default_rng(0)
    age = rng.integers(18, 68, 3_000)
    real = rows_of(3_000).assign(age=age, smoker=rng.random(3_000) < (age - 18) / 50)
    useless = real.assign(smoker=~real["smoker"])
    found = evaluate(useless, real, METADATA, label="smoker", path=tmp_path / "page.html")
    ours, fresh = found.usefulness["synthetic"], found.usefulness["real"]
    assert fresh["auroc"] > 0.7 > 0.6 > ours["auroc"]
    assert 0 < fresh["tv2"] < ours["tv2"]
    assert ours["pmse"] > fresh["pmse"]
    assert ours["tail"] == pytest.approx(fresh["tail"], abs=0.1)
    assert found.to_dict()["usefulness"]["real"]["auroc"] == fresh["auroc"]
    assert "fresh real" in found.text
    assert "What the rows are good for" in Reader(found.path.read_text(encoding="utf-8")).text


def test_held_out_rows_judge_and_few_rows_do_not():
    rng = np.random.default_rng(0)
    real = rows_of(400).assign(smoker=rng.random(400) < 0.5)
    other = rows_of(2_000).assign(age=lambda rows: np.where(rows["smoker"], 60, 20))
    found = evaluate(other.head(400), real, METADATA, label="smoker", held_out=other)
    assert found.usefulness["synthetic"]["auroc"] == 1.0
    assert found.usefulness["real"]["auroc"] < 0.9
    assert evaluate(rows_of(40), rows_of(40), METADATA).usefulness == {}
    with pytest.raises(ValueError, match=r"label must be one of the columns .*, got 'income'"):
        evaluate(rows_of(), rows_of(), METADATA, label="income")
