"""The beginning of a fit: the compilation where none was made before."""

from sdv_privpgd.progress import Progress, one_step
from sdv_privpgd.synthesize.engine import Engine
from sdv_privpgd.synthesize.pgm import PrivatePGM


def begin(progress: Progress, engine: Engine) -> None:
    """Compiles the engine's loops, before a row is read."""
    if isinstance(engine, PrivatePGM):
        return
    # Imported late: Private-PGM needs no torch.
    from sdv_privpgd.synthesize.particles import warmup
    from sdv_privpgd.synthesize.particles.descent import ParticleGradientDescent

    is_compiled = isinstance(engine, ParticleGradientDescent)
    if is_compiled and warmup.must_compile(enable_gpu=engine.enable_gpu):
        with one_step(progress, "compile"):
            warmup.compile_all()
