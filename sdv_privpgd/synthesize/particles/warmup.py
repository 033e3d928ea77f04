"""Compiles all loops of a fit at once, on made-up answers, before the first fit on a machine."""

from importlib.util import find_spec

import numpy as np

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.privacy.queries import MarginalQuery, Measurement
from sdv_privpgd.synthesize.particles.descent import ParticleGradientDescent
from sdv_privpgd.synthesize.particles.kernels import choose_kernel

_DOMAIN = Domain(("a", "b", "c"), (3, 3, 3))


def must_compile(*, enable_gpu: bool) -> bool:
    """Whether numba would have to compile something for a fit, because it is not on disk yet."""
    if (
        find_spec("numba") is None
        or choose_kernel("auto", enable_gpu=enable_gpu).device.type != "cpu"
    ):
        return False
    # Here, because numba need not be installed.
    from sdv_privpgd.synthesize.particles.compiled_exchange import propose, take_proposals
    from sdv_privpgd.synthesize.particles.compiler import is_compiled
    from sdv_privpgd.synthesize.particles.kernels.numba_kernels import (
        pass_part,
        set_goals,
        sort_cells,
    )
    from sdv_privpgd.synthesize.particles.primal_dual import improve

    return not all(
        map(is_compiled, (sort_cells, pass_part, set_goals, improve, propose, take_proposals))
    )


def compile_all() -> None:
    """Compiles everything that a fit calls: it fits a few particles to made-up tables."""
    rng = np.random.default_rng(0)
    measurements = [
        Measurement(
            query=MarginalQuery(pair), answer=rng.integers(-9, 60, _DOMAIN.shape(pair)), stddev=9.0
        )
        for pair in _DOMAIN.cliques(2)
    ]
    # Denoised tables of so few cells may have nothing to project.
    engine = ParticleGradientDescent(num_particles=50, epochs=1, targets="raw", enable_gpu=False)
    engine.fit(_DOMAIN, measurements)
