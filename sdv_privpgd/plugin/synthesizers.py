"""The synthesizers that SDV finds. They differ in what they measure and fit unless told otherwise.

What their fits show of themselves is here, and ``variant`` makes classes of them for SDGym.
``base.py`` has their settings, ``fits.py`` the methods that are handed a table, and ``rows.py``
those that make rows.
"""

import warnings
from contextlib import AbstractContextManager, nullcontext, suppress
from copy import deepcopy
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sdv.cag._errors import ConstraintNotMetError
from sdv.cag._utils import _validate_constraints
from sdv.errors import SynthesizerInputError

from sdv_privpgd.audit.door import audited
from sdv_privpgd.audit.subjects import file_checks
from sdv_privpgd.base.arguments import check_choice, check_delta, check_epsilon
from sdv_privpgd.base.progress import Progress, shown
from sdv_privpgd.columns.schema import PublicDomainError
from sdv_privpgd.constraints.repair import ConstraintError
from sdv_privpgd.fitting.fit import Fitted
from sdv_privpgd.inference.analyses import Concluding
from sdv_privpgd.inference.refits import STAGE
from sdv_privpgd.plugin.arguments import column_names, refit_warning, taken, valid_rows
from sdv_privpgd.plugin.audit import SynthesizerFit, kept_file
from sdv_privpgd.plugin.rows import SampledRows
from sdv_privpgd.report.page import Report
from sdv_privpgd.report.privacy import privacy_report
from sdv_privpgd.report.registry import RegistryEntry

if TYPE_CHECKING:
    from sdv_privpgd.report.evaluation import Evaluation

# SDV's methods have no types.
# pyright: reportIncompatibleMethodOverride=false


