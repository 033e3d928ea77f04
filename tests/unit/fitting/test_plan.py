"""What a plan foretells of errors is what fits find, and follows from public facts alone."""

import math
import re
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from sdv_privpgd import Boolean, plan_table
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.fates import least_rows
from sdv_privpgd.fitting.fit import Fit
from sdv_privpgd.fitting.plan import expected_errors, planned
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.inference.linear import LinearEstimate
from sdv_privpgd.methods import (
    AIM,
    MST,
    AllKWay,
    Independent,
    ParticleGradientDescent,
    PrivatePGM,
    PrivPGD,
    RelaxedProjection,
)
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.queries import Adjacency, GroupedMarginalQuery
from sdv_privpgd.report.about import CONFIDENT
from sdv_privpgd.report.page import as_text
from sdv_privpgd.report.plan import expected_section, of_rows

QUICK_AIM = AIM(rounds_per_attribute=1, engine="particles")

SIZES = {"ward": 9, "sex": 2, "age": 12, "job": 5, "ill": 3}


def categories(sizes):
    return {
        name: {
            "sdtype": "categorical",
            "range_values": [str(code) for code in range(size)],
            "range_is_nullable": False,
        }
        for name, size in sizes.items()
    }


def described(facts, **given):
    columns = {name: {"sdtype": own["sdtype"]} for name, own in facts.items()}
    domain = {name: {k: v for k, v in own.items() if k != "sdtype"} for name, own in facts.items()}
    return Description.of(columns, domain, **given)


def settings_of(epsilon=1.0, method="privpgd", **given):
    return Settings(epsilon=epsilon, method=method, **given)


def in_a_line(text):
    return " ".join(text.split())


def told(expected):
    return in_a_line(as_text([expected_section(expected)]))


def foretold(settings, description, num_rows):
    """The expected of a plan."""
    fit = Fit(settings, description)
    missing = pd.Series([None] * num_rows, dtype=object)
    fit.discover(PrivateTable(dict.fromkeys(description.columns, missing)))
    return expected_errors(settings, fit.description, fit.shared.ledger, num_rows)


def found(settings, description, table, fits=5):
    """The mean exact errors of fits, as the expected has them, over their own questions."""
    each = [found_once(settings, description, table) for _ in range(fits)]
    columns = {name: np.mean([own[name] for own, _ in each]) for name in each[0][0]}
    return columns, np.mean([pair for _, pair in each])


def found_once(settings, description, table):
    fit = Fit(settings, description)
    for step in (fit.discover, fit.ask):
        step(PrivateTable({name: table[name] for name in description.columns}))
    domain, num_rows = fit.curator.domain, len(table)
    linear = LinearEstimate(domain, fit.curator.measurements)
    columns = {
        name: CONFIDENT * math.sqrt(linear.table((name,))[1].mean()) / num_rows
        for name in domain.attributes
    }
    pairs = [np.sqrt(linear.table(pair)[1]).sum() for pair in domain.cliques(2)]
    return columns, np.mean(pairs) / math.sqrt(2 * math.pi) / num_rows


def table_of(sizes, num_rows):
    rng = np.random.default_rng(3)
    trait = rng.random(num_rows)
    return pd.DataFrame(
        {
            name: ((trait + rng.random(num_rows)) / 2 * size).astype(int).astype(str)
            for name, size in sizes.items()
        }
    )


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("epsilon", [0.3, 3.0])
@pytest.mark.parametrize("engine", [ParticleGradientDescent(), PrivatePGM()], ids=["", "no groups"])
def test_the_forecast_is_what_a_fit_finds_within_a_fifth(engine, epsilon, adjacency):
    facts = categories(SIZES)
    table = table_of(SIZES, 3_000)
    settings = settings_of(epsilon, method=PrivPGD(engine=engine), adjacency=adjacency, delta=1e-5)
    expected = foretold(settings, described(facts), len(table)).here
    columns, pair = found(settings, described(facts), table)
    for name, error in columns.items():
        assert expected.columns[name] == pytest.approx(error, rel=0.25)
    assert np.mean(list(expected.columns.values())) == pytest.approx(
        np.mean(list(columns.values())), rel=0.2
    )
    assert expected.pair == pytest.approx(pair, rel=0.2)


def test_of_columns_alone_the_forecast_is_exact():
    settings = settings_of(method=Independent())
    expected = foretold(settings, described(categories(SIZES)), 2_000)
    table = table_of(SIZES, 2_000)
    fit, private = Fit(settings, described(categories(SIZES))), PrivateTable(dict(table))
    fit.discover(private)
    fit.ask(private)
    # s^2 + 1/12 is the variance of rounded noise; the number of rows is known.
    columns = {
        answer.query.clique[0]: CONFIDENT
        * math.sqrt((answer.stddev**2 + 1 / 12) * (1 - 1 / answer.answer.size))
        / len(table)
        for answer in fit.tables
    }
    assert expected.here.columns == pytest.approx(columns, rel=1e-5)  # the budget is a fraction
    assert expected.here.pairs == {}
    assert expected.here.pair is None


