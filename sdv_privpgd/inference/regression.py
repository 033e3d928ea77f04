"""Linear and logistic regression from noisy tables of pairs, with honest standard errors. Public.

What a regression needs are means of products of two terms, and the tables of pairs have them: the
best linear unbiased estimates s of all of them, with a known covariance C of their noise. They are
about N(n mu(theta), n Sigma(theta) + C), where n Sigma is what sampling the rows adds, and there
are as many of them as parameters. So the best theta matches them, and its covariance is

    (dmu)^-1 (n Sigma + C) (dmu)^-T / n^2 = [n Sigma (n Sigma + C)^-1 n Sigma]^-1

where the second form is for natural parameters of an exponential family (Bernstein & Sheldon 2019
do the linear case with a prior). Intervals are Wald's.

The coefficients of a linear regression need no more than that, but for missing values
(``moments.py``). How much of their error is sampling depends on whether errors are larger for some
rows than for others (White 1980), which involves the products of four columns. How the size of
errors goes with the terms is taken from the fitted model's rows, the size itself from the tables.
Where noise leaves nothing of the outcome, its whole variance counts as error.

The score equations of a logistic regression say that the mean of x y is that of x times the chance
of y given x. So they need the means of x y, which pairs have, and the joint distribution of the
covariates x, which they have not. That is taken from an exponential family: the fitted model's
rows, tilted by exp(lambda . f) until the means of the features f are the unbiased estimates from
the tables, of all covariates and of all of their pairs. What has three covariates in it is the
fitted model's.

With h = x chance(x) and G the covariance of f, a change of the means by d(xy) and d(f) moves the
score by d(xy) - K d(f), K = cov(h, f) G^-1. So the noise adds W C W' with W = [1, -K], and drawing
n rows adds (E[x x' chance (1 - chance)] + Var(h - K f)) / n. The tilt costs as much as n / 1000
rows of the model would weigh, which bounds it where noise puts a mean where no rows can have it;
there K is smaller.
"""

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import minimize  # pyright: ignore[reportMissingTypeStubs]
from scipy.special import expit, logsumexp, ndtr, softmax

from sdv_privpgd.base import one_blas_thread
from sdv_privpgd.inference.answers import on_people
from sdv_privpgd.inference.design import Design, ScaledDesign, design_of, distinct_rows, scaled
from sdv_privpgd.inference.intervals import deviations
from sdv_privpgd.inference.linear import LinearEstimate, Product, times, values_in
from sdv_privpgd.inference.moments import (
    NUMBERS,
    RIDGE,
    Alike,
    Moments,
    moments,
    on_missing,
    require_distinct,
)
from sdv_privpgd.inference.questions import Questions
from sdv_privpgd.synthesize.engine import Model