class PrivateSynthesizer(SampledRows, Concluding):
    """Differentially private synthetic rows of one table, by a method.

    Everything that the fitted object exposes (samples, attributes, files, messages) is
    (epsilon, delta)-differentially private for one row, or for the rows of one of the
    ``people``, with exact accounting in Gaussian differential privacy. A subclass names the
    method that it has unless told otherwise.

    Its arguments and errors are described at ``PrivPGDSynthesizer``.
    """

    def __repr__(self) -> str:
        """What matters of it in a line: before a fit what it may spend, after it what it is of."""
        if self._fitted_table is None:
            number = len(self._get_table_metadata().columns)
            what = f"{number} columns, epsilon {self.epsilon:g}, {self.adjacency}, not fitted"
            return f"{type(self).__name__}({what})"
        return f"{type(self).__name__}({self.fitted_table!r})"

    def report(self, path: str | Path | None = None, *, audience: str = "analyst") -> Report:
        """What was spent, and how well the rows fit the noisy answers. Public.

        It is a text, a page for the browser and a dictionary at once, as ``FittedTable.report``.

        Args:
            path: Where to save it as well, as ``Report.save`` takes it.
            audience: ``"officer"`` gives one printed page for who decides on the release.
        """
        return self.fitted_table.report(path, audience=audience)

    def methods_text(self) -> str:
        """What was done, in sentences for a methods section, with references. Public."""
        return self.fitted_table.methods_text()

    def registry_entry(self, **said: Any) -> RegistryEntry:
        """The record of the last fit for the public registry of deployments. Public.

        It has the ledger of all fits. ``said`` is as ``FittedTable.registry_entry`` takes it: the
        ``name`` of the rows, ``curators``, ``region``, ``use`` and ``authors``.
        """
        return self.fitted_table.registry_entry(**said)

    def evaluate(
        self, real_data, *, label: str | None = None, held_out=None, path: str | Path | None = None
    ) -> "Evaluation":
        """Compares as many synthetic rows with the real table. Not private.

        No budget covers the page, what is returned, or settings that are chosen by them. The rows
        are the first of the sequence; where ``sample`` goes on does not change.

        Args:
            real_data: The real table, as ``fit`` takes it.
            label: A column that models learn to predict, from synthetic and from real rows. The
                ``target`` is taken if there is one and no other is named.
            held_out: Real rows that were not fitted, as ``evaluate`` takes them.
            path: Where to write the page as well.
        """
        self._require_fitted()
        modelled = [column.name for column in self._schema().columns]
        if label is None and isinstance(self.target, str) and self.target in modelled:
            label = self.target
        return self.fitted_table.evaluate(
            self._columns_of(real_data),
            label=label,
            held_out=None if held_out is None else self._columns_of(held_out),
            path=path,
        )

    def _columns_of(self, data) -> pd.DataFrame:
        """The modelled columns of a real table. Raises for one that does not fit."""
        self._open(data, self._description())
        table = self._table_in(data)
        names = column_names(table)
        modelled = [column.name for column in self._schema().columns]
        return table.iloc[:, [names.index(name) for name in modelled]].set_axis(modelled, axis=1)

    def discovered_domain(self) -> dict[str, dict]:
        """The domain of the last fit: what was declared, and what was found privately. Public.

        It has the form that ``public_domain`` takes: given to another synthesizer of the same
        metadata, nothing has to be found again. ``write_domain`` keeps it in a file, unless it has
        values that files cannot hold, such as times of the day. ``cut_points``
        and ``frequencies`` say where the cells of a column begin and how full they are.
        """
        found = self.fitted_table.discovered_domain()
        for facts in found.values():
            del facts["sdtype"]  # the metadata says it
        return {name: found[name] for name in self._described if found.get(name)}

    def value_sources(self) -> dict[str, str]:
        """Where each column's values come from: declared, found privately, or made up. Public."""
        return self._description().value_sources

    @property
    def warnings_(self) -> tuple[str, ...]:
        """What is worth a look before the rows of the last fit are used, a sentence each. Public.

        The first says how many columns are usable; then come lost columns, doubtful ones, settings
        and what noise hides. Empty where nothing was noticed, and before a fit.
        """
        return () if self._fitted_table is None else self._fitted_table.warnings

    @property
    def estimated_num_rows(self) -> int | None:
        """The number of rows, as far as it is known: noisy where it is private. Public.

        ``None`` where no column is modelled, so that nothing was measured.
        """
        self._require_fitted()
        return None if self._model_of_table is None else self._model_of_table.num_rows

    def privacy_report(self) -> str:
        """The text of ``report``: what was spent, on what and under which adjacency. Public.

        ``warnings_`` are at its end. Before a fit it says what may be spent.
        """
        if self._fitted_table is None:
            return privacy_report(self.ledger)
        return self.fitted_table.privacy_report()

    def get_loss_values(self) -> pd.DataFrame:
        """How far the particles were from the noisy tables after some epochs. Public.

        ``Loss`` is the mean over the tables of the squared sliced W2 distance, along directions
        that are the same for all epochs. Other methods and engines have no epochs of these: the
        frame is empty where their models are rows.

        Raises:
            ValueError: For a model that is no rows, such as a graphical one.
        """
        self._require_fitted()
        if self._release is None:  # no column is modelled
            return pd.DataFrame({"Epoch": [], "Loss": []})
        model = self._release.model
        if (losses := getattr(model, "losses", None)) is None:
            raise ValueError(
                f"The losses are those of the engine 'particles', and the model is a "
                f"{type(model).__name__}."
            )
        return pd.DataFrame({"Epoch": list(losses), "Loss": list(losses.values())})

    def get_info(self) -> dict:
        """SDV's facts about the synthesizer, and the epsilon and delta that its fits spent."""
        ledger = self.ledger
        return {
            **super().get_info(),
            "adjacency": self.adjacency,
            "epsilon_spent": ledger.spent(),
            "delta_spent": ledger.delta if ledger.charges else 0.0,
        }

    def audit(
        self,
        runs: int = 10_000,
        *,
        path: str | Path | None = None,
        false_alarms: float = 1e-4,
        seed: int = 0,
    ) -> Report:
        """Audits these settings on made-up tables, and the file that the synthesizer would be.

        It reads no row, spends nothing and changes nothing: a copy is fitted to tables that are
        made up from the metadata, the public domain and the settings. Constraints, predicates,
        methods and engines of your own run as in a fit, and are audited with it. If the
        synthesizer is fitted, what it holds is audited, too: the ledger, and whether a model that
        is made anew of the noisy answers is the same to the byte.

        The report's ``to_dict()["passed"]`` says whether all is well; ``print`` shows what was
        looked at, with what could not be seen. Fit nothing in other threads meanwhile: warnings are
        shared by all threads.

        Args:
            runs: As ``audit_fit`` takes it, and so are the others.
            path: Where to save the report as well, as ``Report.save`` takes it.
            false_alarms: How likely all statistical checks together are to fail by chance.
            seed: Of the made-up rows.

        Raises:
            ValueError: If no fit to such columns is possible at all.
        """
        return audited(
            SynthesizerFit(self),
            name=type(self).__name__,
            runs=runs,
            false_alarms=false_alarms,
            seed=seed,
            more=file_checks(kept_file(self)) if self._fitted else [],
            path=path,
        )

    # Constraints: declared, so public; no private row is checked against them.

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
        added = [
            taken(constraint, self.metadata)
            for constraint in _validate_constraints(constraints, False)
        ]
        if self._fitted:
            warnings.warn(refit_warning(self), stacklevel=2)
        before = self._reject_sampling_constraints
        # SDV's list of constraints that change neither the data nor the metadata.
        self._reject_sampling_constraints = [*before, *deepcopy(added)]
        try:
            description = self._description()
            description.declared.require_possible()
            with suppress(PublicDomainError):
                if refusals := description.constraints.limits(description.schema).refusals:
                    raise ConstraintError(refusals[0])
        except BaseException as error:
            self._reject_sampling_constraints = before
            if isinstance(error, ConstraintError):
                raise SynthesizerInputError(str(error)) from error
            raise

    def validate_constraints(self, synthetic_data) -> None:
        """Checks synthetic rows. Raises SDV's ``ConstraintNotMetError`` with the rows' numbers."""
        for constraint in self._reject_sampling_constraints:
            wrong = ~valid_rows(constraint, synthetic_data, self.metadata)
            if wrong.any():
                raise ConstraintNotMetError(
                    f"{constraint!r} is not met by {wrong.sum()} rows; the first of them are "
                    f"{np.flatnonzero(wrong)[:5].tolist()}."
                )

    def _validate_transform_constraints(self, table_data, enforce_constraint_fitting=False):
        """The table as it is: SDV would fit the constraints on it."""
        del enforce_constraint_fitting
        return table_data

    def reverse_transform_constraints(self, sampled):
        """The rows as they are: SDV would drop those that constraints fitted to a table refuse."""
        return sampled

    # What ``Concluding`` answers from.

    @property
    def _own_fit(self) -> Fitted:
        return self.fitted_table.fitted

    def _shown_repeating(self, progress: Progress | None) -> AbstractContextManager[Progress]:
        return shown(STAGE, self.verbose) if progress is None else nullcontext(progress)


