"""Synthesizers that are fitted in a second."""

import sdv_tables

from sdv_privpgd import PrivPGDSynthesizer

NEW = {"epsilon": 1.0, "public_domain": sdv_tables.PUBLIC_DOMAIN, **sdv_tables.SMALL}


def new(**changes) -> PrivPGDSynthesizer:
    return PrivPGDSynthesizer(**{"metadata": sdv_tables.metadata(), **NEW, **changes})


def boolean(**changes) -> PrivPGDSynthesizer:
    """The smallest synthesizer: one boolean column."""
    metadata = sdv_tables.metadata_of({"a": {"sdtype": "boolean"}})
    return PrivPGDSynthesizer(
        **{"metadata": metadata, "epsilon": 1.0, **sdv_tables.SMALL, **changes}
    )
