"""The metrics as classes of SDMetrics, from data frames and metadata to a score. Not private.

SDMetrics imports this module at the end of its own import (the entry points ``sdmetrics_modules``).
Take the classes from ``sdv_privpgd.metrics``, which imports SDMetrics first.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any

import numpy as np
import pandas as pd
from sdmetrics.goal import Goal
from sdmetrics.single_table.base import SingleTableMetric
from sdmetrics.utils import get_alternate_keys, get_primary_key_from_metadata

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.columns.dates import instants
from sdv_privpgd.columns.scalars import real_numbers
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.metrics import conditional, decoded, learning, pairs, queries
from sdv_privpgd.metrics.rows import average

_NUMERIC = ("numerical", "datetime")
_CATEGORICAL = ("categorical", "ordinal", "boolean")

Data = pd.DataFrame | Mapping[str, pd.DataFrame]
"""A table, or SDV 2's dictionary of tables."""


@dataclass(frozen=True, kw_only=True)
class Cells:
    """Two tables as codes of one public domain. Nominal attributes have no order."""

    domain: Domain
    nominal: frozenset[str]
    real: np.ndarray
    synthetic: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Values:
    """The modelled columns of two tables as they are. Those in ``numeric`` hold float64."""

    numeric: tuple[str, ...]
    real: pd.DataFrame
    synthetic: pd.DataFrame


def cells_of(
    real: Data,
    synthetic: Data,
    metadata: Mapping[str, Any],
    table_name: str | None,
    *,
    public_domain: Mapping[str, Mapping] | None,
    num_bins: int,
) -> Cells:
    """Two tables as codes of the cells that the metadata and the public domain declare."""
    from sdv_privpgd.columns.encoding import encode_table

    facts = _facts(metadata, table_name)
    schema = Schema.from_sdv(
        facts["columns"], keys=_keys(facts), public_domain=public_domain, num_bins=num_bins
    )
    domain = schema.domain()
    codes = [
        encode_table(_columns(data, table_name, domain.attributes), schema)
        for data in (real, synthetic)
    ]
    return Cells(
        domain=domain,
        nominal=frozenset(column.name for column in schema.columns if not column.is_ordered),
        real=codes[0],
        synthetic=codes[1],
    )


def values_of(
    real: Data, synthetic: Data, metadata: Mapping[str, Any], table_name: str | None
) -> Values:
    """The modelled columns of two tables, without keys. Unreadable numbers or dates are missing."""
    facts = _facts(metadata, table_name)
    keys = _keys(facts)
    kinds = {
        name: column
        for name, column in facts["columns"].items()
        if column.get("sdtype") in (*_NUMERIC, *_CATEGORICAL) and name not in keys
    }
    numeric = tuple(name for name, column in kinds.items() if column["sdtype"] in _NUMERIC)
    tables = [
        pd.DataFrame(
            {
                name: _numbers(column, kinds[name]) if name in numeric else column.to_numpy()
                for name, column in _columns(data, table_name, tuple(kinds)).items()
            }
        )
        for data in (real, synthetic)
    ]
    return Values(numeric=numeric, real=tables[0], synthetic=tables[1])


def _facts(metadata: Mapping[str, Any], table_name: str | None) -> Mapping[str, Any]:
    """The facts on the table, from SDV's metadata in either of its two forms."""
    if not isinstance(metadata, Mapping):
        raise TypeError(
            "metadata must be a dictionary, as metadata.to_dict() gives, got "
            f"{type(metadata).__name__}."
        )
    return _table(metadata["tables"], table_name) if "tables" in metadata else metadata


def _table(tables: Mapping[str, Any], table_name: str | None) -> Any:
    """The table of a name. The name may be left out if there is only one table."""
    if table_name is None and len(tables) == 1:
        return next(iter(tables.values()))
    if table_name is None or table_name not in tables:
        raise ValueError(f"table_name must be one of {list(tables)!r}, got {table_name!r}.")
    return tables[table_name]


def _keys(facts: Mapping[str, Any]) -> set[str]:
    found = [get_primary_key_from_metadata(facts), *get_alternate_keys(facts)]
    return {name for key in found for name in (key if isinstance(key, list) else [key])}


