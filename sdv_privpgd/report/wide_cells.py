"""The warnings after a fit about columns of which a few wide cells, or a few rows, decide the mean.

They are made of noisy answers and of what was declared or found: post-processing, public and free.
"""

import math

from sdv_privpgd.inference.values import HEAVIEST, code_values
from sdv_privpgd.report.known_facts import SURE, Facts
from sdv_privpgd.words import listed, share

_MUCH = 1.0
"""Rows in a code that reaches far out are worth a word if they could move the mean by this many
mean distances from the median."""

_FEW_VALUES = 0.05
"""Nothing is said of the mean of values that fewer of the rows have: noise is all there is."""

_CROWDED = 0.25
"""The share of rows in one cell of several values from which on it is worth a word."""

_MANY_FAR = 0.1
"""The share of rows in codes that reach far out from which on they are not few."""

_NAMED = 3


def on_wide_cells(fitted: Facts) -> list[str]:
    """Returns sentences on columns whose mean a few wide cells, or a few rows, decide. Public."""
    even, heavy, far, unknown, crowded = [], [], [], [], []
    for column in fitted.columns:
        table = fitted.tables.get(column.name)
        if column.sdtype != "numerical" or table is None:
            continue
        counts = table.counts[: column.num_values]
        if counts.sum() <= _FEW_VALUES * fitted.total.value:
            continue
        values, errors = code_values(column), SURE * math.sqrt(table.variance)
        far_out = values.far_reaching(counts, errors, _MUCH)
        if values.is_shaped and counts[far_out].sum() > _MANY_FAR * counts.sum():
            unknown.append(column.name)
        elif values.heavy(counts, HEAVIEST).any():
            (heavy if values.is_shaped else even).append(column.name)
        elif not values.is_shaped and values.crowded(counts, errors, _CROWDED).any():
            crowded.append(column.name)
        elif far_out.any():
            far.append(column.name)
    said = []
    if even:
        said.append(
            f"Much of the sum of {listed(even, _NAMED)} lies in a few wide cells, of which nothing "
            "says where in them the rows are: they are drawn evenly, values that many rows share, "
            "such as 0, are lost, and means may be far off. Declare cut_points for it, narrow "
            "where rows are many, or a smaller range."
        )
    if crowded:
        said.append(
            f"More than {share(_CROWDED)} of the rows of {listed(crowded, _NAMED)} lie in one "
            "cell, in which they are drawn evenly: values that many rows share, such as 0, are "
            "lost. Declare cut_points for it, narrow where rows are many: 0.01 after 0 keeps the "
            "zeros of money."
        )
    if heavy:
        said.append(
            f"Much of the sum of {listed(heavy, _NAMED)} lies in a few wide cells at the end of a "
            "long tail, and noise hides how rows are spread there: means, sums and the highest "
            "quantiles may be far off. answer() gives intervals that hold for any spread."
        )
    if unknown:
        said.append(
            f"More than {share(_MANY_FAR)} of the rows of {listed(unknown, _NAMED)} lie in a cell "
            "that reaches to an end of its range, far beyond the other values, and noise hides "
            "where in it: all of them may be drawn far too near to the others. Declare "
            "cut_points in it, or spend more. answer() gives intervals that hold wherever they lie."
        )
    if far:
        said.append(
            f"The range of {listed(far, _NAMED)} reaches far beyond nearly all rows, and the few "
            "that noise may hide there could make much of the mean: the rows would not have them. "
            "Declare a smaller range if you can, or cut_points beyond which they would be counted. "
            "answer() gives intervals that hold wherever they lie."
        )
    return said
