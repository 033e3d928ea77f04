"""Differentially private synthetic tables for SDV, and without it.

Start with ``fit_table``, which takes a DataFrame and declarations of its columns, or with
``PrivPGDSynthesizer``, which has SDV's interface. ``draft_domain`` and ``check_domain`` help to
declare a table.

Importing the package imports neither SDV nor torch: the public names are resolved when they are
first used (PEP 562), so that ``fit_table`` and all that it needs work where SDV is not installed.

>>> from sdv_privpgd import Categorical, Numerical
>>> {"age": Numerical(0, 110, decimal_places=0), "ward": Categorical(["A", "B"])}["ward"]
{'range_values': ['A', 'B']}
"""

from importlib import import_module
from importlib.metadata import version as _version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sdv_privpgd.audit.door import audit_fit, audit_fitted
    from sdv_privpgd.audit.releases import audit_measure
    from sdv_privpgd.columns.declared import Boolean, Categorical, Datetime, Numerical, Ordinal
    from sdv_privpgd.columns.schema import PublicDomainError
    from sdv_privpgd.drafting.checking import check_domain
    from sdv_privpgd.drafting.files import read_domain, write_domain
    from sdv_privpgd.drafting.template import draft_domain
    from sdv_privpgd.drafting.types import draft_metadata
    from sdv_privpgd.fitting.door import FittedTable, fit_table
    from sdv_privpgd.fitting.halting import MisfitError
    from sdv_privpgd.inference.answers import Answer, TableAnswer
    from sdv_privpgd.inference.coefficients import Regression
    from sdv_privpgd.inference.imputation import Rubin, rubin
    from sdv_privpgd.inference.replicates import Bootstrap
    from sdv_privpgd.matching import MatchError
    from sdv_privpgd.privacy.ledger import PrivacyBudgetError, PrivacyLedger
    from sdv_privpgd.releases.combining import CombinedTable, combine
    from sdv_privpgd.releases.measured import Measured
    from sdv_privpgd.releases.measuring import measure
    from sdv_privpgd.releases.published import PublishedTables, from_tables
    from sdv_privpgd.report.document import Report
    from sdv_privpgd.report.evaluation import evaluate
    from sdv_privpgd.sampling.between import Between
    from sdv_privpgd.select.adaptive import Adaptive
    from sdv_privpgd.select.aim import AIM
    from sdv_privpgd.select.all_pairs import AllPairs
    from sdv_privpgd.select.fixed import AllKWay
    from sdv_privpgd.select.half_spaces import HalfSpaces
    from sdv_privpgd.select.independent import Independent
    from sdv_privpgd.select.mean_embedding import MeanEmbedding
    from sdv_privpgd.select.mst import MST
    from sdv_privpgd.select.mwem import MWEM
    from sdv_privpgd.select.private_gradients import PrivateGradients
    from sdv_privpgd.select.privmrf import PrivMRF
    from sdv_privpgd.select.privsyn import PrivSyn
    from sdv_privpgd.select.strategy import Strategy
    from sdv_privpgd.synthesize.adversarial import AdversarialNetwork
    from sdv_privpgd.synthesize.annealed import AnnealedProjection
    from sdv_privpgd.synthesize.diffusion import DiffusionNetwork
    from sdv_privpgd.synthesize.engine import Engine
    from sdv_privpgd.synthesize.gem import GenerativeNetwork
    from sdv_privpgd.synthesize.generator import GeneratorNetwork
    from sdv_privpgd.synthesize.gum import GUM
    from sdv_privpgd.synthesize.particles.descent import ParticleGradientDescent
    from sdv_privpgd.synthesize.particles.penalties import DifferentiablePenalty, ProtectedThreshold
    from sdv_privpgd.synthesize.pgm import PrivatePGM
    from sdv_privpgd.synthesize.private_gsd import PrivateGSD
    from sdv_privpgd.synthesize.rap import RelaxedProjection
    from sdv_privpgd.synthesizer import (
        AIMSynthesizer,
        FixedCombinations,
        MSTSynthesizer,
        PrivPGDSynthesizer,
    )

__version__ = _version("sdv-privpgd")

