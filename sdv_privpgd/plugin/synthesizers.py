"""The synthesizers that SDV finds: each names its strategy and its engine.

With ``base.py`` they are all that a user of SDV needs to know.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from importlib import import_module

import pandas as pd
from sdv.metadata import Metadata

from sdv_privpgd import forecast
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.domain import Domain
from sdv_privpgd.estimate.structural_zeros import Possible
from sdv_privpgd.fitting.settings import check_count, check_flag, check_positive
from sdv_privpgd.plugin.base import PrivateSynthesizer
from sdv_privpgd.plugin.constraints import FixedCombinations
from sdv_privpgd.progress import Progress, Stage, expect, one_step
from sdv_privpgd.select.aim import AIM
from sdv_privpgd.select.all_pairs import AllPairs
from sdv_privpgd.select.independent import Independent
from sdv_privpgd.select.mst import MST
from sdv_privpgd.select.mwem import MWEM
from sdv_privpgd.select.strategy import Strategy
from sdv_privpgd.synthesize.engine import Engine
from sdv_privpgd.synthesize.particles.particles import Particles
from sdv_privpgd.synthesize.pgm import PrivatePGM

_STRATEGIES = {
    "all_pairs": AllPairs,
    "independent": Independent,
    "mst": MST,
    "aim": AIM,
    "mwem": MWEM,
}


class PrivPGDSynthesizer(PrivateSynthesizer):
    """Differentially private synthetic rows of one table, by particle gradient descent.

    Everything that the fitted object exposes (samples, attributes, files, messages) is
    (epsilon, delta)-differentially private for one row, or for the ``rows_per_person`` rows of
    one person. The method is PrivPGD (Donhauser et al. 2024) with exact Gaussian accounting.

    Args:
        metadata: SDV metadata of one table. Column names, sdtypes, keys and datetime formats are
            taken as public, and so are the fitted table's dtypes that no cell chose. Ranges,
            categories and precisions in it are dropped unless ``public_metadata`` is set, because
            SDV's detection reads them off the table.
        epsilon: What each ``fit`` may spend, positive.
        delta: Strictly between 0 and 1; choose it well below 1 / (number of rows).
        adjacency: ``'replace_one'``: one row's values may change, the number of rows is public.
            ``'add_remove'``: the number of rows is private, too, and takes 1 % of the budget.
        rows_per_person: The largest number of rows that one person may have.
        public_domain: ``{column: {...}}`` with ``range_min`` and ``range_max`` (numerical,
            datetime) or ``range_values`` (categorical, ordinal), and optionally
            ``range_is_nullable``, ``decimal_places``, ``datetime_format``, ``num_bins``,
            ``cut_points`` (where the cells of numbers or dates begin), ``frequencies`` (how often
            each of these cells, or of the ``range_values``, occurs: where they are many they are
            merged, and drawn again as often), ``increment`` (a whole number that all values are
            multiples of) and ``other_value`` (what all values that are not in ``range_values``
            become).
            Write it from documentation, never from the data. It goes before the metadata.
        public_metadata: Whether the ranges in the metadata are public knowledge as well.
        discovery_share: Part of the budget, at most, that finds ranges and categories which are
            not declared, privately, and where in a declared range rows lie; each column that is
            looked into has its part. At 0 there is a ``PublicDomainError`` instead, and declared
            ranges have cells of equal width. Values that few rows have become ``'other'``, or
            nines (9, 99, ...) among numbers. It also finds how frequent declared categories are
            where they are more than 256: rare ones share a cell, and are drawn from it as often.
            At 0 neighbors in the declared order share cells evenly. Thresholds cost a thirtieth
            of ``delta`` each, at most three of them. Where nothing is declared, 0.2 gave clearly
            lower errors than 0.05 on five of ten real tables, and equal ones within noise on the
            other five; at epsilon 0.2 a share of 0.3 was lower still on those five. Where all
            ranges are declared, the share made no difference beyond noise.
        num_bins: Cells of a numerical or datetime column: of about equally many rows, and of equal
            width where nothing is looked into.
        strategy: What is measured: ``'all_pairs'`` (also triples, over a few groups of values
            each, and where the noise is loud all columns alone), ``'independent'`` (each column
            alone), ``'mst'``, ``'aim'`` or ``'mwem'``, or a ``Strategy`` with settings of its own.
        num_particles: Synthetic records that are fitted. ``None``: a part of the rows, at most
            100,000 and fewer for many columns.
        penalties: Penalties of the descent (``ProtectedThreshold``, ``DifferentiablePenalty``).
        enable_gpu: Whether CUDA is used when there is one. Its kernels are tested in Triton's
            interpreter, and have not run on a device.
        seed: Of what comes after the noisy answers, the sampled rows above all. The noise and
            the private choices come from the operating system and have no seed.
        verbose: Whether a bar shows how far a fit is, and SDV its own while rows are sampled.
        enforce_min_max_values: Taken for SDV's sake: values never leave the declared range.
        enforce_rounding: Whether ``decimal_places`` is respected; ``False`` gives plain floats.
        locales: Locales of generated personal data; ``None`` is ``['en_US']``.

    Raises:
        ValueError: For an argument outside its range; the message names value and remedy.
        SynthesizerInputError: For metadata of several tables, of sequences or composite keys.
    """

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
        strategy: Strategy | str = "all_pairs",
        num_particles: int | None = None,
        penalties: Sequence = (),
        enable_gpu: bool = False,
        seed: int = 0,
        verbose: bool = False,
        enforce_min_max_values: bool = True,
        enforce_rounding: bool = True,
        locales: Sequence[str] | str | None = None,
    ) -> None:
        self.strategy = strategy
        self.num_particles = num_particles
        self.penalties = tuple(penalties)
        self.enable_gpu = check_flag("enable_gpu", enable_gpu)
        super().__init__(
            metadata,
            epsilon,
            delta,
            adjacency=adjacency,
            rows_per_person=rows_per_person,
            public_domain=public_domain,
            public_metadata=public_metadata,
            discovery_share=discovery_share,
            num_bins=num_bins,
            seed=seed,
            verbose=verbose,
            enforce_min_max_values=enforce_min_max_values,
            enforce_rounding=enforce_rounding,
            locales=locales,
        )

    def _check_settings(self) -> None:
        self.enable_gpu = check_flag("enable_gpu", self.enable_gpu)
        if self.num_particles is not None:
            self.num_particles = check_count("num_particles", self.num_particles)
        self.penalties = tuple(self.penalties)
        super()._check_settings()

    def _strategy(self) -> Strategy:
        if isinstance(self.strategy, Strategy):
            return self.strategy
        if not isinstance(self.strategy, str) or self.strategy not in _STRATEGIES:
            raise ValueError(
                f"strategy must be one of {tuple(_STRATEGIES)} or a Strategy object such as "
                f"AIM(max_megabytes=20), got {self.strategy!r}."
            )
        return _STRATEGIES[self.strategy]()

    def _engine(self, possible: Possible) -> Engine:
        # Imported late: reading metadata and making rows from a file need no torch.
        from sdv_privpgd.synthesize.particles.descent import ParticleGradientDescent

        engine = ParticleGradientDescent(
            penalties=self.penalties, possible=possible, seed=self.seed, enable_gpu=self.enable_gpu
        )
        if self.num_particles is None:
            return engine
        return replace(engine, num_particles=self.num_particles)

    def _kept_columns(self) -> Collection[str]:
        metadata = self._get_table_metadata()
        keys = metadata._get_primary_and_alternate_keys()
        names = tuple(Schema.modelled(metadata.columns, keys, self.public_domain or {}))
        domain = Domain(names, (1,) * len(names))
        return {name for penalty in self.penalties for name in penalty.attributes(domain)}

    def _begin(self, progress: Progress, foretold: Callable[[], Sequence[Stage]]) -> None:
        """Compiles first, where the machine has not compiled before."""
        # Imported late: reading metadata and making rows from a file need no torch.
        from sdv_privpgd.synthesize.particles import warmup

        if warmup.must_compile(enable_gpu=self.enable_gpu):
            expect(progress, lambda: [*forecast.compiling(), *foretold()])
            with one_step(progress, "compile"):
                warmup.compile_all()
        super()._begin(progress, foretold)

    def get_loss_values(self) -> pd.DataFrame:
        """How far the particles were from the noisy tables after some epochs. Public.

        ``Loss`` is the mean over the tables of the squared sliced W2 distance, along directions
        that are the same for all epochs.
        """
        self._require_fitted()
        if self._release is None:  # no column is modelled
            return pd.DataFrame({"Epoch": [], "Loss": []})
        model = self._release.model
        assert isinstance(model, Particles)
        return pd.DataFrame({"Epoch": list(model.losses), "Loss": list(model.losses.values())})

    def get_loss_values_plot(self, title: str = "PrivPGD loss function"):
        """A plotly figure of ``get_loss_values``."""
        # Imported late: a second, which only this plot needs.
        import plotly.express as px

        losses = self.get_loss_values()
        return px.line(
            losses,
            x="Epoch",
            y="Loss",
            title=title,
            markers=True,
            log_y=True,
            template="plotly_white",
        )


class MSTSynthesizer(PrivateSynthesizer):
    """Differentially private synthetic rows of one table, by a maximum spanning tree and PGM.

    Measures each column and the pairs of a privately chosen spanning tree, and fits the graphical
    model of these tables (McKenna, Miklau & Sheldon 2021, NIST-MST). The guarantee and the
    arguments are those of ``PrivPGDSynthesizer``, without the ones of its particles.
    """

    def _strategy(self) -> Strategy:
        return MST()

    def _engine(self, possible: Possible) -> Engine:
        return PrivatePGM(possible=possible)


class AIMSynthesizer(PrivateSynthesizer):
    """Differentially private synthetic rows of one table, by AIM and PGM.

    Measures each column, then round by round the table that the graphical model so far gets most
    wrong (McKenna et al. 2022, AIM; all pairs are its workload). The guarantee and the arguments
    are those of ``PrivPGDSynthesizer``, without the ones of its particles.

    Args:
        max_megabytes: The largest graphical model, in MiB. Larger ones fit more pairs and take
            longer.
    """

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
        max_megabytes: float = 80.0,
        seed: int = 0,
        verbose: bool = False,
        enforce_min_max_values: bool = True,
        enforce_rounding: bool = True,
        locales: Sequence[str] | str | None = None,
    ) -> None:
        self.max_megabytes = max_megabytes
        super().__init__(
            metadata,
            epsilon,
            delta,
            adjacency=adjacency,
            rows_per_person=rows_per_person,
            public_domain=public_domain,
            public_metadata=public_metadata,
            discovery_share=discovery_share,
            num_bins=num_bins,
            seed=seed,
            verbose=verbose,
            enforce_min_max_values=enforce_min_max_values,
            enforce_rounding=enforce_rounding,
            locales=locales,
        )

    def _check_settings(self) -> None:
        self.max_megabytes = check_positive("max_megabytes", self.max_megabytes)
        super()._check_settings()

    def _strategy(self) -> Strategy:
        return AIM(max_megabytes=self.max_megabytes)

    def _engine(self, possible: Possible) -> Engine:
        return PrivatePGM(possible=possible)


# Pickles name a class by the module that makes sure of SDV, and look it up there: were that
# module not imported, cloudpickle would write the class itself into the file.
for _class in (PrivPGDSynthesizer, MSTSynthesizer, AIMSynthesizer, FixedCombinations):
    _class.__module__ = "sdv_privpgd.synthesizer"
import_module("sdv_privpgd.synthesizer")
