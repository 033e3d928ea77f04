"""What is asked for a mean embedding: the tables, the coordinates and the label."""

from fractions import Fraction

import numpy as np
import pandas as pd
from answers import open_curator
from small_engine import measured_by

from sdv_privpgd import Categorical, Numerical, fit_table
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.estimate.features import EmbeddingQuery
from sdv_privpgd.methods import DPMERF, GeneratorNetwork
from sdv_privpgd.methods.dp_merf import TABLES
from sdv_privpgd.privacy.dataset import Dataset

DOMAIN = Domain(("age", "job", "ill", "one"), (5, 3, 2, 1))


def asked(strategy, domain=DOMAIN):
    codes = np.zeros((9, len(domain)), dtype=np.int64)
    curator = open_curator(Dataset(domain, codes))
    return curator, measured_by(strategy, curator)


def test_a_quarter_is_for_the_tables_which_hold_one_attribute_beside_the_label():
    curator, measured = asked(DPMERF(num_features=9))
    shares = [charge.mu_squared / curator.ledger.budget for charge in curator.ledger.charges]
    assert shares == [TABLES, 1 - TABLES] == [Fraction(1, 4), Fraction(3, 4)]
    assert [each.query.clique for each in measured[:-1]] == list(DOMAIN.cliques(1))
    domain = Domain(("age", "ill"), (5, 2))
    _, measured = asked(DPMERF(importance={"ill": 6.0}), domain)
    assert [each.query.clique for each in measured] == [("age", "ill")]


def test_codes_lie_in_the_middle_of_their_cells_or_apart():
    strategy = DPMERF(nominal=("job",), nullable=("age", "job"), num_features=9, seed=4)
    query = asked(strategy)[1][-1].query
    assert isinstance(query, EmbeddingQuery)
    found = dict(query.coordinates)
    assert set(found) == {"age", "job", "ill"}  # what cannot vary says nothing
    assert found["job"] == (None,) * 3
    assert found["age"][-1] is None
    np.testing.assert_allclose(found["age"][:-1], 3 * np.array([-0.375, -0.125, 0.125, 0.375]))
    np.testing.assert_allclose(found["ill"], [-0.75, 0.75])
    assert (query.seed, query.num_features, query.bandwidth, query.label) == (4, 9, 1.0, None)


def test_a_target_takes_rows_apart():
    curator, measured = asked(DPMERF(importance={"ill": 6.0}, num_features=9))
    *tables, embedding = measured
    assert [each.query.clique for each in tables] == [(x, "ill") for x in ("age", "job", "one")]
    assert embedding.answer.shape == (2, 2, 9)
    assert [name for name, _ in embedding.query.coordinates] == ["age", "job"]
    assert [each.what for each in curator.ledger.charges] == [
        "2-way marginals with ill",
        "mean embedding, 9 random features by ill",
    ]


def test_a_fit_says_which_codes_have_no_order():
    columns = {
        "age": Numerical(0, 99, decimal_places=0, num_bins=4),
        "job": Categorical(["A", "B"]),
        "ill": Categorical([1, 0], nullable=False),
    }
    table = pd.DataFrame({"age": [3, 40] * 50, "job": ["A", "B"] * 50, "ill": [1, 0] * 50})
    fitted = fit_table(
        table,
        columns,
        epsilon=1.0,
        discovery_share=0,
        method=DPMERF(num_features=9, engine=GeneratorNetwork(steps=2)),
    )
    query = fitted.fitted.release.measurements[-1].query
    found = dict(query.coordinates)
    assert found["age"][-1] is None
    assert None not in found["age"][:-1]
    assert (found["job"], found["ill"]) == ((None,) * 3, (None,) * 2)
