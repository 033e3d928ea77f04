"""Rows of a fitted model as the user's columns, one after another or under conditions. Public."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from sdv_privpgd.base.domain import Clique, Domain
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.differences import Difference
from sdv_privpgd.columns.dtypes import holds_missing
from sdv_privpgd.columns.encoders import ColumnEncoder, encoder_for
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.constraints.repair import Predicate, Repair
from sdv_privpgd.constraints.rules import Rule
from sdv_privpgd.sampling.conditioning import ConditionalRows
from sdv_privpgd.sampling.conditions import Wanted, put
from sdv_privpgd.sampling.stream import MOVING, RowStream
from sdv_privpgd.synthesize.engine import Model


class Sampler:
    """Decodes rows of a model: an endless, repeatable sequence, and rows that meet conditions.

    A column has missing values if some surely occurred: missing values that only noise may have
    produced are left out, so that all fits to a table give its columns the same dtypes.

    Args:
        schema: The columns.
        model: The model of their codes.
        seed: The seed of the rows. The same seed gives the same rows.
        held: The codes of each column that surely hold rows.
        rules: The rules that rows obey, by their cells.
        predicates: The rules that rows obey, by their values.
        differences: Says which columns are computed from another column and a difference.
    """

    def __init__(
        self,
        schema: Schema,
        model: Model,
        seed: int,
        *,
        held: Mapping[str, np.ndarray],
        rules: Sequence[Rule] = (),
        predicates: Sequence[Predicate] = (),
        differences: Sequence[Difference] = (),
    ) -> None:
        self.attributes = schema.attributes
        nullable = [column for column in schema.columns if column.nullable]
        without = [column for column in nullable if not _misses(column, held)]
        self.decoded = Decoder(
            {column.name: encoder_for(column) for column in schema.columns},
            {column.name for column in nullable if column not in without},
        )
        self._repair = (
            Repair(schema.attributes, rules, predicates, self.decoded, differences)
            if rules or predicates
            else None
        )
        if without:
            model = Filled(
                model=model, empty={column.name: column.num_values for column in without}
            )
        self._rows = RowStream(model=model, seed=seed, repair=self._repair)
        self._donors: tuple[np.ndarray, np.ndarray] | None = None

    def restart(self) -> None:
        """Starts the sequence of rows again."""
        self._rows = self._from_start()

    def first(self, num_rows: int) -> dict[str, pd.Series]:
        """The first rows of the sequence, wherever the sequence stands."""
        return self.decoded(*self._from_start().take(num_rows))

    def take(self, num_rows: int) -> dict[str, pd.Series]:
        """The next rows of the sequence."""
        return self.decoded(*self._rows.take(num_rows))

    @property
    def seed(self) -> int:
        """The seed of the rows."""
        return self._rows.seed

    def encoded(self, columns: Mapping[str, pd.Series]) -> np.ndarray:
        """The codes of columns of synthetic rows, of shape (row, column)."""
        return np.column_stack(
            [self.decoded.encoders[name].encode(own)[0] for name, own in columns.items()]
        )

    def block(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        """A block of the sequence: codes of shape (row, attribute), and places in their cells."""
        return self._rows.block(index)

    def repaired(
        self,
        codes: np.ndarray,
        positions: np.ndarray,
        generator: np.random.Generator,
        held: Sequence[str],
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows that obey the rules with their values in the held columns, and which ones do."""
        if self._repair is None:
            return codes, positions, np.ones(len(codes), dtype=bool)
        if self._donors is None:
            self._donors = self._from_start().block(0)
        return self._repair(codes, positions, generator, held=held, donors=self._donors)

    def meeting(self, conditions: pd.DataFrame) -> tuple[dict[str, pd.Series], np.ndarray]:
        """A row for each condition that lies in the public domain, and which conditions do; bool.

        Cells of conditions are values, ``Between`` or ``ANYTHING``. Conditions on columns that are
        not modelled are left to the caller. Conditions that no row meets together with the
        constraints are left out as well.
        """
        wanted = self._wanted(conditions)
        possible = np.all([np.ones(len(conditions), bool), *(w.possible for w in wanted)], axis=0)
        if not possible.all():
            wanted = self._wanted(conditions.loc[possible])
        with MOVING:
            codes, positions = self._rows.take(int(np.count_nonzero(possible)))
            place = (self._rows.seed, self._rows.taken)
        codes = self._drawn(codes, wanted, np.random.default_rng(place))
        decoded = self.decoded(codes, positions)
        axes = self._rows.model.domain.axes(each.name for each in wanted)
        for axis, each in zip(axes, wanted, strict=True):
            decoded[each.name] = each.write(
                decoded[each.name],
                codes[:, axis],
                positions[:, axis],
                holds_missing=each.name in self.decoded.with_missing,
            )
        if self._repair is not None:
            generator = np.random.default_rng((*place, 1))
            decoded, obeys = self._obeying(
                decoded, codes, positions, wanted, self._repair, generator
            )
            possible[possible] = obeys
        return decoded, possible

    def _obeying(
        self,
        decoded: Mapping[str, pd.Series],
        codes: np.ndarray,
        positions: np.ndarray,
        wanted: Sequence[Wanted],
        repair: Repair,
        generator: np.random.Generator,
    ) -> tuple[dict[str, pd.Series], np.ndarray]:
        """The rows that obey, repaired in columns without a condition, and which ones do."""
        names = list(self.decoded.encoders)
        held = np.zeros((len(codes), len(names)), dtype=bool)
        for each in wanted:
            rows, axis = np.flatnonzero(each.wishes), names.index(each.name)
            held[rows, axis] = True
            values = decoded[each.name].iloc[rows]
            codes[rows, axis], positions[rows, axis] = self.decoded.encoders[each.name].encode(
                values
            )
        if self._donors is None:
            self._donors = self._from_start().block(0)
        obeys = np.ones(len(codes), dtype=bool)
        patterns, which = np.unique(held, axis=0, return_inverse=True)
        for index, pattern in enumerate(patterns):
            rows = np.flatnonzero(which.reshape(-1) == index)
            codes[rows], positions[rows], obeys[rows] = repair(
                codes[rows],
                positions[rows],
                generator,
                held=[name for name, is_held in zip(names, pattern, strict=True) if is_held],
                donors=self._donors,
            )
        found = self.decoded(codes, positions)
        for each in wanted:
            rows = np.flatnonzero(each.wishes)
            found[each.name] = put(found[each.name], rows, decoded[each.name].iloc[rows])
        return {
            name: series.loc[obeys].reset_index(drop=True) for name, series in found.items()
        }, obeys

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_donors": None}

    def _wanted(self, conditions: pd.DataFrame) -> list[Wanted]:
        return [
            Wanted(self.decoded.encoders[str(name)], values)
            for name, values in conditions.items()
            if name in self.decoded.encoders
        ]

    def _drawn(
        self, codes: np.ndarray, wanted: Sequence[Wanted], generator: np.random.Generator
    ) -> np.ndarray:
        """Codes of rows that fit the conditions; the given ones for rows without a condition.

        Rows for equal conditions are drawn together.
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
            {each.name: each.num_values if each.is_ordered else 0 for each in self.attributes},
        )
        drawn = codes.copy()
        for group in groups:
            wishes = {each.name: int(each.wishes[group[0]]) for each in wanted}
            fits = {each.name: each.fit(wishes[each.name]) for each in wanted if wishes[each.name]}
            if fits:
                drawn[group] = rows.draw(fits, len(group), generator)
        return drawn

    def _from_start(self) -> RowStream:
        return RowStream(model=self._rows.model, seed=self._rows.seed, repair=self._repair)


@dataclass(frozen=True)
class Decoder:
    """Turns codes and positions in their cells into the user's columns.

    Attributes:
        encoders: Those of the columns, in the order of the codes.
        with_missing: The columns that can have missing values.
    """

    encoders: Mapping[str, ColumnEncoder]
    with_missing: Collection[str]

    def __call__(self, codes: np.ndarray, positions: np.ndarray) -> dict[str, pd.Series]:
        """The columns of codes and positions of shape (row, attribute)."""
        return {
            name: encoder.decode(
                codes[:, axis], positions[:, axis], holds_missing=name in self.with_missing
            )
            for axis, (name, encoder) in enumerate(self.encoders.items())
        }


def _misses(column: Column, held: Mapping[str, np.ndarray]) -> bool:
    """Whether values of a nullable column are surely missing, and its dtype allows it."""
    can_say = column.dtype is None or holds_missing(column.dtype)
    return can_say and bool(held[column.name][column.num_values])


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


def read_rows(column: Column, cells: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """The values of a column of synthetic rows, as its cells hold them, and which are missing."""
    return encoder_for(column).read(cells)


def encoded_rows(column: Column, cells: pd.Series) -> np.ndarray:
    """The codes of a column of synthetic rows."""
    return encoder_for(column).encode(cells)[0]
