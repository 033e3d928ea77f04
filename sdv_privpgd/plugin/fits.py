"""The methods that are handed the private table: they name its columns and pass them on."""

import warnings
from collections.abc import Collection
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from sdv.errors import (
    InvalidDataError,
    InvalidDataTypeError,
    NotFittedError,
    RefitWarning,
    SynthesizerInputError,
)

from sdv_privpgd.base.files import are_text
from sdv_privpgd.base.progress import Progress, shown
from sdv_privpgd.columns.dialect import on_words
from sdv_privpgd.columns.keys import on_patterns
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.door import running_fit, seen
from sdv_privpgd.fitting.fates import check_report
from sdv_privpgd.fitting.fit import Fit
from sdv_privpgd.fitting.fitted_table import FittedTable, RunningFit
from sdv_privpgd.fitting.options import check, check_match, checked_lost, on_undeclared
from sdv_privpgd.fitting.plan import planned
from sdv_privpgd.fitting.prior import leaning, require_others
from sdv_privpgd.fitting.resume import (
    Unfinished,
    begun_again,
    own_ledger,
    require_same_rows,
    warn_of_more,
)
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.plugin import generators
from sdv_privpgd.plugin.arguments import as_invalid_data, log_event, original_names, stamp_fitted
from sdv_privpgd.plugin.base import FittedState
from sdv_privpgd.privacy.boundary import EncodedTable, PrivateTable
from sdv_privpgd.report.page import Report
from sdv_privpgd.report.warnings import warn_after
from sdv_privpgd.sources.locate import UnknownKindError
from sdv_privpgd.sources.source import SourceError

# SDV's methods have no types; ours give back the kind of table that was fitted.
# pyright: reportIncompatibleMethodOverride=false

_CHANGED = (
    "The settings that give the noisy answers their meaning have changed since the fit that is to "
    "get more budget: public_domain, method, enforce_rounding, constraints or people. Set them "
    "back, or fit anew."
)


