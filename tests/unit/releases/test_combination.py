"""One model of several sites: what it promises, and what cannot be put together."""

import pickle
from dataclasses import replace
from datetime import date
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from answers import answered, number_of_rows
from made_up import made_up

from sdv_privpgd import (
    Boolean,
    Categorical,
    Datetime,
    DomainMismatchError,
    Numerical,
    People,
    PublicDomainError,
    combine,
    measure,
)
from sdv_privpgd.base.domain import Domain, Grouping
from sdv_privpgd.estimate.noisy_tables import noisy_tables
from sdv_privpgd.inference.linear import LinearEstimate
from sdv_privpgd.methods import PrivPGD
from sdv_privpgd.privacy.queries import MarginalQuery, Measurement, QuadrantQuery
from sdv_privpgd.releases.combination import pooled
from sdv_privpgd.releases.site import seen, with_cells

COLUMNS = {"ward": Categorical(["A", "B"]), "age": Numerical(0, 99, decimal_places=0, num_bins=6)}


def table(num_rows=900, seed=0, share=0.5):
    rows = made_up(num_rows, seed, ward=share, age=(0, 100))
    return rows.assign(ward=np.where(rows["ward"], "A", "B"))


def released(site, *, epsilon=2.0, columns=COLUMNS, **settings):
    private = table(seed=len(site))
    try:
        return measure(private, columns, epsilon, site=site, **settings)
    except DomainMismatchError as error:  # a site may rightly lack what others have
        return error.resume(private)


NORTH, SOUTH = released("North"), released("South", epsilon=1.0)


def test_the_sum_of_all_rows_is_modelled(tmp_path):
    parts = {"North": table(4000, share=0.9), "South": table(1000, seed=1, share=0.1)}
    paths = [
        measure(part, COLUMNS, 5.0, site=name).save(tmp_path / f"{name}.zip")
        for name, part in parts.items()
    ]
    combined = combine(paths, engine="pgm")
    assert combined.num_rows == 5000
    assert combined.sample(2000)["ward"].eq("A").mean() == pytest.approx(0.74, abs=0.05)
    answer = combined.answer("share", where={"ward": "A"})
    low, high = answer.interval("table", level=0.999999)
    truth = pd.concat(parts.values())["ward"].eq("A").mean()
    assert low < truth < high
    assert [site.name for site in combined.sites] == ["North", "South"]


def test_everybody_has_the_epsilon_of_the_holders_that_they_are_at():
    combined = combine([NORTH, SOUTH], engine="pgm")
    assert combined.epsilon("North") == pytest.approx(2.0, abs=1e-9)
    assert combined.epsilon("South") == pytest.approx(1.0, abs=1e-9)
    assert combined.epsilon() == combined.epsilon("North")
    # In mu^2 two ledgers add up as two fits of one table do.
    together = NORTH.ledger.followed_by(SOUTH.ledger).spent()
    assert combined.epsilon("North", "South") == pytest.approx(together, abs=1e-9)
    with pytest.raises(ValueError, match="No site is called"):
        combined.epsilon("West")
    asked = {"adjacency": "add_remove", "people": People(max_rows=2)}
    other = released("East", epsilon=1.0, delta=1e-3, **asked)
    first = released("South", delta=1e-9, adjacency="add_remove")
    facts = combine([first, other], engine="pgm").about_rows()  # it holds at each site
    assert facts["epsilon"] == first.ledger.spent()
    assert facts["delta"] == 1e-3
    assert facts["unit"] == "one row, not one person or up to 2 rows of one person"


def test_the_report_says_what_is_promised_to_whom():
    combined = combine([NORTH, SOUTH], engine="pgm")
    report = combined.report()
    text, page = str(report), report.html()
    assert "Whoever has rows at one site alone is protected by" in page
    for said in ("at most 2 at its", f"epsilon {combined.epsilon('North', 'South'):.4g}"):
        assert said in " ".join(text.split())
        assert said in page
    facts = report.to_dict()
    assert [site["site"] for site in facts["sites"]] == ["North", "South"]
    assert facts["epsilon_at_all_sites"] == combined.epsilon("North", "South")
    assert combined.privacy_report() == text


