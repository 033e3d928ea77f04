"""Means over the rows that have all values, from noisy tables, and what sampling adds. Public.

A regression is of the rows that have its outcome and all of its predictors. It holds for all rows
where, among rows with the same predictors, the outcome is missing by chance: it may be missing more
often in one group than in another. So all means are over these same rows. What two columns have
together, and where one has a value and the other none, their table tells. What more columns have
together a table of them tells, if one was measured. If not, it is the fitted model's, moved by what
the tables say:

Let h be a product among rows that have all values, and f all that the tables know of it, such as
the same product among all rows. With K = cov(h, f) (cov(f) + ridge)^-1, from the model's rows, the
estimate is E[h] in the model + K (f in the tables - E[f] in the model). The noise of f goes through
K, and so does sampling: the estimate sees K f of a row, and not h. The mean of the rest, h - K f,
is the model's, and as uncertain as that of a sample of as many rows as the model has.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc  # pyright: ignore[reportMissingTypeStubs]

from sdv_privpgd.inference.design import Design, distinct_rows, times, values_in
from sdv_privpgd.inference.linear import LinearEstimate, Product
from sdv_privpgd.synthesize.engine import Model

RIDGE = 1e-3
"""The weight of the model's own means beside those of the tables: this part of the rows."""

NUMBERS = 20_000_000
"""Most features times rows of the model."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Moments:
    """Means over the rows that have all values, and how sure they are.

    Attributes:
        values: The means, shape (product,).
        covariance: Of the noise in them, by the delta method: they are ratios of estimates.
        num_rows: The rows that have all values.
        all_rows: The rows.
        own: The products in the model's rows less their means, times the root of each row's share,
            shape (row, product); no row where the tables tell all.
        left: What the estimate sees of them in their place, less these, in the same shape.
        drawn: The number of the model's rows.
    """

    values: np.ndarray
    covariance: np.ndarray
    num_rows: float
    all_rows: float
    own: np.ndarray
    left: np.ndarray
    drawn: int

    def sampling(self, change: np.ndarray, spread: np.ndarray) -> np.ndarray:
        """What drawing the rows adds to the covariance of a linear function of the means.

        Args:
            change: The function, shape (number, product).
            spread: The covariance of its numbers over rows that have all values. It is better known
                than from the model's rows, which lend it how it goes with what is left.
        """
        if not len(self.own):
            return spread / self.num_rows
        own, left = self.own @ change.T, self.left @ change.T
        scaled = _root(spread * self.all_rows / self.num_rows) @ np.linalg.pinv(_root(own.T @ own))
        seen = own @ scaled.T + left
        return seen.T @ seen / self.all_rows + left.T @ left / self.drawn


def _root(square: np.ndarray) -> np.ndarray:
    """The symmetric root of a matrix without negative eigenvalues."""
    values, vectors = np.linalg.eigh(square)
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T


def moments(
    estimate: LinearEstimate, model: Model, design: Design, products: Sequence[Product]
) -> Moments:
    """The mean of each product over the rows that have all values.

    Args:
        estimate: From all noisy tables.
        model: Tells what the tables leave open.
        design: Says in which columns values are missing.
        products: Functions of codes, 0 where values are missing.

    Raises:
        ValueError: If the tables do not determine one of them by itself, or leave no rows.
    """
    most = 3  # columns of a table that is measured
    present = [{name: own} for name, own in design.present.items()]
    targets = []
    for product in [*products, {}]:
        for each in present:
            product = times(product, each)
        targets.append(product)
    count, number = {}, len(targets)
    _require_known(estimate, design, products)
    # Of a table of more columns nothing is known.
    asked = [target if len(target) <= most else count for target in targets]
    is_known = np.array([len(target) <= most for target in targets])
    is_known &= estimate.answers(asked).known
    asked = [target if known else count for target, known in zip(asked, is_known, strict=True)]
    features: list[Product] = []
    is_known = np.array([len(target) <= most for target in targets])
    is_known &= estimate.answers(asked).known
    if not is_known.all():
        pairs = [each for each in [*products, *present] if len(each) < most]
        pairs += [times(each, more) for each in pairs if len(each) < 2 for more in present]
        threes = [target for target in targets if len(target) == most]
        features = _distinct([*pairs, *threes, *map(estimate.in_groups, threes)])
        features = [features[at] for at in np.flatnonzero(estimate.answers(features).known)]
    found = estimate.answers([*asked, *features, count])
    all_rows = float(found.values[-1])
    # Each target is a linear function of what is known.
    change = np.zeros((number, len(found.values)))
    change[np.arange(number), np.arange(number)] = is_known
    own = left = np.zeros((0, number))
    drawn = 0
    if features:
        rows, shares, drawn = distinct_rows(
            design, model, design.columns, NUMBERS // len(features), whole=False
        )
        f, own = values_in(rows, model, features), values_in(rows, model, targets)
        means, aims, weights = shares @ f, shares @ own, np.sqrt(shares)[:, None]
        f, own = (f - means) * weights, (own - aims) * weights
        places = slice(number, -1)
        ridge = RIDGE * found.covariance[places, places] / all_rows
        open_ = np.flatnonzero(~is_known)
        passed = np.linalg.lstsq(f.T @ f + ridge, f.T @ own[:, open_], rcond=1e-12)[0].T
        change[open_, places] = passed
        change[open_, -1] = aims[open_] - passed @ means
        left = np.zeros_like(own)
        left[:, open_] = f @ passed.T - own[:, open_]
    *sums, num_rows = change @ found.values
    if num_rows <= 0:
        raise ValueError(
            f"No rows are known to have all of {', '.join(map(repr, design.columns))}. Leave out a "
            "column."
        )
    values = np.array(sums) / num_rows
    # d(T / N) = (dT - (T / N) dN) / N
    ratio = np.hstack([np.eye(number - 1), -values[:, None]]) / num_rows
    change = ratio @ change
    return Moments(
        values=values,
        covariance=change @ found.covariance @ change.T,
        num_rows=float(num_rows),
        all_rows=all_rows,
        own=own @ ratio.T * all_rows,
        left=left @ ratio.T * all_rows,
        drawn=drawn,
    )


def _require_known(estimate: LinearEstimate, design: Design, products: Sequence[Product]) -> None:
    """Raises ``ValueError`` if products of two columns, or ones of the outcome, are not known."""
    needed = [each for each in products if len(each) < 3 or design.outcome.column in each]
    known = estimate.answers(needed).known
    names = {" x ".join(each) for each, is_known in zip(needed, known, strict=True) if not is_known}
    if names:
        raise ValueError(
            f"The measured tables do not determine {', '.join(sorted(names))}. A regression needs "
            "every pair of its columns, and of an interaction the table of both with the outcome: "
            "method='privpgd', the default, measures all pairs, and triples of few values."
        )


def _distinct(products: Sequence[Product]) -> list[Product]:
    """The products without repetitions."""
    return list(
        {
            tuple(sorted((name, own.tobytes()) for name, own in product.items())): product
            for product in products
        }.values()
    )


class Alike(ValueError):
    """Some terms follow from others, or decide the outcome, as far as the tables tell."""

    def __init__(self, square: np.ndarray) -> None:
        scale = np.sqrt(np.maximum(np.diagonal(square), 1e-12))
        self.loads = np.abs(np.linalg.eigh(square / np.outer(scale, scale))[1][:, 0])
        super().__init__("Some terms follow from others.")

    def weakest(self, design: Design) -> str:
        """The category that says most of what others say, or hardly anything.

        Raises:
            ValueError: If it is a number that does.
        """
        loads = np.array(
            [
                load * (bool(term.product) and (term.is_category or bool(term.parts)))
                for term, load in zip(design.terms, self.loads, strict=True)
            ]
        )
        alike = 0.2  # of the length of the direction in which terms are alike
        if loads.max() > alike:
            return design.terms[int(loads.argmax())].name
        names = [
            term.name
            for term, load in zip(design.terms, self.loads, strict=True)
            if load > alike and term.product
        ]
        raise ValueError(
            f"The terms {', '.join(names)} cannot be told apart: one follows from the others, or "
            "they decide the outcome, or too few rows differ in them. Leave one out."
        ) from None


def require_distinct(square: np.ndarray, least: float = 1e-6) -> None:
    """Raises ``Alike`` if the smallest eigenvalue of the terms' correlations is below ``least``."""
    scale = np.sqrt(np.maximum(np.diagonal(square), 1e-12))
    if np.linalg.eigvalsh(square / np.outer(scale, scale)).min() < least:
        raise Alike(square)


