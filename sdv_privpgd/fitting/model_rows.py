"""Rows of a fitted model: what every fitted table can do, wherever its answers are from."""

import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pandas as pd

from sdv_privpgd.base.arguments import check_integer, shown
from sdv_privpgd.base.files import DamagedFileError
from sdv_privpgd.columns.recoding import Recoding, recoded
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.drafting.files import plain_domain, shortly
from sdv_privpgd.fitting.fit import Fitted
from sdv_privpgd.fitting.model_file import read_model, write_model
from sdv_privpgd.inference.analyses import Concluding
from sdv_privpgd.inference.crowds import Crowded, crowded
from sdv_privpgd.report.about import card_facts, card_path, release_id, write_card
from sdv_privpgd.sampling.conditions import (
    as_conditions,
    check_conditions,
    check_rows,
    require_some,
)
from sdv_privpgd.sampling.sampler import MOVING

if TYPE_CHECKING:
    from sdv_privpgd.report.evaluation import Evaluation

Own = TypeVar("Own", bound="SavedModel")


class SavedModel:
    """What is kept of a fit, in a file that is as public as the rows."""

    def save(self, path: str | Path) -> None:
        """Writes all of it to a file, which ``load`` reads. The file is as public as the rows.

        It is an archive of JSON and arrays, with a digest of all of it, and holds no code:
        ``fitting/model_file.py`` says what is in it. What it cannot hold, such as a constraint
        that is a function of yours, is refused before anything is written.

        Raises:
            NotKeptError: For a model with a function or a class that is not of this package.
        """
        write_model(Path(path), self)

    @classmethod
    def load(cls: type[Own], path: str | Path) -> Own:
        """Returns what ``save`` wrote. Nothing in the file is run.

        Raises:
            DamagedFileError: For a file that is another, or that has changed.
        """
        path = Path(path)
        found = read_model(path, cls.__name__)
        if not isinstance(found, cls):
            raise DamagedFileError(
                f"{path} is no {cls.__name__} that can be read: it holds a {type(found).__name__}."
            )
        return found