def test_it_can_be_kept_and_repeats_itself():
    combined = combine([NORTH, SOUTH], engine="pgm", seed=3)
    again = pickle.loads(pickle.dumps(combined))
    assert again.sample(20).equals(combine([NORTH, SOUTH], engine="pgm", seed=3).sample(20))
    found = combined.bootstrap(lambda rows: rows["ward"].eq("A").mean(), 3, num_processes=1)
    assert 0 < found.estimate < 1


def test_private_numbers_of_rows_add_up_with_their_noise():
    releases = [released(name, adjacency="add_remove", delta=1e-5) for name in ("North", "South")]
    combined = combine(releases, engine="pgm")
    assert combined.num_rows == pytest.approx(1800, abs=300)
    assert "±" in combined.privacy_report()


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (released("South", columns={"ward": COLUMNS["ward"]}), r"other columns: \['age'\]"),
        (
            released("South", columns=COLUMNS | {"ward": Categorical(["A", "C"])}),
            r"other values of \['ward'\]",
        ),
        (
            released("South", adjacency="add_remove", delta=1e-5),
            "'replace_one' and 'South' under 'add_remove'",
        ),
        (released("North"), "'North' is there twice"),
        (replace(NORTH, site="Copy"), r"is there as \['North', 'Copy'\]"),
        (released("South", method="mst+particles"), None),
    ],
)
def test_what_cannot_be_combined_is_told(other, told):
    if told is None:  # what only some have measured is left out, or used where it can be
        assert combine([NORTH, other], engine="pgm").num_rows == 1800
        return
    with pytest.raises(ValueError, match=told):
        combine([NORTH, other], engine="pgm")


def test_tables_that_not_all_have_measured_are_named():
    others = [released(name, method="independent") for name in ("South", "West")]
    with pytest.raises(ValueError, match="No table was measured by all"):
        combine([NORTH, others[0]], engine="pgm")
    three = {**COLUMNS, "ill": Boolean()}
    parts = [table().assign(ill=True), table().assign(ill=table()["ward"].eq("A"))]
    found = [
        measure(part, three, 5.0, site=str(place), method="mst+particles")
        for place, part in enumerate(parts)
    ]
    combined = combine(found, engine="pgm")
    cliques = [set(each.query.clique) for each in combined.fitted.release.measurements[1:]]
    pairs = [
        {each.query.clique for each in one.answers[1:] if len(each.query.clique) == 2}
        for one in found
    ]
    lost = pairs[0] ^ pairs[1]
    assert [clique for clique in cliques if clique in lost] == []
    assert bool(lost) == any("left out" in said for said in combined.warnings)


def test_sites_that_bring_more_noise_than_rows_are_named():
    large = measure(table(9_000), COLUMNS, 2.0, site="large")
    few = [measure(table(100), COLUMNS, 0.2, site=name) for name in ("few", "fewer")]
    for those, named in (([large, *few], "'few', 'fewer'"), (few, None), ([large, NORTH], None)):
        said = [each for each in combine(those, engine="pgm").warnings if "Most of the n" in each]
        assert [named in each for each in said] == [True] * (named is not None)


def test_columns_may_be_in_another_order_at_each_site():
    north, south = NORTH, released("South", columns=dict(reversed(COLUMNS.items())))
    sums = pooled(north.domain, [north.answers, south.answers])
    assert sums.left_out == ()
    (pair,) = [each for each in sums.measurements if each.query == MarginalQuery(("ward", "age"))]
    own, other = (noisy_tables(each.domain, each.answers) for each in (north, south))
    expected = own["ward", "age"].counts + other["age", "ward"].counts.T
    np.testing.assert_array_equal(pair.answer, expected)
    assert combine([north, south], engine="pgm").sample(3).columns.tolist() == ["ward", "age"]


