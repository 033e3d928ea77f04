"""How many codes the noise of a fit can pay for. Public: a rule of public or noisy facts."""

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from fractions import Fraction

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.columns.cutting import USUAL_BINS
from sdv_privpgd.columns.facts import ColumnFacts, DateFacts, NumberFacts
from sdv_privpgd.methods.method import Method
from sdv_privpgd.privacy.accounting import stddev_for
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import MarginalQuery

_LEAST = 4
"""The smallest number of codes."""

_SHARPNESS = 1.2
"""The number of codes is this many times the square root of the rows beside one standard deviation
of a cell's noise. Beside the former 0.8 with at least 16 codes, SDMetrics' quality of eight tables
rises from .576 to .593 for 300 rows at epsilon 1 and from .852 to .859 for 5,000 (means over three
draws); of four of them from .771 to .786 for 5,000 at 0.2, where 1.6 has .791 and 2.4 .773
(``tests/benchmarks declaring --arms declared --rows 300 --seeds 3``)."""


def codes_paid_for(
    columns: Collection[str], num_rows: float, ledger: PrivacyLedger, method: Method
) -> int:
    """The number of codes of a number or date: 4 to 32.

    A cell of a pair then has about as many rows, on average, as its noise has standard deviations,
    if all that is left of the budget goes to the pairs that the method is likely to ask for.

    Args:
        columns: The names of the modelled columns.
        num_rows: The number of rows; noisy where it is private.
        ledger: The books of the fit, after discovery.
        method: What is asked.
    """
    cliques = method.cliques(Domain(tuple(columns), (2,) * len(columns)))
    pairs = [MarginalQuery(clique) for clique in cliques if len(clique) > 1]
    if not pairs or not ledger.remaining:
        return USUAL_BINS
    squared = sum(pair.l2_sensitivity_squared(ledger.adjacency) for pair in pairs)
    stddev = stddev_for(ledger.rows_counted**2 * squared, Fraction(ledger.remaining))
    codes = round(_SHARPNESS * math.sqrt(max(num_rows, 1.0) / stddev))
    return min(max(codes, _LEAST), USUAL_BINS)


def with_codes(
    found: Mapping[str, ColumnFacts], stated: Mapping[str, ColumnFacts], number: int
) -> dict[str, ColumnFacts]:
    """What was found of columns. Numbers and dates of known shape get so many codes.

    Those of which it is ``stated`` how many they have keep theirs.
    """
    given = {name: getattr(facts, "num_bins", None) for name, facts in stated.items()}
    return {
        name: replace(facts, num_bins=number)
        if isinstance(facts, NumberFacts | DateFacts)
        and facts.frequencies is not None
        and given[name] is None
        else facts
        for name, facts in found.items()
    }
