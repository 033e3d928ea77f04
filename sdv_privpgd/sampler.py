"""Rows of a fitted model as the user's columns, one after another or under conditions. Public."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from sdv_privpgd.schema import Schema
from sdv_privpgd.synthesize.conditioning import ConditionalRows
from sdv_privpgd.synthesize.engine import Model
from sdv_privpgd.synthesize.stream import RowStream
from sdv_privpgd.transformers import transformer_for
from sdv_privpgd.wanted import Wanted


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

    def meeting(self, conditions: pd.DataFrame) -> tuple[dict[str, pd.Series], np.ndarray]:
        """A row for each condition that lies in the public domain, and which ones do; bool.

        Cells of conditions are values, ``Between`` or ``ANYTHING``. Conditions on columns that
        are not modelled are left to the caller.
        """
        wanted = self._wanted(conditions)
        possible = np.all([np.ones(len(conditions), bool), *(w.possible for w in wanted)], axis=0)
        if not possible.all():
            wanted = self._wanted(conditions.loc[possible])
        codes, positions = self._rows.take(int(np.count_nonzero(possible)))
        codes = self._drawn(codes, wanted)
        decoded = self._decoded(codes, positions)
        axes = self._rows.model.domain.axes(each.name for each in wanted)
        for axis, each in zip(axes, wanted, strict=True):
            decoded[each.name] = each.write(
                decoded[each.name],
                codes[:, axis],
                positions[:, axis],
                holds_missing=each.name in self._with_missing,
            )
        return decoded, possible

    def _wanted(self, conditions: pd.DataFrame) -> list[Wanted]:
        return [
            Wanted(self._transformers[str(name)], values)
            for name, values in conditions.items()
            if name in self._transformers
        ]

    def _drawn(self, codes: np.ndarray, wanted: Sequence[Wanted]) -> np.ndarray:
        """Codes of rows that fit what is wanted; the given ones where nothing is.

        Conditions that want the same are drawn for together.
        """
        if not wanted or not len(codes):
            return codes
        same = np.zeros(len(codes), dtype=np.int64)
        for each in wanted:
            _, wishes = np.unique(each.wishes, return_inverse=True)
            _, same = np.unique(same * len(codes) + wishes, return_inverse=True)
        order = np.argsort(same, kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(same[order])) + 1)
        rows = ConditionalRows(
            self._rows.model,
            self._rows.seed,
            {each.name: each.num_values if each.is_ordered else 0 for each in self._columns},
        )
        generator = np.random.default_rng((self._rows.seed, self._rows.taken))
        drawn = codes.copy()
        for group in groups:
            wishes = {each.name: int(each.wishes[group[0]]) for each in wanted}
            fits = {each.name: each.fit(wishes[each.name]) for each in wanted if wishes[each.name]}
            if fits:
                drawn[group] = rows.draw(fits, len(group), generator)
        return drawn

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