@dataclass(frozen=True, kw_only=True, repr=False)
class Regression:
    """Coefficients of the population, and how sure they are. Public.

    Attributes:
        title: What is regressed on what.
        coefficients: A Series by the names of the terms.
        covariance: Of the coefficients: sampling and noise. A frame.
        noise: The part of it that is the noise's. A frame.
        num_rows: The rows that have all values.
        notes: What to keep in mind, a sentence each.

    >>> names, square = pd.Index(["intercept", "age"]), np.diag([0.04, 0.0001])
    >>> square = pd.DataFrame(square, names, names)
    >>> found = Regression(title="Linear regression of pay on age", num_rows=1000.0, notes=(),
    ...     coefficients=pd.Series([2.0, 0.03], names), noise=square / 2, covariance=square)
    >>> found.summary().round(3).loc["age"].tolist()
    [0.03, 0.01, 3.0, 0.003, 0.01, 0.05]
    """

    title: str
    coefficients: pd.Series
    covariance: pd.DataFrame
    noise: pd.DataFrame
    num_rows: float
    notes: tuple[str, ...]

    @property
    def stddev(self) -> pd.Series:
        """The standard error of each coefficient."""
        found = np.sqrt(np.diagonal(self.covariance.to_numpy()))
        return pd.Series(found, index=self.coefficients.index)

    def interval(self, level: float = 0.95) -> pd.DataFrame:
        """The ends of each coefficient's interval, for the population."""
        half = deviations("population", level) * self.stddev
        return pd.DataFrame({"low": self.coefficients - half, "high": self.coefficients + half})

    def summary(self, level: float = 0.95) -> pd.DataFrame:
        """One row a term: ``coef``, ``std err``, ``z``, ``P>|z|``, and the interval's ends."""
        z = self.coefficients / self.stddev
        ends = self.interval(level)
        tails = (1 - level) / 2, (1 + level) / 2
        return pd.DataFrame(
            {
                "coef": self.coefficients,
                "std err": self.stddev,
                "z": z,
                "P>|z|": 2 * ndtr(-np.abs(z)),
                f"[{tails[0]:.4g}": ends["low"],
                f"{tails[1]:.4g}]": ends["high"],
            }
        )

    def __repr__(self) -> str:
        """The coefficients in a line, each with its standard error."""
        found = zip(self.coefficients.items(), self.stddev, strict=True)
        terms = ", ".join(f"{name} {value:.4g} ± {error:.2g}" for (name, value), error in found)
        return f"Regression({self.title!r}: {terms})"

    def __str__(self) -> str:
        table = self.summary().to_string(float_format="{:.4g}".format)
        share = np.diagonal(self.noise.to_numpy()) / np.diagonal(self.covariance.to_numpy())
        return "\n".join(
            [
                f"{self.title}, about {self.num_rows:,.0f} rows",
                table,
                "Standard errors are those of the population: sampling, and the noise of the "
                f"tables, which is {100 * share.min():.0f} to {100 * share.max():.0f} % of the "
                "variances.",
                *self.notes,
            ]
        )


@one_blas_thread
def regression(
    questions: Questions, outcome: str, on: Any, kind: str = "linear", **how: Any
) -> Regression:
    """A regression, as ``FittedTable.regression`` describes it."""
    ready, (coefficients, sampling, noise, found) = _solved(questions, outcome, on, kind, **how)
    estimate, release = questions.linear, questions.release
    design = ready.design
    index, back = _names(design), ready.back
    noise = back @ noise @ back.T
    covariance = release.ledger.rows_counted * (back @ sampling @ back.T) + noise
    named = design.columns[1:]
    compared = [f"{name} with {to}" for name, to in design.references.items() if name in named]
    notes = [f"Compared: {', '.join(compared)}."] if compared else []
    of_numbers = design.columns[how.get("event") is not None :]
    return Regression(
        title=f"{kind.capitalize()} regression of {design.outcome.name} on {', '.join(named)}",
        coefficients=pd.Series(back @ coefficients + ready.shift, index=index, name="coef"),
        covariance=pd.DataFrame(covariance, index=index, columns=index),
        noise=pd.DataFrame(noise, index=index, columns=index),
        num_rows=found.num_rows,
        notes=(
            *notes,
            *design.notes,
            *questions.on_wide_cells(of_numbers),
            *questions.on_ends(of_numbers),
            *on_missing(estimate, design, found),
            *on_people(release),
        ),
    )


def coefficients_of_rows(
    questions: Questions, rows: Model, outcome: str, on: Any, kind: str, **how: Any
) -> pd.Series:
    """The coefficients of synthetic rows, of the terms that ``regression`` has of the tables.

    Raises as ``regression``, and for rows that do not tell terms apart.
    """
    ready, _ = _solved(questions, outcome, on, kind, **how)
    design = ready.design
    x, y, shares = _in_rows(design, rows)
    weighed = x * shares[:, None]
    found = (
        np.linalg.lstsq(weighed.T @ x, weighed.T @ y, rcond=None)[0]
        if kind == "linear"
        else likeliest(design, shares, x, weighed.T @ y)
    )
    return pd.Series(ready.back @ found + ready.shift, index=_names(design), name="coef")


def _names(design: Design) -> pd.Index:
    return pd.Index([term.name for term in design.terms], name="term")