def _columns(data: Data, table_name: str | None, names: tuple[str, ...]) -> dict[str, pd.Series]:
    frame = data if isinstance(data, pd.DataFrame) else _table(data, table_name)
    absent = [name for name in names if name not in frame]
    if absent:
        raise ValueError(f"Both tables need the metadata's columns, one is without {absent!r}.")
    return {str(name): column for name, column in frame[list(names)].items()}


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
        found = cls._scores(real_data, synthetic_data, metadata, table_name, **options)
        return float(found["score"]) if "score" in found else average(found)

    @classmethod
    def compute_breakdown(
        cls, real_data: Data, synthetic_data: Data, metadata=None, table_name=None, **options: Any
    ) -> dict:
        """The scores that average to ``compute``'s, each as ``{'score': ...}``. Not private.

        A score that is no average is ``'score'`` itself, beside the other results.
        """
        found = cls._scores(real_data, synthetic_data, metadata, table_name, **options)
        return found if "score" in found else {key: {"score": one} for key, one in found.items()}

    @classmethod
    def _scores(
        cls, real: Data, synthetic: Data, metadata: Any, table_name: str | None, **options: Any
    ) -> dict:
        """The scores on values, which need no ranges."""
        return cls._of(values_of(real, synthetic, metadata, table_name), **options)


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
        real: Data,
        synthetic: Data,
        metadata: Any,
        table_name: str | None,
        *,
        public_domain: Mapping[str, Mapping] | None = None,
        num_bins: int = 32,
        **options: Any,
    ) -> dict:
        declared = {"public_domain": public_domain, "num_bins": num_bins}
        return cls._of(cells_of(real, synthetic, metadata, table_name, **declared), **options)


def _metric(
    name: str,
    of: Callable[..., dict],
    doc: str,
    *,
    base: type[_Metric] = _CellMetric,
    max_value: float = 1.0,
    goal: Goal = Goal.MINIMIZE,
) -> type[_Metric]:
    """A class of SDMetrics whose scores a function computes."""
    body = {
        "__doc__": doc,
        "__module__": "sdv_privpgd.metrics",  # pickles name it, and it imports SDMetrics first
        "name": name,
        "max_value": max_value,
        "goal": goal,
        "_of": staticmethod(of),
    }
    return type(name, (base,), body)


def _compared(function: Callable[..., dict]) -> Callable[..., dict]:
    return lambda cells, **options: function(cells.domain, cells.real, cells.synthetic, **options)


def _covariance_error(cells: Cells, **options: Any) -> dict:
    score = pairs.covariance_error(cells.domain, cells.real, cells.synthetic, **options)
    return {"score": score}


def _conditional(function: Callable[..., Any], *, is_nominal: bool) -> Callable[..., dict]:
    """Errors of RAP++'s features, which are either the nominal columns or the ordered ones."""

    def of(cells: Cells, *, label: str, **options: Any) -> dict:
        features = [
            name
            for name in cells.domain.attributes
            if name != label and (name in cells.nominal) == is_nominal
        ]
        found = function(
            cells.domain, cells.real, cells.synthetic, features=features, labels=[label], **options
        )
        return {"score": found.mean, "max": found.max}

    return of


def _downstream(cells: Cells, *, label: str, **options: Any) -> dict:
    error = learning.downstream_error(cells.domain, cells.synthetic, cells.real, label, **options)
    return {"score": error}


def _efficiency(cells: Cells, *, label: str, **options: Any) -> dict:
    return learning.f1_by_model(
        cells.domain, cells.synthetic, cells.real, label, nominal=cells.nominal, **options
    )


def _on_values(function: Callable[..., dict]) -> Callable[..., dict]:
    def of(values: Values, **options: Any) -> dict:
        return function(values.real, values.synthetic, numeric=values.numeric, **options)

    return of


def _halved_l1(cells: Cells) -> dict:
    distances = pairs.l1_by_pair(cells.domain, cells.real, cells.synthetic)
    return {pair: distance / 2 for pair, distance in distances.items()}


