"""What all synthesizers share: SDV's words in, our words out.

SDV's own pipeline looks at private values in more than twenty places, so none of it runs on the
table: SDV's data processor is fitted on a public frame made from the schema, and ``fit`` hands the
table's columns to ``sdv_privpgd.fitting`` alone.
"""

import inspect
import warnings
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from importlib.metadata import version as version_of
from typing import Any, ClassVar

import pandas as pd
from sdv.errors import SynthesizerInputError, VersionError
from sdv.metadata import Metadata

from sdv_privpgd.base.arguments import check_flag, check_integer
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.columns.schema import PublicDomainError
from sdv_privpgd.columns.vocabulary import modelled, named_by_text
from sdv_privpgd.constraints.limits import Constraints
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.fitted import Account, FittedTable
from sdv_privpgd.fitting.settings import People, Settings, check_people, usual_delta
from sdv_privpgd.methods.method import Method, method_of
from sdv_privpgd.methods.workload import Target, importance_of, weighed
from sdv_privpgd.plugin.answers import AnsweredQuestions
from sdv_privpgd.plugin.arguments import public_copy, python_s, refuse_several_tables
from sdv_privpgd.plugin.auditing import AuditedFit
from sdv_privpgd.plugin.constrained import ConstrainedRows, translated
from sdv_privpgd.plugin.pages import ShownFit
from sdv_privpgd.plugin.refining import RefinedFits
from sdv_privpgd.plugin.rows import SampledRows
from sdv_privpgd.plugin.transforming import AssignedTransformers

# SDV's methods have no types; ours give back the kind of table that was fitted.
# pyright: reportIncompatibleMethodOverride=false

_STATE_VERSION = 12


class PrivateSynthesizer(
    RefinedFits,
    ShownFit,
    AuditedFit,
    AnsweredQuestions,
    ConstrainedRows,
    SampledRows,
    AssignedTransformers,
):
    """Differentially private synthetic rows of one table, by a method.

    Everything that the fitted object exposes (samples, attributes, files, messages) is
    (epsilon, delta)-differentially private for one row, or for the rows of one of the
    ``people``, with exact accounting in Gaussian differential privacy. A subclass names the
    method that it has unless told otherwise.

    Its arguments are described at ``PrivPGDSynthesizer``.

    Raises:
        ValueError: For an argument outside its range; the message names value and remedy.
        SynthesizerInputError: For metadata of several tables, of sequences or composite keys.
    """

    _usual_method: ClassVar[str] = "privpgd"

    def __init_subclass__(cls, *, method: str | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._usual_method = method or cls._usual_method
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
        delta: float | None = None,
        *,
        adjacency: str = "replace_one",
        people: People | None = None,
        public_domain: Mapping[str, Mapping] | None = None,
        public_metadata: bool = False,
        discovery_share: float = 0.2,
        method: Method | str | None = None,
        target: Target = None,
        seed: int = 0,
        verbose: bool = False,
        enforce_min_max_values: bool = True,
        enforce_rounding: bool = True,
        locales: Sequence[str] | str | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        metadata, self.people = public_copy(
            metadata, check_people(people), keep_ranges=public_metadata is True
        )
        self.public_domain = deepcopy(public_domain)
        self.public_metadata = public_metadata
        self.discovery_share = discovery_share
        self.method = self._usual_method if method is None else method
        self.target = target
        self.seed = seed
        self.verbose = verbose
        super().__init__(
            metadata=metadata,
            enforce_min_max_values=python_s(enforce_min_max_values),
            enforce_rounding=python_s(enforce_rounding),
            locales=["en_US"] if locales is None else locales,
        )
        self._account = Account()
        self._fitted_table: FittedTable | None = None
        self._dtypes: Mapping[str, Any] = {}
        self._gives_frames = False
        self._original_columns = pd.Index([])
        self._check_settings()
        description = self._description()
        description.require_order()
        # A domain is asked for at fit: SDV builds synthesizers before it knows their domain.
        with suppress(PublicDomainError):
            _ = description.schema
        for sentence in self._settings().absurd:
            warnings.warn(sentence, stacklevel=3 if "__init__" in type(self).__dict__ else 2)

    def _check_settings(self) -> None:
        """Raises ``ValueError`` for a setting that no fit can work with, and reads no row.

        All of them can be set on the object, so every fit checks them as the constructor does.
        """
        for name in ("public_metadata", "verbose", "enforce_min_max_values", "enforce_rounding"):
            setattr(self, name, check_flag(name, getattr(self, name)))
        if not self.enforce_min_max_values:
            raise SynthesizerInputError(
                "enforce_min_max_values=False has no meaning here: values never leave the range "
                "that is declared or found. Declare a wider one with public_domain."
            )
        self.seed = check_integer("seed", self.seed, least=0)
        self.public_domain = named_by_text(self.public_domain)
        settings = self._settings()
        for name in ("epsilon", "people", "discovery_share"):
            setattr(self, name, getattr(settings, name))
        self.delta = None if settings.delta_is_usual else settings.delta
        self.adjacency = settings.adjacency.value

    def _settings(self) -> Settings:
        return Settings(
            epsilon=self.epsilon,
            delta=usual_delta(self.adjacency) if self.delta is None else self.delta,
            delta_is_usual=self.delta is None,
            adjacency=self.adjacency,  # pyright: ignore[reportArgumentType]  (it is parsed)
            people=self.people,
            discovery_share=self.discovery_share,
            seed=self.seed,
            method=weighed(method_of(self.method, seed=self.seed), importance_of(self.target)),
        )

    def _description(self) -> Description:
        fitted, settings = self._model_of_table, self._settings()
        keys = self._get_table_metadata()._get_primary_and_alternate_keys()
        return Description.of(
            deepcopy(dict(self._described)),
            self.public_domain,
            keys=tuple(keys),
            constraints=Constraints(tuple(map(translated, self._reject_sampling_constraints))),
            num_bins=settings.method.num_bins,
            discovers=bool(self.discovery_share),
            enforce_rounding=self.enforce_rounding,
            kept=frozenset(self._kept_columns()),
            dtypes=self._dtypes,
            discovered={} if fitted is None else fitted.description.discovered,
            shapes={} if fitted is None else fitted.description.shapes,
            visits=settings.people.visits,
        )

    def _kept_columns(self) -> Collection[str]:
        """Columns of which rows must have what the model says, because a penalty reads them."""
        metadata = self._get_table_metadata()
        keys = metadata._get_primary_and_alternate_keys()
        names = tuple(modelled(metadata.columns, keys))
        return self._settings().method.reads(Domain(names, (1,) * len(names)))

    def __getstate__(self) -> dict:
        return {**vars(self), "_state_version": _STATE_VERSION}

    def __setstate__(self, state: dict) -> None:
        found = state.get("_state_version")
        if found != _STATE_VERSION:
            raise VersionError(
                f"This file holds state version {found!r} of {type(self).__name__}, and "
                f"sdv-privpgd {version_of('sdv-privpgd')} reads {_STATE_VERSION} alone. Install "
                "the version that wrote it, or fit anew."
            )
        vars(self).update({name: own for name, own in state.items() if name != "_state_version"})
