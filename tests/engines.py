"""Every engine that fits answers, at a size of about a second: a new one is a line here."""

from small_engine import MaximumEntropy

from sdv_privpgd.synthesize.generator import GeneratorNetwork
from sdv_privpgd.synthesize.genetic import PrivateGSD
from sdv_privpgd.synthesize.gum import GUM
from sdv_privpgd.synthesize.particles.descent import ParticleGradientDescent
from sdv_privpgd.synthesize.pgm import PrivatePGM
from sdv_privpgd.synthesize.rap_plus_plus import AnnealedProjection
from sdv_privpgd.synthesize.relaxed_projection import GenerativeNetwork, RelaxedProjection

ENGINES = {
    "particles": ParticleGradientDescent(num_particles=2_000, epochs=40, enable_gpu=False),
    "gum": GUM(num_rows=5_000),
    "graphical": PrivatePGM(steps=1_000),
    "generator": GeneratorNetwork(steps=300, num_inputs=300, num_particles=20_000),
    "rap++": AnnealedProjection(num_components=100, steps=60),
    "rap": RelaxedProjection(num_components=60, steps=150),
    "gem": GenerativeNetwork(
        num_components=60, latent=8, widths=(32,), steps=150, learning_rate=0.03
    ),
    "private gsd": PrivateGSD(num_rows=500),
    "maximum entropy": MaximumEntropy(),
}
