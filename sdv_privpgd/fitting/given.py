"""What the rows of a table have of their parents, as the models of these say. Public."""

import math
from collections.abc import Callable
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from sdv_privpgd.base.domain import table_of
from sdv_privpgd.columns.links import Link
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.privacy.queries import MarginalQuery, Measurement
from sdv_privpgd.sampling.sampler import encoded_rows

if TYPE_CHECKING:
    from sdv_privpgd.fitting.linked import FittedTables


def given_tables(
    fitted: "FittedTables", link: Link, most: int
) -> Callable[[Schema], list[Measurement]]:
    """Returns what makes tables of all columns of parents and of pairs of them, by a schema.

    They have what rows below the fitted tables have of their parents: in as many families as there
    are, or ``most``.
    """
    num_rows = max(fitted.tables[fitted.tree.root].num_rows or 0, 0)
    number = min(max(num_rows, 1), most)
    made, families = fitted.first_families(number, -1)
    family = families[link.parent]
    above, numbers = fitted.above(link, made[link.parent], family)
    whose = np.repeat(np.arange(len(numbers)), numbers)
    cells = {name: own.take(whose).reset_index(drop=True) for name, own in above.items()}
    if link.place is not None:
        first = np.cumsum(numbers) - numbers
        cells[link.place] = pd.Series(np.arange(len(whose)) - first[whose] + 1)
    weights = 1 / np.bincount(family, weights=numbers, minlength=1)[family][whose]
    total = num_rows * weights.sum() / number  # of families that have children

    def tables(schema: Schema) -> list[Measurement]:
        columns = [each for each in schema.attributes if each.name in cells]
        codes = {each.name: encoded_rows(each, cells[each.name]) for each in columns}
        found = []
        for own in (*combinations(columns, 1), *combinations(columns, 2)):
            shape = tuple(each.size for each in own)
            clique = tuple(each.name for each in own)
            sums = table_of([codes[name] for name in clique], shape, weights)
            counts = sums * total / max(sums.sum(), 1e-9)
            stddev = total / (number * math.prod(shape)) ** 0.5  # of a mean count
            found.append(Measurement(query=MarginalQuery(clique), answer=counts, stddev=stddev))
        return found

    return tables
