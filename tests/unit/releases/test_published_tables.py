"""Rows from published tables: labels, cells, noise, and what is said of them."""

from datetime import date

import numpy as np
import pandas as pd
import pytest
from made_up import made_up

from sdv_privpgd import (
    Between,
    Boolean,
    Categorical,
    Datetime,
    Numerical,
    Ordinal,
    PublicDomainError,
    fit_table,
    from_tables,
)
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.releases.tidy_tables import ColumnLabels

AGES = ["0-17", "18-64", "65-99"]
COLUMNS = {
    "age": Numerical(0, 99, decimal_places=0, cut_points=[18, 65]),
    "sex": Categorical(["F", "M"]),
}


def tables(**changes):
    rows = pd.DataFrame(
        {
            "column_1": "age",
            "label_1": AGES * 2,
            "column_2": "sex",
            "label_2": ["F"] * 3 + ["M"] * 3,
            "estimate": [110.0, 305, 120, 115, 290, 60],
            "stddev": 5.0,
        }
    )
    return rows.assign(**changes)


def made(source, columns=COLUMNS, **settings):
    return from_tables(source, columns, publisher="the census", engine="pgm", **settings)


def test_rows_follow_the_tables():
    found = made(tables(stddev=0.0))
    assert found.num_rows == 1000
    rows = found.sample(20_000)
    assert list(rows.columns) == ["age", "sex"]
    assert not rows.isna().any().any()  # no table names missing values
    assert rows["sex"].eq("F").mean() == pytest.approx(0.535, abs=0.02)
    assert rows["age"].between(18, 64).mean() == pytest.approx(0.595, abs=0.02)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_tables_come_from_files(tmp_path, ending):
    path = tmp_path / f"tables.{ending}"
    tables().to_parquet(path) if ending == "parquet" else tables().to_csv(path, index=False)
    one, two = made(path), made([path])
    assert one.sample(10).equals(two.sample(10))


@pytest.mark.parametrize("noise", ["stddev", "variance"])
def test_answers_rest_on_the_published_noise(noise):
    source = tables().drop(columns="stddev").assign(**{noise: 5 ** (1 + (noise == "variance"))})
    answer = made(source).answer("count", where={"age": Between(65, 99)})
    assert answer.estimate == pytest.approx(180)
    assert answer.stddev == pytest.approx(np.sqrt(2 * (25 + 1 / 12)), rel=1e-6)


def test_unequal_noise_and_tables_of_other_people_are_noticed():
    found = made(tables(stddev=[1.0, 9.0, 1, 1, 1, 1]))
    assert "The noise differs between the cells of age x sex" in found.warnings[0]
    measured = found.fitted.release.measurements[-1]
    assert measured.stddev == 9.0
    assert "1 to 9" in found.privacy_report()
    other = pd.DataFrame(
        {"column_1": "sex", "label_1": ["F", "M"], "estimate": [900, 800], "stddev": 5.0}
    )
    unlike = made([tables(), other.assign(estimate=[1600, 1400])])
    (said,) = unlike.warnings
    few = other.assign(estimate=[0.3, 0.5])  # noise of 5 rows is that of counts, and not of shares
    assert made(few, {"sex": COLUMNS["sex"]}).num_rows == 1
    assert "do not count the same rows" in said
    # The shares of such tables are used: a table of three times as many rows moves none.
    assert unlike.sample(20_000)["sex"].eq("F").mean() == pytest.approx(0.534, abs=0.02)
    assert made([tables(), other.assign(estimate=[530, 470])]).warnings == ()


def test_tables_that_contradict_each_other_are_noticed():
    other = pd.DataFrame({"column_1": "sex", "label_1": ["F", "M"], "estimate": [900, 100]})
    for noise in (0.0, 5.0):
        (said,) = made([tables(stddev=noise), other.assign(stddev=noise)]).warnings
        assert "explain it: age x sex, sex." in said
        assert "a compromise" in said
    assert made([tables(stddev=0.0), other.assign(stddev=100.0)]).warnings == ()


