"""Rare categories that share a code, as the benchmark paper has it."""

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.columns.merging import Merging
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.queries import MarginalQuery

MANY = 100
"""Attributes with fewer categories keep them all (benchmark paper, appendix A.4.1)."""

RARE = Fraction(2, 1000)
"""The part of all rows below which a category is rare, there called theta."""

_DEVIATIONS = 3
"""A category is rare as well if its noisy count is below so many standard deviations."""


def merge_rare(
    curator: Curator,
    num_categories: Mapping[str, int],
    mu_squared: Fraction,
    *,
    progress: Progress = silent,
) -> dict[str, Merging]:
    """For each attribute with many categories those that share a code, and have the last one.

    Chen et al. 2025 (the benchmark paper), Algorithm 1: the categories of which fewer rows are
    counted than 0.2 % of all, or than three standard deviations of the noise. The attributes are
    counted together, which is an equal share of the budget for each. All declared categories are
    counted, where that paper's code counts those that occur, which tells which ones do not.
    Values are drawn evenly from the merged code.

    Privacy: ``mu_squared`` in all, charged by the curator; nothing if no attribute has many.

    Args:
        curator: Of a table whose attributes have a code for each category.
        num_categories: For each attribute to look at how many of its first codes are categories.
        mu_squared: For all attributes together.
        progress: Told of the measurements.
    """
    names = [name for name, number in num_categories.items() if number >= MANY]
    answers = curator.measure(
        [MarginalQuery((name,)) for name in names],
        mu_squared,
        what="categories of columns that have many",
        progress=progress,
    )
    found = {}
    for name, answer in zip(names, answers, strict=True):
        counts = answer.answer[: num_categories[name]]
        least = max(float(RARE) * float(counts.sum()), _DEVIATIONS * answer.stddev)
        is_kept = counts >= least
        codes = np.where(is_kept, np.cumsum(is_kept) - 1, is_kept.sum())
        found[name] = Merging(tuple(codes.tolist()), (1.0,) * len(codes))
    return found
