"""The benchmark of a device: what it needs, and that it counts and runs where there is none."""

import pytest
import torch
from interpreted import INTERPRETED, needs_numba, needs_triton, subprocess_of

from sdv_privpgd.benchmark import gpu
from sdv_privpgd.benchmark.simulated import simulated_table
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.synthesize.particles.kernels import choose_kernel


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a device")
def test_without_a_device_it_says_so_in_one_line_and_needs_the_core_alone():
    absent = ("sdv", "rdt", "sdmetrics", "opacus", "pandas", "numba", "beartype", "matplotlib")
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({absent!r})); sys.argv[1:] = ['gpu']; "
        "from sdv_privpgd.benchmark.__main__ import main; main()"
    )
    done = subprocess_of(["-c", code])
    assert done.returncode == 1, done.stderr
    assert done.stdout == "No CUDA device: torch.cuda.is_available() is false.\n"


@needs_triton
def test_the_bytes_of_a_step_are_those_of_its_arrays():
    def at(num_particles, shape, num_attributes=11):
        return gpu.step_bytes(num_particles, num_attributes, shape, num_cells=1024)

    # Two columns of floats are read to count; read and written to move.
    assert at(1_001, (1, 1)) - at(1, (1, 1)) == 1_000 * 4 * (2 + 2 + 2)
    assert at(1_001, (1, 10)) - at(1, (1, 10)) == 1_000 * 4 * (10 * 2 + 2 + 2)
    # Five tables: each column's program reads both of a table; 11 columns move in a pass.
    assert at(1_001, (5, 10)) - at(1, (5, 10)) == 1_000 * 4 * (50 * 2 + 5 * 4 + 11 * 4)
    # The rest belongs to the slices: 4,096 bins in 4 copies, 3 times; goals twice; stairs twice.
    assert at(0, (1, 1)) == 4096 * 4 * (3 * 4 + 2) + 1024 * 8 * 3 * 2
    assert at(0, (1, 10)) == 10 * at(0, (1, 1))


@needs_triton
@needs_numba  # for the finish, which runs on the processor where there is no device
@pytest.mark.skipif(INTERPRETED, reason="times nothing")
def test_a_small_run_has_all_stages_and_a_step_that_takes_time():
    dataset = Dataset(*simulated_table(500, 3, num_cells=4))
    stages = gpu.stage_seconds(dataset, 1.0, 300, 2)
    assert list(stages)[2:-2] == [
        "measure", "consistency", "project", "start", "descend", "finish",
    ]  # fmt: skip
    kernel = choose_kernel("torch", enable_gpu=False)
    targets = gpu.simulated_targets(dataset)
    costs = gpu.step_costs(kernel, kernel, targets, 3, 300, (1, 1), repetitions=1, bandwidth=4.8e12)
    assert costs["GB/s"] == pytest.approx(costs["MB"] * 1e6 / costs["us"] / 1e3)
    assert costs["of roofline"] == pytest.approx(costs["GB/s"] * 1e9 / 4.8e12)
