"""A model in which other codes take the place of codes that only noise produced. Public."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sdv_privpgd.base.domain import Clique, Domain
from sdv_privpgd.synthesize.engine import Model


@dataclass(frozen=True, kw_only=True)
class Filled:
    """A model in which one code of some attributes is drawn anew wherever it occurs.

    The other codes are drawn as often as they occur, whatever the row's other codes are. Use this
    for a code that only noise has produced.

    Attributes:
        model: The model as it was fitted.
        empty: For some attributes, the code that no row shall have.
    """

    model: Model
    empty: Mapping[str, int]

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
        table = np.array(self.model.marginal(clique), dtype=np.float64)
        for axis, name in enumerate(clique):
            if name in self.empty:
                cells = np.moveaxis(table, axis, -1)  # a view: writing to it changes the table
                moved = cells[..., self.empty[name]].copy()
                cells[..., self.empty[name]] = 0.0
                cells += moved[..., None] * self._others(name)
        return table

    def sample(self, num_rows: int, seed: int) -> np.ndarray:
        """Codes of shape (row, attribute). The same seed gives the same rows."""
        codes = self.model.sample(num_rows, seed).copy()
        for name, axis in zip(self.empty, self.domain.axes(self.empty), strict=True):
            rows = np.flatnonzero(codes[:, axis] == self.empty[name])
            others = self._others(name)
            generator = np.random.default_rng((seed, axis))
            codes[rows, axis] = generator.choice(len(others), len(rows), p=others)
        return codes

    def _others(self, name: str) -> np.ndarray:
        """The probability of each other code of an attribute; equal ones if the model has none."""
        chances = np.array(self.model.marginal((name,)), dtype=np.float64)
        chances[self.empty[name]] = 0.0
        if not chances.any():
            chances = (np.arange(len(chances)) != self.empty[name]).astype(np.float64)
        return chances / chances.sum()
