"""Distances between a real and a synthetic table, both as codes of one domain. Not private.

The definitions are those of Donhauser et al. 2024, section 4.1, over all pairs of attributes;
a code is embedded as the center of its cell in [0, 1].
"""

import numpy as np

from sdv_privpgd.dataset import Dataset
from sdv_privpgd.domain import Domain


def mean_l1(domain: Domain, real: np.ndarray, synthetic: np.ndarray) -> float:
    """The mean over all pairs of the L1 distance of their tables of shares: 0 to 2.

    The paper calls it total variation distance, without the usual factor of one half.
    """
    tables = zip(pair_shares(domain, real), pair_shares(domain, synthetic), strict=True)
    return float(np.mean([np.abs(ours - theirs).sum() for ours, theirs in tables]))


def mean_sw1(
    domain: Domain,
    real: np.ndarray,
    synthetic: np.ndarray,
    *,
    num_slices: int = 100,
    seed: int = 0,
) -> float:
    """The mean over all pairs of the sliced W1 distance of their embedded tables.

    Each pair has directions of its own, independent and uniform; the same seed draws the same.
    """
    generator = np.random.default_rng(seed)
    cliques = domain.cliques(2)
    tables = zip(pair_shares(domain, real), pair_shares(domain, synthetic), strict=True)
    distances = []
    for clique, (ours, theirs) in zip(cliques, tables, strict=True):
        directions = generator.standard_normal((num_slices, 2))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        first, second = (centers(size) for size in domain.shape(clique))
        # The place of each cell on each slice, cells as in the flattened table.
        places = np.add.outer(first, np.zeros(len(second))).ravel() * directions[:, :1]
        places += np.add.outer(np.zeros(len(first)), second).ravel() * directions[:, 1:]
        order = np.argsort(places, axis=1)
        steps = np.diff(np.take_along_axis(places, order, axis=1), axis=1)
        # In one dimension W1 is the area between the distribution functions.
        between = np.cumsum((ours - theirs).ravel()[order], axis=1)[:, :-1]
        distances.append((np.abs(between) * steps).sum(axis=1).mean())
    return float(np.mean(distances))


def covariance_error(domain: Domain, real: np.ndarray, synthetic: np.ndarray) -> float:
    """The Frobenius distance of the covariances of the embedded rows, over the real one's norm."""
    ours, theirs = (np.cov(embedded(domain, codes), rowvar=False) for codes in (real, synthetic))
    return float(np.linalg.norm(ours - theirs) / np.linalg.norm(ours))


def pair_shares(domain: Domain, codes: np.ndarray) -> list[np.ndarray]:
    """The table of shares of each pair of attributes; sums to 1."""
    return [table / len(codes) for table in Dataset(domain, codes).counts_of(domain.cliques(2))]


def embedded(domain: Domain, codes: np.ndarray) -> np.ndarray:
    """The centers of the rows' cells, float64, shape (row, attribute)."""
    sizes = np.asarray(domain.sizes)
    return (2 * codes.astype(np.int64) + 1) / (2 * sizes)


def centers(size: int) -> np.ndarray:
    """The centers of an attribute's cells."""
    return (2 * np.arange(size) + 1) / (2 * size)
