"""SDV's classes under their public name. It imports SDV first, then the classes."""

import sdv  # noqa: F401  (SDV loads its add-ons, this package among them, at the end of its import)

from sdv_privpgd.plugin.synthesizers import (
    AIMSynthesizer,
    FixedCombinations,
    MSTSynthesizer,
    PrivPGDSynthesizer,
)

__all__ = ["AIMSynthesizer", "FixedCombinations", "MSTSynthesizer", "PrivPGDSynthesizer"]