@pytest.mark.parametrize("method", ["privpgd", PrivPGD(triples=Fraction(0))])
def test_the_quadrants_of_holders_with_few_rows_add_up(method):
    rng, known = np.random.default_rng(0), Numerical(0, 99, decimal_places=0, nullable=False)
    columns = dict.fromkeys("xyz", known)
    parts = [pd.DataFrame(rng.integers(0, high, (300, 3)), columns=[*"xyz"]) for high in (50, 100)]
    combined = combine(
        [
            measure(part, {n: columns[n] for n in names}, 1.0, site=names, method=method)
            for part, names in zip(parts, ("xyz", "zxy"), strict=True)
        ],
        engine="pgm",
    )
    asked = [each.query for each in combined.fitted.release.measurements]
    assert sum(isinstance(query, QuadrantQuery) for query in asked) == 3
    assert not any("left out" in said for said in combined.warnings)


@pytest.mark.parametrize("releases", [[], iter([]), "north.zip", NORTH, [3]])
def test_other_things_than_releases_are_refused(releases):
    with pytest.raises(ValueError, match="combine takes"):
        combine(releases)


def test_dtypes_have_no_say_and_the_engine_may_not_ask_for_more():
    from sdv_privpgd.methods import ParticleGradientDescent, ProtectedThreshold

    penalty = ProtectedThreshold({"age": 1.0}, b=0.2, weight=0.1)
    with pytest.raises(ValueError, match="protects a statistic"):
        combine([NORTH], engine=ParticleGradientDescent(penalties=(penalty,)))
    plain, typed = table(), table().astype({"ward": "category", "age": "Int16"})
    releases = [measure(plain, COLUMNS, 1.0, site="a"), measure(typed, COLUMNS, 1.0, site="b")]
    assert combine(releases, engine="pgm").num_rows == 1800


def test_rows_come_back_in_the_dtypes_that_all_holders_have(tmp_path):
    days = pd.Series(pd.to_datetime(["2020-03-05"] * 900)).dt.tz_localize("Asia/Tokyo")
    own = {"age": Numerical(Decimal("0"), Decimal("99"), decimal_places=0)}
    columns = {**COLUMNS, **own, "day": Datetime(date(2020, 3, 1), date(2020, 3, 9))}
    typed = table().astype({"ward": "string"}).assign(day=days)
    other = typed.assign(day=days.dt.tz_localize(None))
    one = measure(typed, columns, 20.0, site="a").save(tmp_path / "one.zip")
    alike, unlike = (measure(each, columns, 20.0, site="b") for each in (typed, other))
    rows = combine([one, alike], engine="pgm").sample(200)
    assert [str(rows[name].dtype) for name in ("ward", "day")] == ["string", str(days.dtype)]
    assert {type(age) for age in rows["age"].dropna()} == {Decimal}
    assert rows["day"].mode().tolist() == [days[0]]
    mixed = combine([one, unlike], engine="pgm")
    assert mixed.sample(200)["day"].mode().tolist() == [pd.Timestamp("2020-03-05")]
    # Each site was told before it measured what whoever combines cannot change.
    assert not any("counted in days" in said for said in mixed.warnings)


@pytest.mark.parametrize(
    ("change", "error", "told"),
    [
        ({"site": " "}, ValueError, "site must name"),
        ({"columns": {"ward": Categorical()}}, PublicDomainError, "declare the same domain"),
        ({"columns": {}}, ValueError, "no column"),
        ({"columns": {"wage": Boolean()}}, ValueError, "missing in the data"),
        ({"table": table(0)}, ValueError, "no rows"),
        ({"table": "table.csv"}, ValueError, "There is no file"),
        ({"epsilon": -1.0}, ValueError, "epsilon"),
        ({"columns": {"ward": {"range_values": ["A"]}}}, ValueError, "sdtype"),
    ],
)
def test_what_cannot_be_measured_is_told_before_a_row_is_read(change, error, told):
    asked = {"table": table(), "columns": COLUMNS, "epsilon": 1.0, "site": "North", **change}
    with pytest.raises(error, match=told):
        measure(**asked)


DOMAIN = Domain(("a", "b", "c"), (2, 3, 4))


def answer(clique, stddev, seed=0):
    rng = np.random.default_rng(seed)
    return answered(clique, rng.integers(0, 100, DOMAIN.shape(clique)), stddev)


