"""Codes that noise alone has put there: how they are told, and how rows do without."""

import numpy as np
import pandas as pd
import pytest
from answers import answered

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.columns.dtypes import chosen
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.estimate.noisy_tables import NoisyTable
from sdv_privpgd.estimate.support import clear_support, last_held
from sdv_privpgd.sampling.sampler import Filled, Sampler
from sdv_privpgd.synthesize.engine import Model, Particles

DOMAIN = Domain(("a", "b", "c"), (2, 3, 4))
ROWS = 20_000


def particles(seed=0) -> Particles:
    codes = np.random.default_rng(seed).integers(0, DOMAIN.sizes, (ROWS, 3))
    codes[:, 1] = np.minimum(codes[:, 1], codes[:, 0] + 1)
    return Particles(domain=DOMAIN, codes=codes)


def counted(codes, clique):
    own = codes[:, list(DOMAIN.axes(clique))]
    table = np.zeros(DOMAIN.shape(clique))
    np.add.at(table, tuple(own.T), 1 / len(own))
    return table


def test_no_row_has_a_code_that_is_left_out_and_others_stay_as_they_are():
    model = particles()
    filled = Filled(model=model, empty={"b": 2, "c": 3})
    assert isinstance(filled, Model)
    before, after = model.sample(ROWS, 5), filled.sample(ROWS, 5)
    assert (before[:, 1] == 2).any()
    assert not (after[:, 1] == 2).any()
    assert not (after[:, 2] == 3).any()
    for axis, code in ((1, 2), (2, 3)):
        kept = before[:, axis] != code
        assert (before[kept, axis] == after[kept, axis]).all()
    assert (before[:, 0] == after[:, 0]).all()
    assert (after == filled.sample(ROWS, 5)).all()


@pytest.mark.parametrize("clique", [("a",), ("b",), ("b", "a"), ("c", "b"), ("a", "b", "c")])
def test_its_marginals_are_those_of_its_rows(clique):
    filled = Filled(model=particles(), empty={"b": 2, "c": 3})
    marginal = filled.marginal(clique)
    assert marginal.sum() == pytest.approx(1, abs=1e-12)
    # A share of 20,000 rows has a standard error below 0.0036; 5 of them, in up to 24 cells.
    found = counted(filled.sample(ROWS, 1), clique)
    np.testing.assert_allclose(found, marginal, atol=5 * 0.5 / np.sqrt(ROWS))


def test_codes_far_out_stay_as_frequent_together_and_each_has_half_of_the_one_before():
    domain = Domain(("a", "c"), (2, 5))  # c's last code is that of missing values
    codes = np.random.default_rng(0).integers(0, domain.sizes, (ROWS, 2))
    model = Particles(domain=domain, codes=codes)
    filled = Filled(model=model, empty={}, last={"c": 0})
    before, after = model.marginal(("a", "c")), filled.marginal(("a", "c"))
    assert after[:, [0, 4]].tolist() == before[:, [0, 4]].tolist()
    falling = before[:, 1:4].sum(axis=1, keepdims=True) * np.array([4, 2, 1]) / 7
    np.testing.assert_allclose(after[:, 1:4], falling, rtol=1e-12)
    found = np.zeros((2, 5))
    np.add.at(found, tuple(filled.sample(ROWS, 1).T), 1 / ROWS)
    np.testing.assert_allclose(found, after, atol=5 * 0.5 / np.sqrt(ROWS))


@pytest.mark.parametrize(
    ("counts", "last"),
    [([50, 3, 90, 3, 30, 900], 2), ([50, 25, 32, 30, 1, 0], 3), ([-20, 9, 15, 30, 8, 900], -1)],
)
def test_rows_surely_lie_as_far_out_as_a_run_of_codes_has_them(counts, last):
    assert last_held(NoisyTable(np.array(counts, float), 100.0)) == last


def test_where_there_is_nothing_else_the_others_are_drawn_alike():
    codes = np.full((ROWS, 3), 1)
    filled = Filled(model=Particles(domain=DOMAIN, codes=codes), empty={"b": 1})
    assert filled.marginal(("b",)).tolist() == [0.5, 0.0, 0.5]


def test_a_code_is_held_if_its_count_from_all_tables_is_beyond_the_noise():
    """Counts 4.1 standard deviations above 0 in each of four tables are 8.2 in all."""
    alone = answered("a", [39, 41], 10.0)
    assert clear_support(DOMAIN, [alone])["a"].tolist() == [False, True]
    assert clear_support(DOMAIN, [alone, alone])["a"].tolist() == [True, True]
    # In a table of two columns a row of three cells has sqrt(3) times the noise.
    pair = answered("ab", [[20] * 3, [24] * 3], 10.0)
    assert clear_support(DOMAIN, [pair])["a"].tolist() == [False, True]
    assert not clear_support(DOMAIN, [alone])["b"].any()


def test_noise_alone_hardly_ever_seems_to_be_a_row():
    rng = np.random.default_rng(0)
    noise, domain = rng.normal(scale=30.0, size=(500, 200)), Domain(("x",), (200,))
    found = [clear_support(domain, [answered("x", each, 30.0)]) for each in noise]
    # Phi(-4) = 3.2e-5 of 100,000 is 3.2; 5 standard errors more.
    assert sum(each["x"].sum() for each in found) <= 3.2 + 5 * np.sqrt(3.2)


@pytest.mark.parametrize("dtype", ["int64", "int16", "Int64", "object"])
@pytest.mark.parametrize("is_sure", [True, False])
def test_missing_values_come_out_if_they_are_sure_to_be_there(is_sure, dtype):
    """A dtype that cannot hold them is kept in any case."""
    column = {"sdtype": "ordinal", "range_values": [1, 2, 3]}
    kept = chosen(pd.Series([], dtype=dtype).dtype)
    schema = Schema.from_sdv({"x": column}).typed({} if kept is None else {"x": kept})
    domain = schema.domain()
    codes = np.repeat(np.arange(4), 50)[:, None]
    held = {"x": np.array([True, True, True, is_sure])}
    sampler = Sampler(schema, Particles(domain=domain, codes=codes), 0, held=held)
    rows = sampler.take(200)["x"]
    none = not is_sure or dtype == "int16"
    assert rows.isna().sum() == (0 if none else 50)
    natural = "int64" if none else "float64"
    assert rows.dtype == (natural if kept is None else dtype)
    asked, possible = sampler.meeting(pd.DataFrame({"x": [None, 2]}, dtype=object))
    assert possible.all()
    assert asked["x"].isna().tolist() == [True, False]
