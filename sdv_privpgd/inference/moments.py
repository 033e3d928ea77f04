"""Means over the rows that have all values, from noisy tables, and what sampling adds. Public.

A regression is of the rows that have its outcome and all of its predictors. It holds for all rows
where, among rows with the same predictors, the outcome is missing by chance: it may be missing more
often in one group than in another. So all means are over these same rows. What two columns have
together, and where one has a value and the other none, their table tells. What more columns have
together a table of them tells, if one was measured. If not, it is that of the fitted model's rows,
in which values are missing anew by what each other column says of that, moved by what tables say:

Let h be a product among rows that have all values, and f all that the tables know of it, such as
the same product among all rows. With K = cov(h, f) (cov(f) + ridge)^-1, from these rows, the
estimate is E[h] in them + K (f in the tables - E[f] in them). The noise of f goes through K, and so
does sampling: the estimate sees K f of a row, and not h. The mean of the rest, h - K f, is that of
these rows, and as uncertain as that of a sample of as many. What no table and no sum over columns
tells, such as values that are missing for one pair of values alone, no interval covers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from scipy.sparse import csr_matrix, hstack
from scipy.special import chdtrc  # pyright: ignore[reportMissingTypeStubs]

from sdv_privpgd.inference.design import FEWEST_ROWS, Design
from sdv_privpgd.inference.linear import LinearEstimate, Product, times, values_in
from sdv_privpgd.synthesize.engine import Model

RIDGE = 1e-3
"""The weight of the model's own means beside those of the tables: this part of the rows."""

_MOST_COLUMNS = 3
"""Tables of more columns are not asked for."""

NUMBERS = 20_000_000
"""Most features times rows of the model."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Moments:
    """Means over the rows that have all values, and how sure they are."""

    values: np.ndarray  # the means, shape (product,)
    # Of the noise in them, by the delta method: they are ratios of estimates.
    covariance: np.ndarray
    num_rows: float  # the rows that have all values
    all_rows: float  # the rows
    # The products in the model's rows less their means, times the root of each row's share, shape
    # (row, product); no row where the tables tell all.
    own: np.ndarray
    left: np.ndarray  # what the estimate sees of them in their place, less these, in the same shape

    def sampling(self, change: np.ndarray, spread: np.ndarray) -> np.ndarray:
        """What drawing the rows adds to the covariance of ``change``, a linear function of means.

        ``spread`` is the covariance of its numbers over rows that have all values. It is better
        known than from the model's rows, which lend it how it goes with what is left.
        """
        if not len(self.own):
            return spread / self.num_rows
        own, left = self.own @ change.T, self.left @ change.T
        scaled = _root(spread * self.all_rows / self.num_rows) @ np.linalg.pinv(_root(own.T @ own))
        seen = own @ scaled.T + left
        return seen.T @ seen / self.all_rows + left.T @ left / len(left)


def _root(square: np.ndarray) -> np.ndarray:
    """The symmetric root of a matrix without negative eigenvalues."""
    values, vectors = np.linalg.eigh(square)
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T


def moments(
    estimate: LinearEstimate, model: Model, design: Design, products: Sequence[Product]
) -> Moments:
    """The mean over the rows that have all values of products that are 0 where one is missing.

    Raises ``ValueError`` if the tables do not determine one of them by itself, or leave no rows.
    """
    present = [{name: own} for name, own in design.present.items()]
    targets = [reduce(times, present, product) for product in [*products, {}]]
    count, number = {}, len(targets)
    _require_known(estimate, design, products)
    # Of a table of more columns nothing is known.
    asked = [target if len(target) <= _MOST_COLUMNS else count for target in targets]
    is_known = np.array([len(target) <= _MOST_COLUMNS for target in targets])
    is_known &= estimate.answers(asked).known
    asked = [target if known else count for target, known in zip(asked, is_known, strict=True)]
    features, rows = [], np.zeros((0, 0))
    if not is_known.all():
        rows, gone = _missing_anew(design, model)
        features = _known_features(estimate, products, present, gone)
        rows = rows[: max(NUMBERS // len(features), FEWEST_ROWS)]
    found = estimate.answers([*asked, *features, count])
    all_rows = float(found.values[-1])
    # Each target is a linear function of what is known.
    change = np.zeros((number, len(found.values)))
    change[np.arange(number), np.arange(number)] = is_known
    own = left = np.zeros((0, number))
    if len(rows):
        f, own = values_in(rows, model.domain, features), values_in(rows, model.domain, targets)
        means, aims = f.mean(axis=0), own.mean(axis=0)
        f, own = (f - means) / np.sqrt(len(rows)), (own - aims) / np.sqrt(len(rows))
        square = f.T @ f + RIDGE * found.covariance[number:-1, number:-1] / all_rows
        passed = np.zeros((number, len(features)))
        # Nothing of the covariates is concluded from the outcome: its values were lent.
        bare, free = (~_of_outcome(design, each) for each in (features, targets))
        for goals, used in ((free, bare), (~free, np.full(len(features), True))):
            at = np.ix_(goals & ~is_known, used)
            passed[at] = np.linalg.lstsq(
                square[np.ix_(used, used)], f[:, used].T @ own[:, at[0].ravel()], rcond=1e-12
            )[0].T
        change[:, number:-1] = passed
        left = f @ passed.T - own
        left[:, is_known] = 0.0
        change[:, -1] = np.where(is_known, 0.0, aims - passed @ means)
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
    )


def _of_outcome(design: Design, products: Sequence[Product]) -> np.ndarray:
    """Which products depend on the outcome's value, and not only on whether it has one."""
    name = design.outcome.column
    return np.array(
        [name in own and not np.array_equal(own[name], design.valued[name]) for own in products]
    )