_HOMES = {
    "AIM": "sdv_privpgd.select.aim",
    "AIMSynthesizer": "sdv_privpgd.synthesizer",
    "Adaptive": "sdv_privpgd.select.adaptive",
    "AllKWay": "sdv_privpgd.select.fixed",
    "AllPairs": "sdv_privpgd.select.all_pairs",
    "AdversarialNetwork": "sdv_privpgd.synthesize.adversarial",
    "AnnealedProjection": "sdv_privpgd.synthesize.annealed",
    "Answer": "sdv_privpgd.inference.answers",
    "Between": "sdv_privpgd.sampling.between",
    "Boolean": "sdv_privpgd.columns.declared",
    "Bootstrap": "sdv_privpgd.inference.replicates",
    "Categorical": "sdv_privpgd.columns.declared",
    "CombinedTable": "sdv_privpgd.releases.combining",
    "Datetime": "sdv_privpgd.columns.declared",
    "DifferentiablePenalty": "sdv_privpgd.synthesize.particles.penalties",
    "DiffusionNetwork": "sdv_privpgd.synthesize.diffusion",
    "Engine": "sdv_privpgd.synthesize.engine",
    "FittedTable": "sdv_privpgd.fitting.door",
    "FixedCombinations": "sdv_privpgd.synthesizer",
    "GeneratorNetwork": "sdv_privpgd.synthesize.generator",
    "GenerativeNetwork": "sdv_privpgd.synthesize.gem",
    "GUM": "sdv_privpgd.synthesize.gum",
    "HalfSpaces": "sdv_privpgd.select.half_spaces",
    "Independent": "sdv_privpgd.select.independent",
    "MST": "sdv_privpgd.select.mst",
    "MSTSynthesizer": "sdv_privpgd.synthesizer",
    "MWEM": "sdv_privpgd.select.mwem",
    "MeanEmbedding": "sdv_privpgd.select.mean_embedding",
    "MatchError": "sdv_privpgd.matching",
    "PrivateGradients": "sdv_privpgd.select.private_gradients",
    "Measured": "sdv_privpgd.releases.measured",
    "MisfitError": "sdv_privpgd.fitting.halting",
    "Numerical": "sdv_privpgd.columns.declared",
    "Ordinal": "sdv_privpgd.columns.declared",
    "ParticleGradientDescent": "sdv_privpgd.synthesize.particles.descent",
    "PrivMRF": "sdv_privpgd.select.privmrf",
    "PrivPGDSynthesizer": "sdv_privpgd.synthesizer",
    "PrivSyn": "sdv_privpgd.select.privsyn",
    "PrivacyBudgetError": "sdv_privpgd.privacy.ledger",
    "PrivacyLedger": "sdv_privpgd.privacy.ledger",
    "PrivateGSD": "sdv_privpgd.synthesize.private_gsd",
    "PrivatePGM": "sdv_privpgd.synthesize.pgm",
    "ProtectedThreshold": "sdv_privpgd.synthesize.particles.penalties",
    "PublicDomainError": "sdv_privpgd.columns.schema",
    "PublishedTables": "sdv_privpgd.releases.published",
    "Regression": "sdv_privpgd.inference.coefficients",
    "RelaxedProjection": "sdv_privpgd.synthesize.rap",
    "Report": "sdv_privpgd.report.document",
    "Rubin": "sdv_privpgd.inference.imputation",
    "Strategy": "sdv_privpgd.select.strategy",
    "TableAnswer": "sdv_privpgd.inference.answers",
    "audit_fit": "sdv_privpgd.audit.door",
    "audit_fitted": "sdv_privpgd.audit.door",
    "audit_measure": "sdv_privpgd.audit.releases",
    "check_domain": "sdv_privpgd.drafting.checking",
    "combine": "sdv_privpgd.releases.combining",
    "draft_domain": "sdv_privpgd.drafting.template",
    "draft_metadata": "sdv_privpgd.drafting.types",
    "evaluate": "sdv_privpgd.report.evaluation",
    "fit_table": "sdv_privpgd.fitting.door",
    "from_tables": "sdv_privpgd.releases.published",
    "measure": "sdv_privpgd.releases.measuring",
    "read_domain": "sdv_privpgd.drafting.files",
    "rubin": "sdv_privpgd.inference.imputation",
    "write_domain": "sdv_privpgd.drafting.files",
}

__all__ = [
    "AIM",
    "GUM",
    "MST",
    "MWEM",
    "AIMSynthesizer",
    "Adaptive",
    "AdversarialNetwork",
    "AllKWay",
    "AllPairs",
    "AnnealedProjection",
    "Answer",
    "Between",
    "Boolean",
    "Bootstrap",
    "Categorical",
    "CombinedTable",
    "Datetime",
    "DifferentiablePenalty",
    "DiffusionNetwork",
    "Engine",
    "FittedTable",
    "FixedCombinations",
    "GenerativeNetwork",
    "GeneratorNetwork",
    "HalfSpaces",
    "Independent",
    "MSTSynthesizer",
    "MatchError",
    "MeanEmbedding",
    "Measured",
    "MisfitError",
    "Numerical",
    "Ordinal",
    "ParticleGradientDescent",
    "PrivMRF",
    "PrivPGDSynthesizer",
    "PrivSyn",
    "PrivacyBudgetError",
    "PrivacyLedger",
    "PrivateGSD",
    "PrivateGradients",
    "PrivatePGM",
    "ProtectedThreshold",
    "PublicDomainError",
    "PublishedTables",
    "Regression",
    "RelaxedProjection",
    "Report",
    "Rubin",
    "Strategy",
    "TableAnswer",
    "audit_fit",
    "audit_fitted",
    "audit_measure",
    "check_domain",
    "combine",
    "draft_domain",
    "draft_metadata",
    "evaluate",
    "fit_table",
    "from_tables",
    "measure",
    "read_domain",
    "rubin",
    "write_domain",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