def _solved(
    questions: Questions, outcome: str, on: Any, kind: str, **how: Any
) -> tuple[ScaledDesign, tuple[np.ndarray, np.ndarray, np.ndarray, Moments]]:
    """The design without terms that noise hides, and what ``_linear`` or ``logistic`` gives."""
    release, estimate = questions.release, questions.linear
    design = design_of(questions.schema.named, outcome, on, kind, held=release.held, **how)
    full, weak = scaled(design, estimate, kind)
    solve = _linear if kind == "linear" else logistic
    while True:
        ready = full.without(weak)
        try:
            return ready, solve(ready.design, estimate, release.model)
        except Alike as alike:
            weak += alike.args


def _linear(
    design: Design, estimate: LinearEstimate, model: Model
) -> tuple[np.ndarray, np.ndarray, np.ndarray, Moments]:
    """Least squares: coefficients, their covariance by sampling and by noise, and the moments."""
    every = [*(term.product for term in design.terms), design.outcome.product]
    size = len(every)
    rows, columns = np.triu_indices(size)
    found = moments(
        estimate,
        model,
        design,
        [times(every[row], every[column]) for row, column in zip(rows, columns, strict=True)],
    )
    square = np.zeros((size, size))
    square[rows, columns] = square[columns, rows] = found.values
    gram, cross = square[:-1, :-1], square[:-1, -1]
    rest = np.where(rows == columns, 1.0, 2.0) * (columns < size - 1)

    def variance(direction: np.ndarray) -> float:
        both = np.append(direction, 0.0)
        weights = rest * both[rows] * both[columns]
        return float(weights @ found.covariance @ weights)

    require_distinct(design, gram, variance)
    inverse = np.linalg.inv(gram)
    coefficients = inverse @ cross
    contrast = np.append(-coefficients, 1.0)
    residual = float(contrast @ square @ contrast)
    # d(beta) = gram^-1 (d cross - d gram beta): a linear function of the moments.
    change = np.zeros((size - 1, len(rows)))
    for place, (row, column) in enumerate(zip(rows, columns, strict=True)):
        if row < size - 1:
            change[row, place] += contrast[column]
        if column < size - 1 and column != row:
            change[column, place] += contrast[row]
    change = inverse @ change
    noise = change @ found.covariance @ change.T
    if residual <= 0:  # least is known of the category whose coefficient is the noisiest
        own = np.diagonal(noise) * [term.is_compared for term in design.terms]
        if own.any():
            raise Alike(design.terms[int(own.argmax())].name)
        residual = 1.0  # the variance of the scaled outcome, which is the most that can be left
    spread = residual * inverse @ _spread(design, model, coefficients) @ inverse
    return coefficients, found.sampling(change, spread), noise, found


def _in_rows(design: Design, model: Model) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The terms and the outcome in distinct rows of a model, and the shares of these."""
    rows, shares = distinct_rows(design, model, design.columns)
    every = [*(term.product for term in design.terms), design.outcome.product]
    values = values_in(rows, model.domain, every)
    return values[:, :-1], values[:, -1], shares


def _spread(design: Design, model: Model, coefficients: np.ndarray) -> np.ndarray:
    """The mean of x x' over the model's rows, each weighed by its squared error's share."""
    x, y, shares = _in_rows(design, model)
    squares = (y - x @ coefficients) ** 2
    weights = shares * squares if squares.any() else shares
    return (x * (weights / weights.sum())[:, None]).T @ x


MOST_FEATURES = 800
"""More features of the covariates than that take minutes and gigabytes."""

_STEPS = 100


