"""Fits to simulated answers: what the same release would have been, had the rows been others.

Rows are drawn from the fitted model, independently and as many as there were. The questions of the
release are asked of them with the noise that they had, and the engine fits the answers again. How
these fits differ from the model shows how far the release may be from its population, by sampling
and by noise. This is the parametric bootstrap (Efron & Tibshirani 1993, section 6.5; for private
releases Ferrando, Wang & Sheldon 2022). All of it is post-processing: free, and public.

Questions that were chosen by earlier answers are asked as they were chosen, and so are groups.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from sdv_privpgd.base.arguments import check_integer
from sdv_privpgd.base.domain import Clique, Domain
from sdv_privpgd.estimate.noisy_tables import estimate_total
from sdv_privpgd.inference.simulating import independent_rows, simulated_answers
from sdv_privpgd.pipeline import Release
from sdv_privpgd.privacy.queries import GroupedMarginalQuery, MarginalQuery
from sdv_privpgd.sampling.visits import RowMaker
from sdv_privpgd.synthesize.engine import Engine, Model


class MakesRows(Protocol):
    """What makes a sampler of a model, and can travel to other processes."""

    def __call__(self, model: Model, seed: int) -> RowMaker: ...


@dataclass(frozen=True, kw_only=True)
class Refit:
    """One fit to simulated answers. Public.

    Attributes:
        codes: Of the simulated rows that were asked, shape (row, attribute).
        model: What was fitted to the answers.
        seed: Of rows of the model.
    """

    codes: np.ndarray
    model: Model
    seed: int


@dataclass(frozen=True, kw_only=True)
class Refits:
    """A release that can be simulated. Public: it holds what a release holds, and no table.

    Attributes:
        release: The noisy answers and their model.
        engine: What fitted the model.
        sampler_of: Makes rows of a model as the fitted object would.
    """

    release: Release
    engine: Engine
    sampler_of: MakesRows

    def __post_init__(self) -> None:
        kinds = MarginalQuery | GroupedMarginalQuery
        if not any(isinstance(each.query, kinds) for each in self.release.measurements):
            raise ValueError(
                "The noisy tables of this fit were not kept, because its engine protects a "
                "statistic that they would show. So the fit cannot be repeated."
            )

    @property
    def num_rows(self) -> int:
        """The number of rows of the table, as far as it is known; at least 1."""
        return max(round(estimate_total(self.release.domain, self.release.measurements).value), 1)

    def refit(self, number: int, seed: int = 0) -> Refit:
        """The refit with this number. The same seed and number give the same refit."""
        own = np.random.default_rng((seed, number))
        domain, measured = self.release.domain, self.release.measurements
        codes = independent_rows(self.release.model, self.num_rows, own)
        answers = simulated_answers(measured, domain, codes, own)
        engine = self.engine.warm(self.release.model, self.num_rows, int(own.integers(2**31)))
        model = engine.fit(domain, answers, warm_start=self.release.model)
        return Refit(codes=codes, model=model, seed=int(own.integers(2**31)))


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows:
    """Rows as a model: their tables are its marginals. Public, as the rows are."""

    domain: Domain
    codes: np.ndarray

    @property
    def block(self) -> int:
        """The number of rows."""
        return len(self.codes)

    def marginal(self, clique: Clique) -> np.ndarray:
        """The shares of a clique's cells, axes in the clique's order."""
        shape = self.domain.shape(clique)
        cells = np.ravel_multi_index(tuple(self.codes[:, self.domain.axes(clique)].T), shape)
        counts = np.bincount(cells, minlength=self.domain.size(clique))
        return counts.reshape(shape) / len(self.codes)

    def sample(self, num_rows: int, seed: int) -> np.ndarray:
        """The first rows, in their order; from the start again where there are too few."""
        del seed
        return self.codes[np.arange(num_rows) % len(self.codes)]


Evaluate = Callable[[Refit], Any]
"""What is computed of a refit. It may run in another process."""


def numbers_of(num_repetitions: int) -> Sequence[int]:
    """The numbers of so many refits. Raises ``ValueError`` for fewer than 2."""
    return range(check_integer("num_repetitions", num_repetitions, least=2))
