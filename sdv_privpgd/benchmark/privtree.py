"""PrivTree: numbers and dates are cut more finely where many rows are."""

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.columns.merging import Merging
from sdv_privpgd.privacy.curator import Curator

FINEST = 512
"""Cells of the grid that is cut: nine halvings of a range. Our own discovery has as many."""


def cut_by_privtree(
    curator: Curator,
    num_cells: Mapping[str, int],
    mu_squared: Fraction,
    *,
    progress: Progress = silent,
) -> dict[str, Merging]:
    """For each attribute the neighboring cells that share a code, as PrivTree finds them.

    Zhang, Xiao & Xie 2016, one range at a time, as the benchmark paper's code has it among its
    preprocessings. The noise is logistic instead of Laplace (``privacy/selection.py``), and the
    halvings end with the grid. That code halves a list while it goes through it, takes the number
    of all halvings so far for the depth, and counts the attributes twice in its noise; here the
    decay is by a part's own depth, and each attribute has an equal share of the budget. Values are
    drawn evenly from a code.

    Privacy: ``mu_squared`` in all, charged by the curator.

    Args:
        curator: Of a table whose attributes have a code for each cell of a grid, in order.
        num_cells: For each attribute to cut how many of its first codes are cells; missing is not.
        mu_squared: For all attributes together.
        progress: Told of the attributes.
    """
    found = {}
    for name, number in progress(tuple(num_cells.items()), "discover"):
        part = mu_squared / len(num_cells)
        firsts = curator.split(name, number, part, what=f"where to cut {name}")
        begins = np.zeros(number, dtype=np.int64)
        begins[firsts] = 1
        codes = np.cumsum(begins) - 1
        found[name] = Merging(tuple(codes.tolist()), (1.0,) * number)
    return found