class FitsOfTables(FittedState):
    """SDV's methods that fit. What they are handed goes to ``sdv_privpgd.fitting`` alone."""

    def validate(self, data) -> None:
        """Checks the kind of the data, its column names and dtypes, and nothing of its values."""
        self._open(data, self._description())

    def _open(self, data, description: Description) -> PrivateTable:
        """The described columns of a table, in the metadata's order. Private."""
        try:
            opened, errors = PrivateTable.opened(
                self._table_in(data),
                description.words,
                description.facts,
                people=self._settings().people.limit,
                visits=description.ordered,
            )
        except UnknownKindError as error:
            raise InvalidDataTypeError(str(error)) from None
        except SourceError as error:
            raise InvalidDataError([str(error)]) from None
        patterns = generators.patterns_of(self._data_processor, self._described)
        errors = errors or on_patterns(patterns, description.dtypes_kept(opened.dtypes))
        if errors:
            raise InvalidDataError(errors)
        return opened

    def _table_in(self, data) -> Any:
        """The table itself, of SDV's dict of one as well."""
        if not isinstance(data, dict):
            return data
        if set(data) != {self._table_name}:
            raise InvalidDataError(
                [f"Expected one table named {self._table_name!r}, got {sorted(data, key=str)}."]
            )
        return data[self._table_name]

    def fit(
        self, data, *, weights=None, prior: Any = None, allow_lost: Collection[str] = ()
    ) -> None:
        """Fits the synthesizer to a DataFrame, or to SDV's ``{'table': DataFrame}``.

        Rows that do not fit into memory are read in batches: ``data`` may be a path, a pattern or a
        list of paths of Parquet or CSV files, an Arrow table or data set, a DataFrame of Polars or
        Spark, a DuckDB relation or an Ibis table. They must stay as they are while it fits.

        Spends ``epsilon`` at ``delta``, anew at each call; a second call warns with the composed
        total. Cells outside the declared domain are clipped, or count as missing, silently.
        For columns that ``allow_lost`` names it does not stop, whatever it would lose of them.
        ``prior`` are public rows that are like the private ones, as ``fit_table`` takes them.

        Raises:
            PublicDomainError: Before a row is read, where a modelled column has no domain and
                ``discovery_share`` is 0.
            InvalidDataError: If column names do not match the metadata, for timedeltas and other
                dtypes without an sdtype, or for a table without rows where their number is public.
            PrivacyBudgetError: Before a row is read, if the plan does not fit the budget.
            ColumnsLostError: Before anything is spent, for columns that would be made up, though
                their sdtypes identify nobody, or that noise would hide. ``check(data)`` says them.
            DomainMismatchError: After the first question, if more than a tenth of the cells of a
                column are there and no declared values; after others, if categories are too rare,
                or nearly all rows lie beyond a declared range. What they cost is spent;
                ``resume(data)`` goes on all the same.
            SourceError: If rows cannot be read any more. What was spent is spent.
        """
        if weights is not None:
            raise SynthesizerInputError(
                "Weights beside the table are not taken: a row's influence would have no bound. "
                "Name a column and a public range of weights: people=People(weight_column=..., "
                "weight_range=(low, high))."
            )
        require_others(prior, data)
        settings, description = self._questions()
        table = self._open(data, description)
        self._require_rows(table)
        settings, description = seen(settings, description, table, prior)
        allowed = checked_lost(allow_lost, description)
        running = running_fit(settings, description, table, allow_lost=allowed)
        if not self.discovery_share:
            _ = running.fit.description.schema
        self._run(running, self._names_of(data), stops=True)

    def check(self, data, *, prior: Any = None) -> Report:
        """Returns what ``fit`` would make of each column of a table. Public.

        ``prior`` is as ``fit`` takes it. No cell is read, and nothing is spent. ``to_dict()`` has
        the columns that would be lost, for which ``fit`` stops.
        """
        require_others(prior, data)
        settings, description = self._questions()
        try:
            table = self._open(data, description)
        except InvalidDataError as error:
            return check_report(settings, description, None, [str(error)])
        more = on_words(description.words) if are_text(getattr(data, "paths", data)) else []
        settings, description = seen(settings, description, table, prior)
        return check_report(settings, description, table.known_rows(settings.adjacency), more=more)

    @property
    def unfinished(self) -> Unfinished | None:
        """What a fit that failed had paid for; ``None`` if there is nothing to resume. Public."""
        return self._ledgers.unfinished

    def resume(self, data=None) -> None:
        """Finishes a fit that failed, or was interrupted, after it had paid for noisy answers.

        They are kept, in files too, until a fit succeeds. Without ``data`` a model of what was
        answered is fitted, at no cost; budget that was left stays unspent. With ``data``, which
        should be the table of that fit, what is left of its budget is spent first, on the questions
        that come next. What had been answered is not paid for again, of a discovery neither.

        Raises:
            NotFittedError: If no fit failed after it had paid for something that is of use.
            InvalidDataError: For other columns, or another number of rows where that is public.
            ValueError: Without ``data``, if no table of counts was answered; or if settings that
                give the answers their meaning have changed.
        """
        with self._ledgers.lock:
            kept = self._ledgers.unfinished
            if kept is None:
                raise NotFittedError("There is nothing to resume: no fit failed after it had paid.")
            settings, description = self._questions()
            found = kept.description
            description = replace(
                description,
                facts=found.facts if found.public is not None else description.facts,
                public=found.public,
                dtypes=found.dtypes,
                discovered=found.discovered,
                shapes=found.shapes,
            )
            kept.require(settings, description, with_data=data is not None)
            table = None
            if data is not None:
                table = self._open(data, description)
                self._require_rows(table)
                with as_invalid_data():
                    kept.require_same_rows(table)
            # One with more budget has more, and the number of rows has said the delta.
            settings = replace(settings, epsilon=kept.ledger.epsilon, delta=kept.ledger.delta)
            fit = kept.fit(settings, description)
            running = RunningFit(fit=fit, private=table, known=kept.answers)
            self._run(running, kept.names, goes_on=True)

    def add_budget(self, data, epsilon: float) -> None:
        """Spends more budget on the table that was fitted, and fits all answers again.

        Privacy: one ledger. The epsilon of the last fit grows by ``epsilon`` at its delta, and all
        that was released of the table is within it: 0.5 and 0.5 more spend exactly what 1 does.
        Answers to the same question are averaged by inverse variance, so that errors fall as if
        all had been asked at once. Nothing is discovered anew; the new model starts from the last.

        If it fails after it had paid, the last fit stays, and ``resume`` makes use of the answers.

        Args:
            data: The table of the last fit, with the same rows. A table that has grown is fitted
                anew: ``fit`` again, whose charges compose on the same ledger.
            epsilon: What is added.

        Raises:
            NotFittedError: Before a fit.
            InvalidDataError: For other columns, or another number of rows where that is public.
            ValueError: For fits whose tables were not kept, for an epsilon that is not positive, or
                if settings that give the answers their meaning have changed.
        """
        self._require_fitted()
        with self._ledgers.lock:
            fitted = self._model_of_table
            assert fitted is not None
            fit = begun_again(fitted, epsilon)
            self._settings().require(fit.shared.ledger)
            now = self._description()
            if now.attributes != fitted.schema or now.visits != fitted.description.visits:
                raise ValueError(_CHANGED)
            table = self._open(data, now)
            with as_invalid_data():
                require_same_rows(fitted, table)
            warn_of_more(fitted)
            running = RunningFit(fit=fit, private=table, extended=self._fitted_table)
            self._run(running, (self._gives_frames, self._original_columns), goes_on=True)
            vars(fitted)["has_more"] = True

    def plan(self, num_rows: int, *, prior: Any = None) -> Report:
        """What a fit to so many rows would ask, and how large its errors would be. Public.

        With a ``prior``, as ``fit`` takes it, a simulated fit says what it is worth.

        No table is read: the questions are put to rows of missing values. What depends on answers
        (the choices of an adaptive strategy, domains that are discovered) will be others. The
        errors are those of the noisy tables, by column and pair, and over epsilon and rows.
        Where values are not declared, a usual number of them is assumed. ``print`` shows the text;
        ``to_dict()`` has the numbers as parts of the rows, ``save("plan.html")`` writes the page.
        """
        settings, description = self._questions()
        description = replace(description, dtypes={})
        return planned(settings, leaning(settings, description, prior, num_rows), num_rows)

    def preprocess(self, data) -> dict[str, pd.DataFrame]:
        """The table as codes, one column an attribute. As private as the table itself.

        Attributes are the modelled columns, and differences of those that are in order.

        The frame is read-only, so that ``fit_processed_data`` needs no copy: change a copy of it.

        Raises ``SynthesizerInputError`` for ``people`` with a column or weights.
        """
        self._require_rows_alone()
        description = self._description()
        table = self._open(data, description)
        if not self._fitted:  # a model's codes go with the dtypes of its own table
            self._dtypes = description.dtypes_kept(table.dtypes)
        schema = replace(description, dtypes=self._dtypes).attributes
        names = pd.Index(schema.domain().attributes)
        return {self._table_name: pd.DataFrame(table.codes(schema), columns=names, copy=False)}

    def fit_processed_data(self, processed_data) -> None:
        """Fits to what ``preprocess`` gave. Spends ``epsilon`` at ``delta``, anew at each call.

        Raises:
            SynthesizerInputError: For ``people`` with a column or weights, which no code tells.
            InvalidDataError: For columns or dtypes that ``preprocess`` does not give.
        """
        settings, _ = self._questions()
        self._require_rows_alone()
        description, fitted = self._description(), self._model_of_table
        table = EncodedTable(self._codes_in(processed_data, description))
        self._require_rows(table)
        settings = settings.for_rows(table.known_rows(settings.adjacency))
        fit = Fit(settings, description, diagnostics={} if fitted is None else fitted.diagnostics)
        running = RunningFit(fit=fit, private=table)
        self._run(running, (self._gives_frames, self._original_columns))

    def _require_rows_alone(self) -> None:
        """Raises ``SynthesizerInputError`` where rows are more to a fit than their codes."""
        if self._settings().people.limit is not None:
            raise SynthesizerInputError(
                "People with a column, or with weights, need the table itself: codes do not say "
                "whose a row is, nor how much it counts. Call fit."
            )

    def _codes_in(self, data, description: Description) -> pd.DataFrame:
        """Codes as ``preprocess`` gives them. Names and dtypes tell: an error shows no cell."""
        table, names = self._table_in(data), list(description.attributes.domain().attributes)
        if (
            not isinstance(table, pd.DataFrame)
            or sorted(map(str, table.columns)) != sorted(names)
            or any(not isinstance(each, np.dtype) or each.kind not in "iu" for each in table.dtypes)
        ):
            raise InvalidDataError(
                [
                    f"Codes are a DataFrame of whole numbers with the columns {names}, as "
                    "preprocess gives it. Call preprocess anew where constraints or declarations "
                    "have changed since, or hand the table itself to fit."
                ]
            )
        return table

    def _questions(self) -> tuple[Settings, Description]:
        """What a fit would ask. Raises before a row is read for what none can ask or meet."""
        self._check_settings()
        settings, description = self._settings(), self._description().declared
        check(settings, description)
        check_match(settings, description)
        return settings, description

    def _names_of(self, data) -> tuple[bool, pd.Index]:
        """Whether a frame was given, and not a dict of one, and the names of its columns."""
        table = self._table_in(data)
        is_frame = isinstance(table, pd.DataFrame)
        names = original_names(table, list(self._described)) if is_frame else pd.Index([])
        return not isinstance(data, dict), names

    def _require_rows(self, table: PrivateTable | EncodedTable) -> None:
        """Raises ``InvalidDataError`` for a table without rows, if their number is public."""
        if errors := self._settings().objections(table):
            raise InvalidDataError(errors)

    def _shown(self) -> AbstractContextManager[Progress]:
        """One bar for a whole fit, if it is to be seen."""
        return shown(type(self).__name__.removesuffix("Synthesizer"), self.verbose)

    def _run(
        self,
        running: RunningFit,
        names: tuple[bool, pd.Index],
        *,
        goes_on: bool = False,
        stops: bool = False,
    ) -> None:
        """Asks about a table, or without one goes on with what is known, and takes the model.

        The caller of a method that fits is warned before, unless it ``goes_on``, and after it of
        the rest of ``warnings_``.
        """
        announced = [] if goes_on else running.told_before
        if not goes_on:
            settings = running.fit.settings
            at_first = settings.absurd()
            before = [each for each in announced if each not in at_first]
            if before := [*on_undeclared(settings, running.fit.description), *before]:
                warnings.warn(" ".join(before), stacklevel=3)
        log_event(self, "Fit", {"TOTAL NUMBER OF COLUMNS": len(self._described)})
        self._ready_generators(running.fit.description)
        with self._shown() as progress, self._ledgers.charged(running, names, goes_on=goes_on):
            self._take(running.run(progress, stops=stops), names)
        assert self._fitted_table is not None
        warn_after(self._fitted_table.warnings, but=announced, stacklevel=3)

    def _take(self, table: FittedTable, names: tuple[bool, pd.Index]) -> None:
        """Takes a fitted table as that of the last fit."""
        fitted = replace(table.fitted, options=self._fit_options())
        ledger = own_ledger(fitted, table.ledger)
        self._ready_generators(fitted.description)
        # What can fail has not failed: from here on the model is this fit's. SDV has a date.
        self._fitted_table = replace(
            table, fitted=fitted, ledger=ledger, warnings=fitted.warnings(ledger), date=""
        )
        self._dtypes = fitted.description.dtypes
        self._gives_frames, self._original_columns = names
        self._random_state_set = False
        stamp_fitted(self)

    # Transformers: modelled columns have none, and those of others learn nothing.

    def auto_assign_transformers(self, data) -> None:
        """Assigns a generator to each column that is not modelled; of the data it reads names."""
        description = self._description()
        dtypes = description.dtypes_kept(self._open(data, description).dtypes)
        if not self.discovery_share:
            _ = description.schema  # what is not declared cannot be found later
        known = self._data_processor, self._described, description.modelled
        generators.assign(*known, dtypes)

    def _auto_assign_transformers(self, data):
        """Refuses the part in a synthesizer of several tables, which calls this before its fit."""
        del data
        raise SynthesizerInputError(
            f"{type(self).__name__} cannot work inside a synthesizer of several tables: the budget "
            "would be spent anew on the rows of each parent. Synthesize one table; if its rows are "
            "joined from several, people=People(max_rows=...) says how many one person may have."
        )

    def update_transformers(self, column_name_to_transformer, table_name=None) -> None:
        """Replaces the generators of columns that are generated (keys, ids, personal data).

        They learn nothing from the table: after a fit they take effect at once, at no cost, and
        the sequence of rows starts again.

        Raises:
            SynthesizerInputError: For a modelled column, which has none, and for transformers that
                would learn from the table.
        """
        modelled = self._description().modelled
        for name, transformer in column_name_to_transformer.items():
            if name in modelled:
                raise SynthesizerInputError(
                    f"Column '{name}' is modelled, by what is public of it, and has no "
                    "transformer. Change public_domain or num_bins instead."
                )
            generators.check_generator(name, transformer)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RefitWarning)  # a refit would spend again, for nothing
            super().update_transformers(column_name_to_transformer, table_name)
        if self._model_of_table is not None:
            self._ready_generators(self._model_of_table.description)
            self.reset_sampling()

    def _ready_generators(self, description: Description) -> None:
        """Makes what is generated ready for rows."""
        known = self._data_processor, self._described, description.modelled
        generators.fit(*known, description.dtypes)
