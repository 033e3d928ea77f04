"""Differentially private synthetic tables for SDV.

Importing the package imports neither SDV nor torch: the public names are resolved when they are
first used (PEP 562), so that the numerical core works where SDV is not installed.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sdv_privpgd.privacy.ledger import PrivacyBudgetError, PrivacyLedger
    from sdv_privpgd.schema import PublicDomainError
    from sdv_privpgd.synthesize.particles.descent import ParticleGradientDescent
    from sdv_privpgd.synthesize.particles.penalties import DifferentiablePenalty, ProtectedThreshold
    from sdv_privpgd.synthesizer import PrivPGDSynthesizer

_HOMES = {
    "DifferentiablePenalty": "sdv_privpgd.synthesize.particles.penalties",
    "ParticleGradientDescent": "sdv_privpgd.synthesize.particles.descent",
    "PrivPGDSynthesizer": "sdv_privpgd.synthesizer",
    "PrivacyBudgetError": "sdv_privpgd.privacy.ledger",
    "PrivacyLedger": "sdv_privpgd.privacy.ledger",
    "ProtectedThreshold": "sdv_privpgd.synthesize.particles.penalties",
    "PublicDomainError": "sdv_privpgd.schema",
}

__all__ = [
    "DifferentiablePenalty",
    "ParticleGradientDescent",
    "PrivPGDSynthesizer",
    "PrivacyBudgetError",
    "PrivacyLedger",
    "ProtectedThreshold",
    "PublicDomainError",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