def test_repeated_or_turned_tables_count_once():
    first, second = answer(("a",), 2.0, seed=1), answer(("a",), 2.0, seed=2)
    other = answer(("a",), 3.0, seed=3)
    (found,) = pooled(DOMAIN, [[first, second], [other]]).measurements
    np.testing.assert_allclose(found.answer, (first.answer + second.answer) / 2 + other.answer)
    assert found.stddev == pytest.approx(np.sqrt(2.0 + 9.0))
    straight, turned = answer(("a", "b"), 1.0), answer(("b", "a"), 1.0, seed=4)
    (found,) = pooled(DOMAIN, [[straight], [turned]]).measurements
    assert found.query == MarginalQuery(("a", "b"))
    np.testing.assert_array_equal(found.answer, straight.answer + turned.answer.T)


def test_what_one_has_measured_within_a_common_table_helps_its_own_part():
    pair, single, other = answer(("a", "b"), 5.0), answer(("a",), 0.5), answer(("a", "b"), 5.0, 7)
    found = pooled(DOMAIN, [[pair, single], [other]])
    assert found.left_out == ()
    (summed,) = found.measurements
    best = LinearEstimate(DOMAIN, [pair, single]).table(("a", "b"))[0]
    np.testing.assert_allclose(summed.answer, best + other.answer)
    # The precise counts of a decide its margin.
    np.testing.assert_allclose(
        summed.answer.sum(axis=1), single.answer + other.answer.sum(axis=1), atol=2
    )
    assert summed.stddev == pytest.approx(5.0 * np.sqrt(2))


def test_the_said_noise_is_never_too_small_where_a_holder_s_tables_help_each_other():
    """The estimate's exact variance of any cell is at most that of the table itself."""
    measured = [answer(("a", "b"), 5.0), answer(("b", "c"), 4.0), answer(("b",), 1.0)]
    linear = LinearEstimate(DOMAIN, measured)
    for clique, stddev in ((("a", "b"), 5.0), (("b", "c"), 4.0)):
        variances = linear.table(clique)[1]
        assert (variances <= stddev**2 + 1 / 12).all()  # rounding included


def test_only_what_all_have_measured_adds_up():
    found = pooled(DOMAIN, [[answer(("a",), 1.0), answer(("b", "c"), 1.0)], [answer(("a",), 1.0)]])
    assert found.left_out == (MarginalQuery(("b", "c")),)
    assert [each.query for each in found.measurements] == [MarginalQuery(("a",))]
    count, one = number_of_rows(100, 3.0), answer(("a",), 1.0)
    both = pooled(DOMAIN, [[count, one], [count, one]]).measurements[0]
    assert (both.answer.tolist(), both.stddev) == ([200], pytest.approx(np.sqrt(18)))
    assert len(pooled(DOMAIN, [[count, one], [one]]).measurements) == 1


def test_groups_add_up_only_if_they_are_the_same():
    grouping = Grouping.of({"c": np.array([0, 0, 1, 1])})
    other = Grouping.of({"c": np.array([0, 1, 1, 1])})

    def over(groups):
        return [answer(("a",), 1.0), answered("c", [10, 20], grouping=groups)]

    found = pooled(DOMAIN, [over(grouping), over(grouping)])
    assert found.measurements[-1].answer.tolist() == [20, 40]
    unlike = pooled(DOMAIN, [over(grouping), over(other)]).left_out
    assert [each.clique for each in unlike] == [("c",), ("c",)]


def cuts(num_bins=None, **words):
    return with_cells({"x": {"sdtype": "numerical", **words}}, num_bins)["x"].get("cut_points", [])


@pytest.mark.parametrize(
    "words",
    [
        {"range_min": 0, "range_max": 31, "decimal_places": 0},
        {"range_min": 1_000, "range_max": 1_000.31, "decimal_places": 2},
        {"range_min": 0, "range_max": 10**6, "decimal_places": 2, "cut_points": [10, 100]},
        {"range_min": -3, "range_max": 3, "decimal_places": 0},
    ],
)
def test_cells_that_are_declared_or_of_one_number_each_stay(words):
    assert cuts(**words) == words.get("cut_points", [])


