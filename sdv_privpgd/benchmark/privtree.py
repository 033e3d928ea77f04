"""PrivTree: the codes of an attribute are halved where many rows are, at a price without depth.

The comparison alone cuts ranges by it, so it is not in the core: ``split`` looks into a curator.

A part of the codes with c rows, h halvings deep, has the score m = max(c - h d, -d), where the
decay d is a whole number of at least T log 2. A part of several codes is halved with probability
s(m / T), s(x) = 1 / (1 + e^-x); one that is not stays as it is (Zhang, Xiao & Xie 2016, Algorithm 2
and Theorem 3.1, with theta = 0 and two children). The noise there is Laplace, here it is logistic:
a halving is the exponential mechanism's choice between m and 0, which is sampled exactly.

1. *One row more.* Of the decisions about a tree only those change whose part holds the row: a path
   of halvings, and at most one part that stays. That part's probability s(-m / T) falls, by a
   factor of at least e^(-1/T). The halvings' probabilities rise: by the factor e^(r(m)) for a part
   whose score rises to m, where r(m) = log s(m / T) - log s((m - 1) / T) is at most 1 / T, and at
   most s((1 - m) / T) / T since the slope of log s(x / T) is s(-x / T) / T and falls.
2. *The path.* Down the path c does not grow, so that c - h d falls by d or more with each halving.
   A score that rises is at least 1 - d afterwards. So going up from the last one, the scores that
   rise are at least 1 - d, 1, 1 + d, 1 + 2 d, ..., and their r add up to at most

       1 / T + sum_j s(-j d / T) / T <= (1 + sum_j 1 / (1 + 2^j)) / T < 2.2646 / T,  j = 0, 1, ...

3. *The range.* So log(P(tree with the row) / P(tree without it)) is at least -1 / T and at most
   2.2646 / T: it lies in an interval of length ``COST`` / T that contains 0, however deep the tree
   is. Such a choice has the range epsilon ``COST`` / T, and costs what ``privacy/selection.py``
   proves of it. A row that is replaced is one that goes and one that comes, and the intervals of
   several rows add up: the range epsilon is ``COST`` D / T for D rows that come or go.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np

from sdv_privpgd.columns.bins import Merging
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.selection import exponential_choice
from sdv_privpgd.sources.withheld import sealed

COST = Fraction(3265, 1000)
"""The range epsilon of a tree, in units of 1 / T: 1 + 2.2646, rounded up."""

_LOG_2 = Fraction(693_147_181, 10**9)  # rounded up


def decay_of(temperature: Fraction) -> int:
    """The least whole number that is at least the temperature times log 2."""
    return math.ceil(temperature * _LOG_2)


def halved(counts: Sequence[int], decay: int, splits: Callable[[int], bool]) -> list[int]:
    """The first code of each part that is not halved, in order.

    Args:
        counts: The rows of each code. Private.
        decay: How much the score of a part falls with each halving.
        splits: Decides by chance whether a part of a score is halved.
    """
    sums = [0, *accumulate(counts)]
    found: list[int] = []
    left = [(0, len(counts), 0)]
    while left:
        start, end, depth = left.pop()
        score = max(sums[end] - sums[start] - depth * decay, -decay)
        if end - start > 1 and splits(score):
            middle = (start + end + 1) // 2
            left += [(middle, end, depth + 1), (start, middle, depth + 1)]
        else:
            found.append(start)
    return found


@sealed
def split(
    curator: Curator, name: str, num_codes: int, mu_squared: Fraction, *, what: str
) -> list[int]:
    """The first code of each part that PrivTree cuts the first codes of an attribute into.

    Parts of many rows are halved, again and again; rows of later codes have no part in it.

    Privacy: sqrt(mu_squared)-GDP. The tree has range epsilon ``COST`` D / T for a decision's
    temperature T and the D rows that come or go between neighbors, times what a person's rows
    count as. The ledger names the temperature at which a choice between scores of sensitivity D
    costs as much: 2 T / ``COST``.

    Raises ``PrivacyBudgetError`` before the table is read if the budget is short.
    """
    if not 1 <= num_codes <= curator.domain.size((name,)):
        raise ValueError(f"num_codes must be 1 to {curator.domain.size((name,))}: {num_codes!r}.")
    alike = curator._charged_choice(  # noqa: SLF001
        "PrivTree", what, 1, lambda each: each.cells**2, Fraction(mu_squared)
    )
    temperature, words = alike * COST / 2, curator._books.words  # noqa: SLF001
    return halved(
        curator._dataset.counts((name,))[:num_codes].tolist(),  # noqa: SLF001
        decay_of(temperature),
        lambda score: exponential_choice([0, score], temperature, words) == 1,
    )


def cut_by_privtree(
    curator: Curator, num_cells: Mapping[str, int], mu_squared: Fraction
) -> dict[str, Merging]:
    """For each attribute the neighboring cells that share a code, as PrivTree finds them.

    Zhang, Xiao & Xie 2016, one range at a time, as the benchmark paper's code has it among its
    preprocessings. The noise is logistic instead of Laplace (above), and the
    halvings end with the grid. That code halves a list while it goes through it, takes the number
    of all halvings so far for the depth, and counts the attributes twice in its noise; here the
    decay is by a part's own depth, and each attribute has an equal share of the budget. Values are
    drawn evenly from a code.

    Privacy: ``mu_squared`` in all, charged by the curator, of a table whose attributes have a code
    for each cell of a grid, in order. ``num_cells`` says how many of an attribute's first codes
    are cells; missing is not.
    """
    found = {}
    for name, number in num_cells.items():
        part = mu_squared / len(num_cells)
        firsts = split(curator, name, number, part, what=f"where to cut {name}")
        codes = np.cumsum(np.isin(np.arange(number), firsts)) - 1
        found[name] = Merging(tuple(codes.tolist()), (1.0,) * number)
    return found
