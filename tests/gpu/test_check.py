"""The check of Triton's kernels before a fit: right ones pass, wrong ones are left out."""

import sys
import warnings

import numpy as np
import pytest
import torch
from interpreted import INTERPRETED, assert_passes_in_the_interpreter, device_or_skip, needs_triton

from sdv_privpgd.domain import Domain
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.privacy.queries import MarginalQuery
from sdv_privpgd.synthesize.particles import back_end
from sdv_privpgd.synthesize.particles.descent import ParticleGradientDescent
from sdv_privpgd.synthesize.particles.finish import ExchangeFinish
from sdv_privpgd.synthesize.particles.kernels import Kernel, choose_kernel

DOMAIN = Domain(("a", "b", "c"), (3, 4, 2))


@pytest.fixture
def device(monkeypatch):
    """A device whose kernels a fit takes, in the interpreter too, and that is not yet checked."""
    found = device_or_skip()
    from sdv_privpgd.synthesize.particles.cuda import batched_finish, check, displacement

    if INTERPRETED:  # which takes minutes for as many launches as a device has in a second
        monkeypatch.setattr(displacement, "SEGMENT_STEPS", 2)
        monkeypatch.setattr(batched_finish, "_BLOCKS", 4)

    def chosen(name, *, enable_gpu):
        if name == "reference":
            return choose_kernel("reference", enable_gpu=enable_gpu)
        return Kernel(found, displacement.displacement, displacement.descend, is_triton=True)

    monkeypatch.setattr(back_end, "choose_kernel", chosen)
    check.faults.cache_clear()
    yield found
    check.faults.cache_clear()


def wrong_goals(monkeypatch):
    """Every other bin has its goal a hundredth too high."""
    from sdv_privpgd.synthesize.particles.cuda import displacement

    launch = displacement.launch_goals

    def launch_goals(positions, axes, tables, directions, stairs, counts, goals):
        launch(positions, axes, tables, directions, stairs, counts, goals)
        goals[:, ::2] += 0.01

    monkeypatch.setattr(displacement, "launch_goals", launch_goals)


def wrong_transport(monkeypatch):
    """The step of one table moves its particles a hundredth too far."""
    from sdv_privpgd.synthesize.particles.cuda import displacement

    launch = displacement.launch_transport

    def launch_transport(positions, axes, tables, directions, goals, rates):
        launch(positions, axes, tables, directions, goals, 1.01 * rates)

    monkeypatch.setattr(displacement, "launch_transport", launch_transport)


def broken(monkeypatch):
    """The device refuses the launch."""
    from sdv_privpgd.synthesize.particles.cuda import displacement

    def launch_displacement(*arguments):
        raise RuntimeError("CUDA error: invalid device function")

    monkeypatch.setattr(displacement, "launch_displacement", launch_displacement)


def idle_exchange(monkeypatch):
    """Batches move nothing."""
    from sdv_privpgd.synthesize.particles.cuda import triton_exchange

    monkeypatch.setattr(triton_exchange, "launch_batch", lambda *arguments, **options: None)


def measured():
    rng = np.random.default_rng(0)
    return [
        Measurement(
            query=MarginalQuery(pair), answer=rng.integers(0, 90, DOMAIN.shape(pair)), stddev=3.0
        )
        for pair in DOMAIN.cliques(2)
    ]


def fit(**changes):
    engine = ParticleGradientDescent(num_particles=60, epochs=2, finish=None, **changes)
    return engine.fit(DOMAIN, measured())


@needs_triton
@pytest.mark.gpu
def test_right_kernels_pass_and_are_used_without_a_word(device):
    from sdv_privpgd.synthesize.particles.cuda.check import faults

    assert faults(device) == ()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        codes = fit(enable_gpu=True).codes
    assert codes.shape == (60, 3)


@needs_triton
@pytest.mark.gpu
@pytest.mark.parametrize("plant", [wrong_goals, wrong_transport, broken])
def test_a_wrong_kernel_is_noticed_and_the_fit_goes_on_with_the_reference(
    plant, device, monkeypatch
):
    plant(monkeypatch)
    with pytest.warns(UserWarning, match=r"Triton's kernels of the descent fail a check"):
        found = fit(enable_gpu=True)
    reference = fit(enable_gpu=True, kernel="reference")
    np.testing.assert_array_equal(found.codes, reference.codes)
    with pytest.warns(UserWarning, match="of the descent"):  # of each fit
        fit(enable_gpu=True)


@needs_triton
@pytest.mark.gpu
def test_a_finish_that_fails_is_left_to_the_processor(device, monkeypatch):
    idle_exchange(monkeypatch)
    finish = ExchangeFinish()
    engine = ParticleGradientDescent()
    with pytest.warns(UserWarning, match="of the finish"):
        found = back_end.back_end_of("auto", engine.projection, finish, enable_gpu=True)
    assert found.finish is finish
    assert found.kernel.is_triton, "the descent is right"


@needs_triton
@pytest.mark.skipif(INTERPRETED, reason="this is the interpreter")
def test_the_check_works_in_the_interpreter():
    assert_passes_in_the_interpreter(__file__)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a device")
def test_without_a_device_nothing_is_checked(monkeypatch):
    monkeypatch.setitem(sys.modules, "sdv_privpgd.synthesize.particles.cuda.check", None)
    assert fit(enable_gpu=True).codes.shape == (60, 3)
