"""Errors on the class-conditional queries of RAP++ (Vietri et al. 2022, section 5.1).

Three classes of queries join two or more features with the value of a label. Tables are codes of
one domain, shape (row, attribute). The paper scales numerical columns to [0, 1]; here they are the
centers of their cells. Its text reports the mean of the absolute errors (definition 5); its script
takes ``numpy.linalg.norm(errors, 1)`` of a matrix, which is the worst column's sum. These functions
give the plain mean and the maximum. They read tables without protection: no result is private.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.metrics.rows import centers, columns, differences, embedded

_BLOCK = 1 << 13
"""Number of rows that are projected on all directions at a time."""


class Errors(NamedTuple):
    """The mean and the maximum of queries' absolute errors, each in [0, 1]. Not private."""

    mean: float
    max: float


def categorical_marginal_errors(
    domain: Domain,
    real: np.ndarray,
    synthetic: np.ndarray,
    *,
    features: Sequence[str],
    labels: Sequence[str],
) -> Errors:
    """The errors of all class-conditional marginals (CM) of two features and a label. Not private.

    Each cell of each 3-way table is a query. The paper's features are its categorical columns.

    >>> from sdv_privpgd.base.domain import Domain
    >>> domain = Domain(("age", "ward", "ill"), (8, 3, 2))
    >>> rng = np.random.default_rng(0)
    >>> real = rng.integers(0, domain.sizes, (500, 3))
    >>> synthetic = np.zeros_like(real)
    >>> categorical_marginal_errors(
    ...     domain, real, real, features=["age", "ward"], labels=["ill"]
    ... )
    Errors(mean=0.0, max=0.0)
    """
    _check(features, labels)
    ours, theirs = columns(domain, real), columns(domain, synthetic)
    total, largest, num_queries = 0.0, 0.0, 0
    for pair in combinations(features, 2):
        for label in labels:
            clique = (*pair, label)
            errors = np.abs(differences(domain, clique, ours, theirs)[1])
            total += float(errors.sum())
            largest = max(largest, float(errors.max(initial=0.0)))
            num_queries += domain.size(clique)
    return Errors(total / num_queries, largest)


def mixed_marginal_errors(
    domain: Domain,
    real: np.ndarray,
    synthetic: np.ndarray,
    *,
    features: Sequence[str],
    labels: Sequence[str],
    num_queries: int = 200_000,
    seed: int = 0,
) -> Errors:
    """The errors of random class-conditional mixed marginals (MM). Not private.

    A query asks for the rows with x_i <= τ_i, x_j <= τ_j and a given value of a label: two
    distinct numerical features, a label and its value uniform, both τ uniform in [0, 1]. That is
    definition 3; the paper's script asks for x > τ. The maximum is that of the queries drawn.

    >>> from sdv_privpgd.base.domain import Domain
    >>> domain = Domain(("age", "ward", "ill"), (8, 3, 2))
    >>> rng = np.random.default_rng(0)
    >>> real = rng.integers(0, domain.sizes, (500, 3))
    >>> synthetic = np.zeros_like(real)
    >>> mixed_marginal_errors(
    ...     domain, real, real, features=["age", "ward"], labels=["ill"]
    ... )
    Errors(mean=0.0, max=0.0)
    """
    _check(features, labels)
    generator = np.random.default_rng(seed)
    ours, theirs = columns(domain, real), columns(domain, synthetic)
    cliques = [(label, *pair) for pair in combinations(features, 2) for label in labels]
    drawn = np.bincount(
        generator.integers(0, len(cliques), size=num_queries), minlength=len(cliques)
    )
    errors = []
    for clique, number in zip(cliques, drawn.tolist(), strict=True):
        shape = domain.shape(clique)
        cells, difference = differences(domain, clique, ours, theirs)
        # Sums over all smaller codes; entry 0 of the last two axes is an empty sum.
        table = np.zeros((shape[0], shape[1] + 1, shape[2] + 1))
        table[:, 1:, 1:][np.unravel_index(cells, shape)] = difference
        table = table.cumsum(axis=1).cumsum(axis=2)
        value = generator.integers(0, shape[0], size=number)
        below = [
            np.searchsorted(centers(size), generator.random(number), side="right")
            for size in shape[1:]
        ]
        errors.append(np.abs(table[(value, *below)]))
    found = np.concatenate(errors)
    return Errors(float(found.mean()), float(found.max()))


def linear_threshold_errors(
    domain: Domain,
    real: np.ndarray,
    synthetic: np.ndarray,
    *,
    features: Sequence[str],
    labels: Sequence[str],
    num_queries: int = 2_000,
    seed: int = 0,
) -> Errors:
    """The errors of random class-conditional linear thresholds (LT). Not private.

    A query asks for the rows with ⟨θ, x⟩ <= τ and a given value of a label: θ normal over all
    numerical features, divided by the root of their number, τ standard normal, a label and its
    value uniform. The paper draws 200,000; the work grows with the rows times the queries, and the
    mean over 2,000 has a standard error of some 4 % of itself. The maximum is that of those drawn.

    >>> from sdv_privpgd.base.domain import Domain
    >>> domain = Domain(("age", "ward", "ill"), (8, 3, 2))
    >>> rng = np.random.default_rng(0)
    >>> real = rng.integers(0, domain.sizes, (500, 3))
    >>> synthetic = np.zeros_like(real)
    >>> linear_threshold_errors(
    ...     domain, real, real, features=["age", "ward"], labels=["ill"]
    ... )
    Errors(mean=0.0, max=0.0)
    """
    _check(features, labels)
    generator = np.random.default_rng(seed)
    directions = generator.standard_normal((num_queries, len(features))) / np.sqrt(len(features))
    thresholds = generator.standard_normal(num_queries)
    label_of = generator.integers(0, len(labels), size=num_queries)
    sizes = np.array(domain.shape(labels))
    value_of = generator.integers(0, sizes[label_of])
    answers = []
    for codes in (real, synthetic):
        table = columns(domain, codes)
        points = embedded(domain.project(features), table)
        counts = np.zeros(num_queries, dtype=np.int64)
        for number, label in enumerate(labels):
            for value in range(domain.shape((label,))[0]):
                asked = np.flatnonzero((label_of == number) & (value_of == value))
                rows = points[table[label] == value]
                for start in range(0, len(rows), _BLOCK):
                    places = rows[start : start + _BLOCK] @ directions[asked].T
                    counts[asked] += np.count_nonzero(places <= thresholds[asked], axis=0)
        answers.append(counts / len(codes))
    errors = np.abs(answers[0] - answers[1])
    return Errors(float(errors.mean()), float(errors.max()))


def _check(features: Sequence[str], labels: Sequence[str]) -> None:
    both = set(features) & set(labels)
    if len(set(features)) < 2 or not labels or both:
        raise ValueError(
            "Class-conditional queries need at least two features and a label that is none of "
            f"them, got features {list(features)!r} and labels {list(labels)!r}."
        )
