"""The core from codes to rows, without SDV: what the strategies and the engine do together."""

from dataclasses import replace

import numpy as np
import pytest

from sdv_privpgd import PrivacyLedger
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.methods import ParticleGradientDescent, pipeline
from sdv_privpgd.methods.fixed import AllKWay
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.ledger import Books
from sdv_privpgd.privacy.queries import Adjacency


def parity_release(degree: int, adjacency: Adjacency) -> pipeline.Release:
    """Three fair bits with an even sum: all pairs are independent, the triple is not."""
    domain = Domain(("a", "b", "c"), (2, 2, 2))
    bits = np.random.default_rng(0).integers(0, 2, size=(8_000, 2))
    codes = np.column_stack([bits, bits.sum(axis=1) % 2])
    ledger = PrivacyLedger.open(5.0, 1e-5, adjacency)
    engine = ParticleGradientDescent(num_particles=4_000)
    return pipeline.run(
        Curator(Dataset(domain, codes), Books(ledger)),
        replace(AllKWay(degree=degree), engine=engine),
    )


@pytest.mark.parametrize("adjacency", Adjacency)
def test_triples_show_what_pairs_cannot(adjacency):
    """Half the cells of the triple are empty; with pairs alone they hold half of the rows."""

    def share_with_odd_sum(release):
        return release.model.marginal(("a", "b", "c"))[np.indices((2, 2, 2)).sum(axis=0) % 2 == 1]

    # sigma is about 1.3 a cell at most, of 8,000 rows; the descent leaves a few per cent.
    assert share_with_odd_sum(parity_release(3, adjacency)).sum() < 0.05
    assert share_with_odd_sum(parity_release(2, adjacency)).sum() == pytest.approx(0.5, abs=0.1)
