"""SDV's classes under their public name. It imports SDV first, then the classes."""

from sdv_privpgd._lazy import need

try:  # SDV loads its add-ons, this package among them, at the end of its import
    import sdv  # noqa: F401
except ImportError:
    need("A synthesizer with SDV's interface", "sdv")
    raise

from sdv_privpgd.plugin.multi_table import PrivPGDMultiTableSynthesizer
from sdv_privpgd.plugin.synthesizers import AIMSynthesizer, MSTSynthesizer, PrivPGDSynthesizer

__all__ = [
    "AIMSynthesizer",
    "MSTSynthesizer",
    "PrivPGDMultiTableSynthesizer",
    "PrivPGDSynthesizer",
]
