"""Each piece of advice that a fit gives is followed, and the next fit is better."""

from datetime import date
from functools import partial
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import replay

from sdv_privpgd import Categorical, Datetime, Numerical, fit_table
from sdv_privpgd.constraints import FixedCombinations, Inequality
from sdv_privpgd.report.warnings import COLUMN_RULES, FIT_RULES

ROWS = 4_000
RNG = np.random.default_rng(0)
COSTS = RNG.lognormal(5, 1.5, ROWS).round(2)
WRITTEN = pd.Series([f"{cost:,.2f}" for cost in COSTS]).str.translate(str.maketrans(",.", ".,"))
AGES = RNG.integers(18, 90, ROWS)
CODED = np.where(RNG.random(ROWS) < 0.1, 999, AGES)
SEXES = RNG.choice(["m", "f"], ROWS)
WARDS = pd.Series(RNG.geometric(0.04, ROWS) - 1).astype(str)
STREETS = pd.Series(RNG.integers(0, 900, ROWS)).astype(str)
DOUBLING = [0.01 * 2**power for power in range(23)]
TENS = {code: f"{code[:-1] or '0'}x" for code in sorted(set(STREETS))}
DAYS = pd.Series(pd.Timestamp("2019-01-01") + pd.to_timedelta(RNG.integers(0, 900, ROWS), unit="D"))
NUMBERS = DAYS.dt.strftime("%Y%m%d").astype(int)


def apart(real, synthetic):
    """The largest difference of distribution functions, or of texts half the L1 distance."""
    if real.dtype.kind in "if":
        cuts = np.quantile(real.dropna(), np.linspace(0, 1, 101))
        return max(abs(float((real <= cut).mean() - (synthetic <= cut).mean())) for cut in cuts)
    shares = (each.astype(str).value_counts(normalize=True) for each in (real, synthetic))
    first, second = pd.Series.align(*shares, fill_value=0.0)
    return float((first - second).abs().sum() / 2)


def as_numbers(real, synthetic):
    """How far texts such as 1.234,5 are apart."""
    own = (
        each.astype(str).str.replace(".", "").str.replace(",", ".") for each in (real, synthetic)
    )
    return apart(*(pd.to_numeric(each, errors="coerce") for each in own))


def without_code(real, synthetic):
    """The error of the mean where 999 is no age, in proportion."""
    return of_mean(real.mask(real == 999), synthetic)


def no_dates(_, synthetic):
    """The share of numbers that are no dates such as 20240131."""
    dates = pd.to_datetime(synthetic.astype(str), format="%Y%m%d", errors="coerce")
    return float(dates.isna().mean())


def of_mean(real, synthetic):
    """The error of the mean, in proportion."""
    return abs(float(np.log(synthetic.mean() / real.mean())))


def in_tens(real, synthetic):
    """How far codes are apart by groups of ten: what is left of them is that of their groups."""
    return apart(real.map(TENS), synthetic.map(lambda code: TENS.get(code, code)))


COLUMNS = [  # what is said first, the cells, what is declared, what is advised, and the error
    ("Nearly all values are missing", WRITTEN,
     Numerical(), Numerical(number_format="1.234,50"), as_numbers),
    ("Nearly all values are not among", SEXES,
     Categorical(["M", "F"], other="none"), Categorical(["m", "f"]), apart),
    ("About ", AGES * 365, Numerical(0, 110), Numerical(0, 40_000), apart),
    ("Values far from all others", CODED,
     Numerical(0, 999), Numerical(0, 110, missing_codes=[999]), without_code),
    ("About ", COSTS, Numerical(0, 150), Numerical(0, 20_000), apart),
    ("Nearly all rows have one of several values", AGES,
     Numerical(0, 10**6), Numerical(0, 110), apart),
    ("Many values are not among", WARDS, Categorical(), Categorical(sorted(set(WARDS))), apart),
    ("Numbers may be dates", NUMBERS, Numerical(), Datetime(datetime_format="%Y%m%d"), no_dates),
    ("Wide cells hide how rows are", COSTS, Numerical(0, 10**5),
     Numerical(0, 10**5, cut_points=DOUBLING, decimal_places=2), of_mean),
    ("Most categories have too few rows", STREETS, Categorical(sorted(set(STREETS))),
     Categorical(sorted({*TENS.values()}), groups=TENS), in_tens),
]  # fmt: skip
"""Of each column alone, without another one; without a look where that would have found it."""

UNSEEN = ("Nearly all rows have one", "Wide cells hide")


def said_of(fitted, first):
    return [each for each in fitted.warnings if each.startswith(first)]


@pytest.mark.parametrize(
    ("said", "cells", "declared", "advised", "error"), COLUMNS, ids=[each[0] for each in COLUMNS]
)
def test_advice_on_a_column_makes_it_better(said, cells, declared, advised, error, monkeypatch):
    # The noise is the same each time: one fit in a hundred has no code that lies apart, as an empty
    # one between it and the others exceeds two standard deviations.
    epsilon, share = (5.0, 0) if said.startswith(UNSEEN) else (2.0, 0.2)
    table = pd.DataFrame({"x": cells})
    errors = []
    for told in (declared, advised):
        fit = partial(
            fit_table, table, {"x": told}, epsilon, 1e-6, method="independent", seed=0,
            allow_lost=["x"], discovery_share=share,
        )  # fmt: skip
        fitted = replay.run(fit, monkeypatch).result
        assert bool(said_of(fitted, said)) == (told is declared), fitted.warnings
        errors.append(error(table["x"], fitted.sample(ROWS)["x"]))
    assert errors[1] < 0.8 * errors[0]


