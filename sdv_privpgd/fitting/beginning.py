"""The beginning of a fit: what is to come, and the compilation where none was made before."""

from collections.abc import Callable, Sequence

from sdv_privpgd import forecast
from sdv_privpgd.progress import Progress, Stage, expect, one_step
from sdv_privpgd.synthesize.engine import Engine
from sdv_privpgd.synthesize.pgm import PrivatePGM


def begin(progress: Progress, engine: Engine, foretold: Callable[[], Sequence[Stage]]) -> None:
    """Says what is to come, before a row is read. An engine's loops are compiled at once.

    >>> from sdv_privpgd.progress import silent
    >>> begin(silent, PrivatePGM(), lambda: [])
    """
    if not isinstance(engine, PrivatePGM):
        # Imported late: Private-PGM needs no torch.
        from sdv_privpgd.synthesize.particles import warmup
        from sdv_privpgd.synthesize.particles.descent import ParticleGradientDescent

        is_compiled = isinstance(engine, ParticleGradientDescent)
        if is_compiled and warmup.must_compile(enable_gpu=engine.enable_gpu):
            expect(progress, lambda: [*forecast.compiling(), *foretold()])
            with one_step(progress, "compile"):
                warmup.compile_all()
    expect(progress, foretold)
