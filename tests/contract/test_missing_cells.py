"""Cells that are declared to be missing at times are, also where noise nearly hides how many."""

import numpy as np
import pandas as pd
import pytest
from answers import answered, number_of_rows

from sdv_privpgd import Boolean, Numerical, fit_table
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.estimate.support import clear_support
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.fit import maker_of
from sdv_privpgd.synthesize.engine import Particles

ROWS, NOISE = 1_000, 20.0
MAY_MISS = {"range_is_nullable": True}


@pytest.mark.parametrize(
    ("declared", "missing", "is_kept"),
    [(MAY_MISS, 60, True), (MAY_MISS, 30, False), ({}, 60, False), ({}, 90, True)],
)
def test_missing_takes_less_evidence_where_it_is_declared(declared, missing, is_kept):
    description = Description.of({"ill": {"sdtype": "boolean"}}, {"ill": declared})
    schema = description.attributes
    counts = np.array([500, 500 - missing, missing])
    measured = [number_of_rows(ROWS), answered(["ill"], counts, NOISE)]
    held = clear_support(schema.domain(), measured)
    maker = maker_of(description, schema, held, measured)
    codes = np.repeat([0, 1, 2], counts)[:, None]
    rows = maker(Particles(domain=Domain(("ill",), (3,)), codes=codes), seed=0).take(ROWS)
    assert rows["ill"].isna().any() == is_kept


def test_missing_cells_of_a_declared_column_come_back_in_each_fit():
    """A fourteenth of 2,500 is missing; noise moves that by about a hundredth of the rows."""
    rng = np.random.default_rng(0)
    weight = np.where(rng.random(2_500) < 0.07, np.nan, rng.normal(80, 15, 2_500).round(1))
    table = pd.DataFrame({"weight": weight, "ill": rng.random(2_500) < 0.5})
    columns = {"weight": Numerical(20, 250, decimal_places=1, nullable=True), "ill": Boolean()}
    for _ in range(4):
        fitted = fit_table(table, columns, epsilon=1.0, method="independent+pgm")
        assert 0.02 < fitted.sample(2_500)["weight"].isna().mean() < 0.12