def test_what_is_published_alone_twice_or_not_at_all_is_taken_so():
    count = pd.DataFrame({"estimate": [1003.0], "stddev": [0.0]})
    assert made([count, tables()]).num_rows == 1003
    with pytest.raises(ValueError, match=r"No table has the columns \['ill'\]"):
        made(tables(), COLUMNS | {"ill": Boolean()})
    with pytest.raises(PublicDomainError):
        made(tables(), COLUMNS | {"sex": Categorical()})
    with pytest.raises(ValueError, match="publisher must name"):
        from_tables(tables(), COLUMNS, publisher="")
    twice = pd.concat([tables().assign(round=1), tables().assign(round=2)])
    answer = made(twice).answer("count", where={"sex": "F"})
    assert answer.stddev == pytest.approx(np.sqrt(3 * (25 + 1 / 12) / 2), rel=1e-6)


def test_the_guarantee_is_the_publisher_s():
    report = made(tables(stddev=0.0)).report()
    text = " ".join(str(report).split())
    assert "is for the census to say" in text
    assert "Exact, as far as is said: age x sex" in text
    assert "epsilon" not in text
    assert "for the census to say" in report.html()
    facts = report.to_dict()
    assert (facts["report"], facts["publisher"]) == ("published", "the census")
    assert "ledger" not in facts


@pytest.mark.parametrize("engine", ["pgm", "particles"])
def test_exact_tables_beside_noisy_ones_do_not_drown_them(engine):
    rng = np.random.default_rng(0)
    first = rng.integers(0, 4, 4000)
    rows = pd.DataFrame({"a": first, "b": (first + rng.integers(0, 2, 4000)) % 5})
    pairs = pd.crosstab(rows["a"], rows["b"]).stack().rename("estimate").reset_index()
    pairs = pairs.rename(columns={"a": "label_1", "b": "label_2"})
    single = rows["a"].value_counts().rename("estimate").rename_axis("label_1").reset_index()
    found = from_tables(
        [
            pairs.assign(column_1="a", column_2="b", stddev=np.sqrt(pairs["estimate"] + 1)),
            single.assign(column_1="a", stddev=0.0),
        ],
        {"a": Ordinal(list(range(4))), "b": Ordinal(list(range(5)))},
        publisher="the census",
        engine=engine,
    )
    sampled = found.sample(4000)
    tables = [pd.crosstab(each["a"], each["b"]).to_numpy() for each in (sampled, rows)]
    assert np.abs(tables[0] - tables[1]).sum() / 4000 < 0.1
    stddev = found.answer("count", where={"a": 1}).stddev
    assert stddev < 0.01


