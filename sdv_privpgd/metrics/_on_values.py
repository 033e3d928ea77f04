"""The metrics on values, which need no ranges, as classes of SDMetrics. Not private."""

from typing import Any

from sdv_privpgd.metrics import decoded
from sdv_privpgd.metrics._classes import ValueMetric
from sdv_privpgd.metrics._frames import Values


class RangeQueryError(ValueMetric):
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


class FidelityError(ValueMetric):
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
