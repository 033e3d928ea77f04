"""Answers as a curator would give them, to made-up rows: a simulation, without any privacy.

The rows are a fitted model's, so they are public, and so is everything that is computed of them.
That is why this noise may come from a seeded generator. It is Gaussian and rounded to whole
numbers, as the curator's is, and no private answer ever gets it: nothing in ``privacy`` imports
this module, which an import contract checks, and nothing here knows a curator, its books or its
noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sdv_privpgd.base.domain import Clique, Domain, Grouping
from sdv_privpgd.methods.dp_sgd import TrainingQuery
from sdv_privpgd.privacy.embedding import EmbeddingQuery
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.privacy.queries import (
    CountQuery,
    CutMarginalQuery,
    GroupedMarginalQuery,
    MarginalQuery,
    answers_of_codes,
)
from sdv_privpgd.synthesize.engine import Model


def simulated_answers(
    measurements: Sequence[Measurement],
    domain: Domain,
    codes: np.ndarray,
    rng: np.random.Generator,
) -> tuple[Measurement, ...]:
    """What the same questions, with the same noise, would have found in rows of a model. Public.

    Args:
        measurements: The questions: their answers are not looked at. What is not a table, an
            embedding or the number of rows is left out.
        domain: Of the codes.
        codes: Of the model's rows, shape (row, attribute).
        rng: Of the simulated noise.

    Raises:
        ValueError: For weights that private gradients have trained.
    """
    tables = _Tables(domain, codes)
    found = []
    for measured in measurements:
        query = measured.query
        if isinstance(query, CountQuery):
            exact = np.array([len(codes)])
        elif isinstance(query, MarginalQuery):
            exact = tables.counts(query.clique)
        elif isinstance(query, GroupedMarginalQuery):
            exact = tables.counts(query.clique, query.grouping)
        elif isinstance(query, EmbeddingQuery):
            exact = query.of_codes(domain, codes)
        elif isinstance(query, CutMarginalQuery):
            (exact,) = answers_of_codes([query], domain, codes)
        elif isinstance(query, TrainingQuery):
            raise ValueError(
                "Intervals repeat the fit with other noise, and a training by private gradients is "
                "not repeated: it would take the time of as many fits. Choose another method, such "
                "as method='privpgd' does."
            )
        else:
            continue
        noise = measured.stddev * rng.standard_normal(exact.shape)
        answer, units = np.rint((exact + noise) * measured.units).astype(np.int64), measured.units
        answer = answer / units if units > 1 else answer
        found.append(replace(measured, answer=answer))
    return tuple(found)


def independent_rows(model: Model, num_rows: int, rng: np.random.Generator) -> np.ndarray:
    """Codes of rows that are drawn one by one and independently, shape (row, attribute). Public.

    A model's own samples vary less than that, because each of its particles is dealt equally often.
    These vary as rows of a population do.
    """
    pool = model.sample(max(model.block, num_rows), int(rng.integers(2**31)))
    return pool[rng.integers(len(pool), size=num_rows)]


@dataclass(frozen=True, kw_only=True, eq=False)
class Population:
    """A model whose samples are independent rows. Public."""

    model: Model

    @property
    def domain(self) -> Domain:
        """The domain of the model's rows."""
        return self.model.domain

    @property
    def block(self) -> int:
        """The number of rows that is best drawn at once."""
        return self.model.block

    def marginal(self, clique: Clique) -> np.ndarray:
        """The probabilities of a clique's cells, axes in the clique's order."""
        return self.model.marginal(clique)

    def sample(self, num_rows: int, seed: int) -> np.ndarray:
        """Codes of shape (row, attribute). The same seed gives the same rows."""
        return independent_rows(self.model, num_rows, np.random.default_rng(seed))


class _Tables:
    """Counts tables of codes: each column once for a grouping, then one pass a table."""

    def __init__(self, domain: Domain, codes: np.ndarray) -> None:
        self._domain = domain
        self._codes = codes
        self._columns: dict[tuple[str, int], np.ndarray] = {}

    def counts(self, clique: Clique, grouping: Grouping | None = None) -> np.ndarray:
        domain = self._domain if grouping is None else grouping.domain
        shape = domain.shape(clique)
        cells = np.zeros(len(self._codes), dtype=np.int32 if domain.size(clique) < 2**31 else int)
        for name, size in zip(clique, shape, strict=True):
            cells *= size
            cells += self._column(name, grouping)
        return np.bincount(cells, minlength=domain.size(clique)).reshape(shape)

    def _column(self, name: str, grouping: Grouping | None) -> np.ndarray:
        key = (name, id(grouping))
        if key not in self._columns:
            (axis,) = self._domain.axes((name,))
            column = self._codes[:, axis]
            if grouping is not None:
                column = np.asarray(grouping[name])[column]
            self._columns[key] = np.ascontiguousarray(column, dtype=np.int32)
        return self._columns[key]