PairwiseTotalVariation = _metric(
    "PairwiseTotalVariation",
    _halved_l1,
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
    """,
)
PairwiseSlicedWasserstein = _metric(
    "PairwiseSlicedWasserstein",
    _compared(pairs.sw1_by_pair),
    """Mean sliced W1 distance of all pairs of columns, on the unit square. Not private.

    Donhauser et al. 2024, "average SW1". Options: ``num_slices`` (100) and ``seed`` (0).
    """,
    max_value=sqrt(2),
)
CovarianceError = _metric(
    "CovarianceError",
    _covariance_error,
    """Relative Frobenius error of the covariance of embedded rows. Not private.

    Option: ``relative_to``, ``"real"`` or, as in Donhauser et al. 2024, ``"synthetic"``.
    """,
    max_value=inf,
)
CountingQueryError = _metric(
    "CountingQueryError",
    _compared(queries.counting_errors),
    """Relative error of random 3-way counting queries (Donhauser et al. 2024). Not private.

    Options: ``num_queries`` (200) and ``seed`` (0).
    """,
    max_value=inf,
)
ThresholdQueryError = _metric(
    "ThresholdQueryError",
    _compared(queries.threshold_errors),
    """Relative error of random linear threshold queries (Donhauser et al. 2024). Not private.

    Options: ``num_queries`` (200) and ``seed`` (0).
    """,
    max_value=inf,
)
CategoricalMarginalError = _metric(
    "CategoricalMarginalError",
    _conditional(conditional.categorical_marginal_errors, is_nominal=True),
    """Mean error of RAP++'s class-conditional marginals of nominal columns. Not private.

    Option: ``label``, the column that conditions; it must be given. The breakdown has the maximum.
    """,
)
MixedMarginalError = _metric(
    "MixedMarginalError",
    _conditional(conditional.mixed_marginal_errors, is_nominal=False),
    """Mean error of RAP++'s class-conditional mixed marginals of ordered columns. Not private.

    Options: ``label``, the column that conditions; it must be given; ``num_queries`` (200,000) and
    ``seed`` (0). The breakdown has the maximum.
    """,
)
LinearThresholdError = _metric(
    "LinearThresholdError",
    _conditional(conditional.linear_threshold_errors, is_nominal=False),
    """Mean error of RAP++'s class-conditional linear thresholds of ordered columns. Not private.

    Options: ``label``, the column that conditions; it must be given; ``num_queries`` (2,000) and
    ``seed`` (0). The breakdown has the maximum.
    """,
)
DownstreamError = _metric(
    "DownstreamError",
    _downstream,
    """Share of wrong labels of gradient boosting trained on synthetic rows. Not private.

    Donhauser et al. 2024: ``real_data`` are test rows, which the synthesizer has not seen. Options:
    ``label``, the column to predict; it must be given; ``seed`` (0).
    """,
)
MLEfficiency = _metric(
    "MLEfficiency",
    _efficiency,
    """Mean macro F1 of four models trained on synthetic rows. Not private.

    After Chen et al. 2025, with scikit-learn's models: ``real_data`` are test rows, which the
    synthesizer has not seen. Options: ``label``, the column to predict; it must be given; ``seed``
    (0).
    """,
    goal=Goal.MAXIMIZE,
)
RangeQueryError = _metric(
    "RangeQueryError",
    _on_values(decoded.range_errors),
    """Mean error of random 3-way range and point queries on values. Not private.

    Chen et al. 2025, "query error": ``real_data`` are test rows. Options: ``mode`` (``"paper"`` or
    ``"tab_bench"``, the paper's code), ``num_queries`` (1,000) and ``seed`` (0).
    """,
    base=_Metric,
)
FidelityError = _metric(
    "FidelityError",
    _on_values(decoded.fidelity_by_pair),
    """Mean total variation distance of all pairs of columns, numbers in 100 levels. Not private.

    Chen et al. 2025, "fidelity error": ``real_data`` are test rows.

    >>> import pandas as pd
    >>> from sdv_privpgd.metrics import FidelityError
    >>> kinds = {"age": {"sdtype": "numerical"}, "ward": {"sdtype": "categorical"}}
    >>> real = pd.DataFrame({"age": [20, 30, 40, 50] * 25, "ward": ["A", "B"] * 50})
    >>> synthetic = real.assign(ward="A")
    >>> FidelityError.compute(real, synthetic, {"columns": kinds}) > 0
    True
    """,
    base=_Metric,
)
