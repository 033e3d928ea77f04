"""Linear and logistic regression from noisy tables of pairs, with honest standard errors. Public.

What a regression needs are means of products of two terms, and the tables of pairs have them: the
best linear unbiased estimates s of all of them, with a known covariance C of their noise. They are
about N(n mu(theta), n Sigma(theta) + C), where n Sigma is what sampling the rows adds, and there
are as many of them as parameters. So the best theta matches them, and its covariance is

    (dmu)^-1 (n Sigma + C) (dmu)^-T / n^2 = [n Sigma (n Sigma + C)^-1 n Sigma]^-1

where the second form is for natural parameters of an exponential family (Bernstein & Sheldon 2019
do the linear case with a prior). Intervals are Wald's.

The coefficients of a linear regression need no more than that. How much of their error is sampling
depends on whether errors are larger for some rows than for others (White 1980), which involves the
products of four columns. How the size of errors goes with the terms is taken from the fitted
model's rows, the size itself from the tables. A logistic regression is in ``logistic.py``.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd.inference.answers import on_people
from sdv_privpgd.inference.coefficients import Regression
from sdv_privpgd.inference.design import Design, design_of
from sdv_privpgd.inference.linear import LinearEstimate
from sdv_privpgd.inference.logistic import logistic
from sdv_privpgd.inference.model_rows import distinct_rows, values_in
from sdv_privpgd.inference.moments import moments, times
from sdv_privpgd.inference.questions import Questions
from sdv_privpgd.inference.scaling import Scaled, scaled
from sdv_privpgd.synthesize.engine import Model

_LEAST_EIGENVALUE = 1e-6
"""Of the terms' correlations: below it the terms say the same, or noise hides what they say."""


def regression(
    questions: Questions,
    outcome: str,
    on: str | Sequence[str],
    kind: str = "linear",
    *,
    event: Any = None,
    reference: Mapping[str, Any] | None = None,
) -> Regression:
    """A regression, as ``FittedTable.regression`` describes it.

    Raises:
        ValueError: For columns that cannot be regressed, pairs that were not measured, and noise
            that hides the answer.
    """
    columns = {column.name: column for column in questions.schema.attributes}
    names = [on] if isinstance(on, str) else list(on)
    release = questions.release
    design = design_of(
        columns, outcome, names, kind, held=release.held, event=event, reference=reference
    )
    ready = scaled(design, questions.linear)
    if kind == "linear":
        coefficients, sampling, noise, num_rows = _linear(ready, questions.linear, release.model)
    else:
        coefficients, sampling, noise, num_rows = logistic(ready, questions.linear, release.model)
    index = pd.Index([term.name for term in ready.design.terms], name="term")
    back = ready.back
    noise = back @ noise @ back.T
    covariance = back @ sampling @ back.T + noise
    compared = [f"{name} with {value}" for name, value in design.references.items()]
    notes = [f"Compared: {', '.join(compared)}."] if compared else []
    return Regression(
        title=f"{kind.capitalize()} regression of {design.outcome.name} on {', '.join(names)}",
        coefficients=pd.Series(back @ coefficients, index=index, name="coef"),
        covariance=pd.DataFrame(covariance, index=index, columns=index),
        noise=pd.DataFrame(noise, index=index, columns=index),
        num_rows=num_rows,
        notes=(*notes, *ready.design.notes, *on_people(release)),
    )


def _linear(
    ready: Scaled, estimate: LinearEstimate, model: Model
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Least squares: coefficients, their covariance by sampling and by noise, and the rows."""
    design: Design = ready.design
    every = [*(term.product for term in design.terms), design.outcome.product]
    size = len(every)
    rows, columns = np.triu_indices(size)
    found = moments(
        estimate,
        [times(every[row], every[column]) for row, column in zip(rows, columns, strict=True)],
        design.present,
    )
    square = np.zeros((size, size))
    square[rows, columns] = square[columns, rows] = found.values
    gram, cross = square[:-1, :-1], square[:-1, -1]
    require_distinct(gram)
    inverse = np.linalg.inv(gram)
    coefficients = inverse @ cross
    contrast = np.append(-coefficients, 1.0)
    residual = float(contrast @ square @ contrast)
    if residual <= 0:
        raise ValueError(
            "The noise of the tables is larger than what the terms leave of the outcome, so there "
            "is no standard error. Regress on fewer columns, or spend more."
        )
    # d(beta) = gram^-1 (d cross - d gram beta): a linear function of the moments.
    change = np.zeros((size - 1, len(rows)))
    for place, (row, column) in enumerate(zip(rows, columns, strict=True)):
        if row < size - 1:
            change[row, place] += contrast[column]
        if column < size - 1 and column != row:
            change[column, place] += contrast[row]
    change = inverse @ change
    noise = change @ found.covariance @ change.T
    spread = residual * _spread(design, model, coefficients) / found.num_rows
    return coefficients, inverse @ spread @ inverse, noise, found.num_rows


def _spread(design: Design, model: Model, coefficients: np.ndarray) -> np.ndarray:
    """The mean of x x' over the model's rows, each weighed by its squared error's share."""
    rows, shares = distinct_rows(design, model, design.columns)
    x = values_in(rows, model, [term.product for term in design.terms])
    (y,) = values_in(rows, model, [design.outcome.product]).T
    squares = (y - x @ coefficients) ** 2
    weights = shares * squares if squares.any() else shares
    return (x * (weights / weights.sum())[:, None]).T @ x


def require_distinct(gram: np.ndarray) -> None:
    """Raises ``ValueError`` if scaled terms say the same as others, or noise hides them."""
    scale = np.sqrt(np.maximum(np.diagonal(gram), 1e-12))
    if np.linalg.eigvalsh(gram / np.outer(scale, scale)).min() < _LEAST_EIGENVALUE:
        raise ValueError(
            "The terms cannot be told apart: some follow from others, or the noise of the tables "
            "hides what they say. Regress on fewer columns, or on fewer values of them."
        )
