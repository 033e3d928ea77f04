"""Rows of a fitted model, for what the tables of pairs do not say. Public."""

from collections.abc import Sequence

import numpy as np

from sdv_privpgd.inference.design import Design
from sdv_privpgd.inference.linear import Product
from sdv_privpgd.synthesize.engine import Model

FEWEST_ROWS = 20_000
"""Rows that are drawn from a model, at the least."""


def distinct_rows(
    design: Design, model: Model, names: Sequence[str], most: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Distinct codes of a model's rows that miss none of some columns, and their shares.

    Args:
        design: Says which codes are values.
        model: Of all columns.
        names: The columns; the codes of all others are 0.
        most: The most rows that are drawn, where whole decks of particles are more; no limit by
            default.

    Raises:
        ValueError: If no row has values in all of the columns.
    """
    number = -(-FEWEST_ROWS // model.block) * model.block  # whole decks: each particle as often
    codes = model.sample(number if most is None else min(number, max(most, FEWEST_ROWS)), 0)
    axes = model.domain.axes(names)
    kept = np.all([design.valued[n][codes[:, a]] > 0 for n, a in zip(names, axes, strict=True)], 0)
    if not kept.any():
        raise ValueError("No row of the model has values in all of these columns.")
    others = np.zeros_like(codes[kept])
    others[:, axes] = codes[kept][:, axes]
    distinct, counts = np.unique(others, axis=0, return_counts=True)
    return distinct, counts / counts.sum()


def values_in(rows: np.ndarray, model: Model, products: Sequence[Product]) -> np.ndarray:
    """The products of each row, shape (row, product)."""
    places = dict(zip(model.domain.attributes, range(len(model.domain)), strict=True))
    found = np.ones((len(rows), len(products)))
    for column, product in zip(found.T, products, strict=True):
        for name, values in product.items():
            column *= values[rows[:, places[name]]]
    return found