@pytest.mark.parametrize(
    ("low", "high", "places", "alone"),
    [(0, 120, 0, {1, 120}), (-5, 5, 1, {-4.9, 0, 0.1, 5}), (1_000, 5_000, 2, {1_000.01, 5_000})],
)
def test_zero_and_both_ends_have_cells_beside_equal_ones(low, high, places, alone):
    found = cuts(range_min=low, range_max=high, decimal_places=places)
    assert alone <= set(found)
    assert len(found) <= 31 + len(alone)
    assert max(np.diff([low, *found, high])) < (high - low) / 31


@pytest.mark.parametrize(
    ("column", "written"),
    [
        (Numerical(0, 2_000, decimal_places=0), lambda places: places),
        (
            Datetime(date(1970, 1, 1), date(1975, 6, 24)),
            lambda days: pd.to_datetime(days, unit="D"),
        ),
    ],
    ids=["numbers", "dates"],
)
def test_rows_at_the_end_of_a_range_stay_there_in_rows_of_sites(column, written):
    """A third of the sums is the largest that can be paid; without a cell for it few rows were."""
    sums = np.minimum(np.random.default_rng(0).integers(0, 3_000, 4_000), 2_000)
    last = written(np.array([2_000]))[0]
    sites = [
        measure(pd.DataFrame({"x": written(half)}), {"x": column}, epsilon=2.0, site=name)
        for half, name in zip(np.split(sums, 2), "AB", strict=True)
    ]
    rows = combine(sites).sample(sums.size)["x"]
    assert (rows == last).mean() == pytest.approx((sums == 2_000).mean(), abs=0.04)


@pytest.mark.parametrize("places", [{}, {"decimal_places": 2}])
def test_a_wide_range_has_a_cell_for_zero_and_cells_that_grow(places):
    found = np.array(cuts(range_min=0, range_max=10**6, **places))
    assert found[0] <= 0.01
    assert len(found) == 33  # and one for 0, and one for the end
    growth = found[3:] / found[2:-1]
    np.testing.assert_allclose(growth, growth[0])


def test_sums_of_money_of_two_sites_keep_their_zeros_and_their_mean():
    rng, size = np.random.default_rng(0), 4_000
    money = np.where(rng.random(size) < 0.3, 0, (300 * np.exp(rng.normal(0, 1.2, size))).round(2))
    columns = {"x": Numerical(0, 1_000_000, decimal_places=2)}
    halves = np.split(money, 2)
    sites = [
        measure(pd.DataFrame({"x": half}), columns, epsilon=2.0, site=name)
        for half, name in zip(halves, "AB", strict=True)
    ]
    rows = combine(sites).sample(size)["x"]
    assert (rows == 0).mean() == pytest.approx((money == 0).mean(), abs=0.02)
    assert rows.median() == pytest.approx(np.median(money), rel=0.1)
    # Noise puts a few rows among the largest amounts, at times.
    means = [each[each <= np.quantile(each, 0.995)].mean() for each in (rows.to_numpy(), money)]
    assert means[0] == pytest.approx(means[1], rel=0.3)


def test_cells_of_money_grow_from_zero_in_both_directions():
    found = np.array(cuts(range_min=-(10**6), range_max=10**6, decimal_places=2))
    assert {0, 0.01} <= set(found)
    assert len(found) == 34
    below, above = -found[found < 0][::-1], found[found > 0.01]
    np.testing.assert_allclose(below, above)
    np.testing.assert_allclose(np.diff(np.log(above)), np.log(above[1] / above[0]))
    for low, high in ((-1, 10**6), (-1_000, 1_000)):
        assert {0, 0.01} <= set(cuts(range_min=low, range_max=high, decimal_places=2))


def test_noise_far_out_in_a_wide_range_is_no_row():
    money = {"cost": Numerical(0, 10**6, decimal_places=0)}
    costs = pd.DataFrame({"cost": range(900)})
    schema = measure(costs, money, 2.0, site="North").description.attributes
    (column,) = schema.columns
    rows = np.zeros(column.size, dtype=np.int64)
    rows[:10] = 400
    rows[10:-1] = np.resize([8, -9, 14, -11], column.size - 11)  # noise
    answer = Measurement(query=MarginalQuery(("cost",)), answer=rows, stddev=10.0)
    (may,) = seen(schema, [answer]).values()
    assert list(np.flatnonzero(~may)) == list(range(12, column.num_values))