def logistic(
    design: Design, estimate: LinearEstimate, model: Model
) -> tuple[np.ndarray, np.ndarray, np.ndarray, Moments]:
    """Coefficients, their covariance by sampling and by noise, and the moments.

    Raises ``Alike`` for a category that follows from other terms, or decides the outcome.
    """
    features = _features(design)
    if len(features) > MOST_FEATURES:
        raise ValueError(
            f"Pairs of these columns' values are {len(features)} numbers, and {MOST_FEATURES} is "
            "the limit. Regress on fewer columns, or on ones with fewer values."
        )
    size = len(design.terms)
    crossed = [times(term.product, design.outcome.product) for term in design.terms]
    found = moments(estimate, model, design, [*crossed, *features])
    names = [name for name in design.columns if name != design.outcome.column]
    most = NUMBERS // max(len(features), 1)
    rows, shares = distinct_rows(design, model, names, most)
    x = values_in(rows, model.domain, [term.product for term in design.terms])
    f = values_in(rows, model.domain, features)
    ridge = RIDGE * found.num_rows * found.covariance[size:, size:]
    shares = _tilted(shares, f, found.values[size:], ridge)
    coefficients = likeliest(design, shares, x, found.values[:size])
    chances = expit(x @ coefficients)
    h = x * chances[:, None]
    centered = f - shares @ f
    weighed = centered * shares[:, None]
    passed = np.linalg.lstsq(weighed.T @ centered + ridge, weighed.T @ h, rcond=None)[0].T
    information = (x * (shares * chances * (1 - chances))[:, None]).T @ x
    inverse = np.linalg.inv(information)
    left = h - shares @ h - centered @ passed.T
    spread = inverse @ (information + (left * shares[:, None]).T @ left) @ inverse
    change = inverse @ np.hstack([np.eye(size), -passed])
    noise = change @ found.covariance @ change.T
    return coefficients, found.sampling(change, spread), noise, found


def _features(design: Design) -> list[Product]:
    """Functions of one and of two covariates whose means the tables know.

    A category has one for each value but the reference, a number its first powers: three alone, two
    in pairs.
    """
    own: dict[str, list[np.ndarray]] = {}
    for term in design.terms[1:]:
        if term.parts:
            continue
        own.setdefault(term.column, []).append(term.values)
    alone, paired = [], {}
    for name, functions in own.items():
        (first, *more) = functions
        is_number = not more and not set(np.unique(first)) <= {0.0, 1.0}
        powers = min(len(np.unique(first[design.valued[name] > 0])) - 1, 3) if is_number else 1
        every = [first**power for power in range(1, powers + 1)] if is_number else functions
        alone += [{name: values} for values in every]
        paired[name] = every[:2] if is_number else functions
    pairs = [
        {one: left, other: right}
        for one, other in combinations(paired, 2)
        for left in paired[one]
        for right in paired[other]
    ]
    return [*alone, *pairs]


def _tilted(shares: np.ndarray, f: np.ndarray, means: np.ndarray, ridge: np.ndarray) -> np.ndarray:
    """The shares, tilted so that features have these means, as far as the ridge lets them.

    They maximize the entropy: the tilt is least in log sum shares exp(tilt . f) - tilt . means +
    tilt' ridge tilt / 2, which is convex.
    """
    centered, logs = f - means, np.log(shares)

    def value(tilt: np.ndarray) -> tuple[float, np.ndarray]:
        scores = logs + centered @ tilt
        slope = softmax(scores) @ centered + ridge @ tilt
        return float(np.asarray(logsumexp(scores)) + tilt @ ridge @ tilt / 2), slope

    def square(tilt: np.ndarray) -> np.ndarray:
        own = softmax(logs + centered @ tilt)
        away = centered - own @ centered
        return (away * own[:, None]).T @ away + ridge

    start, exact = np.zeros(len(means)), {"gtol": 1e-9}
    found = minimize(value, start, jac=True, hess=square, method="trust-exact", options=exact)
    return softmax(logs + centered @ found.x)


def likeliest(design: Design, shares: np.ndarray, x: np.ndarray, means: np.ndarray) -> np.ndarray:
    """The coefficients whose score is 0: the concave log-likelihood's maximum, by Newton."""
    beta = np.zeros(x.shape[1])

    def value(beta: np.ndarray) -> float:
        return float(beta @ means - shares @ np.logaddexp(0, x @ beta))

    now = value(beta)
    rise, number = np.inf, 0
    while rise >= 1e-14:
        chances = expit(x @ beta)
        gradient = means - (shares * chances) @ x
        information = (x * (shares * chances * (1 - chances))[:, None]).T @ x
        # Coefficients that still grow after so many steps have no end.
        require_distinct(design, information, least=1e-10 if number < _STEPS else np.inf)
        step = np.linalg.solve(information, gradient)
        rise = float(gradient @ step)
        length = 1.0
        while length > 1e-6 and value(beta + length * step) < now + 1e-4 * length * rise:
            length /= 2
        beta = beta + length * step
        now, number = value(beta), number + 1
    return beta
