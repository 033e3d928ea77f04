"""The preprocessings that the comparison exchanges: how the codes of a table come about.

``equal_width`` cuts ranges equally, and lets neighbors in the declared order share a code where
there are more than ``--cells`` categories: it costs nothing. ``equal_mass`` is this package's own
discovery: codes of about equally many rows, as many as the noise can pay for. ``privtree`` cuts
ranges by PrivTree. With ``+rare`` categories are not put together by their order: those of columns
with at least 100 keep a code each, but for the rare ones (benchmark paper, Algorithm 1);
``equal_width+rare`` is what that paper does unless it says otherwise.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.benchmark.tables import Table, columns_of
from sdv_privpgd.columns.bins import Categories, Merging
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.cutting import column_of
from sdv_privpgd.columns.facts import CategoryFacts, ColumnFacts
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.discovery.first_look import reserved_delta
from sdv_privpgd.discovery.plan import discover, worth_a_look
from sdv_privpgd.fitting.cells import codes_paid_for, with_codes
from sdv_privpgd.methods.method import Method
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.ledger import Books
from sdv_privpgd.privacy.queries import MarginalQuery

if TYPE_CHECKING:
    import pandas as pd

NUMBERS = ("equal_width", "equal_mass", "privtree")
"""What can be done with numbers and dates."""

PREPROCESSINGS = (*NUMBERS, *(f"{name}+rare" for name in NUMBERS))

SHARE = Fraction(1, 10)
"""Part of the budget for a preprocessing that asks (benchmark paper, appendix A.4.1)."""

FINEST = 512
"""Cells of the grid that is cut: nine halvings of a range. Our own discovery has as many."""

MANY = 100
"""Attributes with fewer categories keep them all (benchmark paper, appendix A.4.1)."""

RARE = Fraction(2, 1000)
"""The part of all rows below which a category is rare, there called theta."""

_DEVIATIONS = 3
"""A category is rare as well if its noisy count is below so many standard deviations."""


@dataclass(frozen=True, kw_only=True)
class Preprocessing:
    """One of ``PREPROCESSINGS``.

    Attributes:
        name: Its name.
        share: Part of the budget, for all columns that it looks into together.
    """

    name: str
    share: Fraction = SHARE

    def __post_init__(self) -> None:
        if self.name not in PREPROCESSINGS:
            raise ValueError(
                f"There is no preprocessing {self.name!r}: choose from {PREPROCESSINGS!r}."
            )
        if not 0 < self.share < 1:
            raise ValueError(f"The share must be above 0 and below 1, got {self.share!r}.")

    @property
    def numbers(self) -> str:
        """What is done with numbers and dates."""
        return self.name.removesuffix("+rare")

    @property
    def merges_rare(self) -> bool:
        """Whether rare categories share a code."""
        return self.name.endswith("+rare")

    def reserved(self, table: Table, delta: float) -> Fraction:
        """The part of delta that its questions with a threshold need."""
        return reserved_delta(self._shapeless(table), delta)

    def schema(self, table: Table, rows: "pd.DataFrame", books: Books, method: Method) -> Schema:
        """The columns with the codes that it gives them.

        Privacy: ``share`` of the budget at most, charged by the curator.

        Args:
            table: The table that is compared, with its declared columns.
            rows: Its private rows.
            books: Of the fit.
            method: What will be asked of the codes, which decides how many can be paid for.
        """
        columns = {column.name: column for column in table.schema.columns}
        trees = self._trees(columns) if self.numbers == "privtree" else {}
        rare = self._rare(columns) if self.merges_rare else {}
        shapeless = self._shapeless(table)
        parts = books.ledger.budget * self.share / max(len(trees) + len(rare) + len(shapeless), 1)
        found = {name: _neighbors(column, table.cells) for name, column in columns.items()}
        fine = Schema((*trees.values(), *rare.values()))
        if fine.columns:
            curator = PrivateTable(columns_of(rows)).curator(fine, books)
            cells = {name: column.num_values for name, column in trees.items()}
            cut = cut_by_privtree(curator, cells, parts * len(trees)) if trees else {}
            sizes = {name: column.num_values for name, column in rare.items()}
            merged = merge_rare(curator, sizes, parts * len(rare)) if rare else {}
            for name, merging in {**cut, **merged}.items():
                found[name] = replace({**trees, **rare}[name], merging=merging)
        if shapeless:
            share = self.share * len(shapeless) / (len(trees) + len(rare) + len(shapeless))
            facts = discover(PrivateTable(columns_of(rows)), shapeless, books, share).facts
            number = codes_paid_for(columns, len(rows), books.ledger, method)
            coded = with_codes(facts, table.facts, min(number, table.cells))
            for name, known in coded.items():
                found[name] = column_of(name, table.facts[name].and_found(known), table.cells)
        return Schema(tuple(found.values()))

    def _shapeless(self, table: Table) -> dict[str, ColumnFacts]:
        """The numbers and dates that this package's own discovery looks into."""
        if self.numbers != "equal_mass":
            return {}
        looked = worth_a_look(table.facts, table.cells)
        return {name: each for name, each in looked.items() if not isinstance(each, CategoryFacts)}

    def _trees(self, columns: Mapping[str, Column]) -> dict[str, Column]:
        """The numbers and dates of more values than cells, on a grid."""
        found = {}
        for name, column in columns.items():
            if not isinstance(column.cells, Categories):
                cells = replace(column.cells, num_bins=FINEST, cuts=())
                if len(cells) > len(column.cells):
                    found[name] = replace(column, cells=cells, merging=None)
        return found

    def _rare(self, columns: Mapping[str, Column]) -> dict[str, Column]:
        """The columns of many categories, with a code for each."""
        return {
            name: replace(column, merging=None)
            for name, column in columns.items()
            if isinstance(column.cells, Categories) and len(column.cells) >= MANY
        }


