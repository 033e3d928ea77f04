"""What the curator answers: a query with its noisy answer. Public."""

from dataclasses import dataclass

import numpy as np

from sdv_privpgd.privacy.queries import Query


@dataclass(frozen=True, kw_only=True, eq=False)
class Measurement:
    """A query and its noisy answer. Public.

    ``answer`` is int64 in the query's own shape, and float64 where answers of several holders were
    put together, or somebody else has published them. ``stddev`` is the noise's standard deviation
    per value, 0 where the answer is public.
    """

    query: Query
    answer: np.ndarray
    stddev: float
    units: int = 1
    """Answer and noise are whole numbers of 1 / units: of another one where people are weighed."""

    def __post_init__(self) -> None:
        self.answer.setflags(write=False)
