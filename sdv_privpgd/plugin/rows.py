"""Rows of a model in SDV's words: sampled, under conditions, completed. Free."""

import os
import warnings
from collections.abc import Mapping

import numpy as np
import pandas as pd
from sdv.sampling import DataFrameCondition

from sdv_privpgd.plugin import generators
from sdv_privpgd.plugin.arguments import (
    as_one,
    bars_shown,
    check_conditions,
    column_names,
    given_over,
    without_retries,
)
from sdv_privpgd.plugin.state import FittedState
from sdv_privpgd.sampling.conditions import is_wanted
from sdv_privpgd.sampling.unmet import why_not

# SDV's methods have no types; ours give back the kind of table that was fitted.
# pyright: reportIncompatibleMethodOverride=false


class SampledRows(FittedState):
    """SDV's methods that make rows. The modelled columns come from the model at once."""

    verbose: bool

    def reset_sampling(self) -> None:
        """Starts the sequence of sampled rows again."""
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

        Any number of rows, at no cost. Rows follow the model more closely
        than independent draws would.
        """
        sampled = super().sample(
            num_rows, main_table_name, max_tries_per_batch, batch_size, output_folder_path
        )
        return self._as_fitted(sampled)

    def sample_from_conditions(
        self, conditions, max_tries_per_batch=100, batch_size=None, output_folder_path=None
    ):
        """Synthetic rows with the given values, as ``sample`` gives them.

        A value may be a ``Between``. The other columns follow the model, under conditions that no
        row of it meets, too. A value outside the declared domain cannot be met: its rows are left
        out with a warning that says why, and ``ValueError`` is raised if none is left.
        """
        self._validate_fit_before_sample()
        # One frame: SDV goes through those of different columns one by one, copying all rows.
        together = as_one(self._make_condition_dfs(conditions))
        with bars_shown(self.verbose), without_retries():
            sampled = super().sample_from_conditions(
                [DataFrameCondition(together)], max_tries_per_batch, batch_size, output_folder_path
            )
        return self._as_fitted(sampled, rename=True)

    def sample_remaining_columns(
        self, known_columns, max_tries_per_batch=100, batch_size=None, output_folder_path=None
    ):
        """The given rows, completed by synthetic values in the other columns.

        The result holds the caller's own rows and is exactly as private as they are.
        """
        self._validate_fit_before_sample()
        with bars_shown(self.verbose), without_retries():
            sampled = super().sample_remaining_columns(
                known_columns.set_axis(column_names(known_columns), axis=1),
                max_tries_per_batch,
                batch_size,
                output_folder_path,
            )
        return self._as_fitted(sampled, rename=True)

    def _validate_conditions_unseen_columns(self, conditions) -> None:
        super()._validate_conditions_unseen_columns(conditions)
        check_conditions(conditions, self._schema())

    def _as_fitted(self, sampled: dict[str, pd.DataFrame], rename: bool = False):
        """The same kind of thing, under the same column names, that was fitted."""
        table = sampled[self._table_name]
        if rename and len(self._original_columns) and len(table.columns):
            table.columns = self._original_columns
        return table if self._gives_frames else {self._table_name: table}

    def _sample_with_progress_bar(
        self, num_rows, *args, show_progress_bar=True, **kwargs
    ) -> pd.DataFrame:
        if isinstance(num_rows, bool) or not isinstance(num_rows, (int, np.integer)):
            raise ValueError(
                "You must specify the number of rows to sample as a whole number "
                f"(e.g. num_rows=100), got {num_rows!r}."
            )
        if num_rows < 0:
            raise ValueError(f"num_rows must be 0 or more, got {num_rows}.")
        if num_rows == 0:
            return self._table(0, self._sampled(0))
        return super()._sample_with_progress_bar(
            int(num_rows), *args, show_progress_bar=show_progress_bar and self.verbose, **kwargs
        )

    def _sample_rows(self, num_rows, *args, **kwargs) -> tuple[pd.DataFrame, int]:
        """Every row is valid at once: SDV's retries have nothing to do."""
        del args, kwargs
        return self._table(num_rows, self._sampled(num_rows)), num_rows

    def _sampled(self, num_rows: int) -> dict[str, pd.Series]:
        """The modelled columns of the next rows."""
        return {} if self._sampler is None else self._sampler.take(num_rows)

    def _table(self, num_rows: int, columns: Mapping[str, pd.Series]) -> pd.DataFrame:
        """A table in the metadata's column order: the given columns, the others generated."""
        missing = [name for name in self._described if name not in columns]
        generated = generators.generate(self._data_processor, num_rows, missing, self._dtypes)
        return pd.DataFrame({name: {**generated, **columns}[name] for name in self._described})

    def _sample_with_conditions(
        self,
        conditions,
        max_tries_per_batch,
        batch_size,
        progress_bar=None,
        output_file_path=None,
        keep_extra_columns=False,
    ) -> pd.DataFrame:
        """One row for each condition that lies in the public domain, under its index.

        Conditions that no row with the constraints can meet are left out, too.
        """
        del max_tries_per_batch, batch_size, keep_extra_columns  # nothing is rejected
        columns, possible = {}, np.ones(len(conditions), dtype=bool)
        if self._sampler is not None:
            columns, possible = self._sampler.meeting(conditions)
        known = conditions[possible].reset_index(drop=True)
        if not possible.all():
            why = why_not(conditions[~possible], self._schema())
            if not len(known):  # SDV passes on what begins with these words
                raise ValueError(f"Unable to sample any rows for the given conditions. {why}")
            warnings.warn(
                f"{len(known)} of {len(conditions)} conditions can be met. {why}", stacklevel=4
            )
        if not len(known):
            return known
        generated = [name for name in known.columns if name not in columns]
        given = {name: known[name] for name in generated if is_wanted(known[name]).all()}
        table = self._table(len(known), columns | given)
        for name in generated:
            table[name] = given_over(known[name], pd.Series(table[name]))
        table.index = conditions.index[possible]
        if progress_bar is not None:
            progress_bar.update(len(table))
        if output_file_path:
            fresh = not os.path.exists(output_file_path) or not os.path.getsize(output_file_path)
            table.to_csv(output_file_path, index=False, mode="a", header=fresh)
        return table
