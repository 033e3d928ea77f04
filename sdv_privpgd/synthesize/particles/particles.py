"""A fitted point cloud, the model that the particle engine returns."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from sdv_privpgd.base.domain import Clique, Domain, code_type, table_of
from sdv_privpgd.estimate.prior import PriorUse
from sdv_privpgd.synthesize.engine import dealt

_LEAST, _FEW, _MOST = 5_000, 20_000, 100_000

_WORK = 11_000_000
"""Particles times tables of a default fit: seconds on two cores for up to 200 tables."""


def default_number(total: float, num_tables: int) -> int:
    """The default number of particles for about ``total`` rows and so many tables. Public.

    The number of rows is about a multiple of it. So a sample of as many rows as were fitted uses
    each particle equally often and has no error of drawing. The more tables there are, the fewer
    particles it gives, down to 20,000.
    """
    most = min(max(_WORK // max(num_tables, 1), _FEW), _MOST)
    decks = max(math.ceil(total / most), 1)
    return max(math.ceil(total / decks), _LEAST)


@dataclass(frozen=True, kw_only=True, eq=False)
class Particles:
    """Equally likely points of a domain, as codes of shape (particle, attribute). Public.

    ``codes`` is kept read-only in the smallest unsigned type that fits. ``losses`` maps numbers of
    epochs to the mean squared sliced W2 distance from the noisy targets after them. ``prior`` says
    what became of public rows, where some were given.
    """

    domain: Domain
    codes: np.ndarray
    losses: Mapping[int, float] = field(default_factory=dict)
    prior: PriorUse | None = None

    def __post_init__(self) -> None:
        assert len(self.codes)
        assert ((self.codes >= 0) & (self.codes < self.domain.sizes)).all()
        codes = self.codes.astype(code_type(self.domain))
        codes.setflags(write=False)
        object.__setattr__(self, "codes", codes)

    @property
    def block(self) -> int:
        """The number of particles; a sample of so many rows uses each of them once."""
        return len(self.codes)

    def marginal(self, clique: Clique) -> np.ndarray:
        """The probabilities of a clique's cells, axes in the clique's order."""
        columns = self.codes[:, self.domain.axes(clique)].T.astype(np.int64)
        return table_of(columns, self.domain.shape(clique)) / len(self.codes)

    def sample(self, num_rows: int, seed: int) -> np.ndarray:
        """Codes of shape (row, attribute), int64. The same seed gives the same rows.

        Particles are dealt like decks of cards (``dealt``).
        """
        order = dealt(self.block, num_rows, np.random.default_rng(seed))
        return self.codes[order].astype(np.int64)