@dataclass(frozen=True, kw_only=True, repr=False)
class SampledTable(Concluding, SavedModel):
    """A model of a table, of which rows can be drawn. Public.

    Attributes:
        fitted: The model, and what is known of the columns.
        date: When it was fitted.
    """

    fitted: Fitted
    date: str

    def __repr__(self) -> str:
        """A line for notebooks, not the whole of a model."""
        return f"{type(self).__name__}({len(self.fitted.schema.columns)} columns)"

    @property
    def num_rows(self) -> int | None:
        """The number of rows, as far as it is known: noisy where it is private."""
        return self.fitted.num_rows

    def discovered_domain(self) -> dict[str, dict]:
        """Returns what was declared and what was found of each column, as ``fit_table`` takes it.

        Given to another fit, nothing has to be found again. ``write_domain`` keeps it in a file.
        Keys are not in it: nothing is found of them.
        """
        own = self.fitted.description
        found = {n: {"sdtype": own.facts[n].sdtype, **each} for n, each in own.in_words.items()}
        return shortly(plain_domain(found, keeps=True))

    def sample(
        self, num_rows: int | None = None, *, where: Mapping[str, Any] | None = None
    ) -> pd.DataFrame:
        """Returns the next synthetic rows: any number of them, at no cost.

        Args:
            num_rows: How many; ``None`` gives as many as were fitted, as far as that is known,
                which is ``self.num_rows``.
            where: What all rows have: by column a value, ``None`` for a missing one, or a
                ``Between``. The other columns follow the model.

        Raises:
            ValueError: For ``None``, if nothing was measured that says how many rows there are; for
                columns that are not modelled, and for values that no row can have.
        """
        if num_rows is None:
            if self.num_rows is None:
                raise ValueError("Nothing was measured: say how many rows, with num_rows.")
            num_rows = max(self.num_rows, 0)
        num_rows = check_integer("num_rows", num_rows, least=0)
        if where := as_conditions(where):
            rows = pd.DataFrame(index=range(num_rows))
            for name, value in where.items():
                if isinstance(value, list | set | np.ndarray):
                    raise ValueError(
                        f"where asks one value of {name!r}, or a Between, got {shown(value)}: take "
                        "the rows of each value by themselves."
                    )
                rows[name] = pd.Series([value] * num_rows, dtype=object)
            return self.complete(rows)
        sampler = self.fitted.sampler
        with MOVING:  # a key stays with its row
            keys = self.fitted.keys.take(num_rows)
            columns = {**keys, **({} if sampler is None else sampler.take(num_rows))}
        return self._framed(columns, num_rows)

    def about_rows(self, path: str | Path | None = None) -> dict[str, Any]:
        """Returns what rows of this model say of themselves: the release, and what it promises.

        Args:
            path: A file of such rows: the facts are written beside it, as ``PATH.about.json``, with
                its SHA-256, so that ``sdv-privpgd identify`` can say where it is from.
        """
        release = self.fitted.release
        answers = () if release is None else release.measurements
        own = release_id(answers, lambda: self._first(100).to_csv(index=False))
        facts = card_facts(own, self.date, self._promise())
        if path is not None:
            write_card(card_path(Path(path)), Path(path), facts)
        return facts

    @abstractmethod
    def _promise(self) -> dict[str, Any]:
        """Returns what is promised to whom, in a few facts."""

    def complete(self, known_columns: pd.DataFrame) -> pd.DataFrame:
        """Returns the given rows with synthetic values in the other columns.

        They are exactly as private as the given rows. A row with a value that no row can have is
        left out, with a warning that says why. Where ``sample`` goes on, in a saved model as well,
        tells how many were completed: use a copy of the model if that is private.

        Args:
            known_columns: The rows. A cell may be a ``Between``. They keep their index.

        Raises:
            ValueError: For columns that are not modelled, and if no row can be completed.
        """
        check_rows(known_columns)
        schema, sampler = self.fitted.schema, self.fitted.sampler
        names = [*(column.name for column in schema.columns), *self.fitted.keys.patterns]
        unknown = [name for name in known_columns if name not in names]
        if unknown or sampler is None:
            raise ValueError(
                f"{unknown!r} are no modelled columns and no keys: choose from {names!r}."
            )
        check_conditions(known_columns, schema)
        with MOVING:
            columns, met = sampler.meeting(known_columns)
            unsatisfiable = require_some(known_columns, met, schema)
            keys = self.fitted.keys.take(int(met.sum()))
        if unsatisfiable is not None:
            warnings.warn(unsatisfiable, stacklevel=2)
        given = known_columns.loc[met, [name for name in known_columns if name in keys]]
        own = {name: pd.Series(given[name]).reset_index(drop=True) for name in given}
        rows = self._framed({**keys, **own, **columns}, int(met.sum()))
        return rows.set_axis(known_columns.index[met], axis=0)

    def crowded(self, rows: pd.DataFrame, on: Sequence[str], *, min_rows_like: int = 2) -> Crowded:
        """Rows of which none stands alone, and what that costs. Public: rows of this model alone.

        No budget needs it, for noise protects people whatever the rows look like. It is for those
        who ask that no face in the release be unique. Rows whose combination of some columns is
        rarer take that of a similar row; all other rows and columns stay as they are.

        Args:
            rows: Synthetic rows, as ``sample`` gives them.
            on: The columns by which somebody might be taken for a row's person.
            min_rows_like: The fewest rows that have a combination; 2 for no unique row.

        Returns:
            A ``Crowded``: its ``rows``, how many were ``changed``, what has ``moved`` in each
            column and pair, and as text a sentence.

        Raises:
            ValueError: For unknown columns, fewer rows than are to be alike, and columns that a
                constraint or the order of rows ties to others: ``on`` must name these as well.
        """
        description, named = self.fitted.description, {on} if isinstance(on, str) else {*on}
        tied = [{*each.columns} for each in description.constraints.declared]
        broken = [each for each in tied if not each or (each & named and not each <= named)]
        if description.visits is not None and description.visits.by in named:
            broken.append({description.visits.by})
        if broken:
            raise ValueError(
                f"Other values in {sorted(named)!r} may break a constraint or the order of rows, "
                f"of {sorted(broken[0]) or 'a function'!r}. Name all columns of a constraint or "
                "none of them; with a function, or in the column that orders rows, nothing can be "
                "changed."
            )
        columns = {column.name: column for column in self.fitted.schema.columns}
        return crowded(rows, self.fitted.schema.domain(), columns, on, min_rows_like)

    def evaluate(
        self,
        real_data: pd.DataFrame,
        *,
        label: str | None = None,
        held_out: pd.DataFrame | None = None,
        path: str | Path | None = None,
    ) -> "Evaluation":
        """Compares as many synthetic rows with the real table. Not private.

        No budget covers the page, what is returned, or settings that are chosen by them. The rows
        are the first of the sequence; where ``sample`` goes on does not change.

        Args:
            real_data: The real table.
            label: A column that models learn to predict, from synthetic and from real rows.
            held_out: Real rows that were not fitted, to judge what models have learned. Without
                them a random fifth of the real table is set aside; the fit has seen it.
            path: Where to write the page as well. Nothing is written without one.

        Raises:
            ValueError: If a modelled column is missing in the real table.
        """
        # Imported late: only this comparison needs scikit-learn and SDMetrics.
        from sdv_privpgd.report.evaluation import compare

        description, sampler = self.fitted.description, self.fitted.sampler
        own = tuple(e for e in self.fitted.schema.columns if e.name not in description.added)
        schema, rules = replace(self.fitted.schema, columns=own), Recoding.of(description.facts)
        first = {} if sampler is None else sampler.first(len(real_data))
        return compare(
            schema,
            recoded(_columns_of(real_data, schema), rules),
            {column.name: first[column.name] for column in own if first},
            label=label,
            held_out=None if held_out is None else recoded(_columns_of(held_out, schema), rules),
            path=path,
        )

    def reset_sampling(self) -> None:
        """Starts the sequence of rows again."""
        self.fitted.keys.restart()
        if self.fitted.sampler is not None:
            self.fitted.sampler.restart()

    def _framed(self, columns: Mapping[str, pd.Series], num_rows: int) -> pd.DataFrame:
        """Returns rows with their columns in the order in which they were declared."""
        places = {name: place for place, name in enumerate(self.fitted.description.columns)}
        names = sorted(columns, key=lambda name: places.get(name, -1))
        return pd.DataFrame({name: columns[name] for name in names}, index=range(num_rows))

    @property
    def _own_fit(self) -> Fitted:
        return self.fitted


def _columns_of(table: pd.DataFrame, schema: Schema) -> dict[str, pd.Series]:
    """The modelled columns of a real table."""
    missing = [each.name for each in schema.columns if each.name not in table]
    if missing:
        raise ValueError(f"The real table has no columns {missing!r}, which are modelled.")
    return {each.name: pd.Series(table[each.name]) for each in schema.columns}
