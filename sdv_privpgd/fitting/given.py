"""What the rows of a table have of their parents, as the models of these say. Public."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True, kw_only=True, eq=False)
class GivenTables:
    """What a table's rows have of their parents, as the models of these say. Public.

    Attributes:
        cells: The columns of parents, with a row for each child.
        weights: What each child counts as.
        total: How many families have children.
        error: The standard deviation of a share that is 1 / number of cells, times its root.
    """

    cells: Mapping[str, pd.Series]
    weights: np.ndarray
    total: float
    error: float

    @classmethod
    def of(cls, fitted: "FittedTables", link: Link, most: int) -> "GivenTables":
        """Those of a table below fitted ones: of as many families as there are, or ``most``."""
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
        sizes = np.bincount(family, weights=numbers, minlength=1)
        weights = 1 / sizes[family][whose]
        total = num_rows * weights.sum() / number
        return cls(cells=cells, weights=weights, total=total, error=total / number**0.5)

    def __call__(self, schema: Schema) -> list[Measurement]:
        """The tables of all such columns and pairs of them in codes of a schema, in counts."""
        columns = [each for each in schema.attributes if each.name in self.cells]
        codes = {each.name: encoded_rows(each, self.cells[each.name]) for each in columns}
        found = []
        for degree in (1, 2):
            for own in combinations(columns, degree):
                shape = tuple(each.size for each in own)
                clique = tuple(each.name for each in own)
                sums = table_of([codes[name] for name in clique], shape, self.weights)
                counts = sums * self.total / max(sums.sum(), 1e-9)
                stddev = self.error / math.prod(shape) ** 0.5
                query = MarginalQuery(clique)
                found.append(Measurement(query=query, answer=counts, stddev=stddev))
        return found
