"""A mixture of product distributions, the model of relaxed tables and of generative networks."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from sdv_privpgd.base.domain import Clique, Domain
from sdv_privpgd.synthesize.graphical import allotted


@dataclass(frozen=True, kw_only=True, eq=False)
class Mixture:
    """Equally likely components, in each of which the attributes are independent. Public.

    Attributes:
        domain: The attributes of its rows and their numbers of codes.
        shares: For each component the probabilities of all codes of the first attribute, then of
            the second, and so on: (component, code), float32. It is kept read-only.
        weights: The parameters of a network that made it. A later fit starts from them.
    """

    domain: Domain
    shares: np.ndarray
    weights: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.shares.ndim != 2 or self.shares.shape[1] != sum(self.domain.sizes):
            raise ValueError(
                f"shares needs shape (component, {sum(self.domain.sizes)}), got "
                f"{self.shares.shape}."
            )
        self.shares.setflags(write=False)

    @property
    def block(self) -> int:
        """The number of components; a sample of so many rows uses each of them once."""
        return len(self.shares)

    def marginal(self, clique: Clique) -> np.ndarray:
        """The probabilities of a clique's cells, axes in the clique's order."""
        shape = self.domain.shape(clique)
        *others, last = (self._of(axis) for axis in self.domain.axes(clique))
        cells = np.ones((len(self.shares), 1))
        for own in others:
            cells = (cells[:, :, None] * own[:, None, :]).reshape(len(cells), -1)
        return (cells.T @ last).reshape(shape) / len(self.shares)

    def sample(self, num_rows: int, seed: int) -> np.ndarray:
        """Codes of shape (row, attribute), int64. The same seed gives the same rows.

        Components are dealt like decks of cards. Among the rows of one component each code gets
        its share of them, rounded up or down, so the rows' tables are nearer to the model's than
        those of independent draws.
        """
        if num_rows < 0:
            raise ValueError(f"num_rows must be at least 0, got {num_rows!r}.")
        rng = np.random.default_rng(seed)
        decks = [rng.permutation(self.block) for _ in range(-(-num_rows // self.block))]
        given = np.concatenate([np.empty(0, dtype=np.int64), *decks])[:num_rows]
        codes = np.zeros((num_rows, len(self.domain)), dtype=np.int64)
        for axis in range(len(self.domain)):
            codes[:, axis] = allotted(self._of(axis), given, rng)
        return codes

    def _of(self, axis: int) -> np.ndarray:
        """An attribute's probabilities in each component, float64, which sum to 1."""
        first = sum(self.domain.sizes[:axis])
        own = self.shares[:, first : first + self.domain.sizes[axis]].astype(np.float64)
        return own / own.sum(axis=1, keepdims=True)
