"""Several processes share out a batch of tables."""

import numpy as np
import pytest
import torch

from sdv_privpgd.domain import Domain
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.privacy.queries import CountQuery, MarginalQuery
from sdv_privpgd.synthesize.particles.cuda.distributed import (
    from_first_process,
    split_over_processes,
)
from sdv_privpgd.synthesize.particles.descent import ParticleGradientDescent
from sdv_privpgd.synthesize.particles.kernels import choose_kernel
from sdv_privpgd.synthesize.particles.kernels.targets import PackedTargets, Visit

WORLD = 2


def problem():
    generator = torch.Generator().manual_seed(0)
    axes = [[0], [1, 2], [3, 0], [2, 1, 0]]
    targets = PackedTargets.of(
        axes,
        [torch.rand(5, len(those), generator=generator) for those in axes],
        [torch.rand(5, generator=generator) for _ in axes],
    )
    directions = torch.rand(len(axes), 2, 3, generator=generator) - 0.5
    return torch.rand(4, 200, generator=generator), targets, directions


KERNEL = choose_kernel("reference", enable_gpu=False)
BATCHES = [[0, 1, 2, 3], [2, 0, 1], [3], [1, -1]]


def choices(directions):
    return [(torch.tensor(batch), directions[: len(batch)]) for batch in BATCHES]


def visits(directions):
    return [Visit(*choice, torch.full((4,), 0.5)) for choice in choices(directions)]


def answers(rank):
    """What a process would measure for itself."""
    table = np.array([[40, 5], [10, 45 + rank]])
    return [
        Measurement(query=CountQuery(), answer=np.array([100]), stddev=0.0),
        Measurement(query=MarginalQuery(("a", "b")), answer=table, stddev=2.0),
    ]


def fit(measurements):
    engine = ParticleGradientDescent(num_particles=50, epochs=3, kernel="reference")
    return engine.fit(Domain(("a", "b"), (2, 2)), measurements).codes.tolist()


def work(rank, folder):
    """What each process does; it saves what it gets."""
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=WORLD
    )
    try:
        positions, targets, directions = problem()
        kernel = split_over_processes(KERNEL)
        found = [kernel.displacement(positions, targets, *choice) for choice in choices(directions)]
        end = kernel.descend(positions, targets, visits(directions))
        told = from_first_process(f"measured by {rank}")
        try:
            refused = str(fit(answers(rank)))
        except RuntimeError as error:
            refused = str(error)
        fitted = fit(from_first_process(answers(rank)))
        saved = {"displacements": found, "end": end, "told": told}
        torch.save({**saved, "refused": refused, "fitted": fitted}, folder / f"{rank}.pt")
    finally:
        torch.distributed.destroy_process_group()


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    torch.multiprocessing.spawn(work, (folder,), nprocs=WORLD)
    return [torch.load(folder / f"{rank}.pt") for rank in range(WORLD)]


def test_all_processes_hold_the_same_bits(results):
    one, other = results
    for mine, theirs in zip(one["displacements"], other["displacements"], strict=True):
        assert torch.equal(mine[0], theirs[0])
        assert torch.equal(mine[1], theirs[1])
    assert torch.equal(one["end"], other["end"])


def test_two_processes_compute_what_one_does(results):
    positions, targets, directions = problem()
    for mine, choice in zip(results[0]["displacements"], choices(directions), strict=True):
        total, losses = KERNEL.displacement(positions, targets, *choice)
        # The sum over tables is the same but for its order: a few roundings of float32.
        torch.testing.assert_close(mine[0], total, rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(mine[1], losses, rtol=1e-12, atol=0)
    end = KERNEL.descend(positions, targets, visits(directions))
    # A rounding may swap the ranks of two particles, which then trade their targets.
    assert (results[0]["end"] - end).abs().mean() < 1e-5


def test_all_processes_go_on_from_what_the_first_measured(results):
    assert [each["told"] for each in results] == ["measured by 0", "measured by 0"]


def test_a_fit_to_answers_of_several_measurers_is_refused_everywhere(results):
    for each in results:
        assert "each has measured for itself" in each["refused"]
    assert results[0]["fitted"] == results[1]["fitted"]


def test_alone_a_process_keeps_its_kernel_and_its_values():
    assert split_over_processes(KERNEL) is KERNEL
    measured = object()
    assert from_first_process(measured) is measured