def test_a_plan_says_the_same_each_time_and_names_what_it_foretells():
    settings, description = settings_of(), described(categories(SIZES))
    one, two = (planned(settings, description, 900).to_dict()["expected"] for _ in range(2))
    assert one == two
    assert set(one["columns"]) == set(SIZES)
    assert len(one["pairs"]) == 10
    assert one["over_epsilon"]["epsilon"] == [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0]


@pytest.mark.parametrize("num_rows", [400, 1_000, 4_000])
def test_more_rows_are_worth_what_a_larger_budget_is(num_rows):
    description = described(categories(SIZES))
    expected = foretold(settings_of(), description, 2_000)
    curve = expected.over_rows
    assert list(curve.at) == [400, 1_000, 2_000, 4_000, 10_000]
    place = curve.at.index(num_rows)
    there = foretold(settings_of(), description, num_rows).here
    assert curve.pair[place] == pytest.approx(there.pair, rel=0.07)
    assert curve.column[place] == pytest.approx(there.column, rel=0.07)
    for errors in (curve.pair, curve.column, expected.over_epsilon.pair):
        assert list(errors) == sorted(errors, reverse=True)


def test_columns_that_are_too_fine_are_named_with_a_number_that_would_do():
    sizes = {"job": 250, "ward": 120, "sex": 2, "ill": 2}
    coarse = foretold(settings_of(), described(categories(sizes)), 3_000)
    assert coarse.too_fine == ["job", "ward"]
    most = coarse.here.most_values
    assert 2 < most < 120
    text = told(coarse)
    assert "'job' (250 values), 'ward' (120 values)" in text
    assert f"About {most} values each would do" in text
    would_do = {name: min(size, most) for name, size in sizes.items()}
    assert foretold(settings_of(), described(categories(would_do)), 3_000).too_fine == []
    hopeless = foretold(settings_of(0.1), described(categories(sizes)), 20)
    assert "louder than the rows in all pairs" in told(hopeless)


def test_what_is_not_declared_is_assumed_and_said():
    description = described({"age": {"sdtype": "numerical"}, **categories({"ill": 2})})
    expected = foretold(settings_of(), description, 1_000)
    assert expected.assumed == ["age"]
    assert expected.here.sizes == {"age": 17, "ill": 2}  # 16 codes and missing
    text = told(expected)
    assert "How many values 'age' has is not declared" in text
    assert "age ~17" in text
    rich = foretold(settings_of(10.0), description, 100_000)
    assert rich.here.sizes["age"] == 33


def test_what_discovery_may_lose_is_in_the_range_of_rows():
    columns = {**categories({"ill": 2, "job": 5}), "age": {"sdtype": "numerical", "range_min": 0,
               "range_max": 99}}  # fmt: skip
    undeclared = {name: {"sdtype": own["sdtype"]} for name, own in columns.items()}
    known, unknown = (
        foretold(settings_of(0.5), described(e), 2_000) for e in (columns, undeclared)
    )
    assert known.here.lost == 0
    needed = least_rows(settings_of(0.5), described(undeclared), 2_000)
    assert needed.keys() == columns.keys()
    kept = [1 - rows / 2_000 for rows in needed.values()]
    pairs = [kept[0] * kept[1], kept[0] * kept[2], kept[1] * kept[2]]
    assert unknown.here.lost == pytest.approx(1 - np.mean(pairs))
    noise = unknown.here.pair
    (least, most), (without, _) = of_rows(noise, unknown.here.lost), of_rows(noise)
    assert unknown.to_dict()["pairs_mean"]["rows_usually_within"] == [least, most]
    assert least == pytest.approx(without)
    assert least < most <= 1
    for curve in (unknown.over_epsilon, unknown.over_rows):
        assert list(curve.lost) == sorted(curve.lost, reverse=True)
        assert curve.lost[0] > curve.lost[-1] > 0
    assert f"noise may hide {100 * unknown.here.lost:.0f} % of the rows" in told(unknown)
    assert "noise may hide" not in told(known)


def test_no_pair_that_noise_alone_has_chosen_is_named():
    columns = {**categories({"a": 2, "b": 3, "c": 4}), "age": {"sdtype": "numerical"}}
    plan = planned(settings_of(), described(columns), 3_000)
    text, asked = plan.text, [each["what"] for each in plan.to_dict()["ledger"]["charges"]]
    assert "2-way marginals that promise most, chosen by noisy answers" in asked
    assert " x " not in text
    (named,) = re.findall(r"on average, from (.*?)\. The synthetic", " ".join(text.split()))
    assert "age" not in named
    plan = planned(settings_of(method=QUICK_AIM), described(columns), 900)
    asked = [each["what"] for each in plan.to_dict()["ledger"]["charges"]]
    assert "worst fitted marginal, chosen by noisy answers" in asked
    assert " x " not in plan.text


