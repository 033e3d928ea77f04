"""Rows of a fitted model: what every fitted table can do, wherever its answers are from."""

from dataclasses import dataclass

import pandas as pd

from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.drafting.files import plain_domain, shortly
from sdv_privpgd.fitting.fit import Fitted
from sdv_privpgd.fitting.settings import check_count
from sdv_privpgd.inference.concluding import Concluding
from sdv_privpgd.pipeline import Release


@dataclass(frozen=True, kw_only=True, repr=False)
class SampledTable(Concluding):
    """A model of a table, of which rows can be drawn. Public.

    Attributes:
        fitted: The model, and what is known of the columns.
    """

    fitted: Fitted

    def __repr__(self) -> str:
        """A line for notebooks, not the whole of a model."""
        return f"{type(self).__name__}({len(self.fitted.schema.columns)} columns)"

    @property
    def num_rows(self) -> int | None:
        """The number of rows, as far as it is known: noisy where it is private."""
        return self.fitted.num_rows

    @property
    def domain(self) -> dict[str, dict]:
        """What was declared and what was found of each column, as ``fit_table`` takes it."""
        return shortly(plain_domain(self.fitted.description.in_words, keeps=True))

    def sample(self, num_rows: int | None = None) -> pd.DataFrame:
        """The next synthetic rows: any number of them, at no cost.

        ``None`` gives as many as were fitted, as far as that is known, which is ``self.num_rows``.

        Raises:
            ValueError: For ``None``, if nothing was measured that says how many there are.
        """
        if num_rows is None:
            if self.num_rows is None:
                raise ValueError("Nothing was measured: say how many rows, with num_rows.")
            num_rows = max(self.num_rows, 0)
        num_rows = check_count("num_rows", num_rows, least=0)
        sampler = self.fitted.sampler
        columns = {} if sampler is None else sampler.take(num_rows)
        return pd.DataFrame(columns, index=None if columns else range(num_rows))

    def reset_sampling(self) -> None:
        """Starts the sequence of rows again."""
        if self.fitted.sampler is not None:
            self.fitted.sampler.restart()

    def _released(self) -> tuple[Release | None, Schema]:
        return self.fitted.release, self.fitted.schema

    def _unseen(self) -> dict[str, float]:
        return self.fitted.unseen
