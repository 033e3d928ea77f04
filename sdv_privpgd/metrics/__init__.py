"""The papers' metrics of synthetic rows beside real ones, as functions and for SDMetrics.

They read real tables without protection, so no result is private. The functions take codes of a
``Domain``, shape (row, attribute), or data frames. The classes take data frames and metadata, and
``sdmetrics.single_table`` has them, too. Public names are resolved when they are first used
(PEP 562), so the functions do not need SDMetrics.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sdv_privpgd.metrics._sdmetrics import (
        CategoricalMarginalError,
        CountingQueryError,
        CovarianceError,
        DownstreamError,
        FidelityError,
        LinearThresholdError,
        MixedMarginalError,
        MLEfficiency,
        PairwiseSlicedWasserstein,
        PairwiseTotalVariation,
        RangeQueryError,
        ThresholdQueryError,
    )
    from sdv_privpgd.metrics.conditional import (
        categorical_marginal_errors,
        linear_threshold_errors,
        mixed_marginal_errors,
    )
    from sdv_privpgd.metrics.decoded import (
        fidelity_by_pair,
        fidelity_error,
        range_errors,
        range_query_error,
    )
    from sdv_privpgd.metrics.learning import downstream_error, f1_by_model, ml_efficiency
    from sdv_privpgd.metrics.overview import scores
    from sdv_privpgd.metrics.pairs import (
        covariance_error,
        l1_by_pair,
        mean_l1,
        mean_sw1,
        sw1_by_pair,
    )
    from sdv_privpgd.metrics.queries import (
        counting_errors,
        counting_query_error,
        threshold_errors,
        threshold_query_error,
    )

_HOMES = {
    "CategoricalMarginalError": "sdv_privpgd.metrics._sdmetrics",
    "CountingQueryError": "sdv_privpgd.metrics._sdmetrics",
    "CovarianceError": "sdv_privpgd.metrics._sdmetrics",
    "DownstreamError": "sdv_privpgd.metrics._sdmetrics",
    "FidelityError": "sdv_privpgd.metrics._sdmetrics",
    "LinearThresholdError": "sdv_privpgd.metrics._sdmetrics",
    "MLEfficiency": "sdv_privpgd.metrics._sdmetrics",
    "MixedMarginalError": "sdv_privpgd.metrics._sdmetrics",
    "PairwiseSlicedWasserstein": "sdv_privpgd.metrics._sdmetrics",
    "PairwiseTotalVariation": "sdv_privpgd.metrics._sdmetrics",
    "RangeQueryError": "sdv_privpgd.metrics._sdmetrics",
    "ThresholdQueryError": "sdv_privpgd.metrics._sdmetrics",
    "categorical_marginal_errors": "sdv_privpgd.metrics.conditional",
    "counting_errors": "sdv_privpgd.metrics.queries",
    "counting_query_error": "sdv_privpgd.metrics.queries",
    "covariance_error": "sdv_privpgd.metrics.pairs",
    "downstream_error": "sdv_privpgd.metrics.learning",
    "f1_by_model": "sdv_privpgd.metrics.learning",
    "fidelity_by_pair": "sdv_privpgd.metrics.decoded",
    "fidelity_error": "sdv_privpgd.metrics.decoded",
    "l1_by_pair": "sdv_privpgd.metrics.pairs",
    "linear_threshold_errors": "sdv_privpgd.metrics.conditional",
    "mean_l1": "sdv_privpgd.metrics.pairs",
    "mean_sw1": "sdv_privpgd.metrics.pairs",
    "mixed_marginal_errors": "sdv_privpgd.metrics.conditional",
    "ml_efficiency": "sdv_privpgd.metrics.learning",
    "range_errors": "sdv_privpgd.metrics.decoded",
    "range_query_error": "sdv_privpgd.metrics.decoded",
    "scores": "sdv_privpgd.metrics.overview",
    "sw1_by_pair": "sdv_privpgd.metrics.pairs",
    "threshold_errors": "sdv_privpgd.metrics.queries",
    "threshold_query_error": "sdv_privpgd.metrics.queries",
}

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
    "categorical_marginal_errors",
    "counting_errors",
    "counting_query_error",
    "covariance_error",
    "downstream_error",
    "f1_by_model",
    "fidelity_by_pair",
    "fidelity_error",
    "l1_by_pair",
    "linear_threshold_errors",
    "mean_l1",
    "mean_sw1",
    "mixed_marginal_errors",
    "ml_efficiency",
    "range_errors",
    "range_query_error",
    "scores",
    "sw1_by_pair",
    "threshold_errors",
    "threshold_query_error",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if _HOMES[name] == "sdv_privpgd.metrics._sdmetrics":
        # SDMetrics imports that module at the end of its own import. If that module started the
        # import, SDMetrics would find it half done and go without the classes.
        import_module("sdmetrics")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