def test_a_curve_has_questions_of_its_own_only_where_that_is_quick():
    assert all(method.is_quick for method in (MST(), AllKWay(), Independent()))
    assert not AIM().is_quick
    assert not AllKWay(degree=3).is_quick
    description = described(categories({"a": 2, "b": 3, "c": 2}))
    expected = foretold(settings_of(method=QUICK_AIM), description, 500)
    assert expected.over_epsilon is expected.over_rows is None
    assert set(expected.here.columns) == {"a", "b", "c"}
    expected = foretold(settings_of(method=MST(engine="particles")), description, 500)
    assert expected.to_dict()["pairs"] == []
    assert "Noisy answers choose the pairs" in told(expected)


def test_plans_say_that_noisy_answers_choose_and_that_nothing_is_there():
    description = described(categories({"a": 2, "b": 3, "c": 2, "d": 2}))
    expected = foretold(settings_of(method=PrivPGD(most_pairs=2)), description, 500)
    assert expected.over_epsilon is expected.over_rows is None
    assert set(expected.here.columns) == {"a", "b", "c", "d"}
    assert 2 <= len(expected.here.pairs) <= 4
    assert "Noisy answers choose the pairs" in told(expected)
    assert "What to expect" in planned(settings_of(), described(categories(SIZES)), 0).text
    keys = Description.of({"id": {"sdtype": "id"}}, keys=["id"])
    assert planned(settings_of(), keys, 10).to_dict()["expected"] is None


def test_triples_are_left_out_with_their_budget_and_only_where_the_engine_takes_them():
    description = described(categories(SIZES))
    all_asked = foretold(settings_of(), description, 2_000).here
    none = PrivPGD(triples=Fraction(0))
    louder = foretold(settings_of(method=none), description, 2_000).here
    assert louder.pair == pytest.approx(all_asked.pair * math.sqrt(0.9), rel=0.02)
    fit = Fit(settings_of(), description)
    fit.ask(PrivateTable(dict(table_of(SIZES, 500))))
    assert any(isinstance(answer.query, GroupedMarginalQuery) for answer in fit.tables)
    description, engine = described(categories(SIZES)), PrivatePGM()
    default = foretold(settings_of(method=PrivPGD(engine=engine)), description, 2_000).here
    none = PrivPGD(triples=Fraction(0), engine=engine)
    assert default == foretold(settings_of(method=none), description, 2_000).here
    fit = Fit(settings_of(method=PrivPGD(engine=engine)), description)
    fit.ask(PrivateTable(dict(table_of(SIZES, 500))))
    assert not any(isinstance(answer.query, GroupedMarginalQuery) for answer in fit.tables)
    assert fit.shared.ledger.remaining == 0


@pytest.mark.parametrize(
    ("delta", "said"), [(1e-5, []), (1e-3, ["3,000 rows"]), (0.01, ["any size"])]
)
def test_a_plan_speaks_of_a_delta_that_promises_nothing(delta, said):
    columns = {"ill": {"sdtype": "boolean"}, "old": {"sdtype": "boolean"}}
    settings = settings_of(delta=delta, method=Independent(engine=PrivatePGM()))
    text = in_a_line(planned(settings, Description.of(columns), num_rows=3_000).text)
    assert re.findall(r"promises next to nothing in a table of ([^:]*):", text) == said


@pytest.mark.parametrize("facts", [{"range_values": list(range(300))}, {"num_bins": 300}])
def test_columns_of_very_many_codes_are_foreseen(facts):
    many = {"sdtype": "categorical", **facts}
    if "num_bins" in facts:
        many |= {"sdtype": "numerical", "range_min": 0, "range_max": 999}
    found = foretold(settings_of(), described({"many": many, **categories({"ill": 3})}), 5_000)
    assert found is not None
    assert 0 < found.here.columns["ill"] < 1
    assert 0 < found.here.columns["many"] < 1


def test_a_plan_fits_small_models_alone_and_names_no_table_that_missing_rows_chose(monkeypatch):
    columns = {name: Boolean() for name in "abcde"}
    used, fit = [], RelaxedProjection.fit

    def recorded(engine, *args, **how):
        used.append(engine.steps)
        return fit(engine, *args, **how)

    monkeypatch.setattr(RelaxedProjection, "fit", recorded)
    plan_table(columns, 1.0, num_rows=100, method="rap")
    assert {*used} == {RelaxedProjection.quick["steps"]}
    for method in ("privmrf", "privsyn"):
        asked = plan_table(columns, 1.0, num_rows=5_000, method=method).to_dict()["ledger"]
        what = [charge["what"] for charge in asked["charges"]]
        assert any(each.endswith(", chosen by noisy answers") for each in what)
        assert not any(" x " in each for each in what)
