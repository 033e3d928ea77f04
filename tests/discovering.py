"""What discovery finds of made-up columns."""

from fractions import Fraction

import numpy as np
import pandas as pd
from encoding import Codec

from sdv_privpgd.columns.parser import read_facts
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.columns.vocabulary import words_of
from sdv_privpgd.discovery.first_queries import reserved_delta
from sdv_privpgd.discovery.plan import discover
from sdv_privpgd.discovery.transcript import Inquiry
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.ledger import FitLedger, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency


def found(column, facts, **settings):
    """What is discovered of one column, in SDV's words, and the ledger."""
    facts, ledger = found_in({"x": pd.Series(column)}, {"x": facts}, **settings)
    return facts["x"], ledger


def found_in(
    columns, undeclared, *, epsilon=5.0, adjacency=Adjacency.REPLACE_ONE, rows_per_person=1, seed=0
):
    """What is discovered of some columns, in SDV's words, and the ledger."""
    undeclared = {name: read_facts(name, words) for name, words in undeclared.items()}
    ledger = PrivacyLedger.open(
        epsilon, 1e-5, adjacency, rows_per_person, reserved=reserved_delta(undeclared, 1e-5)
    )
    shared = FitLedger(ledger, words=np.random.default_rng(seed).bytes)
    inquiry = Inquiry(table=PrivateTable(columns), shared=shared)
    facts = discover(inquiry, undeclared, Fraction(1, 20)).facts
    return {name: words_of(each) for name, each in facts.items()}, shared.ledger


def described(sdtype, facts):
    """The columns of a schema with what was found."""
    return Schema.from_sdv({"x": {"sdtype": sdtype}}, public_domain={"x": facts}).columns


def drawn(column, sdtype, facts, **settings):
    """The column once more: its own codes, with values drawn from the cells that were found."""
    series = pd.Series(column)
    declared = {"sdtype": sdtype, **facts}
    found_facts, _ = found(series, declared, **settings)
    (own,) = described(sdtype, {**facts, **found_facts})
    transformer = Codec(own)
    codes, _ = transformer.encode(series)
    positions = np.random.default_rng(1).random(len(codes))
    return transformer.decode(codes, positions, holds_missing=False)
