"""What all synthesizers share: SDV's words in, our words out.

SDV's own pipeline looks at private values in more than twenty places, so none of it runs on the
table: SDV's data processor is fitted on a public frame made from the schema, and ``fit`` hands the
table's columns to the encoders alone.
"""

import datetime
import inspect
import os
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager, suppress
from copy import deepcopy
from fractions import Fraction
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sdv import version
from sdv.cag._errors import ConstraintNotMetError
from sdv.cag._utils import _validate_constraints_single_table
from sdv.errors import (
    InvalidDataError,
    InvalidDataTypeError,
    NotFittedError,
    RefitWarning,
    SynthesizerInputError,
    VersionError,
)
from sdv.metadata import Metadata
from sdv.sampling import DataFrameCondition
from sdv.single_table.base import SYNTHESIZER_LOGGER, BaseSingleTableSynthesizer

from sdv_privpgd import forecast, pipeline
from sdv_privpgd.columns.dtypes import is_whole
from sdv_privpgd.columns.encoders import encode_table
from sdv_privpgd.columns.ordered import OrderedPair, chosen, differences_of, told_apart
from sdv_privpgd.columns.scalars import has_sdtype
from sdv_privpgd.columns.schema import MODELLED, PublicDomainError, Schema, check_facts
from sdv_privpgd.constraints.repair import Predicate
from sdv_privpgd.constraints.rules import Rule, zeros_of
from sdv_privpgd.discovery.plan import discover, reserved_delta, without_domain
from sdv_privpgd.discovery.shaping import find_shapes, part_for_shapes
from sdv_privpgd.domain import Domain
from sdv_privpgd.drafting.files import plain_domain
from sdv_privpgd.drafting.template import named_by_text
from sdv_privpgd.estimate.noisy_tables import estimate_total
from sdv_privpgd.estimate.structural_zeros import Zeros
from sdv_privpgd.plugin import constraints as _constraints
from sdv_privpgd.plugin import generators as _generators
from sdv_privpgd.plugin.arguments import (
    as_one,
    bars_shown,
    check_conditions,
    check_count,
    check_flag,
    check_share,
    column_names,
    dtypes_kept,
    given_over,
    original_names,
    public_copy,
    python_s,
    refuse_several_tables,
    with_dtypes,
    without_retries,
    without_rounding,
)
from sdv_privpgd.plugin.bar import Bar
from sdv_privpgd.plugin.mismatch import mismatches
from sdv_privpgd.plugin.transformers import ColumnTransformer, transformer_for
from sdv_privpgd.plugin.unfinished import Unfinished, booked, note_on
from sdv_privpgd.privacy.accounting import check_delta, check_epsilon
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.privacy.queries import Adjacency, GroupedMarginalQuery, MarginalQuery
from sdv_privpgd.progress import Progress, Stage, expect, silent
from sdv_privpgd.report.advice import OPENING, Fitted, advice
from sdv_privpgd.report.assumed import About
from sdv_privpgd.report.privacy import plan_report, privacy_report
from sdv_privpgd.report.release import write_release_page
from sdv_privpgd.sampling.conditions import is_wanted
from sdv_privpgd.sampling.sampler import Sampler
from sdv_privpgd.sampling.unmet import why_not
from sdv_privpgd.select.strategy import Strategy
from sdv_privpgd.synthesize.engine import Engine

if TYPE_CHECKING:
    from sdv_privpgd.report.evaluation import Evaluation

# SDV's methods have no types; ours give back the kind of table that was fitted.
# pyright: reportIncompatibleMethodOverride=false

_STATE_VERSION = 4

_OF_TABLE = (
    "_discovered",
    "_doubts",
    "_dtypes",
    "_fitted_schema",
    "_gives_frames",
    "_original_columns",
    "_shapes",
)
"""What a fit keeps of its table, all of it public. It goes with the model."""

_NO_TABLE = Dataset(Domain((), ()), np.empty((0, 0), np.uint8))
"""What a curator holds before the table has codes."""


