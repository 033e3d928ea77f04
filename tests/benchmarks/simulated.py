"""Simulates tables of any size, with dependent attributes from a latent Gaussian."""

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

from sdv_privpgd.base.domain import Domain, code_type

if TYPE_CHECKING:
    import pandas as pd

_BLOCK = 1 << 16

MIXED_COLUMNS = {
    "key": {"sdtype": "id"},
    "length": {"sdtype": "numerical"},
    "weight": {"sdtype": "numerical"},
    "price": {"sdtype": "numerical"},
    "year": {"sdtype": "numerical"},
    "children": {"sdtype": "numerical"},
    "score": {"sdtype": "numerical"},
    "city": {"sdtype": "categorical"},
    "branch": {"sdtype": "categorical"},
    "grade": {"sdtype": "ordinal"},
    "member": {"sdtype": "boolean"},
    "joined": {"sdtype": "datetime"},
    "seen": {"sdtype": "datetime"},
}
"""SDV's description of ``mixed_table``: a primary key and twelve columns that are modelled."""

MIXED_DOMAIN = {
    "length": {"range_min": 0.0, "range_max": 1.0},
    "weight": {"range_min": 0.0, "range_max": 1_000.0},
    "price": {"range_min": 0, "range_max": 500, "decimal_places": 2},
    "year": {"range_min": 1900, "range_max": 2027, "decimal_places": 0},
    "children": {"range_min": 0, "range_max": 15, "decimal_places": 0},
    "score": {"range_min": 0, "range_max": 100, "decimal_places": 0, "range_is_nullable": False},
    "city": {"range_values": [f"city {number}" for number in range(32)]},
    "branch": {"range_values": list(range(100, 132))},
    "grade": {"range_values": list("ABCDEFGH"), "range_is_nullable": False},
    "member": {"range_is_nullable": True},
    "joined": {"range_min": "2000-01-01", "range_max": "2019-12-31", "datetime_format": "%Y-%m-%d"},
    "seen": {"range_min": "2020-01-01 00:00:00", "range_max": "2025-12-31 23:59:59"},
}
"""The declarations of the modelled columns."""


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


def mixed_table(num_rows: int, *, seed: int = 0) -> "pd.DataFrame":
    """A table of ``MIXED_COLUMNS``: twelve dependent columns of all kinds, and a key.

    One cell in twenty is missing in columns that may have missing values.
    """
    import pandas as pd

    generator = np.random.default_rng((seed, 1))
    _, codes = simulated_table(num_rows, 12, seed=seed)
    places = iter((codes.T + generator.random((12, num_rows))) / 32)

    def column(low: float, high: float, decimals: int) -> pd.Series:
        return pd.Series(low + next(places) * (high - low)).round(decimals)

    def whole(low: int, high: int) -> pd.Series:
        return pd.Series(np.floor(low + next(places) * (high - low + 1)).astype(np.int64))

    def dates(first: str, last: str, unit: str) -> pd.Series:
        ends = np.array([first, last], dtype=f"datetime64[{unit}]").astype(np.int64)
        return pd.Series(whole(*ends).to_numpy().astype(f"datetime64[{unit}]"))

    table = pd.DataFrame(
        {
            "key": [f"person {row}" for row in range(num_rows)],
            "length": column(0, 1, 15),
            "weight": column(0, 1_000, 15),
            "price": column(0, 500, 2),
            "year": whole(1900, 2027),
            "children": whole(0, 15),
            "score": whole(0, 100),
            "city": "city " + whole(0, 31).astype(str),
            "branch": whole(100, 131),
            "grade": np.array(list("ABCDEFGH"), dtype=object)[whole(0, 7)],
            "member": whole(0, 1).astype(bool),
            "joined": dates("2000-01-01", "2019-12-31", "D").dt.strftime("%Y-%m-%d"),
            "seen": dates("2020-01-01", "2025-12-31", "s"),
        }
    )
    for name, facts in MIXED_DOMAIN.items():
        if facts.get("range_is_nullable", True):
            table[name] = table[name].mask(generator.random(num_rows) < 0.05)
    return table
