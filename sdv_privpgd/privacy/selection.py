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
"""

from bisect import bisect_right
from collections.abc import Sequence
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
    return _exact_choice(below, temperature, word, words)


def _exact_choice(below: Sequence[int], temperature: Fraction, word: int, words: WordSource) -> int:
    """The index of a word that double precision cannot place; ``below`` are scores minus top."""
    uniform = (word << EXTRA_BITS) | int.from_bytes(words(EXTRA_BITS // 8), "little")
    with exact.workprec(PRECISION + 64):
        exponents = [exact.mpf(g * temperature.denominator) / temperature.numerator for g in below]
        weights = [int(exact.floor(exact.ldexp(exact.exp(x), PRECISION))) for x in exponents]
    ends = list(accumulate(weights))
    return bisect_right(ends, uniform * ends[-1] >> (_WORD_BITS + EXTRA_BITS))