class PrivPGDSynthesizer(PrivateSynthesizer, method="privpgd"):
    """Differentially private synthetic rows of one table, by particle gradient descent.

    Everything that the fitted object exposes (samples, attributes, files, messages) is
    (epsilon, delta)-differentially private for one row, or for the rows of one of the
    ``people``. The method is PrivPGD (Donhauser et al. 2024) with exact Gaussian accounting.

    Args:
        metadata: SDV metadata of one table. Column names, sdtypes, keys and datetime formats are
            taken as public, and so are the fitted table's dtypes that no cell chose. Ranges,
            categories and precisions in it are dropped unless ``public_metadata`` is set, because
            SDV's detection reads them off the table.
        epsilon: What each ``fit`` may spend, positive.
        delta: Strictly between 0 and 1; choose it well below 1 / (number of rows). By default it
            is a tenth of that, and no more than 1e-5; under ``'add_remove'`` it has to be given.
        adjacency: ``'replace_one'``: one row's values may change, the number of rows is public.
            ``'add_remove'``: the number of rows is private, too, and takes 1 % of the budget.
        people: Whose the rows are: ``People("patient", max_rows=4)`` reads no more than so many
            rows of a person, and protects all of them; its ids are made anew. By default a
            row is protected, and no person. A ``sequence_key`` and a ``sequence_index`` of the
            metadata are its ``column`` and ``sequence_index``. It also names a survey's weights.
        public_domain: ``{column: {...}}`` with ``range_min`` and ``range_max`` (numerical,
            datetime) or ``range_values`` (categorical, ordinal), and optionally
            ``range_is_nullable``, ``decimal_places``, ``datetime_format``, ``num_bins``,
            ``cut_points`` (where the cells of numbers or dates begin), ``frequencies`` (how often
            each of these cells, or of the ``range_values``, occurs: where they are many they are
            merged, and drawn again as often), ``increment`` (a whole number that all values are
            multiples of), ``rounding`` (steps, and the share of the values that were rounded to
            each), ``number_format`` (how text writes 1234.5), ``true_value`` and
            ``false_value`` (boolean), ``other_value`` (what all values that are not in
            ``range_values`` become), ``groups`` and ``prefix`` (the groups that codes become), and
            ``missing_codes`` (what stands for missing).
            Write it from documentation, never from the data. It goes before the metadata.
        public_metadata: Whether the ranges in the metadata are public knowledge as well.
        discovery_share: Part of the budget, at most, that finds ranges and categories which are
            not declared, privately, and where in a declared range rows lie; each column that is
            looked into has its part. At 0 there is a ``PublicDomainError`` instead, and declared
            ranges have cells of equal width. Values that few rows have become ``'other'``, or are
            missing among numbers. It also finds how frequent declared categories are
            where they are more than 256: rare ones share a cell, and are drawn from it as often.
            At 0 neighbors in the declared order share cells evenly. Thresholds cost a thirtieth
            of ``delta`` each, at most three of them. Where nothing is declared, 0.2 gave clearly
            lower errors than 0.05 on five of ten real tables, and equal ones within noise on the
            other five; at epsilon 0.2 a share of 0.3 was lower still on those five. Where all
            ranges are declared, the share made no difference beyond noise.
        method: What is measured, and what makes rows of the answers, as ``fit_table`` takes it.
            ``None`` is the class's own.
        target: The column that the rows are to predict, or several, as ``fit_table`` takes it.
        questions: What the table will be asked, as ``fit_table`` takes them.
        seed: Of what comes after the noisy answers, the sampled rows above all. The noise and
            the private choices come from the operating system and have no seed.
        verbose: Whether bars show how far a fit is, and the sampling of rows.
        enforce_min_max_values: Only ``True``: values never leave the declared range.
        enforce_rounding: Whether ``decimal_places`` is respected; ``False`` gives plain floats.
        locales: Locales of generated personal data; ``None`` is ``['en_US']``.

    Raises:
        ValueError: For an argument outside its range; the message names value and remedy.
        SynthesizerInputError: For metadata of several tables, of sequences or composite keys.

    >>> import pandas as pd
    >>> from sdv.metadata import Metadata
    >>> facts = {"tables": {"people": {"columns": {"ill": {"sdtype": "boolean"}}}}}
    >>> synthesizer = PrivPGDSynthesizer(Metadata.load_from_dict(facts), epsilon=1.0)
    >>> synthesizer.fit(pd.DataFrame({"ill": [True, False] * 500}))
    >>> synthesizer.sample(3).shape
    (3, 1)
    >>> synthesizer.ledger.spent() <= 1.0
    True
    """


