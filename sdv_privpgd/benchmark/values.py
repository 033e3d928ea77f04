"""Compares synthetic rows with the real ones by values, not by codes of the domain. Not private.

The codes of a table hide what its declared domain does to the real rows: numbers beyond a range
count as its ends in both tables, and all values of a cell count as one.
"""

from typing import TYPE_CHECKING

import numpy as np

from sdv_privpgd.benchmark.fits import columns_of
from sdv_privpgd.benchmark.tables import Table
from sdv_privpgd.metrics import mean_l1
from sdv_privpgd.metrics.outside import outside
from sdv_privpgd.metrics.reading import Described
from sdv_privpgd.metrics.usefulness import usefulness
from sdv_privpgd.metrics.values import as_codes, common_cells

if TYPE_CHECKING:
    import pandas as pd


def value_scores(table: Table, real: "pd.DataFrame", synthetic: "pd.DataFrame") -> dict[str, float]:
    """The errors of values, under their names in a file of results.

    ``decoded_l1`` is the mean L1 distance of pairs, ``decoded_column_l1`` that of columns, both 0
    to 2. ``decoded_w1`` is the mean W1 distance of the columns of numbers and dates that vary, in
    units of their mean distance from the median. ``outside`` is the mean over columns of the share
    of real rows that the declared domain does not hold.
    """
    columns = [Described.of(column) for column in table.schema.columns]
    ours, theirs = columns_of(real), columns_of(synthetic)
    cells = common_cells(columns, ours, theirs)
    found = {
        "decoded_column_l1": 2 * _mean([each.distance for each in cells.values()]),
        "outside": _mean([each.share for each in outside(table.schema, ours).values()]),
    }
    if len(cells) > 1:
        found["decoded_l1"] = mean_l1(*as_codes(cells))
    far = [each.w1 for each in cells.values() if np.isfinite(each.w1)]
    return found | ({"decoded_w1": _mean(far)} if far else {})


def decoded_scores(
    table: Table,
    real: "pd.DataFrame",
    held_out: "pd.DataFrame",
    synthetic: "pd.DataFrame",
    *,
    seed: int,
) -> dict[str, float]:
    """``value_scores``, and what the rows are good for beside rows that no fit has seen.

    The latter are those of ``metrics.usefulness``: ``decoded_auroc``, ``decoded_linear_auroc``,
    ``decoded_tv3`` and so on. Those of the fitted real rows are what a fresh real sample has.
    """
    columns = [Described.of(column) for column in table.schema.columns]
    found = usefulness(columns, columns_of(synthetic), columns_of(held_out), table.label, seed=seed)
    useful = {f"decoded_{name}": value for name, value in found.items()}
    return value_scores(table, real, synthetic) | useful


def clipped(table: Table) -> list[str]:
    """Sentences on the values that the declared domain does not hold, one for each column."""
    from sdv_privpgd.report.comparison import said

    lost = outside(table.schema, columns_of(table.frame))
    return [said(name, each) for name, each in lost.items() if each.share > 0]


def _mean(values: list[float]) -> float:
    return float(np.mean(values))
