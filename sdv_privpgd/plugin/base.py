"""What all synthesizers share: SDV's words in, our words out.

SDV's own pipeline looks at private values in more than twenty places, so none of it runs on the
table: SDV's data processor is fitted on a public frame made from the schema, and ``fit`` hands the
table's columns to ``sdv_privpgd.fitting`` alone.
"""

import datetime
import inspect
import threading
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import replace
from importlib.metadata import version as version_of
from typing import Any

import pandas as pd
from sdv import version
from sdv.errors import (
    InvalidDataError,
    InvalidDataTypeError,
    NotFittedError,
    RefitWarning,
    SynthesizerInputError,
    VersionError,
)
from sdv.metadata import Metadata
from sdv.single_table.base import SYNTHESIZER_LOGGER

from sdv_privpgd.columns.ids import repeated_ids
from sdv_privpgd.columns.schema import PublicDomainError
from sdv_privpgd.discovery.plan import without_domain
from sdv_privpgd.drafting.template import named_by_text
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.fit import Fit, Fitted, check
from sdv_privpgd.fitting.settings import Settings, check_count, check_flag
from sdv_privpgd.fitting.unfinished import Unfinished, booked, note_on
from sdv_privpgd.plugin import generators
from sdv_privpgd.plugin.arguments import (
    original_names,
    public_copy,
    python_s,
    refuse_several_tables,
)
from sdv_privpgd.plugin.bar import Bar
from sdv_privpgd.plugin.constrained import ConstrainedRows
from sdv_privpgd.plugin.constraints import SdvConstraints
from sdv_privpgd.plugin.pages import ShownFit
from sdv_privpgd.plugin.rows import SampledRows
from sdv_privpgd.plugin.transformers import ColumnTransformer, transformer_for
from sdv_privpgd.privacy.boundary import EncodedTable, PrivateTable
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.progress import Progress, Stage, expect, silent
from sdv_privpgd.report.advice import OPENING
from sdv_privpgd.report.privacy import plan_report

# SDV's methods have no types; ours give back the kind of table that was fitted.
# pyright: reportIncompatibleMethodOverride=false

_STATE_VERSION = 5


