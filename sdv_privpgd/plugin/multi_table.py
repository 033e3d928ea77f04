"""The synthesizer of tables that belong together: SDV's words in, our words out.

SDV's own pipeline reads keys and rows in many places, and says what it finds in exceptions and
logs. None of it runs on the tables: ``fit`` hands them to ``sdv_privpgd.fitting`` alone.
"""

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from importlib import import_module
from itertools import filterfalse
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pandas as pd
from sdv.cag import ProgrammableConstraint
from sdv.cag._utils import _validate_constraints
from sdv.errors import InvalidDataError, NotFittedError, RefitWarning, SynthesizerInputError
from sdv.metadata import Metadata
from sdv.multi_table.base import SYNTHESIZER_LOGGER, BaseMultiTableSynthesizer

from sdv_privpgd.audit.families import audited_tables
from sdv_privpgd.base.progress import shown
from sdv_privpgd.base.words import grouped
from sdv_privpgd.columns.links import read_tables, tree_of
from sdv_privpgd.columns.vocabulary import MODELLED, named_by_text
from sdv_privpgd.fitting.families import FittedTables
from sdv_privpgd.fitting.fates import tables_report
from sdv_privpgd.fitting.linked_tables import RunningTables
from sdv_privpgd.fitting.plan import planned_tables
from sdv_privpgd.fitting.tables_settings import TablesSettings
from sdv_privpgd.inference.question_list import Question
from sdv_privpgd.methods.method import Method
from sdv_privpgd.plugin import generators
from sdv_privpgd.plugin.arguments import (
    as_invalid_data,
    log_event,
    public_facts,
    refit_warning,
    stamp_fitted,
    translated,
    valid_rows,
)
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.report.page import Report
from sdv_privpgd.report.warnings import warn_after
from sdv_privpgd.sampling.families import with_parents

# SDV's methods have no types.
# pyright: reportIncompatibleMethodOverride=false


