"""Means of products over rows, from all noisy tables, with their noise. Public."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sdv_privpgd.inference.linear import LinearEstimate, Product


@dataclass(frozen=True)
class Moments:
    """Means over the rows that have values, the covariance of their noise, and the rows.

    Attributes:
        values: The means, shape (product,).
        covariance: Of their noise, by the delta method: they are ratios of linear estimates.
        num_rows: The smallest number of rows that one of them is a mean over.
    """

    values: np.ndarray
    covariance: np.ndarray
    num_rows: float


def moments(
    estimate: LinearEstimate, products: Sequence[Product], present: Mapping[str, np.ndarray]
) -> Moments:
    """The mean of each product, over the rows that have values in all of its columns.

    Args:
        estimate: From all noisy tables.
        products: Functions of codes, 0 where values are missing.
        present: For each column with missing values, 1 for codes that are values.

    Raises:
        ValueError: If the tables do not determine one of them, or leave no rows.
    """
    keys = [tuple(name for name in present if name in product) for product in products]
    distinct = list(dict.fromkeys(keys))
    bases: list[Product] = [{name: present[name] for name in key} for key in distinct]
    found = estimate.answers([*products, *bases])
    if not found.known.all():
        names = {
            " x ".join(product)
            for product, known in zip([*products, *bases], found.known, strict=True)
            if not known
        }
        raise ValueError(
            f"The measured tables do not determine {', '.join(sorted(names))}. A regression needs "
            "every pair of its columns: method='privpgd', the default, measures them."
        )
    number = len(products)
    rows = found.values[number:]
    if (rows <= 0).any():
        raise ValueError("Noise hides all rows that have values. Leave out a column.")
    own = np.array([distinct.index(key) for key in keys])
    values = found.values[:number] / rows[own]
    # d(T / N) = (dT - (T / N) dN) / N
    gradient = np.zeros((number, len(found.values)))
    gradient[np.arange(number), np.arange(number)] = 1 / rows[own]
    gradient[np.arange(number), number + own] -= values / rows[own]
    return Moments(values, gradient @ found.covariance @ gradient.T, float(rows.min()))


def times(one: Product, other: Product) -> Product:
    """The product of two products."""
    found = dict(one)
    for name, values in other.items():
        found[name] = found[name] * values if name in found else values
    return found
