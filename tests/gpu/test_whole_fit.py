"""A whole fit of codes on the device against the same fit on the processor (-m gpu)."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from benchmarks.simulated import simulated_table
from interpreted import INTERPRETED, needs_triton

from sdv_privpgd import ParticleGradientDescent
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.ledger import Books, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency, MarginalQuery
from sdv_privpgd.synthesize.particles.directions import stratified_directions
from sdv_privpgd.synthesize.particles.embedding import cell_centers
from sdv_privpgd.synthesize.particles.references.wasserstein import sliced_w1


def errors(model, domain, truth):
    """Mean L1 and SW1 over the pairs."""
    directions = stratified_directions(20, 2, torch.Generator().manual_seed(0), dtype=torch.float64)
    l1, sw1 = [], []
    for clique, counts in truth.items():
        target = torch.from_numpy((counts / counts.sum()).ravel())
        found = torch.from_numpy(model.marginal(clique).ravel())
        l1.append(float((found - target).abs().sum()))
        centers = cell_centers(domain.shape(clique))
        sw1.append(float(sliced_w1(centers, found, target, directions)))
    return np.mean(l1), np.mean(sw1)


@needs_triton
@pytest.mark.gpu
@pytest.mark.skipif(INTERPRETED, reason="one of these fits takes the interpreter hours")
def test_a_fit_on_the_device_is_as_near_to_the_table_as_one_on_the_processor():
    if not torch.cuda.is_available():
        pytest.skip("needs CUDA")
    domain, codes = simulated_table(100_000, 6, num_cells=16)
    dataset = Dataset(domain, codes)
    cliques = domain.cliques(2)
    curator = Curator(dataset, Books(PrivacyLedger.open(2.0, 1e-5, Adjacency.REPLACE_ONE)))
    measurements = curator.measure(
        [MarginalQuery(clique) for clique in cliques], Fraction(1, 8), what="pairs"
    )
    truth = dict(zip(cliques, dataset.counts_of(cliques), strict=True))
    device, processor = (
        errors(
            ParticleGradientDescent(num_particles=20_000, epochs=30, **changes).fit(
                domain, measurements
            ),
            domain,
            truth,
        )
        for changes in ({"kernel": "triton", "enable_gpu": True}, {"enable_gpu": False})
    )
    for found, expected in zip(device, processor, strict=True):
        assert found < 1.1 * expected
