"""What lies where nobody declared: very small numbers, and tails that the noise hides."""

import numpy as np
import pandas as pd
import pytest

from sdv_privpgd import Between, Categorical, Datetime, Numerical, fit_table
from sdv_privpgd.constraints import Inequality

ROWS = 20_000
MOST = {"method": "independent+pgm"}


@pytest.fixture(scope="module")
def amounts():
    """Amounts of substance in moles, many times smaller than the range that nobody thinks of."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "moles": np.exp(rng.normal(np.log(2e-9), 1, ROWS)),
            "drift": rng.normal(0, 1e-9, ROWS),
            "zero": np.zeros(ROWS),
            "p": np.where(rng.random(ROWS) < 0.7, rng.random(ROWS) * 1e-8, rng.random(ROWS)),
        }
    )


@pytest.mark.parametrize(
    "declared",
    [
        {"moles": Numerical(0, 1), "drift": Numerical(-1, 1), "zero": Numerical(0, 1)},
        {"moles": Numerical(), "drift": Numerical(), "zero": Numerical()},
    ],
    ids=["declared", "undeclared"],
)
def test_numbers_of_a_billionth_keep_their_size(amounts, declared):
    columns = {**declared, "p": declared["moles"]}
    rows = fit_table(amounts, columns, epsilon=5.0, **MOST).sample(ROWS)
    quartiles = [0.25, 0.5, 0.75]
    for name in ("moles", "p"):
        ratio = rows[name].quantile(quartiles) / amounts[name].quantile(quartiles)
        assert ratio.between(0.5, 2).all(), name
    ratio = rows["drift"].quantile([0.1, 0.9]) / amounts["drift"].quantile([0.1, 0.9])
    assert ratio.between(0.5, 2).all()
    assert rows["zero"].median() == 0
    assert rows["moles"].quantile(0.001) >= 0


def test_what_rows_beyond_a_range_that_was_found_could_move_has_no_end_there():
    rng = np.random.default_rng(0)
    falls = rng.poisson(0.3, ROWS) + (rng.random(ROWS) < 0.01) * rng.integers(5, 60, ROWS)
    table = pd.DataFrame({"falls": falls, "ward": rng.choice(["A", "B"], ROWS)})
    found = {"falls": Numerical(), "ward": Categorical(["A", "B"])}
    fitted = fit_table(table, found, epsilon=1.0, **MOST)
    for what, q in (("mean", None), ("sum", None), ("quantile", 0.999), ("quantile", 0.001)):
        answer = fitted.answer(what, of="falls", q=q)
        clipped = fitted.answer(what, of="falls", q=q, clipped=True)
        infinite = {None: [True, True], 0.999: [False, True], 0.001: [True, False]}[q]
        for kind in ("table", "population"):
            assert np.isinf(answer.interval(kind)).tolist() == infinite
            low, high = clipped.interval(kind)
            assert 0 <= low <= clipped.estimate <= high < np.inf
        assert answer.estimate == clipped.estimate
        assert "nobody knows how far" in str(answer)
        assert "infinity" in str(answer)
        assert "infinity" in repr(answer)
        assert " of falls clipped to 0 to " in clipped.question
        assert "rows may lie beyond it and count as its ends" in str(clipped)
    inside = fitted.answer("mean", of="falls", where={"falls": Between(1, 2)})
    middle = fitted.answer("quantile", of="falls", q=0.5)
    shares = fitted.answer("share", where={"ward": "A"})
    for answer in (middle, shares, inside):
        assert np.isfinite(answer.interval()).all()
        assert "lie beyond" not in str(answer)
    known = inside - fitted.answer("mean", of="falls", clipped=True)
    assert np.isfinite(known.interval()).all()
    assert (inside - fitted.answer("mean", of="falls")).interval() == (-np.inf, np.inf)
    of_model = {"of": "falls", "where": {"ward": "A"}, "bootstrap": 2}
    assert fitted.answer("mean", **of_model).interval() == (-np.inf, np.inf)
    assert np.isfinite(fitted.answer("mean", **of_model, clipped=True).interval()).all()
    with pytest.raises(ValueError, match="takes no clipped=: it is for mean, sum, quantile"):
        fitted.answer("count", clipped=True)
    # What may be missed has been missed: the number that is said bounds it.
    (unseen,) = fitted.fitted.undetected.values()
    assert 100 < unseen.rows < 1_000

    half = fit_table(table, {**found, "falls": Numerical(0)}, epsilon=1.0, **MOST)
    low, high = half.answer("mean", of="falls").interval()
    assert 0 <= low < table["falls"].mean() < high == np.inf
    assert half.answer("quantile", of="falls", q=0.001).interval().low == 0

    known = {**found, "falls": Numerical(0, 100, decimal_places=0)}
    declared = fit_table(table, known, epsilon=1.0, **MOST)
    assert declared.fitted.undetected == {}
    assert "lie beyond" not in str(declared.answer("mean", of="falls"))


def test_dates_without_a_known_end_reach_to_the_calendar_s():
    days = np.random.default_rng(0).integers(0, 900, 3_000)
    seen = pd.Timestamp("2021-03-01") + pd.to_timedelta(days, unit="D")
    fitted = fit_table(pd.DataFrame({"seen": seen}), {"seen": Datetime()}, epsilon=1.0, **MOST)
    last = fitted.answer("quantile", of="seen", q=0.999)
    low, high = last.interval(level=0.999)  # one of 95 % misses in 2 of 80 fits
    assert low <= seen.max() < high == pd.Timestamp(np.datetime64("9999-12-31", "s"))
    assert "the last day of the calendar" in str(last)
    first = fitted.answer("quantile", of="seen", q=0.001).interval()
    assert first.low == pd.Timestamp(np.datetime64("0001-01-01", "s")) < seen.min()
    middle = fitted.answer("quantile", of="seen", q=0.5).interval()
    assert seen.min() < middle.low < middle.high < seen.max()
    clipped = fitted.answer("quantile", of="seen", q=0.999, clipped=True).interval()
    assert clipped.high < pd.Timestamp("2100-01-01")


def test_a_difference_of_columns_whose_ranges_were_found_has_no_known_end_above():
    first = np.random.default_rng(0).integers(0, 300, 2_000)
    stays = pd.DataFrame({"admitted": first, "left": first + first % 17})
    fitted = fit_table(
        stays,
        {"admitted": Numerical(0, 320, decimal_places=0), "left": Numerical(decimal_places=0)},
        epsilon=5.0,
        constraints=[Inequality("admitted", "left")],
        **MOST,
    )
    # One of 40 fits is out of an interval of 95 % on this side.
    low, high = fitted.answer("mean", of="left - admitted").interval(level=0.999)
    assert 0 <= low < (stays["left"] - stays["admitted"]).mean() < high == np.inf