def on_missing(estimate: LinearEstimate, design: Design, found: Moments) -> list[str]:
    """What to keep in mind where values are missing, a sentence each.

    A test says in which columns they are missing more often for some values than for others: the
    counts of rows with a value, less what is expected, against their noise and what chance adds.
    """
    level = 0.01  # of the chance that some difference is one by chance, of all tests together
    if not design.missing:
        return []
    others = [name for name in design.columns if name != design.outcome.column]
    tested = [(name, by) for name in sorted(design.missing) for by in others if by != name]
    depends, chances = {}, {}
    for name, by in tested:
        units = [{by: own * design.valued[by]} for own in np.eye(len(design.valued[by]))]
        units = [unit for unit in units if unit[by].any()]
        answered = estimate.answers(
            [*units, *(times(u, {name: design.valued[name]}) for u in units)]
        )
        if not answered.known.all():
            continue
        size = len(units)
        rows, having = np.maximum(answered.values[:size], 0.0), answered.values[size:]
        share = having.sum() / max(rows.sum(), 1.0)
        change = np.hstack([-share * np.eye(size), np.eye(size)])
        change -= np.outer(rows / max(rows.sum(), 1.0), change.sum(axis=0))
        excess = change @ answered.values
        square = change @ answered.covariance @ change.T + max(share * (1 - share), 0.0) * (
            np.diag(rows) - np.outer(rows, rows) / max(rows.sum(), 1.0)
        )
        chances[name, by] = float(chdtrc(size - 1, excess @ np.linalg.pinv(square) @ excess))
    depends = [pair for pair, chance in chances.items() if chance * len(chances) < level]
    names = " and ".join(map(repr, sorted(design.missing)))
    notes = [
        f"Values of {names} are missing in some rows. The regression is of the rows that have all "
        "values. It holds for all rows if, among rows with the same predictors, the outcome is "
        "missing by chance."
    ]
    notes += [
        f"Values of {name!r} are missing more often for some values of {by!r} than for others "
        f"(p = {chances[name, by]:.2g})."
        for name, by in depends
    ]
    if len(depends) < len(chances):
        notes.append("")
    if len(found.own):
        notes.append(
            "Which values more than two columns have together among these rows was not measured. "
            "It is the fitted model's, and standard errors count its rows as a sample."
        )
    return notes
