"""Every engine there is, at a size of about a second: a new one is a line here."""

from small_engine import MaximumEntropy

from sdv_privpgd.synthesize.particles.descent import ParticleGradientDescent
from sdv_privpgd.synthesize.pgm import PrivatePGM

ENGINES = {
    "particles": ParticleGradientDescent(num_particles=2_000, epochs=40, enable_gpu=False),
    "graphical": PrivatePGM(steps=1_000),
    "maximum entropy": MaximumEntropy(),
}
