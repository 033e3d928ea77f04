"""The metrics on cells of the declared domain, as classes of SDMetrics. Not private."""

from typing import Any

import numpy as np
from sdmetrics.goal import Goal

from sdv_privpgd.metrics import conditional, learning, pairs, queries
from sdv_privpgd.metrics._classes import CellMetric
from sdv_privpgd.metrics._frames import Cells


class PairwiseTotalVariation(CellMetric):
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


class PairwiseSlicedWasserstein(CellMetric):
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


class CovarianceError(CellMetric):
    """Relative Frobenius error of the covariance of embedded rows. Not private.

    Option: ``relative_to``, ``"real"`` or, as in Donhauser et al. 2024, ``"synthetic"``.

    >>> import pandas as pd
    >>> from sdv_privpgd.metrics import CovarianceError
    >>> kinds = {"age": {"sdtype": "numerical"}, "ward": {"sdtype": "categorical"}}
    >>> domain = {"age": {"range_min": 0, "range_max": 99}, "ward": {"range_values": ["A", "B"]}}
    >>> real = pd.DataFrame({"age": [20, 30, 40, 50] * 25, "ward": ["A", "B"] * 50})
    >>> synthetic = real.assign(ward="A")
    >>> score = CovarianceError.compute(real, synthetic, {"columns": kinds}, public_domain=domain)
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


class CountingQueryError(CellMetric):
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
    >>> CountingQueryError.compute(real, real, {"columns": kinds}, public_domain=domain)
    0.0
    """

    name = "CountingQueryError"
    max_value = float("inf")

    @classmethod
    def _of_cells(cls, cells: Cells, **options: Any) -> dict:
        return queries.counting_errors(cells.domain, cells.real, cells.synthetic, **options)


class ThresholdQueryError(CellMetric):
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
    >>> ThresholdQueryError.compute(real, real, {"columns": kinds}, public_domain=domain)
    0.0
    """

    name = "ThresholdQueryError"
    max_value = float("inf")

    @classmethod
    def _of_cells(cls, cells: Cells, **options: Any) -> dict:
        return queries.threshold_errors(cells.domain, cells.real, cells.synthetic, **options)


class CategoricalMarginalError(CellMetric):
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


class MixedMarginalError(CellMetric):
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


class LinearThresholdError(CellMetric):
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


class DownstreamError(CellMetric):
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
    >>> DownstreamError.compute(real, real, {"columns": kinds}, public_domain=domain, label="ill")
    0.0
    """

    name = "DownstreamError"

    @classmethod
    def _of_cells(cls, cells: Cells, *, label: str, **options: Any) -> dict:
        error = learning.downstream_error(
            cells.domain, cells.synthetic, cells.real, label, **options
        )
        return {"score": error}


class MLEfficiency(CellMetric):
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


def _ordered(cells: Cells, label: str) -> dict:
    """RAP++'s numerical features, which are the ordered columns without the label."""
    left_out = cells.nominal | {label}
    return {
        "features": [name for name in cells.domain.attributes if name not in left_out],
        "labels": [label],
    }
