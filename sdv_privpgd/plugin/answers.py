"""A fitted synthesizer answers questions about the table, and says how sure it is."""

from collections.abc import Iterator
from contextlib import contextmanager

import pandas as pd

from sdv_privpgd.base.progress import Progress, shown
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.inference.analyses import Concluding
from sdv_privpgd.inference.questions import Unseen
from sdv_privpgd.inference.refits import STAGE, Refits
from sdv_privpgd.methods.pipeline import Release
from sdv_privpgd.plugin.state import FittedState


class AnsweredQuestions(FittedState, Concluding):
    """What ``Concluding`` says of the last fit. Public."""

    def _released(self) -> tuple[Release | None, Schema]:
        return self.fitted_table._released()

    def _unseen(self) -> dict[str, Unseen]:
        return self.fitted_table._unseen()

    def _refits(self) -> Refits:
        return self.fitted_table._refits()

    def _first(self, num_rows: int) -> pd.DataFrame:
        return self.fitted_table._first(num_rows)

    @contextmanager
    def _shown_repeating(self, progress: Progress | None) -> Iterator[Progress]:
        if progress is not None:
            yield progress
            return
        with shown(STAGE, self.verbose) as bar:
            yield bar
