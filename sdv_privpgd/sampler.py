"""Rows of a fitted model as the user's columns, one after another or under conditions. Public."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from sdv_privpgd.schema import Schema
from sdv_privpgd.synthesize.conditioning import choose_rows
from sdv_privpgd.synthesize.engine import Model
from sdv_privpgd.synthesize.stream import RowStream
from sdv_privpgd.transformers import transformer_for


class Sampler:
    """Decodes rows of a model: an endless, repeatable sequence, and rows that meet conditions."""

    def __init__(self, schema: Schema, model: Model, seed: int) -> None:
        self._columns = schema.columns
        self._rows = RowStream(model=model, seed=seed)
        self._transformers = {column.name: transformer_for(column) for column in schema.columns}
        self._with_missing = {
            column.name
            for column in schema.columns
            if column.nullable and model.marginal((column.name,))[-1] > 0
        }

    def restart(self) -> None:
        """Starts the sequence of rows again."""
        self._rows = self._from_start()

    def first(self, num_rows: int) -> dict[str, pd.Series]:
        """The first rows of the sequence, wherever it is."""
        return self._decoded(*self._from_start().take(num_rows))

    def take(self, num_rows: int) -> dict[str, pd.Series]:
        """The next rows of the sequence."""
        return self._decoded(*self._rows.take(num_rows))

    def possible(self, conditions: pd.DataFrame) -> np.ndarray:
        """Which conditions, one a row, lie in the public domain; bool."""
        possible = np.ones(len(conditions), dtype=bool)
        for name, values in self._modelled(conditions).items():
            possible &= self._transformers[name].holds(values)
        return possible

    def meeting(self, conditions: pd.DataFrame) -> dict[str, pd.Series]:
        """The next rows, moved to the values wanted: for each condition a row that fits it best.

        Columns that are not modelled are left to the caller.
        """
        codes, positions = self._rows.take(len(conditions))
        wanted = {
            name: self._transformers[name].encode(values)[0]
            for name, values in self._modelled(conditions).items()
        }
        if wanted:
            codes = self._conditioned(wanted)
        return self._decoded(codes, positions)

    def _modelled(self, conditions: pd.DataFrame) -> dict[str, pd.Series]:
        return {str(name): s for name, s in conditions.items() if name in self._transformers}

    def _from_start(self) -> RowStream:
        return RowStream(model=self._rows.model, seed=self._rows.seed)

    def _decoded(self, codes: np.ndarray, positions: np.ndarray) -> dict[str, pd.Series]:
        """The columns of rows of codes and of positions in their cells."""
        return {
            name: transformer.decode(
                codes[:, axis], positions[:, axis], holds_missing=name in self._with_missing
            )
            for axis, (name, transformer) in enumerate(self._transformers.items())
        }

    def _conditioned(self, wanted: Mapping[str, np.ndarray]) -> np.ndarray:
        """Codes of rows of the model that fit the codes wanted, one row a condition."""
        model = self._rows.model
        columns = {column.name: column for column in self._columns}
        scales = [1 / columns[n].size if columns[n].is_ordered else 0.0 for n in wanted]
        generator = np.random.default_rng((self._rows.seed, self._rows.taken))
        pool = model.sample(model.block, self._rows.seed)
        codes = np.column_stack(list(wanted.values()))
        axes = list(model.domain.axes(wanted))
        return pool[choose_rows(pool[:, axes], codes, np.array(scales), generator)]
