"""The metrics as classes of SDMetrics, from data frames and metadata to a score. Not private.

SDMetrics imports this module at the end of its own import (the entry points ``sdmetrics_modules``).
Take the classes from ``sdv_privpgd.metrics``, which imports SDMetrics first.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sdmetrics.goal import Goal
from sdmetrics.single_table.base import SingleTableMetric

from sdv_privpgd.metrics import conditional, decoded, learning, pairs, queries
from sdv_privpgd.metrics._frames import Cells, Data, Values, cells_of, values_of


class _Metric(SingleTableMetric):
    """The common part of the metrics: it gives the scores of ``_scores``, or their average."""

    goal = Goal.MINIMIZE
    min_value = 0.0
    max_value: float = 1.0

    def __init_subclass__(cls) -> None:
        # Classes are pickled under this name, which imports SDMetrics first.
        cls.__module__ = "sdv_privpgd.metrics"

    @classmethod
    def compute(
        cls, real_data: Data, synthetic_data: Data, metadata=None, table_name=None, **options: Any
    ) -> float:
        """The score. Not private. The options are those of the class."""
        found = cls._scores(real_data, synthetic_data, metadata, table_name, **options)
        return float(found["score"] if "score" in found else np.mean(list(found.values())))

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
        raise NotImplementedError


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
        cells = cells_of(
            real,
            synthetic,
            metadata,
            table_name,
            public_domain=public_domain,
            num_bins=num_bins,
        )
        return cls._of_cells(cells, **options)

    @classmethod
    def _of_cells(cls, cells: Cells, *args: Any, **options: Any) -> dict:
        raise NotImplementedError


class PairwiseTotalVariation(_CellMetric):
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

    name = "PairwiseTotalVariation"

    @classmethod
    def _of_cells(cls, cells: Cells) -> dict:
        distances = pairs.l1_by_pair(cells.domain, cells.real, cells.synthetic)
        return {pair: distance / 2 for pair, distance in distances.items()}


class PairwiseSlicedWasserstein(_CellMetric):
    """Mean sliced W1 distance of all pairs of columns, on the unit square. Not private.

    Donhauser et al. 2024, "average SW1". Options: ``num_slices`` (100) and ``seed`` (0).

    >>> import pandas as pd
    >>> from sdv_privpgd.metrics import PairwiseSlicedWasserstein
    >>> kinds = {"age": {"sdtype": "numerical"}, "ward": {"sdtype": "categorical"}}
    >>> domain = {"age": {"range_min": 0, "range_max": 99}, "ward": {"range_values": ["A", "B"]}}
    >>> real = pd.DataFrame({"age": [20, 30, 40, 50] * 25, "ward": ["A", "B"] * 50})
    >>> synthetic = real.assign(ward="A")
    >>> score = PairwiseSlicedWasserstein.compute(
    ...     real, synthetic, {"columns": kinds}, public_domain=domain
    ... )
    >>> round(score, 3)
    0.106
    """

    name = "PairwiseSlicedWasserstein"
    max_value = float(np.sqrt(2))

    @classmethod
    def _of_cells(cls, cells: Cells, **options: Any) -> dict:
        return pairs.sw1_by_pair(cells.domain, cells.real, cells.synthetic, **options)


class CovarianceError(_CellMetric):
    """Relative Frobenius error of the covariance of embedded rows. Not private.

    Option: ``relative_to``, ``"real"`` or, as in Donhauser et al. 2024, ``"synthetic"``.

    >>> import pandas as pd
    >>> from sdv_privpgd.metrics import CovarianceError
    >>> kinds = {"age": {"sdtype": "numerical"}, "ward": {"sdtype": "categorical"}}
    >>> domain = {"age": {"range_min": 0, "range_max": 99}, "ward": {"range_values": ["A", "B"]}}
    >>> real = pd.DataFrame({"age": [20, 30, 40, 50] * 25, "ward": ["A", "B"] * 50})
    >>> synthetic = real.assign(ward="A")
    >>> score = CovarianceError.compute(
    ...     real, synthetic, {"columns": kinds}, public_domain=domain
    ... )
    >>> round(score, 3)
    0.924
    """

    name = "CovarianceError"
    max_value = float("inf")

    @classmethod
    def _of_cells(cls, cells: Cells, **options: Any) -> dict:
        return {
            "score": pairs.covariance_error(cells.domain, cells.real, cells.synthetic, **options)
        }


class CountingQueryError(_CellMetric):
    """Relative error of random 3-way counting queries (Donhauser et al. 2024). Not private.

    Options: ``num_queries`` (200) and ``seed`` (0).

    >>> import pandas as pd
    >>> from sdv_privpgd.metrics import CountingQueryError
    >>> kinds = {name: {"sdtype": "numerical"} for name in ("a", "b", "c")}
    >>> kinds["ill"] = {"sdtype": "categorical"}
    >>> domain = {name: {"range_min": 0, "range_max": 9} for name in ("a", "b", "c")}
    >>> domain["ill"] = {"range_values": [0, 1]}
    >>> real = pd.DataFrame({name: list(range(10)) * 20 for name in ("a", "b", "c")})
    >>> real["ill"] = real["a"] // 5
    >>> CountingQueryError.compute(
    ...     real, real, {"columns": kinds}, public_domain=domain
    ... )
    0.0
    """

    name = "CountingQueryError"
    max_value = float("inf")

    @classmethod
    def _of_cells(cls, cells: Cells, **options: Any) -> dict:
        return queries.counting_errors(cells.domain, cells.real, cells.synthetic, **options)


class ThresholdQueryError(_CellMetric):
    """Relative error of random linear threshold queries (Donhauser et al. 2024). Not private.

    Options: ``num_queries`` (200) and ``seed`` (0).

    >>> import pandas as pd
    >>> from sdv_privpgd.metrics import ThresholdQueryError
    >>> kinds = {name: {"sdtype": "numerical"} for name in ("a", "b", "c")}
    >>> kinds["ill"] = {"sdtype": "categorical"}
    >>> domain = {name: {"range_min": 0, "range_max": 9} for name in ("a", "b", "c")}
    >>> domain["ill"] = {"range_values": [0, 1]}
    >>> real = pd.DataFrame({name: list(range(10)) * 20 for name in ("a", "b", "c")})
    >>> real["ill"] = real["a"] // 5
    >>> ThresholdQueryError.compute(
    ...     real, real, {"columns": kinds}, public_domain=domain
    ... )
    0.0
    """

    name = "ThresholdQueryError"
    max_value = float("inf")

    @classmethod
    def _of_cells(cls, cells: Cells, **options: Any) -> dict:
        return queries.threshold_errors(cells.domain, cells.real, cells.synthetic, **options)


class CategoricalMarginalError(_CellMetric):
    """Mean error of RAP++'s class-conditional marginals of nominal columns. Not private.

    Option: ``label``, the column that conditions; it must be given. The breakdown has the maximum.

    >>> import pandas as pd
    >>> from sdv_privpgd.metrics import CategoricalMarginalError
    >>> kinds = {name: {"sdtype": "categorical"} for name in ("a", "b", "ill")}
    >>> domain = {name: {"range_values": [0, 1]} for name in ("a", "b", "ill")}
    >>> real = pd.DataFrame({name: [0, 1] * 20 for name in ("a", "b", "ill")})
    >>> CategoricalMarginalError.compute(
    ...     real, real, {"columns": kinds}, public_domain=domain, label="ill"
    ... )
    0.0
    """

    name = "CategoricalMarginalError"

    @classmethod
    def _of_cells(cls, cells: Cells, *, label: str) -> dict:
        features = [name for name in cells.domain.attributes if name in cells.nominal - {label}]
        found = conditional.categorical_marginal_errors(
            cells.domain, cells.real, cells.synthetic, features=features, labels=[label]
        )
        return {"score": found.mean, "max": found.max}


class MixedMarginalError(_CellMetric):
    """Mean error of RAP++'s class-conditional mixed marginals of ordered columns. Not private.

    Options: ``label``, the column that conditions; it must be given; ``num_queries`` (200,000) and
    ``seed`` (0). The breakdown has the maximum.

    >>> import pandas as pd
    >>> from sdv_privpgd.metrics import MixedMarginalError
    >>> kinds = {name: {"sdtype": "numerical"} for name in ("a", "b", "c")}
    >>> kinds["ill"] = {"sdtype": "categorical"}
    >>> domain = {name: {"range_min": 0, "range_max": 9} for name in ("a", "b", "c")}
    >>> domain["ill"] = {"range_values": [0, 1]}
    >>> real = pd.DataFrame({name: list(range(10)) * 20 for name in ("a", "b", "c")})
    >>> real["ill"] = real["a"] // 5
    >>> MixedMarginalError.compute(
    ...     real, real, {"columns": kinds}, public_domain=domain, label="ill", num_queries=100
    ... )
    0.0
    """

    name = "MixedMarginalError"

    @classmethod
    def _of_cells(cls, cells: Cells, *, label: str, **options: Any) -> dict:
        found = conditional.mixed_marginal_errors(
            cells.domain, cells.real, cells.synthetic, **_ordered(cells, label), **options
        )
        return {"score": found.mean, "max": found.max}


class LinearThresholdError(_CellMetric):
    """Mean error of RAP++'s class-conditional linear thresholds of ordered columns. Not private.

    Options: ``label``, the column that conditions; it must be given; ``num_queries`` (2,000) and
    ``seed`` (0). The breakdown has the maximum.

    >>> import pandas as pd
    >>> from sdv_privpgd.metrics import LinearThresholdError
    >>> kinds = {name: {"sdtype": "numerical"} for name in ("a", "b", "c")}
    >>> kinds["ill"] = {"sdtype": "categorical"}
    >>> domain = {name: {"range_min": 0, "range_max": 9} for name in ("a", "b", "c")}
    >>> domain["ill"] = {"range_values": [0, 1]}
    >>> real = pd.DataFrame({name: list(range(10)) * 20 for name in ("a", "b", "c")})
    >>> real["ill"] = real["a"] // 5
    >>> LinearThresholdError.compute(
    ...     real, real, {"columns": kinds}, public_domain=domain, label="ill", num_queries=100
    ... )
    0.0
    """

    name = "LinearThresholdError"

    @classmethod
    def _of_cells(cls, cells: Cells, *, label: str, **options: Any) -> dict:
        found = conditional.linear_threshold_errors(
            cells.domain, cells.real, cells.synthetic, **_ordered(cells, label), **options
        )
        return {"score": found.mean, "max": found.max}


class DownstreamError(_CellMetric):
    """Share of wrong labels of gradient boosting trained on synthetic rows. Not private.

    Donhauser et al. 2024: ``real_data`` are test rows, which the synthesizer has not seen. Options:
    ``label``, the column to predict; it must be given; ``seed`` (0).

    >>> import pandas as pd
    >>> from sdv_privpgd.metrics import DownstreamError
    >>> kinds = {name: {"sdtype": "numerical"} for name in ("a", "b", "c")}
    >>> kinds["ill"] = {"sdtype": "categorical"}
    >>> domain = {name: {"range_min": 0, "range_max": 9} for name in ("a", "b", "c")}
    >>> domain["ill"] = {"range_values": [0, 1]}
    >>> real = pd.DataFrame({name: list(range(10)) * 20 for name in ("a", "b", "c")})
    >>> real["ill"] = real["a"] // 5
    >>> DownstreamError.compute(
    ...     real, real, {"columns": kinds}, public_domain=domain, label="ill"
    ... )
    0.0
    """

    name = "DownstreamError"

    @classmethod
    def _of_cells(cls, cells: Cells, *, label: str, **options: Any) -> dict:
        error = learning.downstream_error(
            cells.domain, cells.synthetic, cells.real, label, **options
        )
        return {"score": error}


class MLEfficiency(_CellMetric):
    """Mean macro F1 of four models trained on synthetic rows. Not private.

    After Chen et al. 2025, with scikit-learn's models: ``real_data`` are test rows, which the
    synthesizer has not seen. Options: ``label``, the column to predict; it must be given; ``seed``
    (0).

    >>> import pandas as pd
    >>> from sdv_privpgd.metrics import MLEfficiency
    >>> kinds = {name: {"sdtype": "numerical"} for name in ("a", "b", "c")}
    >>> kinds["ill"] = {"sdtype": "categorical"}
    >>> domain = {name: {"range_min": 0, "range_max": 9} for name in ("a", "b", "c")}
    >>> domain["ill"] = {"range_values": [0, 1]}
    >>> real = pd.DataFrame({name: list(range(10)) * 20 for name in ("a", "b", "c")})
    >>> real["ill"] = real["a"] // 5
    >>> MLEfficiency.compute(
    ...     real, real, {"columns": kinds}, public_domain=domain, label="ill"
    ... ) > 0.9
    True
    """

    name = "MLEfficiency"
    goal = Goal.MAXIMIZE

    @classmethod
    def _of_cells(cls, cells: Cells, *, label: str, **options: Any) -> dict:
        return learning.f1_by_model(
            cells.domain, cells.synthetic, cells.real, label, nominal=cells.nominal, **options
        )


class _ValueMetric(_Metric):
    """A metric on values, which needs no ranges. Keys and columns of other sdtypes are left out."""

    @classmethod
    def _scores(
        cls, real: Data, synthetic: Data, metadata: Any, table_name: str | None, **options: Any
    ) -> dict:
        return cls._of_values(values_of(real, synthetic, metadata, table_name), **options)

    @classmethod
    def _of_values(cls, values: Values, *args: Any, **options: Any) -> dict:
        raise NotImplementedError


class RangeQueryError(_ValueMetric):
    """Mean error of random 3-way range and point queries on values. Not private.

    Chen et al. 2025, "query error": ``real_data`` are test rows. Options: ``mode`` (``"paper"`` or
    ``"tab_bench"``, the paper's code), ``num_queries`` (1,000) and ``seed`` (0).

    >>> import pandas as pd
    >>> from sdv_privpgd.metrics import RangeQueryError
    >>> kinds = {"age": {"sdtype": "numerical"}, "ward": {"sdtype": "categorical"}}
    >>> real = pd.DataFrame({"age": [20, 30, 40, 50] * 25, "ward": ["A", "B"] * 50})
    >>> synthetic = real.assign(ward="A")
    >>> RangeQueryError.compute(real, synthetic, {"columns": kinds}) > 0.1
    True
    """

    name = "RangeQueryError"

    @classmethod
    def _of_values(cls, values: Values, **options: Any) -> dict:
        return decoded.range_errors(
            values.real, values.synthetic, numeric=values.numeric, **options
        )


class FidelityError(_ValueMetric):
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

    name = "FidelityError"

    @classmethod
    def _of_values(cls, values: Values) -> dict:
        return decoded.fidelity_by_pair(values.real, values.synthetic, numeric=values.numeric)


def _ordered(cells: Cells, label: str) -> dict:
    """RAP++'s numerical features, which are the ordered columns without the label."""
    left_out = cells.nominal | {label}
    return {
        "features": [name for name in cells.domain.attributes if name not in left_out],
        "labels": [label],
    }
