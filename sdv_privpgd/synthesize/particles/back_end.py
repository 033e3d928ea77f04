"""Where the projection and the finish of a fit are computed: beside the descent."""

from dataclasses import asdict, replace
from importlib.util import find_spec

import torch

from sdv_privpgd.synthesize.particles.cuda.batched_finish import BatchedFinish
from sdv_privpgd.synthesize.particles.cuda.batched_projection import BatchedProjection
from sdv_privpgd.synthesize.particles.finish import ExchangeFinish
from sdv_privpgd.synthesize.particles.projection import Projection


def default_projection() -> Projection:
    """``CompiledProjection``, or the same in torch where its compiler is not installed."""
    if find_spec("numba") is None:
        return BatchedProjection()
    from sdv_privpgd.synthesize.particles.primal_dual import CompiledProjection

    return CompiledProjection()


def projection_on(device: torch.device, projection: Projection) -> Projection:
    """What computes a projection on a device: CUDA solves in batches what else is compiled."""
    if isinstance(projection, BatchedProjection):
        return replace(projection, device=str(device))
    if device.type == "cuda" and find_spec("numba") is not None:
        from sdv_privpgd.synthesize.particles.primal_dual import CompiledProjection

        if isinstance(projection, CompiledProjection):
            return BatchedProjection(**asdict(projection), device=str(device))
    return projection


def finish_on(
    device: torch.device, finish: ExchangeFinish | None
) -> ExchangeFinish | BatchedFinish | None:
    """What computes a finish on a device: CUDA moves in batches what else moves one by one."""
    if finish is None or device.type != "cuda" or find_spec("triton") is None:
        return finish
    return BatchedFinish(sweeps=finish.sweeps, device=str(device))
