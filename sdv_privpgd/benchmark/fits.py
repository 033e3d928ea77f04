"""Helpers of the benchmarks: a fit by the core alone, and the folder of the real tables."""

from pathlib import Path
from typing import TYPE_CHECKING

from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.methods.method import Method
from sdv_privpgd.pipeline import Release, run
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.ledger import Books, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency

FOLDER = Path(__file__).parents[3] / "shared" / "data"
"""The default folder of the real tables, beside a checkout."""

if TYPE_CHECKING:
    import pandas as pd


def columns_of(frame: "pd.DataFrame") -> dict[str, "pd.Series"]:
    """The columns of a table under their names."""
    return {str(name): column for name, column in frame.items()}


def fit_dataset(
    dataset: Dataset,
    epsilon: float,
    method: Method,
    *,
    progress: Progress = silent,
) -> Release:
    """Returns a release at delta 1e-5, without SDV around it."""
    ledger = PrivacyLedger.open(epsilon, 1e-5, Adjacency.REPLACE_ONE)
    return run(Curator(dataset, Books(ledger)), method, progress=progress)
