"""The metrics as classes of SDMetrics, from data frames and metadata to a score. Not private.

SDMetrics imports this module at the end of its own import (the entry points ``sdmetrics_modules``).
Take the classes from ``sdv_privpgd.metrics``, which imports SDMetrics first.
"""

from sdv_privpgd.metrics._on_cells import (
    CategoricalMarginalError,
    CountingQueryError,
    CovarianceError,
    DownstreamError,
    LinearThresholdError,
    MixedMarginalError,
    MLEfficiency,
    PairwiseSlicedWasserstein,
    PairwiseTotalVariation,
    ThresholdQueryError,
)
from sdv_privpgd.metrics._on_values import (
    FidelityError,
    RangeQueryError,
)

__all__ = [
    "CategoricalMarginalError",
    "CountingQueryError",
    "CovarianceError",
    "DownstreamError",
    "FidelityError",
    "LinearThresholdError",
    "MLEfficiency",
    "MixedMarginalError",
    "PairwiseSlicedWasserstein",
    "PairwiseTotalVariation",
    "RangeQueryError",
    "ThresholdQueryError",
]
