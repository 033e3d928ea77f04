"""The metrics as classes of SDMetrics, from data frames and metadata to a score. Not private.

SDMetrics imports this module at the end of its own import (the entry points ``sdmetrics_modules``).
Take the classes from ``sdv_privpgd.metrics``, which imports SDMetrics first.
"""

from collections.abc import Callable, Mapping
from functools import partial
from math import inf, sqrt
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sdmetrics.goal import Goal
from sdmetrics.single_table.base import SingleTableMetric

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.columns.dates import instants
from sdv_privpgd.columns.scalars import real_numbers
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.metrics import pairs, queries
from sdv_privpgd.metrics.pairs import columns_of, facts_of, keys_of

_NUMERIC = ("numerical", "datetime")
_MODELLED = (*_NUMERIC, "categorical", "ordinal", "boolean")


Data = pd.DataFrame | Mapping[str, pd.DataFrame]
"""A table, or SDV 2's dictionary of tables."""


class Cells(NamedTuple):
    """Two tables as codes of one public domain. Nominal attributes have no order."""

    domain: Domain
    real: np.ndarray
    synthetic: np.ndarray
    nominal: frozenset[str]


def _numbers(column: pd.Series, facts: Mapping[str, Any]) -> np.ndarray:
    """Numbers, or nanoseconds of dates. Values that cannot be read are missing."""
    if facts["sdtype"] == "datetime":
        numbers, missing = instants(column, facts.get("datetime_format"))
    else:
        numbers, missing = real_numbers(column)
    return np.where(missing, np.nan, numbers.astype(np.float64))


class _Metric(SingleTableMetric):
    """The common part of the metrics: the scores of ``_of``, or their average."""

    goal = Goal.MINIMIZE
    min_value = 0.0
    max_value: float = 1.0
    _of: Callable[..., dict]

    @classmethod
    def compute(
        cls, real_data: Data, synthetic_data: Data, metadata=None, table_name=None, **options: Any
    ) -> float:
        """The score. Not private. The options are those of the class."""
        found = cls._scores((real_data, synthetic_data), metadata, table_name, **options)
        return float(found["score"]) if "score" in found else pairs.average(found)

    @classmethod
    def compute_breakdown(
        cls, real_data: Data, synthetic_data: Data, metadata=None, table_name=None, **options: Any
    ) -> dict:
        """The scores that average to ``compute``'s, each as ``{'score': ...}``. Not private.

        A score that is no average is ``'score'`` itself, beside the other results.
        """
        found = cls._scores((real_data, synthetic_data), metadata, table_name, **options)
        return found if "score" in found else {key: {"score": one} for key, one in found.items()}

    @classmethod
    def _scores(
        cls, tables: tuple[Data, Data], metadata: Any, table_name: str | None, **options: Any
    ) -> dict:
        """The scores on the values of modelled columns, without keys."""
        facts = facts_of(metadata, table_name)
        kinds = {
            name: column
            for name, column in facts["columns"].items()
            if column.get("sdtype") in _MODELLED and name not in keys_of(facts)
        }
        numeric = [name for name, column in kinds.items() if column["sdtype"] in _NUMERIC]
        real, synthetic = (
            pd.DataFrame(
                {
                    name: _numbers(column, kinds[name]) if name in numeric else column.to_numpy()
                    for name, column in columns_of(data, tuple(kinds), table_name).items()
                }
            )
            for data in tables
        )
        return cls._of(real, synthetic, numeric=numeric, **options)