def _missing_anew(
    design: Design, model: Model
) -> tuple[np.ndarray, dict[tuple[str, str], np.ndarray]]:
    """Codes of a model's rows with values missing anew, and by what.

    Tables of pairs say how often a column's values are missing for each value of each other column.
    Least squares add these up. What the model has beyond that is not so: missing is one more value
    to it, which goes with pairs of values as its other values do.

    Also returns, by a column with missing values and another column, what each code of the other
    adds to the chance of a value.
    """
    most = 100_000  # rows
    codes, rng = model.sample(most, 0), np.random.default_rng(0)
    found, gone, starts = codes.copy(), {}, np.arange(most + 1)
    for name in sorted(design.missing):
        (axis,) = model.domain.axes((name,))
        is_there = design.valued[name][codes[:, axis]] > 0
        others = [each for each in design.columns if each != name]
        sizes = model.domain.shape(others)
        of_others = zip(codes[:, model.domain.axes(others)].T, sizes, strict=True)
        hot = hstack(
            [csr_matrix((np.ones(most), own, starts), (most, size)) for own, size in of_others],
            "csr",
        )
        adds = np.linalg.lstsq((hot.T @ hot).toarray(), hot.T @ is_there, rcond=1e-10)[0]
        parts = np.split(adds, np.cumsum(sizes)[:-1])
        gone.update({(name, by): part for by, part in zip(others, parts, strict=True)})
        if is_there.any():
            lent = rng.choice(codes[is_there, axis], most)
            found[:, axis] = np.where(is_there, codes[:, axis], lent)
        found[rng.random(most) >= hot @ adds, axis] = np.argmin(design.valued[name])
    return found, gone


def _known_features(
    estimate: LinearEstimate,
    products: Sequence[Product],
    present: Sequence[Product],
    gone: Mapping[tuple[str, str], np.ndarray],
) -> list[Product]:
    """What the tables know of products among rows that have all values.

    It is the products among all rows, and those of one column among rows that have another. Where
    triples were measured, it is also, with groups' means in place of numbers, products of pairs
    among rows that have a third column, and with what a third one adds to the chance of that.
    """
    pairs = [each for each in [*products, *present] if len(each) < _MOST_COLUMNS]
    found = [*pairs, *(times(each, more) for each in pairs if len(each) < 2 for more in present)]
    for each in pairs:
        if len(each) == 2:
            thirds = [more for more in present if not more.keys() & each.keys()]
            thirds += [
                {by: part}
                for (name, by), part in gone.items()
                if name not in each and (by not in each or len(np.unique(each[by])) > 2)
            ]
            triples = [times(each, more) for more in thirds]
            found += [*triples, *map(estimate.in_groups, triples)]
    found = list(
        {
            tuple(sorted((name, own.tobytes()) for name, own in product.items())): product
            for product in found
        }.values()
    )
    return [found[at] for at in np.flatnonzero(estimate.answers(found).known)]


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


