"""Rows of a model in SDV's words: sampled, under conditions, completed. Free.

SDV's own methods draw rows until enough of them fit, with bars and advice on that. Here every row
fits at once, so only their words are SDV's.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
from sdv.single_table.utils import validate_folder_path_with_table_names
from tqdm.auto import tqdm

from sdv_privpgd.base.arguments import check_integer
from sdv_privpgd.columns.dtypes import is_whole
from sdv_privpgd.fitting.resume import note_on
from sdv_privpgd.plugin import generators
from sdv_privpgd.plugin.arguments import column_names, log_event
from sdv_privpgd.plugin.fits import FitsOfTables
from sdv_privpgd.sampling.conditions import (
    ANYTHING,
    check_conditions,
    check_rows,
    is_condition,
    require_some,
)
from sdv_privpgd.sampling.sampler import MOVING

# SDV's methods have no types; ours give back the kind of table that was fitted.
# pyright: reportIncompatibleMethodOverride=false


class SampledRows(FitsOfTables):
    """SDV's methods that make rows. The modelled columns come from the model at once."""

    def reset_sampling(self) -> None:
        """Starts the sequence of sampled rows again."""
        with MOVING:
            generators.restart(self._data_processor)
            if self._sampler is not None:
                self._sampler.restart()

    def sample(
        self,
        num_rows,
        main_table_name=None,
        max_tries_per_batch=100,
        batch_size=None,
        output_folder_path=None,
    ):
        """Synthetic rows: a DataFrame if a DataFrame was fitted, else ``{'table': DataFrame}``.

        Any number of rows, at no cost. Rows follow the model more closely than independent draws
        would.

        Args:
            num_rows: How many rows.
            main_table_name: The name of the table, if it is given.
            max_tries_per_batch: Only SDV's own 100: each row is valid at once.
            batch_size: How many rows are made, and written, at a time; ``None`` for all of them.
                The rows are the same.
            output_folder_path: A folder in which a CSV file of the rows is written as well.

        Raises:
            SamplingError: Before a fit.
            ValueError: For arguments that cannot be meant.
        """
        if main_table_name is not None:
            self._validate_table_name(main_table_name)
        self._validate_fit_before_sample()
        self._check_input_metadata_updated()
        num_rows = check_integer("num_rows, the number of rows to sample,", num_rows, least=0)
        _refuse_retries(max_tries_per_batch)
        sizes = _batches(num_rows, batch_size)
        parts = []
        with self._written(num_rows, "Sampling rows", output_folder_path) as written:
            for size in sizes:
                parts.append(self._table(size, self._sampled(size)))
                written(parts[-1])
        return self._as_fitted(_joined(parts))

    def sample_from_conditions(
        self, conditions, max_tries_per_batch=100, batch_size=None, output_folder_path=None
    ):
        """Synthetic rows with the given values, as ``sample`` gives them.

        A value may be a ``Between``. The other columns follow the model, under conditions that no
        row of it meets, too. A value outside the declared domain cannot be met: its rows are left
        out with a warning that says why, and ``ValueError`` is raised if none is left.

        ``conditions`` are ``Condition`` and ``DataFrameCondition`` of ``sdv.sampling``; the other
        arguments are those of ``sample``.
        """
        self._validate_fit_before_sample()
        _refuse_retries(max_tries_per_batch)
        requested = _as_one(self._make_condition_dfs(conditions)), "Sampling conditions"
        return self._completed(*requested, batch_size, output_folder_path, ordered=False)

    def sample_remaining_columns(
        self, known_columns, max_tries_per_batch=100, batch_size=None, output_folder_path=None
    ):
        """The given rows, completed by synthetic values in the other columns.

        The result holds the caller's own rows and is exactly as private as they are. Where
        ``sample`` goes on, in a saved synthesizer as well, tells how many were completed, and SDV's
        log says it: use a copy if that is private.
        ``known_columns`` are a DataFrame, which keeps its index; the other arguments are those of
        ``sample``.
        """
        self._validate_fit_before_sample()
        _refuse_retries(max_tries_per_batch)
        check_rows(known_columns)
        known = known_columns.set_axis(column_names(known_columns), axis=1)
        requested = known, "Sampling remaining columns"
        return self._completed(*requested, batch_size, output_folder_path, ordered=True)

    def _completed(
        self, conditions: pd.DataFrame, title: str, batch_size: Any, folder: Any, *, ordered: bool
    ):
        """A row for each condition that can be met, under its index where they are ``ordered``."""
        self._validate_conditions_unseen_columns(conditions)
        sizes = _batches(len(conditions), batch_size)
        parts, met = [], np.zeros(len(conditions), dtype=bool)
        with self._written(len(conditions), title, folder, own=ordered) as written:
            for end, size in zip(np.cumsum(sizes), sizes, strict=True):
                part = slice(end - size, end)
                table, met[part] = self._meeting(conditions.iloc[part])
                if len(table) or not len(conditions):
                    parts.append(table)
                    written(table)
        if unsatisfiable := require_some(conditions, met, self._schema()):
            warnings.warn(unsatisfiable, stacklevel=3)
        joined = _joined(parts)
        if ordered:
            joined.index = conditions.index[met]
        return self._as_fitted(joined)

    def _validate_conditions_unseen_columns(self, conditions) -> None:
        super()._validate_conditions_unseen_columns(conditions)
        check_conditions(conditions, self._schema())

    def _as_fitted(self, table: pd.DataFrame):
        """The same kind of thing, under the same column names, that was fitted."""
        rows, columns = table.shape
        log_event(
            self, "Sample", {"TOTAL NUMBER OF ROWS": rows, "TOTAL NUMBER OF COLUMNS": columns}
        )
        if len(self._original_columns):
            table.columns = self._original_columns
        return table if self._gives_frames else {self._table_name: table}

    @contextmanager
    def _written(
        self, num_rows: int, title: str, folder: Any, *, own: bool = False
    ) -> Iterator[Any]:
        """What takes tables: to a bar, if it is to be seen, and to a file in a folder.

        The file has a card beside it, unless the rows are the caller's ``own``. Until it is done no
        other thread's rows come between.
        """
        (path,) = validate_folder_path_with_table_names(folder, [self._table_name]) or [None]
        has_begun = False

        def written(table: pd.DataFrame) -> None:
            nonlocal has_begun
            if path is not None:
                table.to_csv(path, index=False, mode="a", header=not has_begun)
                has_begun = True
            bar.update(len(table))

        with MOVING, tqdm(total=num_rows, desc=title, disable=not self.verbose) as bar:
            try:
                yield written
                if has_begun and not own:
                    self.fitted_table.about_rows(path)
            except BaseException as error:
                if has_begun and path is not None:
                    note_on(error, f"The rows that were made before lie in {path}.")
                raise

    def _sampled(self, num_rows: int) -> dict[str, pd.Series]:
        """The modelled columns of the next rows, and whose they are where persons are sampled."""
        if self._sampler is None:
            return {}
        assert self._model_of_table is not None
        columns, visits = self._sampler.take(num_rows), self._model_of_table.description.visits
        if visits is not None:
            own = columns[visits.person]
            is_number = is_whole(self._dtypes.get(visits.person))
            columns[visits.person] = own if is_number else "sdv-id-" + (own - 1).astype(str)
        return columns

    def _table(self, num_rows: int, columns: Mapping[str, pd.Series]) -> pd.DataFrame:
        """A table in the metadata's column order: the given columns, the others generated."""
        missing = [name for name in self._described if name not in columns]
        generated = generators.generate(self._data_processor, num_rows, missing, self._dtypes)
        return pd.DataFrame({name: {**generated, **columns}[name] for name in self._described})

    def _meeting(self, conditions: pd.DataFrame) -> tuple[pd.DataFrame, np.ndarray]:
        """A row for each condition that can be met, and which of them can."""
        columns, possible = {}, np.ones(len(conditions), dtype=bool)
        if self._sampler is not None:
            columns, possible = self._sampler.meeting(conditions)
        known = conditions.loc[possible].reset_index(drop=True)
        if not len(known):
            return self._table(0, self._sampled(0)), possible
        generated = [name for name in known.columns if name not in columns]
        asked = {name: pd.Series(known[name]) for name in generated}
        given = {name: values for name, values in asked.items() if is_condition(values).all()}
        table = self._table(len(known), columns | given)
        for name, values in asked.items():
            wanted, made = is_condition(values), pd.Series(table[name])
            table[name] = values if wanted.all() else made.astype(object).mask(wanted, values)
        return table, possible