def _neighbors(column: Column, most: int) -> Column:
    """The column, with neighbors that share a code where it has more than ``most`` categories."""
    size = len(column.cells)
    if not isinstance(column.cells, Categories) or size <= most:
        return column
    codes = np.arange(size) * most // size
    return replace(column, merging=Merging(tuple(codes.tolist()), (1.0,) * size))


def decode(schema: Schema, codes: np.ndarray, seed: int) -> "pd.DataFrame":
    """Rows of codes of a schema as values, which are drawn in each code as its frequencies say."""
    import pandas as pd

    from sdv_privpgd.columns.encoders import encoder_for  # imports RDT

    generator = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            column.name: encoder_for(column).decode(
                codes[:, axis].astype(np.int64), generator.random(len(codes))
            )
            for axis, column in enumerate(schema.columns)
        }
    )


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


def merge_rare(
    curator: Curator,
    num_categories: Mapping[str, int],
    mu_squared: Fraction,
    *,
    progress: Progress = silent,
) -> dict[str, Merging]:
    """For each attribute with many categories those that share a code, and have the last one.

    Chen et al. 2025 (the benchmark paper), Algorithm 1: the categories of which fewer rows are
    counted than 0.2 % of all, or than three standard deviations of the noise. The attributes are
    counted together, which is an equal share of the budget for each. All declared categories are
    counted, where that paper's code counts those that occur, which tells which ones do not.
    Values are drawn evenly from the merged code.

    Privacy: ``mu_squared`` in all, charged by the curator; nothing if no attribute has many.

    Args:
        curator: Of a table whose attributes have a code for each category.
        num_categories: For each attribute to look at how many of its first codes are categories.
        mu_squared: For all attributes together.
        progress: Told of the measurements.
    """
    names = [name for name, number in num_categories.items() if number >= MANY]
    answers = curator.measure(
        [MarginalQuery((name,)) for name in names],
        mu_squared,
        what="categories of columns that have many",
        progress=progress,
    )
    found = {}
    for name, answer in zip(names, answers, strict=True):
        counts = answer.answer[: num_categories[name]]
        least = max(float(RARE) * float(counts.sum()), _DEVIATIONS * answer.stddev)
        is_kept = counts >= least
        codes = np.where(is_kept, np.cumsum(is_kept) - 1, is_kept.sum())
        found[name] = Merging(tuple(codes.tolist()), (1.0,) * len(codes))
    return found
