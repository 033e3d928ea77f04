"""A whole fit on the device against the processor's (-m gpu), and its experiment without one."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from answers import noisy_answers, number_of_rows
from benchmarks.experiment import HERE
from benchmarks.gpu import stage_seconds
from benchmarks.simulated import simulated_table
from devices import DEVICES, skip_without
from processes import python
from references.wasserstein import cell_centers, sliced_w1

from sdv_privpgd.methods import ParticleGradientDescent
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.synthesize.particles.batched_local_search import BatchedSearch
from sdv_privpgd.synthesize.particles.batched_projection import BatchedProjection
from sdv_privpgd.synthesize.particles.steps import stratified_directions


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


@pytest.mark.parametrize("device", DEVICES)
def test_a_fit_in_torch_is_as_near_to_the_table_as_the_compiled_one(device):
    skip_without(device)
    number = {"cpu": 3_000, "cuda": 20_000}[device]
    domain, codes = simulated_table(5 * number, 4, num_cells=8)
    cliques = domain.cliques(2)
    truth = dict(zip(cliques, Dataset(domain, codes).counts_of(cliques), strict=True))
    measurements = [number_of_rows(len(codes)), *noisy_answers(truth, stddev=10.0)]
    engine = ParticleGradientDescent(num_particles=number, epochs=30)
    batched = replace(
        engine, kernel="torch", enable_gpu=device == "cuda",
        projection=BatchedProjection(max_steps=100), local_search=BatchedSearch(),
    )  # fmt: skip
    found, expected = (
        errors(each.fit(domain, measurements), domain, truth) for each in (batched, engine)
    )
    for own, other in zip(found, expected, strict=True):
        assert own < 1.1 * other


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a device")
def test_without_a_device_it_says_so_in_one_line_and_needs_the_core_alone():
    absent = ("sdv", "rdt", "sdmetrics", "opacus", "pandas", "numba", "beartype", "matplotlib")
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({absent!r})); "
        f"sys.path.insert(0, {str(HERE.parent)!r}); "
        "from benchmarks.experiment import main; main(['gpu'])"
    )
    done = python("-c", code)
    assert done.returncode == 1, done.stderr
    assert done.stdout == "No CUDA device: torch.cuda.is_available() is false.\n"


def test_a_small_run_has_all_stages():
    stages = stage_seconds(Dataset(*simulated_table(500, 3, num_cells=4)), 1.0, 300, 2)
    assert list(stages)[3:-2] == [
        "measure", "consistency", "project", "start", "descend", "local_search",
    ]  # fmt: skip
