"""What all synthesizers share: their settings, and what they keep of their fits. Public.

SDV's own pipeline looks at private values in more than twenty places, so none of it runs on the
table: SDV's data processor is fitted on a public frame made from the schema, and ``fit`` hands the
table's columns to ``sdv_privpgd.fitting`` alone.
"""

import inspect
import warnings
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from importlib.metadata import version as version_of
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sdv.errors import NotFittedError, SynthesizerInputError, VersionError
from sdv.metadata import Metadata
from sdv.single_table.base import BaseSingleTableSynthesizer

from sdv_privpgd.base.arguments import check_flag, check_integer
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.columns.schema import PublicDomainError, Schema
from sdv_privpgd.columns.vocabulary import modelled, named_by_text
from sdv_privpgd.constraints.kinds import Constraints
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.fit import Fitted
from sdv_privpgd.fitting.fitted_table import CombinedLedger, FittedTable
from sdv_privpgd.fitting.resume import on_several_releases
from sdv_privpgd.fitting.settings import People, Settings, check_people, usual_delta
from sdv_privpgd.inference.question_list import Question, listed_questions
from sdv_privpgd.methods.method import Method, Target, importance_of, method_of, weighed
from sdv_privpgd.methods.pipeline import Release
from sdv_privpgd.plugin.arguments import public_copy, translated
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.sampling.families import RowMaker

_STATE_VERSION = 14


class FittedState(BaseSingleTableSynthesizer):
    """A synthesizer's settings, checked, and the state that its fits leave."""

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
        _refuse_several_tables(cls.__name__, kwargs)
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
        questions: Sequence[Question] = (),
        seed: int = 0,
        verbose: bool = False,
        enforce_min_max_values: bool = True,
        enforce_rounding: bool = True,
        locales: Sequence[str] | str | None = None,
    ) -> None:
        self.epsilon, self.delta, self.adjacency = epsilon, delta, adjacency
        metadata, self.people = public_copy(
            metadata, check_people(people), public_domain, keep_ranges=public_metadata is True
        )
        self.public_domain = deepcopy(public_domain)
        self.public_metadata, self.discovery_share = public_metadata, discovery_share
        self.method = self._usual_method if method is None else method
        self.target, self.questions = target, questions
        self.seed, self.verbose = seed, verbose
        super().__init__(
            metadata=metadata,
            enforce_min_max_values=_python_s(enforce_min_max_values),
            enforce_rounding=_python_s(enforce_rounding),
            locales=locales or ["en_US"],
        )
        self._ledgers = (
            CombinedLedger()
        )  # the ledger of all fits, and what one that failed had paid for
        self._fitted_table: FittedTable | None = None  # of the last fit that succeeded
        self._dtypes: Mapping[str, Any] = {}  # those of the table that no cell chose
        self._gives_frames = False  # whether a DataFrame was fitted, and not a dict of one
        self._original_columns = pd.Index([])
        self._check_settings()
        description = self._description()
        description.require_order()
        # A domain is asked for at fit: SDV builds synthesizers before it knows their domain.
        with suppress(PublicDomainError):
            _ = description.schema
        for sentence in self._settings().absurd():
            warnings.warn(sentence, stacklevel=3 if "__init__" in type(self).__dict__ else 2)

    __init__.__qualname__ = "__init__"  # a TypeError names no class that is not the caller's

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
        """What is public of the table: of the one that was fitted, once there is one."""
        found, settings = self._model_of_table, self._settings()
        keys = tuple(self._get_table_metadata()._get_primary_and_alternate_keys())
        names = tuple(modelled(self._described, keys))
        return Description.of(
            deepcopy(dict(self._described)),
            self.public_domain,
            keys=keys,
            constraints=Constraints(tuple(map(translated, self._reject_sampling_constraints))),
            num_bins=settings.method.num_bins,
            discovers=bool(self.discovery_share),
            enforce_rounding=self.enforce_rounding,
            # A penalty reads them: rows must have just what the model says.
            kept=frozenset(settings.method.reads(Domain(names, (1,) * len(names)))),
            dtypes=self._dtypes,
            discovered={} if found is None else found.description.discovered,
            shapes={} if found is None else found.description.shapes,
            visits=settings.people.visits,
            questions=listed_questions(self.questions),
        )

    @property
    def ledger(self) -> PrivacyLedger:
        """Every charge of every fit of this object, exact. Public."""
        ledger = self._ledgers.ledger
        return self._settings().ledger() if ledger is None else ledger

    @property
    def fitted_table(self) -> FittedTable:
        """The fitted table, as ``fit_table`` returns it, with the ledger of all fits. Public."""
        self._require_fitted()
        assert self._fitted_table is not None
        table, own = self._fitted_table, self._fitted_table.fitted.release
        notes = () if own is None else on_several_releases(self.ledger, own.ledger)
        return replace(
            table,
            ledger=self.ledger,
            warnings=(*table.warnings, *notes),
            date=str(self._fitted_date),
            name=str(self._table_name),
        )

    @property
    def _model_of_table(self) -> Fitted | None:
        return None if self._fitted_table is None else self._fitted_table.fitted

    @property
    def _described(self) -> Mapping[str, Mapping]:
        """SDV's description of each column, in order."""
        return self._get_table_metadata().columns

    @property
    def _release(self) -> Release | None:
        return None if self._model_of_table is None else self._model_of_table.release

    @property
    def _sampler(self) -> RowMaker | None:
        return None if self._model_of_table is None else self._model_of_table.sampler

    def _fit_options(self) -> dict[str, Any]:
        """What a fit would be told, but for what the settings and the description hold."""
        parameters = self.get_parameters().items()
        return {n: deepcopy(own) for n, own in parameters if n not in ("public_domain", "method")}

    def _schema(self) -> Schema:
        """The modelled columns. Raises ``PublicDomainError`` where a domain is not known.

        Those that an order of rows adds are not the user's.
        """
        fitted = self._model_of_table
        description = self._description() if fitted is None else fitted.description
        own = (each for each in description.schema.columns if each.name in self._described)
        return replace(description.schema, columns=tuple(own))

    def _require_fitted(self) -> None:
        if not self._fitted:
            raise NotFittedError("There is nothing to show yet. Please fit your synthesizer first.")

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


def _python_s(value: Any) -> Any:
    """A truth of NumPy's as a bool, anything else as it is: SDV checks it."""
    return bool(value) if isinstance(value, np.bool_) else value


def _refuse_several_tables(synthesizer: str, arguments: Collection[str]) -> None:
    """Raises ``SynthesizerInputError`` for arguments with which HMA makes one of its parts.

    It gives a column's distribution, which no synthesizer here has, or no epsilon.
    """
    if "default_distribution" in arguments or (
        {"metadata", "locales"} <= set(arguments) and "epsilon" not in arguments
    ):
        raise SynthesizerInputError(
            f"{synthesizer} cannot work inside a synthesizer of several tables, which makes one "
            "for each table and each parent's rows: they would need one privacy budget over all "
            "of them. Synthesize one table, with epsilon=..., and if its rows are joined from "
            "several, with people=People(...)."
        )