class MSTSynthesizer(PrivateSynthesizer, method="mst"):
    """Differentially private synthetic rows of one table, by a maximum spanning tree and PGM.

    Measures each column and the pairs of a privately chosen spanning tree, and fits the graphical
    model of these tables (McKenna, Miklau & Sheldon 2021, NIST-MST). The guarantee and the
    arguments are those of ``PrivPGDSynthesizer``.

    >>> import pandas as pd
    >>> from sdv.metadata import Metadata
    >>> kinds = {"ill": {"sdtype": "boolean"}, "old": {"sdtype": "boolean"}}
    >>> metadata = Metadata.load_from_dict({"tables": {"people": {"columns": kinds}}})
    >>> synthesizer = MSTSynthesizer(metadata, epsilon=1.0)
    >>> synthesizer.fit(pd.DataFrame({"ill": [True, False] * 500, "old": [True, True] * 500}))
    >>> synthesizer.sample(3).columns.tolist()
    ['ill', 'old']
    """


class AIMSynthesizer(PrivateSynthesizer, method="aim"):
    """Differentially private synthetic rows of one table, by AIM and PGM.

    Measures each column, then round by round the table that the graphical model so far gets most
    wrong (McKenna et al. 2022, AIM; all pairs are its workload). The guarantee and the arguments
    are those of ``PrivPGDSynthesizer``. What matters most is how large the model may be, as in
    ``method=AIM(max_megabytes=20)``.

    >>> import pandas as pd
    >>> from sdv.metadata import Metadata
    >>> kinds = {"ill": {"sdtype": "boolean"}, "old": {"sdtype": "boolean"}}
    >>> metadata = Metadata.load_from_dict({"tables": {"people": {"columns": kinds}}})
    >>> synthesizer = AIMSynthesizer(metadata, epsilon=1.0)
    >>> synthesizer.fit(pd.DataFrame({"ill": [True, False] * 500, "old": [True, True] * 500}))
    >>> synthesizer.sample(3).columns.tolist()
    ['ill', 'old']
    """