def test_a_constraint_keeps_dates_in_order():
    later = DAYS + pd.to_timedelta(RNG.integers(0, 30, ROWS), unit="D")
    table = pd.DataFrame({"admitted": DAYS, "discharged": later})
    columns = dict.fromkeys(table, Datetime(date(2019, 1, 1), date(2021, 12, 31)))
    order = Inequality("admitted", "discharged")
    wrong = []
    for constraints in ([], [order]):
        fitted = fit_table(table, columns, 5.0, 1e-6, seed=0, constraints=constraints)
        said = said_of(fitted, "Dates seem to be in order")
        assert len(said) == (not constraints)
        rows = fitted.sample(ROWS)
        wrong.append(float((rows["admitted"] > rows["discharged"]).mean()))
    assert wrong[1] == 0 < wrong[0]


def test_a_constraint_the_other_way_round_is_told():
    for least, most in ((0, 4), (1_000, 2_000)):  # few rows surely contradict it, or nearly all
        low = RNG.integers(0, 5_000, ROWS)
        table = pd.DataFrame({"low": low, "high": low + RNG.integers(least, most, ROWS)})
        columns = dict.fromkeys(table, Numerical(0, 10_000, decimal_places=0))
        for names in (["high", "low"], ["low", "high"]):
            fitted = fit_table(table, columns, 5.0, 1e-6, constraints=[Inequality(*names)])
            said = said_of(fitted, "The table contradicts a constraint")
            assert ["'high', 'low' in " in each for each in said] == [True] * (names[0] == "high")


def test_a_list_of_combinations_that_lacks_what_a_twentieth_of_the_rows_have_is_told():
    place = np.repeat(["Aarhus", "Lund", "Oslo"], [ROWS // 2, 9 * ROWS // 20, ROWS // 20])
    table = pd.DataFrame({"country": np.where(place == "Aarhus", "DK", "SE"), "place": place})
    columns = {"country": Categorical(["DK", "SE"]), "place": Categorical([*np.unique(place)])}
    for lacks in (False, True):
        listed = [("DK", "Aarhus"), ("SE", "Lund"), ("DK" if lacks else "SE", "Oslo")]
        met = [FixedCombinations(["country", "place"], listed)]
        fitted = fit_table(table, columns, 5.0, 1e-6, constraints=met)
        said = said_of(fitted, "The table contradicts a constraint")
        assert ["'country', 'place' in " in each for each in said] == [True] * lacks


@pytest.mark.long
def test_fewer_columns_and_a_larger_epsilon_make_pairs_better():
    trait = RNG.normal(size=600)
    names = [f"item {number}" for number in range(12)]
    table = pd.DataFrame({name: (trait + RNG.normal(size=600)).round() for name in names})

    def errors(columns, epsilon):
        told, found = dict.fromkeys(columns, Numerical(-6, 6, decimal_places=0)), []
        for _ in range(3):
            fitted = fit_table(table, told, epsilon, 1e-6, seed=0)
            rows = fitted.sample(600)
            for a, b in combinations(names[:3], 2):
                found.append(np.nan_to_num(table[a].corr(table[b]) - rows[a].corr(rows[b]), nan=1))
        return np.abs(found).mean(), " ".join(fitted.warnings)

    usual, said = errors(names, 1.0)
    assert "The rows are few for this epsilon and these columns" in said
    assert "Correlations of two columns come out weaker" in said
    for columns, epsilon in ((names[:3], 1.0), (names, 8.0)):
        assert errors(columns, epsilon)[0] < usual


def test_who_spends_more_sees_the_tail_that_noise_hid():
    table, found = pd.DataFrame({"x": COSTS[:600]}), []
    for epsilon in (0.7, 20.0):
        fits = [
            fit_table(table, {"x": Numerical()}, epsilon, 1e-6, method="independent", seed=0)
            for _ in range(4)
        ]
        assert all(said_of(each, "Noise hid what fewer than") for each in fits) or epsilon > 1
        found.append(np.mean([apart(table["x"], each.sample(ROWS)["x"]) for each in fits]))
    assert found[1] < found[0]


def test_all_that_advises_is_followed():
    followed = [said for said, *_ in COLUMNS] + [
        "Dates seem to be in order", "The table contradicts", "The rows are few",
        "Correlations of two", "Noise hid what",
    ]  # fmt: skip
    others = {
        "": "what a look found unclear: its own text",
        "Nearly all rows lie at one end": "as of values beyond a range that were counted",
        "Rows pile up at an end": "the same",
        "Most values are missing": "as of nearly all",
        "Many values are missing": "the same",
        "Some values are missing": "the same",
        "One value was found in all rows": "there may be no others",
        "Noise moves most of the rows": "as where the rows are few",
        "Nearly all rows have one value of": "the same",
        "{} of columns were measured over a few groups": "of more than 50 columns",
        "Values are made up, as the method asked": "its own test is of methods, not of columns",
    }
    for rule in (*COLUMN_RULES, *FIT_RULES):
        assert rule.text.startswith((*followed, *filter(None, others))) or rule.text in others
