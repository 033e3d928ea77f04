"""Pairs that public facts tie together are asked for over codes, however many pairs there are."""

import numpy as np
import pandas as pd
import pytest
import sdv_tables
from sdv.cag import Inequality

from sdv_privpgd import Boolean, PrivPGDSynthesizer, fit_table
from sdv_privpgd.methods import ParticleGradientDescent, PrivPGD
from sdv_privpgd.privacy.queries import GroupedMarginalQuery, MarginalQuery

STAYS = {name: {"sdtype": "numerical"} for name in ("admitted", "discharged", "price", "age")}
KNOWN = {
    name: {"range_min": 0, "range_max": 364, "decimal_places": 0, "range_is_nullable": False}
    for name in STAYS
}
ENGINE = ParticleGradientDescent(num_particles=200, epochs=2)


def asked_over_codes(measurements):
    queries = [each.query for each in measurements if isinstance(each.query, MarginalQuery)]
    return {query.clique for query in queries if len(query.clique) == 2}


def test_those_of_a_constraint_and_of_a_difference_are():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.integers(0, 180, (300, 4)), columns=pd.Index(STAYS))
    table["discharged"] += table["admitted"]
    synthesizer = PrivPGDSynthesizer(
        sdv_tables.metadata_of(STAYS), 1.0, public_domain=KNOWN,
        method=PrivPGD(most_pairs=1, triples=0, engine=ENGINE),
        discovery_share=0,
    )  # fmt: skip
    synthesizer.add_constraints([Inequality("admitted", "discharged")])
    synthesizer.fit(table)
    tables = synthesizer.noisy_tables()
    fine = tables[(tables["kind"] == "consistent") & tables["column_2"].notna()]
    pairs = set(zip(fine["column_1"], fine["column_2"], strict=True))
    assert ("admitted", "discharged") in pairs
    assert ("admitted", "discharged - admitted") in pairs
    assert ("price", "age") not in pairs


def test_those_that_a_user_wants_are_and_what_is_no_column_is_refused():
    table = pd.DataFrame({name: [True, False] * 200 for name in "abcd"})
    columns = dict.fromkeys(table.columns, Boolean())
    wanted = PrivPGD(most_pairs=1, pairs=(("d", "c"),), triples=0, engine=ENGINE)
    fitted = fit_table(table, columns, 1.0, method=wanted)
    measured = fitted.fitted.release.measurements
    assert asked_over_codes(measured) == {("c", "d")}
    assert sum(isinstance(each.query, GroupedMarginalQuery) for each in measured) == 6
    text = fitted.report().to_dict()
    assert "coarse tables of all pairs of columns" in str(text) + fitted.report().html()
    with pytest.raises(ValueError, match="'z'"):
        fit_table(table, columns, 1.0, method=PrivPGD(pairs=(("a", "z"),), engine=ENGINE))