def _joined(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Tables of the same columns below each other."""
    return parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True)


def _as_one(conditions: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Conditions on several sets of columns below each other, and ``ANYTHING`` where one has none.

    Their columns have SDV's names.
    """
    frames = [frame.set_axis(column_names(frame), axis=1) for frame in conditions]
    names = list(dict.fromkeys(name for frame in frames for name in frame.columns))
    if any(list(frame.columns) != names for frame in frames):
        frames = [
            frame.astype(object)
            .assign(**{name: ANYTHING for name in names if name not in frame})
            .reindex(columns=names)
            for frame in frames
        ]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def _refuse_retries(max_tries_per_batch: Any) -> None:
    """Raises ``ValueError`` unless it is what SDV has if nobody says otherwise."""
    if max_tries_per_batch not in (None, 100):  # SDV's own
        raise ValueError(
            f"max_tries_per_batch={max_tries_per_batch!r} would change nothing: no row is drawn "
            "twice. A condition that cannot be met lies outside the domain, or contradicts the "
            "constraints; the warning says which. Leave it out."
        )


def _batches(num_rows: int, batch_size: Any) -> list[int]:
    """How many rows are made at a time. Raises ``ValueError`` for a size that is none."""
    most = max(num_rows, 1) if batch_size is None else check_integer("batch_size", batch_size)
    return [min(most, num_rows - start) for start in range(0, num_rows, most)] or [0]
