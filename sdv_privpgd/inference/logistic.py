"""Logistic regression from noisy tables of pairs. Public.

Its score equations say that the mean of x y is that of x times the chance of y given x, so they
need the means of x y, which pairs have, and the joint distribution of the covariates x, which they
have not. That is taken from an exponential family: the fitted model's rows, tilted by exp(lambda .
f) until the means of the features f are the unbiased estimates from the tables, of all covariates
and of all of their pairs. What has three covariates in it is the fitted model's.

With h = x chance(x) and G the covariance of f, a change of the means by d(xy) and d(f) moves the
score by d(xy) - K d(f), K = cov(h, f) G^-1. So the noise adds W C W' with W = [1, -K], and drawing
n rows adds (E[x x' chance (1 - chance)] + Var(h - K f)) / n. The tilt costs as much as n / 1000
rows of the model would weigh, which bounds it where noise puts a mean where no rows can have it;
there K is smaller.
"""

from itertools import combinations

import numpy as np
from scipy.special import expit  # pyright: ignore[reportMissingTypeStubs]

from sdv_privpgd.inference.design import Design, distinct_rows, times, values_in
from sdv_privpgd.inference.linear import LinearEstimate, Product
from sdv_privpgd.inference.moments import (
    NUMBERS,
    RIDGE,
    Moments,
    moments,
    require_distinct,
)
from sdv_privpgd.synthesize.engine import Model

MOST_FEATURES = 800
"""More features of the covariates than that take minutes and gigabytes."""

_STEPS = 100


def logistic(
    design: Design, estimate: LinearEstimate, model: Model
) -> tuple[np.ndarray, np.ndarray, np.ndarray, Moments]:
    """Coefficients, their covariance by sampling and by noise, and the moments.

    Raises:
        Alike: For a category that follows from other terms, or decides the outcome.
        ValueError: For too many features.
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
    x = values_in(rows, model, [term.product for term in design.terms])
    f = values_in(rows, model, features)
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

    Newton's method on log sum shares exp(tilt . f) - tilt . means + tilt' ridge tilt / 2.
    """
    centered, aim = f - means, np.zeros(len(means))

    def value(tilt: np.ndarray) -> tuple[float, np.ndarray]:
        scores = centered @ tilt
        most = scores.max()
        weights = shares * np.exp(scores - most)
        total = weights.sum()
        return float(np.log(total) + most + tilt @ ridge @ tilt / 2), weights / total

    tilt = aim
    now, own = value(tilt)
    for _ in range(_STEPS):
        mean = own @ centered
        gradient = mean + ridge @ tilt
        away = centered - mean
        square = (away * own[:, None]).T @ away + ridge
        step = np.linalg.lstsq(square, gradient, rcond=1e-12)[0]
        fall = float(gradient @ step)
        if fall < 1e-12:
            break
        length = 1.0
        while length > 1e-8:
            then, others = value(tilt - length * step)
            if then <= now - 1e-4 * length * fall:
                break
            length /= 2
        else:
            break
        tilt, now, own = tilt - length * step, then, others
    return own


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
