"""Which values a column has, where nobody declared them: noisy counts over a threshold.

Each value that some row has gets a count and noise, and is released if its noisy count reaches the
threshold T (Korolova et al. 2009; with Gaussian noise Wilson et al. 2020). Values that both of two
neighbors have are a Gaussian release. Values that only one has tell the neighbors apart if one of
them is released. Let K columns be asked for. Each row adds at most one to a value in each of them,
and the squares of what it adds have a sum of at most L <= K. A person's R rows can be all that such
values have: they add r_i to the i-th of them, at most R, and at most K R of these are positive. So
one of them is released with a chance of at most K p, for p = R P(N >= T - R). What the person adds
is the sum of R vectors of a length of at most sqrt(L), so its squares have a sum of at most L R^2.
Where rows are weighed, a person's weights have a sum of at most U units, and each row's vector is
its weight times as long: p = R P(N >= T - U), and the squares have a sum of at most L U^2. Parts of
one are whole numbers of smaller units, in which noise is drawn, too: there the rounding of noise
moves it by less, so P(N >= T - U) is no larger.
Let the rest of the release be M: whatever follows, also when it sees the released values.

Let A and A' be neighbors, let B be A's release without the values of A alone, and let S be any set
of transcripts, S_0 those of S without a value of A alone. Then for the Gaussian events'
(epsilon, delta)

    P[M(A) in S] <= K p + P[M(A) in S_0] <= K p + P[B in S_0],
    P[B in S_0] <= delta + e^epsilon P[B' in S_0].

M(A') is B' unless a value of A' alone is released, which is independent of B' and has a chance of
at most K p: P[B' in S_0] <= P[M(A') in S_0] / (1 - K p). Where e^epsilon P[M(A') in S] is above 1
nothing is left to show; so the release is (epsilon, delta + K p + K p / (1 - K p))-DP if a row is
replaced. If rows come or go, only one of the neighbors has values of its own, and one of the two
terms is there. ``thresholded_delta`` is their sum, which the ledger charges. A family in whose
place another one comes may take a third with it: then K p is that of twice the rows and units.

That a value is missing is no secret that a threshold would have to keep: it is a value that all
tables have, of no row perhaps. It is released whatever its noisy count is. A later question about
some of the columns is part of M, and adds its own delta in the same way.
"""

import math
from fractions import Fraction

from scipy.special import erfc, erfcinv  # pyright: ignore[reportMissingTypeStubs]

from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency

_RELATIVE_ERROR = 2.0**-40
"""Generous bound on the relative error of ``erfc`` and of the arithmetic around it."""


def threshold_for(stddev: float, delta: Fraction, num_columns: int, ledger: PrivacyLedger) -> int:
    """The smallest threshold of noisy counts that adds at most ``delta``, from 0 to 1/2.

    The ledger says whose the rows are, and what they count as.
    """
    tail = float(delta) / (ledger.adjacency.cells * num_columns * ledger.rows_per_person)
    # Half a row below what has this tail, and what is sought is at or above that.
    whole = ledger.rows_counted * ledger.units
    threshold = math.floor(whole + stddev * math.sqrt(2) * float(erfcinv(2 * tail)))
    while thresholded_delta(stddev, threshold, num_columns, ledger) > delta:
        threshold += 1
    return threshold


def thresholded_delta(
    stddev: float, threshold: int, num_columns: int, ledger: PrivacyLedger
) -> Fraction:
    """An upper bound of what such a release adds to delta on its own."""
    gone = ledger.adjacency.cells if ledger.family else 1
    # P(U + round(N) >= T) = P(N >= T - U - 1/2).
    beyond = threshold - gone * ledger.rows_counted * ledger.units - 0.5
    tail = float(erfc(beyond / (stddev * math.sqrt(2)))) / 2
    chance = Fraction(tail * (1 + _RELATIVE_ERROR)) * gone * ledger.rows_per_person * num_columns
    if chance >= Fraction(1, 2):
        return Fraction(1)
    return chance + (chance / (1 - chance) if ledger.adjacency is Adjacency.REPLACE_ONE else 0)
