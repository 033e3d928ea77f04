"""Simulates tables of any size, with dependent attributes from a latent Gaussian."""

import numpy as np
from scipy.special import ndtr

from sdv_privpgd.base.domain import Domain, code_type

_BLOCK = 1 << 16


def simulated_table(
    num_rows: int, num_columns: int, *, num_cells: int = 32, seed: int = 0
) -> tuple[Domain, np.ndarray]:
    """A domain, and codes of shape (row, attribute) as ``encode_table`` gives them.

    Three standard normal factors with seeded loadings explain four fifths of each attribute's
    latent variance; the quantiles, raised to a power from 0.5 to 3 for skew, are cut into cells.
    The first rows of a longer table are those of a shorter one up to whole blocks.
    """
    generator = np.random.default_rng(seed)
    loadings = generator.standard_normal((3, num_columns))
    loadings *= np.sqrt(0.8) / np.linalg.norm(loadings, axis=0)
    powers = generator.uniform(0.5, 3.0, num_columns)
    names = tuple(f"column_{axis}" for axis in range(num_columns))
    domain = Domain(names, (num_cells,) * num_columns)
    codes = np.empty((num_columns, num_rows), dtype=code_type(domain))
    for start in range(0, num_rows, _BLOCK):
        rows = codes[:, start : start + _BLOCK].T
        latent = generator.standard_normal((len(rows), 3)) @ loadings
        latent += np.sqrt(0.2) * generator.standard_normal(rows.shape)
        cells = np.floor(num_cells * ndtr(latent) ** powers)
        rows[:] = np.minimum(cells, num_cells - 1)  # ndtr rounds up to 1 far out
    codes.setflags(write=False)
    return domain, codes.T