class _CellMetric(_Metric):
    """A metric on the cells of the declared domain.

    Cells come from the ranges and categories of the metadata and of ``public_domain``, in the
    words of the synthesizer, never from the tables. A numerical column has ``num_bins`` cells.
    Values outside the range go to the first or the last cell; an undeclared category is missing.
    Keys and columns of other sdtypes are left out.
    """

    @classmethod
    def _scores(
        cls,
        tables: tuple[Data, Data],
        metadata: Any,
        table_name: str | None,
        *,
        public_domain: Mapping[str, Mapping] | None = None,
        num_bins: int = 32,
        **options: Any,
    ) -> dict:
        from sdv_privpgd.columns.encoding import encode_table

        facts = facts_of(metadata, table_name)
        schema = Schema.from_sdv(
            facts["columns"], keys=keys_of(facts), public_domain=public_domain, num_bins=num_bins
        )
        domain = schema.domain()
        real, synthetic = (
            encode_table(columns_of(data, domain.attributes, table_name), schema) for data in tables
        )
        nominal = frozenset(column.name for column in schema.columns if not column.is_ordered)
        return cls._of(Cells(domain, real, synthetic, nominal), **options)


def _metric(
    of: Callable[..., dict], *, base: type[_Metric] = _CellMetric, **more: Any
) -> type[_Metric]:
    """Makes a class of SDMetrics of the function that computes its scores."""
    body = {
        "__doc__": of.__doc__,
        "__module__": "sdv_privpgd.metrics",  # pickles name it, and it imports SDMetrics first
        "name": of.__name__,
        "_of": staticmethod(of),
        **more,
    }
    return type(of.__name__, (base,), body)


def _conditional(
    function: Callable[..., Any], cells: Cells, label: str, *, is_nominal: bool, **options: Any
) -> dict:
    """Errors of RAP++'s features, which are either the nominal columns or the ordered ones."""
    asked = [name for name in cells.domain.attributes if name != label]
    features = [name for name in asked if (name in cells.nominal) == is_nominal]
    found = function(*cells[:3], features=features, labels=[label], **options)
    return {"score": found.mean, "max": found.max}


@_metric
def PairwiseTotalVariation(cells: Cells) -> dict:
    """Half the mean L1 distance of the tables of all pairs of columns. Not private.

    Donhauser et al. 2024 print twice this value.

    >>> import pandas as pd
    >>> from sdv_privpgd.metrics import PairwiseTotalVariation
    >>> kinds = {"age": {"sdtype": "numerical"}, "ward": {"sdtype": "categorical"}}
    >>> domain = {"age": {"range_min": 0, "range_max": 99}, "ward": {"range_values": ["A", "B"]}}
    >>> real = pd.DataFrame({"age": [20, 30, 40, 50] * 25, "ward": ["A", "B"] * 50})
    >>> synthetic = real.assign(ward="A")
    >>> score = PairwiseTotalVariation.compute(
    ...     real, synthetic, {"columns": kinds}, public_domain=domain
    ... )
    >>> round(score, 3)
    0.5
    """
    return {pair: distance / 2 for pair, distance in pairs.l1_by_pair(*cells[:3]).items()}


@partial(_metric, max_value=sqrt(2))
def PairwiseSlicedWasserstein(cells: Cells, **options: Any) -> dict:
    """Mean sliced W1 distance of all pairs of columns, on the unit square. Not private.

    Donhauser et al. 2024, "average SW1". Options: ``num_slices`` (100) and ``seed`` (0).
    """
    return pairs.sw1_by_pair(*cells[:3], **options)


@partial(_metric, max_value=inf)
def CovarianceError(cells: Cells, **options: Any) -> dict:
    """Relative Frobenius error of the covariance of embedded rows. Not private.

    Option: ``relative_to``, ``"real"`` or, as in Donhauser et al. 2024, ``"synthetic"``.
    """
    return {"score": pairs.covariance_error(*cells[:3], **options)}


@partial(_metric, max_value=inf)
def CountingQueryError(cells: Cells, **options: Any) -> dict:
    """Relative error of random 3-way counting queries (Donhauser et al. 2024). Not private.

    Options: ``num_queries`` (200) and ``seed`` (0).
    """
    return queries.counting_errors(*cells[:3], **options)


