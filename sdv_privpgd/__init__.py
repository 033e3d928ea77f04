"""Differentially private synthetic tables for SDV.

Importing the package imports neither SDV nor torch: the public names are resolved when they are
first used (PEP 562), so that the numerical core works where SDV is not installed.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sdv_privpgd.columns.schema import PublicDomainError
    from sdv_privpgd.drafting.checking import check_domain
    from sdv_privpgd.drafting.files import read_domain, write_domain
    from sdv_privpgd.drafting.template import draft_domain
    from sdv_privpgd.drafting.types import draft_metadata
    from sdv_privpgd.privacy.ledger import PrivacyBudgetError, PrivacyLedger
    from sdv_privpgd.report.evaluation import evaluate
    from sdv_privpgd.sampling.between import Between
    from sdv_privpgd.select.aim import AIM
    from sdv_privpgd.select.independent import Independent
    from sdv_privpgd.select.mst import MST
    from sdv_privpgd.select.mwem import MWEM
    from sdv_privpgd.synthesize.particles.descent import ParticleGradientDescent
    from sdv_privpgd.synthesize.particles.penalties import DifferentiablePenalty, ProtectedThreshold
    from sdv_privpgd.synthesize.pgm import PrivatePGM
    from sdv_privpgd.synthesizer import (
        AIMSynthesizer,
        FixedCombinations,
        MSTSynthesizer,
        PrivPGDSynthesizer,
    )

_HOMES = {
    "AIM": "sdv_privpgd.select.aim",
    "AIMSynthesizer": "sdv_privpgd.synthesizer",
    "MST": "sdv_privpgd.select.mst",
    "MSTSynthesizer": "sdv_privpgd.synthesizer",
    "MWEM": "sdv_privpgd.select.mwem",
    "Between": "sdv_privpgd.sampling.between",
    "DifferentiablePenalty": "sdv_privpgd.synthesize.particles.penalties",
    "FixedCombinations": "sdv_privpgd.synthesizer",
    "Independent": "sdv_privpgd.select.independent",
    "ParticleGradientDescent": "sdv_privpgd.synthesize.particles.descent",
    "PrivPGDSynthesizer": "sdv_privpgd.synthesizer",
    "PrivatePGM": "sdv_privpgd.synthesize.pgm",
    "PrivacyBudgetError": "sdv_privpgd.privacy.ledger",
    "PrivacyLedger": "sdv_privpgd.privacy.ledger",
    "ProtectedThreshold": "sdv_privpgd.synthesize.particles.penalties",
    "PublicDomainError": "sdv_privpgd.columns.schema",
    "check_domain": "sdv_privpgd.drafting.checking",
    "draft_domain": "sdv_privpgd.drafting.template",
    "draft_metadata": "sdv_privpgd.drafting.types",
    "evaluate": "sdv_privpgd.report.evaluation",
    "read_domain": "sdv_privpgd.drafting.files",
    "write_domain": "sdv_privpgd.drafting.files",
}

__all__ = [
    "AIM",
    "MST",
    "MWEM",
    "AIMSynthesizer",
    "Between",
    "DifferentiablePenalty",
    "FixedCombinations",
    "Independent",
    "MSTSynthesizer",
    "ParticleGradientDescent",
    "PrivPGDSynthesizer",
    "PrivacyBudgetError",
    "PrivacyLedger",
    "PrivatePGM",
    "ProtectedThreshold",
    "PublicDomainError",
    "check_domain",
    "draft_domain",
    "draft_metadata",
    "evaluate",
    "read_domain",
    "write_domain",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