class PrivateSynthesizer(BaseSingleTableSynthesizer, ABC):
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
        self._discovered: Mapping[str, Mapping] = {}
        self._dtypes: Mapping[str, Any] = {}
        self._doubts: Mapping[str, str] = {}
        self._shapes: Mapping[str, Sequence[float]] = {}
        self._fitted_schema = Schema(())
        self._ledger: PrivacyLedger | None = None
        self._warnings: tuple[str, ...] = ()
        self._release: pipeline.Release | None = None
        self._sampler: Sampler | None = None
        self._gives_frames = False
        self._answered: Schema | None = None
        self._unfinished: Unfinished | None = None
        self._lock = threading.RLock()
        self._check_settings()
        if self.epsilon > 20:
            warnings.warn(
                f"epsilon={self.epsilon:g} promises next to nothing; 0.1 to 10 is usual.",
                stacklevel=3 if "__init__" in type(self).__dict__ else 2,
            )

    def _check_settings(self) -> None:
        """Raises ``ValueError`` for a setting that no fit can work with, and reads no row.

        All of them can be set on the object, so every fit checks them as the constructor does.
        """
        for name in (
            "public_metadata",
            "verbose",
            "enforce_min_max_values",
            "enforce_rounding",
        ):
            setattr(self, name, check_flag(name, getattr(self, name)))
        self.epsilon = check_epsilon(self.epsilon)
        self.delta = check_delta(self.delta)
        self.adjacency = Adjacency.parse(self.adjacency).value
        self.rows_per_person = check_count("rows_per_person", self.rows_per_person)
        self.discovery_share = check_share("discovery_share", self.discovery_share)
        self.num_bins = check_count("num_bins", self.num_bins)
        self.seed = check_count("seed", self.seed, least=0)
        self.public_domain = named_by_text(self.public_domain)
        # Both raise for settings that they cannot work with.
        self._strategy()
        self._engine({})
        # A domain is asked for at fit: SDV builds synthesizers before it knows their domain.
        with suppress(PublicDomainError):
            self._schema_with({})

    def _check_questions(self) -> None:
        """Raises for what no fit can ask of these columns, and for constraints that none can meet.

        Before a row is read: what is discovered has not been paid for.
        """
        self._check_settings()
        names = Schema.modelled(**self._declared())
        pipeline.require_room(self._engine({}).statistics(Domain(tuple(names), (1,) * len(names))))
        self._check_constraints()

    @abstractmethod
    def _strategy(self) -> Strategy:
        """What is measured."""

    @abstractmethod
    def _engine(self, zeros: Zeros) -> Engine:
        """What makes a model of the measurements, with nothing in cells that hold no row."""

    # What is public

    @property
    def _described(self) -> Mapping[str, Mapping]:
        """SDV's description of each column, in order."""
        return self._get_table_metadata().columns

    def _schema(self) -> Schema:
        """The modelled columns. Raises ``PublicDomainError`` where a domain is not declared."""
        return self._schema_with(self._discovered)

    def _schema_with(self, discovered: Mapping[str, Mapping]) -> Schema:
        schema = Schema.from_sdv(**self._domain(discovered), num_bins=self.num_bins)
        schema = schema.typed(self._written_dtypes())
        if not discovered:
            return schema
        return _constraints.widened(self._reject_sampling_constraints, schema, self._undeclared())

    def _ordered(self) -> list[OrderedPair]:
        """The pairs of columns whose difference is modelled."""
        pairs = _constraints.ordered_pairs(self._reject_sampling_constraints)
        kept = set(self._kept_columns())
        return chosen(pair for pair in pairs if not {pair.low, pair.high} & kept)

    def _kept_columns(self) -> Collection[str]:
        """Columns of which rows must have what the model says."""
        return frozenset()

    def _with_differences(
        self, schema: Schema, shapes: Mapping[str, Sequence[float]] | None
    ) -> Schema:
        """The columns and their differences: all that has codes."""
        pairs = self._ordered()
        named = {name for pair in pairs for name in (pair.low, pair.high)}
        columns = tuple(
            told_apart(column) if column.name in named else column for column in schema.columns
        )
        found = differences_of(pairs, columns, num_bins=self.num_bins, shapes=shapes)
        return Schema(columns, found)

    def _written_dtypes(self) -> Mapping[str, Any]:
        """The dtypes of columns that are written in them."""
        if self.enforce_rounding:
            return self._dtypes
        return {name: dtype for name, dtype in self._dtypes.items() if not is_whole(dtype)}

    def _declared_schema(self) -> Schema:
        """The modelled columns whose domain is declared."""
        known = self._domain({})
        lacking = without_domain(Schema.undeclared(**known, num_bins=self.num_bins))
        for key in ("columns", "public_domain"):
            known[key] = {name: facts for name, facts in known[key].items() if name not in lacking}
        return Schema.from_sdv(**known, num_bins=self.num_bins)

    def _domain(self, discovered: Mapping[str, Mapping]) -> dict[str, Any]:
        """What is known of the columns, declared or discovered, as ``Schema`` takes it."""
        known = self._declared()
        described, domain = with_dtypes(known["columns"], self._dtypes), known["public_domain"]
        check_facts(domain)
        domain = _constraints.declared(self._reject_sampling_constraints, described, domain)
        if discovered:
            # Discovery has kept what was declared, but for a format that cannot write the dates.
            domain = domain | {
                name: _constraints.rounded_out({**domain.get(name, {}), **facts})
                for name, facts in discovered.items()
            }
        if not self.enforce_rounding:
            described, domain = without_rounding(described), without_rounding(domain)
        return {**known, "columns": described, "public_domain": domain}

    def _facts(self) -> dict[str, dict]:
        """What is declared of each modelled column, in SDV's words."""
        known = self._domain({})
        columns, domain = known["columns"], known["public_domain"]
        return {name: {**columns[name], **domain.get(name, {})} for name in self._modelled()}

    def _declared(self) -> dict[str, Any]:
        """What the user said of the columns, as ``Schema`` takes it."""
        return {
            "columns": self._described,
            "keys": self._get_table_metadata()._get_primary_and_alternate_keys(),
            "public_domain": {} if self.public_domain is None else self.public_domain,
        }

    def _transformers(self) -> dict[str, ColumnTransformer]:
        return {column.name: transformer_for(column) for column in self._schema().columns}

    def _known_transformers(self) -> dict[str, ColumnTransformer]:
        """The transformers, with stand-ins for columns that discovery has yet to look into."""
        try:
            return self._transformers()
        except PublicDomainError:
            known = {each.name: transformer_for(each) for each in self._declared_schema().columns}
            return _generators.with_stand_ins(known, self._described, self._modelled())

    def _modelled(self) -> list[str]:
        """The columns that are measured; the others are generated."""
        return Schema.modelled(**self._declared())

    def auto_assign_transformers(self, data) -> None:
        """Assigns a transformer to each column from public facts; of the data it reads names."""
        dtypes = self._kept(self._open(data))
        if not self.discovery_share:
            self._schema()  # what is not declared cannot be found later
        known = self._known_transformers()
        _generators.assign(self._data_processor, self._described, known, dtypes)

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
        modelled = self._modelled()
        for name, transformer in column_name_to_transformer.items():
            if name in modelled:
                raise SynthesizerInputError(
                    f"Column '{name}' is modelled: its transformer is built from its public "
                    "domain. Change public_domain or num_bins instead."
                )
            _generators.check_generator(name, transformer)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RefitWarning)  # a refit would spend again, for nothing
            super().update_transformers(column_name_to_transformer, table_name)
        if self._fitted:
            _generators.fit(
                self._data_processor, self._described, self._transformers(), self._dtypes
            )
            self.reset_sampling()

    # Constraints: declared, so public; the private table is never checked against them

    def add_constraints(self, constraints) -> None:
        """Adds constraints of ``sdv.cag`` that all sampled rows will meet after the next fit.

        ``Inequality``, ``Range``, ``FixedIncrements``, ``OneHotEncoding``, subclasses of
        ``SingleTableProgrammableConstraint`` whose ``is_valid`` decides row by row, and
        ``sdv_privpgd.FixedCombinations``. They are never fitted: rows of the private table that
        break them are neither found nor reported.

        Raises:
            SynthesizerInputError: For a constraint that would have to be learned from the table,
                that names generated columns, or that the declared values cannot meet.
            ConstraintNotMetError: SDV's, for one that does not fit the metadata.
        """
        modelled = self._modelled()
        added = [
            _constraints.taken(constraint, self.metadata, modelled)
            for constraint in _validate_constraints_single_table(constraints, False)
        ]
        if self._fitted:
            self._warn_of_cost("For these constraints to take effect the synthesizer has to be")
        before = self._reject_sampling_constraints
        # SDV's list of constraints that change neither the data nor the metadata.
        self._reject_sampling_constraints = [*before, *deepcopy(added)]
        try:
            self._check_constraints()
            with suppress(PublicDomainError):
                self._limits(self._schema())
        except BaseException:
            self._reject_sampling_constraints = before
            raise

    def _warn_of_cost(self, why: str) -> None:
        """Says what SDV advises without a word on the cost."""
        warnings.warn(
            f"{why} fitted again, which spends epsilon {self.epsilon:g} at delta {self.delta:g} "
            f"once more on the same people. So far {self.ledger.spent():.4g} was spent.",
            RefitWarning,
            stacklevel=3,
        )

    def _check_constraints(self) -> None:
        """Raises ``SynthesizerInputError`` for a constraint that no discovery could make possible.

        Whatever is not declared may turn out to be of any range, or of any categories.
        """
        constraints, declared = self._reject_sampling_constraints, self._declared_schema()
        lacking = Schema.undeclared(**self._domain({}), num_bins=self.num_bins)
        _constraints.rules_of(constraints, declared)
        _constraints.require_possible(constraints, declared, lacking)

    def validate_constraints(self, synthetic_data) -> None:
        """Checks synthetic rows. Raises SDV's ``ConstraintNotMetError`` with the rows' numbers."""
        for constraint in self._reject_sampling_constraints:
            wrong = ~_constraints.valid_rows(constraint, synthetic_data, self.metadata)
            if wrong.any():
                raise ConstraintNotMetError(
                    f"{constraint!r} is not met by {wrong.sum()} rows; the first of them are "
                    f"{np.flatnonzero(wrong)[:5].tolist()}."
                )

    def _limits(self, schema: Schema) -> tuple[Sequence[Rule], Sequence[Predicate]]:
        """What the constraints say of cells, and of rows."""
        constraints = self._reject_sampling_constraints
        return _constraints.rules_of(constraints, schema), _constraints.checks_of(
            constraints, schema
        )

    def _limits_found(
        self, schema: Schema
    ) -> tuple[Sequence[Rule], Sequence[Predicate], list[str]]:
        """What the constraints say that the discovered domain can meet; sentences on the others.

        Those that nothing discovered could meet are refused before: ``_check_questions``.
        """
        constraints, refusals = _constraints.met_by(self._reject_sampling_constraints, schema)
        rules = _constraints.rules_of(constraints, schema)
        checks = _constraints.checks_of(constraints, schema)
        return rules, checks, [f"Not enforced: {reason}" for reason in refusals]

    @staticmethod
    def _zeros(schema: Schema, rules: Sequence[Rule]) -> Zeros:
        """Which cells of the attributes' tables no row is in."""
        return zeros_of([*rules, *schema.differences], schema.domain())

    def _validate_transform_constraints(self, table_data, enforce_constraint_fitting=False):
        """The table as it is: SDV would fit the constraints on it."""
        del enforce_constraint_fitting
        return table_data

    # Fitting: the only methods that are handed the private table

    def validate(self, data) -> None:
        """Checks the kind of the data, its column names and dtypes, and nothing of its values."""
        self._open(data)

    def _open(self, data) -> dict[str, pd.Series]:
        """The table's columns under the metadata's names, in the metadata's order. Private."""
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
        names = column_names(table)
        expected = list(self._described)
        errors = [
            f"The columns {sorted(map(str, wrong))} are {what}."
            for what, wrong in (
                ("not present in the metadata", [n for n in names if n not in expected]),
                ("missing in the data", [n for n in expected if n not in names]),
                ("there more than once", {n for n in names if names.count(n) > 1}),
            )
            if wrong
        ]
        if errors:
            raise InvalidDataError(errors)
        columns = {name: table.iloc[:, names.index(name)] for name in expected}
        wordless = {
            name: str(column.dtype)
            for name, column in columns.items()
            if self._described[name]["sdtype"] in MODELLED and not has_sdtype(column.dtype)
        }
        if wordless:
            raise InvalidDataError(
                [
                    f"SDV has no sdtype for the dtypes of the columns {wordless}. Convert them: "
                    "timedeltas to numbers with .dt.total_seconds(), others to text or numbers."
                ]
            )
        unlike = mismatches({name: each.dtype for name, each in columns.items()}, self._facts())
        if unlike:
            raise InvalidDataError(unlike)
        return columns

    def _kept(self, columns: Mapping[str, pd.Series]) -> dict[str, Any]:
        """The dtypes that rows come back in, because no cell chose them. Public."""
        return dtypes_kept(columns, self._described, Schema.modelled(**self._declared()))

    def fit(self, data, *, weights=None) -> None:
        """Fits the synthesizer to a DataFrame, or to SDV's ``{'table': DataFrame}``.

        Spends ``epsilon`` at ``delta``, anew at each call; a second call warns with the composed
        total. Cells outside the declared domain are clipped, or count as missing, silently.

        Raises:
            PublicDomainError: Before a row is read, where a modelled column has no domain and
                ``discovery_share`` is 0.
            InvalidDataError: If column names do not match the metadata, or for timedeltas and
                other dtypes without an sdtype.
            PrivacyBudgetError: Before a row is read, if the plan does not fit the budget.
        """
        if weights is not None:
            raise SynthesizerInputError(
                "Row weights are not supported: a row's influence would have no bound. Fit the "
                "unweighted rows, with the weight as a column if it matters."
            )
        self._check_questions()
        columns = self._open(data)
        with self._writing(self._kept(columns)):
            undeclared = self._undeclared()
            unknown = without_domain(undeclared)
            if unknown:
                warnings.warn(
                    f"The ranges or categories of {unknown!r} are not declared: "
                    f"{self.discovery_share:.3g} of the budget finds them privately. Declare them "
                    "with public_domain={column: {...}} to save it, or pass public_metadata=True "
                    "if the metadata has them from documentation and not from the data.",
                    stacklevel=2,
                )
            with (
                self._shown() as progress,
                self._curator(reserved_delta(undeclared, self.delta)) as curator,
            ):
                num_rows = self._known_rows(columns.values())
                self._begin(progress, lambda: self._foretold(undeclared, num_rows))
                table = data[self._table_name] if isinstance(data, dict) else data
                self._gives_frames = not isinstance(data, dict)
                self._original_columns = original_names(table, list(self._described))
                found = self._found(columns, undeclared, curator, progress)
                self._discovered, self._doubts, self._shapes = found
                expect(progress, lambda: self._foretold({}, num_rows))
                self._run(curator, self._encoded(columns, progress), progress)
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
            self._check_questions()
            columns = None if data is None else self._open(data)
            with self._writing(kept.of_table["_dtypes"]):
                schema = self._schema_with(kept.of_table["_discovered"])
                kept.require(
                    self._with_differences(schema, kept.of_table["_shapes"]),
                    with_data=data is not None,
                )
                with self._shown() as progress, self._curator(begun=kept.ledger) as curator:
                    vars(self).update(kept.of_table)
                    num_rows = self._known_rows([] if columns is None else columns.values())
                    self._begin(progress, lambda: self._foretold({}, num_rows))
                    codes = None if columns is None else self._encoded(columns, progress)
                    self._run(curator, codes, progress, kept.answers)
            self._speak_up()

    @contextmanager
    def _writing(self, dtypes: Mapping[str, Any]) -> Iterator[None]:
        """While a fit is made, and after it unless it fails, rows have these dtypes."""
        with self._lock:
            before, self._dtypes = self._dtypes, dtypes
            try:
                yield
            except BaseException:
                self._dtypes = before  # an earlier model's codes go with them
                raise

    def _found(
        self,
        columns: Mapping[str, pd.Series],
        undeclared: Mapping[str, Mapping],
        curator: Curator,
        progress: Progress = silent,
    ) -> tuple[Mapping[str, Mapping], Mapping[str, str], Mapping[str, Sequence[float]]]:
        """What was not declared, what is in doubt of it, and the shapes of differences. Public."""
        apart = part_for_shapes(len(self._ordered()), len(Schema.modelled(**self._declared())))
        share = self._share_of(undeclared) * (1 - apart)
        discovered, doubts = discover(columns, undeclared, curator, share, progress=progress)
        fine = self._with_differences(self._schema_with(discovered), None).differences
        budget = curator.ledger.budget * Fraction(self.discovery_share) * apart
        return discovered, doubts, find_shapes(columns, fine, curator, budget, progress=progress)

    def plan(self, num_rows: int) -> str:
        """What a fit to so many rows would ask, and how loud its answers would be. Public.

        No table is read: the questions are put to rows of missing values. What depends on answers
        (the choices of an adaptive strategy, domains that are discovered) will be others.
        """
        check_count("num_rows", num_rows, least=0)
        self._check_questions()
        columns = dict.fromkeys(self._described, pd.Series([None] * num_rows, dtype=object))
        undeclared = self._undeclared()
        curator = Curator(_NO_TABLE, self._opened(reserved_delta(undeclared, self.delta)))
        discovered, _, shapes = self._found(columns, undeclared, curator)
        schema = self._with_differences(self._schema_with(discovered), shapes)
        if schema.columns:
            curator.recode(Dataset(schema.domain(), encode_table(columns, schema)))
            met, _ = _constraints.met_by(self._reject_sampling_constraints, schema)
            zeros = self._zeros(schema, _constraints.rules_of(met, schema))
            pipeline.ask(curator, self._strategy(), self._engine(zeros))
        tables = [
            each
            for each in curator.measurements
            if isinstance(each.query, MarginalQuery | GroupedMarginalQuery)
        ]
        return plan_report(curator.ledger, num_rows, tables)

    def preprocess(self, data) -> dict[str, pd.DataFrame]:
        """The table as codes, one column an attribute. As private as the table itself.

        Attributes are the modelled columns, and differences of those that are in order.

        The frame is read-only, so that ``fit_processed_data`` needs no copy: change a copy of it.
        """
        columns = self._open(data)
        if not self._fitted:  # a model's codes go with the dtypes of its own table
            self._dtypes = self._kept(columns)
        return self._encoded(columns, silent)

    def _encoded(
        self, columns: Mapping[str, pd.Series], progress: Progress
    ) -> dict[str, pd.DataFrame]:
        """The codes of the private columns."""
        schema = self._with_differences(self._schema(), self._shapes)
        names = pd.Index(schema.domain().attributes)
        codes = encode_table(columns, schema, progress)
        return {self._table_name: pd.DataFrame(codes, columns=names, copy=False)}

    def fit_processed_data(self, processed_data) -> None:
        """Fits to what ``preprocess`` gave. Spends ``epsilon`` at ``delta``, anew at each call."""
        self._check_questions()
        with self._shown() as progress, self._curator() as curator:
            num_rows = self._known_rows([processed_data[self._table_name]])
            self._begin(progress, lambda: self._foretold({}, num_rows))
            self._run(curator, processed_data, progress)
        self._speak_up()

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

    def _known_rows(self, columns: Collection[Sized]) -> int:
        """The number of rows where it is public, else a usual one: a bar must not tell it."""
        if Adjacency.parse(self.adjacency) is Adjacency.ADD_REMOVE:
            return forecast.USUAL_ROWS
        return len(next(iter(columns), ()))

    def _foretold(self, undeclared: Mapping[str, Mapping], num_rows: int) -> list[Stage]:
        """The stages of a fit, where these columns are still to be looked into."""
        lacking = without_domain(undeclared)
        known = self._declared_schema() if lacking else self._schema()
        sizes = {column.name: column.size for column in known.columns}
        for name in lacking:
            sizes[name] = forecast.usual_size(undeclared[name])
        domain = Domain(tuple(sizes), tuple(sizes.values()))
        strategy, engine = self._strategy(), self._engine({})
        cliques = forecast.cliques_of(domain, strategy)
        return [
            *forecast.looking(num_rows, len(undeclared)),
            *forecast.encoding(num_rows, [self._described[name]["sdtype"] for name in sizes]),
            *forecast.asking(domain, num_rows, strategy),
            *forecast.fitting(domain, num_rows, cliques, engine),
        ]

    def _undeclared(self) -> dict[str, dict]:
        """What is known of each column whose domain is to be found privately."""
        if not self.discovery_share:
            return {}
        return Schema.undeclared(**self._domain({}), num_bins=self.num_bins)

    def _share_of(self, undeclared: Mapping[str, Mapping]) -> Fraction:
        """The part of the budget for discovery: each column that is looked into has its own."""
        modelled = Schema.modelled(**self._declared())
        asked = sum(self._described[name]["sdtype"] != "boolean" for name in modelled)
        return Fraction(self.discovery_share) * Fraction(len(undeclared), max(asked, 1))

    def _opened(self, reserved: Fraction = Fraction(0)) -> PrivacyLedger:
        """The empty books of a fit."""
        adjacency = Adjacency.parse(self.adjacency)
        return PrivacyLedger.open(
            self.epsilon, self.delta, adjacency, self.rows_per_person, reserved=reserved
        )

    @contextmanager
    def _curator(
        self, reserved: Fraction = Fraction(0), *, begun: PrivacyLedger | None = None
    ) -> Iterator[Curator]:
        """Who answers for a table with no attribute yet, to one thread at a time.

        What he charged stays on the books; if what follows fails, his answers are kept and all
        else is as it was. With the books of a fit that had ``begun``, he goes on with them.
        """
        with self._lock:
            ledger = self._opened(reserved) if begun is None else begun
            if begun is None and self._ledger is not None:
                self._warn_of_refit(self._ledger.followed_by(ledger))
            curator = Curator(_NO_TABLE, ledger)
            before, self._answered = {name: vars(self)[name] for name in _OF_TABLE}, None
            try:
                yield curator
                self._unfinished = None
            except BaseException as error:
                if self._answered is not None or begun is None:
                    is_new = self._discovered is not before["_discovered"]
                    self._keep(curator, error, is_new=is_new)
                vars(self).update(before)
                raise
            finally:
                self._answered = None
                self._ledger = booked(self._ledger, ledger, curator.ledger)

    def _warn_of_refit(self, composed: PrivacyLedger) -> None:
        kept = " One failed after it had paid: finish() makes use of its answers instead."
        warnings.warn(
            f"This synthesizer was fitted before. Together the fits spend epsilon "
            f"{composed.epsilon:.4g} at delta {composed.delta:g} on the people in the table."
            f"{kept if self._unfinished is not None else ''}",
            stacklevel=5,
        )

    def _keep(self, curator: Curator, error: BaseException, *, is_new: bool) -> None:
        """Keeps what a failed fit has paid for, if it is of use to ``finish``, and says so."""
        if not (curator.ledger.mu_squared and (is_new or self._answered is not None)):
            return
        self._unfinished = Unfinished(
            of_table={name: vars(self)[name] for name in _OF_TABLE},
            ledger=curator.ledger,
            schema=self._answered,
            answers=() if self._answered is None else curator.measurements,
        )
        note_on(error, self._unfinished.remedy())

    def _run(
        self,
        curator: Curator,
        processed_data,
        progress: Progress,
        known: Sequence[Measurement] = (),
    ) -> None:
        """Runs the pipeline on the codes of the table, or without it on what is known."""
        schema = self._with_differences(self._schema(), self._shapes)
        rules, checks, set_aside = self._limits_found(schema)
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
        _generators.fit(self._data_processor, self._described, self._transformers(), self._dtypes)
        if schema.columns:
            engine = self._engine(self._zeros(schema, rules))
            curator.recode(self._coded(schema, processed_data), known=known)
            self._answered = schema
            if processed_data is not None:
                pipeline.ask(curator, self._strategy(), engine, progress=progress)
            release = pipeline.fit(pipeline.Answers.of(curator, engine), engine, progress=progress)
            # A difference of which nothing was asked is not one that the model knows.
            asked = {
                name
                for each in curator.measurements
                if isinstance(each.query, MarginalQuery | GroupedMarginalQuery)
                for name in each.query.clique
            }
            known_differences = [each for each in schema.differences if each.name in asked]
            sampler = Sampler(
                schema,
                release.model,
                self.seed,
                held=release.held,
                rules=rules,
                predicates=checks,
                differences=known_differences,
            )
            self._release, self._sampler = release, sampler
        self._fitted_schema = schema
        self._warnings = (*set_aside, *self._advice(schema, curator.ledger))
        self._fitted = True
        self._random_state_set = False
        self._fitted_date = datetime.datetime.today().strftime("%Y-%m-%d")
        self._fitted_sdv_version = version.community
        self._fitted_sdv_enterprise_version = version.enterprise

    def _advice(self, schema: Schema, ledger: PrivacyLedger) -> tuple[str, ...]:
        """What is to be said of a fit with these books."""
        keys = self._get_table_metadata()._get_primary_and_alternate_keys()
        return advice(
            Fitted(
                schema=schema,
                release=self._release,
                ledger=ledger,
                declared=self._facts(),
                doubts=self._doubts,
                repeated_ids=tuple(
                    name
                    for name, facts in self._described.items()
                    if facts["sdtype"] == "id" and name not in keys
                ),
            )
        )

    def _speak_up(self) -> None:
        """One warning that says all of ``warnings_``, to the caller of a method that fits."""
        if self._warnings:
            warnings.warn("\n- ".join((OPENING, *self._warnings)), stacklevel=3)

    def _coded(self, schema: Schema, processed_data) -> Dataset:
        """The table for the curator; where there is none, one that nothing is asked of."""
        names = list(schema.domain().attributes)
        if processed_data is None:
            return Dataset(schema.domain(), np.empty((0, len(names)), np.uint8))
        table = processed_data[self._table_name]
        codes = (table if list(table.columns) == names else table[names]).to_numpy()
        return Dataset(schema.domain(), codes)

    # Sampling: post-processing, free

    def reset_sampling(self) -> None:
        """Starts the sequence of sampled rows again."""
        _generators.restart(self._data_processor)
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
        generated = _generators.generate(self._data_processor, num_rows, missing, self._dtypes)
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

    # What people look at

    def report(self, path: str | Path = "report.html") -> Path:
        """Writes a page for the browser and returns where it lies. Public.

        It says what was spent, how loud the noise is and how well the synthetic rows fit the
        noisy answers. It is one file and asks for nothing over a network.
        """
        self._require_fitted()
        about = About(
            table=str(self._table_name),
            date=str(self._fitted_date),
            strategy=self._strategy(),
            engine=self._engine({}),
            columns=self._described,
            keys=self._declared()["keys"],
            declared=self._domain({})["public_domain"],
            discovered=self._discovered,
            settings={
                name: value
                for name, value in self.get_parameters().items()
                if name not in ("public_domain", "strategy")
            },
        )
        return write_release_page(
            self._release, self.ledger, self._fitted_schema, about, path, notes=self._warnings
        )

    def evaluate(self, real_data, *, path: str | Path = "report_not_private.html") -> "Evaluation":
        """Compares as many synthetic rows with the real table, and writes a page. Not private.

        No budget covers the page, what is returned, or settings that are chosen by them. The rows
        are the first of the sequence; where ``sample`` goes on does not change.
        """
        # Imported late: only this comparison needs scikit-learn and SDMetrics.
        from sdv_privpgd.report.evaluation import compare

        self._require_fitted()
        schema, opened = self._schema(), self._open(real_data)
        real = {column.name: opened[column.name] for column in schema.columns}
        synthetic = {}
        if self._sampler is not None and real:
            synthetic = self._sampler.first(len(next(iter(real.values()))))
        return compare(schema, real, synthetic, path=path)

    def _require_fitted(self) -> None:
        if not self._fitted:
            raise NotFittedError("There is nothing to show yet. Please fit your synthesizer first.")

    def discovered_domain(self) -> dict[str, dict]:
        """The domain of the last fit: what was declared, and what was found privately. Public.

        It has the form that ``public_domain`` takes: given to another synthesizer of the same
        metadata, nothing has to be found again. ``write_domain`` keeps it in a file. ``cut_points``
        and ``frequencies`` say where the cells of a column begin and how full they are.
        """
        self._require_fitted()
        found = plain_domain(self._domain(self._discovered)["public_domain"])
        return {name: found[name] for name in self._described if name in found}

    @property
    def warnings_(self) -> tuple[str, ...]:
        """What is worth a look before the rows of the last fit are used, a sentence each. Public.

        Columns that are all missing, all ``other``, constant or cut off at a bound, rows that are
        too few, a delta that is too large: what noisy answers and settings say of it. Empty where
        nothing was noticed, and before a fit.
        """
        return self._warnings

    # What was spent

    @property
    def ledger(self) -> PrivacyLedger:
        """Every charge of every fit of this object, exact. Public."""
        return self._opened() if self._ledger is None else self._ledger

    @property
    def estimated_num_rows(self) -> int | None:
        """The number of rows, as far as it is known: noisy where it is private. Public.

        ``None`` where no column is modelled, so that nothing was measured.
        """
        self._require_fitted()
        if self._release is None:
            return None
        return round(estimate_total(self._release.domain, self._release.measurements).value)

    def privacy_report(self) -> str:
        """What was spent, on what and under which adjacency, in words. Public.

        ``warnings_`` are at its end.
        """
        if not self._warnings:
            return privacy_report(self.ledger)
        said = [fill(f"- {each}", 98, subsequent_indent="  ") for each in self._warnings]
        return "\n".join([privacy_report(self.ledger), "", OPENING, *said])

    def get_info(self) -> dict:
        """SDV's facts about the synthesizer, and the epsilon and delta that its fits spent."""
        ledger = self.ledger
        return {
            **super().get_info(),
            "adjacency": self.adjacency,
            "epsilon_spent": ledger.spent(),
            "delta_spent": ledger.delta if ledger.charges else 0.0,
        }

    def __getstate__(self) -> dict:
        state = {name: value for name, value in vars(self).items() if name != "_lock"}
        return {**state, "_state_version": _STATE_VERSION}

    def __setstate__(self, state: dict) -> None:
        found = state.get("_state_version")
        if found != _STATE_VERSION:
            raise VersionError(
                f"This file holds state version {found!r} of {type(self).__name__}, and this "
                f"version of sdv-privpgd reads {_STATE_VERSION}. Install the version that wrote it."
            )
        vars(self).update({k: v for k, v in state.items() if k != "_state_version"})
        self._lock = threading.RLock()