def test_our_own_noisy_tables_are_such_tables(tmp_path):
    """What one fit has published another model is made of, triples over groups included."""
    private = made_up(3_000, ward="ABCDEF", age=(0, 100), seen=(0, 900), ill=0.3)
    private["seen"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(private["seen"], "D")
    private.loc[:50, "age"] = np.nan
    columns = {
        "ward": Categorical(list("ABCDEF")),
        "age": Numerical(0, 99, decimal_places=0),
        "seen": Datetime(date(2020, 1, 1), date(2022, 12, 31)),
        "ill": Boolean(),
    }
    fitted = fit_table(private, columns, 3.0, discovery_share=0, method="privpgd+pgm")
    path = tmp_path / "tables.parquet"
    fitted.noisy_tables(path)
    found = from_tables(path, columns, publisher="us", engine="pgm")
    theirs, ours = (each.fitted.release.measurements for each in (found, fitted))
    assert len(theirs) == len(ours)
    for one, two in zip(theirs, ours, strict=True):
        assert type(one.query) is type(two.query)
        np.testing.assert_allclose(one.answer, two.answer)
        assert one.stddev == pytest.approx(two.stddev, rel=0.01)


WARDS = {
    "ward": Categorical([str(ward) for ward in range(6)]),
    "drug": Categorical([str(drug) for drug in range(8)]),
}


@pytest.fixture(scope="module")
def people():
    """A table of 48 cells, of which a third hold fewer than ten rows."""
    rng = np.random.default_rng(0)
    ward = rng.choice(6, 4_000, p=[0.4, 0.3, 0.15, 0.1, 0.04, 0.01])
    drug = (ward + rng.geometric(0.5, 4_000)) % 8
    return pd.DataFrame({"ward": ward.astype(str), "drug": drug.astype(str)})


def counted(people, *names):
    """The exact table of some columns, with all its cells."""
    found = people.groupby(list(names)).size()
    cells = pd.MultiIndex.from_product(
        [WARDS[name]["range_values"] for name in names],
        names=[f"label_{place}" for place, _ in enumerate(names, start=1)],
    )
    found = found.reindex(cells if len(names) > 1 else cells.get_level_values(0), fill_value=0)
    rows = found.rename("estimate").rename_axis(cells.names).reset_index()
    return rows.assign(**{f"column_{place}": name for place, name in enumerate(names, start=1)})


def off(found, people, *names):
    """The share of rows that would have to change cells in a table of the sampled rows."""
    rows = found.sample(20_000)
    theirs, ours = (each.value_counts(list(names), normalize=True) for each in (people, rows))
    return float(theirs.sub(ours, fill_value=0).abs().sum() / 2)


def suppressed(pairs, how):
    is_small = pairs["estimate"] < 10
    if how == "absent":
        return pairs[~is_small]
    marked = pairs["estimate"].astype(object)
    return pairs.assign(estimate=marked.mask(is_small, {"empty": None}.get(how, how)))


@pytest.mark.parametrize("how", ["absent", "empty", "*", "<10"])
def test_rows_keep_the_margins_of_a_table_whose_small_cells_were_suppressed(people, how):
    pairs = suppressed(counted(people, "ward", "drug"), how)
    told = [pairs, counted(people, "ward"), counted(people, "drug")]
    found = from_tables(
        told, WARDS, publisher="the census", suppressed_below=10, engine="particles"
    )
    assert found.num_rows == 4_000
    assert max(off(found, people, "ward"), off(found, people, "drug")) < 0.002
    assert off(found, people, "ward", "drug") < 0.02
    pair = found.tables[0]
    assert (pair.num_cells, pair.least) == (48, 0.0)
    assert pair.largest == pytest.approx(np.std(np.arange(10)))


def test_a_suppressed_count_is_any_that_is_below(people):
    pairs = counted(people, "ward", "drug")
    small = pairs["estimate"] < 10
    # The interval of each holds it, and no other count is widened by rounding.
    found = made(suppressed(pairs, "*"), WARDS, suppressed_below=10)
    measured = found.fitted.release.measurements[-1].answer.ravel()
    assert set(measured[small]) == {4.5}
    np.testing.assert_array_equal(measured[~small], pairs["estimate"][~small])
    # Nothing is below 1 but 0: absent cells are empty.
    empty = made(pairs[pairs["estimate"] > 0], WARDS, suppressed_below=1)
    np.testing.assert_array_equal(
        empty.fitted.release.measurements[-1].answer.ravel(), pairs["estimate"]
    )
    assert empty.tables[0].largest == 0


def test_a_rounded_count_has_the_noise_of_its_rounding(people):
    pairs = counted(people, "ward", "drug")
    rounded = pairs.assign(estimate=(pairs["estimate"] / 10).round() * 10)
    found = made(rounded, WARDS, rounded_to=10)
    assert found.tables[0].largest == pytest.approx(10 / np.sqrt(12))
    assert off(found, people, "ward") < 0.03
    counts = found.answer("table", of="ward")
    held = counts.interval("table", 0.999)
    true = counted(people, "ward")["estimate"].to_numpy()
    assert ((held["low"].to_numpy() <= true) & (true <= held["high"].to_numpy())).all()
    noisy = made(rounded.assign(stddev=3.0), WARDS, rounded_to=10)
    assert noisy.tables[0].largest == pytest.approx(np.sqrt(9 + 100 / 12))


@pytest.mark.parametrize("sign", [" %", "%", None, "shares"])
def test_per_cents_are_recognized_and_their_number_of_rows_is_asked_for(people, sign):
    pairs = counted(people, "ward", "drug")
    told = (100 * pairs["estimate"] / 4_000).round(1)
    if sign == "shares":
        told = pairs.assign(estimate=told / 100)
    else:
        told = pairs.assign(estimate=told if sign is None else told.map(lambda x: f"{x}{sign}"))
    with pytest.raises(ValueError, match=r"ward x drug is in (per cents|shares).*total=\.\.\."):
        made(told, WARDS)
    found = made(told, WARDS, total=4_000)
    assert found.num_rows == 4_000
    assert found.tables[0].largest == pytest.approx(4 / np.sqrt(12))
    assert off(found, people, "ward", "drug") < 0.03


@pytest.mark.parametrize(
    ("source", "how", "told"),
    [
        (tables(estimate="*"), {}, r"suppressed_below=\.\.\."),
        (tables(estimate=np.nan), {"rounded_to": 5}, r"suppressed_below=\.\.\."),
        (tables().iloc[:5], {"rounded_to": 5}, r"lacks 1 of 6 cells.*suppressed_below"),
        (tables(estimate=[110, 305, 120, 115, 290, 62]), {"rounded_to": 5}, "no multiples of 5"),
        (tables(), {"total": 100}, "no table is in per cents"),
        (tables(), {"suppressed_below": 0}, "suppressed_below must"),
        (tables(), {"rounded_to": 2.5}, "rounded_to must"),
        (tables().drop(columns="stddev"), {}, "for the noise of each count"),
        (tables().drop(columns="estimate"), {}, "need a column 'estimate'"),
        (tables().drop(columns="label_2"), {}, "need a label_2"),
        (tables(stddev=-1.0), {}, "cannot be negative"),
        (tables(stddev=np.nan), {}, "missing or infinite"),
        (tables(estimate=-1, stddev=0.0), {}, "counts below 0 that are said to be exact"),
        (tables(estimate="many"), {}, "must hold numbers.*got 'many'"),
        (tables(estimate="< 20"), {"suppressed_below": 10}, "are '<20', and suppressed_below"),
        (tables(label_2="X"), {}, "'sex' has no cell 'X'. Its cells are F, M"),
        (tables().iloc[:5], {}, "lacks 1 of 6 cells"),
        (tables().iloc[:3], {}, r"lacks the cells \['M'\] of 'sex'"),
        (pd.concat([tables(), tables().iloc[:1]]), {}, "1 cells twice"),
        (tables(label_1=["0-64", "65-99", "65-99"] * 2).iloc[[0, 1, 3, 4]], {}, "coarser cells"),
        (tables(label_1=["0-64", "18-64", "65-99"] * 2), {}, "overlap"),
        (tables(column_2="wage"), {}, r"\['wage'\], which are not declared"),
        (tables().iloc[:0], {}, "no tables"),
        ("tables.xlsx", {}, r"\.parquet or \.csv"),
    ],
)
def test_what_is_no_table_and_what_publishers_cannot_have_done_is_told(source, how, told):
    with pytest.raises(ValueError, match=told):
        made(source, **how)


@pytest.mark.parametrize(
    ("facts", "label", "codes"),
    [
        ({"sdtype": "boolean"}, True, (1,)),
        ({"sdtype": "boolean"}, "False", (0,)),
        ({"sdtype": "boolean"}, None, (2,)),
        ({"sdtype": "boolean"}, "(missing)", (2,)),
        ({"sdtype": "ordinal", "range_values": [17.5, 22]}, "22.0", (1,)),
        ({"sdtype": "ordinal", "range_values": [17.5, 22]}, 22.0, (1,)),
        ({"sdtype": "categorical", "range_values": ["01", "1"]}, "01", (0,)),
        ({"sdtype": "categorical", "range_values": ["A", "B", "C"]}, "A and 2 others", (0, 1, 2)),
        ({"sdtype": "categorical", "range_values": ["a-b", "c to d"]}, "c to d", (1,)),
        ({"sdtype": "numerical", "range_min": -9, "range_max": 9, "cut_points": [0]}, "-9-0",
         (0,)),
        ({"sdtype": "numerical", "range_min": 0, "range_max": 9999, "decimal_places": 0,
          "cut_points": [1000]}, "1,000-9,999", (1,)),
        ({"sdtype": "numerical", "range_min": 0, "range_max": 9, "decimal_places": 0,
          "cut_points": [1, 5]}, 0, (0,)),
        ({"sdtype": "numerical", "range_min": 0, "range_max": 9, "decimal_places": 0,
          "cut_points": [1, 5]}, "1 to 9 or (missing)", (1, 2, 3)),
    ],
)  # fmt: skip
def test_labels_name_codes(facts, label, codes):
    (column,) = Schema.from_sdv({"it": facts}).columns
    assert ColumnLabels(column).codes(label) == codes