@partial(_metric, max_value=inf)
def ThresholdQueryError(cells: Cells, **options: Any) -> dict:
    """Relative error of random linear threshold queries (Donhauser et al. 2024). Not private.

    Options: ``num_queries`` (200) and ``seed`` (0).
    """
    return queries.threshold_errors(*cells[:3], **options)


@_metric
def CategoricalMarginalError(cells: Cells, *, label: str) -> dict:
    """Mean error of RAP++'s class-conditional marginals of nominal columns. Not private.

    Option: ``label``, the column that conditions; it must be given. The breakdown has the maximum.
    """
    return _conditional(queries.categorical_marginal_errors, cells, label, is_nominal=True)


@_metric
def MixedMarginalError(cells: Cells, *, label: str, **options: Any) -> dict:
    """Mean error of RAP++'s class-conditional mixed marginals of ordered columns. Not private.

    Options: ``label``, the column that conditions; it must be given; ``num_queries`` (200,000) and
    ``seed`` (0). The breakdown has the maximum.
    """
    return _conditional(queries.mixed_marginal_errors, cells, label, is_nominal=False, **options)


@_metric
def LinearThresholdError(cells: Cells, *, label: str, **options: Any) -> dict:
    """Mean error of RAP++'s class-conditional linear thresholds of ordered columns. Not private.

    Options: ``label``, the column that conditions; it must be given; ``num_queries`` (2,000) and
    ``seed`` (0). The breakdown has the maximum.
    """
    return _conditional(queries.linear_threshold_errors, cells, label, is_nominal=False, **options)


@_metric
def DownstreamError(cells: Cells, *, label: str, **options: Any) -> dict:
    """Share of wrong labels of gradient boosting trained on synthetic rows. Not private.

    Donhauser et al. 2024: ``real_data`` are test rows, which the synthesizer has not seen. Options:
    ``label``, the column to predict; it must be given; ``seed`` (0).
    """
    from sdv_privpgd.metrics.learning import downstream_error  # it imports the package's decoders

    return {"score": downstream_error(cells.domain, cells.synthetic, cells.real, label, **options)}


@partial(_metric, goal=Goal.MAXIMIZE)
def MLEfficiency(cells: Cells, *, label: str, **options: Any) -> dict:
    """Mean macro F1 of four models trained on synthetic rows. Not private.

    After Chen et al. 2025, with scikit-learn's models: ``real_data`` are test rows, which the
    synthesizer has not seen. Options: ``label``, the column to predict; it must be given; ``seed``
    (0).
    """
    from sdv_privpgd.metrics.learning import f1_by_model

    return f1_by_model(
        cells.domain, cells.synthetic, cells.real, label, nominal=cells.nominal, **options
    )


@partial(_metric, base=_Metric)
def RangeQueryError(real: pd.DataFrame, synthetic: pd.DataFrame, **options: Any) -> dict:
    """Mean error of random 3-way range and point queries on values. Not private.

    Chen et al. 2025, "query error": ``real_data`` are test rows. Options: ``num_queries``
    (1,000) and ``seed`` (0).
    """
    return queries.range_errors(real, synthetic, **options)


@partial(_metric, base=_Metric)
def FidelityError(real: pd.DataFrame, synthetic: pd.DataFrame, **options: Any) -> dict:
    """Mean total variation distance of all pairs of columns, numbers in 100 levels. Not private.

    Chen et al. 2025, "fidelity error": ``real_data`` are test rows.

    >>> import pandas as pd
    >>> from sdv_privpgd.metrics import FidelityError
    >>> kinds = {"age": {"sdtype": "numerical"}, "ward": {"sdtype": "categorical"}}
    >>> real = pd.DataFrame({"age": [20, 30, 40, 50] * 25, "ward": ["A", "B"] * 50})
    >>> synthetic = real.assign(ward="A")
    >>> FidelityError.compute(real, synthetic, {"columns": kinds}) > 0
    True
    """
    return pairs.fidelity_by_pair(real, synthetic, **options)
