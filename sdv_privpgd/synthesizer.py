"""SDV's classes under their public name."""

from sdv_privpgd.plugin.multi_table import PrivPGDMultiTableSynthesizer
from sdv_privpgd.plugin.synthesizers import AIMSynthesizer, MSTSynthesizer, PrivPGDSynthesizer

__all__ = [
    "AIMSynthesizer",
    "MSTSynthesizer",
    "PrivPGDMultiTableSynthesizer",
    "PrivPGDSynthesizer",
]