def variant(
    epsilon: float,
    delta: float | None = None,
    *,
    synthesizer: str = "PrivPGDSynthesizer",
    **settings: Any,
) -> type:
    """A class for SDGym, which constructs synthesizers without arguments: it knows its settings.

    Its name says what it may spend. ``sdgym.benchmark_single_table(custom_synthesizers=[...])``
    takes it. SDGym is no dependency. Its scores compare with the real table: they are not private.

    Args:
        epsilon: What each fit may spend.
        delta: As the synthesizers have it.
        synthesizer: ``'PrivPGDSynthesizer'``, ``'MSTSynthesizer'`` or ``'AIMSynthesizer'``.
        settings: Of the synthesizer, but for its metadata. Numbers and words are in the name, too.

    Raises:
        ImportError: Without an SDGym that works with this SDV.
        ValueError: For an epsilon or a delta that is none, and another synthesizer.
    """
    # Only here: SDGym is there for those who have it.
    known: Any = import_module("sdgym.synthesizers.base").BaselineSynthesizer
    import_module("sdgym")  # its synthesizers make themselves known
    bases = known.get_subclasses(include_parents=True)
    check_choice("synthesizer", synthesizer, bases)
    parameters = {"epsilon": check_epsilon(epsilon), **settings}
    parameters |= {} if delta is None else {"delta": check_delta(delta)}
    arguments = [
        f"{name}={value}"
        for name, value in parameters.items()
        if isinstance(value, bool | int | float | str)
    ]
    display = f"{synthesizer.removesuffix('Synthesizer')}({', '.join(arguments)})"
    # SDGym's own function for this finds each class once: a class with variants is no leaf.
    own = {"__module__": __name__, "_MODEL_KWARGS": parameters, "_NATIVELY_SUPPORTED": False}
    return type(f"Variant:{display}", (bases[synthesizer],), own)


# Pickles name a class by the module that makes sure of SDV, and look it up there: were that
# module not imported, cloudpickle would write the class itself into the file.
for _class in (PrivPGDSynthesizer, MSTSynthesizer, AIMSynthesizer):
    _class.__module__ = "sdv_privpgd.synthesizer"
import_module("sdv_privpgd.synthesizer")
