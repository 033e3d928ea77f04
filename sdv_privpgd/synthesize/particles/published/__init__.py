"""The code that only ``ParticleGradientDescent.as_published`` needs (Donhauser et al. 2024)."""
