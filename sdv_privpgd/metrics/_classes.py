"""The common part of the metrics as classes of SDMetrics: from data frames to cells or values."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sdmetrics.goal import Goal
from sdmetrics.single_table.base import SingleTableMetric

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


class CellMetric(_Metric):
    """A metric on the cells of the declared domain.

    Cells come from the ranges and categories of the metadata and of ``public_domain``, in the
    words of the synthesizer, never from the tables. A numerical column has ``num_bins`` cells.
    Values outside the range go to the first or the last cell; an undeclared category is missing.
    Keys and columns of other sdtypes are left out.

    >>> from sdv_privpgd.metrics import PairwiseTotalVariation
    >>> issubclass(PairwiseTotalVariation, CellMetric)
    True
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


class ValueMetric(_Metric):
    """A metric on values, which needs no ranges. Keys and columns of other sdtypes are left out.

    >>> from sdv_privpgd.metrics import FidelityError
    >>> issubclass(FidelityError, ValueMetric)
    True
    """

    @classmethod
    def _scores(
        cls, real: Data, synthetic: Data, metadata: Any, table_name: str | None, **options: Any
    ) -> dict:
        return cls._of_values(values_of(real, synthetic, metadata, table_name), **options)

    @classmethod
    def _of_values(cls, values: Values, *args: Any, **options: Any) -> dict:
        raise NotImplementedError
