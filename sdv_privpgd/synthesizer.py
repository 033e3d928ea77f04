"""The module that users name: it makes sure that SDV is there before the classes are."""

import sdv  # noqa: F401  (SDV loads its add-ons, this package among them, at the end of its import)

from sdv_privpgd.plugin.old_files import refuse_old_files
from sdv_privpgd.plugin.synthesizers import (
    AIMSynthesizer,
    FixedCombinations,
    MSTSynthesizer,
    PrivPGDSynthesizer,
)

refuse_old_files()

__all__ = ["AIMSynthesizer", "FixedCombinations", "MSTSynthesizer", "PrivPGDSynthesizer"]