class PrivPGDMultiTableSynthesizer(BaseMultiTableSynthesizer):
    """Differentially private synthetic tables that belong together.

    Everything that the fitted object exposes is (epsilon, delta)-differentially private for one row
    of the root table with all rows that lead to it: whether they are there. The root is the table
    that leads to no other one, such as households, patients or accounts.

    Args:
        metadata: SDV metadata of the tables, whose relationships make one tree. What it says of
            names, sdtypes, keys and formats is taken as public; ranges and categories in it are
            dropped unless ``public_metadata`` is set.
        epsilon: What each ``fit`` may spend on all tables together.
        delta: Choose it far below 1 / (number of rows of the root).
        max_children: How many rows of a table are used of each row that they lead to: one number,
            or one for each such table. It is public. A ``sequence_index`` of its metadata, of a
            declared range, puts those in order.
        starts: By table in order, the column of its parent at which that order begins.
        counts: By table, the column of its parent that says how many of its rows there are.
        numbers: By table, its column that numbers the rows of one parent, as ``Link.numbered``.
        public_domain: By table what is public of columns, as ``PrivPGDSynthesizer`` takes it.
        public_metadata: Whether the ranges in the metadata are public knowledge.
        public_tables: Tables that are public, such as one of districts: they come back as they are,
            and what leads to them is modelled as a category.
        discovery_share: Part of the budget, at most, for what is not declared.
        method: What is measured of each table, as ``fit_tables`` takes it.
        questions: By table what it will be asked, as ``fit_tables`` takes it.
        seed: Of engines and rows, never of the noise.
        verbose: Whether a bar shows how far a fit is.
        locales: Locales of generated personal data; ``None`` is ``['en_US']``.

    Raises:
        ValueError: For an argument outside its range.
        SynthesizerInputError: For relationships that make no tree.

    >>> import pandas as pd
    >>> from sdv.metadata import Metadata
    >>> ids, yes = {"sdtype": "id"}, {"sdtype": "boolean"}
    >>> homes = {"primary_key": "home", "columns": {"home": ids, "rents": yes}}
    >>> tables = {"homes": homes, "people": {"columns": {"home": ids, "ill": yes}}}
    >>> link = {"parent_table_name": "homes", "child_table_name": "people"}
    >>> link |= {"parent_primary_key": "home", "child_foreign_key": "home"}
    >>> metadata = Metadata.load_from_dict({"tables": tables, "relationships": [link]})
    >>> synthesizer = PrivPGDMultiTableSynthesizer(metadata, 5.0, 1e-6, max_children=2)
    >>> rents = pd.DataFrame({"home": range(800), "rents": [True, False] * 400})
    >>> ill = pd.DataFrame({"home": [*range(800)] * 2, "ill": [True, True, False, False] * 400})
    >>> synthesizer.fit({"homes": rents, "people": ill})
    >>> rows = synthesizer.sample(100)
    >>> len(rows["homes"]), list(rows["people"].columns)
    (100, ['home', 'ill'])
    """

    def __init__(
        self,
        metadata: Metadata,
        epsilon: float,
        delta: float,
        *,
        max_children: int | Mapping[str, int],
        starts: Mapping[str, str] | None = None,
        counts: Mapping[str, str] | None = None,
        numbers: Mapping[str, str] | None = None,
        public_domain: Mapping[str, Mapping[str, Mapping]] | None = None,
        public_metadata: bool = False,
        public_tables: Mapping[str, pd.DataFrame] | None = None,
        discovery_share: float = 0.2,
        method: Method | str = "privpgd",
        questions: Mapping[str, Sequence[Question]] | None = None,
        seed: int = 0,
        verbose: bool = False,
        locales: Sequence[str] | str | None = None,
    ) -> None:
        self.epsilon, self.delta, self.max_children = epsilon, delta, deepcopy(max_children)
        self.starts, self.counts, self.numbers = map(deepcopy, (starts, counts, numbers))
        self.public_domain = deepcopy(public_domain)
        self.public_metadata = public_metadata
        self.public_tables = deepcopy(public_tables)
        self.discovery_share, self.method, self.seed = discovery_share, method, seed
        self.questions = questions
        domains = public_domain if isinstance(public_domain, Mapping) else {}
        facts = public_facts(metadata, domains.get, keep_ranges=public_metadata is True)
        super().__init__(Metadata.load_from_dict(facts), locales or ["en_US"])
        self.locales, self.verbose = locales, verbose
        self._own_constraints: list[Any] = []
        self._fitted_tables: FittedTables | None = None
        self._ledger: PrivacyLedger | None = None
        self._table_sizes: dict[str, int] = {}
        self._generated: dict[str, tuple[Any, list[str], Mapping[str, Any]]] = {}
        for sentence in self._settings().absurd():
            warnings.warn(sentence, stacklevel=2)

    @property
    def ledger(self) -> PrivacyLedger:
        """Every charge of every fit of this object, exact. Public."""
        return self._settings().ledger if self._ledger is None else self._ledger

    def __repr__(self) -> str:
        """What matters of it in a line: before a fit what it may spend, after it what it is of."""
        what = f"{len(self.metadata.tables)} tables, epsilon {self.epsilon:g}, not fitted"
        if self._fitted_tables is not None:
            what = repr(self.fitted_tables)
        return f"{type(self).__name__}({what})"

    @property
    def fitted_tables(self) -> FittedTables:
        """What ``fit_tables`` returns, with the ledger of all fits. Public."""
        if self._fitted_tables is None:
            raise NotFittedError("There is nothing to show yet. Please fit your synthesizer first.")
        return replace(self._fitted_tables, ledger=self.ledger)

    @property
    def warnings_(self) -> tuple[str, ...]:
        """What is worth a look before the rows are used, a sentence each."""
        return self.fitted_tables.warnings

    def fit(
        self, data, *, prior: Any = None, allow_lost: Mapping[str, Collection[str]] | None = None
    ) -> None:
        """Fits the synthesizer to a dictionary of tables, each as ``fit_tables`` takes it.

        Spends ``epsilon`` at ``delta``, anew at each call.

        Args:
            data: The tables that are not public, by name.
            prior: As ``fit_tables`` takes it, or a fitted synthesizer of such tables.
            allow_lost: By table, columns for which it does not stop, whatever it would lose.

        Raises:
            InvalidDataError: If names of tables or columns do not match the metadata.
            DomainMismatchError: If a column's cells are not as declared. What was spent is spent.
        """
        linked = self._settings()
        running = self._running(data, linked, allow_lost or {}, prior)
        if self._ledger is not None:
            together = self._ledger.followed_by(linked.ledger)  # refuses before a row is read
            warnings.warn(
                f"A fit spends epsilon {self.epsilon:g} once more on the same people. Together the "
                f"fits may spend {together.epsilon:.4g}.",
                RefitWarning,
                stacklevel=2,
            )
        before = running.told_before
        if said := [each for each in before if each not in linked.absurd()]:
            warnings.warn(" ".join(said), stacklevel=2)
        numbers = {"TOTAL NUMBER OF TABLES": len(linked.tree.tables)}
        numbers["TOTAL NUMBER OF COLUMNS"] = sum(map(len, linked.columns.values()))
        log_event(self, "Fit", numbers, logger=SYNTHESIZER_LOGGER)
        for name, own in running.leant.items():  # what cannot be made up fails before it spends
            described = self.metadata.tables[name].columns
            known = [n for n in described if described[n]["sdtype"] in MODELLED]
            processor = self._table_synthesizers[name]._data_processor
            generators.fit(processor, described, known, own.dtypes)
        try:
            with shown("PrivPGDMultiTable", self.verbose) as progress:
                fitted = running.run(progress)
        finally:
            if running.ledger.charges:
                so_far, now = self._ledger, running.ledger
                self._ledger = now if so_far is None else so_far.followed_by(now)
        self._take(fitted, data)
        warn_after(fitted.warnings, but=before)

    def validate(self, data) -> None:
        """Checks names of tables and columns, and nothing of their rows."""
        self._running(data, self._settings(), {})

    def check(self, data) -> Report:
        """What becomes of each table's columns in a fit, before anything is spent.

        No cell is read. ``to_dict()["stops"]`` has what stops a fit.
        """
        return tables_report(self._settings(), self._private(data))

    def plan(self, num_rows: int) -> Report:
        """What a fit to so many rows of the root would ask, and how large its errors would be."""
        return planned_tables(self._settings(), num_rows)

    def audit(self, path: str | Path | None = None, *, runs: int = 1_000) -> Report:
        """Audits the settings on families that it makes up, as ``audit_tables`` does."""
        return audited_tables(self._settings(), runs=runs, path=path)

    def report(self, path: str | Path | None = None) -> Report:
        """What was spent and how well the rows of each table fit, as ``FittedTables`` says it."""
        return self.fitted_tables.report(path)

    def discovered_domain(self) -> dict[str, dict[str, dict]]:
        """By table what was declared and what was found, as ``public_domain`` takes it."""
        return self.fitted_tables.discovered_domain()

    def evaluate(self, data, *, path: str | Path | None = None) -> Report:
        """Compares synthetic families with the real tables. Not private: see ``FittedTables``."""
        return self.fitted_tables.evaluate(self._private(data), path=path)

    def get_table_parameters(self, table_name) -> dict[str, Any]:
        """The settings, which are those of all tables."""
        del table_name
        name = type(self).__name__
        return {"synthesizer_name": name, "synthesizer_parameters": self.get_parameters()}

    def answer(self, what: str, table: str | None = None, **how: Any) -> Any:
        """An answer about a table, and how sure it is, as ``FittedTables.answer`` gives it."""
        return self.fitted_tables.answer(what, table, **how)

    def regression(self, outcome: str, on: Any, table: str | None = None, **how: Any) -> Any:
        """A regression of a table, as ``FittedTables.regression`` gives it."""
        return self.fitted_tables.regression(outcome, on, table, **how)

    def accept(self, criteria: Mapping[str, Sequence[Any]], rows: Any = None, **how: Any) -> Any:
        """Whether rows meet criteria, as ``FittedTables.accept`` tells it."""
        return self.fitted_tables.accept(criteria, rows, **how)

    def privacy_report(self) -> str:
        """The text of ``report``: what was spent, on what and under which adjacency."""
        return self.fitted_tables.privacy_report()

    def sample(
        self,
        num_rows,
        main_table_name=None,
        batch_size=None,
        max_tries_per_batch=100,
        output_folder_path=None,
    ):
        """Synthetic tables, at no cost: so many rows of a table, by default of the root."""
        main = self._settings().tree.root if main_table_name is None else main_table_name
        num_rows = int(num_rows) if isinstance(num_rows, np.integer) else num_rows
        return super().sample(num_rows, main, batch_size, max_tries_per_batch, output_folder_path)

    def reset_sampling(self) -> None:
        """Starts the sequence of rows again."""
        for processor, _, _ in self._generated.values():
            generators.restart(processor)
        if self._fitted_tables is not None:
            self._fitted_tables.reset_sampling()

    def add_constraints(self, constraints) -> None:
        """Adds constraints of ``sdv.cag``, which rows will meet.

        They are about columns of a table (``table_name``) and of those that it leads to, such as
        ``Inequality("patients.born", "admitted", table_name="visits")``; or about all tables, as a
        ``ProgrammableConstraint``, whose ``is_valid`` is asked of synthetic tables: families with a
        row that is not are made anew.

        Raises ``SynthesizerInputError`` for those that would be learned from rows.
        """
        added = _validate_constraints(constraints, False)
        for each in added:
            if _is_of_all(each):
                continue
            if getattr(each, "table_name", None) not in self._settings().tree.tables:
                raise SynthesizerInputError(
                    f"{type(each).__name__} needs the table_name of one modelled table, or be a "
                    "ProgrammableConstraint of all tables."
                )
            try:
                translated(each).columns  # noqa: B018 - others have none
            except AttributeError:
                raise SynthesizerInputError(
                    f"{type(each).__name__} would be learned from the private rows. Declare what "
                    "it would learn, as with sdv_privpgd.FixedCombinations in fit_tables."
                ) from None
        if self._fitted and not all(map(_is_of_all, added)):
            warnings.warn(refit_warning(self), stacklevel=2)
        before = self._own_constraints
        self._own_constraints = [*before, *deepcopy(added)]
        try:
            self._settings().require()
        except ValueError as error:
            self._own_constraints = before
            raise SynthesizerInputError(str(error)) from error

    def get_constraints(self, filepath=None):
        """The constraints that rows will meet."""
        self.constraints = self._own_constraints
        try:
            return super().get_constraints(filepath)
        finally:
            self.constraints = []

    def validate_constraints(self, synthetic_data) -> None:
        """Checks synthetic rows. Raises ``ValueError`` with the number of rows that break one."""
        tree, described = self._settings().tree, self.metadata.tables
        described = {name: described[name].columns for name in tree.tables}
        for each in self._own_constraints:
            if _is_of_all(each):
                valid = each.is_valid(synthetic_data)
                wrong = ~np.concatenate([np.asarray(own, dtype=bool) for own in valid.values()])
            else:
                rows = with_parents(tree, synthetic_data)[each.table_name]
                known = tree.carried(each.table_name, described)
                own = {"columns": {n: facts for n, facts in known.items() if n in rows}}
                linked = Metadata.load_from_dict({"tables": {each.table_name: own}})
                wrong = ~valid_rows(each, rows, linked)
            if wrong.any():
                raise ValueError(f"{each!r} is not met by {wrong.sum()} rows.")

    def auto_assign_transformers(self, data) -> None:
        """Does nothing: columns are encoded by what is public of them."""
        del data

    def _sample(self, scale, batch_size=None, max_tries_per_batch=100):
        del batch_size
        tree, tries = self._settings().tree, max_tries_per_batch
        number = round(self._table_sizes[tree.root] * scale)
        made, parts = self._made(0), []
        while number:
            made = self._made(number)
            whose: dict[str, pd.Series] = {}
            for name in tree.tables:
                link, own = tree.above(name), made[name]
                whose[name] = pd.Series(range(len(own)))
                if link is not None:
                    above = whose[link.parent].set_axis(made[link.parent][link.parent_key])
                    whose[name] = above.reindex(own[link.key]).reset_index(drop=True)
            wrong: set[int] = set()
            for each in filter(_is_of_all, self._own_constraints):
                for name, valid in each.is_valid(made).items():
                    if name in whose:
                        wrong |= set(whose[name][~np.asarray(valid, dtype=bool)])
            kept = {n: made[n][~own.isin(wrong).to_numpy()] for n, own in whose.items()}
            parts.append(kept)
            number -= len(kept[tree.root])
            tries -= 1
            if number and not tries:
                raise SynthesizerInputError(
                    f"Of {number:,} families too few meet the constraints on all tables, in "
                    f"max_tries_per_batch={max_tries_per_batch} tries."
                )
        parts = parts or [made]
        found = {n: pd.concat([e[n] for e in parts], ignore_index=True) for n in tree.tables}
        return {name: found.get(name, made[name]) for name in self.metadata.tables}

    def _made(self, number: int) -> dict[str, pd.DataFrame]:
        """So many families of all tables, with what is not modelled, and public tables."""
        found: dict[str, pd.DataFrame] = self.fitted_tables.sample(number)
        for name, own in found.items():
            processor, names, dtypes = self._generated[name]
            made = generators.generate(processor, len(own), names, dtypes)
            found[name] = own.assign(**made)
        return found | deepcopy(dict(self.public_tables or {}))

    def _settings(self) -> TablesSettings:
        """What the settings and the metadata say, checked."""
        own = filterfalse(_is_of_all, self._own_constraints)
        constraints = grouped((each.table_name, translated(each)) for each in own)
        public, domain = self.public_tables or {}, self.public_domain or {}
        unknown = [name for name in (*domain, *public) if name not in self.metadata.tables]
        if unknown:
            raise SynthesizerInputError(f"{unknown!r} are no tables of the metadata.")
        facts = self.metadata.to_dict()
        declared = {name: named_by_text(own) for name, own in domain.items()}
        kept = []
        for each in facts.get("relationships", ()):
            parent, child = each["parent_table_name"], each["child_table_name"]
            if parent not in public and child not in public:
                kept.append(each)
            elif child not in public:  # a key that leads to a public table is one of its values
                key, own = each["child_foreign_key"], each["parent_primary_key"]
                values = sorted(public[parent][own].dropna().unique())
                values = [getattr(value, "item", lambda v=value: v)() for value in values]
                facts["tables"][child]["columns"][key] = {"sdtype": "categorical"}
                declared.setdefault(child, {})[key] = {"range_values": values}
        tables = {name: own for name, own in facts["tables"].items() if name not in public}
        try:
            columns, links = read_tables(
                {"tables": tables, "relationships": kept},
                declared,
                self.max_children,
                keep=True,
                **{name: getattr(self, name) for name in ("starts", "counts", "numbers")},
            )
            tree_of(links)
        except ValueError as error:
            raise SynthesizerInputError(str(error)) from None
        return TablesSettings.of(
            columns,
            links,
            self.epsilon,
            self.delta,
            constraints,
            self.questions or {},
            **{name: getattr(self, name) for name in ("discovery_share", "method", "seed")},
        )

    def _running(
        self,
        data,
        linked: TablesSettings,
        allow_lost: Mapping[str, Collection[str]],
        prior: Any = None,
    ):
        if not isinstance(data, dict):
            raise InvalidDataError(["Give a dictionary of tables, by their names."])
        wrong = [
            f"The columns {sorted(map(str, extra))} of {name!r} are not in the metadata."
            for name, own in data.items()
            if name in linked.tree.tables and isinstance(own, pd.DataFrame)
            if (extra := set(map(str, own.columns)) - set(self.metadata.tables[name].columns))
        ]
        if wrong:
            raise InvalidDataError(wrong)
        with as_invalid_data():
            return RunningTables.of(linked, self._private(data), allow_lost, prior)

    def _private(self, data: Mapping[str, Any]) -> dict[str, Any]:
        return {name: each for name, each in data.items() if name not in (self.public_tables or {})}

    def _take(self, fitted: FittedTables, data: Mapping[str, Any]) -> None:
        """Takes fitted tables as those of the last fit."""
        public = self.public_tables or {}
        self._fitted_tables = fitted
        self._table_sizes = {name: max(number, 1) for name, number in fitted.num_rows.items()}
        self._table_sizes |= {name: len(own) for name, own in public.items()}
        self._original_table_columns = {
            name: {str(each): each for each in own.columns}
            for name, own in data.items()
            if isinstance(own, pd.DataFrame)
        }
        for name, own in fitted.tables.items():
            processor = self._table_synthesizers[name]._data_processor
            described = self.metadata.tables[name].columns
            rest = [column for column in described if column not in fitted.columns[name]]
            self._generated[name] = processor, rest, own.fitted.description.dtypes
        stamp_fitted(self)


def _is_of_all(constraint: Any) -> bool:
    """Whether a constraint is about all tables."""
    return isinstance(constraint, ProgrammableConstraint) and not constraint._is_single_table


def _refused(name: str) -> Callable[..., NoReturn]:
    def refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        del self, args, kwargs
        raise SynthesizerInputError(
            f"{name} is not taken: fit alone reads the tables, by what is public of their columns. "
            "Say that with public_domain, and settings with the constructor."
        )

    refuse.__name__ = name
    refuse.__doc__ = "Raises ``SynthesizerInputError``: fit alone reads the tables."
    return refuse


for _name in (
    "preprocess",
    "fit_processed_data",
    "update_transformers",
    "set_address_columns",
    "set_table_parameters",
):
    setattr(PrivPGDMultiTableSynthesizer, _name, _refused(_name))

# Pickles name a class by the module that makes sure of SDV: see ``synthesizers``.
PrivPGDMultiTableSynthesizer.__module__ = "sdv_privpgd.synthesizer"
import_module("sdv_privpgd.synthesizer")
