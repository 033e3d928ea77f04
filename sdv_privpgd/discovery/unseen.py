"""The rows that discovery cannot have seen: fewer than stand out from its noise. Public."""

from sdv_privpgd.discovery.plan import FINE_GRIDS, SIZES
from sdv_privpgd.privacy.ledger import PrivacyLedger

_UNSEEN = 3.0
"""Standard deviations of noise below which rows at the end of a range may be missed."""


SPREAD = 2.0
"""About so many times as many rows may be missed if they are of very different sizes: they are
counted in several cells, each with its own noise."""


def rows_unseen(ledger: PrivacyLedger) -> float:
    """The number of rows that may lie beyond a found range unseen; 0 where none was looked for."""
    asked = (each.stddev for each in ledger.charges if each.what in (SIZES, FINE_GRIDS))
    return _UNSEEN * max(asked, default=0.0) / ledger.units