class Alike(Exception):
    """A category that cannot be told from the other terms. Its argument is the term's name."""


def require_distinct(
    design: Design,
    square: np.ndarray,
    variance: Callable[[np.ndarray], float] = lambda _: 0.0,
    least: float = 1e-6,
) -> None:
    """Checks that no term follows from others, as far as their mean products ``square`` tell.

    ``variance`` is of the noise in v' square v, given v. With a ``least`` eigenvalue of the terms'
    correlations below that, terms say the same: raises ``Alike`` for the category that says most of
    what the others say, and ``ValueError`` if they are numbers.
    """
    noises = 3.0  # standard deviations of the noise that a direction's variance must reach
    alike = 0.2  # of a direction's length: so much of it is that of a term that is alike
    scale = np.sqrt(np.maximum(np.diagonal(square), 1e-12))
    values, vectors = np.linalg.eigh(square / np.outer(scale, scale))
    loads, known = np.abs(vectors[:, 0]), noises * np.sqrt(variance(vectors[:, 0] / scale))
    if values[0] >= max(least, known):
        return
    terms = design.terms
    compared = loads * [term.is_compared for term in terms]
    if compared.max() > alike:
        raise Alike(terms[int(compared.argmax())].name)
    if values[0] < least:
        named = [term.name for term, load in zip(terms, loads, strict=True) if load > alike]
        raise ValueError(
            f"The terms {', '.join(named)} cannot be told apart: one follows from the others, or "
            "they decide the outcome, or too few rows differ in them, or noise hides that they do. "
            "Leave one out, or spend more."
        )


def on_missing(estimate: LinearEstimate, design: Design, found: Moments) -> list[str]:
    """What to keep in mind where values are missing, a sentence each."""
    level = 0.01  # of the chance that any of the differences that are told is none
    if not design.missing:
        return []
    names = sorted(design.missing)
    others = [name for name in design.columns if name != design.outcome.column]
    chances = {
        (name, by): chance
        for name in names
        for by in others
        if by != name and (chance := _chance(estimate, design, name, by)) is not None
    }
    notes = [
        f"Values of {' and '.join(map(repr, names))} are missing in some rows. The regression is "
        "of the rows that have all values. It holds for all rows where the outcome is missing by "
        "chance among rows with the same predictors."
    ]
    for name in names:
        own = {by: chance for (one, by), chance in chances.items() if one == name}
        differ = [f"{by!r} (p = {own[by]:.1g})" for by in own if own[by] * len(chances) < level]
        alike = [repr(by) for by in own if own[by] * len(chances) >= level]
        if differ:
            notes.append(
                f"How often {name!r} is missing depends on the value of {' and '.join(differ)}."
            )
        if alike:
            notes.append(f"That {name!r} is missing shows no dependence on {' and '.join(alike)}.")
    if len(found.own):
        notes.append(
            "What more than two columns have together in these rows was not measured. It is from "
            "the fitted model's rows and what each column by itself says of missing values, and "
            "standard errors count these rows as a sample."
        )
    return notes


def _chance(estimate: LinearEstimate, design: Design, name: str, by: str) -> float | None:
    """The p value of the test that a column is missing as often for each value of another.

    The rows of each value that have one of the column, less what is expected, are compared with
    their noise and with what chance adds: a chi-square. ``None`` where no table tells.
    """
    units = [{by: own} for own in np.diag(design.valued[by]) if own.any()]
    present = {name: design.valued[name]}
    found, size = estimate.answers([*units, *(times(unit, present) for unit in units)]), len(units)
    if not found.known.all() or size < 2:
        return None
    rows, having = np.maximum(found.values[:size], 0.0), found.values[size:]
    of_value = rows / max(rows.sum(), 1.0)
    share = float(np.clip(having.sum() / max(rows.sum(), 1.0), 0.0, 1.0))
    change = np.hstack([-share * np.eye(size), np.eye(size)])
    change -= np.outer(of_value, change.sum(axis=0))
    drawn = share * (1 - share) * (np.diag(rows) - np.outer(of_value, rows))
    square = change @ found.covariance @ change.T + drawn
    excess = change @ found.values
    return float(chdtrc(size - 1, excess @ np.linalg.pinv(square, hermitian=True) @ excess))
