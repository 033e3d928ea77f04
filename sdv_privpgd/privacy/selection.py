"""The exponential mechanism: an exact random choice, and what it costs in Gaussian DP.

Index r is chosen with probability proportional to exp(s_r / T), where no score s_r changes by more
than D between neighbors (McSherry & Talwar 2007). Its cost, in four steps.

1. *Bounded range.* log(P(r) / P'(r)) = (s_r - s'_r) / T + a term common to all r, so for each pair
   of neighbors it lies in an interval [t - epsilon, t] of length epsilon = 2 D / T that contains 0
   (Durfee & Rogers 2019). Epsilon is the *range epsilon*: the usual bound, but on the whole range.
2. *Two points are worst.* The ratio L = P / P' lies in [exp(t - epsilon), exp(t)] and has mean 1
   under P'. A convex function of L has the largest mean where L takes only the two ends. The curves
   E'[(L - e^x)+] determine the trade-off function between the errors of the first and second kind,
   and (L - e^x)+ is convex: the pair whose ratio takes only the two ends is the easiest to tell
   apart. Its trade-off function is linear on both sides of one vertex, where the errors are
   alpha = (exp(epsilon - t) - 1) / (e^epsilon - 1) and beta = (e^t - 1) / (e^epsilon - 1); so
   logit(alpha) + logit(beta) = -epsilon, whatever t is.
3. *The Gaussian below it.* The trade-off function G_mu of two unit Gaussians at distance mu is
   convex, so it lies below the two lines if it does at the vertex: if
   mu >= -(g(a) + g(b)) for a = logit(alpha), b = logit(beta), g = Phi^-1 o sigmoid.
4. *The middle is worst.* g is odd, and concave on [0, inf): g' = Phi(z) Phi(-z) / phi(z) at
   z = g, the inverse of h(z) + h(-z) for the hazard h = phi / Phi(-z), which is convex
   (Sampford 1953), so that h(z) + h(-z) grows with z >= 0. With m = -epsilon / 2 and a + b = 2 m:
   where a, b <= 0, g(a) + g(b) >= 2 g(m) by convexity; where a > 0,
   g(a) + g(b) = -(g(a + epsilon) - g(a)) >= -g(epsilon) >= -2 g(epsilon / 2) = 2 g(m) by
   concavity, and alike for b > 0. So t = epsilon / 2 needs the most:

       mu = 2 Phi^-1(1 / (1 + exp(-epsilon / 2))).

By 3 the choice is mu-GDP, and composes with all other events of the ledger.

The choice is made by inversion, as the noise is (``privacy/noise.py``): a uniform number of 1,088
bits falls into one of the intervals whose lengths are the probabilities. Its first 64 bits are
compared with their ends in double precision; only if that cannot decide, the others are drawn and
compared in 1,280-bit arithmetic. The scores are integers and T is a fraction, so nothing else is
rounded, and what is sampled differs from the exact law by less than 2^-960 in total variation for
up to 2^64 scores.

PrivTree: the codes of an attribute are halved where many rows are, at a price without depth.

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
from bisect import bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np

from sdv_privpgd.privacy.noise import EXTRA_BITS, PRECISION, WordSource, exact

_WORD_BITS = 64
_ERROR = 2.0**-45
"""Generous bound, per score, on the error of the intervals' ends in double precision."""


def exponential_choice(scores: Sequence[int], temperature: Fraction, words: WordSource) -> int:
    """An index r, with probability proportional to exp(scores[r] / temperature)."""
    top = max(scores)
    below = [score - top for score in scores]
    word = int.from_bytes(words(_WORD_BITS // 8), "little")
    # An exponent's relative error moves its weight by at most 2^-52 x exp(-x) < 2^-53.
    unit, per = temperature.numerator, temperature.denominator
    weights = np.exp(np.array([gap * per / unit for gap in below]))  # of integers: rounded once
    ends = np.cumsum(weights)
    ends /= ends[-1]
    margin = _ERROR * len(scores)
    low, high = word * 2.0**-_WORD_BITS - margin, (word + 1) * 2.0**-_WORD_BITS + margin
    index = int(np.searchsorted(ends, low, side="right"))
    if index + 1 == len(ends) or high < ends[index]:
        return index
    return _choice_exactly(below, temperature, word, words)


def _choice_exactly(
    below: Sequence[int], temperature: Fraction, word: int, words: WordSource
) -> int:
    """The index of a word that double precision cannot place; ``below`` are scores minus top."""
    uniform = (word << EXTRA_BITS) | int.from_bytes(words(EXTRA_BITS // 8), "little")
    with exact.workprec(PRECISION + 64):
        exponents = [exact.mpf(g * temperature.denominator) / temperature.numerator for g in below]
        weights = [int(exact.floor(exact.ldexp(exact.exp(x), PRECISION))) for x in exponents]
    ends = list(accumulate(weights))
    return bisect_right(ends, uniform * ends[-1] >> (_WORD_BITS + EXTRA_BITS))


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
