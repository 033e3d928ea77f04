"""What lies where nobody declared: very small numbers, and tails that the noise hides."""

import numpy as np
import pandas as pd
import pytest

from sdv_privpgd import Categorical, Numerical, fit_table

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


def test_a_mean_says_how_many_rows_may_lie_beyond_a_range_that_was_found():
    rng = np.random.default_rng(0)
    falls = rng.poisson(0.3, ROWS) + (rng.random(ROWS) < 0.01) * rng.integers(5, 60, ROWS)
    table = pd.DataFrame({"falls": falls, "ward": rng.choice(["A", "B"], ROWS)})
    found = {"falls": Numerical(), "ward": Categorical(["A", "B"])}
    fitted = fit_table(table, found, epsilon=1.0, **MOST)
    said = [fitted.answer(what, of="falls") for what in ("mean", "sum")]
    said.append(fitted.answer("quantile", of="falls", q=0.999))
    assert all("rows may lie beyond it and count as its ends" in str(each) for each in said)
    middle = fitted.answer("quantile", of="falls", q=0.5)
    shares = fitted.answer("share", where={"ward": "A"})
    assert not any("lie beyond" in str(each) for each in (middle, shares))
    # What may be missed has been missed: the number that is said bounds it.
    (rows,) = fitted.fitted.unseen.values()
    assert 100 < rows < 1_000

    known = {**found, "falls": Numerical(0, 100, decimal_places=0)}
    declared = fit_table(table, known, epsilon=1.0, **MOST)
    assert declared.fitted.unseen == {}
    assert "lie beyond" not in str(declared.answer("mean", of="falls"))
