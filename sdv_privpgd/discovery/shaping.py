"""How the differences of columns in order are distributed, found privately.

Their ranges are known as soon as the columns' are; where in them rows lie is asked of the curator,
so the ledger has it. All else is post-processing of his answers.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.columns.differences import Difference
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.discovery.bounds import edges_of
from sdv_privpgd.discovery.density import LIGHT, Density
from sdv_privpgd.discovery.transcript import Transcript
from sdv_privpgd.estimate.noisy_tables import NoisyTable
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.ledger import Books
from sdv_privpgd.privacy.queries import MarginalQuery


def part_for_shapes(number: int, others: int) -> Fraction:
    """The part of discovery's budget for so many differences, beside other columns.

    One has twice that of a column: a tail is thin.
    """
    return Fraction(2 * number, max(2 * number + others, 1))


def find_shapes(
    table: PrivateTable,
    differences: Sequence[Difference],
    books: Books,
    mu_squared: Fraction,
    *,
    transcript: Transcript | None = None,
    progress: Progress = silent,
) -> dict[str, tuple[float, ...]]:
    """How frequent each cell of differences is, of those that are not lost in noise. Public.

    Privacy: sqrt(mu_squared)-GDP. A difference follows from a row's own cells, so a neighbor
    changes one cell of each table of counts by one, or two, as for any other column.

    Args:
        table: The private columns.
        differences: Those to look into, in fine cells.
        books: Of the fit.
        mu_squared: For all differences together.
        transcript: Gets the answers, and has those of a discovery that ended early.
        progress: Told of the measurements.
    """
    if not differences or not mu_squared:
        return {}
    schema, known = Schema((), tuple(differences)), transcript or Transcript()
    asker = known.asking(lambda: table.curator(schema, books), books)
    names = [difference.name for difference in differences]
    answers = asker.measure(
        [MarginalQuery((name,)) for name in names],
        mu_squared,
        what=f"sizes of {', '.join(map(repr, names))}",
        progress=progress,
    )
    found = {}
    for difference, answer in zip(differences, answers, strict=True):
        counts = answer.answer[: difference.column.num_values].astype(np.float64)
        noisy = NoisyTable(counts, answer.stddev**2)
        frequent = _frequencies(Density.of(edges_of(difference.column), noisy))
        if frequent is not None:
            found[difference.name] = tuple(frequent.tolist())
    return found


def _frequencies(density: Density) -> np.ndarray | None:
    """The rows of each cell, none where too few can be; None if noise is all there is.

    Tails may hold rows that the noise hides. Nothing is cut off at the small end, where many narrow
    cells hold few rows each. The large end goes as far as half a row may lie: all means would show
    the noise of a code of very large differences.
    """
    if not density.is_clear:
        return None
    frequent = density.rows()
    beyond = np.cumsum(frequent[::-1])[::-1]
    least = frequent.max() * LIGHT
    return np.where(beyond > 0.5, np.maximum(frequent, least), 0.0)