class PrivateSynthesizer(ShownFit, ConstrainedRows, SampledRows):
    """Differentially private synthetic rows of one table, by a strategy and an engine.

    Everything that the fitted object exposes (samples, attributes, files, messages) is
    (epsilon, delta)-differentially private for one row, or for the ``rows_per_person`` rows of
    one person, with exact accounting in Gaussian differential privacy. A subclass names its
    strategy and its engine.

    Its arguments are described at ``PrivPGDSynthesizer``.

    Raises:
        ValueError: For an argument outside its range; the message names value and remedy.
        SynthesizerInputError: For metadata of several tables, of sequences or composite keys.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # Of ``__init__``, in place of the one that ``__new__`` has to have.
        own = inspect.signature(cls.__init__)
        cls.__signature__ = own.replace(parameters=list(own.parameters.values())[1:])

    def __new__(cls, *args: Any, **kwargs: Any):
        """Refuses to be a part of a synthesizer of several tables, with the reason."""
        del args
        refuse_several_tables(cls.__name__, kwargs)
        return super().__new__(cls)

    def __init__(
        self,
        metadata: Metadata,
        epsilon: float,
        delta: float = 1e-5,
        *,
        adjacency: str = "replace_one",
        rows_per_person: int = 1,
        public_domain: Mapping[str, Mapping] | None = None,
        public_metadata: bool = False,
        discovery_share: float = 0.2,
        num_bins: int = 32,
        seed: int = 0,
        verbose: bool = False,
        enforce_min_max_values: bool = True,
        enforce_rounding: bool = True,
        locales: Sequence[str] | str | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.rows_per_person = rows_per_person
        self.public_domain = deepcopy(public_domain)
        self.public_metadata = public_metadata
        self.discovery_share = discovery_share
        self.num_bins = num_bins
        self.seed = seed
        self.verbose = verbose
        super().__init__(
            metadata=public_copy(metadata, keep_ranges=public_metadata is True),
            enforce_min_max_values=python_s(enforce_min_max_values),
            enforce_rounding=python_s(enforce_rounding),
            locales=["en_US"] if locales is None else locales,
        )
        self._model_of_table: Fitted | None = None
        self._ledger: PrivacyLedger | None = None
        self._unfinished: Unfinished | None = None
        self._warnings: tuple[str, ...] = ()
        self._dtypes: Mapping[str, Any] = {}
        self._gives_frames = False
        self._original_columns = pd.Index([])
        self._lock = threading.RLock()
        self._check_settings()
        # A domain is asked for at fit: SDV builds synthesizers before it knows their domain.
        with suppress(PublicDomainError):
            _ = self._description().schema
        if self.epsilon > 20:
            warnings.warn(
                f"epsilon={self.epsilon:g} promises next to nothing; 0.1 to 10 is usual.",
                stacklevel=3 if "__init__" in type(self).__dict__ else 2,
            )

    def _check_settings(self) -> None:
        """Raises ``ValueError`` for a setting that no fit can work with, and reads no row.

        All of them can be set on the object, so every fit checks them as the constructor does.
        """
        for name in ("public_metadata", "verbose", "enforce_min_max_values", "enforce_rounding"):
            setattr(self, name, check_flag(name, getattr(self, name)))
        self.num_bins = check_count("num_bins", self.num_bins)
        self.public_domain = named_by_text(self.public_domain)
        settings = self._settings()
        for name in ("epsilon", "delta", "rows_per_person", "discovery_share", "seed"):
            setattr(self, name, getattr(settings, name))
        self.adjacency = settings.adjacency.value
        self._engine({})  # raises for settings that it cannot work with

    def _settings(self) -> Settings:
        return Settings(
            epsilon=self.epsilon,
            delta=self.delta,
            adjacency=self.adjacency,  # pyright: ignore[reportArgumentType]  (it is parsed)
            rows_per_person=self.rows_per_person,
            discovery_share=self.discovery_share,
            seed=self.seed,
            strategy=self._strategy(),
            engine=self._engine,
        )

    def _questions(self, dtypes: Mapping[str, Any] | None = None) -> tuple[Settings, Description]:
        """What a fit would ask. Raises before a row is read for what none can ask or meet."""
        self._check_settings()
        settings, description = self._settings(), self._description().declared
        check(settings, description)
        return settings, description if dtypes is None else replace(description, dtypes=dtypes)

    def _description(self) -> Description:
        fitted = self._model_of_table
        keys = self._get_table_metadata()._get_primary_and_alternate_keys()
        return Description(
            columns=deepcopy(dict(self._described)),
            keys=tuple(keys),
            public_domain={} if self.public_domain is None else deepcopy(self.public_domain),
            constraints=SdvConstraints(tuple(self._reject_sampling_constraints)),
            num_bins=self.num_bins,
            discovers=bool(self.discovery_share),
            enforce_rounding=self.enforce_rounding,
            kept=frozenset(self._kept_columns()),
            dtypes=self._dtypes,
            discovered={} if fitted is None else fitted.description.discovered,
            shapes={} if fitted is None else fitted.description.shapes,
        )

    def _kept_columns(self) -> Collection[str]:
        """Columns of which rows must have what the model says."""
        return frozenset()

    # What is generated, and the names of transformers

    def _transformers(self, description: Description) -> dict[str, ColumnTransformer]:
        """The transformers, with stand-ins for columns that discovery has yet to look into."""
        try:
            known = description.schema
        except PublicDomainError:
            known = description.declared_schema
        own = {column.name: transformer_for(column) for column in known.columns}
        return generators.with_stand_ins(own, self._described, description.modelled)

    def auto_assign_transformers(self, data) -> None:
        """Assigns a transformer to each column from public facts; of the data it reads names."""
        dtypes = self._kept(self._open(data))
        description = self._description()
        if not self.discovery_share:
            _ = description.schema  # what is not declared cannot be found later
        known = self._transformers(description)
        generators.assign(self._data_processor, self._described, known, dtypes)

    def _auto_assign_transformers(self, data):
        """Refuses the part in a synthesizer of several tables, which calls this before its fit."""
        del data
        raise SynthesizerInputError(
            f"{type(self).__name__} cannot work inside a synthesizer of several tables: the budget "
            "would be spent anew on the rows of each parent. Synthesize one table; if its rows are "
            "joined from several, rows_per_person says how many one person may have."
        )

    def update_transformers(self, column_name_to_transformer, table_name=None) -> None:
        """Replaces the generators of columns that are generated (keys, ids, personal data).

        They learn nothing from the table: after a fit they take effect at once, at no cost, and
        the sequence of rows starts again.

        Raises:
            SynthesizerInputError: For a modelled column, whose transformer follows from its
                public domain, and for transformers that would learn from the table.
        """
        modelled = self._description().modelled
        for name, transformer in column_name_to_transformer.items():
            if name in modelled:
                raise SynthesizerInputError(
                    f"Column '{name}' is modelled: its transformer is built from its public "
                    "domain. Change public_domain or num_bins instead."
                )
            generators.check_generator(name, transformer)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RefitWarning)  # a refit would spend again, for nothing
            super().update_transformers(column_name_to_transformer, table_name)
        if self._model_of_table is not None:
            self._ready_generators(self._model_of_table.description)
            self.reset_sampling()

    def _ready_generators(self, description: Description) -> None:
        known = self._transformers(description)
        generators.fit(self._data_processor, self._described, known, description.dtypes)

    # Fitting: the only methods that are handed the private table

    def validate(self, data) -> None:
        """Checks the kind of the data, its column names and dtypes, and nothing of its values."""
        self._open(data)

    def _open(self, data) -> PrivateTable:
        """The table's columns under the metadata's names, in the metadata's order."""
        if isinstance(data, dict):
            if set(data) != {self._table_name}:
                raise InvalidDataError(
                    [f"Expected one table named {self._table_name!r}, got {sorted(data, key=str)}."]
                )
            table = data[self._table_name]
        else:
            table = data
        if not isinstance(table, pd.DataFrame):
            raise InvalidDataTypeError(
                "The table must be a pandas DataFrame or a dict of one, got "
                f"{type(table).__name__}."
            )
        opened, errors = PrivateTable.opened(table, self._described, self._description().facts)
        if errors:
            raise InvalidDataError(errors)
        return opened

    def _kept(self, table: PrivateTable) -> dict[str, Any]:
        """The dtypes that rows come back in, because no cell chose them. Public."""
        return table.dtypes_kept(self._described, self._description().modelled)

    def fit(self, data, *, weights=None) -> None:
        """Fits the synthesizer to a DataFrame, or to SDV's ``{'table': DataFrame}``.

        Spends ``epsilon`` at ``delta``, anew at each call; a second call warns with the composed
        total. Cells outside the declared domain are clipped, or count as missing, silently.

        Raises:
            PublicDomainError: Before a row is read, where a modelled column has no domain and
                ``discovery_share`` is 0.
            InvalidDataError: If column names do not match the metadata, for timedeltas and other
                dtypes without an sdtype, or for a table without rows where their number is public.
            PrivacyBudgetError: Before a row is read, if the plan does not fit the budget.
        """
        if weights is not None:
            raise SynthesizerInputError(
                "Row weights are not supported: a row's influence would have no bound. Fit the "
                "unweighted rows, with the weight as a column if it matters."
            )
        self._questions()
        table = self._open(data)
        settings, description = self._questions(self._kept(table))
        self._require_rows(table)
        unknown = without_domain(description.undeclared)
        if unknown:
            warnings.warn(
                f"The ranges or categories of {unknown!r} are not declared: "
                f"{self.discovery_share:.3g} of the budget finds them privately. Declare them "
                "with public_domain={column: {...}} to save it, or pass public_metadata=True "
                "if the metadata has them from documentation and not from the data.",
                stacklevel=2,
            )
        if not self.discovery_share:
            _ = description.schema
        names = self._names_of(data)
        with self._shown() as progress, self._booked(Fit(settings, description), names) as fit:
            num_rows = self._known_rows(table)
            self._begin(progress, lambda: fit.stages(num_rows))
            fit.discover(table, progress)
            expect(progress, lambda: fit.stages(num_rows))
            self._run(fit, names, table, progress)
        self._speak_up()

    def finish(self, data=None) -> None:
        """Finishes a fit that failed, or was interrupted, after it had paid for noisy answers.

        They are kept, in files too, until a fit succeeds. Without ``data`` a model of what was
        answered is fitted, at no cost; budget that was left stays unspent. With ``data``, which
        should be the table of that fit, what is left of its budget is spent first, on the questions
        that come next. What had been discovered is not paid for again; a discovery that itself
        failed is not kept.

        Raises:
            NotFittedError: If no fit failed after it had paid for something that is of use.
            ValueError: Without ``data``, if no table of counts was answered; or if settings that
                give the answers their meaning have changed.
        """
        with self._lock:
            kept = self._unfinished
            if kept is None:
                raise NotFittedError("There is nothing to finish: no fit failed after it had paid.")
            settings, description = self._questions(kept.description.dtypes)
            table = None if data is None else self._open(data)
            self._require_rows(table)
            found = kept.description
            description = replace(description, discovered=found.discovered, shapes=found.shapes)
            kept.require(description.attributes, with_data=data is not None)
            fit = Fit(settings, description, doubts=kept.doubts, begun=kept.ledger)
            with self._shown() as progress, self._booked(fit, kept.names, goes_on=True):
                num_rows = self._known_rows(table)
                self._begin(progress, lambda: fit.stages(num_rows))
                self._run(fit, kept.names, table, progress, kept.answers)
            self._speak_up()

    def plan(self, num_rows: int) -> str:
        """What a fit to so many rows would ask, and how loud its answers would be. Public.

        No table is read: the questions are put to rows of missing values. What depends on answers
        (the choices of an adaptive strategy, domains that are discovered) will be others.
        """
        check_count("num_rows", num_rows, least=0)
        settings, description = self._questions()
        missing = pd.Series([None] * num_rows, dtype=object)
        table = PrivateTable(dict.fromkeys(self._described, missing))
        fit = Fit(settings, description)
        fit.discover(table)
        fit.ask(table)
        ids = repeated_ids(description.columns, description.keys)
        return plan_report(fit.books.ledger, num_rows, fit.tables, ids)

    def preprocess(self, data) -> dict[str, pd.DataFrame]:
        """The table as codes, one column an attribute. As private as the table itself.

        Attributes are the modelled columns, and differences of those that are in order.

        The frame is read-only, so that ``fit_processed_data`` needs no copy: change a copy of it.
        """
        table = self._open(data)
        if not self._fitted:  # a model's codes go with the dtypes of its own table
            self._dtypes = self._kept(table)
        schema = self._description().attributes
        names = pd.Index(schema.domain().attributes)
        return {self._table_name: pd.DataFrame(table.codes(schema), columns=names, copy=False)}

    def fit_processed_data(self, processed_data) -> None:
        """Fits to what ``preprocess`` gave. Spends ``epsilon`` at ``delta``, anew at each call."""
        settings, _ = self._questions()
        description, fitted = self._description(), self._model_of_table
        names = (self._gives_frames, self._original_columns)
        table = EncodedTable(processed_data[self._table_name])
        self._require_rows(table)
        fit = Fit(settings, description, doubts={} if fitted is None else fitted.doubts)
        with self._shown() as progress, self._booked(fit, names):
            num_rows = self._known_rows(table)
            self._begin(progress, lambda: fit.stages(num_rows))
            self._run(fit, names, table, progress)
        self._speak_up()

    def _names_of(self, data) -> tuple[bool, pd.Index]:
        """Whether a frame was given, and not a dict of one, and the names of its columns."""
        table = data[self._table_name] if isinstance(data, dict) else data
        return not isinstance(data, dict), original_names(table, list(self._described))

    @contextmanager
    def _shown(self) -> Iterator[Progress]:
        """One bar for a whole fit, if it is to be seen."""
        if not self.verbose:
            yield silent
            return
        with Bar(type(self).__name__.removesuffix("Synthesizer")) as bar:
            yield bar

    def _begin(self, progress: Progress, foretold: Callable[[], Sequence[Stage]]) -> None:
        """Says what is to come, before a row is read."""
        expect(progress, foretold)

    def _known_rows(self, table: PrivateTable | EncodedTable | None) -> int:
        """The number of rows where it is public, else a usual one: a bar must not tell it."""
        return self._settings().foretold_rows(table)

    def _require_rows(self, table: PrivateTable | EncodedTable | None) -> None:
        """Raises ``InvalidDataError`` for a table without rows, if their number is public."""
        errors = [] if table is None else self._settings().objections(table)
        if errors:
            raise InvalidDataError(errors)

    @contextmanager
    def _booked(
        self, fit: Fit, names: tuple[bool, pd.Index], *, goes_on: bool = False
    ) -> Iterator[Fit]:
        """A fit, while one thread has the object to itself.

        What it charges stays on the books. If it fails, its answers are kept, and all else is as
        it was. One that ``goes_on`` has been warned of before.
        """
        with self._lock:
            begun = fit.books.ledger
            if not goes_on and self._ledger is not None:
                self._warn_of_refit(self._ledger.followed_by(begun))
            try:
                yield fit
                self._unfinished = None
            except BaseException as error:
                is_of_use = fit.curator is not None or (fit.has_discovered and not goes_on)
                if fit.books.ledger.mu_squared and is_of_use:
                    self._unfinished = Unfinished.of(fit, names)
                    note_on(error, self._unfinished.remedy())
                raise
            finally:
                self._ledger = booked(self._ledger, begun, fit.books.ledger)

    def _warn_of_refit(self, composed: PrivacyLedger) -> None:
        kept = " One failed after it had paid: finish() makes use of its answers instead."
        warnings.warn(
            f"This synthesizer was fitted before. Together the fits spend epsilon "
            f"{composed.epsilon:.4g} at delta {composed.delta:g} on the people in the table."
            f"{kept if self._unfinished is not None else ''}",
            stacklevel=5,
        )

    def _run(
        self,
        fit: Fit,
        names: tuple[bool, pd.Index],
        table: PrivateTable | EncodedTable | None,
        progress: Progress,
        known: Sequence[Measurement] = (),
    ) -> None:
        """Asks about a table, or without one goes on with what is known, and makes the model."""
        SYNTHESIZER_LOGGER.info(  # pyright: ignore[reportOptionalMemberAccess]
            {
                "EVENT": "Fit",
                "TIMESTAMP": datetime.datetime.now(),
                "SYNTHESIZER CLASS NAME": type(self).__name__,
                "SYNTHESIZER ID": self._synthesizer_id,
                "TOTAL NUMBER OF TABLES": 1,
                "TOTAL NUMBER OF COLUMNS": len(self._described),
            }
        )
        self._ready_generators(fit.description)
        fit.ask(table, progress, known=known)
        fitted = fit.model(progress)
        set_aside = [f"Not enforced: {reason}" for reason in fitted.refusals]
        repeated = repeated_ids(fit.description.columns, fit.description.keys)
        # What can fail has not failed: from here on the model is this fit's.
        self._warnings = (*set_aside, *fitted.advice(fit.books.ledger, repeated))
        self._model_of_table, self._dtypes = fitted, fit.description.dtypes
        self._gives_frames, self._original_columns = names
        self._fitted = True
        self._random_state_set = False
        self._fitted_date = datetime.datetime.today().strftime("%Y-%m-%d")
        self._fitted_sdv_version = version.community
        self._fitted_sdv_enterprise_version = version.enterprise

    def _speak_up(self) -> None:
        """One warning that says all of ``warnings_``, to the caller of a method that fits."""
        if self._warnings:
            warnings.warn("\n- ".join((OPENING, *self._warnings)), stacklevel=3)

    # Files

    def __getstate__(self) -> dict:
        state = {name: value for name, value in vars(self).items() if name != "_lock"}
        return {**state, "_state_version": _STATE_VERSION}

    def __setstate__(self, state: dict) -> None:
        found = state.get("_state_version")
        if found != _STATE_VERSION:
            raise VersionError(
                f"This file holds state version {found!r} of {type(self).__name__}, and "
                f"sdv-privpgd {version_of('sdv-privpgd')} reads {_STATE_VERSION}. Install the "
                f"version that wrote it: below 5 it is sdv-privpgd<0.2."
            )
        vars(self).update({k: v for k, v in state.items() if k != "_state_version"})
        self._lock = threading.RLock()
